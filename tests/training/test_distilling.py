"""Distilling: a student that reads embeddings alone learns what its teacher predicts, and is a parser like others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from subdp.cli.main import app
from subdp.corpus.treebank import Sentence, read_conllu, write_conllu
from subdp.encoder.encoder import Encoder
from subdp.parser import Parser
from subdp.support.errors import SubdpError
from subdp.support.settings import NetworkConfig, Settings, TrainConfig
from subdp.training import distilling
from subdp.training.distilling import made_up, predicted
from subdp.training.packed import Packed
from subdp.training.student import Student
from tests.grammar import toy_pairs

pytestmark = pytest.mark.trains

SIZES: Any = {"features": 32, "lstm": 24, "arc": 24, "label": 16, "dropout": 0.1}
TEACHER = replace(
    Settings.resolve(),
    network=NetworkConfig(lstm_layers=2, **SIZES),
    train=TrainConfig(epochs=30, batch_words=100, lr=5e-3),
)
STUDENT = replace(TEACHER, network=NetworkConfig(layers=(0,), lstm_layers=1, **SIZES))
TEXT = [tree.words for tree, _, _ in toy_pairs(80, seed=3)]
GOLD = [tree for tree, _, _ in toy_pairs(20, seed=9)]


@pytest.fixture(scope="module")
def teacher(tiny: Encoder) -> Parser:
    trees = [tree.with_tree(tree.heads, tree.labels, layers={"upos": _tags(tree)}) for tree, _, _ in toy_pairs(60)]
    return Parser.train(trees, encoder=tiny, settings=TEACHER, about={"title": "Toys", "licence": "MIT"})


def _tags(tree: Sentence) -> list[str]:
    return [{"det": "DET", "root": "VERB", "advmod": "ADV"}.get(label, "NOUN") for label in tree.labels]


@pytest.fixture(scope="module")
def small(teacher: Parser) -> Parser:
    return teacher.distill(TEXT, settings=STUDENT)


def test_the_student_learns_trees_and_tags_from_words_alone(teacher: Parser, small: Parser) -> None:
    scores, theirs = small.evaluate(GOLD), teacher.evaluate(GOLD)
    assert scores.las > theirs.las - 5 > 85
    (sentence,) = small("the dog sees a bird today")
    assert sentence.upos == ("DET", "NOUN", "VERB", "DET", "NOUN", "ADV")
    assert small.inventory == teacher.inventory


def test_no_layer_of_the_encoder_runs(small: Parser, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: Any, **__: Any) -> None:
        raise AssertionError("a layer ran")

    for block in small.encoder.blocks:
        monkeypatch.setattr(block, "forward", never)
    assert len(small("the dog sees a bird")) == 1


def test_it_is_a_model_folder_like_any_other(small: Parser, tiny: Encoder, tmp_path: Path) -> None:
    small.save(tmp_path / "small")
    again = Parser.load(tmp_path / "small", encoder=tiny)
    assert again.config.layers == (0,)
    words = [tree.words for tree in GOLD]
    assert [sentence.conllu for sentence in again(words)] == [sentence.conllu for sentence in small(words)]
    card = (tmp_path / "small" / "README.md").read_text()
    assert "Trained to predict what a larger parser predicts on" in card
    assert "- The larger parser: Toys (licence: MIT)." in card


def test_annotation_is_not_learnt_from(teacher: Parser) -> None:
    once = replace(STUDENT, train=replace(STUDENT.train, epochs=1))
    labels = [["root", *["dep"] * (len(words) - 1)] for words in TEXT]
    wrong = [Sentence.of(words, heads=range(len(words)), labels=own) for words, own in zip(TEXT, labels, strict=True)]
    assert teacher.distill(wrong, settings=once).fingerprint == teacher.distill(TEXT, settings=once).fingerprint


def test_repeated_and_overlong_sentences_are_left_out(teacher: Parser) -> None:
    once = replace(STUDENT, train=replace(STUDENT.train, epochs=1))
    made = teacher.distill([*TEXT, *TEXT, ["dog"] * 151, ["dog"] * 150], settings=once)
    assert made.about["distilled_on"]["sentences"] == len(set(TEXT)) + 1
    with pytest.raises(SubdpError, match="no text to learn from"):
        teacher.distill([["dog"] * 151], settings=once)


def test_layers_of_the_encoder_to_train_are_refused_before_work(
    teacher: Parser, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def unread() -> Iterator[list[str]]:
        raise AssertionError("no text is to be read")
        yield []

    with pytest.raises(SubdpError, match="the encoder of a distilled parser is not trained"):
        teacher.distill(unread(), settings=replace(STUDENT, train=replace(STUDENT.train, encoder_layers=(2,))))
    (tmp_path / "a.txt").write_text("the dog sees a bird")
    text = ["--text", tmp_path / "a.txt", "-o", tmp_path / "small"]
    assert call("distill", tmp_path / "none", *text, "--train.encoder-layers", "2") == 1
    assert "leave out train.encoder-layers" in capsys.readouterr().err
    assert not (tmp_path / "small.training").exists()


def test_what_the_student_is_fitted_to_is_what_the_teacher_predicts(teacher: Parser) -> None:
    (packed,) = predicted(Student(teacher.network, teacher.vectors.fresh, teacher.inventory, ""), TEXT[:1])
    (soft,) = teacher.distributions(TEXT[:1])
    for (word, head), mass in zip(packed.places["arcs"].tolist(), packed.masses["arcs"].tolist(), strict=True):
        assert mass == pytest.approx(soft.arcs[word, head], rel=1e-2)
    for (word, head, label), mass in zip(
        packed.places["labels"].tolist(), packed.masses["labels"].tolist(), strict=True
    ):
        assert mass == pytest.approx(soft.arcs[word, head] * soft.labels[word, head, label], rel=1e-2)
    for (word, tag), mass in zip(packed.places["upos"].tolist(), packed.masses["upos"].tolist(), strict=True):
        assert mass == pytest.approx(soft.distributions["upos"][word, tag], rel=1e-2)
    for name, masses in packed.masses.items():
        assert float(masses.astype(np.float32).sum()) == pytest.approx(len(TEXT[0]), rel=1e-2), name


def test_a_killed_distillation_is_resumed_and_ends_in_the_same_bytes(teacher: Parser, tmp_path: Path) -> None:
    two, four = (replace(STUDENT, train=replace(STUDENT.train, epochs=epochs)) for epochs in (2, 4))
    teacher.distill(TEXT, settings=two, folder=tmp_path)
    resumed = teacher.distill(TEXT, settings=four, folder=tmp_path)
    assert resumed.fingerprint == teacher.distill(TEXT, settings=four).fingerprint
    with pytest.raises(SubdpError, match="belongs to another training"):
        teacher.untrained(7).distill(TEXT, settings=four, folder=tmp_path)


def call(*words: object) -> int:
    with pytest.raises(SystemExit) as done:
        app.meta([str(word) for word in words])
    return int(done.value.code or 0)


def test_the_command_reads_text_conllu_and_bitext_and_scores_both(
    teacher: Parser, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    teacher.save(tmp_path / "big")
    (tmp_path / "a.txt").write_text("".join(f"{' '.join(words)}.\n" for words in TEXT[:30]))
    (tmp_path / "b.tsv").write_text("".join(f"something else\t{' '.join(words)}\n" for words in TEXT[30:60]))
    write_conllu((Sentence.of(words) for words in TEXT[60:]), tmp_path / "c.conllu")
    write_conllu(GOLD, tmp_path / "gold.conllu")
    files = [tmp_path / name for name in ("a.txt", "b.tsv", "c.conllu")]
    small = ["--train.epochs", 2, "--network.lstm", 8, "--test", tmp_path / "gold.conllu", "-o", tmp_path / "small"]
    assert call("distill", tmp_path / "big", "--text", *files, *small) == 0
    theirs, ours = capsys.readouterr().out.splitlines()
    assert theirs.startswith(f"test, {tmp_path / 'big'}: UAS")
    assert ours.startswith("test: UAS")
    assert not (tmp_path / "small.training").exists()
    assert call("parse", tmp_path / "a.txt", "--parser", tmp_path / "small", "-o", tmp_path / "out.conllu") == 0
    assert len(list(read_conllu(tmp_path / "out.conllu"))) == 30
    given = [tmp_path / "a.txt", "--parser", tmp_path / "small", "--jobs", 2]
    assert call("annotate", *given, "-o", tmp_path / "drafts.conllu") == 0
    assert len(list(read_conllu(tmp_path / "drafts.conllu"))) == 30
    assert call("distill", tmp_path / "big", "--text", tmp_path / "none.txt", "-o", tmp_path / "other") == 1
    assert "none.txt" in capsys.readouterr().err
    (tmp_path / "bad.conllu").write_text("1\tword\n\n")
    assert call("distill", tmp_path / "big", "--text", tmp_path / "bad.conllu", "-o", tmp_path / "other") == 1
    assert "bad.conllu:1:" in capsys.readouterr().err
    assert not (tmp_path / "other.training").exists()


@pytest.mark.parametrize("name", ["upos", "labels"])
def test_words_are_replaced_by_others_of_the_same_tag_or_relation(name: str) -> None:
    kinds = [0, 1, 2, 0, 1]
    places = [[word, kind] if name == "upos" else [word, 0, kind] for word, kind in enumerate(kinds, 1)]
    unlikely = [[*place[:-1], 3] for place in places]
    masses = np.array([0.6, 0.4] * 5, np.float16)
    both = np.array([one for pair in zip(places, unlikely, strict=True) for one in pair], np.int16)
    words = [tuple(f"{kind}-{sentence}-{at}" for at, kind in enumerate(kinds)) for sentence in range(100)]
    new = made_up([Packed(one, {name: both}, {name: masses}) for one in words], seed=1)
    assert all([int(word[0]) for word in sentence] == kinds for sentence in new)
    assert {word for sentence in new for word in sentence} <= {word for sentence in words for word in sentence}
    assert len(set(new) - set(words)) > 100, "two of each, but for those that stay as they are"


def test_of_much_text_less_is_made_up(monkeypatch: pytest.MonkeyPatch) -> None:
    places, masses = np.array([[word, 0] for word in range(1, 11)], np.int16), np.ones(10, np.float16)
    words = [tuple(f"dog{sentence}{letter}" for letter in "abcdefghij") for sentence in range(100)]
    taught = [Packed(one, {"upos": places}, {"upos": masses}) for one in words]
    monkeypatch.setattr(distilling, "_ENOUGH", 1209)
    assert len(made_up(taught, seed=1)) == 20, "209 words more are 20 sentences"
    monkeypatch.setattr(distilling, "_ENOUGH", 1009)
    assert made_up(taught, seed=1) == []


def test_made_up_sentences_depend_on_the_seed_alone(teacher: Parser) -> None:
    taught = predicted(Student(teacher.network, teacher.vectors.fresh, teacher.inventory, ""), TEXT)
    assert made_up(taught, seed=1) == made_up(taught, seed=1) != made_up(taught, seed=2)
