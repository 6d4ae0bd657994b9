"""The losses: the paper's formulas as plain sums are the oracle, and nothing makes them infinite."""

from __future__ import annotations

import math
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from torch import Tensor

from subdp.network.scorers import HeadScores, PairScores, Scored, WordScores
from subdp.projection.substructures import SUBSTRUCTURES
from subdp.support.settings import LOSSES, LossConfig
from subdp.training.losses import (
    Projected,
    mean_of_sources,
    project_batch,
    soft_loss,
    soften,
    tree_loss,
    without_self_loops,
)
from tests.grammar import FIRST

PAPER = LOSSES["paper"]


class Problem(NamedTuple):
    """Padded source distributions and alignments, what a target network says, and the lengths of both sides."""

    source: dict[str, Tensor]
    alignment: Tensor
    scored: Scored
    sizes: tuple[tuple[int, int], ...]


def random_problem(seed: int, *, sizes: tuple[tuple[int, int], ...] = ((3, 4), (5, 2)), labels: int = 3) -> Problem:
    random = np.random.default_rng(seed)
    source, target = max(s for s, _ in sizes) + 1, max(t for _, t in sizes) + 1
    arcs, alignment = np.zeros((len(sizes), source, source)), np.zeros((len(sizes), source, target))
    label = np.full((len(sizes), source, source, labels), 1 / labels)
    mask = np.zeros((len(sizes), target), bool)
    for row, (s, t) in enumerate(sizes):
        arcs[row, 1 : s + 1, : s + 1] = random.dirichlet(np.ones(s + 1), s)
        label[row, : s + 1, : s + 1] = random.dirichlet(np.ones(labels), (s + 1, s + 1))
        alignment[row, 1 : s + 1, 1 : t + 1] = random.random((s, t)) < 0.4
        alignment[row, 0, 0] = 1
        mask[row, 1 : t + 1] = True
    scores = torch.tensor(random.normal(size=(len(sizes), target, target)))
    inside = torch.tensor(mask) | (torch.arange(target) == 0)
    log_arcs = scores.masked_fill(~inside[:, None, :], -1e30).log_softmax(-1)
    vectors = [torch.tensor(random.normal(size=(len(sizes), target, 4))) for _ in range(2)]
    pairs = PairScores(vectors[0], vectors[1], torch.tensor(random.normal(size=(labels, 4, 4))))
    scored = Scored(torch.tensor(mask), {"arcs": HeadScores(log_arcs), "labels": pairs})
    return Problem({"arcs": torch.tensor(arcs), "labels": torch.tensor(label)}, torch.tensor(alignment), scored, sizes)


@pytest.mark.parametrize("seed", range(5))
def test_the_paper_preset_is_the_papers_formulas_to_the_letter(seed: int) -> None:
    source, alignment, scored, sizes = random_problem(seed)
    projected = project_batch(source, alignment, PAPER)
    labels, log_labels = projected.distributions["labels"], scored.labels.all()
    expected = 0.0
    for row, (_, t) in enumerate(sizes):
        for p, q in product(range(1, t + 1), range(t + 1)):
            expected -= float(projected.arcs[row, p, q] * scored.arcs[row, p, q])
            for label in range(3):
                expected -= float(labels[row, p, q, label] * log_labels[row, p, q, label])
    assert soft_loss(scored, projected, PAPER).item() == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("weight", ["arc", "best"])
@pytest.mark.parametrize("pairs", ["all", "aligned"])
def test_weighted_label_losses_equal_their_plain_sums(weight: Any, pairs: Any) -> None:
    source, alignment, scored, sizes = random_problem(7)
    config = LossConfig(label_weight=weight, label_pairs=pairs, completion="none")
    projected = project_batch(source, alignment, config)
    labels, log_labels = projected.distributions["labels"], scored.labels.all()
    expected = 0.0
    for row, (_, t) in enumerate(sizes):
        for p, q in product(range(1, t + 1), range(t + 1)):
            mass = float(projected.arcs[row, p, q])
            expected -= mass * float(scored.arcs[row, p, q])
            if weight == "best" and q != int(projected.arcs[row, p].argmax()):
                continue
            if pairs == "aligned" and not (projected.linked[row, p] and projected.linked[row, q]):
                continue
            expected -= mass * float((labels[row, p, q] * log_labels[row, p, q]).sum())
    assert soft_loss(scored, projected, config).item() == pytest.approx(expected, rel=1e-9)


