"""Labels and tags chosen together: the best that agree and repeat no subject or object, by trying all of them."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from subdp.decoding.labels import agreement, groups_of, labels_with_tags, one_of_each

LABELS, TAGS = ("root", "det", "nsubj", "nsubj:pass", "obj", "punct"), ("DET", "NOUN", "PUNCT")


@pytest.mark.parametrize("seed", range(20))
def test_the_best_pair_that_agrees_is_found(seed: int) -> None:
    random = np.random.default_rng(seed)
    labels, tags = random.normal(size=(3, 5, len(LABELS))), random.normal(size=(3, 5, len(TAGS)))
    tags[random.random(tags.shape) < 0.2] = -np.inf
    roots = random.random((3, 5)) < 0.3
    allowed = agreement(LABELS, TAGS)
    scores, tag_of = labels_with_tags(labels, tags, roots, allowed)
    for at in product(range(3), range(5)):
        for label in range(len(LABELS)):
            sums = [
                labels[at][label] + (tags[at][tag] if roots[at] or allowed[label, tag] else -np.inf)
                for tag in range(len(TAGS))
            ]
            assert scores[at][label] == max(sums)
            assert sums[tag_of[at][label]] == max(sums)


def test_labels_and_tags_agree_as_universal_dependencies_has_it() -> None:
    labels = ("root", "nsubj", "det", "aux:pass", "case", "punct", "advmod")
    tags = ("NOUN", "DET", "AUX", "ADP", "PUNCT", "ADV")
    found = {
        label: {tag for tag, fits in zip(tags, row, strict=True) if fits}
        for label, row in zip(labels, agreement(labels, tags), strict=True)
    }
    everything = set(tags) - {"PUNCT"}
    assert found["nsubj"] == found["root"] == everything
    assert found["det"] == {"DET"}
    assert found["aux:pass"] == {"AUX"}
    assert found["case"] == everything - {"DET", "AUX"}
    assert found["punct"] == {"PUNCT"}
    assert found["advmod"] == {"DET", "ADV"}


def test_what_has_nothing_to_agree_with_is_free() -> None:
    assert agreement(("det", "obj"), ("NOUN", "PUNCT")).tolist() == [[True, True], [True, False]]
    assert agreement(("obj",), ("NOUN", "PUNCT")).tolist() == [[True, True]]
    assert agreement(("obj",), ()).shape == (1, 0)


def test_a_tag_that_is_given_decides_the_label() -> None:
    labels, given = np.log([[0.9, 0.1], [0.1, 0.9]]), np.array([[-np.inf, 0.0], [0.0, -np.inf]])
    scores, tag_of = labels_with_tags(labels, given, np.zeros(2, bool), agreement(("obj", "punct"), ("NOUN", "PUNCT")))
    best = scores.argmax(-1)
    assert best.tolist() == [1, 0]
    assert [tags[label] for tags, label in zip(tag_of.tolist(), best, strict=True)] == [1, 0]


def test_the_root_of_a_sentence_that_is_all_punctuation_stays_punctuation() -> None:
    labels, tags = np.array([[0.0, -np.inf]]), np.log([[0.1, 0.9]])
    allowed = agreement(("root", "punct"), ("NOUN", "PUNCT"))
    scores, tag_of = labels_with_tags(labels, tags, np.array([True]), allowed)
    assert (scores.argmax(-1).tolist(), tag_of[0, 0]) == ([0], 1)


@pytest.mark.parametrize("seed", range(40))
def test_the_best_labels_without_a_second_subject_or_object_are_found(seed: int) -> None:
    random = np.random.default_rng(seed)
    groups, heads = groups_of(LABELS), random.integers(0, 2, 5)
    scores = random.normal(size=(5, len(LABELS)))
    scores[:, groups[0] + groups[1]] += 1

    def total(labels: tuple[int, ...]) -> float:
        for head, group in product(range(2), groups):
            if sum(label in group for label, at in zip(labels, heads, strict=True) if at == head) > 1:
                return -np.inf
        return float(sum(scores[word, label] for word, label in enumerate(labels)))

    best = max(product(range(len(LABELS)), repeat=5), key=total)
    assert tuple(one_of_each(scores, heads.tolist(), groups).tolist()) == best


def test_words_that_can_be_nothing_but_subjects_stay_subjects() -> None:
    scores = np.full((2, len(LABELS)), -np.inf)
    scores[:, 2] = [-1.0, -2.0]
    assert one_of_each(scores, [3, 3], groups_of(LABELS)).tolist() == [2, 2]
    scores[1] = [-5.0 if label != 2 else 0.0 for label in range(scores.shape[1])]
    assert one_of_each(scores, [3, 3], groups_of(LABELS)).tolist()[1] != 2, "the other word gives way"


def test_an_outer_subject_may_stand_beside_another() -> None:
    assert groups_of(("nsubj", "nsubj:outer", "csubj", "obj", "iobj")) == [[0, 2], [3]]


def test_labels_are_free_where_no_group_is_known() -> None:
    scores = np.log([[0.1, 0.9], [0.2, 0.8]])
    assert one_of_each(scores, [3, 3], groups_of(("det", "amod"))).tolist() == [1, 1]
