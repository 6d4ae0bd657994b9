"""A progress bar with rate and remaining time: on standard error at a terminal, and in notebooks.

`SUBDP_QUIET=1`, which `--quiet` sets, turns it off everywhere. rich is imported only when a bar is drawn.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from importlib.util import find_spec
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console


def visible() -> bool:
    """Whether a person is there to see progress."""
    return (sys.stderr.isatty() or _in_notebook()) and os.environ.get("SUBDP_QUIET", "") in ("", "0")


def _in_notebook() -> bool:
    """Whether this is the kernel of a notebook, which is what Jupyter, VS Code and Colab have in common."""
    ipython = sys.modules.get("IPython")
    return getattr(ipython and ipython.get_ipython(), "kernel", None) is not None


def _console() -> Console:
    from rich.console import Console

    if _in_notebook() and find_spec("ipywidgets") is None:
        # rich would only say that it wants ipywidgets; a notebook shows a line that is written over as well.
        return Console(stderr=True, force_jupyter=False, force_terminal=True, width=100)
    return Console(stderr=True)


@contextmanager
def progress(title: str, total: int | None, unit: str, done: int = 0) -> Iterator[Callable[..., None]]:
    """A bar that counts `unit`s. Call what it yields with the number newly done; `note=` is shown beside the bar.

    >>> with progress("reading", 3, "words") as advance:
    ...     advance(3)
    """
    if not visible():
        yield lambda done=0, note="": None
        return
    from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn
    from rich.text import Text

    class Rate(ProgressColumn):
        def render(self, task: Task) -> Text:
            # Averaged over the whole time: work comes in bursts, so a momentary rate would jump.
            speed = (task.completed - done) / max(task.elapsed or 0.0, 1e-3)
            if not speed:
                return Text("")
            left = "" if total is None else f"  {timedelta(seconds=round((total - task.completed) / speed))} left"
            return Text(f"{speed:,.0f} {unit}/s{left}")

    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=30),
        TextColumn("{task.percentage:>3.0f}%"),
        Rate(),
        TextColumn("{task.fields[note]}"),
    )
    with Progress(*columns, console=_console(), transient=True) as bar:
        task = bar.add_task(title, total=total, completed=done, note="")

        def advance(done: int = 0, note: str | None = None) -> None:
            bar.update(task, advance=done, **({} if note is None else {"note": note}))  # type: ignore[arg-type]

        yield advance
