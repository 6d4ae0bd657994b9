"""Tags beside trees, from end to end on a toy language: learnt, projected, learnt again, written, scored."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from subdp.alignment.links import Alignment
from subdp.cli.main import app
from subdp.corpus.bitext import Bitext, Pair
from subdp.corpus.layers import find_layer, word_columns
from subdp.corpus.treebank import Sentence, read_conllu, write_conllu
from subdp.encoder.encoder import Encoder
from subdp.evaluation.attachment import evaluate
from subdp.network.model_folder import load_folder
from subdp.parser import Parser
from subdp.projection.quality import measure
from subdp.projection.silver import SilverStore
from subdp.support.engine import LocalEngine
from subdp.support.errors import SubdpError
from subdp.support.settings import LossConfig, NetworkConfig, Settings, TrainConfig
from subdp.training.examples import SoftExamples, TreeExamples
from tests.grammar import toy_pairs, toy_silver

pytestmark = pytest.mark.trains

SETTINGS = replace(
    Settings.resolve(),
    network=NetworkConfig(features=32, lstm=24, lstm_layers=2, arc=24, label=16, dropout=0.1),
    train=TrainConfig(epochs=40, batch_words=100, lr=5e-3),
    adapt=TrainConfig(epochs=15, batch_words=100, lr=5e-3),
    # Toy links are right, and the source parser is wrong about the translation: it has no share in what is learnt.
    losses=LossConfig(mixing=0, prior_pairs=0),
)
TAGS = {"det": "DET", "nsubj": "NOUN", "obj": "NOUN", "root": "VERB", "advmod": "ADV", "punct": "PUNCT"}


def tagged(tree: Sentence) -> Sentence:
    """The tree with UPOS, an entity for every bird, and a full stop that hangs from the root."""
    words, heads, labels = [*tree.words, "."], [*tree.heads, tree.heads.index(0) + 1], [*tree.labels, "punct"]
    entities = ["NE=B-BIRD" if word in ("bird", "birdo") else "NE=O" for word in words]
    return Sentence.of(words, heads=heads, labels=labels, upos=[TAGS[label] for label in labels], misc=entities)


def untagged(sentence: Sentence) -> Sentence:
    return Sentence.of(sentence.words)


SOURCE = [tagged(tree) for tree, _, _ in toy_pairs(60)]
TARGET = [tagged(tree) for _, tree, _ in toy_pairs(20, seed=9)]


@pytest.fixture(scope="module")
def source(tiny: Encoder) -> Parser:
    return Parser.train(SOURCE, encoder=tiny, predict=["upos", "misc:NE"], settings=SETTINGS)


@pytest.fixture(scope="module")
def silver(source: Parser, tmp_path_factory: pytest.TempPathFactory) -> SilverStore:
    pairs = (
        (tagged(tree), tagged(translation), Alignment.of([*alignment.links, (len(tree), len(tree))]))
        for tree, translation, alignment in toy_pairs(60, seed=3)
    )
    return toy_silver(source, pairs, tmp_path_factory.mktemp("silver"))


def packed(source: Parser, silver: SilverStore, share: float) -> SoftExamples:
    """What all pairs are fitted to, worked out, with this share of forms in tags."""
    source.vectors.remember(silver.targets())
    losses = replace(SETTINGS.losses, tags_by_form=share)
    examples = SoftExamples(source.vectors.stored, silver, np.arange(len(silver)), losses)
    return examples.worked_out(source.network.device)


def test_forms_have_a_share_in_the_tags_of_their_occurrences_and_in_nothing_else(
    source: Parser, silver: SilverStore
) -> None:
    alone, shared = (packed(source, silver, share).kept for share in (0, 0.5))
    assert any(
        before.masses["upos"].tolist() != shared[number].masses["upos"].tolist() for number, before in alone.items()
    )
    for number, before in alone.items():
        for name in ("arcs", "labels", "misc:NE"):
            assert before.masses[name].tolist() == shared[number].masses[name].tolist()


def test_pairs_that_are_not_kept_in_memory_get_the_tags_of_forms_too(
    source: Parser, silver: SilverStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("subdp.training.examples.MOST_WORDS", sum(map(len, silver.targets())) // 2)
    half = packed(source, silver, 0.5)
    number = len(silver) - 1
    assert 0 < len(half.kept) <= number
    there = pickle.loads(pickle.dumps(half))  # As another rank gets it.
    assert there.forms is not None
    raw = replace(half, forms=None)
    losses = [one.loss(source.network, [number]).item() for one in (half, there, raw)]
    assert losses[0] == losses[1]
    (expected,) = there.forms.shared(list(raw._packed([number], source.network.device).values()))
    assert losses[0] == pytest.approx(replace(half, kept={number: expected}).loss(source.network, [number]).item())
    assert losses[0] != losses[2]


def test_tags_and_entities_are_learnt_beside_trees(source: Parser) -> None:
    scores = source.evaluate([tagged(tree) for tree, _, _ in toy_pairs(20, seed=9)])
    assert scores.upos is not None
    assert scores.upos > 90
    assert scores.layers["misc:NE"].accuracy > 90
    assert scores.las > 80
    assert "UPOS" in str(scores)
    assert scores.as_dict()["upos"] == scores.upos


def test_projection_carries_them_and_adapting_learns_them(source: Parser, silver: SilverStore) -> None:
    found = measure(silver, "mean", LocalEngine()).as_dict()["layers"]
    assert found["upos"]["coverage"] == pytest.approx(1, abs=0.01)
    adapted = source.adapt(silver, settings=SETTINGS)
    before, after = (parser.evaluate(TARGET) for parser in (source, adapted))
    assert before.upos is not None
    assert after.upos is not None
    assert after.upos > max(85, before.upos)
    assert after.layers["misc:NE"].accuracy > 85


def test_tags_never_move_what_trees_are_made_from(source: Parser) -> None:
    examples = TreeExamples(source.vectors.stored, SOURCE[:4], source.inventory)
    source.vectors.remember(sentence.words for sentence in SOURCE[:4])
    network = source.network
    scored = network(source.vectors.stored([sentence.words for sentence in SOURCE[:4]]))
    tags = sum(logs[scored.mask].sum() for logs in scored.words().values())
    assert isinstance(tags, torch.Tensor)
    reached = torch.autograd.grad(tags, list(network.parameters()), allow_unused=True)
    names = {name for (name, _), found in zip(network.named_parameters(), reached, strict=True) if found is not None}
    assert names
    assert all(name.startswith(("scorers.upos.", "scorers.misc:NE.")) for name in names)
    assert examples.loss(network, range(4)).requires_grad


def test_a_layer_is_added_to_a_parser_whose_trees_stay_as_they_are(tiny: Encoder, tmp_path: Path) -> None:
    trees = Parser.train(map(untagged_tree, SOURCE), encoder=tiny, settings=SETTINGS)
    longer = replace(SETTINGS, train=replace(SETTINGS.train, lr=1e-2))
    wider = trees.with_layers(SOURCE, ["upos"], dev=SOURCE[:5], settings=longer)
    gold = [tagged(tree) for tree, _, _ in toy_pairs(20, seed=9)]
    upos = wider.evaluate(gold).upos
    assert upos is not None
    assert upos > 80
    before = trees.network.state_dict()
    assert all(
        torch.equal(before[name], tensor) for name, tensor in wider.network.state_dict().items() if name in before
    )
    assert all(parameter.requires_grad for parameter in wider.network.parameters())
    wider.save(tmp_path / "wider")
    assert "upos added afterwards" in (tmp_path / "wider" / "README.md").read_text()
    with pytest.raises(SubdpError, match="predicts upos already"):
        wider.with_layers(SOURCE, ["upos"])
    with pytest.raises(SubdpError, match=r"the dev set has no upos \(name one that has it, or none\)"):
        trees.with_layers(SOURCE, ["upos"], dev=[untagged_tree(SOURCE[0])], settings=longer)


def test_upos_is_predicted_by_default_where_the_treebank_has_it(tiny: Encoder) -> None:
    short = replace(SETTINGS, train=TrainConfig(epochs=1))
    assert Parser.train(SOURCE[:5], encoder=tiny, settings=short).layers == ("upos",)
    assert Parser.train(map(untagged_tree, SOURCE[:5]), encoder=tiny, settings=short).layers == ()
    with pytest.raises(SubdpError, match="the treebank has no upos"):
        Parser.train(map(untagged_tree, SOURCE[:5]), encoder=tiny, predict=["upos"], settings=short)


def untagged_tree(sentence: Sentence) -> Sentence:
    return Sentence.of(sentence.words, heads=sentence.heads, labels=sentence.labels)


def test_a_tag_that_the_input_has_stays_unless_it_is_to_be_retagged(source: Parser) -> None:
    mixed = Sentence.of(["the", "dog", "sees", "a", "cat", "."], upos=["X", "_", "INTJ", "_", "_", "_"])
    (kept,), (new,) = source.parse([mixed]), source.parse([mixed], retag=True)
    assert kept.upos == ("X", "NOUN", "INTJ", "DET", "NOUN", "PUNCT")
    assert new.upos == ("DET", "NOUN", "VERB", "DET", "NOUN", "PUNCT")


def test_an_entity_that_the_input_has_stays_and_confidences_are_not_doubled(source: Parser) -> None:
    given = Sentence.of(["the", "dog", "sees"], misc=["NE=B-BIRD", "_", "X=1"])
    (once,) = source.parse([given], confidence=True)
    (twice,) = source.parse([once], confidence=True)
    assert find_layer("misc:NE").read(twice)[0] == "B-BIRD"
    assert twice.conllu.count("HeadProb=") == 3
    assert "X=1" in twice.conllu


def test_a_confidence_is_that_of_the_value_that_is_written(source: Parser) -> None:
    words = ["the", "dog", "sees"]
    given = Sentence.of(words, upos=["_", "NEW", "_"], misc=["NE=B-BIRD", "NE=B-NEW", "_"])
    (parsed,) = source.parse([given], confidence=True)
    first, second, third = ([*line.split("\t")[9].split("|")] for line in parsed.conllu.split("\n"))
    (soft,) = source.distributions([words])
    place = source.inventory["misc:NE"].index("B-BIRD")
    assert f"NEProb={soft.distributions['misc:NE'][1, place]:.3f}" in first
    assert not [note for note in second if note.startswith(("NEProb", "NEAlt", "UPOSProb", "UPOSAlt"))]
    assert {note.partition("=")[0] for note in third} >= {"NEProb", "UPOSProb"}


def test_a_feature_is_learnt_and_projected_with_none_as_a_value(tiny: Encoder) -> None:
    def cased(tree: Sentence) -> Sentence:
        values = ["Nom" if label == "nsubj" else "none" for label in tree.labels]
        return tree.with_tree(tree.heads, tree.labels, layers={"feats:Case": values})

    parser = Parser.train(map(cased, SOURCE), encoder=tiny, predict=["feats:Case"], settings=SETTINGS)
    assert parser.inventory["feats:Case"] == ("Nom", "none")
    silver = parser.project(Bitext.of([Pair(source.words, target.words) for source, target, _ in toy_pairs(3)]))
    assert all(pair.distributions["feats:Case"].shape == (len(pair.source) + 1, 2) for pair in silver)
    (parsed,) = parser.parse([Sentence.of(SOURCE[0].words)])
    assert {columns[5] for columns in word_columns(parsed)} <= {"Case=Nom", "_"}
    assert parser.evaluate(list(map(cased, SOURCE))).layers["feats:Case"].accuracy > 80


def test_punct_goes_to_punctuation_and_to_nothing_else(source: Parser) -> None:
    strange = [Sentence.of(words) for words in (["...", "dog", "."], ["!", "?", "sees", "-"], ["."], ["dog"])]
    for sentence in [*source.parse(strange), *source.parse(map(untagged, TARGET))]:
        for word, tag, label, head in zip(sentence.words, sentence.upos, sentence.labels, sentence.heads, strict=True):
            assert head == 0 or (label == "punct") == (tag == "PUNCT")
            assert tag != "PUNCT" or not any(map(str.isalpha, word))
    given = Sentence.of(["the", "dog", "sees"], upos=["PUNCT", "NOUN", "_"])
    (parsed,) = source.parse([given])
    assert parsed.labels[0] == "punct" or parsed.heads[0] == 0


def test_confidences_name_tags_and_their_rivals(source: Parser) -> None:
    (parsed,) = source.parse([Sentence.of(["dog", "unu", "hodiau", "vidas"])], confidence=True)
    notes = [dict(item.split("=", 1) for item in line.split("\t")[9].split("|")) for line in parsed.conllu.split("\n")]
    (soft,) = source.distributions([parsed.words])
    for word, note in enumerate(notes, 1):
        chosen = source.inventory["upos"].index(parsed.upos[word - 1])
        assert float(note["UPOSProb"]) == pytest.approx(soft.distributions["upos"][word, chosen], abs=2e-3)
        assert {"HeadProb", "LabelProb", "NEProb", "NE"} <= set(note)
        rivals = [rival.rpartition(":") for rival in note["UPOSAlt"].split(",")] if "UPOSAlt" in note else []
        assert all(tag != parsed.upos[word - 1] and float(share) >= 0.05 for tag, _, share in rivals)


def test_a_saved_parser_keeps_its_layers_and_one_of_format_2_still_parses(
    source: Parser, tiny: Encoder, tmp_path: Path
) -> None:
    source.save(tmp_path / "new")
    assert Parser.load(tmp_path / "new", encoder=tiny).layers == ("upos", "misc:NE")
    assert "upos" in (tmp_path / "new" / "README.md").read_text().lower()

    trees = Parser.train(map(untagged_tree, SOURCE[:5]), encoder=tiny, settings=SETTINGS)
    trees.save(tmp_path / "old")
    config = json.loads((tmp_path / "old" / "config.json").read_text())
    (tmp_path / "old" / "config.json").write_text(json.dumps({**config, "format": 2}))
    names = json.loads((tmp_path / "old" / "labels.json").read_text())["labels"]
    (tmp_path / "old" / "labels.json").write_text(json.dumps(names))
    assert load_folder(tmp_path / "old").inventory == trees.inventory
    loaded = Parser.load(tmp_path / "old", encoder=tiny)
    assert loaded.layers == ()
    (parsed,) = loaded.parse([Sentence.of(["the", "dog", "3", "."])])
    assert parsed.upos == ("X", "X", "NUM", "PUNCT")


def test_unannotated_words_are_not_scored_and_a_side_without_tags_has_no_accuracy() -> None:
    gold = Sentence.of(["a", "b"], heads=[2, 0], labels=["x", "root"], upos=["DET", "_"])
    system = Sentence.of(["a", "b"], heads=[2, 0], labels=["x", "root"], upos=["DET", "NOUN"])
    assert evaluate([gold], [system]).layers["upos"].words == 1
    assert evaluate([gold], [system]).upos == 100
    assert evaluate([gold], [untagged_tree(system)]).upos is None
    assert evaluate([untagged_tree(gold)], [system]).upos is None


def test_the_command_line_trains_layers_that_are_asked_for(
    tiny_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_conllu(SOURCE[:10], tmp_path / "train.conllu")
    common = [
        "--treebank",
        str(tmp_path / "train.conllu"),
        "--encoder",
        str(tiny_folder),
        "--train.epochs",
        "1",
        "--network.layers",
        "1,2,3",
    ]
    with pytest.raises(SystemExit) as done:
        app.meta(["train", *common, "--predict", "upos,misc:NE", "-o", str(tmp_path / "parser")])
    assert done.value.code in (0, None)
    assert load_folder(tmp_path / "parser").inventory["misc:NE"] == ("B-BIRD", "O")
    with pytest.raises(SystemExit) as failed:
        app.meta(["train", *common, "--predict", "feats:Case", "-o", str(tmp_path / "other")])
    assert failed.value.code == 1
    assert "the treebank has no feats:Case" in capsys.readouterr().err
    assert not (tmp_path / "other").exists()


def test_layers_are_added_with_no_encoder_but_the_parsers_own(
    source: Parser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tagged_twice = [tree.with_tree(tree.heads, tree.labels, layers={"xpos": tree.upos}) for tree in SOURCE[:10]]
    write_conllu(tagged_twice, tmp_path / "train.conllu")
    source.save(tmp_path / "parser")
    load, loaded = Encoder.load, list[str | Path]()

    def noted(name: str | Path, device: str | None, **options: Any) -> Encoder:
        loaded.append(name)
        return load(name, device, **options)

    monkeypatch.setattr(Encoder, "load", noted)
    call = ["train", "--parser", tmp_path / "parser", "--treebank", tmp_path / "train.conllu", "-o", tmp_path / "wider"]
    with pytest.raises(SystemExit) as failed:
        app.meta([str(word) for word in call])
    assert failed.value.code == 1
    assert "no layer to add is named" in capsys.readouterr().err
    with pytest.raises(SystemExit) as failed:
        app.meta([str(word) for word in [*call, "--predict", "xpos", "--network.lstm", 8]])
    assert failed.value.code == 1
    assert "stays as it is (leave out the settings of the network)" in " ".join(capsys.readouterr().err.split())
    with pytest.raises(SystemExit) as done:
        app.meta([str(word) for word in [*call, "--predict", "xpos", "--train.epochs", 1]])
    assert done.value.code in (0, None)
    assert load_folder(tmp_path / "wider").inventory["xpos"]
    assert loaded == [source.encoder.name]


def test_soft_distributions_of_tags_are_distributions(source: Parser) -> None:
    for tree in source.distributions(sentence.words for sentence in SOURCE[:5]):
        np.testing.assert_allclose(tree.distributions["upos"][1:].sum(-1), 1, atol=1e-3)
        assert not tree.distributions["upos"][0].any()


def test_what_is_written_can_be_read(source: Parser, tmp_path: Path) -> None:
    parsed = list(source.parse(map(untagged, TARGET), confidence=True))
    write_conllu(parsed, tmp_path / "out.conllu")
    assert [sentence.upos for sentence in read_conllu(tmp_path / "out.conllu")] == [one.upos for one in parsed]


def test_layers_of_the_encoder_are_not_trained_with_new_layers_alone(source: Parser) -> None:
    settings = replace(SETTINGS, train=replace(SETTINGS.train, encoder_layers=(1,)))
    trees = [tree for tree, _, _ in toy_pairs(3)]
    with pytest.raises(SubdpError, match="with new layers the encoder stays as it is"):
        source.with_layers(trees, ["xpos"], settings=settings)
