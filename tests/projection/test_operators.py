"""The paper's operators: its propositions as properties, the plain sums as oracle, numpy and torch alike."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import subdp
from subdp.projection.operators import head_links, one_to_one, project_arcs, project_hard, project_labels, project_tags

Matrix = npt.NDArray[np.float64]


def plain_arcs(arcs: Matrix, alignment: Matrix) -> Matrix:
    """P̂2 by the sums of the paper, NULL rows written out: P1 and A_st keep NULL's mass on NULL."""
    source, target = alignment.shape[0], alignment.shape[1]
    to_source, to_target = plain_share(alignment.T), plain_share(alignment)
    extended = np.zeros((source + 1, source + 1))
    extended[:source, :source] = arcs
    extended[source, source] = 1
    forward = np.zeros((source + 1, target + 1))
    forward[:source] = to_target
    forward[source, target] = 1
    result = np.zeros((target, target + 1))
    for p in range(target):
        for q in range(target + 1):
            for i in range(source + 1):
                for j in range(source + 1):
                    result[p, q] += to_source[p, i] * extended[i, j] * forward[j, q]
    return result


def plain_labels(labels: npt.NDArray[np.float64], alignment: Matrix) -> npt.NDArray[np.float64]:
    """P̂2(l | q→p) by the sums of the paper, with the uniform distribution at NULL."""
    source, target, count = alignment.shape[0], alignment.shape[1], labels.shape[-1]
    to_source = plain_share(alignment.T)
    extended = np.full((source + 1, source + 1, count), 1 / count)
    extended[:source, :source] = labels
    result = np.zeros((target, target, count))
    for p in range(target):
        for q in range(target):
            for i in range(source + 1):
                for j in range(source + 1):
                    result[p, q] += to_source[p, i] * extended[i, j] * to_source[q, j]
    return result


def plain_tags(tags: Matrix, alignment: Matrix) -> Matrix:
    """P̂2(k | p) by the sum of the definition, NULL written out: its tag is NULL."""
    source, target, count = alignment.shape[0], alignment.shape[1], tags.shape[1]
    to_source = plain_share(alignment.T)
    extended = np.zeros((source + 1, count + 1))
    extended[:source, :count] = tags
    extended[source, count] = 1
    result = np.zeros((target, count + 1))
    for p in range(target):
        for i in range(source + 1):
            result[p] += to_source[p, i] * extended[i]
    return result


def plain_share(matrix: Matrix) -> Matrix:
    """N(Δ(M)), row by row."""
    rows = []
    for row in matrix:
        extended = [*row, 0.0 if row.sum() else 1.0]
        rows.append([value / sum(extended) for value in extended])
    return np.array(rows)


@st.composite
def problems(draw: st.DrawFn, *, discrete: bool = False, binary: bool = False, single: bool = False) -> Any:
    """Arc distributions, label distributions and a matrix Ã for a random sentence pair."""
    source, target, count = draw(st.integers(1, 5)), draw(st.integers(1, 5)), draw(st.integers(1, 4))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    if discrete:
        arcs = np.eye(source + 1)[random.integers(0, source + 1, source + 1)]
        labels = np.eye(count)[random.integers(0, count, (source + 1, source + 1))]
    else:
        arcs = random.dirichlet(np.full(source + 1, 0.3), source + 1)
        labels = random.dirichlet(np.full(count, 0.3), (source + 1, source + 1))
    alignment = np.zeros((source + 1, target + 1))
    if single:
        links = draw(st.integers(0, min(source, target)))
        alignment[1 + random.permutation(source)[:links], 1 + random.permutation(target)[:links]] = 1
    else:
        weights = np.ones((source, target)) if binary else random.uniform(0.01, 3, (source, target))
        alignment[1:, 1:] = weights * (random.random((source, target)) < draw(st.sampled_from([0.1, 0.3, 0.7])))
    alignment[0, 0] = 1
    return arcs, labels, alignment


def test_the_operators_have_a_public_name() -> None:
    assert subdp.operators.project_arcs is project_arcs
    assert subdp.operators.project_labels is project_labels
    assert subdp.project_tags is subdp.operators.project_tags is project_tags


