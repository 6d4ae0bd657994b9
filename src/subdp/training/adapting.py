"""Adapting a network to another language: which sentences it is trained on, which choose the epoch, and who teaches it.

Gives back what a model card says of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from subdp.corpus.treebank import Sentence
from subdp.network.biaffine import Biaffine
from subdp.projection.silver import Silver
from subdp.projection.substructures import ARCS, LABELS, Inventory
from subdp.support.errors import SubdpError
from subdp.support.settings import LossConfig, Settings, TrainConfig
from subdp.support.values import as_dict
from subdp.training.examples import Examples, SoftExamples, TreeExamples
from subdp.training.loop import mean_loss
from subdp.training.null_mass import beyond_half
from subdp.training.step import trained_parts
from subdp.training.student import Student

HELD_OUT = 0.1  # The share of pairs or trees that choose the epoch and are not trained on.
_ENOUGH_TREES = 100  # Of fewer, a tenth would be too small to choose an epoch by.
_PRIOR = 60  # n₀: corrections that count as much as what the parser knew before.
_LITTLE_TRUST = 0.1  # Less is hardly more than chance.
_PARTS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)  # Of the largest share of what silver changed that may be kept.


def check_silver(silver: Silver, inventory: Inventory) -> None:
    """Raise unless a parser with this inventory can learn from the silver."""
    if dict(silver.inventory) != dict(inventory):
        hint = "make it with this parser, or with Silver.of(pairs, parser.inventory)"
        raise SubdpError("the silver has other labels than this parser", where=silver.where, hint=hint)
    if len(silver) == 0:
        raise SubdpError("there are no sentence pairs to learn from", where=silver.where)


def share_of_other(source: Student, other: Biaffine, silver: Silver, losses: LossConfig) -> float:
    """The share of another parser, made from the source parser, in the mix of both that adaptation starts from.

    The source parser counts as much as it is trusted, τ; the other as much as that is trusted, τ', in what is left:
    (1 − τ) · τ'. What their sum lacks of some little trust counts half for each, so that it is not a few words that
    decide between two parsers neither of which is trusted. A parser is trusted by how often its heads are those that
    projection chose, in some of the pairs.
    """
    order = np.random.default_rng(0).permutation(len(silver))
    examples = SoftExamples(source.batcher, silver, order, losses)
    found = [examples.agreeing(network) for network in (source.network, other)]
    own, others = (float(beyond_half(same.sum() / max(1, len(same)))) for same in found)
    left = (1 - own) * others
    lacking = max(0.0, _LITTLE_TRUST - own - left)
    return (left + lacking / 2) / (own + left + lacking)


def adapt_to_silver(
    student: Student,
    teacher: Student,
    silver: Silver,
    settings: Settings,
    *,
    fingerprint: str,
    seed: int,
    multilingual: float = 0.0,
    held_out: float = HELD_OUT,
    folder: Path | None = None,
) -> dict[str, Any]:
    """Train on projected distributions; held-out pairs choose the epoch. `fingerprint` is that of the teacher, which
    the student is a copy of, and `multilingual` the share in it of a parser that has learnt from many languages.

    Links are noisy, and few pairs are too few for the noise to average out. So after n pairs the weights go back part
    of the way, θ ← θ₀ + s · (θ − θ₀). The share s is at most n / (n + n₀), where n₀ is the setting `prior_pairs`, and
    less where held-out pairs speak for less (`_go_back_by`). The scorers of labels and tags stay as they are: those are
    what a parser of another language knows least about.
    """
    order = np.random.default_rng(seed).permutation(len(silver))
    apart = round(held_out * len(silver))
    examples = SoftExamples(teacher.batcher, silver, order[apart:], settings.losses, start=fingerprint)
    examples, agreement = examples.taught_by(teacher.network, multilingual > 0)
    both = replace(examples, indices=order).worked_out(student.network.device)
    examples, test = (replace(both, indices=part, batcher=student.batcher) for part in (order[apart:], order[:apart]))
    made = {
        "adapted_on": {"pairs": len(silver), "made_from": silver.made_from},
        "losses": as_dict(settings.losses),
        "agreement": agreement,
    }
    before = _weights(student)
    made |= _train(student, examples, test, settings.adapt, seed, folder)
    if settings.losses.prior_pairs:
        most = len(silver) / (len(silver) + settings.losses.prior_pairs)
        made["kept"] = _go_back_by(student, before, most, test, cautious=multilingual < 0.5)
    return made


def count_corrections(drafts: Iterable[Sentence], trees: Iterable[Sentence]) -> int:
    """The number of words whose head or label is another in the tree than in the draft; unknown heads do not count."""
    count = 0
    for draft, tree in zip(drafts, trees, strict=True):
        before, after = (list(zip(one.heads, LABELS.read(one), strict=True)) for one in (draft, tree))
        count += sum(new[0] >= 0 and new != old for old, new in zip(before, after, strict=True))
    return count


def adapt_to_trees(
    student: Student,
    trees: Sequence[Sentence],
    config: TrainConfig,
    *,
    corrections: int,
    seed: int,
    folder: Path | None = None,
) -> dict[str, Any]:
    """Train on trees; of many, some choose the epoch. A word with an unknown head adds no loss.

    A few are all trained on, for as many epochs as the settings say. A handful of sentences is learnt by heart, so the
    weights then go back as after silver (`adapt_to_silver`), where n is the number of `corrections`, words that the
    parser had wrong.
    """
    order = np.random.default_rng(seed).permutation(len(trees)).tolist()
    apart = round(HELD_OUT * len(trees)) if len(trees) >= _ENOUGH_TREES else 0
    examples, test = (
        TreeExamples(student.batcher, [trees[index] for index in indices], student.inventory)
        for indices in (order[apart:], order[:apart])
    )
    before = _weights(student)
    made = {"adapted_on": _trees_facts(trees)} | _train(student, examples, test, config, seed, folder)
    if not apart:
        _go_back(student, before, _weights(student), corrections / (corrections + _PRIOR))
    return made


def _weights(student: Student) -> dict[str, Tensor]:
    """A copy of all weights that are trained."""
    state = trained_parts(student.network, student.batcher).state_dict()
    return {name: tensor.clone() for name, tensor in state.items()}


@torch.no_grad()
def _go_back(student: Student, before: Mapping[str, Tensor], after: Mapping[str, Tensor], share: float) -> None:
    """Keep this share of what training changed, and all of it in the scorers of labels and tags."""
    free = [f".scorers.{name}." for name in student.inventory if name != ARCS.name]
    for name, tensor in trained_parts(student.network, student.batcher).state_dict().items():
        if not any(one in name for one in free):
            tensor.copy_(before[name].lerp(after[name], share))


def _go_back_by(
    student: Student, before: Mapping[str, Tensor], most: float, test: SoftExamples, *, cautious: bool
) -> float:
    """Keep a share of what training changed, `most` or less, as held-out pairs have it; returns the share.

    It is `most` if more heads agree with projected ones then than before training, by more than one standard error: of
    c words that agree before or after alone, √c. Otherwise it is one after which no fewer heads agree, by more than one
    standard error, than after the best: the smallest if `cautious`, as from the source parser or from what is mostly
    that, for then there was little to learn. A start that has learnt from projection agrees so well that little more
    can be expected even where much is learnt: from there it is the largest.
    """
    after, kept = _weights(student), most

    @cache
    def agreeing(share: float) -> Tensor:
        _go_back(student, before, after, share)
        return test.agreeing(student.network)

    if test.lengths and not _more(agreeing(most), agreeing(0.0)):
        found = {share: agreeing(share) for share in (most * part for part in _PARTS)}
        best = max(found.values(), key=lambda same: int(same.sum()))
        kept = (min if cautious else max)(share for share, same in found.items() if not _more(best, same))
    _go_back(student, before, after, kept)
    return kept


def _more(some: Tensor, others: Tensor) -> bool:
    """Whether more words agree, by more than one standard error. Shape: [K] both, the same words."""
    return bool(some.sum() - others.sum() > (some != others).sum().sqrt())


def _train(
    student: Student, examples: Examples, test: Examples, config: TrainConfig, seed: int, folder: Path | None
) -> dict[str, Any]:
    """Train in place; `test` examples, if there are any, choose the epoch."""
    return student.fit(
        examples,
        config,
        seed=seed,
        held_out=(lambda current: -mean_loss(current, test)) if test.lengths else None,
        folder=folder,
        title="adapting the parser",
    )


def _trees_facts(trees: Sequence[Sentence]) -> dict[str, int]:
    return {"trees": len(trees), "known_heads": sum(head >= 0 for tree in trees for head in tree.heads)}
