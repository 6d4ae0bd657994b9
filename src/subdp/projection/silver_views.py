"""Views of silver: some of its pairs, or several read as one. Nothing is computed or stored again."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import accumulate, chain
from sys import intern

import numpy as np

from subdp.alignment.links import Alignment
from subdp.projection.silver import Half, Silver, SilverPair
from subdp.projection.substructures import Inventory, merged
from subdp.support.errors import SubdpError


class SilverPart(Silver):
    """The pairs with these indices, with alignments from `links`, which has one for every pair of the silver."""

    def __init__(self, silver: Silver, indices: Sequence[int], links: Sequence[Alignment]):
        self.inventory, self.where = silver.inventory, silver.where
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


class JoinedSilver(Silver):
    """Several sets of silver read as one. A value that a source parser does not know has probability 0."""

    def __init__(self, silvers: Sequence[Silver], inventory: Inventory | None = None):
        if not silvers:
            raise SubdpError("there is no silver to join")
        self.inventory = merged([*([] if inventory is None else [inventory]), *(one.inventory for one in silvers)])
        self.where = silvers[0].where
        self.made_from = {str(number): silver.made_from for number, silver in enumerate(silvers, 1)}
        self._silvers = silvers
        self._starts = [0, *accumulate(map(len, silvers))]
        index = {name: {value: at for at, value in enumerate(values)} for name, values in self.inventory.items()}
        self._columns = [
            {name: [index[name][value] for value in values] for name, values in silver.inventory.items()}
            for silver in silvers
        ]

    def __len__(self) -> int:
        return self._starts[-1]

    def __getitem__(self, index: int) -> SilverPair:
        if not 0 <= index < self._starts[-1]:
            raise IndexError(index)
        number = bisect_right(self._starts, index) - 1
        pair, columns = self._silvers[number][index - self._starts[number]], self._columns[number]
        return self._wide(pair, columns)

    def _wide(self, pair: SilverPair, columns: dict[str, list[int]]) -> SilverPair:
        """A pair, and its other sources, with the values of all."""
        distributions = {name: self._widened(pair, name, columns) for name in self.inventory}
        return replace(pair, distributions=distributions, more=tuple(self._wide(one, columns) for one in pair.more))

    def targets(self) -> Iterator[tuple[str, ...]]:
        return chain.from_iterable(silver.targets() for silver in self._silvers)

    @property
    def tokenizer(self) -> str | None:
        return next((silver.tokenizer for silver in self._silvers if silver.tokenizer is not None), None)

    def _widened(self, pair: SilverPair, name: str, columns: dict[str, list[int]]) -> Half:
        """One source's distribution, extended to the values of all sources; arcs are unchanged."""
        if not self.inventory[name]:
            return pair.distributions[name]
        if name not in columns:  # The source parser does not predict this: no mass, so no loss.
            return np.zeros((len(pair.source) + 1, len(self.inventory[name])), np.float16)
        known = pair.distributions[name]
        wide = np.zeros((*known.shape[:-1], len(self.inventory[name])), np.float16)
        wide[..., columns[name]] = known
        return wide


class AveragedSilver(JoinedSilver):
    """Several sets of silver read as one, by target sentence: the distributions from all its sources are averaged."""

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
