"""Weighted arcs between words, and what every picture of them needs: `render` and `svg` draw them.

Standard library only.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from subdp.support.errors import SubdpError, counted


@dataclass(frozen=True, slots=True)
class Arc:
    """A head that a word has with some probability. Words are numbered from 1; head 0 is ROOT; both may be equal."""

    dependent: int
    head: int
    label: str
    probability: float = 1.0

    def __post_init__(self) -> None:
        if self.dependent < 1 or self.head < 0:
            raise SubdpError(f"no arc can lead from {self.head} to {self.dependent}", hint="words are numbered from 1")
        if not 0 <= self.probability <= 1:
            raise SubdpError(f"a probability of {self.probability}", hint="it must be between 0 and 1")


def tree_arcs(heads: Sequence[int], labels: Sequence[str]) -> list[Arc]:
    """The arcs of a tree, `heads[0]` being the head of word 1; a word without a known head has none."""
    relations = enumerate(zip(heads, labels, strict=True), 1)
    return [Arc(word, head, label) for word, (head, label) in relations if head >= 0]


def shown_words(words: Sequence[str], arcs: Sequence[Arc]) -> list[str]:
    """ROOT and the cleaned words, after checking that the arcs stay within the sentence."""
    if not words:
        raise SubdpError("there are no words to draw")
    for arc in arcs:
        if max(arc.dependent, arc.head) > len(words):
            there = counted(len(words), "word")
            raise SubdpError(f"an arc leads from {arc.head} to {arc.dependent}, but the sentence has {there}")
    return ["ROOT", *map(clean, words)]


def clean(text: str) -> str:
    """Text with what XML or a terminal cannot take replaced: controls, line breaks, surrogates, noncharacters."""
    return "".join(
        "\ufffd" if unicodedata.category(sign) in _UNFIT or ord(sign) & 0xFFFE == 0xFFFE else sign for sign in text
    )


_UNFIT = frozenset({"Cc", "Cs", "Zl", "Zp"})


def columns(sign: str) -> int:
    """The columns that a character takes in a terminal."""
    if unicodedata.category(sign) in ("Mn", "Me", "Cf") or "\u1160" <= sign <= "\u11ff":
        return 0
    return 2 if unicodedata.east_asian_width(sign) in "WF" else 1


def runs_right_to_left(text: str) -> bool:
    """Whether more of the letters run from right to left than from left to right."""
    ways = [unicodedata.bidirectional(sign) for sign in text]
    return sum(way in ("R", "AL") for way in ways) > ways.count("L")


def share_of(arc: Arc, arcs: Sequence[Arc]) -> str:
    """The arc's probability; nothing if all are certain."""
    if all(other.probability == 1 for other in arcs):
        return ""
    return " <0.01" if 0 < arc.probability < 0.005 else f" {arc.probability:.2f}"
