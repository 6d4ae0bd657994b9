"""The decoder against brute force, against an independent implementation, and at its limits."""

from __future__ import annotations

import functools
import itertools
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from subdp.decoding import arborescence
from subdp.decoding.decode import decode, decode_batch
from subdp.support.errors import SubdpError

Matrix = npt.NDArray[np.float64]

KINDS = ("random", "tied", "few -inf", "many -inf")


def random_scores(kind: str, n: int, random: np.random.Generator) -> Matrix:
    """A matrix of the kind. All but "random" hold whole numbers, whose sums are exact."""
    if kind == "random":
        return random.normal(size=(n + 1, n + 1)) * 10
    scores = random.integers(1, 4, size=(n + 1, n + 1)).astype(np.float64)
    share = {"tied": 0.0, "few -inf": 0.3, "many -inf": 0.8}[kind]
    scores[random.random(scores.shape) < share] = -np.inf
    return scores


def is_tree(heads: tuple[int, ...], single_root: bool) -> bool:
    """By removing words whose head has been reached, starting from ROOT, until none is left."""
    reached, left = {0}, dict(enumerate(heads, 1))
    while new := {word for word, head in left.items() if head in reached}:
        reached |= new
        left = {word: head for word, head in left.items() if word not in new}
    return not left and (not single_root or heads.count(0) == 1)


@functools.cache
def all_trees(n: int, single_root: bool) -> npt.NDArray[np.int64]:
    """*Shape:* [number of trees, n]"""
    choices = ([head for head in range(n + 1) if head != word] for word in range(1, n + 1))
    return np.array([heads for heads in itertools.product(*choices) if is_tree(heads, single_root)])


def values(scores: Matrix, trees: npt.NDArray[Any]) -> tuple[npt.NDArray[np.int64], Matrix]:
    """For each tree, how many of its arcs are -inf and the sum of the others."""
    arcs = scores[np.arange(1, len(scores)), trees]
    lost = np.isneginf(arcs)
    return lost.sum(-1), np.where(lost, 0.0, arcs).sum(-1)


def value(scores: Matrix, heads: tuple[int, ...]) -> tuple[int, float]:
    """The same for one tree."""
    lost, total = values(scores, np.array([heads]))
    return int(lost[0]), float(total[0])


def best_value(scores: Matrix, single_root: bool) -> tuple[int, float]:
    lost, totals = values(scores, all_trees(len(scores) - 1, single_root))
    return int(lost.min()), float(totals[lost == lost.min()].max())


def other_decoder(scores: Matrix, single_root: bool) -> tuple[int, ...]:
    """ufal's decoder; -inf and more than one root are penalised, which is exact for whole numbers of this size."""
    chu_liu_edmonds = pytest.importorskip("ufal.chu_liu_edmonds").chu_liu_edmonds
    penalised = np.where(np.isneginf(scores), -1e4, scores)
    penalised[:, 0] -= 1e7 * single_root
    return tuple(chu_liu_edmonds(penalised)[0][1:])


@pytest.mark.parametrize("single_root", [True, False])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("n", "matrices"), [(1, 20), (2, 300), (3, 400), (4, 400), (5, 400), (6, 80)])
def test_equals_brute_force(n: int, matrices: int, kind: str, single_root: bool) -> None:
    random = np.random.default_rng(n)
    for _ in range(matrices):
        scores = random_scores(kind, n, random)
        heads = decode(scores, single_root=single_root)
        assert is_tree(heads, single_root)
        assert value(scores, heads) == pytest.approx(best_value(scores, single_root), rel=0, abs=1e-9)


@pytest.mark.parametrize("single_root", [True, False])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("n", "matrices"), [(2, 50), (7, 50), (10, 50), (20, 50), (50, 20), (100, 10), (500, 1)])
def test_equals_another_decoder_on_longer_sentences(n: int, matrices: int, kind: str, single_root: bool) -> None:
    random = np.random.default_rng(n)
    for _ in range(matrices):
        scores = random_scores(kind, n, random)
        heads = decode(scores, single_root=single_root)
        other = other_decoder(scores, single_root)
        assert is_tree(heads, single_root)
        assert value(scores, heads) == pytest.approx(value(scores, other), rel=0, abs=1e-6)


