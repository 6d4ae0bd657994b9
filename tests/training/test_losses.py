"""The losses: the paper's formulas as plain sums are the oracle, and nothing makes them infinite."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from subdp.support.settings import LOSSES, LossConfig
from subdp.training.losses import (
    Projected,
    complete,
    mean_of_sources,
    project_batch,
    soft_loss,
    soften,
    tree_loss,
    without_self_loops,
)

PAPER = LOSSES["paper"]


def random_problem(seed: int, *, sizes: tuple[tuple[int, int], ...] = ((3, 4), (5, 2)), labels: int = 3) -> Any:
    """Padded source distributions, alignments, and a target network's log probabilities with their mask."""
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
    log_labels = torch.tensor(random.normal(size=(len(sizes), target, target, labels))).log_softmax(-1)
    tensors = [torch.tensor(array) for array in (arcs, label, alignment)]
    return tensors, log_arcs, log_labels, torch.tensor(mask), sizes


@pytest.mark.parametrize("seed", range(5))
def test_the_paper_preset_is_the_papers_formulas_to_the_letter(seed: int) -> None:
    tensors, log_arcs, log_labels, mask, sizes = random_problem(seed)
    projected = project_batch(tensors[0], tensors[1], tensors[2], PAPER)
    expected = 0.0
    for row, (_, t) in enumerate(sizes):
        for p, q in product(range(1, t + 1), range(t + 1)):
            expected -= float(projected.arcs[row, p, q] * log_arcs[row, p, q])
            for label in range(3):
                expected -= float(projected.labels[row, p, q, label] * log_labels[row, p, q, label])
    assert soft_loss(log_arcs, log_labels, projected, mask, PAPER).item() == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("weight", ["arc", "best"])
@pytest.mark.parametrize("pairs", ["all", "aligned"])
def test_weighted_label_losses_equal_their_plain_sums(weight: Any, pairs: Any) -> None:
    tensors, log_arcs, log_labels, mask, sizes = random_problem(7)
    config = LossConfig(label_weight=weight, label_pairs=pairs, completion="none")
    projected = project_batch(tensors[0], tensors[1], tensors[2], config)
    expected = 0.0
    for row, (_, t) in enumerate(sizes):
        for p, q in product(range(1, t + 1), range(t + 1)):
            mass = float(projected.arcs[row, p, q])
            expected -= mass * float(log_arcs[row, p, q])
            if weight == "best" and q != int(projected.arcs[row, p].argmax()):
                continue
            if pairs == "aligned" and not (projected.linked[row, p] and projected.linked[row, q]):
                continue
            expected -= mass * float((projected.labels[row, p, q] * log_labels[row, p, q]).sum())
    assert soft_loss(log_arcs, log_labels, projected, mask, config).item() == pytest.approx(expected, rel=1e-9)


def test_tree_loss_is_the_cross_entropy_of_known_heads_and_labels() -> None:
    _, log_arcs, log_labels, mask, _ = random_problem(3)
    heads = torch.tensor([[-1, 0, 1, -1, 1], [-1, 2, 0, -1, -1]])
    labels = torch.tensor([[-1, 2, 0, 1, -1], [-1, 1, 2, -1, -1]])
    at_heads = log_labels.gather(2, heads.clamp(min=0)[..., None, None].expand(-1, -1, 1, 3)).squeeze(2)
    words = [(0, 1, 0, 2), (0, 2, 1, 0), (0, 4, 1, -1), (1, 1, 2, 1), (1, 2, 0, 2)]
    expected = 0.0
    for row, word, head, label in words:
        expected -= float(log_arcs[row, word, head])
        if label >= 0:
            expected -= float(log_labels[row, word, head, label])
    assert tree_loss(log_arcs, at_heads, heads, labels, mask).item() == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("losses", [*LOSSES.values(), LossConfig(label_weight="best", self_loops="renormalise")])
