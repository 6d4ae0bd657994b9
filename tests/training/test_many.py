"""Many languages at once, and a parser made so as the start of adaptation to another."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from subdp import Alignment
from subdp import parser as parser_module
from subdp.encoder.batch import Words
from subdp.encoder.encoder import Encoder
from subdp.network.biaffine import Biaffine
from subdp.network.growth import new_network
from subdp.network.hub import MULTILINGUAL, SHIPPED, find_model
from subdp.parser import Parser
from subdp.projection.silver import Silver
from subdp.support.errors import SubdpError
from subdp.support.settings import Settings
from subdp.training import many as many_module
from subdp.training.adapting import share_of_other
from subdp.training.distilling import predicted
from subdp.training.examples import SoftExamples
from subdp.training.packed import Packed
from subdp.training.student import Student
from tests.grammar import toy_pairs, toy_silver
from tests.training.test_adapting import SETTINGS

pytestmark = pytest.mark.trains

PAIRS = [toy_pairs(40, seed=seed) for seed in (3, 4)]


@pytest.fixture(scope="module")
def source(tiny: Encoder) -> Parser:
    about = {"title": "toy", "licence": "CC0"}
    return Parser.train((tree for tree, _, _ in toy_pairs(40)), encoder=tiny, settings=SETTINGS, about=about)


@pytest.fixture(scope="module")
def silvers(source: Parser, tmp_path_factory: pytest.TempPathFactory) -> list[Silver]:
    return [toy_silver(source, pairs, tmp_path_factory.mktemp("silver")) for pairs in PAIRS]


@pytest.fixture(scope="module")
def many(source: Parser, silvers: list[Silver]) -> Parser:
    own = [tree.words for tree, _, _ in toy_pairs(20, seed=6)]
    return source.adapt_to_many(silvers, own, settings=SETTINGS, about={"title": "many", "licence": "CC0"})


@pytest.fixture
def shipped(source: Parser, many: Parser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder from which adaptation takes its multilingual parser, beside that of the parser it was made from."""
    source.save(tmp_path / "en")
    many.save(tmp_path / "multi")
    monkeypatch.setattr(parser_module, "SHIPPED", tmp_path / "en")
    monkeypatch.setattr(parser_module, "MULTILINGUAL", tmp_path / "multi")
    return tmp_path / "multi"


def test_other_languages_are_learnt_and_the_own_one_is_kept(source: Parser, many: Parser) -> None:
    own = [tree for tree, _, _ in toy_pairs(20, seed=7)]
    theirs = [tree for _, tree, _ in toy_pairs(20, seed=7)]
    assert many.evaluate(theirs).uas > source.evaluate(theirs).uas + 10
    assert many.evaluate(own).uas > source.evaluate(own).uas - 10
    assert many.about["adapted_on"] == {"pairs": 80, "languages": 2, "sentences": 20}


def test_the_card_names_languages_and_text(many: Parser, tmp_path: Path) -> None:
    many.save(tmp_path / "parser")
    card = (tmp_path / "parser" / "README.md").read_text()
    assert "projected from 80 sentence pairs in 2 languages and 20 sentences of the source language" in card


def test_labels_of_all_pairs_are_refused_since_they_are_not_kept_in_memory(
    source: Parser, silvers: list[Silver]
) -> None:
    with pytest.raises(SubdpError, match="too many to keep"):
        source.adapt_to_many(silvers, [], settings=replace(SETTINGS, losses=Settings.resolve(losses="paper").losses))


def test_adaptation_starts_on_the_way_to_the_multilingual_parser(
    source: Parser, many: Parser, silvers: list[Silver], shipped: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parser_module, "share_of_other", lambda *_: 0.75)
    one, other, start = (
        each.network.state_dict() for each in (source, many, source._start(silvers[0], SETTINGS.losses)[0])
    )
    for name, weight in start.items():
        torch.testing.assert_close(weight, one[name] / 4 + other[name] * 3 / 4)
    began = source.adapt(silvers[0], settings=SETTINGS).about["adapted_from"]
    assert began["title"] == "a mix of subdp's parsers, 25% English and 75% multilingual"
    assert began["adapted_from"]["title"] == "many"
    assert began["adapted_from"]["adapted_from"] == source.about
    monkeypatch.setattr(parser_module, "share_of_other", lambda *_: 1.0)
    assert source._start(silvers[0], SETTINGS.losses)[0].about["title"] == "subdp's multilingual parser"


@pytest.mark.parametrize(
    ("source_agrees", "other_agrees", "share"),
    [
        (0.4, 0.7, 1.0),
        (0.75, 0.75, 1 / 3),
        (1.0, 1.0, 0.0),
        (0.9, 0.5, 0.0),
        (0.4, 0.45, 0.5),
        (0.4, 0.51, 0.6),  # τ' = .02, and half of the .08 that .1 has more.
        (0.51, 0.4, 0.4),
        (0.4, 0.55, 1.0),
    ],
)
def test_the_start_is_the_nearer_to_a_parser_the_more_it_agrees_and_the_source_parser_comes_first(
    source: Parser,
    many: Parser,
    silvers: list[Silver],
    monkeypatch: pytest.MonkeyPatch,
    source_agrees: float,
    other_agrees: float,
    share: float,
) -> None:
    def agreeing(self: SoftExamples, network: Biaffine) -> torch.Tensor:
        return torch.arange(100) < 100 * (source_agrees if network is source.network else other_agrees)

    monkeypatch.setattr(SoftExamples, "agreeing", agreeing)
    found = share_of_other(source._student, many.network, silvers[0], SETTINGS.losses)
    assert found == pytest.approx(share, abs=1e-6)


