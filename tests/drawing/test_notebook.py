"""What values look like in a notebook and at a prompt: short in words, and a picture or a table."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from xml.etree import ElementTree

import pytest

from subdp.alignment.links import Alignment
from subdp.corpus.treebank import Sentence
from subdp.evaluation.attachment import evaluate
from subdp.projection.silver import Silver
from subdp.projection.soft_tree import SoftTree, project
from subdp.support import progress

TREE = Sentence.of(["<b>", "went"], heads=[2, 0], labels=["nsubj", "root"], upos=["NOUN", "VERB"])
SOFT = project(TREE, Alignment.parse("0-0 1-1"), onto=["我", "去"])


def test_reprs_are_short() -> None:
    assert repr(TREE) == "<Sentence of 2 words: <b> went>"
    assert repr(SOFT) == "<SoftTree of 2 words, 100% of the mass kept: 我 去>"
    assert repr(evaluate([TREE], [TREE])).startswith("<Scores: UAS 100.0  LAS 100.0")
    long = Sentence.of(["word"] * 500)
    assert len(repr(long)) < 100
    silver = Silver.of([(TREE, Alignment.parse("0-0"), ["我"])])
    assert repr(silver) == "<Silver of 1 pair: silver in memory>"
    assert repr(silver[0]) == "<SilverPair: <b> went → 我, 1 link>"
    assert str(TREE) == TREE.conllu


@pytest.mark.parametrize("tree", [TREE, SOFT])
def test_trees_are_pictures(tree: Sentence | SoftTree) -> None:
    texts = list(ElementTree.fromstring(tree._repr_svg_()).itertext())
    assert {"nsubj", tree.words[0]} <= set(texts)
    assert tree._repr_svg_() in tree._repr_html_()


def test_a_picture_leaves_out_arcs_of_next_to_no_probability() -> None:
    soft = SoftTree.of(TREE)
    arcs = soft.arcs.copy()
    arcs[1] = [0.04, 0, 0.96]
    faint = SoftTree(soft.words, {**soft.distributions, "arcs": arcs}, soft.inventory, soft.linked)
    assert faint._repr_svg_().count("<path") == soft._repr_svg_().count("<path")


def test_scores_and_silver_are_pages_of_their_own() -> None:
    assert "nsubj</td><td>1</td><td>100.0</td>" in evaluate([TREE], [TREE])._repr_html_()
    silver = Silver.of([(TREE, Alignment.parse("0-0 1-1"), ["我", "去"])])._repr_html_()
    assert "去" in silver
    assert "<svg" in silver
    assert "&lt;b&gt; went" in silver


def test_progress_is_shown_in_a_notebook_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SUBDP_QUIET", raising=False)
    monkeypatch.setattr(sys, "stderr", SimpleNamespace(isatty=lambda: False))
    assert not progress.visible()
    shell = SimpleNamespace(kernel=object())
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    assert progress.visible()
    monkeypatch.setenv("SUBDP_QUIET", "1")
    assert not progress.visible()
