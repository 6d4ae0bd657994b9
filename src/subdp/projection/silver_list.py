"""Silver in memory, from any parser's trees or distributions: what `Silver.of` gives. No torch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from subdp.corpus.treebank import Sentence
from subdp.projection.gold_trees import check_trees
from subdp.projection.silver import Silver, SilverPair, Source
from subdp.projection.soft_tree import SoftTree
from subdp.projection.substructures import (
    LABELS,
    Inventory,
    find_substructure,
    inventory_of,
    merged,
    of_kind,
    shape,
)
from subdp.support.errors import SubdpError


class SilverList(Silver):
    """Silver in memory. Discrete trees become distributions only when they are asked for: those take much more room."""

    where = "silver in memory"

    def __init__(self, pairs: Sequence[Source | SilverPair], inventory: Inventory | None):
        given = [pair for pair in pairs if not isinstance(pair, SilverPair)]
        trees = [tree for tree, _, _ in given if isinstance(tree, Sentence)]
        if inventory is None:
            if len(given) < len(pairs):
                hint = "give the inventory of the silver that they come from"
                raise SubdpError("silver pairs do not name their values", where=self.where, hint=hint)
            soft = [tree.inventory for tree, _, _ in given if isinstance(tree, SoftTree)]
            inventory = merged([*([inventory_of(trees)] if trees else []), *soft])
        self.inventory, self.made_from, self._pairs = dict(inventory), {"pairs": len(pairs)}, pairs
        check_trees(trees, inventory.get(LABELS.name, ()))
        for tree, alignment, words in given:
            alignment.check(len(tree), len(words))
            if isinstance(tree, SoftTree):
                for name, values in tree.inventory.items():
                    _columns(values, inventory.get(name, values))

    def __len__(self) -> int:
        return len(self._pairs)

    def __getitem__(self, index: int) -> SilverPair:
        if not 0 <= index < len(self):
            raise IndexError(index)
        pair = self._pairs[index]
        if isinstance(pair, SilverPair):
            return pair
        tree, alignment, words = pair
        if isinstance(tree, Sentence):
            more = {name: self.inventory[name] for name in of_kind(self.inventory, "word")}
            tree = SoftTree.of(tree, self.inventory[LABELS.name], more=more)
        found = {name: _fitted(tree, name, values).astype(np.float16) for name, values in self.inventory.items()}
        return SilverPair(tree.words, tuple(words), alignment, found)

    def targets(self) -> Iterator[tuple[str, ...]]:
        return (pair.target if isinstance(pair, SilverPair) else tuple(pair[2]) for pair in self._pairs)


def _fitted(tree: SoftTree, name: str, values: tuple[str, ...]) -> npt.NDArray[np.floating]:
    """A distribution of a tree over the values asked for; without mass, and so without loss, where it has none."""
    if name not in tree.inventory:
        return np.zeros(shape(find_substructure(name).kind, len(tree), len(values)))
    known, given = tree.distributions[name], tree.inventory[name]
    if given == values:
        return known
    fitted = np.zeros((*known.shape[:-1], len(values)))
    for column, to in enumerate(_columns(given, values)):
        fitted[..., to] += known[..., column]
    return fitted


def _columns(given: Sequence[str], wanted: Sequence[str]) -> list[int]:
    """For each value its place among those wanted; a value that is not there counts without its subtype."""
    places = {value: place for place, value in enumerate(wanted)}
    for value in given:
        places.setdefault(value, places.get(value.partition(":")[0], -1))
        if places[value] < 0:
            hint = f"it knows {', '.join(wanted)}"
            raise SubdpError(f"{value!r} is not among the values of the parser", where="silver in memory", hint=hint)
    return [places[value] for value in given]
