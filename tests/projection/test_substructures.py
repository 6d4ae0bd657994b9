"""Substructures: one more of a known kind is one more description, and everything else takes it along."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from subdp.alignment.links import Alignment, write_alignments
from subdp.corpus.bitext import Bitext
from subdp.corpus.treebank import Sentence
from subdp.encoder.encoder import Encoder
from subdp.parser import Parser
from subdp.projection.soft_tree import SoftTree, project
from subdp.projection.substructures import SUBSTRUCTURES, find_substructure, inventory_of, merged
from subdp.support.errors import SubdpError
from subdp.support.settings import LossConfig, NetworkConfig, Settings, TrainConfig
from tests.grammar import FIRST, as_pair, toy_pairs

pytestmark = pytest.mark.trains

SETTINGS = replace(
    Settings.resolve(),
    network=NetworkConfig(features=32, lstm=24, lstm_layers=2, arc=24, label=16, dropout=0.1),
    train=TrainConfig(epochs=40, batch_words=100, lr=1e-2),
    adapt=TrainConfig(epochs=40, batch_words=100, lr=1e-2),
    # The source parser, which is wrong about the turned sentences, is no teacher, and what it knew counts for nothing.
    losses=LossConfig(mixing=0, prior_pairs=0),
)


@pytest.fixture(autouse=True)
def first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SUBSTRUCTURES, FIRST.name, FIRST)


def firsts(parser: Parser, sentences: list[Sentence]) -> float:
    """The share of words for which the parser gets the made-up substructure right."""
    yes = parser.inventory["first"].index("yes")
    right = words = 0
    for tree in parser.distributions(sentence.words for sentence in sentences):
        chosen = tree.distributions["first"][1:].argmax(-1)
        right += int(((chosen == yes) == (np.arange(len(tree)) == 0)).sum())
        words += len(tree)
    return right / words


def test_a_made_up_substructure_of_words_is_learnt_saved_projected_and_learnt_again(
    tiny: Encoder, tmp_path: Path
) -> None:
    pairs = toy_pairs(60)
    source = Parser.train([tree for tree, _, _ in pairs], encoder=tiny, predict=["first"], settings=SETTINGS)
    assert source.inventory["first"] == ("no", "yes")
    assert firsts(source, [tree for tree, _, _ in toy_pairs(20, seed=9)]) > 0.9

    source.save(tmp_path / "parser")
    loaded = Parser.load(tmp_path / "parser", encoder=tiny)
    assert loaded.fingerprint == source.fingerprint

    # Links turn the sentence round, so that "first" becomes what the translation has last.
    turned = [Sentence.of(tree.words[::-1]) for tree, _, _ in pairs]
    write_alignments(
        (Alignment.of((word, len(tree) - 1 - word) for word in range(len(tree))) for tree in turned),
        tmp_path / "links.txt",
    )
    bitext = Bitext.of([as_pair(tree, other) for (tree, _, _), other in zip(pairs, turned, strict=True)])
    silver = loaded.project(bitext, aligner=str(tmp_path / "links.txt"), folder=tmp_path / "silver")
    assert silver[0].distributions["first"].shape == (len(pairs[0][0]) + 1, 2)
    adapted = loaded.adapt(silver, settings=SETTINGS)
    yes = adapted.inventory["first"].index("yes")
    trees = list(adapted.distributions(tree.words for tree in turned[:20]))
    last = sum(tree.distributions["first"][-1].argmax() == yes for tree in trees)
    assert last > 15, "what was first is last in the translation"


def test_a_soft_tree_carries_it_and_null_takes_its_share() -> None:
    tree = SoftTree.of(Sentence.of(["a", "b"], heads=[2, 0], labels=["x", "root"]), more={"first": ("no", "yes")})
    soft = project(tree, Alignment.parse("0-0 0-1 1-1"), onto=["s", "t", "u"])
    np.testing.assert_array_equal(soft.distributions["first"][1:], [[0, 1], [0.5, 0.5], [0, 0]])


def test_values_are_read_from_trees_and_merged_in_order() -> None:
    trees = [tree for tree, _, _ in toy_pairs(3)]
    found = inventory_of(trees, ["first"])
    assert found["arcs"] == ()
    assert found["first"] == ("no", "yes")
    joined = merged([{"arcs": (), "labels": ("b", "a")}, {"arcs": (), "labels": ("c", "a"), "first": ("no",)}])
    assert joined == {"arcs": (), "labels": ("b", "a", "c"), "first": ("no",)}


def test_an_unknown_substructure_is_an_error_that_names_those_there_are() -> None:
    with pytest.raises(SubdpError, match=r"no layer 'mood' \(name upos, xpos"):
        find_substructure("mood")
