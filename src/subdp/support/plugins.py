"""Encoders, aligners, translators and tokenizers that other packages bring, found by their entry points.

A package offers one by declaring it, for example for a tokenizer called `jieba`:

    [project.entry-points."subdp.tokenizers"]
    jieba = "my_package:words"

What an entry point names in each group:

* `subdp.encoders`: a function without arguments that returns the path of a model folder;
* `subdp.aligners`: a class or function called as `make(encoder, one_to_one=…)` that returns a `subdp.Aligner`;
* `subdp.translators`: a class or function called with two language codes that returns a `Translator`;
* `subdp.tokenizers`: a function from the text of a sentence to its words.

Standard library only; a plug-in is not imported before it is asked for by name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from subdp.support.errors import SubdpError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUPS = ("subdp.encoders", "subdp.aligners", "subdp.translators", "subdp.tokenizers")
"""The entry-point groups that are searched."""


def plugins(group: str) -> dict[str, EntryPoint]:
    """The plug-ins of a group that are installed, by name, in alphabetical order.

    Two packages that offer the same name are an error, because there is no telling which one was meant.
    """
    from importlib.metadata import entry_points  # it takes a moment to import, and `subdp --help` asks for no plug-ins

    if group not in GROUPS:
        raise ValueError(f"{group!r} is no group of plug-ins; the groups are {', '.join(GROUPS)}")
    found: dict[str, EntryPoint] = {}
    for entry in sorted(entry_points(group=group), key=lambda entry: entry.name):
        twin = found.setdefault(entry.name, entry)
        if twin.value != entry.value:
            raise SubdpError(
                f"two packages offer {entry.name!r} in {group}: {package_of(twin)} and {package_of(entry)}",
                hint="uninstall one of them",
            )
    return found


def load(group: str, name: str, *, built_in: Iterable[str] = ()) -> Any:
    """The object that a plug-in's entry point names; `built_in` are the names to list beside the plug-ins' own."""
    found = plugins(group)
    if name not in found:
        available = ", ".join([*built_in, *found]) or "none"
        raise SubdpError(
            f"no {_kind(group)} is called {name!r}",
            hint=f"available: {available}; a package adds one with an entry point in the group {group}",
        )
    with _one_sentence(group, found[name], "cannot be loaded"):
        return found[name].load()


def make(group: str, name: str, *arguments: Any, built_in: Iterable[str] = (), **options: Any) -> Any:
    """What a plug-in's entry point returns when it is called with these arguments."""
    call = load(group, name, built_in=built_in)
    with _one_sentence(group, plugins(group)[name], "failed"):
        return call(*arguments, **options)


@contextmanager
def _one_sentence(group: str, entry: EntryPoint, what: str) -> Iterator[None]:
    """A plug-in is other people's code: whatever it raises becomes an error that names its package."""
    try:
        yield
    except SubdpError:
        raise
    except Exception as error:
        raise SubdpError(
            f"the {_kind(group)} {entry.name!r} of {package_of(entry)} {what}: {type(error).__name__}: {error}",
            hint="reinstall or upgrade that package",
        ) from error


def _kind(group: str) -> str:
    return group.removeprefix("subdp.").removesuffix("s")


def package_of(entry: EntryPoint) -> str:
    """The name and version of the package that brings a plug-in."""
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist else entry.value
