"""An encoder of which some layers are trained: gradients, checkpoints, averages and the model folder take it along."""

from __future__ import annotations

import copy
import pickle
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from subdp.encoder.encoder import Encoder
from subdp.encoder.trainable import TrainableEncoder, encoder_batch
from subdp.parser import Parser
from subdp.projection.silver import Silver
from subdp.support.errors import SubdpError
from subdp.support.settings import LossConfig, NetworkConfig, Settings, TrainConfig
from subdp.training.examples import TreeExamples
from subdp.training.loop import CHECKPOINT
from subdp.training.ranks import Ranks
from subdp.training.step import Learner
from tests.grammar import toy_pairs, toy_silver

pytestmark = pytest.mark.trains

SETTINGS = replace(
    Settings.resolve(),
    network=NetworkConfig(features=24, lstm=16, lstm_layers=2, arc=16, label=12, dropout=0.1),
    train=TrainConfig(epochs=4, batch_words=100, lr=5e-3),
    adapt=TrainConfig(epochs=3, batch_words=100, lr=5e-3, average=0.5),
)
LAST = 3  # of the tiny encoder
TRAINED = replace(
    SETTINGS,
    adapt=replace(SETTINGS.adapt, encoder_layers=(LAST,), encoder_lr=5e-3),
    losses=LossConfig(prior_pairs=0),  # So little silver might teach nothing that is kept.
)
SENTENCES = [("the", "dog"), ("verschwundenen", "a", "horse", "today")]


@pytest.fixture(scope="module")
def source(tiny: Encoder) -> Parser:
    return Parser.train((tree for tree, _, _ in toy_pairs(30)), encoder=tiny, settings=SETTINGS)


@pytest.fixture(scope="module")
def silver(source: Parser, tmp_path_factory: pytest.TempPathFactory) -> Silver:
    return toy_silver(source, toy_pairs(30, seed=3), tmp_path_factory.mktemp("silver"))


def test_before_training_it_gives_what_the_frozen_encoder_gives(tiny: Encoder) -> None:
    layers = range(tiny.layers + 1)
    frozen, trained = encoder_batch(tiny, layers, SENTENCES), TrainableEncoder(tiny, layers, [tiny.layers])(SENTENCES)
    torch.testing.assert_close(trained.vectors.detach(), frozen.vectors.float(), atol=2e-3, rtol=2e-3)
    for name in ("first", "last", "lengths"):
        assert torch.equal(getattr(trained, name), getattr(frozen, name))


def test_gradients_reach_the_trained_layer_and_no_other(tiny: Encoder) -> None:
    encoder = TrainableEncoder(tiny, range(tiny.layers + 1), [tiny.layers])
    encoder(SENTENCES).vectors.square().sum().backward()
    assert {name.split(".")[1] for name, _ in encoder.named_parameters()} == {str(tiny.layers)}
    assert all(parameter.grad is not None for parameter in encoder.parameters())
    assert not any(parameter.requires_grad for parameter in tiny.model.parameters())


def test_adapting_trains_it_leaves_the_encoder_as_it_was_and_the_folder_holds_it(
    source: Parser, silver: Silver, tiny: Encoder, tmp_path: Path
) -> None:
    before = {name: tensor.clone() for name, tensor in tiny.model.state_dict().items()}
    adapted = source.adapt(silver, settings=TRAINED)
    assert all(torch.equal(tensor, before[name]) for name, tensor in tiny.model.state_dict().items())
    assert adapted.trained_encoder is not None
    block = tiny.blocks[tiny.layers - 1].state_dict()
    moved = adapted.trained_encoder.blocks[str(tiny.layers)].state_dict()
    assert any(not torch.equal(tensor, block[name]) for name, tensor in moved.items())

    adapted.save(tmp_path / "parser")
    loaded = Parser.load(tmp_path / "parser", encoder=tiny)
    assert loaded.fingerprint == adapted.fingerprint
    gold = [translation for _, translation, _ in toy_pairs(20, seed=9)]
    assert loaded.evaluate(gold) == adapted.evaluate(gold)


