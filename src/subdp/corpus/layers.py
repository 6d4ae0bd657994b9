"""Layers: what CoNLL-U says of single words besides the tree, by name.

    upos          the column UPOS
    xpos          the column XPOS
    feats:Case    one feature of FEATS, "none" where a word does not have it
    misc:NE       one key of MISC, likewise: named entities in BIO, for example

`_` means that nobody annotated a word. Standard library only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from subdp.support.errors import SubdpError

if TYPE_CHECKING:
    from subdp.corpus.treebank import Sentence

UNANNOTATED = "_"
"""What CoNLL-U holds in place of a value that nobody annotated."""
NONE = "none"
"""The value of a feature that a word does not have."""

_UPOS, _XPOS, _FEATS, _MISC = 3, 4, 5, 9


@dataclass(frozen=True, slots=True)
class Layer:
    """One value for each word. `title` begins the keys of MISC that tell how sure a parser is of it."""

    name: str
    title: str
    read: Callable[[Sentence], Sequence[str]]
    """The values of a sentence's words, `_` where nobody annotated one."""
    write: Callable[[list[str], str], None]
    """Put a value into the ten columns of a word."""


@cache
def find_layer(name: str) -> Layer:
    """The layer of that name."""
    if name == "upos":
        return Layer(name, "UPOS", lambda sentence: sentence.upos, lambda columns, tag: _put(columns, _UPOS, tag))
    if name == "xpos":
        return Layer(name, "XPOS", _read_xpos, lambda columns, tag: _put(columns, _XPOS, tag))
    column, colon, key = name.partition(":")
    if column not in ("feats", "misc") or not colon or not key or set(key) & set("=|.\t "):
        hint = "name upos, xpos, one feature as feats:Case, or one key of MISC as misc:NE"
        raise SubdpError(f"there is no layer {name!r}", hint=hint)
    place = _FEATS if column == "feats" else _MISC
    return Layer(name, key, lambda sentence: _read_key(sentence, place, key), lambda c, v: _put_key(c, place, key, v))


def has_layer(sentences: Iterable[Sentence], name: str) -> bool:
    """Whether any word of the sentences has a value of the layer, besides "none"."""
    read = find_layer(name).read
    return any(value not in (UNANNOTATED, NONE) for sentence in sentences for value in read(sentence))


def is_bio(values: Sequence[str]) -> bool:
    """Whether the values are spans in BIO: `O` (or nothing) outside, `B-X` and `I-X` inside."""
    spans = [value for value in values if value not in ("O", NONE, UNANNOTATED)]
    return bool(spans) and all(value[:2] in ("B-", "I-") and len(value) > 2 for value in spans)


def broken_bio(values: Sequence[str]) -> int | None:
    """The place of the first `I-X` that continues nothing, if there is one."""
    before = "O"
    for place, value in enumerate(values):
        if value.startswith("I-") and before not in (value, f"B-{value[2:]}"):
            return place
        before = value
    return None


def word_columns(sentence: Sentence) -> list[list[str]]:
    """The ten columns of each word, without multiword ranges and empty nodes."""
    lines = (line.split("\t") for line in sentence.conllu.split("\n") if not line.startswith("#"))
    return [columns for columns in lines if columns[0].isdecimal()]


def _read_xpos(sentence: Sentence) -> Sequence[str]:
    return [columns[_XPOS] for columns in word_columns(sentence)]


def _read_key(sentence: Sentence, place: int, key: str) -> Sequence[str]:
    """A sentence none of whose words has FEATS has not been annotated; MISC may well be empty in one that has."""
    found = [columns[place] for columns in word_columns(sentence)]
    if place == _FEATS and all(value == UNANNOTATED for value in found):
        return [UNANNOTATED] * len(found)
    pairs = (dict(item.partition("=")[::2] for item in value.split("|")) for value in found)
    return [items.get(key, NONE) or NONE for items in pairs]


def _put(columns: list[str], place: int, value: str) -> None:
    columns[place] = value


def _put_key(columns: list[str], place: int, key: str, value: str) -> None:
    """Set one key, or take it away where the value is none; FEATS is kept in order, as UD wants it."""
    items = [] if columns[place] == UNANNOTATED else columns[place].split("|")
    items = [item for item in items if item.partition("=")[0] != key]
    if value != NONE:
        items.append(f"{key}={value}")
    columns[place] = "|".join(sorted(items, key=str.lower) if place == _FEATS else items) or UNANNOTATED
