"""Other ways to read silver stores: a part of one, several as one. No distribution is computed or stored again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import accumulate, chain
from sys import intern

import numpy as np

from subdp.alignment.links import Alignment
from subdp.projection.silver import Silver, SilverPair
from subdp.support.errors import SubdpError


class SilverPart(Silver):
    """The pairs of a store with these numbers, each with its alignment in `links`, which has one for every pair."""

    def __init__(self, silver: Silver, indices: Sequence[int], links: Sequence[Alignment]):
        self.folder, self.keep, self.label_names = silver.folder, silver.keep, silver.label_names
        self.made_from = {**silver.made_from, "pairs": len(indices)}
        self._silver, self._indices, self._links = silver, indices, links

    def __len__(self) -> int:
        return len(self._indices)

    def __getitem__(self, index: int) -> SilverPair:
        if not 0 <= index < len(self):
            raise IndexError(index)
        number = self._indices[index]
        return replace(self._silver[number], alignment=self._links[number])

    def targets(self) -> Iterator[tuple[str, ...]]:
        targets = list(self._silver.targets())
        return (targets[number] for number in self._indices)


def all_labels(silvers: Iterable[Silver]) -> tuple[str, ...]:
    """The labels of all stores: those of the first in their order, then what the others add."""
    return tuple(dict.fromkeys(name for silver in silvers for name in silver.label_names))


class JoinedSilver(Silver):
    """Several stores read as one. A label that a source parser does not know has probability 0 in its silver."""

    def __init__(self, silvers: Sequence[Silver]):
        if not silvers:
            raise SubdpError("there is no silver to join")
        self.folder, self.keep = silvers[0].folder, silvers[0].keep
        self.label_names = all_labels(silvers)
        self.made_from = {str(number): silver.made_from for number, silver in enumerate(silvers, 1)}
        self._silvers = silvers
        self._starts = [0, *accumulate(map(len, silvers))]
        index = {name: number for number, name in enumerate(self.label_names)}
        self._columns = [[index[name] for name in silver.label_names] for silver in silvers]

    def __getitem__(self, index: int) -> SilverPair:
        if not 0 <= index < self._starts[-1]:
            raise IndexError(index)
        number = next(number for number, end in enumerate(self._starts[1:]) if index < end)
        pair = self._silvers[number][index - self._starts[number]]
        labels = np.zeros((*pair.labels.shape[:2], len(self.label_names)), np.float16)
        labels[..., self._columns[number]] = pair.labels
        return replace(pair, labels=labels)

    def targets(self) -> Iterator[tuple[str, ...]]:
        return chain.from_iterable(silver.targets() for silver in self._silvers)


class AveragedSilver(JoinedSilver):
    """Several stores read as one, target sentence by target sentence: what all its sources say of one is averaged."""

    def __init__(self, silvers: Sequence[Silver]):
        super().__init__(silvers)
        self._of_target: dict[tuple[str, ...], list[int]] = {}
        for index, words in enumerate(super().targets()):
            self._of_target.setdefault(tuple(map(intern, words)), []).append(index)
        self._groups = list(self._of_target.values())

    def __len__(self) -> int:
        return len(self._groups)

    def __getitem__(self, index: int) -> SilverPair:
        if not 0 <= index < len(self):
            raise IndexError(index)
        first, *more = (super(AveragedSilver, self).__getitem__(number) for number in self._groups[index])
        return replace(first, more=tuple(more))

    def targets(self) -> Iterator[tuple[str, ...]]:
        return iter(self._of_target)
