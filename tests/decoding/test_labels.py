"""Labels and tags chosen together: the best pair that agrees about punctuation, by trying all of them."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from subdp.decoding.labels import labels_with_tags

PUNCT_LABEL, PUNCT_TAG = 1, 2


@pytest.mark.parametrize("seed", range(20))
def test_the_best_pair_that_agrees_is_found(seed: int) -> None:
    random = np.random.default_rng(seed)
    labels, tags = random.normal(size=(3, 5, 4)), random.normal(size=(3, 5, 3))
    tags[random.random(tags.shape) < 0.2] = -np.inf
    tags[..., 0] = 0
    roots = random.random((3, 5)) < 0.3
    found = labels_with_tags(labels, tags, roots, PUNCT_LABEL, PUNCT_TAG)
    for at in product(range(3), range(5)):
        pairs = [
            (labels[at][label] + tags[at][tag], label, tag)
            for label, tag in product(range(4), range(3))
            if roots[at] or (label == PUNCT_LABEL) == (tag == PUNCT_TAG)
        ]
        assert (found[0][at], found[1][at]) == max(pairs)[1:]


def test_a_tag_that_is_given_decides_the_label() -> None:
    labels = np.log([[0.9, 0.1], [0.1, 0.9]])
    given = np.array([[-np.inf, 0.0], [0.0, -np.inf]])
    found = labels_with_tags(labels, given, np.zeros(2, bool), 1, 1)
    assert [values.tolist() for values in found] == [[1, 0], [1, 0]]


def test_the_root_of_a_sentence_that_is_all_punctuation_stays_punctuation() -> None:
    labels, tags = np.array([[0.0, -np.inf]]), np.log([[0.1, 0.9]])
    label, tag = labels_with_tags(labels, tags, np.array([True]), 1, 1)
    assert (label.tolist(), tag.tolist()) == ([0], [1])


def test_without_the_label_or_the_tag_both_are_free() -> None:
    labels, tags = np.log([[0.1, 0.9]]), np.log([[0.9, 0.1]])
    for punct, tagged in ((None, 1), (1, None)):
        label, tag = labels_with_tags(labels, tags, np.array([False]), punct, tagged)
        assert (label.tolist(), tag.tolist()) == ([1], [0])