def test_in_its_own_language_the_source_parser_is_the_start(source: Parser, many: Parser, tmp_path: Path) -> None:
    own = [(tree, tree, Alignment.of((at, at) for at in range(len(tree)))) for tree, _, _ in PAIRS[0]]
    silver = toy_silver(source, own, tmp_path)
    assert share_of_other(source._student, many.network, silver, SETTINGS.losses) < 0.05


def test_where_projection_chose_no_head_the_start_is_half_way(source: Parser, many: Parser, tmp_path: Path) -> None:
    silver = toy_silver(source, [(tree, other, Alignment.of([])) for tree, other, _ in PAIRS[0]], tmp_path)
    assert share_of_other(source._student, many.network, silver, SETTINGS.losses) == 0.5


def test_a_teacher_that_knows_other_languages_is_trusted_more_for_the_same_agreement(
    source: Parser, silvers: list[Silver]
) -> None:
    examples = SoftExamples(source.vectors.stored, silvers[0], np.arange(len(silvers[0])), SETTINGS.losses)
    plain, more = (examples.taught_by(source.network, multilingual)[0].teacher for multilingual in (False, True))
    assert plain is not None
    assert more is not None
    torch.testing.assert_close(plain.trust["arcs"], (2 * more.trust["arcs"] - 1).clamp(min=0))
    assert (more.trust["arcs"] > plain.trust["arcs"]).any()


def test_in_a_second_round_the_source_parser_still_says_what_text_of_its_language_is(
    source: Parser, many: Parser, silvers: list[Silver], tiny: Encoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Biaffine] = []

    def recorded(teacher: Student, text: list[Words]) -> list[Packed]:
        asked.append(teacher.network)
        return predicted(teacher, text)

    monkeypatch.setattr(many_module, "predicted", recorded)
    source.save(tmp_path / "source")
    elsewhere = replace(Parser.load(tmp_path / "source", encoder=tiny), store=None)  # With a store of its own.
    own = [tree.words for tree, _, _ in toy_pairs(20, seed=8)]
    twice = many.adapt_to_many(silvers, own, source=elsewhere, settings=SETTINGS)
    assert asked == [elsewhere.network]
    assert twice.about["adapted_from"] == many.about
    other = source.with_values({**source.inventory, "labels": (*source.label_names, "new")})
    with pytest.raises(SubdpError, match="other labels"):
        many.adapt_to_many(silvers, own, source=other, settings=SETTINGS)


def test_a_source_parser_that_is_fully_trusted_is_the_start_itself(
    source: Parser, silvers: list[Silver], shipped: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parser_module, "share_of_other", lambda *_: 0.0)
    assert source._start(silvers[0], SETTINGS.losses) == (source, 0)


def test_it_starts_from_the_source_parser_where_the_settings_say_so(
    source: Parser, silvers: list[Silver], shipped: Path
) -> None:
    settings = replace(SETTINGS, losses=replace(SETTINGS.losses, start="source"))
    assert source.adapt(silvers[0], settings=settings).about["adapted_from"] == source.about
    assert Settings.resolve(losses="paper").losses.start == "source"


def test_it_starts_from_a_source_parser_that_the_multilingual_one_was_not_made_from(
    source: Parser, silvers: list[Silver], shipped: Path
) -> None:
    other = source.untrained(1)
    assert other._start(silvers[0], SETTINGS.losses) == (other, 0)
    small = replace(source.config, features=12)
    smaller = replace(source, network=new_network(small, source.encoder, source.inventory, seed=1), config=small)
    assert smaller._start(silvers[0], SETTINGS.losses) == (smaller, 0), "one of another size"


def test_values_that_only_the_source_parser_has_stay_as_good_as_ruled_out(
    source: Parser, silvers: list[Silver], shipped: Path
) -> None:
    wider = source.with_values({**source.inventory, "labels": (*source.label_names, "new")})
    start, _ = wider._start(silvers[0], SETTINGS.losses)
    before, after = (each.network.state_dict()["scorers.labels.weight"] for each in (wider, start))
    assert start is not wider
    assert torch.equal(before[-1], after[-1])
    assert not torch.equal(before[:-1], after[:-1])


def test_a_parser_with_an_added_layer_is_its_own_start(source: Parser, silvers: list[Silver], shipped: Path) -> None:
    wider = source.with_values({**source.inventory, "misc:NE": ("O", "B-NE")})
    assert wider._start(silvers[0], SETTINGS.losses) == (wider, 0)


def test_training_that_was_interrupted_is_not_resumed_from_another_start(
    source: Parser, silvers: list[Silver], shipped: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "training"
    folder.mkdir()
    source.adapt(silvers[0], settings=SETTINGS, folder=folder)
    again = source.adapt(silvers[0], settings=SETTINGS, folder=folder)
    assert again.about["adapted_from"]["adapted_from"]["title"] == "many"
    replace(source.untrained(2), about={"licence": "CC0"}).save(shipped)
    with pytest.raises(SubdpError, match="cannot be resumed"):
        source.adapt(silvers[0], settings=SETTINGS, folder=folder)


def test_the_multilingual_parser_that_ships_was_made_from_the_english_one_that_ships() -> None:
    assert find_model("multi") == MULTILINGUAL
    english, multilingual = (json.loads((folder / "config.json").read_text()) for folder in (SHIPPED, MULTILINGUAL))
    assert multilingual["about"]["adapted_from"]["adapted_from"] == english["about"], "in two rounds"
    assert all(multilingual[key] == english[key] for key in ("format", "encoder", "network"))
    assert (SHIPPED / "labels.json").read_bytes() == (MULTILINGUAL / "labels.json").read_bytes()