def test_the_loss_of_a_substructure_of_words_is_its_plain_sum(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SUBSTRUCTURES, "first", FIRST)
    source, alignment, scored, sizes = random_problem(2)
    random = np.random.default_rng(0)
    tags = torch.tensor(random.dirichlet(np.ones(2), source["arcs"].shape[:2]))
    logs = torch.tensor(random.normal(size=(*scored.mask.shape, 2))).log_softmax(-1)
    both = Scored(scored.mask, {**scored.parts, "first": WordScores(logs)})
    without = project_batch(source, alignment, PAPER)
    projected = project_batch({**source, "first": tags}, alignment, PAPER)
    expected = soft_loss(scored, without, PAPER).item()
    for row, (_, t) in enumerate(sizes):
        for p, k in product(range(1, t + 1), range(2)):
            expected -= float(projected.distributions["first"][row, p, k] * logs[row, p, k])
    assert soft_loss(both, projected, PAPER).item() == pytest.approx(expected, rel=1e-9)


def test_tree_loss_is_the_cross_entropy_of_known_heads_and_labels() -> None:
    scored = random_problem(3).scored
    log_labels = scored.labels.all()
    heads = torch.tensor([[-1, 0, 1, -1, 1], [-1, 2, 0, -1, -1]])
    labels = torch.tensor([[-1, 2, 0, 1, -1], [-1, 1, 2, -1, -1]])
    words = [(0, 1, 0, 2), (0, 2, 1, 0), (0, 4, 1, -1), (1, 1, 2, 1), (1, 2, 0, 2)]
    expected = 0.0
    for row, word, head, label in words:
        expected -= float(scored.arcs[row, word, head])
        if label >= 0:
            expected -= float(log_labels[row, word, head, label])
    assert tree_loss(scored, {"arcs": heads, "labels": labels}).item() == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("losses", [*LOSSES.values(), LossConfig(label_weight="best", self_loops="renormalise")])
@pytest.mark.parametrize("case", ["self-loops", "no link", "one word", "probability 0"])
def test_loss_and_gradients_are_always_finite(losses: LossConfig, case: str) -> None:
    sizes = ((1, 1), (2, 2)) if case == "one word" else ((3, 3), (3, 3))
    problem = random_problem(1, sizes=sizes)
    alignment, mask = problem.alignment.float(), problem.scored.mask
    if case == "self-loops":
        alignment[:, 1:, 1:] = 1
    if case == "no link":
        alignment[:, 1:, 1:] = 0
    scores = torch.zeros(len(alignment), mask.shape[1], mask.shape[1])
    if case == "probability 0":
        scores[:, :, 1] = 1e4
    scores.requires_grad_()
    weight = torch.zeros(3, 4, 4, requires_grad=True)
    dependents, heads = torch.ones(2, len(alignment), mask.shape[1], 4)
    arcs = HeadScores(scores.log_softmax(-1))
    scored = Scored(mask, {"arcs": arcs, "labels": PairScores(dependents, heads, weight)})
    projected = project_batch({name: tensor.float() for name, tensor in problem.source.items()}, alignment, losses)
    loss = soft_loss(scored, projected, losses)
    loss.backward()  # type: ignore[no-untyped-call]
    assert math.isfinite(loss.item())
    for tensor in (scores, weight):
        assert tensor.grad is not None
        assert bool(tensor.grad.isfinite().all())


FIGURE_1 = {
    "arcs": torch.tensor([[[0.0, 0, 0], [0, 0, 1], [1, 0, 0]]]),
    "labels": torch.full((1, 3, 3, 1), 1.0),
}
BOTH_TO_ONE = torch.tensor([[[1.0, 0], [0, 1], [0, 1]]])


