"""The baseline of hard projection (Lacroix et al. 2016): learn only the arcs whose two ends have a one-to-one link."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from subdp.config import Settings, as_dict
from subdp.examples import TreeExamples
from subdp.parser import Parser, mean_loss
from subdp.softtree import project_tree
from subdp.store import Silver
from subdp.train import train
from subdp.treebank import Sentence


def project_trees(silver: Silver) -> Iterator[Sentence]:
    """The source parser's best tree of each pair, carried onto the translation as far as links allow."""
    for pair in silver:
        yield project_tree(pair.tree(silver.label_names).best_tree(), pair.alignment, onto=pair.target)


def adapt_hard(
    parser: Parser,
    silver: Silver,
    *,
    settings: Settings | None = None,
    seed: int = 1,
    held_out: float = 0.1,
    folder: Path | None = None,
) -> Parser:
    """Train a copy of a parser on hard projections, in all else as `Parser.adapt`; unknown heads give no loss."""
    settings = Settings.resolve() if settings is None else settings
    trees = list(project_trees(silver))
    parser.features.add(tree.words for tree in trees)
    order = np.random.default_rng(seed).permutation(len(trees)).tolist()
    apart = round(held_out * len(trees))
    ids = {name: number for number, name in enumerate(parser.label_names)}
    examples = TreeExamples(parser.features, [trees[index] for index in order[apart:]], ids)
    test = TreeExamples(parser.features, [trees[index] for index in order[:apart]], ids)
    network = copy.deepcopy(parser.network)
    history = train(
        network,
        examples,
        settings.adapt,
        seed=seed,
        held_out=(lambda current: -mean_loss(current, test)) if apart else None,
        folder=folder,
        title="adapting by hard projection",
    )
    known = sum(head >= 0 for tree in trees for head in tree.heads)
    made = {
        "adapted_on": {"pairs": len(silver), "known_heads": known, "made_from": silver.made_from},
        "adapted_from": parser.about,
        "method": "hard projection",
        "seed": seed,
        "training": as_dict(settings.adapt),
        "epochs": history.epoch,
        "best_epoch": history.best_epoch,
    }
    return replace(parser, network=network, about=made)
