"""A tree, hard or soft, as a picture in SVG: words in a row, arcs above them in levels, self-loops at their word.

Standard library only.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from html import escape
from itertools import pairwise
from typing import NamedTuple

from subdp.drawing.arcs import Arc, clean, columns, runs_right_to_left, share_of, shown_words

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


def render_svg(words: Sequence[str], arcs: Sequence[Arc], tags: Sequence[str] = ()) -> str:
    """The tree as an SVG: arcs above the words, stronger the more probable; self-loops at the end of their word.

    Tags, if there are any, stand under the words.

    A right-to-left sentence is drawn from right to left. No element has an id, so a page can hold many pictures.
    """
    names = shown_words(words, arcs)
    widths = [_text_width(name, _WORD_SIZE) for name in names]
    for word, tag in enumerate(tags, 1):
        widths[word] = max(widths[word], _text_width(clean(tag), _LABEL_SIZE))
    centres, bows = _layout(widths, arcs)
    last = max(centres)
    width = centres[last] + widths[last] / 2
    width = max([width, *(bow.right for bow in bows)]) + _MARGIN
    ground = _MARGIN + _LABEL_SIZE / 2 + _STEP * max((bow.level for bow in bows), default=0)
    height = ground + _WORD_SIZE * 1.25 + (_LABEL_SIZE * 1.25 if tags else 0) + _MARGIN
    backwards = runs_right_to_left("".join(words))

    def across(x: float) -> float:
        return width - x if backwards else x

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" width="{width:.0f}" height="{height:.0f}"'
        f' viewBox="0 0 {width:.1f} {height:.1f}" {_FONT} text-anchor="middle">',
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
        if tags and word:
            parts.append(
                f'<text x="{across(centre):.1f}" y="{ground + _WORD_SIZE * 1.1 + _LABEL_SIZE * 1.25:.1f}"'
                f' font-size="{_LABEL_SIZE}" fill="#888">{escape(clean(tags[word - 1]))}</text>'
            )
    return "\n".join([*parts, "</svg>"]) + "\n"


# Tamil by name: where Noto's fonts are installed, Chromium falls back on Grantha's, which lacks most of its letters.
_FONT = "font-family=\"sans-serif, 'Noto Sans Tamil'\""

# Widths of letters in em, by the script that their Unicode names begin with: the widest words met in Noto's fonts.
_EMS = {
    "ARABIC": 0.72, "ARMENIAN": 0.76, "BENGALI": 0.66, "CYRILLIC": 0.66, "DEVANAGARI": 0.72, "ETHIOPIC": 0.78,
    "GUJARATI": 0.68, "KANNADA": 0.85, "KHMER": 0.8, "LAO": 0.66, "MALAYALAM": 1.1, "MYANMAR": 1.15, "ORIYA": 0.8,
    "SINHALA": 0.95, "TAMIL": 1.05, "TELUGU": 0.75,
}  # fmt: skip


def _text_width(text: str, size: float) -> float:
    """About how wide text is; rather too wide, since the reader's font is unknown."""
    return size * sum(map(_ems, text))


@cache
def _ems(sign: str) -> float:
    if columns(sign) != 1:  # a mark on another letter takes no room; East Asian letters fill a square
        return columns(sign) / 2
    script = unicodedata.name(sign, "").partition(" ")[0]
    return _EMS.get(script, 0.6) + sign.isupper() * 0.15 + (sign in "mwMW") * 0.3


def _layout(widths: Sequence[float], arcs: Sequence[Arc]) -> tuple[dict[int, float], list[_Bow]]:
    """Where the words stand, and where each arc runs."""
    texts = [clean(arc.label) + share_of(arc, arcs) for arc in arcs]
    room = [_text_width(text, _LABEL_SIZE) + 2 * _CORNER + 4 for text in texts]
    ends = [sorted((arc.head, arc.dependent)) for arc in arcs]
    ports = _ports(len(widths), ends)
    left, right = [0.0] * len(arcs), [0.0] * len(arcs)
    centres: dict[int, float] = {}
    edge = float(_MARGIN)
    for word in range(0 if any(arc.head == 0 for arc in arcs) else 1, len(widths)):
        closing, opening, loops = ports[word]
        reach = _PORT_GAP * (len(closing) + len(opening) - 1) + (_PORT_GAP + _LOOP if loops else 0)
        half = max(widths[word], reach) / 2
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