def test_every_word_prefers_root_but_only_one_gets_it() -> None:
    scores = np.array([[0, 0, 0, 0], [9, 0, 1, 1], [8, 5, 0, 1], [9, 1, 4, 0]])
    assert decode(scores, single_root=False) == (0, 0, 0)
    assert decode(scores) == (0, 1, 2)


def test_best_heads_that_form_a_tree_are_the_answer() -> None:
    scores = np.full((5, 5), -np.inf)
    for word, head in enumerate((2, 0, 4, 2), 1):
        scores[word, head] = 0.0
    assert decode(scores) == (2, 0, 4, 2)


def test_cycles_within_cycles_500_deep() -> None:
    """Word 1 and 2 prefer each other; then every further word and what is before it do."""
    n = 500
    scores = np.full((n + 1, n + 1), -2.0 * n)
    for word in range(2, n + 1):
        scores[word - 1, word] = scores[word, word - 1] = -float(word)
    scores[n, 0] = -3.0 * n
    heads = decode(scores)
    assert is_tree(heads, single_root=True)
    assert value(scores, heads) == value(scores, other_decoder(scores, single_root=True))


def test_no_words_and_one_word() -> None:
    assert decode([[0.0]]) == ()
    for score in (3.0, -np.inf):
        for single_root in (True, False):
            assert decode([[np.nan, np.nan], [score, np.inf]], single_root=single_root) == (0,)


def test_all_scores_minus_infinity_still_give_a_tree() -> None:
    for single_root in (True, False):
        assert is_tree(decode(np.full((31, 31), -np.inf), single_root=single_root), single_root)


def test_finite_scores_count_beside_minus_infinity_however_large_they_are() -> None:
    """The only way to attach word 3 is -inf; the choice between 1e-3 and 2e-3 must survive that, and 1e12 beside it."""
    lost = -np.inf
    scores = np.array([[0, 0, 0, 0], [1e12, 0, 1e-3, lost], [2e-3, 1e-3, 0, lost], [lost, lost, lost, 0]])
    assert decode(scores)[:2] == (0, 1)
    assert decode(scores, single_root=False)[:2] == (0, 0)


def test_row_0_and_the_diagonal_are_not_looked_at() -> None:
    scores = random_scores("random", 6, np.random.default_rng(0))
    expected = decode(scores)
    for anything in (np.nan, np.inf, 1e9, -np.inf):
        scores[0] = anything
        np.fill_diagonal(scores, anything)
        assert decode(scores) == expected


def test_input_stays_as_it_is_and_may_be_read_only_strided_nested_lists_or_a_tensor() -> None:
    scores = random_scores("random", 8, np.random.default_rng(1))
    before = scores.copy()
    expected = decode(scores)
    assert (scores == before).all()
    scores.flags.writeable = False
    assert decode(scores) == expected
    assert decode(np.asfortranarray(scores)) == expected
    assert decode(scores.tolist()) == expected
    assert decode(torch.from_numpy(before)) == expected
    assert decode(scores.astype(np.float32)) == expected
    assert all(type(head) is int for head in expected)


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_nan_and_infinity_are_errors_that_name_the_cell(wrong: float) -> None:
    scores = np.zeros((4, 4))
    scores[2, 3] = wrong
    with pytest.raises(SubdpError, match=f"^the score of head 3 for word 2 is {wrong} "):
        decode(scores)
    with pytest.raises(SubdpError, match=f"^sentence 2 of the batch: the score of head 3 for word 2 is {wrong} "):
        decode_batch(np.stack([np.zeros((4, 4)), scores]), [3, 3])


@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (0, 0)])
def test_scores_that_are_not_square_are_an_error(shape: tuple[int, ...]) -> None:
    with pytest.raises(SubdpError, match="must have the shape"):
        decode(np.zeros(shape))


def test_a_batch_given_to_decode_is_sent_to_decode_batch() -> None:
    with pytest.raises(SubdpError, match="decode_batch"):
        decode(np.zeros((2, 3, 3)))


