"""The parser from end to end on a toy language: it learns, projects, adapts, saves, loads and speaks of its doubts."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from subdp.alignment.aligner import Aligner
from subdp.alignment.links import Alignment, write_alignments
from subdp.corpus.bitext import Bitext, Pair
from subdp.corpus.bitext_report import Report
from subdp.corpus.treebank import Sentence
from subdp.encoder.encoder import Encoder
from subdp.parser import Parser
from subdp.projection.silver import Silver, SilverStore
from subdp.projection.silver_views import AveragedSilver
from subdp.projection.soft_tree import SoftTree
from subdp.support.errors import SubdpError
from subdp.support.settings import LossConfig, NetworkConfig, Settings, TrainConfig
from subdp.training.examples import SoftExamples
from subdp.training.loop import mean_loss
from tests.grammar import as_pair, toy_pairs, toy_silver

pytestmark = pytest.mark.trains

SETTINGS = replace(
    Settings.resolve(),
    network=NetworkConfig(features=32, lstm=24, lstm_layers=2, arc=24, label=16, dropout=0.1),
    train=TrainConfig(epochs=30, batch_words=100, lr=5e-3),
    adapt=TrainConfig(epochs=20, batch_words=100, lr=5e-3),
    losses=LossConfig(prior_pairs=0),  # Toy links are right: no noise has to average out.
)


@pytest.fixture(scope="module")
def source(tiny: Encoder) -> Parser:
    return Parser.train((tree for tree, _, _ in toy_pairs(60)), encoder=tiny, settings=SETTINGS)


@pytest.fixture(scope="module")
def silver(source: Parser, tmp_path_factory: pytest.TempPathFactory) -> Silver:
    return toy_silver(source, toy_pairs(60, seed=3), tmp_path_factory.mktemp("silver"))


def test_it_learns_a_treebank(source: Parser) -> None:
    scores = source.evaluate([tree for tree, _, _ in toy_pairs(20, seed=9)])
    assert scores.las > 95


def test_adapting_to_a_translation_beats_direct_transfer(source: Parser, silver: Silver) -> None:
    gold = [translation for _, translation, _ in toy_pairs(20, seed=9)]
    adapted = source.adapt(silver, settings=SETTINGS)
    assert adapted.evaluate(gold).las > max(90, source.evaluate(gold).las + 20)
    assert adapted.fingerprint != source.fingerprint
    assert adapted.about["adapted_from"]["trained_on"]["sentences"] == 60


def test_completion_fits_unlinked_words_to_the_teacher_and_the_papers_losses_leave_them_alone(
    source: Parser, tmp_path: Path
) -> None:
    """Only determiners are linked; all else has no mass but what completion gives it."""
    pairs = toy_pairs(60, seed=3)
    few = ((one, other, Alignment.of(link for link in every.links if link[0] in (0, 3))) for one, other, every in pairs)
    silver = toy_silver(source, few, tmp_path)
    loss = {}
    for completion in ("none", "source"):
        losses = replace(SETTINGS.losses, completion=completion, mixing=0.0, own_labels=())
        examples, agreement = SoftExamples(source.vectors.stored, silver, np.arange(60), losses).taught_by(
            source.network
        )
        loss[completion] = mean_loss(source.network, examples)
        assert (agreement is None) == (completion == "none")
    assert loss["none"] < loss["source"] / 2, "a determiner's head has no link: next to nothing is known"
    own = [tree.distributions for tree in source.distributions(translation.words for _, translation, _ in pairs)]
    entropies = [
        -float((one["arcs"] * np.log(one["arcs"].clip(1e-30))).sum())
        - float((one["arcs"][..., None] * one["labels"] * np.log(one["labels"].clip(1e-30))).sum())
        for one in own
    ]
    expected = sum(entropies) / sum(len(translation) for _, translation, _ in pairs)
    assert loss["source"] == pytest.approx(expected + loss["none"], rel=0.05), "and the teacher's own, in full"


def test_distributions_are_soft_trees_in_the_order_of_the_sentences(source: Parser) -> None:
    sentences = [tree.words for tree, _, _ in toy_pairs(7)] + [("dog",)]
    trees = list(source.distributions(iter(sentences)))
    assert [tree.words for tree in trees] == sentences
    for tree in trees:
        np.testing.assert_allclose(tree.coverage, 1, atol=1e-3)


def test_trees_are_the_same_and_in_order_whatever_the_number_of_threads(source: Parser) -> None:
    gold = [tree for tree, _, _ in toy_pairs(400, seed=9)]
    before, parsed = torch.get_num_threads(), {}
    for threads in (1, 4):
        torch.set_num_threads(threads)
        try:
            parsed[threads] = list(source.parse(iter(gold)))
        finally:
            torch.set_num_threads(before)
    assert [tree.words for tree in parsed[4]] == [tree.words for tree in gold]
    assert [tree.heads for tree in parsed[4]] == [tree.heads for tree in parsed[1]]


def test_what_is_remembered_is_not_encoded_again(source: Parser, monkeypatch: pytest.MonkeyPatch) -> None:
    gold = [tree for tree, _, _ in toy_pairs(5, seed=11)]
    first = list(source.parse(gold, remember=True))
    monkeypatch.setattr(Encoder, "encode", None)
    assert [tree.heads for tree in source.parse(gold, remember=True)] == [tree.heads for tree in first]


def test_several_sources_of_a_target_sentence_are_one_example(silver: Silver) -> None:
    averaged = AveragedSilver([silver, silver])
    assert len(averaged) == len({tuple(words) for words in silver.targets()}) < 2 * len(silver)
    assert averaged[0].target == silver[0].target
    assert len(averaged[0].more) >= 1
    with pytest.raises(IndexError):
        averaged[-1]


def test_parsing_streams_and_keeps_all_but_the_tree(source: Parser) -> None:
    tags = ["DET", "NOUN", "VERB", "DET", "NOUN"]
    unparsed = Sentence.of(["the", "dog", "sees", "a", "cat"], upos=tags, comments=["x"])

    def endless() -> object:
        while True:
            yield unparsed

    parsed = next(source.parse(endless()))  # type: ignore[arg-type]
    assert parsed.heads == (2, 3, 0, 5, 3)
    assert parsed.comments == ("# x",)
    assert parsed.upos == unparsed.upos


def test_it_takes_text_words_and_sentences_and_names_what_it_does_not_take(source: Parser) -> None:
    words = ["the", "dog", "sees", "a", "cat"]
    for given in ("the dog sees a cat", [words], [" ".join(words)], Sentence.of(words)):
        (parsed,) = source(given)
        assert parsed.words == tuple(words)
        assert parsed.heads == (2, 3, 0, 5, 3)
    first, second = source("The dog sees a cat. It runs.", confidence=True)
    assert (first.text, second.text) == ("The dog sees a cat.", "It runs.")
    assert "HeadProb=" in second.conllu
    assert source("") == []
    with pytest.raises(TypeError, match=r"takes text, sentences, and lists of words, but was given this int, 3"):
        source.parse(3)  # type: ignore[arg-type]


def test_a_look_at_a_parser_tells_what_it_is(source: Parser) -> None:
    assert repr(source).startswith("<Parser: a dependency parser, 5 labels, encoder ")
    assert "5 labels" in source._repr_html_()


def test_another_parsers_trees_are_a_source_in_a_few_lines(source: Parser) -> None:
    pairs = toy_pairs(60, seed=3)
    silver = Silver.of(((tree, links, translation.words) for tree, translation, links in pairs), source.inventory)
    german = source.adapt(silver, settings=SETTINGS)
    assert german.evaluate([translation for _, translation, _ in toy_pairs(20, seed=9)]).las > 90
    other = Sentence.of(["dogs", "bark"], heads=[2, 0], labels=["subj", "root"])
    with pytest.raises(SubdpError, match=r"other labels than this parser \(make it with this parser, or with Silver"):
        source.adapt(Silver.of([(other, Alignment.parse("0-0"), ["hundoj"])]))


def test_confidences_name_the_rivals_of_a_doubtful_word(source: Parser) -> None:
    (parsed,) = source.parse([Sentence.of(["dog", "a", "today", "sees"], misc=["A=b", "_", "_", "_"])], confidence=True)
    notes = [line.split("\t")[9] for line in parsed.conllu.split("\n")]
    assert notes[0].startswith("A=b|HeadProb=")
    assert all("LabelProb=" in note for note in notes)
    assert parsed.labels.count("root") == parsed.heads.count(0) == 1
    assert parsed.labels[parsed.heads.index(0)] == "root"


def test_a_saved_parser_is_the_same_when_loaded(source: Parser, tiny: Encoder, tmp_path: Path) -> None:
    source.save(tmp_path / "model")
    assert Parser.load(tmp_path / "model", encoder=tiny).fingerprint == source.fingerprint
    assert Parser.load(tmp_path / "model").about == source.about
    assert "trained on" in (tmp_path / "model" / "README.md").read_text().lower()
    source.save(tmp_path / "half", half=True)
    gold = [tree for tree, _, _ in toy_pairs(20, seed=9)]
    assert Parser.load(tmp_path / "half", encoder=tiny).evaluate(gold).las == pytest.approx(
        source.evaluate(gold).las, abs=5
    )
    size = {name: (tmp_path / name / "model.safetensors").stat().st_size for name in ("model", "half")}
    assert size["half"] < 0.6 * size["model"]


def test_damaged_model_folders_are_clear_errors(source: Parser, tiny: Encoder, tmp_path: Path) -> None:
    def damaged(file: str, content: bytes | None) -> SubdpError:
        folder = Path(tempfile.mkdtemp(dir=tmp_path)) / "model"
        source.save(folder)
        if content is None:
            (folder / file).unlink()
        else:
            (folder / file).write_bytes(content)
        with pytest.raises(SubdpError) as caught:
            Parser.load(folder, encoder=tiny)
        return caught.value

    weights = b"\x08\0\0\0\0\0\0\0{}      "
    source.save(tmp_path / "whole")
    config = json.loads((tmp_path / "whole" / "config.json").read_text())
    for file in ("config.json", "labels.json", "model.safetensors"):
        assert "missing" in damaged(file, None).reason
    assert "not JSON" in damaged("labels.json", b"[").reason
    assert "does not fit" in damaged("labels.json", b'["root"]').reason
    assert "does not fit" in damaged("model.safetensors", weights).reason
    assert "does not fit" in damaged("model.safetensors", b"").reason
    assert "does not fit" in damaged("config.json", b"{}").reason
    assert "format 99" in damaged("config.json", json.dumps({**config, "format": 99}).encode()).reason
    other = {**config, "encoder": {**config["encoder"], "fingerprint": "0"}}
    assert "another encoder" in damaged("config.json", json.dumps(other).encode()).reason
    with pytest.raises(SubdpError, match="no such model folder"):
        Parser.load(tmp_path / "absent")


def test_a_save_that_fails_at_the_last_moment_leaves_the_former_parser(
    source: Parser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source.save(tmp_path / "parser")
    moved, calls = Path.replace, list[Path]()

    def replace_once(path: Path, target: Path) -> Path:
        calls.append(path)
        if len(calls) == 2:  # The former one is moved aside first, then the new one to its place.
            raise OSError("no longer there")
        return moved(path, target)

    monkeypatch.setattr(Path, "replace", replace_once)
    with pytest.raises(OSError, match="no longer there"):
        source.save(tmp_path / "parser", half=True)
    monkeypatch.undo()
    assert [path.name for path in tmp_path.iterdir()] == ["parser"]
    assert Parser.load(tmp_path / "parser", encoder=source.encoder).fingerprint == source.fingerprint


def test_saving_never_replaces_a_folder_of_something_else(source: Parser, tmp_path: Path) -> None:
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter1.txt").write_text("years of work")
    with pytest.raises(SubdpError, match="something other"):
        source.save(tmp_path / "thesis")
    assert (tmp_path / "thesis" / "chapter1.txt").read_text() == "years of work"
    assert [path.name for path in tmp_path.iterdir()] == ["thesis"]
    source.save(tmp_path / "parser")
    source.save(tmp_path / "parser")
    (tmp_path / "parser" / ".git").mkdir()
    with pytest.raises(SubdpError, match=r"something else besides a parser: \.git"):
        Parser.check_folder(tmp_path / "parser")
    (tmp_path / "hf").mkdir()
    (tmp_path / "hf" / "config.json").write_text('{"model_type": "bert"}')
    with pytest.raises(SubdpError, match="something other"):
        Parser.check_folder(tmp_path / "hf")


def test_gold_trees_are_projected_without_a_look_at_the_source_side(
    source: Parser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = toy_pairs(6, seed=3)
    # Other trees than the parser would give, with subtypes and an unknown head.
    gold = [
        Sentence.of(tree.words, heads=[2, 0, 2, 2, -1, 2][: len(tree)], labels=["det:x", "root", *tree.labels[2:]])
        for tree, _, _ in made
    ]
    bitext = Bitext.of([as_pair(tree, translation) for tree, translation, _ in made])

    def no_network(*_: object) -> object:
        raise AssertionError("the network ran")

    with monkeypatch.context() as patch:
        patch.setattr("subdp.network.biaffine.Biaffine.forward", no_network)
        silver = source.project(bitext, trees=iter(gold), folder=tmp_path / "silver")
    for pair, tree in zip(silver, gold, strict=True):
        assert pair.source == tree.words
        expected = SoftTree.of(tree, source.label_names)
        arcs, labels = pair.distributions["arcs"], pair.distributions["labels"]
        np.testing.assert_array_equal(arcs, expected.arcs)
        np.testing.assert_allclose(labels, expected.labels, atol=1e-3)
        assert labels[1, 2, source.label_names.index("det")] == 1
        assert not arcs[5].any()
    assert silver.made_from.keys() == {"parser", "bitext", "aligner", "trees"}
    with pytest.raises(SubdpError, match="treebank"):
        source.project(bitext, trees=[tree for tree, _, _ in made], folder=tmp_path / "silver")
    with pytest.raises(SubdpError, match="treebank"):
        source.project(bitext, folder=tmp_path / "silver")


def test_gold_trees_in_the_parsers_place_teach_the_translation(source: Parser, tmp_path: Path) -> None:
    pairs = toy_pairs(60, seed=3)
    write_alignments((alignment for _, _, alignment in pairs), tmp_path / "links.txt")
    bitext = Bitext.of([as_pair(tree, translation) for tree, translation, _ in pairs])
    links, trees = str(tmp_path / "links.txt"), [tree for tree, _, _ in pairs]
    adapted = source.adapt(source.project(bitext, aligner=links, trees=trees), settings=SETTINGS)
    assert adapted.evaluate([translation for _, translation, _ in toy_pairs(20, seed=9)]).las > 90
    unknown = [
        tree.with_tree(tree.heads, ["dep" if label == "obj" else label for label in tree.labels]) for tree in trees
    ]
    with pytest.raises(SubdpError, match=r"a label that the parser lacks: dep \(it knows advmod, det"):
        source.project(bitext, aligner=links, trees=unknown)


def test_a_bitext_of_which_nothing_is_left_says_why(source: Parser) -> None:
    with pytest.raises(SubdpError, match=r"x\.tsv: no pair can be used \(left out: 2 copy, 1 empty side\)"):
        source.project(Bitext((), "x.tsv", Report(3, {"copy": 2, "empty side": 1})))


def test_an_interrupted_projection_goes_on_and_ends_the_same(source: Parser, silver: Silver, tmp_path: Path) -> None:
    bitext = Bitext.of([as_pair(tree, translation) for tree, translation, _ in toy_pairs(600, seed=3)])

    class Interrupted(Aligner):
        """Gives up after so many pairs."""

        fingerprint = "the same aligner"

        def __init__(self, most: int):
            self.left = most

        def align(self, pairs: Iterable[Pair]) -> Iterator[Alignment]:
            for pair in pairs:
                if self.left == 0:
                    raise KeyboardInterrupt
                self.left -= 1
                yield Alignment.of([(0, len(pair.target) - 1)])

    with pytest.raises(KeyboardInterrupt):
        source.project(bitext, aligner=Interrupted(550), folder=tmp_path / "parts")
    assert SilverStore(tmp_path / "parts").missing() == [1]
    parts = source.project(bitext, aligner=Interrupted(600 - 512), folder=tmp_path / "parts")
    whole = source.project(bitext, aligner=Interrupted(600), folder=tmp_path / "whole")
    assert len(parts) == len(whole) == 600
    shards = [sorted((tmp_path / name).glob("*.arrow")) for name in ("parts", "whole")]
    assert [path.read_bytes() for path in shards[0]] == [path.read_bytes() for path in shards[1]]
    with pytest.raises(SubdpError, match="another parser, bitext, aligner or treebank"):
        source.project(bitext, aligner="argmax", folder=tmp_path / "parts")