@given(problems())
def test_all_projections_equal_the_plain_sums(problem: Any) -> None:
    arcs, labels, alignment = problem
    tags = labels[0]  # [S+1, L]: a distribution for every word
    np.testing.assert_allclose(project_tags(tags, alignment), plain_tags(tags, alignment), atol=1e-12)
    np.testing.assert_allclose(project_arcs(arcs, alignment), plain_arcs(arcs, alignment), atol=1e-12)
    np.testing.assert_allclose(project_labels(labels, alignment), plain_labels(labels, alignment), atol=1e-12)


def plain_head_links(alignment: Matrix, arcs: Matrix) -> Matrix:
    result = np.zeros(alignment.shape)
    for i, p in np.argwhere(alignment > 0):
        inside = sum(arcs[i, j] for j in range(len(arcs)) if j != i and alignment[j, p] > 0)
        result[i, p] = alignment[i, p] * max(1 - inside, 1e-3)
    return result


@given(problems())
def test_links_weighted_by_headedness_equal_the_plain_sums_and_lose_no_word(problem: Any) -> None:
    arcs, _, alignment = problem
    found = head_links(alignment, arcs)
    np.testing.assert_allclose(found, plain_head_links(alignment, arcs), atol=1e-12)
    np.testing.assert_array_equal(found > 0, alignment > 0)
    torch.testing.assert_close(head_links(torch.from_numpy(alignment), torch.from_numpy(arcs)), torch.from_numpy(found))


@given(problems(single=True))
def test_links_weighted_by_headedness_change_nothing_where_links_are_one_to_one(problem: Any) -> None:
    arcs, _, alignment = problem
    np.testing.assert_allclose(project_arcs(arcs, head_links(alignment, arcs)), project_arcs(arcs, alignment))


def test_a_verb_that_holds_its_subject_is_a_verb() -> None:
    """`I went home` / `eve gittim`: gittim is linked to both I and went."""
    alignment = np.array([[1, 0, 0], [0, 0, 1], [0, 0, 1], [0, 1, 0]])
    arcs, tags = np.eye(4)[[0, 2, 0, 2]], np.eye(3)[[0, 0, 1, 2]]  # PRON, VERB, NOUN
    links = head_links(alignment, arcs)
    np.testing.assert_allclose(project_tags(tags, links)[2], [0, 1, 0, 0], atol=2e-3)
    np.testing.assert_allclose(project_arcs(arcs, links)[1:], [[0, 0, 1, 0], [1, 0, 0, 0]], atol=2e-3)
    np.testing.assert_allclose(project_tags(tags, alignment)[2], [0.5, 0.5, 0, 0], err_msg="what the mean gives")


@given(problems())
def test_proposition_1_projected_arcs_are_distributions(problem: Any) -> None:
    arcs, _, alignment = problem
    projected = project_arcs(arcs, alignment)
    assert (projected >= 0).all()
    np.testing.assert_allclose(projected.sum(axis=-1), 1, atol=1e-12)


@given(problems())
def test_proposition_2_projected_labels_are_distributions(problem: Any) -> None:
    _, labels, alignment = problem
    projected = project_labels(labels, alignment)
    assert (projected >= 0).all()
    np.testing.assert_allclose(projected.sum(axis=-1), 1, atol=1e-12)


def test_rounding_makes_no_projected_label_negative() -> None:
    """A word's shares may add up to a little more than 1; what is left for NULL must not be negative then."""
    random = np.random.default_rng(1)
    labels = np.eye(4)[random.integers(3, size=(9, 9))]  # Nobody has the last label: nothing hides what NULL gives it.
    alignments = random.uniform(1e-3, 1, size=(50, 9, 9))
    shares = [alignment.T / alignment.T.sum(axis=1, keepdims=True) for alignment in alignments]
    assert any((share.sum(axis=1) > 1).any() for share in shares), "the weights show nothing"
    assert all(project_labels(labels, alignment).min() >= 0 for alignment in alignments)


@given(problems())
def test_projected_tags_are_distributions_over_the_values_and_null(problem: Any) -> None:
    _, labels, alignment = problem
    projected = project_tags(labels[0], alignment)
    assert projected.shape == (alignment.shape[1], labels.shape[-1] + 1)
    assert (projected >= 0).all()
    np.testing.assert_allclose(projected.sum(axis=-1), 1, atol=1e-12)
    np.testing.assert_array_equal(projected[:, -1], alignment.sum(axis=0) == 0, "NULL has all of an unaligned word")


