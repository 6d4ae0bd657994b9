"""Word alignments: which source word is linked to which target word, with what weight, and scores against gold.

Links count words from 0, source first, as Pharaoh files do. Numpy only; the aligners that make alignments from
sentence vectors are in `similarity`.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from subdp.support.errors import SubdpError, counted
from subdp.support.files import Source, name_of, open_text_output, read_lines

Link = tuple[int, int]
_LINK = re.compile(r"(\d+)([-?p])(\d+)(?::((?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?))?")


@dataclass(frozen=True, slots=True)
class Alignment:
    """Links between the words of a sentence and of its translation.

    `links` are (source, target), from 0, sorted; `weights` has the weight of each (1 for a plain link). `possible`
    holds the possible links of a gold alignment, which are allowed but not required; `links` are its sure ones.
    """

    links: tuple[Link, ...]
    weights: tuple[float, ...]
    possible: tuple[Link, ...] = ()

    def __post_init__(self) -> None:
        if len(self.links) != len(self.weights):
            raise SubdpError(f"{counted(len(self.links), 'link')} but {len(self.weights)} weights", where="<alignment>")
        for source, target in (*self.links, *self.possible):
            if source < 0 or target < 0:
                raise SubdpError(f"link {source}-{target} is below 0", where="<alignment>", hint="words count from 0")
        for (source, target), weight in zip(self.links, self.weights, strict=True):
            if not (math.isfinite(weight) and weight > 0):
                reason = f"link {source}-{target} has weight {weight}"
                raise SubdpError(reason, where="<alignment>", hint="weights must be above 0; leave other links out")
        if any(a >= b for a, b in zip(self.links, self.links[1:], strict=False)):
            raise SubdpError("links are not sorted and distinct", where="<alignment>", hint="use Alignment.of")

    @classmethod
    def of(
        cls, pairs: Iterable[Link], *, weights: Iterable[float] | None = None, possible: Iterable[Link] = ()
    ) -> Alignment:
        """An alignment from (source, target) pairs counted from 0, in any order; duplicates count once."""
        links = [(int(source), int(target)) for source, target in pairs]
        strengths = [1.0] * len(links) if weights is None else [float(weight) for weight in weights]
        if len(links) != len(strengths):
            raise SubdpError(f"{counted(len(links), 'link')} but {len(strengths)} weights", where="<alignment>")
        by_link = dict(zip(links, strengths, strict=True))
        ordered = sorted(by_link)
        maybe = sorted({(int(source), int(target)) for source, target in possible} - by_link.keys())
        return cls(tuple(ordered), tuple(by_link[link] for link in ordered), tuple(maybe))

    @classmethod
    def parse(cls, text: str) -> Alignment:
        """An alignment from Pharaoh's notation: `0-0 1-2`, with `:0.8` for a weight, `1?3` for a possible link.

        >>> Alignment.parse("0-0 2-1:0.5 1?1").links
        ((0, 0), (2, 1))
        """
        links: list[Link] = []
        weights: list[float] = []
        possible: list[Link] = []
        for item in text.split():
            match = _LINK.fullmatch(item)
            if match is None:
                raise SubdpError(
                    f"{item!r} is not a link", where="<alignment>", hint="links look like 0-0, 1?2 or 3-4:0.8"
                )
            link = (int(match[1]), int(match[3]))
            if match[2] == "-":
                links.append(link)
                weights.append(float(match[4] or 1))
            elif match[4] is None:
                possible.append(link)
            else:
                hint = f"write {match[1]}?{match[3]}, or {match[1]}-{match[3]}:{match[4]} for a sure link"
                raise SubdpError(f"the possible link {item!r} has a weight", where="<alignment>", hint=hint)
        return cls.of(links, weights=weights, possible=possible)

    @classmethod
    def from_matrix(cls, matrix: npt.ArrayLike) -> Alignment:
        """An alignment from a matrix of weights; 0 means no link.

        Shape: matrix [S, T], source words by target words, without ROOT.
        """
        array = np.asarray(matrix, dtype=float)
        if array.ndim != 2:
            raise SubdpError(f"an alignment matrix has 2 dimensions, not {array.ndim}", where="<alignment>")
        rows, columns = np.nonzero(array)
        links = zip(rows.tolist(), columns.tolist(), strict=True)
        return cls.of(links, weights=array[rows, columns].tolist())

    def matrix(self, source: int, target: int) -> npt.NDArray[np.float64]:
        """The matrix Ã for sentences of `source` and `target` words: ROOT is linked to ROOT alone.

        Shape: [source + 1, target + 1], ROOT at 0.
        """
        self.check(source, target)
        array = np.zeros((source + 1, target + 1))
        array[0, 0] = 1
        for (i, j), weight in zip(self.links, self.weights, strict=True):
            array[i + 1, j + 1] = weight
        return array

    def check(self, source: int, target: int) -> None:
        """Raise if a link points beyond sentences of `source` and `target` words."""
        for i, j in (*self.links, *self.possible):
            if i >= source or j >= target:
                side, index, count = ("source", i, source) if i >= source else ("target", j, target)
                reason = f"link {i}-{j} names {side} word {index} but the {side} sentence has {counted(count, 'word')}"
                raise SubdpError(reason, where="<alignment>", hint="links count words from 0, source first")

    def one_to_one(self) -> Alignment:
        """Only the links whose two words have no other link."""
        sources = Counter(source for source, _ in self.links)
        targets = Counter(target for _, target in self.links)
        kept = [sources[source] == 1 == targets[target] for source, target in self.links]
        return Alignment(
            tuple(link for link, keep in zip(self.links, kept, strict=True) if keep),
            tuple(weight for weight, keep in zip(self.weights, kept, strict=True) if keep),
        )

    def transpose(self) -> Alignment:
        """The same links with source and target swapped."""
        pairs = [(target, source) for source, target in self.links]
        return Alignment.of(pairs, weights=self.weights, possible=[(j, i) for i, j in self.possible])

    def __len__(self) -> int:
        return len(self.links)

    def __str__(self) -> str:
        plain = [
            f"{i}-{j}" if weight == 1 else f"{i}-{j}:{weight!r}"
            for (i, j), weight in zip(self.links, self.weights, strict=True)
        ]
        return " ".join([*plain, *(f"{i}?{j}" for i, j in self.possible)])


def read_alignments(source: Source) -> Iterator[Alignment]:
    """Read a Pharaoh file, one alignment a line; an empty line is a pair without links."""
    for number, line in read_lines(source):
        try:
            yield Alignment.parse(line)
        except SubdpError as error:
            raise SubdpError(error.reason, where=name_of(source), line=number, hint=error.hint) from None


def write_alignments(alignments: Iterable[Alignment], file: Source) -> None:
    """Write a Pharaoh file, one alignment per line; a path is written completely or not at all."""
    with open_text_output(file) as write:
        for alignment in alignments:
            write(f"{alignment}\n")


@dataclass(frozen=True, slots=True)
class AlignmentScores:
    """Scores against gold, in 0..1: precision on sure and possible links, recall on sure ones, alignment error rate."""

    precision: float
    recall: float
    aer: float
    links: int

    @property
    def f1(self) -> float:
        """The harmonic mean of precision and recall."""
        total = self.precision + self.recall
        return 2 * self.precision * self.recall / total if total else 0.0

    def as_dict(self) -> dict[str, float]:
        """The scores by name, for JSON."""
        return {"precision": self.precision, "recall": self.recall, "f1": self.f1, "aer": self.aer, "links": self.links}

    def __str__(self) -> str:
        return f"precision {self.precision:.3f}  recall {self.recall:.3f}  F1 {self.f1:.3f}  AER {self.aer:.3f}"


def score_alignments(
    gold: Sequence[Alignment], system: Sequence[Alignment], *, within_gold_words: bool = False
) -> AlignmentScores:
    """Och and Ney's measures. With A the system's links, S the sure gold links and P the sure and possible ones:
    precision |A∩P|/|A|, recall |A∩S|/|S|, AER 1 − (|A∩S| + |A∩P|)/(|A| + |S|).

    `within_gold_words` counts only links between words that have a gold link, for gold that covers content words only.
    """
    if len(gold) != len(system):
        raise SubdpError(f"{counted(len(gold), 'gold alignment')} but {len(system)} to score", where="<alignment>")
    made = sure = in_sure = in_possible = 0
    for reference, candidate in zip(gold, system, strict=True):
        sures, possibles = set(reference.links), set(reference.links) | set(reference.possible)
        links = set(candidate.links)
        if within_gold_words:
            sources, targets = {i for i, _ in possibles}, {j for _, j in possibles}
            links = {(i, j) for i, j in links if i in sources and j in targets}
        made += len(links)
        sure += len(sures)
        in_sure += len(links & sures)
        in_possible += len(links & possibles)
    return AlignmentScores(
        precision=in_possible / made if made else 0.0,
        recall=in_sure / sure if sure else 0.0,
        aer=1 - (in_sure + in_possible) / (made + sure) if made + sure else 0.0,
        links=made,
    )
