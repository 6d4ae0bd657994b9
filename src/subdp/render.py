"""Pictures of trees, hard or soft: terminal text, SVG, and an HTML page of several SVGs.

All take words and a plain list of weighted arcs, so that they serve every kind of tree. Standard library only.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from typing import NamedTuple

from subdp.errors import SubdpError


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


def _names(words: Sequence[str], arcs: Sequence[Arc]) -> list[str]:
    """ROOT and the words, fit to be shown, after checking that the arcs stay among them."""
    if not words:
        raise SubdpError("there are no words to draw")
    for arc in arcs:
        if max(arc.dependent, arc.head) > len(words):
            raise SubdpError(f"an arc leads from {arc.head} to {arc.dependent}, but there are {len(words)} words")
    return ["ROOT", *map(_clean, words)]


def _clean(text: str) -> str:
    """Text without what neither XML nor a terminal can take: controls, line breaks, surrogates, noncharacters."""
    return "".join(
        "\ufffd" if unicodedata.category(sign) in _UNFIT or ord(sign) & 0xFFFE == 0xFFFE else sign for sign in text
    )


_UNFIT = frozenset({"Cc", "Cs", "Zl", "Zp"})


def _columns(sign: str) -> int:
    """The columns that a character takes in a terminal."""
    if unicodedata.category(sign) in ("Mn", "Me", "Cf") or "\u1160" <= sign <= "\u11ff":
        return 0
    return 2 if unicodedata.east_asian_width(sign) in "WF" else 1


def _runs_right_to_left(text: str) -> bool:
    """Whether more of the letters run from right to left than from left to right."""
    ways = [unicodedata.bidirectional(sign) for sign in text]
    return sum(way in ("R", "AL") for way in ways) > ways.count("L")


def _share(arc: Arc, arcs: Sequence[Arc]) -> str:
    """The arc's probability; nothing if all are certain."""
    if all(other.probability == 1 for other in arcs):
        return ""
    return " <0.01" if 0 < arc.probability < 0.005 else f" {arc.probability:.2f}"


# Terminal text


class _Lane(NamedTuple):
    """The vertical line that joins a head with its dependents; level 0 is nearest to the words."""

    head: int
    rows: frozenset[int]
    top: int
    bottom: int
    level: int


def render_text(words: Sequence[str], arcs: Sequence[Arc]) -> str:
    """The tree as lines of text, one for each word.

    On the left, one line for each head: it leaves its own word without an arrow and enters its dependents with one.
    On the right, the arcs in words, the most probable first; a self-loop is shown as `↺`.
    """
    names = _names(words, arcs)
    lanes = _lanes(arcs)
    first = 0 if any(arc.head == 0 for arc in arcs) else 1
    width = max(sum(map(_columns, name)) for name in names[first:])
    digits = len(str(len(words)))
    lines = []
    for row in range(first, len(names)):
        heads = sorted((arc for arc in arcs if arc.dependent == row), key=lambda arc: -arc.probability)
        described = ", ".join(
            _clean(arc.label) + (" ↺" if arc.head == row else f" ← {_isolated(names[arc.head])}") + _share(arc, arcs)
            for arc in heads
        )
        padding = " " * (width - sum(map(_columns, names[row])))
        lines.append(f"{_lines(row, lanes)} {row:>{digits}} {_isolated(names[row])}{padding}  {described}".rstrip())
    return "\n".join(lines) + "\n"


def _isolated(word: str) -> str:
    """A right-to-left word shut off, so that a terminal turns round the word and not the line around it."""
    return f"\u2068{word}\u2069" if _runs_right_to_left(word) else word


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


# SVG

_WORD_SIZE, _LABEL_SIZE = 16, 11
_PORT_GAP = 9  # between two lines that end at one word
_LOOP = 12  # between the feet of a self-loop
_WORD_GAP = 18
_STEP = 22  # between two levels of arcs
_CORNER = 6
_MARGIN = 12


class _Bow(NamedTuple):
    """An arc with its place in the picture."""

    arc: Arc
    text: str
    left: float
    right: float
    level: int
    label_at: float


