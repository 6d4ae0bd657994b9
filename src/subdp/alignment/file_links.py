"""Links from another program (fast_align, eflomal, awesome-align …): a Pharaoh file with one line per pair."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import repeat
from typing import Any, TypeVar

from subdp.alignment.aligner import Aligner
from subdp.alignment.links import Alignment, read_alignments
from subdp.corpus.bitext import Bitext, Pair
from subdp.support.errors import SubdpError, counted
from subdp.support.files import Source, file_hash, name_of
from subdp.support.on_disk import Lines

_Item = TypeVar("_Item")


class FileAligner(Aligner):
    """Looks alignments up in a file by the line that each pair was read from; `one_to_one` keeps only those links."""

    reads_lines = True

    def __init__(self, path: Source, *, one_to_one: bool = False):
        self.path, self.one_to_one = path, one_to_one

    def __reduce__(self) -> Any:
        return _again, (self.path, self.one_to_one)

    @cached_property
    def fingerprint(self) -> str:
        """Changes with the file's content: silver made with other links is other silver."""
        return f"FileAligner(sha256={file_hash(self.path)}, one_to_one={self.one_to_one})"

    @cached_property
    def alignments(self) -> Sequence[Alignment]:
        """The alignments of all lines, in a temporary file."""
        return Lines.of(
            read_alignments(self.path), lambda links: str(links).encode(), lambda line: Alignment.parse(line.decode())
        )

    def prepared(self, bitext: Bitext) -> Bitext:
        """The bitext with a line number for every pair.

        Pairs that have line numbers keep them, so that links still match after filters have dropped some pairs.
        Otherwise the file must have exactly as many lines as there are pairs.
        """
        numbers, there = line_numbers(bitext), len(self.alignments)
        if numbers is not None and (not numbers or numbers[-1] <= there):
            return bitext
        if numbers is not None:
            reason = f"ends before line {numbers[-1]} of the bitext"
        elif there != len(bitext):
            reason = f"has {counted(there, 'line')} for {counted(len(bitext), 'pair')}"
        else:
            return bitext.with_pairs(replace(pair, line=at) for at, pair in enumerate(bitext, 1))
        raise SubdpError(reason, where=name_of(self.path), hint=_ONE_LINE)

    def align(self, pairs: Iterable[Pair]) -> Iterator[Alignment]:
        """The file's alignment of each pair, checked against the lengths of its sentences."""
        for pair in self.prepared(Bitext.of(list(pairs))):
            number = pair.line or 0
            alignment = self.alignments[number - 1]
            try:
                alignment.check(len(pair.source), len(pair.target))
            except SubdpError as error:
                raise SubdpError(error.reason, where=name_of(self.path), line=number, hint=error.hint) from None
            yield alignment.one_to_one() if self.one_to_one else alignment


_ONE_LINE = "the file needs one line for each pair, in the same order; leave a line empty where nothing is linked"


def _again(path: Source, one_to_one: bool) -> FileAligner:
    return FileAligner(path, one_to_one=one_to_one)


def line_numbers(pairs: Iterable[Pair]) -> Sequence[int] | None:
    """The line numbers of pairs that were read in order from one file, or None if any is unknown."""
    numbers = array("q")
    for pair in pairs:
        if pair.line is None or (numbers and pair.line <= numbers[-1]):
            return None
        numbers.append(pair.line)
    return numbers


def by_line(bitext: Bitext, items: Iterable[_Item], nothing: _Item) -> Iterator[_Item]:
    """What each pair has, by line: `nothing` for every line of the bitext without a pair, so that line N stays N."""
    numbers = line_numbers(bitext)
    if numbers is None:
        yield from items
        return
    done = 0
    for number, item in zip(numbers, items, strict=True):
        yield from repeat(nothing, number - done - 1)
        yield item
        done = number
    yield from repeat(nothing, bitext.lines - done)


def as_line(pair: Pair) -> str:
    """The words of a pair as other aligners read them, a tab between its sides; white space in a word becomes `_`."""
    return "\t".join(" ".join("_".join(word.split()) for word in side) for side in (pair.source, pair.target))