@pytest.mark.parametrize(
    ("shape", "lengths", "message"),
    [
        ((3, 3), [2], "must have the shape"),
        ((1, 3, 4), [2], "must have the shape"),
        ((1, 0, 0), [0], "must have the shape"),
        ((2, 3, 3), [2], "need as many lengths"),
        ((2, 3, 3), [2, 3], "lengths must be from 0 to 2, but run from 2 to 3"),
        ((2, 3, 3), [-1, 2], "lengths must be from 0 to 2, but run from -1 to 2"),
    ],
)
def test_a_batch_that_does_not_fit_its_lengths_is_an_error(shape: Any, lengths: list[int], message: str) -> None:
    with pytest.raises(SubdpError, match=message):
        decode_batch(np.zeros(shape), lengths)


def test_a_batch_without_sentences_is_empty() -> None:
    assert decode_batch(np.zeros((0, 3, 3)), []) == []


def test_threads_may_decode_at_the_same_time() -> None:
    random = np.random.default_rng(2)
    matrices = [random_scores("random", 40, random) for _ in range(40)]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(decode, matrices)) == [decode(scores) for scores in matrices]


def test_numba_is_imported_only_when_there_is_much_to_decode() -> None:
    check = """if True:
        import sys, numpy, subdp
        from subdp.decoding.arborescence import MOST_INTERPRETED
        size = int(MOST_INTERPRETED ** 0.5) + 1
        first = subdp.decode(numpy.ones((10, 10)))
        print("numba" in sys.modules)
        subdp.decode(numpy.ones((size, size)))
        print("numba" in sys.modules, subdp.decode(numpy.ones((10, 10))) == first)
    """
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True", "True"]


finite = st.floats(allow_nan=False, allow_infinity=False)
score = st.one_of(finite, st.floats(-10, 10), st.just(-np.inf), st.integers(-2, 2).map(float))


def square(elements: st.SearchStrategy[float], longest: int) -> st.SearchStrategy[Matrix]:
    return st.integers(1, longest).flatmap(lambda n: arrays(np.float64, (n + 1, n + 1), elements=elements))


@given(square(score, 4), st.booleans())
@settings(deadline=None)
def test_any_scores_give_the_best_tree(scores: Matrix, single_root: bool) -> None:
    heads = decode(scores, single_root=single_root)
    assert is_tree(heads, single_root)
    halved = scores / 8  # so that the sums of the oracle do not overflow
    lost, total = value(halved, heads)
    least, best = best_value(halved, single_root)
    assert lost == least
    assert total >= best - 1e-15 * np.abs(halved, where=np.isfinite(halved), out=np.zeros_like(halved)).max()


@given(square(score, 12), st.booleans())
@settings(deadline=None)
def test_any_scores_give_a_tree(scores: Matrix, single_root: bool) -> None:
    assert is_tree(decode(scores, single_root=single_root), single_root)


@given(square(st.integers(-50, 50).map(float), 12), st.data())
@settings(deadline=None)
def test_adding_a_constant_to_all_heads_of_a_word_changes_nothing(scores: Matrix, data: st.DataObject) -> None:
    constants = data.draw(arrays(np.float64, len(scores), elements=st.integers(-1000, 1000)))
    assert decode(scores + constants[:, None]) == decode(scores)


@given(st.lists(square(score, 9), min_size=1, max_size=5), st.booleans())
@settings(deadline=None)
def test_a_padded_batch_equals_one_sentence_at_a_time(sentences: list[Matrix], single_root: bool) -> None:
    batch = np.full((len(sentences), 12, 12), np.nan)
    for row, scores in zip(batch, sentences, strict=True):
        row[: len(scores), : len(scores)] = scores
    lengths = np.array([len(scores) - 1 for scores in sentences])
    expected = [decode(scores, single_root=single_root) for scores in sentences]
    assert decode_batch(batch, lengths, single_root=single_root) == expected


@given(square(score, 9), st.booleans())
@settings(deadline=None)
def test_the_algorithm_gives_the_same_trees_compiled_or_not(scores: Matrix, single_root: bool) -> None:
    found = []
    for decode_all in (arborescence._decode_all, arborescence.compiled()):
        heads = np.zeros(len(scores), np.int32)
        found.append((decode_all(scores, single_root, heads), heads.tolist()))
    assert found[0] == found[1]