@pytest.mark.parametrize("case", ["self-loops", "no link", "one word", "probability 0"])
def test_loss_and_gradients_are_always_finite(losses: LossConfig, case: str) -> None:
    sizes = ((1, 1), (2, 2)) if case == "one word" else ((3, 3), (3, 3))
    tensors, _, _, mask, _ = random_problem(1, sizes=sizes)
    if case == "self-loops":
        tensors[2][:, 1:, 1:] = 1
    if case == "no link":
        tensors[2][:, 1:, 1:] = 0
    scores = torch.zeros(tensors[2].shape[0], mask.shape[1], mask.shape[1])
    if case == "probability 0":
        scores[:, :, 1] = 1e4
    scores.requires_grad_()
    labels = torch.zeros(*scores.shape, 3, requires_grad=True)
    arcs, source_labels, alignment = (tensor.float() for tensor in tensors)
    projected = project_batch(arcs, source_labels, alignment, losses)
    loss = soft_loss(scores.log_softmax(-1), labels.log_softmax(-1), projected, mask, losses)
    loss.backward()  # type: ignore[no-untyped-call]
    assert math.isfinite(loss.item())
    for tensor in (scores, labels):
        assert tensor.grad is not None
        assert bool(tensor.grad.isfinite().all())


def test_figure_1_has_a_finite_loss_because_training_keeps_self_loops() -> None:
    arcs = torch.tensor([[[0.0, 0, 0], [0, 0, 1], [1, 0, 0]]])
    labels = torch.full((1, 3, 3, 1), 1.0)
    alignment = torch.tensor([[[1.0, 0], [0, 1], [0, 1]]])
    projected = project_batch(arcs, labels, alignment, PAPER)
    torch.testing.assert_close(projected.arcs[0, 1], torch.tensor([0.5, 0.5]))
    dropped = project_batch(arcs, labels, alignment, LossConfig(self_loops="drop"))
    torch.testing.assert_close(dropped.arcs[0, 1], torch.tensor([0.5, 0.0]))


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


def _projected(arcs: Tensor, labels: Tensor) -> Projected:
    return Projected(arcs, labels, torch.ones(arcs.shape[:2], dtype=torch.bool))


def test_completion_gives_the_missing_mass_to_the_teacher_and_no_more() -> None:
    arcs = torch.tensor([[[0.0, 0, 0], [0.25, 0, 0.5], [0, 0, 0]]])
    labels = torch.tensor([1.0, 0.0]).expand(1, 3, 3, 2)
    own = torch.tensor([[[1.0, 0, 0], [0.0, 0, 1.0], [0.5, 0.5, 0]]])
    own_labels = torch.tensor([0.0, 1.0]).expand(1, 3, 3, 2)
    full = complete(_projected(arcs, labels), own, own_labels, torch.ones(1, 3))
    torch.testing.assert_close(full.arcs[0, 1:], torch.tensor([[0.25, 0, 0.75], [0.5, 0.5, 0]]))
    torch.testing.assert_close(full.labels[0, 1, 2], torch.tensor([2 / 3, 1 / 3]))
    torch.testing.assert_close(full.labels[0, 2, 0], torch.tensor([0.0, 1.0]))
    half = complete(_projected(arcs, labels), own, own_labels, torch.full((1, 3), 0.5))
    torch.testing.assert_close(half.arcs[0, 2], torch.tensor([0.25, 0.25, 0]))
    none = complete(_projected(arcs, labels), own, own_labels, torch.zeros(1, 3))
    torch.testing.assert_close(none.arcs, arcs)


def test_the_mean_over_sources_weighs_labels_by_the_arcs_they_come_with() -> None:
    arcs = torch.tensor([[[0.0, 0.0], [0.6, 0.0]], [[0.0, 0.0], [0.2, 0.0]], [[0.0, 0.0], [0.9, 0.0]]])
    labels = torch.full((3, 2, 2, 2), 0.5)
    labels[0, 1, 0], labels[1, 1, 0] = torch.tensor([1.0, 0.0]), torch.tensor([0.0, 1.0])
    linked = torch.tensor([[True, True], [True, False], [True, False]])
    mean = mean_of_sources(Projected(arcs, labels, linked), torch.tensor([0, 0, 1]), 2)
    assert mean.arcs[:, 1, 0].tolist() == pytest.approx([0.4, 0.9])
    assert mean.labels[0, 1, 0].tolist() == pytest.approx([0.75, 0.25], abs=1e-5)
    assert mean.labels[0, 1, 1].tolist() == pytest.approx([0.5, 0.5])
    assert mean.linked.tolist() == [[True, True], [True, False]]