def render_svg(words: Sequence[str], arcs: Sequence[Arc]) -> str:
    """The tree as an SVG: arcs above the words, stronger the more probable; self-loops at the end of their word.

    A sentence that runs from right to left is drawn so. Nothing in it has an id, so many fit on one page.
    """
    names = _names(words, arcs)
    centres, bows = _layout(names, arcs)
    last = max(centres)
    width = centres[last] + _text_width(names[last], _WORD_SIZE) / 2
    width = max([width, *(bow.right for bow in bows)]) + _MARGIN
    ground = _MARGIN + _LABEL_SIZE / 2 + _STEP * max((bow.level for bow in bows), default=0)
    height = ground + _WORD_SIZE * 1.25 + _MARGIN
    backwards = _runs_right_to_left("".join(words))

    def across(x: float) -> float:
        return width - x if backwards else x

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" width="{width:.0f}" height="{height:.0f}"'
        f' viewBox="0 0 {width:.1f} {height:.1f}" font-family="sans-serif" text-anchor="middle">',
        f"<title>{escape(' '.join(names[1:]))}</title>",
        f'<rect width="{width:.1f}" height="{height:.1f}" fill="#fff"/>',
    ]
    # The highest first, so that where a line must cross a label, the label is on top.
    for bow in sorted(bows, key=lambda bow: -bow.level):
        parts += _drawn(bow, names, ground, across)
    direction = ' direction="rtl"' if backwards else ""
    for word, centre in centres.items():
        colour = "#111" if word else "#888"
        parts.append(
            f'<text x="{across(centre):.1f}" y="{ground + _WORD_SIZE * 1.1:.1f}" font-size="{_WORD_SIZE}"'
            f' fill="{colour}"{direction}>{escape(names[word])}</text>'
        )
    return "\n".join([*parts, "</svg>"]) + "\n"


def _text_width(text: str, size: float) -> float:
    """About how wide text is; rather too wide, since the reader's font is unknown."""
    return size * sum((0, 0.6, 1.0)[_columns(sign)] + sign.isupper() * 0.15 + (sign in "mwMW") * 0.3 for sign in text)


def _layout(names: Sequence[str], arcs: Sequence[Arc]) -> tuple[dict[int, float], list[_Bow]]:
    """Where the words stand, and where each arc runs."""
    texts = [_clean(arc.label) + _share(arc, arcs) for arc in arcs]
    room = [_text_width(text, _LABEL_SIZE) + 2 * _CORNER + 4 for text in texts]
    ends = [sorted((arc.head, arc.dependent)) for arc in arcs]
    ports = _ports(len(names), ends)
    left, right = [0.0] * len(arcs), [0.0] * len(arcs)
    centres: dict[int, float] = {}
    edge = float(_MARGIN)
    for word in range(0 if any(arc.head == 0 for arc in arcs) else 1, len(names)):
        closing, opening, loops = ports[word]
        reach = _PORT_GAP * (len(closing) + len(opening) - 1) + (_PORT_GAP + _LOOP if loops else 0)
        half = max(_text_width(names[word], _WORD_SIZE), reach) / 2
        # A word moves on until each arc that closes here has room for its label.
        needed = [left[arc] + room[arc] + reach / 2 - place * _PORT_GAP for place, arc in enumerate(closing)]
        centres[word] = max([edge + half, *needed])
        at = centres[word] - reach / 2
        for arc in closing:
            right[arc] = at
            at += _PORT_GAP
        for arc in opening:
            left[arc] = at
            at += _PORT_GAP
        for arc in loops:
            left[arc], right[arc] = at, at + _LOOP + room[arc]
            at = right[arc] + _PORT_GAP
        edge = max(centres[word] + half, at - _PORT_GAP) + _WORD_GAP
    return centres, _bows(arcs, texts, left, right)


def _ports(count: int, ends: Sequence[Sequence[int]]) -> list[tuple[list[int], list[int], list[int]]]:
    """For each word, the arcs that close there, those that open there and its self-loops, each from left to right.

    Of the arcs to either side the short ones are outermost, so that no two arcs of one word cross.
    """
    ports: list[tuple[list[int], list[int], list[int]]] = [([], [], []) for _ in range(count)]
    for index in sorted(range(len(ends)), key=lambda index: ends[index][1] - ends[index][0]):
        first, last = ends[index]
        if first == last:
            ports[first][2].append(index)
        else:
            ports[last][0].append(index)
            ports[first][1].insert(0, index)
    return ports


