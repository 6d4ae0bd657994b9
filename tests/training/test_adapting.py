"""Gold trees of the target language, after silver or without it: how far they move a parser, new labels, errors."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from subdp.cli.main import app
from subdp.corpus.corrected import read_trees
from subdp.corpus.treebank import Sentence, write_conllu
from subdp.encoder.encoder import Encoder
from subdp.parser import Parser
from subdp.projection.silver import Silver
from subdp.support.errors import SubdpError
from subdp.support.settings import LossConfig, NetworkConfig, Settings, TrainConfig
from subdp.training import adapting
from subdp.training.examples import SoftExamples
from subdp.training.losses import Projected
from subdp.training.null_mass import same_heads
from tests.grammar import toy_pairs, toy_silver

pytestmark = pytest.mark.trains

SETTINGS = replace(
    Settings.resolve(),
    network=NetworkConfig(features=24, lstm=16, lstm_layers=2, arc=16, label=12, dropout=0.0),
    train=TrainConfig(epochs=15, batch_words=100, lr=5e-3),
    adapt=TrainConfig(epochs=15, batch_words=100, lr=5e-3),
    tune=TrainConfig(epochs=15, batch_words=100, lr=5e-3),
)
TREES = [tree for _, tree, _ in toy_pairs(60, seed=5)]


@pytest.fixture(scope="module")
def source(tiny: Encoder) -> Parser:
    return Parser.train((tree for tree, _, _ in toy_pairs(40)), encoder=tiny, settings=SETTINGS)


@pytest.fixture(scope="module")
def silver(source: Parser, tmp_path_factory: pytest.TempPathFactory) -> Silver:
    return toy_silver(source, toy_pairs(40, seed=3), tmp_path_factory.mktemp("silver"))


def test_silver_and_trees_are_learnt_one_after_the_other(source: Parser, silver: Silver) -> None:
    both = source.adapt(silver, trees=TREES[:9], settings=SETTINGS, about={"title": "both"})
    steps = source.adapt(silver, settings=SETTINGS).adapt_to_trees(TREES[:9], settings=SETTINGS)
    assert both.fingerprint == steps.fingerprint
    assert both.about["title"] == "both"
    assert both.about["adapted_on"]["trees"] == 9
    assert both.about["adapted_from"]["adapted_on"]["pairs"] == 40


def way(parser: Parser, source: Parser, *, scorers: bool) -> float:
    """How far the weights are from those of another: the scorers of labels and tags, or everything else."""
    moved, before = parser.network.state_dict(), source.network.state_dict()
    free = tuple(f"scorers.{name}." for name in source.inventory if name != "arcs")
    chosen = [name for name in before if name.startswith(free) == scorers]
    return float(sum((moved[name] - before[name]).norm() ** 2 for name in chosen) ** 0.5)


def test_after_a_few_trees_weights_go_back_towards_those_before_as_far_as_there_were_corrections(
    source: Parser,
) -> None:
    for trees in (TREES[:3], TREES):
        part = source.adapt_to_trees(trees, settings=SETTINGS)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(adapting, "_PRIOR", 0)
            whole = source.adapt_to_trees(trees, settings=SETTINGS)
        wrong = adapting.count_corrections(source([tree.words for tree in trees]), trees)
        gone = way(part, source, scorers=False) / way(whole, source, scorers=False)
        assert gone == pytest.approx(wrong / (wrong + 60), abs=1e-3)
        assert way(part, source, scorers=True) == way(whole, source, scorers=True) > 0, "labels and tags stay"


def test_after_silver_weights_go_back_the_further_the_fewer_pairs_it_has(
    source: Parser, silver: Silver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(adapting, "_PARTS", (1.0,))

    def adapted(prior: float) -> Parser:
        losses = replace(SETTINGS.losses, prior_pairs=prior)
        return source.adapt(silver, settings=replace(SETTINGS, losses=losses))

    whole = adapted(0)
    for prior in (len(silver), 3 * len(silver)):
        part = adapted(prior)
        gone = way(part, source, scorers=False) / way(whole, source, scorers=False)
        assert gone == pytest.approx(len(silver) / (len(silver) + prior), abs=1e-3)
        assert way(part, source, scorers=True) == way(whole, source, scorers=True) > 0, "labels and tags stay"
    assert SETTINGS.losses.prior_pairs > 0
    assert Settings.resolve(losses="paper").losses.prior_pairs == 0


def as_asked(found: list[torch.Tensor]) -> Iterator[torch.Tensor]:
    """What is found with each share, in the order in which it is asked for: all, none, then those between."""
    return iter([found[-1], found[0], *found[1:-1]])


def words(*right: range) -> torch.Tensor:
    """Which of 100 held-out words agree."""
    agreeing = torch.zeros(100, dtype=torch.bool)
    for part in right:
        agreeing[part] = True
    return agreeing


@pytest.mark.parametrize(
    ("found", "part", "unasked"),
    [
        # As many more agree after training as not by chance: 40 of 40 that changed.
        ([words(range(20)), *[words(range(90))] * 4, words(range(60))], 1.0, 4),
        # Nine of 19 that changed are lost again: the best share is kept, the smallest of equals.
        ([words(range(50)), *[words(range(40))] * 2, *[words(range(55))] * 2, words(range(41), range(50, 60))], 0.6, 0),
        # Three more agree of 13 that changed, no more than by chance: what is simplest is kept.
        ([words(range(50)), *[words(range(45), range(50, 58))] * 5], 0.0, 0),
        # Nothing was learnt but noise.
        ([words(range(50)), *[words(range(40))] * 5], 0.0, 0),
    ],
)
def test_held_out_pairs_say_how_much_of_what_silver_changed_is_kept(
    source: Parser,
    silver: Silver,
    monkeypatch: pytest.MonkeyPatch,
    found: list[torch.Tensor],
    part: float,
    unasked: int,
) -> None:
    with_prior = replace(SETTINGS, losses=replace(SETTINGS.losses, prior_pairs=60))
    whole = source.adapt(silver, settings=replace(SETTINGS, losses=replace(SETTINGS.losses, prior_pairs=0)))
    told, most = as_asked(found), len(silver) / (len(silver) + 60)
    monkeypatch.setattr(SoftExamples, "agreeing", lambda *_: next(told))
    kept = source.adapt(silver, settings=with_prior)
    assert kept.about["kept"] == pytest.approx(part * most)
    assert len(list(told)) == unasked, "each share is looked at once, and none where much was learnt"
    gone = way(kept, source, scorers=False) / way(whole, source, scorers=False)
    assert gone == pytest.approx(part * most, abs=1e-3)


@pytest.mark.parametrize(
    ("found", "part"),
    [
        # Three more agree of 13 that changed, no more than by chance, and no fewer: nothing speaks against it.
        ([words(range(50)), *[words(range(45), range(50, 58))] * 5], 1.0),
        # The last two shares lose what was learnt before.
        ([words(range(50)), *[words(range(52))] * 3, *[words(range(40))] * 2], 0.6),
        # Nothing was learnt but noise.
        ([words(range(50)), *[words(range(40))] * 5], 0.0),
    ],
)
def test_from_a_start_that_has_learnt_from_projection_the_largest_share_is_kept_that_does_no_harm(
    source: Parser, silver: Silver, monkeypatch: pytest.MonkeyPatch, found: list[torch.Tensor], part: float
) -> None:
    settings = replace(SETTINGS, losses=replace(SETTINGS.losses, prior_pairs=60))
    told, most = as_asked(found), len(silver) / (len(silver) + 60)
    monkeypatch.setattr(SoftExamples, "agreeing", lambda *_: next(told))
    monkeypatch.setattr(Parser, "_start", lambda self, *_: (self, 0.7))
    assert source.adapt(silver, settings=settings).about["kept"] == pytest.approx(part * most)


def test_from_what_is_mostly_the_source_parser_the_smallest_share_is_kept(
    source: Parser, silver: Silver, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = replace(SETTINGS, losses=replace(SETTINGS.losses, prior_pairs=60))
    monkeypatch.setattr(SoftExamples, "agreeing", lambda *_: words(range(50)))
    monkeypatch.setattr(Parser, "_start", lambda self, *_: (self, 0.4))
    assert source.adapt(silver, settings=settings).about["kept"] == 0


def test_without_held_out_pairs_the_largest_share_is_kept(source: Parser, silver: Silver) -> None:
    settings = replace(SETTINGS, losses=replace(SETTINGS.losses, prior_pairs=60))
    adapted = source.adapt(silver, settings=settings, held_out=0)
    assert adapted.about["kept"] == pytest.approx(len(silver) / (len(silver) + 60))


def test_heads_are_compared_where_projection_chose_one() -> None:
    """Three words: the projected head, another one, and one for which projection is not sure of any."""
    arcs = torch.zeros(1, 4, 4)
    arcs[0, 1, 0] = arcs[0, 2, 1] = 1
    arcs[0, 3, 1:3] = 0.4
    projected = Projected({"arcs": arcs}, torch.ones(1, 4, dtype=torch.bool), torch.zeros(1, 4))
    mask, heads = torch.tensor([[False, True, True, True]]), torch.tensor([[0, 0, 3, 1]])
    own: Any = SimpleNamespace(mask=mask, arcs=torch.nn.functional.one_hot(heads, 4).float())
    assert same_heads(own, projected).tolist() == [True, False]


def test_a_correction_is_a_known_head_or_its_label_that_the_parser_had_wrong(source: Parser) -> None:
    drafts = source([tree.words for tree in TREES[:3]])
    assert adapting.count_corrections(drafts, drafts) == 0
    relabelled = [tree.with_tree(tree.heads, ["punct", *tree.labels[1:]]) for tree in drafts]
    assert adapting.count_corrections(drafts, relabelled) == sum(tree.labels[0] != "punct" for tree in drafts) > 0
    unknown = [Sentence.of(tree.words, heads=[-1, *tree.heads[1:]], labels=["_", *tree.labels[1:]]) for tree in drafts]
    assert adapting.count_corrections(drafts, unknown) == 0


def test_a_label_that_only_a_few_trees_have_is_chosen_where_they_have_it(source: Parser) -> None:
    few = [tree.with_tree(tree.heads, [label.replace("det", "clf") for label in tree.labels]) for tree in TREES[:10]]
    settings = replace(SETTINGS, tune=replace(SETTINGS.tune, epochs=60))
    tuned = source.adapt_to_trees(few, settings=settings)
    labels = [label for tree in tuned.parse([Sentence.of(tree.words) for tree in few]) for label in tree.labels]
    assert labels.count("clf") > labels.count("det")


def test_labels_that_only_the_trees_have_are_learnt(source: Parser, silver: Silver) -> None:
    renamed = [tree.with_tree(tree.heads, [label.replace("det", "clf") for label in tree.labels]) for tree in TREES]
    adapted = source.adapt(silver, trees=renamed, settings=SETTINGS)
    assert adapted.label_names == (*source.label_names, "clf")
    assert adapted.about["adapted_on"]["trees"] == 60
    alone = source.adapt_to_trees(renamed, settings=SETTINGS)
    before, after, only = (share_of_clf(parser) for parser in (source.grown(renamed), adapted, alone))
    assert before < 0.01
    assert after > 0.3, "the silver says det, the trees say clf"
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
    epochs = ["--adapt.epochs", 1, "--tune.epochs", 1]
    common = ["--parser", tmp_path / "source", "--trees", tmp_path / "trees.conllu", *epochs]
    assert call("adapt", *common, "-o", tmp_path / "alone") == 0
    assert call("adapt", *common, "--silver", silver.where, "-o", tmp_path / "both") == 0
    assert "9 trees" in (tmp_path / "both" / "README.md").read_text()
    assert not list(tmp_path.glob("*.training")), "no checkpoint is left, of either training"
    assert call("adapt", "-o", tmp_path / "nothing") == 1
    assert "give --silver DIR, --trees FILE, or both" in capsys.readouterr().err


def test_agreement_is_measured_on_some_words_of_much_bitext(
    source: Parser, silver: Silver, monkeypatch: pytest.MonkeyPatch
) -> None:
    examples = SoftExamples(source.vectors.fresh, silver, np.arange(len(silver)), LossConfig())
    whole = len(examples.agreeing(source.network))
    monkeypatch.setattr("subdp.training.examples._MEASURED", sum(examples.lengths) // 2)
    assert 0 < len(examples.agreeing(source.network)) < 0.75 * whole
    monkeypatch.setattr("subdp.training.examples._MEASURED", 1)
    assert len(examples.agreeing(source.network)) <= examples.lengths[0], "the first one, however long"
