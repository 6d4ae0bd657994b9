"""The interface of an aligner: it returns an alignment for every sentence pair and has a fingerprint."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator

from subdp.alignment.links import Alignment
from subdp.corpus.bitext import Bitext, Pair


class Aligner(ABC):
    """Aligns sentence pairs. The alignment of a pair depends on that pair alone, not on the others in the batch.

    A plug-in's entry point names a class or function that is called as `make(encoder, one_to_one=…)` and returns one.
    """

    reads_vectors: bool = False
    """Whether it uses the encoder's vectors of both sides, which are then computed for all pairs first."""

    reads_lines: bool = False
    """Whether its links exist already, for the words of each line exactly as the bitext has them."""

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """Identifies everything that its links depend on, so that results of different aligners are never mixed up."""

    @abstractmethod
    def align(self, pairs: Iterable[Pair]) -> Iterator[Alignment]:
        """One alignment for each pair, in order."""

    def prepared(self, bitext: Bitext) -> Bitext:
        """The whole bitext in the form that `align` expects; called once, before any part of it is aligned.

        Raises an error if the bitext cannot be aligned.
        """
        return bitext
