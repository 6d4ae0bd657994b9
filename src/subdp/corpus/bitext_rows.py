"""The lines of a bitext's files as rows of text: tables with a tab, WikiMatrix with a score, two parallel files.

Every error names file and line. `bitext` and `annotate` call this; it imports tokenizers, errors and files.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from os import PathLike, fspath
from typing import Literal, TypeAlias

from subdp.corpus.tokenizers import Tokenizer, choose_tokenizer
from subdp.support.errors import SubdpError, counted
from subdp.support.files import name_of, read_lines

Path: TypeAlias = str | PathLike[str]
"""A file's path (`.gz` is unpacked), or `-` for standard input."""

Row: TypeAlias = tuple[int, str, str]
"""The number of a line, from 1; its source; its target."""

Format: TypeAlias = Literal["auto", "tsv", "moses", "wikimatrix", "conllu"]

WIKIMATRIX_THRESHOLD = 1.04
"""The margin score from which WikiMatrix's authors recommend using a pair."""

_TABLE = "a line is source TAB target, or score TAB source TAB target"


class NoTabError(SubdpError):
    """A line of text where a pair was expected."""


def are_conllu(paths: Iterable[Path]) -> bool:
    """Whether files are CoNLL-U by their endings, which have words, not text."""
    return all(fspath(path).removesuffix(".gz").endswith(".conllu") for path in paths)


def rows_of(
    source: Path, target: Path | None, format: Format, threshold: float | None, dropped: Counter[str]
) -> Iterator[Row]:
    """The rows of one table or of two parallel files."""
    return table_rows(source, format, threshold, dropped) if target is None else moses_rows(source, target)


def choose_tokenizers(
    rows: Sequence[Row], where: str, source: str | Tokenizer, target: str | Tokenizer
) -> tuple[str | Tokenizer, str | Tokenizer]:
    """The tokenizers of both sides, by the script of the first rows where they are `auto`."""
    return (
        choose_tokenizer(source, [row[1] for row in rows], "the source", where),
        choose_tokenizer(target, [row[2] for row in rows], "the target", where),
    )


def table_rows(path: Path, format: Format, threshold: float | None, dropped: Counter[str]) -> Iterator[Row]:
    """The rows of a table with two columns, or three with a score first; `auto` goes by the first non-empty line."""
    name = name_of(path)
    lowest = WIKIMATRIX_THRESHOLD if threshold is None else threshold
    for line, text in read_lines(path):
        cells = text.split("\t")
        if not text.strip():
            yield line, "", ""
            continue
        if format == "auto":
            format = "wikimatrix" if len(cells) == 3 and _number(cells[0]) is not None else "tsv"
            if format == "tsv" and threshold is not None:
                raise SubdpError("a threshold is given, but the line has no score", where=name, line=line, hint=_TABLE)
        wanted = 3 if format == "wikimatrix" else 2
        if len(cells) != wanted:
            if len(cells) == 1:
                raise NoTabError("no tab in the line", where=name, line=line, hint=_TABLE)
            raise SubdpError(f"{len(cells)} columns instead of {wanted}", where=name, line=line, hint=_TABLE)
        if format == "wikimatrix":
            first = cells.pop(0)
            score = _number(first)
            if score is None:
                raise SubdpError(f"the score {first!r} is not a number", where=name, line=line, hint=_TABLE)
            if score < lowest:
                dropped[f"score below {lowest:g}"] += 1
                continue
        yield line, cells[0], cells[1]


def moses_rows(source: Path, target: Path) -> Iterator[Row]:
    """The lines of two files in parallel, which must have the same number of them."""
    count = [0, 0]
    for left, right in zip_longest(read_lines(source), read_lines(target)):
        count[0] += left is not None
        count[1] += right is not None
        if left is not None and right is not None:
            yield left[0], left[1], right[1]
    if count[0] != count[1]:
        raise SubdpError(
            f"{counted(count[0], 'line')}, but {name_of(target)} has {count[1]}",
            where=name_of(source),
            hint="line N of one must translate line N of the other",
        )


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return None if math.isnan(number) else number
