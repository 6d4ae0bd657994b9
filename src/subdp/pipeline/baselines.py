"""Trees for the baselines that train on trees: hard projection (Lacroix et al. 2016) and self-training."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from subdp.corpus.treebank import Sentence
from subdp.parser import Parser
from subdp.projection.silver import Silver
from subdp.projection.soft_tree import project_tree
from subdp.support.settings import Settings


def hard_trees(silver: Silver) -> Iterator[Sentence]:
    """The source parser's best tree of each pair, carried over where both ends of an arc have a one-to-one link."""
    for pair in silver:
        yield project_tree(pair.tree(silver.inventory).best_tree(), pair.alignment, onto=pair.target)


def own_trees(parser: Parser, silver: Silver) -> Iterator[Sentence]:
    """What a parser says of the target sentences themselves, for self-training."""
    return parser.parse((Sentence.of(words) for words in silver.targets()), remember=True)


def as_silver(settings: Settings) -> Settings:
    """Settings that train on trees as on silver: such trees are as many, and no better."""
    return replace(settings, tune=settings.adapt)