def test_a_training_that_is_resumed_ends_in_the_same_encoder(source: Parser, silver: Silver, tmp_path: Path) -> None:
    whole = source.adapt(silver, settings=TRAINED, held_out=0.0)
    short = replace(TRAINED, adapt=replace(TRAINED.adapt, epochs=1))
    source.adapt(silver, settings=short, held_out=0.0, folder=tmp_path)
    assert (tmp_path / CHECKPOINT).exists()
    resumed = source.adapt(silver, settings=TRAINED, held_out=0.0, folder=tmp_path)
    assert resumed.fingerprint == whole.fingerprint


def test_training_it_further_starts_from_what_it_has_learnt(source: Parser, silver: Silver) -> None:
    adapted = source.adapt(silver, settings=TRAINED)
    further = replace(TRAINED, adapt=replace(TRAINED.adapt, encoder_layers=(1,), epochs=1, lr=1e-9, encoder_lr=1e-9))
    again = adapted.adapt(silver, settings=further)
    assert adapted.trained_encoder is not None
    assert again.trained_encoder is not None
    assert again.trained_encoder.trained == (1, LAST)
    before = adapted.trained_encoder.blocks[str(LAST)].state_dict()
    for name, tensor in again.trained_encoder.blocks[str(LAST)].state_dict().items():
        torch.testing.assert_close(tensor, before[name], atol=1e-5, rtol=0)


def test_a_source_parser_can_train_it_too(tiny: Encoder) -> None:
    settings = replace(SETTINGS, train=replace(SETTINGS.train, epochs=1, encoder_layers=(LAST,)))
    parser = Parser.train((tree for tree, _, _ in toy_pairs(10)), encoder=tiny, settings=settings)
    assert parser.trained_encoder is not None
    block = tiny.blocks[LAST - 1].state_dict()
    moved = parser.trained_encoder.blocks[str(LAST)].state_dict()
    assert any(not torch.equal(tensor, block[name]) for name, tensor in moved.items())


def test_a_layer_that_the_network_does_not_read_cannot_be_trained(tiny: Encoder) -> None:
    with pytest.raises(SubdpError, match=f"layer {LAST} of the encoder cannot be trained"):
        TrainableEncoder(tiny, [0, 1], [LAST])


def test_another_process_gets_what_was_trained_of_it(tiny: Encoder) -> None:
    encoder = TrainableEncoder(tiny, range(tiny.layers + 1), [tiny.layers])
    with torch.no_grad():
        for parameter in encoder.parameters():
            parameter.add_(0.1)
    for trainable in (True, False):
        twin = pickle.loads(pickle.dumps(encoder.requires_grad_(trainable)))
        assert torch.equal(twin(SENTENCES).vectors, encoder(SENTENCES).vectors)
        assert {parameter.requires_grad for parameter in twin.parameters()} == {trainable}


def test_another_rank_trains_on_from_where_this_one_stands(tiny: Encoder, source: Parser) -> None:
    encoder = TrainableEncoder(tiny, range(tiny.layers + 1), [tiny.layers])
    trees = [tree for tree, _, _ in toy_pairs(6)]
    examples = TreeExamples(encoder, trees, source.inventory)
    learner = Learner(copy.deepcopy(source.network), examples, TRAINED.adapt)
    learner.step(Ranks(), [0, 1], decay=1.0)
    twin = pickle.loads(pickle.dumps(learner))
    for one in (learner, twin):
        torch.manual_seed(1)
        one.step(Ranks(), [2, 3], decay=1.0)
    for (name, parameter), other in zip(learner.trained.named_parameters(), twin.trained.parameters(), strict=True):
        torch.testing.assert_close(other, parameter, msg=name)
    assert any(name.startswith("batcher.") for name in twin.optimizer.moments)
