"""How values show themselves in a notebook: a picture that scrolls, a small table. Standard library only."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from textwrap import shorten

from subdp.drawing.arcs import clean


def scrolled(svg: str, caption: str = "") -> str:
    """A picture at its own size, however long the sentence: a notebook would shrink it to the width of the page."""
    text = f'<div dir="auto" style="color: #666">{escape(clean(caption))}</div>' if caption else ""
    return f'<div style="overflow-x: auto">{text}{svg}</div>'


def table(rows: Iterable[Sequence[str]], *, head: Sequence[str] = (), title: str = "") -> str:
    """A table of text; the first column is aligned to the left."""
    lines = [f"<b>{escape(clean(title))}</b>"] if title else []
    lines.append("<table>")
    for cells, tag in [*([(head, "th")] if head else []), *((row, "td") for row in rows)]:
        first, *others = (escape(clean(cell)) for cell in cells)
        rest = "".join(f"<{tag}>{cell}</{tag}>" for cell in others)
        lines.append(f'<tr><{tag} style="text-align: left">{first}</{tag}>{rest}</tr>')
    return "\n".join([*lines, "</table>"])


def outline(words: Sequence[str]) -> str:
    """The first words of a sentence, for one line."""
    return shorten(" ".join(words), 60, placeholder=" …")
