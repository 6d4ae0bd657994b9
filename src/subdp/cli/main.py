"""The `subdp` command: the application with all its verbs, which their modules add to it when they are imported."""

from __future__ import annotations

from cyclopts import CycloptsError

from subdp.cli import convert, data, experiments, runs, steps, texts, translation, trees, upkeep
from subdp.cli.app import app, misused

__all__ = ["app", "main"]

VERBS = (convert, data, experiments, runs, steps, texts, translation, trees, upkeep)


def main() -> None:
    """The entry point of the `subdp` command."""
    try:
        app.meta(exit_on_error=False, print_error=False)
    except CycloptsError as error:
        misused(error)
