"""Soft trees: the paper's two figures as golden cases, and what can be asked of a tree."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from subdp.alignment.links import Alignment
from subdp.corpus.treebank import UNKNOWN, Sentence
from subdp.projection.soft_tree import Floats, Head, SoftTree, project, project_tree
from subdp.support.errors import SubdpError

ENGLISH = Sentence.of(
    "I went to the book store".split(),
    heads=[2, 0, 6, 6, 6, 2],
    labels=["nsubj", "root", "case", "det", "compound", "obl"],
)
CHINESE = "我 去 了 書店".split()
LINKS = Alignment.parse("0-0 1-1 4-3 5-3")


def test_figure_1_of_the_paper() -> None:
    soft = project(ENGLISH, LINKS, onto=CHINESE)
    assert soft.words == ("我", "去", "了", "書店")
    assert soft.heads_of(1) == [Head(2, "去", "nsubj", 1.0)]
    assert soft.heads_of(2) == [Head(0, "ROOT", "root", 1.0)]
    assert soft.heads_of(3) == []
    assert soft.heads_of(4) == [Head(2, "去", "obl", 0.5), Head(4, "書店", "compound", 0.5)]
    expected = np.zeros((5, 5))
    expected[1, 2] = expected[2, 0] = 1
    expected[4, 2] = expected[4, 4] = 0.5
    np.testing.assert_array_equal(soft.arcs, expected)
    nsubj = soft.label_names.index("nsubj")
    assert soft.labels[1, 2, nsubj] == 1


def test_a_word_for_several_can_stand_for_their_head_and_then_has_no_self_loop() -> None:
    soft = project(ENGLISH, LINKS, onto=CHINESE, many_to_one="head")
    first, *_ = soft.heads_of(4)
    assert (first.word, first.label) == ("去", "obl")
    assert first.probability > 0.99
    assert soft.self_loop_mass < 0.01
    assert project(ENGLISH, LINKS, onto=CHINESE).self_loop_mass == 0.5


def test_figure_1_by_hard_projection() -> None:
    partial = project_tree(ENGLISH, LINKS, onto=CHINESE)
    assert partial.heads == (2, 0, UNKNOWN, UNKNOWN)
    assert partial.labels == ("nsubj", "root", "_", "_")


def test_figure_on_normalisation_keeps_the_noise_small() -> None:
    english = Sentence.of(
        "We study syntax and everything about it".split(),
        heads=[2, 0, 2, 5, 3, 7, 5],
        labels=["nsubj", "root", "obj", "cc", "conj", "case", "nmod"],
    )
    tree = SoftTree.of(english)
    arcs = tree.arcs.copy()
    arcs[6, 7], arcs[6, 2] = 0.99, 0.01
    parsed = replace(tree, distributions={**tree.distributions, "arcs": arcs})
    soft = project(parsed, Alignment.parse("0-0 1-1 2-2 3-3 4-5 5-4"), onto="我們 研究 句法 和 相關的 一切".split())
    expected = np.zeros((7, 7))
    expected[1, 2] = expected[2, 0] = expected[3, 2] = expected[4, 6] = expected[6, 3] = 1
    expected[5, 2] = 0.01
    np.testing.assert_array_equal(soft.arcs, expected)
    np.testing.assert_allclose(soft.coverage, [1, 1, 1, 1, 0.01, 1])
    normalised = soft.arcs[5] / soft.arcs[5].sum()
    assert normalised[2] == 1


def test_what_a_soft_tree_says_of_itself() -> None:
    soft = project(ENGLISH, LINKS, onto=CHINESE)
    np.testing.assert_array_equal(soft.coverage, [1, 1, 0, 1])
    np.testing.assert_allclose(soft.entropy, [0, 0, 0, 1], atol=1e-12)
    assert soft.self_loop_mass == 0.5
    assert soft.unaligned == (3,)
    assert len(soft) == 4


def test_a_linked_word_whose_head_is_not_linked_is_aligned_but_has_no_mass() -> None:
    soft = project(ENGLISH, Alignment.parse("2-0"), onto=["去"])
    assert soft.unaligned == ()
    assert soft.coverage.tolist() == [0]


def test_the_best_tree_is_a_tree_even_where_nothing_was_kept() -> None:
    tree = project(ENGLISH, LINKS, onto=CHINESE).best_tree()
    assert tree.heads[:2] == (2, 0)
    assert tree.heads[3] == 2
    assert tree.labels[3] == "obl"
    assert project(ENGLISH, Alignment.of([]), onto=CHINESE).best_tree().heads.count(0) == 1


def test_projection_onto_itself_changes_nothing() -> None:
    identity = Alignment.of((word, word) for word in range(len(ENGLISH)))
    soft = project(ENGLISH, identity, onto=ENGLISH.words)
    np.testing.assert_array_equal(soft.arcs, SoftTree.of(ENGLISH).arcs)
    assert soft.best_tree().heads == ENGLISH.heads
    assert soft.best_tree().labels == ENGLISH.labels


def test_a_partial_tree_projects_what_it_knows() -> None:
    partial = Sentence.of(["a", "b"], heads=[UNKNOWN, 0], labels=["_", "root"])
    soft = project(partial, Alignment.parse("0-0 1-1"), onto=["x", "y"])
    assert soft.coverage.tolist() == [0, 1]
    assert SoftTree.of(Sentence.of(["a"])).coverage.tolist() == [0]


def test_several_roots_of_a_source_are_all_projected() -> None:
    source = Sentence.of(["Yes", "go"], heads=[0, 0], labels=["root", "root"], any_roots=True)
    partial = project_tree(source, Alignment.parse("0-0 1-1"), onto=["Ja", "geh"])
    assert partial.heads == (0, 0)
    assert partial.labels == ("root", "root")


def test_impossible_trees_and_requests_are_errors() -> None:
    soft = project(ENGLISH, LINKS, onto=CHINESE)

    def changed(**parts: Floats) -> SoftTree:
        return replace(soft, distributions={**soft.distributions, **parts})

    with pytest.raises(SubdpError, match="no word 5"):
        soft.heads_of(5)
    with pytest.raises(SubdpError, match="no word 0"):
        soft.heads_of(0)
    with pytest.raises(SubdpError, match="target word 3 but the target sentence has 2 words"):
        project(ENGLISH, LINKS, onto=["a", "b"])
    with pytest.raises(SubdpError, match="arcs have shape"):
        replace(soft, words=("a",), linked=(True,))
    with pytest.raises(SubdpError, match="labels have shape"):
        replace(soft, inventory={"arcs": (), "labels": ("x",)})
    with pytest.raises(SubdpError, match="values of linked"):
        replace(soft, linked=())
    with pytest.raises(SubdpError, match="need a distribution"):
        replace(soft, inventory={"arcs": ()})
    with pytest.raises(SubdpError, match="not a distribution or part of one"):
        changed(arcs=soft.arcs * 2)
    with pytest.raises(SubdpError, match="not a distribution"):
        changed(labels=soft.labels / 2)
    with pytest.raises(SubdpError, match="ROOT has a head"):
        changed(arcs=np.eye(5))
    with pytest.raises(SubdpError, match="not among"):
        SoftTree.of(ENGLISH, ["nsubj"])
    with pytest.raises(TypeError, match="list of words"):
        project(ENGLISH, LINKS, onto="我去")
