"""From flags and TOML files to checked dataclasses, and back to TOML.

A dataclass gives each field a type and, with `Annotated`, bounds; its `__post_init__` calls `check_fields`, so that no
value passes unchecked, however it was made. `converted` makes such values from flags (strings) and TOML.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from types import NoneType
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import tomli_w

from subdp.support.errors import SubdpError
from subdp.support.files import Source, name_of, read_bytes

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a number must be: `least` or more, more than `above`, less than `below`; never infinite, never NaN."""

    least: float = -math.inf
    above: float = -math.inf
    below: float = math.inf

    def __contains__(self, number: float) -> bool:
        return self.least <= number and self.above < number < self.below

    def __str__(self) -> str:
        texts = {"of at least": self.least, "above": self.above, "below": self.below}
        return "".join(f" {text} {limit:g}" for text, limit in texts.items() if math.isfinite(limit))


Count = Annotated[int, Bounds(least=1)]
"""A whole number from 1."""
Seed = Annotated[int, Bounds(least=0, below=2**63)]
"""What random number generators and TOML take as a seed."""
Name = Annotated[str, Bounds()]
"""A name without commas: a flag has several of them separated by commas."""


def check_fields(config: Any) -> None:
    """Raise unless every field of a dataclass has a value of its type and within its bounds."""
    for name, kind in kinds(type(config)).items():
        _check(name, getattr(config, name), kind, None)


def converted(config: type, values: Mapping[str, Any], where: str | None = None) -> dict[str, Any]:
    """Values from flags or a TOML file as the fields of a dataclass hold them.

    A name that is not a field, or a value that its field cannot have, is an error; `where` is the file.
    """
    known, found = kinds(config), dict[str, Any]()
    for name, value in values.items():
        if name not in known:
            raise SubdpError(f"there is no setting {name!r}", where=where, hint=f"the settings are {', '.join(known)}")
        found[name] = _convert(value, known[name])
        _check(name, found[name], known[name], where)
    return found


def as_dict(config: Any) -> dict[str, Any]:
    """A dataclass as plain values, for JSON and TOML."""
    return {key: list(value) if isinstance(value, tuple) else value for key, value in asdict(config).items()}


def as_toml(sections: Mapping[str, Any]) -> str:
    """Dataclasses as the sections of a TOML file that gives them back; what is None is left out."""
    tables = {name: as_dict(config) for name, config in sections.items()}
    return tomli_w.dumps({name: {k: v for k, v in table.items() if v is not None} for name, table in tables.items()})


def read_toml(file: Source) -> dict[str, dict[str, Any]]:
    """The sections of a TOML file."""
    try:
        found = tomllib.loads(read_bytes(file).decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SubdpError(f"is not TOML: {error}", where=name_of(file)) from None
    for name, section in found.items():
        if not isinstance(section, dict):
            hint = f"write [{name}] on a line of its own"
            raise SubdpError(f"{name} is not a section", where=name_of(file), hint=hint)
    return found


def kinds(config: type) -> dict[str, Any]:
    """The types of a dataclass's fields, with their bounds."""
    return get_type_hints(config, include_extras=True)


def _parts(kind: Any) -> tuple[Any, Bounds | None]:
    """A type without its `| None`, and its bounds."""
    if get_origin(kind) is Annotated:
        base, bounds = get_args(kind)
        return base, bounds
    if NoneType in get_args(kind):
        (kind,) = (inner for inner in get_args(kind) if inner is not NoneType)
    return kind, None


def _convert(value: Any, kind: Any) -> Any:
    """A value as its type has it, or as it is where that cannot be: the check then says what is wrong."""
    base, _ = _parts(kind)
    if get_origin(base) is tuple:
        inner = get_args(base)[0]
        apart = isinstance(value, str) and inner is not str  # A file name may hold a comma.
        items = [item for item in value.split(",") if item] if apart else value
        return tuple(_convert(item, inner) for item in items) if isinstance(items, list | tuple) else value
    if base not in (int, float) or isinstance(value, bool):
        return value
    try:
        number = float(value)
        return int(value) if base is int and number.is_integer() else number if base is float else value
    except (TypeError, ValueError, OverflowError):
        return value


def _check(name: str, value: Any, kind: Any, where: str | None) -> None:
    optional = NoneType in get_args(kind)
    if not (optional and value is None) and not _fits(value, kind):
        raise SubdpError(f"{name} cannot be {value!r}", where=where, hint=f"give {described(kind)}")


def _fits(value: Any, kind: Any) -> bool:
    base, bounds = _parts(kind)
    if get_origin(base) is Literal:
        return any(value == choice and type(value) is type(choice) for choice in get_args(base))
    if get_origin(base) is tuple:
        return isinstance(value, tuple) and all(_fits(item, get_args(base)[0]) for item in value)
    if isinstance(value, bool) or not isinstance(value, (int, float) if base is float else base):
        return base is bool and isinstance(value, bool)
    return _encodable(value) if isinstance(value, str) else bounds is None or value in bounds


def _encodable(text: str) -> bool:
    """Whether UTF-8 has it: file names with bytes that are none come as strings that cannot be written."""
    try:
        text.encode()
        return True
    except UnicodeEncodeError:
        return False


_NAMES = {int: "a whole number", float: "a number", str: "a name", bool: "true or false"}


def described(kind: Any) -> str:
    """What a value of this type is, in words."""
    base, bounds = _parts(kind)
    if get_origin(base) is Literal:
        return " or ".join(map(str, get_args(base)))
    if get_origin(base) is tuple:
        inner, bounds = _parts(get_args(base)[0])
        return f"a list of {_NAMES[inner].removeprefix('a ')}s{bounds or ''}"
    return f"{_NAMES[base]}{bounds or ''}"
