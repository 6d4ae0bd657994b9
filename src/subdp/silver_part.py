"""A part of a silver store, or the same pairs with other links: no distribution is computed or stored again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from subdp.align import Alignment
from subdp.store import Silver, SilverPair


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
