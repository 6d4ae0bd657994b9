"""How well projection went, without gold trees: how much mass reached the target words, and where it did not.

A run's `report.json` holds this, along with what the filters dropped. Numpy only.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from subdp.projection.silver import SilverPair, SilverStore
from subdp.projection.soft_tree import project
from subdp.projection.substructures import Inventory, of_kind
from subdp.support.engine import Engine
from subdp.support.settings import ManyToOne

_WORST = 10


@dataclass(frozen=True, slots=True)
class PairQuality:
    """One projected sentence, everything summed over its words; `linked` counts words with an alignment link.

    `kept` is the mass that did not go to NULL, `self_loops` the part of it on arcs from a word to itself, `entropy` in
    bits; `layers` has the mass that is kept of each substructure of words.
    """

    source: str
    target: str
    words: int
    linked: int
    kept: float
    self_loops: float
    entropy: float
    layers: Mapping[str, float]

    @property
    def useful(self) -> float:
        """The mass on possible heads, self-loops excluded, as a share of the words."""
        return (self.kept - self.self_loops) / self.words


def _quality(pair: SilverPair, inventory: Inventory, many_to_one: ManyToOne) -> PairQuality:
    tree = project(pair.tree(inventory), pair.alignment, onto=pair.target, many_to_one=many_to_one)
    return PairQuality(
        source=" ".join(pair.source),
        target=" ".join(pair.target),
        words=len(tree),
        linked=sum(tree.linked),
        kept=float(tree.coverage.sum()),
        self_loops=tree.self_loop_mass,
        entropy=float(tree.entropy.sum()),
        layers={name: float(tree.distributions[name].sum()) for name in of_kind(inventory, "word")},
    )


@dataclass(slots=True)
class Summary:
    """Sums over all pairs that were added, and the pairs with the least useful mass."""

    pairs: int = 0
    words: int = 0
    linked: int = 0
    kept: float = 0.0
    self_loops: float = 0.0
    entropy: float = 0.0
    layers: dict[str, float] = field(default_factory=dict)
    worst: list[PairQuality] = field(default_factory=list)

    def add(self, pair: PairQuality) -> None:
        """Count one pair."""
        sums = (pair.words, pair.linked, pair.kept, pair.self_loops, pair.entropy)
        self.join(Summary(1, *sums, dict(pair.layers), [pair]))

    def join(self, other: Summary) -> None:
        """Count all pairs of another summary."""
        for name in ("pairs", "words", "linked", "kept", "self_loops", "entropy"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for name, mass in other.layers.items():
            self.layers[name] = self.layers.get(name, 0.0) + mass
        for pair in other.worst:
            insort(self.worst, pair, key=lambda one: one.useful)
        del self.worst[_WORST:]

    def as_dict(self) -> dict[str, Any]:
        """Means over all target words, and the sentences with the least useful mass."""
        return {
            "pairs": self.pairs,
            "target_words": self.words,
            "linked": self.linked / self.words,
            "coverage": self.kept / self.words,
            "layers": {name: {"coverage": mass / self.words} for name, mass in self.layers.items()},
            "self_loop_mass": self.self_loops / self.words,
            "entropy_bits": self.entropy / self.words,
            "worst": [
                {
                    "source": pair.source,
                    "target": pair.target,
                    "coverage": pair.kept / pair.words,
                    "self_loop_mass": pair.self_loops / pair.words,
                    "entropy_bits": pair.entropy / pair.words,
                }
                for pair in self.worst
            ],
        }


@dataclass(frozen=True, slots=True)
class QualityUnit:
    """The summary of some pairs of silver, projected as training will project them (`LossConfig`)."""

    silver: SilverStore
    many_to_one: ManyToOne

    def __call__(self, pairs: range) -> Summary:
        found = Summary()
        for number in pairs:
            found.add(_quality(self.silver[number], self.silver.inventory, self.many_to_one))
        return found


def measure(silver: SilverStore, many_to_one: ManyToOne, engine: Engine) -> Summary:
    """The summary of a store of silver; a shard of it is a unit of work."""
    found = Summary()
    for part in engine.map(QualityUnit(silver, many_to_one), silver.units):
        found.join(part)
    return found
