"""What an aligner is: anything that gives an alignment for every sentence pair, and is known by a fingerprint."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator

from subdp.alignment.links import Alignment
from subdp.corpus.bitext import Bitext, Pair


class Aligner(ABC):
    """Aligns sentence pairs. What it says of a pair depends on the pair alone, not on those it is asked with.

    A plug-in's entry point names a class or function that is called as `make(encoder, one_to_one=…)` and gives one.
    """

    reads_vectors: bool = False
    """Whether it reads what the encoder says of both sides: then that is computed for all pairs first."""

    reads_lines: bool = False
    """Whether its links were made beforehand, for the words of each line as the bitext has them."""

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """Names all that its links depend on: what was made with one aligner never passes for another's."""

    @abstractmethod
    def align(self, pairs: Iterable[Pair]) -> Iterator[Alignment]:
        """One alignment for each pair, in order."""

    def prepared(self, bitext: Bitext) -> Bitext:
        """A whole bitext as `align` wants its pairs, which are asked for in parts; an error if it cannot be aligned."""
        return bitext
