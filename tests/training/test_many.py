"""Many languages at once, and a parser made so as the start of adaptation to another."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from subdp import parser as parser_module
from subdp.encoder.encoder import Encoder
from subdp.network.growth import new_network
from subdp.network.hub import MULTILINGUAL, SHIPPED, find_model
from subdp.parser import Parser
from subdp.projection.silver import Silver
from subdp.support.errors import SubdpError
from subdp.support.settings import Settings
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


def test_adaptation_starts_half_way_to_the_multilingual_parser(
    source: Parser, many: Parser, silvers: list[Silver], shipped: Path
) -> None:
    start = source._start(silvers[0], SETTINGS.losses)
    one, other, mean = (each.network.state_dict() for each in (source, many, start))
    for name, weight in mean.items():
        torch.testing.assert_close(weight, (one[name] + other[name]) / 2)
    adapted = source.adapt(silvers[0], settings=SETTINGS)
    assert adapted.about["adapted_from"]["adapted_from"]["title"] == "many"
    assert adapted.about["adapted_from"]["adapted_from"]["adapted_from"] == source.about


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
    assert other._start(silvers[0], SETTINGS.losses) is other
    small = replace(source.config, features=12)
    smaller = replace(source, network=new_network(small, source.encoder, source.inventory, seed=1), config=small)
    assert smaller._start(silvers[0], SETTINGS.losses) is smaller, "one of another size"


def test_it_starts_from_the_source_parser_where_that_agrees_better_with_the_silver(
    many: Parser, silvers: list[Silver], shipped: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    many.save(shipped.with_name("many"))
    monkeypatch.setattr(parser_module, "SHIPPED", shipped.with_name("many"))
    network = copy.deepcopy(many.network)
    network.state_dict()["scorers.arcs.weight"].mul_(-3)  # So the mean finds the likeliest heads least likely.
    replace(many, network=network).save(shipped)
    assert many._start(silvers[0], SETTINGS.losses) is many


def test_values_that_only_the_source_parser_has_stay_as_good_as_ruled_out(
    source: Parser, silvers: list[Silver], shipped: Path
) -> None:
    wider = source.with_values({**source.inventory, "labels": (*source.label_names, "new")})
    start = wider._start(silvers[0], SETTINGS.losses)
    before, after = (each.network.state_dict()["scorers.labels.weight"] for each in (wider, start))
    assert start is not wider
    assert torch.equal(before[-1], after[-1])
    assert not torch.equal(before[:-1], after[:-1])


def test_a_parser_with_an_added_layer_is_its_own_start(source: Parser, silvers: list[Silver], shipped: Path) -> None:
    wider = source.with_values({**source.inventory, "misc:NE": ("O", "B-NE")})
    assert wider._start(silvers[0], SETTINGS.losses) is wider


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
    assert multilingual["about"]["adapted_from"] == english["about"]
    assert all(multilingual[key] == english[key] for key in ("format", "encoder", "network"))
    assert (SHIPPED / "labels.json").read_bytes() == (MULTILINGUAL / "labels.json").read_bytes()