@given(problems(discrete=True, binary=True, single=True))
def test_proposition_3_one_to_one_links_and_a_discrete_tree_give_hard_projection(problem: Any) -> None:
    arcs, labels, alignment = problem
    soft, hard = project_arcs(arcs, alignment)[:, :-1], project_hard(arcs, alignment)
    np.testing.assert_array_equal(soft, hard)
    projected = project_labels(labels, alignment)
    for p, q in zip(*np.nonzero(hard), strict=True):
        i, j = alignment[:, p].argmax(), alignment[:, q].argmax()
        np.testing.assert_array_equal(projected[p, q], labels[i, j])


@given(problems(discrete=True, binary=True))
def test_proposition_4_every_hard_arc_keeps_some_probability(problem: Any) -> None:
    arcs, labels, alignment = problem
    hard = project_hard(arcs, alignment) > 0
    assert (project_arcs(arcs, alignment)[:, :-1][hard] > 0).all()
    projected = project_labels(labels, alignment)
    for p, q in zip(*np.nonzero(hard), strict=True):
        i, j = alignment[:, p].argmax(), alignment[:, q].argmax()
        assert projected[p, q, labels[i, j].argmax()] > 0


@given(problems(), st.integers(0, 2**32 - 1))
def test_the_arc_loss_is_the_normalised_variant_weighted_by_alpha(problem: Any, seed: int) -> None:
    arcs, _, alignment = problem
    sums = [matrix.sum(axis=-1, keepdims=True) for matrix in (alignment, alignment.T)]
    to_target, to_source = (
        np.divide(matrix, total, out=np.zeros_like(matrix), where=total > 0)
        for matrix, total in zip((alignment, alignment.T), sums, strict=True)
    )
    unnormalised = to_source @ arcs @ to_target
    alpha = unnormalised.sum(axis=-1, keepdims=True)
    variant = np.divide(unnormalised, alpha, out=np.zeros_like(unnormalised), where=alpha > 0)
    logs = np.log(np.random.default_rng(seed).dirichlet(np.ones(len(variant)), len(variant)))
    weighted = -(alpha * variant * logs).sum()
    partial = -(project_arcs(arcs, alignment)[:, :-1] * logs).sum()
    np.testing.assert_allclose(weighted, partial, atol=1e-10)


@given(problems())
@settings(max_examples=50)
def test_torch_gives_what_numpy_gives(problem: Any) -> None:
    arcs, labels, alignment = problem
    tensors = [torch.from_numpy(array) for array in problem]
    pairs = [
        (project_arcs(arcs, alignment), project_arcs(tensors[0], tensors[2])),
        (project_labels(labels, alignment), project_labels(tensors[1], tensors[2])),
        (project_tags(labels[0], alignment), project_tags(tensors[1][0], tensors[2])),
        (project_hard(arcs, alignment), project_hard(tensors[0], tensors[2])),
    ]
    for array, tensor in pairs:
        assert isinstance(tensor, torch.Tensor)
        np.testing.assert_allclose(tensor.numpy(), array, atol=1e-12)


@given(problems())
@settings(max_examples=50, deadline=None)  # The first batch waits for the compiler.
def test_a_batch_gives_the_plain_sums_too(problem: Any) -> None:
    _, labels, alignment = problem
    for kind, tolerance in ((np.float64, 1e-12), (np.float32, 1e-6)):
        batch = [np.stack([array, array]).astype(kind) for array in (labels, alignment)]
        expected = plain_labels(labels, alignment)
        projected = project_labels(batch[0], batch[1])
        tensor = project_labels(*map(torch.from_numpy, batch))
        assert projected.dtype == kind
        assert isinstance(tensor, torch.Tensor)
        for found in (*projected, *tensor.numpy()):
            np.testing.assert_allclose(found, expected, atol=tolerance)


def test_a_batch_may_lie_in_memory_in_any_way_and_be_of_mixed_kinds() -> None:
    random = np.random.default_rng(0)
    labels = random.dirichlet(np.ones(3), (2, 2, 4, 4))
    alignment = (random.random((2, 2, 4, 5)) < 0.4).astype(np.float64)
    expected = [[plain_labels(*both) for both in zip(*row, strict=True)] for row in zip(labels, alignment, strict=True)]
    turned = np.asfortranarray(labels), np.asfortranarray(alignment)
    np.testing.assert_allclose(project_labels(*turned), expected, atol=1e-12)
    strided = torch.from_numpy(turned[0]), torch.from_numpy(turned[1])
    np.testing.assert_allclose(project_labels(*strided), expected, atol=1e-12)
    np.testing.assert_allclose(project_labels(labels.astype(np.float32), alignment), expected, atol=1e-6)
    one_for_all = project_labels(labels, alignment[0, 0])
    np.testing.assert_allclose(one_for_all[1, 1], plain_labels(labels[1, 1], alignment[0, 0]), atol=1e-12)
    assert project_labels(labels[:0], alignment[:0]).shape == (0, 2, 5, 5, 3)


