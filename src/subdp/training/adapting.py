"""Adapting a network to another language: which sentences it is trained on, which choose the epoch, and who teaches it.

Gives back what a model card says of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from subdp.corpus.treebank import Sentence
from subdp.encoder.batch import Batcher
from subdp.network.biaffine import Biaffine
from subdp.projection.silver import Silver
from subdp.projection.substructures import Inventory
from subdp.support.settings import Settings
from subdp.support.values import as_dict
from subdp.training.examples import Examples, MixedExamples, SoftExamples, TreeExamples
from subdp.training.loop import mean_loss, train

HELD_OUT = 0.1  # The share of pairs or trees that choose the epoch and are not trained on.
_ENOUGH_TREES = 100  # Of fewer, a tenth would be too small to choose an epoch by.


@dataclass(frozen=True, slots=True)
class Student:
    """A network to adapt, with the vectors that it reads and the values that it predicts."""

    network: Biaffine
    batcher: Batcher
    inventory: Inventory


def adapt_to_silver(
    student: Student,
    teacher: Student,
    silver: Silver,
    trees: Sequence[Sentence],
    settings: Settings,
    *,
    seed: int,
    held_out: float = HELD_OUT,
    folder: Path | None = None,
) -> dict[str, Any]:
    """Train on projected distributions, together with gold trees if there are any; held-out pairs choose the epoch."""
    order = np.random.default_rng(seed).permutation(len(silver)).tolist()
    apart = round(held_out * len(silver))
    examples = SoftExamples(teacher.batcher, silver, order[apart:], settings.losses)
    examples, agreement = examples.taught_by(teacher.network)
    examples = replace(examples, batcher=student.batcher)
    test = replace(examples, indices=order[:apart])
    gold = TreeExamples(student.batcher, trees, student.inventory)
    made = {
        "adapted_on": {"pairs": len(silver), "made_from": silver.made_from, **_trees_facts(trees)},
        "losses": as_dict(settings.losses),
        "agreement": agreement,
    }
    return made | _train(student, MixedExamples(examples, gold) if trees else examples, test, settings, seed, folder)


def adapt_to_trees(
    student: Student, trees: Sequence[Sentence], settings: Settings, *, seed: int, folder: Path | None = None
) -> dict[str, Any]:
    """Train on trees. A few are all trained on, for as many epochs as the settings say; of more, some choose the epoch.

    A word with an unknown head adds no loss.
    """
    order = np.random.default_rng(seed).permutation(len(trees)).tolist()
    apart = round(HELD_OUT * len(trees)) if len(trees) >= _ENOUGH_TREES else 0
    examples, test = (
        TreeExamples(student.batcher, [trees[index] for index in indices], student.inventory)
        for indices in (order[apart:], order[:apart])
    )
    return {"adapted_on": _trees_facts(trees)} | _train(student, examples, test, settings, seed, folder)


def _train(
    student: Student, examples: Examples, test: Examples, settings: Settings, seed: int, folder: Path | None
) -> dict[str, Any]:
    """Train in place; `test` examples, if there are any, choose the epoch."""
    history = train(
        student.network,
        examples,
        settings.adapt,
        seed=seed,
        held_out=(lambda current: -mean_loss(current, test)) if test.lengths else None,
        folder=folder,
        title="adapting the parser",
    )
    return {
        "seed": seed,
        "training": as_dict(settings.adapt),
        "epochs": history.epoch,
        "best_epoch": history.best_epoch,
    }


def _trees_facts(trees: Sequence[Sentence]) -> dict[str, int]:
    if not trees:
        return {}
    return {"trees": len(trees), "known_heads": sum(head >= 0 for tree in trees for head in tree.heads)}