def _bows(arcs: Sequence[Arc], texts: Sequence[str], left: Sequence[float], right: Sequence[float]) -> list[_Bow]:
    """Give each arc the lowest level above all shorter arcs that it overlaps, and its label a free place."""
    levels: dict[int, int] = {}
    for index in sorted(range(len(arcs)), key=lambda index: abs(arcs[index].head - arcs[index].dependent)):
        below = [levels[other] for other in levels if left[other] < right[index] and left[index] < right[other]]
        levels[index] = max(below, default=0) + 1
    bows = []
    for index, arc in enumerate(arcs):
        legs = [x for other in levels if levels[other] > levels[index] for x in (left[other], right[other])]
        start = left[index] + (_LOOP if arc.head == arc.dependent else 0)
        place = _free_place(start, right[index], legs, _text_width(texts[index], _LABEL_SIZE))
        bows.append(_Bow(arc, texts[index], left[index], right[index], levels[index], place))
    return bows


def _free_place(left: float, right: float, legs: Iterable[float], width: float) -> float:
    """The place nearest to the middle where a label meets none of the lines that cross its arc."""
    middle = (left + right) / 2
    edges = [left, *sorted(leg for leg in legs if left < leg < right), right]
    margin = width / 2 + 3
    gaps = [(a + margin, b - margin) for a, b in pairwise(edges) if b - a >= 2 * margin]
    return min((min(max(middle, a), b) for a, b in gaps), key=lambda place: abs(place - middle), default=middle)


def _drawn(bow: _Bow, names: Sequence[str], ground: float, across: Callable[[float], float]) -> list[str]:
    """The SVG of one arc: its line, the arrow at its dependent, and its label on a white ground."""
    arc, top = bow.arc, ground - _STEP * bow.level
    if arc.head == arc.dependent:  # a small loop at the end of its word, with the label beside it
        start, arrow = across(bow.left), across(bow.left + _LOOP)
        out = (arrow - start) / 2
        line = f"C{start - out:.1f} {top - 6:.1f} {arrow + out:.1f} {top - 6:.1f} {arrow:.1f} {ground - 5:.1f}"
    else:
        start, arrow = across(bow.left), across(bow.right)
        if arc.dependent < arc.head:
            start, arrow = arrow, start
        turn = _CORNER if start < arrow else -_CORNER
        line = (
            f"V{top + _CORNER:.1f}Q{start:.1f} {top:.1f} {start + turn:.1f} {top:.1f}"
            f"H{arrow - turn:.1f}Q{arrow:.1f} {top:.1f} {arrow:.1f} {top + _CORNER:.1f}V{ground - 5:.1f}"
        )
    label, width = across(bow.label_at), _text_width(bow.text, _LABEL_SIZE) + 4
    strength = 0.3 + 0.7 * arc.probability
    return [
        f"<g><title>{escape(names[arc.dependent])} ← {escape(names[arc.head])}: {escape(bow.text)}</title>",
        f'<path d="M{start:.1f} {ground:.1f}{line}" fill="none" stroke="#25c"'
        f' stroke-width="{0.6 + 1.2 * arc.probability:.2f}" opacity="{strength:.2f}"/>',
        f'<path d="M{arrow - 3.5:.1f} {ground - 7:.1f}h7l-3.5 7z" fill="#25c" opacity="{strength:.2f}"/>',
        f'<rect x="{label - width / 2:.1f}" y="{top - _LABEL_SIZE * 0.6:.1f}" width="{width:.1f}"'
        f' height="{_LABEL_SIZE * 1.2:.1f}" fill="#fff"/>',
        f'<text x="{label:.1f}" y="{top + _LABEL_SIZE * 0.35:.1f}" font-size="{_LABEL_SIZE}" fill="#333">'
        f"{escape(bow.text)}</text></g>",
    ]


# HTML


def render_html(
    items: Iterable[tuple[str | None, Sequence[str], Sequence[Arc]]], *, title: str = "Dependency trees"
) -> str:
    """A page with one picture for each item: the sentence's id (or None), its words, its arcs."""
    figures = []
    for number, (name, words, arcs) in enumerate(items, start=1):
        caption = escape(_clean(name or f"Sentence {number}"))
        figures.append(f'<figure>\n<figcaption dir="auto">{caption}</figcaption>\n{render_svg(words, arcs)}</figure>\n')
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>{escape(_clean(title))}</title>\n'
        "<style>body { font-family: sans-serif; margin: 2em; color: #111; background: #fff }"
        " figure { margin: 0 0 2em; overflow-x: auto } figcaption { color: #666; margin-bottom: .5em }</style>\n"
        f"</head>\n<body>\n{''.join(figures)}</body>\n</html>\n"
    )
