"""Plug-ins: encoders, aligners, translators and tokenizers from other packages, found by their entry points.

A package offers one by declaring it, for example for a tokenizer called `jieba`:

    [project.entry-points."subdp.tokenizers"]
    jieba = "my_package:words"

Standard library only; a plug-in is imported only when it is asked for by name.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from subdp.support.errors import SubdpError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUPS = ("subdp.encoders", "subdp.aligners", "subdp.translators", "subdp.tokenizers")
"""The entry-point groups in which this package looks."""


def plugins(group: str) -> dict[str, EntryPoint]:
    """The plug-ins of a group in all installed packages, by name, in alphabetical order.

    Two packages that offer the same name are an error, because there is no telling which one was meant.
    """
    from importlib.metadata import entry_points  # slow to import, and `subdp --help` does without it

    if group not in GROUPS:
        raise ValueError(f"there is no group of plug-ins {group!r}; the groups are {', '.join(GROUPS)}")
    found: dict[str, EntryPoint] = {}
    for entry in sorted(entry_points(group=group), key=lambda entry: entry.name):
        twin = found.setdefault(entry.name, entry)
        if twin.value != entry.value:
            raise SubdpError(
                f"two packages offer {entry.name!r} in {group}: {_package(twin)} and {_package(entry)}",
                hint="uninstall one of them",
            )
    return found


def load(group: str, name: str, *, built_in: Iterable[str] = ()) -> Any:
    """The object that a plug-in's entry point names; `built_in` are names to list besides, in the error."""
    found = plugins(group)
    kind = group.removeprefix("subdp.").removesuffix("s")
    if name not in found:
        available = ", ".join([*built_in, *found]) or "none"
        raise SubdpError(
            f"no {kind} is called {name!r}",
            hint=f"available: {available}; a package adds one with an entry point in the group {group}",
        )
    try:
        return found[name].load()
    except Exception as error:  # a plug-in is other people's code, and may raise anything
        raise SubdpError(
            f"the {kind} {name!r} of {_package(found[name])} cannot be loaded: {type(error).__name__}: {error}",
            hint="reinstall or upgrade that package",
        ) from error


def _package(entry: EntryPoint) -> str:
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist else entry.value
