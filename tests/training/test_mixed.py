"""Silver and gold trees trained on together: how often each tree is seen, the sum of both losses, new labels."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from subdp.alignment.links import write_alignments
from subdp.cli.main import app
from subdp.corpus.bitext import Bitext
from subdp.corpus.corrected import read_trees
from subdp.corpus.treebank import Sentence, write_conllu
from subdp.encoder.encoder import Encoder
from subdp.parser import Parser
from subdp.projection.silver import Silver
from subdp.support.errors import SubdpError
from subdp.support.settings import NetworkConfig, Settings, TrainConfig
from subdp.training.examples import MixedExamples, SoftExamples, TreeExamples
from tests.grammar import as_pair, toy_pairs

pytestmark = pytest.mark.trains

SETTINGS = replace(
    Settings.resolve(),
    network=NetworkConfig(features=24, lstm=16, lstm_layers=2, arc=16, label=12, dropout=0.0),
    train=TrainConfig(epochs=15, batch_words=100, lr=5e-3),
    adapt=TrainConfig(epochs=15, batch_words=100, lr=5e-3),
)
TREES = [tree for _, tree, _ in toy_pairs(60, seed=5)]


@pytest.fixture(scope="module")
def source(tiny: Encoder) -> Parser:
    return Parser.train((tree for tree, _, _ in toy_pairs(40)), encoder=tiny, settings=SETTINGS)


@pytest.fixture(scope="module")
def silver(source: Parser, tmp_path_factory: pytest.TempPathFactory) -> Silver:
    folder = tmp_path_factory.mktemp("silver")
    pairs = toy_pairs(40, seed=3)
    write_alignments((alignment for _, _, alignment in pairs), folder / "links.txt")
    bitext = Bitext.of([as_pair(tree, translation) for tree, translation, _ in pairs])
    return source.project(bitext, aligner=str(folder / "links.txt"), folder=folder / "silver")


def mixed(parser: Parser, silver: Silver, trees: list[Sentence]) -> MixedExamples:
    parser._remember([*silver.targets(), *(tree.words for tree in trees)])
    soft = SoftExamples(parser._stored, silver, range(len(silver)), SETTINGS.losses)
    return MixedExamples(soft, TreeExamples(parser._stored, trees, parser.inventory))


def test_trees_are_a_quarter_of_the_words_but_none_is_seen_more_than_20_times(source: Parser, silver: Silver) -> None:
    some = mixed(source, silver, TREES[:4])
    gold = sum(some.trees.lengths) * some.repeats
    assert gold / sum(some.lengths) == pytest.approx(0.25, abs=0.05)
    assert mixed(source, silver, TREES[:1]).repeats <= 20
    assert mixed(source, silver, TREES).repeats == 1
    assert len(some.lengths) == 40 + 4 * some.repeats


def test_a_batch_of_both_kinds_has_the_sum_of_both_losses(source: Parser, silver: Silver) -> None:
    examples = mixed(source, silver, TREES[:4])
    batch = [3, 40, 7, 43, 40 + 4]
    expected = examples.silver.loss(source.network, [3, 7]) + examples.trees.loss(source.network, [0, 3, 0])
    assert examples.loss(source.network, batch).item() == pytest.approx(expected.item(), rel=1e-5)


def test_labels_that_only_the_trees_have_are_learnt(source: Parser, silver: Silver) -> None:
    renamed = [tree.with_tree(tree.heads, [label.replace("det", "clf") for label in tree.labels]) for tree in TREES]
    adapted = source.adapt(silver, trees=renamed, settings=SETTINGS)
    assert adapted.label_names == (*source.label_names, "clf")
    assert adapted.about["adapted_on"]["trees"] == 60
    alone = source.adapt_to_trees(renamed, settings=SETTINGS)
    before, beside, only = (share_of_clf(parser) for parser in (source.grown(renamed), adapted, alone))
    assert before < 0.01
    assert beside > 0.1, "the silver says det, the trees say clf"
    assert only > 0.5


def share_of_clf(parser: Parser) -> float:
    """The mean probability of the new label where the trees have it."""
    number, shares = parser.label_names.index("clf"), []
    for tree, soft in zip(TREES, parser.distributions(tree.words for tree in TREES), strict=True):
        for word, (head, label) in enumerate(zip(tree.heads, tree.labels, strict=True), 1):
            if label == "det":
                shares.append(float(soft.labels[word, head, number]))
    return sum(shares) / len(shares)


def test_partial_trees_train_on_what_is_there(source: Parser, silver: Silver) -> None:
    partial = [Sentence.of(tree.words, heads=[-1, *tree.heads[1:]], labels=["_", *tree.labels[1:]]) for tree in TREES]
    known = sum(len(tree) - 1 for tree in TREES)
    assert source.adapt(silver, trees=partial, settings=SETTINGS).about["adapted_on"]["known_heads"] == known


def test_trees_that_are_scored_on_too_are_refused(tmp_path: Path) -> None:
    write_conllu(TREES[:5], tmp_path / "trees.conllu")
    write_conllu(TREES[6:9], tmp_path / "dev.conllu")
    write_conllu(TREES[4:5], tmp_path / "test.conllu")
    assert len(read_trees([tmp_path / "trees.conllu"], [tmp_path / "dev.conllu"])) == 5
    with pytest.raises(SubdpError, match=r"trees\.conllu: sentence 5 is also in .*test\.conllu"):
        read_trees([tmp_path / "trees.conllu"], [tmp_path / "dev.conllu", tmp_path / "test.conllu"])
    with pytest.raises(SubdpError, match=r"sentence 1 and 4 others are also in .*trees\.conllu"):
        read_trees([tmp_path / "trees.conllu"], [tmp_path / "trees.conllu"])


def test_trees_without_any_head_are_refused_before_training_whatever_they_are_for(tmp_path: Path) -> None:
    write_conllu([Sentence.of(["a", "b"])], tmp_path / "none.conllu")
    write_conllu(TREES[:5], tmp_path / "trees.conllu")
    for trees, gold in (("none", []), ("trees", [tmp_path / "none.conllu"])):
        with pytest.raises(SubdpError, match=r"none\.conllu: no word of 1 tree has a head"):
            read_trees([tmp_path / f"{trees}.conllu"], gold)


def call(*words: object) -> int:
    with pytest.raises(SystemExit) as done:
        app.meta([str(word) for word in words])
    return int(done.value.code or 0)


def test_the_command_line_takes_trees_with_and_without_silver(
    source: Parser, silver: Silver, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source.save(tmp_path / "source")
    write_conllu(TREES[:9], tmp_path / "trees.conllu")
    common = ["--parser", tmp_path / "source", "--trees", tmp_path / "trees.conllu", "--adapt.epochs", 1]
    assert call("adapt", *common, "-o", tmp_path / "alone") == 0
    assert call("adapt", *common, "--silver", silver.where, "-o", tmp_path / "both") == 0
    assert "9 trees" in (tmp_path / "both" / "README.md").read_text()
    assert call("adapt", "-o", tmp_path / "nothing") == 1
    assert "give --silver DIR, --trees FILE, or both" in capsys.readouterr().err
