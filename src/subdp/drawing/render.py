"""Pictures of trees, hard or soft: terminal text, and SVG (in `svg`).

Both take words and a plain list of weighted arcs, so that they serve every kind of tree. Standard library only.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from subdp.drawing.arcs import Arc, clean, columns, runs_right_to_left, share_of, shown_words
from subdp.drawing.svg import render_svg

__all__ = ["Arc", "render_svg", "render_text"]


class _Lane(NamedTuple):
    """The vertical line that joins a head with its dependents; level 0 is nearest to the words."""

    head: int
    rows: frozenset[int]
    top: int
    bottom: int
    level: int


def render_text(words: Sequence[str], arcs: Sequence[Arc], tags: Sequence[str] = ()) -> str:
    """The tree as lines of text, one for each word, with its tag behind it if there are tags.

    On the left, one line for each head: it leaves its own word without an arrow and enters its dependents with one.
    On the right, the arcs in words, the most probable first; a self-loop is shown as `↺`.
    """
    names = shown_words(words, arcs)
    lanes = _lanes(arcs)
    first = 0 if any(arc.head == 0 for arc in arcs) else 1
    width = max(sum(map(columns, name)) for name in names[first:])
    digits = len(str(len(words)))
    beside = ["", *(f" {clean(tag):<{max(map(len, tags))}}" for tag in tags)] if tags else [""] * len(names)
    lines = []
    for row in range(first, len(names)):
        heads = sorted((arc for arc in arcs if arc.dependent == row), key=lambda arc: -arc.probability)
        described = ", ".join(
            clean(arc.label) + (" ↺" if arc.head == row else f" ← {_isolated(names[arc.head])}") + share_of(arc, arcs)
            for arc in heads
        )
        padding = " " * (width - sum(map(columns, names[row])))
        lines.append(
            f"{_lines(row, lanes)} {row:>{digits}} {_isolated(names[row])}{padding}{beside[row]}  {described}".rstrip()
        )
    return "\n".join(lines) + "\n"


def _isolated(word: str) -> str:
    """A right-to-left word between isolates, so that a terminal reverses the word and not the line around it."""
    return f"\u2068{word}\u2069" if runs_right_to_left(word) else word


def _lanes(arcs: Sequence[Arc]) -> list[_Lane]:
    """One lane for each head; of two that run side by side, the shorter is nearer to the words, ROOT's farthest."""
    rows: dict[int, set[int]] = {}
    for arc in arcs:
        if arc.head != arc.dependent:
            rows.setdefault(arc.head, {arc.head}).add(arc.dependent)
    lanes: list[_Lane] = []
    for head, ends in sorted(rows.items(), key=lambda item: (item[0] == 0, max(item[1]) - min(item[1]))):
        top, bottom = min(ends), max(ends)
        beside = [lane.level for lane in lanes if lane.top <= bottom and top <= lane.bottom]
        lanes.append(_Lane(head, frozenset(ends), top, bottom, max(beside, default=-1) + 1))
    return lanes


def _lines(row: int, lanes: Sequence[_Lane]) -> str:
    """What the lanes look like beside one word. A lane that only passes by is crossed without being touched."""
    drawn, joined = "", False
    for level in range(max((lane.level for lane in lanes), default=-1), -1, -1):
        lane = next((lane for lane in lanes if lane.level == level and lane.top <= row <= lane.bottom), None)
        if lane is None:
            drawn += "──" if joined else "  "
        elif row not in lane.rows:
            drawn += "│─" if joined else "│ "
        else:
            corners = "┬┴┼" if joined else "╭╰├"
            drawn += corners[0 if row == lane.top else 1 if row == lane.bottom else 2]
            drawn += "─" if row == lane.head else "▸"
            joined = True
    return drawn