def test_half_of_a_word_on_a_self_loop_as_in_figure_1_gives_a_finite_loss() -> None:
    projected = project_batch(FIGURE_1, BOTH_TO_ONE, PAPER)
    torch.testing.assert_close(projected.arcs[0, 1], torch.tensor([0.5, 0.5]))
    arcs = HeadScores(torch.tensor([[[0.0, 0.0], [2.0, 1.0]]]).log_softmax(-1))
    ones = torch.ones(1, 2, 1)
    scored = Scored(
        torch.tensor([[False, True]]), {"arcs": arcs, "labels": PairScores(ones, ones, torch.ones(1, 1, 1))}
    )
    expected = -0.5 * float(arcs.log_probabilities[0, 1].sum())
    assert soft_loss(scored, projected, PAPER).item() == pytest.approx(expected)


def test_a_word_for_two_words_stands_for_their_head_unless_the_papers_losses_are_wanted() -> None:
    projected = project_batch(FIGURE_1, BOTH_TO_ONE, LossConfig())
    torch.testing.assert_close(projected.arcs[0, 1], torch.tensor([1.0, 0.0]), atol=2e-3, rtol=0)


def test_self_loops_that_are_dropped_are_not_null_mass() -> None:
    dropped = project_batch(FIGURE_1, BOTH_TO_ONE, LossConfig(self_loops="drop", many_to_one="mean"))
    torch.testing.assert_close(dropped.arcs[0, 1], torch.tensor([0.5, 0.0]))
    assert dropped.null[0, 1].item() == 0
    unlinked = project_batch(FIGURE_1, BOTH_TO_ONE * torch.tensor([[1.0], [1.0], [0.0]]), PAPER)
    assert unlinked.null[0, 1].item() == 1, "the head has no link"


def test_rules_for_self_loops() -> None:
    arcs = torch.tensor([[[0.0, 0, 0], [0.2, 0.4, 0.2], [0, 0, 0.5]]])
    assert without_self_loops(arcs, "keep") is arcs
    torch.testing.assert_close(without_self_loops(arcs, "drop")[0, 1], torch.tensor([0.2, 0, 0.2]))
    moved = without_self_loops(arcs, "renormalise")
    torch.testing.assert_close(moved[0, 1], torch.tensor([0.4, 0, 0.4]))
    torch.testing.assert_close(moved[0, 2], torch.zeros(3))


def test_temperature_flattens_without_changing_the_mass() -> None:
    probabilities = torch.tensor([[0.9, 0.1, 0.0], [0.0, 0.0, 0.0]])
    softer = soften(probabilities, 2.0)
    torch.testing.assert_close(softer.sum(-1), probabilities.sum(-1))
    assert 0.5 < softer[0, 0] < 0.9
    assert softer[0, 2] == 0
    assert soften(probabilities, 1.0) is probabilities


def test_the_mean_over_sources_weighs_labels_by_the_arcs_they_come_with() -> None:
    arcs = torch.tensor([[[0.0, 0.0], [0.6, 0.0]], [[0.0, 0.0], [0.2, 0.0]], [[0.0, 0.0], [0.9, 0.0]]])
    labels = torch.full((3, 2, 2, 2), 0.5)
    labels[0, 1, 0], labels[1, 1, 0] = torch.tensor([1.0, 0.0]), torch.tensor([0.0, 1.0])
    linked = torch.tensor([[True, True], [True, False], [True, False]])
    projected = Projected({"arcs": arcs, "labels": labels}, linked, 1 - arcs.sum(-1))
    mean = mean_of_sources(projected, torch.tensor([0, 0, 1]), 2)
    means = mean.distributions["labels"]
    assert mean.arcs[:, 1, 0].tolist() == pytest.approx([0.4, 0.9])
    assert means[0, 1, 0].tolist() == pytest.approx([0.75, 0.25], abs=1e-5)
    assert means[0, 1, 1].tolist() == pytest.approx([0.5, 0.5])
    assert mean.null[:, 1].tolist() == pytest.approx([0.6, 0.1])
    assert mean.linked.tolist() == [[True, True], [True, False]]
