"""How well projection went, without gold trees: how much mass reached the target words, and where it did not.

A run's `report.json` holds this, along with what the filters dropped. Numpy only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from subdp.projection.silver import Silver
from subdp.projection.soft_tree import project
from subdp.projection.substructures import of_kind

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


def pair_qualities(silver: Silver) -> Iterable[PairQuality]:
    """The quality of every pair of a store, as a stream."""
    for pair in silver:
        tree = project(pair.tree(silver.inventory), pair.alignment, onto=pair.target)
        yield PairQuality(
            source=" ".join(pair.source),
            target=" ".join(pair.target),
            words=len(tree),
            linked=sum(tree.linked),
            kept=float(tree.coverage.sum()),
            self_loops=tree.self_loop_mass,
            entropy=float(tree.entropy.sum()),
            layers={name: float(tree.distributions[name].sum()) for name in of_kind(silver.inventory, "word")},
        )


def summary(pairs: Sequence[PairQuality]) -> dict[str, Any]:
    """Means over all target words, and the sentences with the least useful mass."""
    words = sum(pair.words for pair in pairs)
    worst = sorted(pairs, key=lambda pair: pair.useful)[:_WORST]
    return {
        "pairs": len(pairs),
        "target_words": words,
        "linked": sum(pair.linked for pair in pairs) / words,
        "coverage": sum(pair.kept for pair in pairs) / words,
        "layers": {
            name: {"coverage": sum(pair.layers.get(name, 0.0) for pair in pairs) / words}
            for name in dict.fromkeys(name for pair in pairs for name in pair.layers)
        },
        "self_loop_mass": sum(pair.self_loops for pair in pairs) / words,
        "entropy_bits": sum(pair.entropy for pair in pairs) / words,
        "worst": [
            {
                "source": pair.source,
                "target": pair.target,
                "coverage": pair.kept / pair.words,
                "self_loop_mass": pair.self_loops / pair.words,
                "entropy_bits": pair.entropy / pair.words,
            }
            for pair in worst
        ],
    }