def test_a_batch_of_sizes_that_do_not_fit_is_refused() -> None:
    with pytest.raises(ValueError, match="mismatch"):
        project_labels(np.ones((1, 3, 3, 2)), np.ones((1, 5, 4)))


def test_gradients_flow_through_a_batch() -> None:
    random = np.random.default_rng(0)
    labels, alignment = random.dirichlet(np.ones(3), (2, 4, 4)), (random.random((2, 4, 4)) < 0.4).astype(np.float64)
    tensor = torch.from_numpy(labels).requires_grad_()
    projected = project_labels(tensor, torch.from_numpy(alignment))
    np.testing.assert_allclose(projected.detach(), project_labels(labels, alignment), atol=1e-12)
    projected[0].sum().backward()
    assert tensor.grad is not None
    assert tensor.grad[0].any()
    assert not tensor.grad[1].any()


@pytest.mark.parametrize("kind", [torch.int64, torch.bool, torch.float32])
def test_alignments_of_any_kind_of_0_and_1_do(kind: torch.dtype) -> None:
    alignment = torch.tensor([[1, 0, 0], [0, 1, 1], [0, 0, 1]]).to(kind)
    arcs, labels = torch.eye(3, dtype=torch.float64), torch.full((3, 3, 2), 0.5, dtype=torch.float64)
    for function, source in ((project_arcs, arcs), (project_labels, labels), (project_hard, arcs)):
        np.testing.assert_allclose(function(source, alignment), function(source.numpy(), alignment.numpy()))


@pytest.mark.parametrize("convert", [np.asarray, torch.from_numpy])
def test_a_padded_batch_gives_what_its_members_give_alone(convert: Any) -> None:
    random = np.random.default_rng(0)
    sizes = [(3, 5), (5, 2), (1, 1)]
    source, target, count = 6, 6, 3
    arcs, alignment = np.zeros((3, source, source)), np.zeros((3, source, target))
    labels = np.full((3, source, source, count), 1 / count)
    for b, (s, t) in enumerate(sizes):
        arcs[b, : s + 1, : s + 1] = random.dirichlet(np.ones(s + 1), s + 1)
        labels[b, : s + 1, : s + 1] = random.dirichlet(np.ones(count), (s + 1, s + 1))
        alignment[b, 1 : s + 1, 1 : t + 1] = random.random((s, t)) < 0.4
        alignment[b, 0, 0] = 1
    batch_arcs = project_arcs(convert(arcs), convert(alignment))
    batch_labels = project_labels(convert(labels), convert(alignment))
    batch_tags = project_tags(convert(labels[:, 0]), convert(alignment))
    for b, (s, t) in enumerate(sizes):
        members = arcs[b, : s + 1, : s + 1], labels[b, : s + 1, : s + 1], alignment[b, : s + 1, : t + 1]
        alone = project_arcs(members[0], members[2])
        np.testing.assert_allclose(batch_arcs[b, : t + 1, : t + 1], alone[:, :-1], atol=1e-12)
        np.testing.assert_allclose(batch_arcs[b, : t + 1, -1], alone[:, -1], atol=1e-12)
        alone = project_labels(members[1], members[2])
        np.testing.assert_allclose(batch_labels[b, : t + 1, : t + 1], alone, atol=1e-12)
        alone = project_tags(members[1][0], members[2])
        np.testing.assert_allclose(batch_tags[b, : t + 1], alone, atol=1e-12)


def test_a_link_that_is_not_one_to_one_is_unknown_to_hard_projection() -> None:
    alignment = np.array([[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 1]])
    arcs = np.array([[0, 0, 0], [0, 0, 1], [1, 0, 0]])
    np.testing.assert_array_equal(project_hard(arcs, alignment), np.zeros((4, 4)))
    np.testing.assert_array_equal(one_to_one(alignment)[1:, 1:], [[1, 0, 0], [0, 0, 0]])
