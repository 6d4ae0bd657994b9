"""The network: beside torch's own BiLSTM, whatever the padding, and with dropout that does not depend on the cores."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from subdp.encoder.batch import Batch
from subdp.encoder.encoder import Encoder
from subdp.encoder.feature_store import FeatureStore
from subdp.network.biaffine import Biaffine
from subdp.network.scorers import HeadScorer
from subdp.projection.substructures import Inventory, inventory_of
from subdp.support.settings import NetworkConfig, TrainConfig
from subdp.training.examples import TreeExamples
from subdp.training.ranks import Ranks
from subdp.training.step import Learner
from tests.grammar import toy_pairs

CONFIG = NetworkConfig(features=7, lstm=6, lstm_layers=2, arc=5, label=4, dropout=0.4)
LAYERS, HIDDEN = 3, 8
INVENTORY: Inventory = {"arcs": (), "labels": tuple("abcde")}


def network(layers: int = LAYERS, hidden: int = HIDDEN, inventory: Inventory = INVENTORY) -> Biaffine:
    """With random weights everywhere: new ones are zero where the scores are made, and then so are most gradients."""
    torch.manual_seed(3)
    made = Biaffine(CONFIG, layers, hidden, inventory)
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=0.3)
    return made


def arc_layer(made: Biaffine) -> nn.Module:
    """A layer that reads the states of the BiLSTM."""
    scorer = made.scorers["arcs"]
    assert isinstance(scorer, HeadScorer)
    return scorer.head


def batch_of(*lengths: int) -> Batch:
    """Sentences of random vectors, one subword a word; a word's vectors depend on its number alone."""
    torch.manual_seed(4)
    every = torch.randn(100, LAYERS, HIDDEN).half()
    first = torch.zeros(len(lengths), max(lengths), dtype=torch.long)
    for row, length in enumerate(lengths):
        first[row, :length] = torch.arange(length) + 10 * length
    return Batch(every, first, first, torch.tensor(lengths))


def test_the_two_directions_are_torchs_bidirectional_lstm_on_packed_sequences() -> None:
    made, lengths = network(), torch.tensor([5, 1, 3])
    oracle = nn.LSTM(7, 6, 2, batch_first=True, bidirectional=True)
    for layer in range(2):
        for suffix, lstm in (("", made.forward_lstm[layer]), ("_reverse", made.backward_lstm[layer])):
            for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
                getattr(oracle, f"{name}_l{layer}{suffix}").data = getattr(lstm, f"{name}_l0").data
    seen: list[Tensor] = []
    made.features.register_forward_hook(lambda _, __, found: seen.append(torch.relu(found)))
    arc_layer(made).register_forward_hook(lambda _, given, __: seen.append(given[0]))
    made(batch_of(*lengths.tolist()))
    packed = pack_padded_sequence(seen[0], lengths + 1, batch_first=True, enforce_sorted=False)
    expected, _ = pad_packed_sequence(oracle(packed)[0], batch_first=True)
    inside = torch.arange(6) <= lengths[:, None]
    assert torch.allclose(seen[1][inside], expected[inside], atol=1e-5)


def test_a_sentence_scores_the_same_alone_and_beside_longer_ones() -> None:
    made = network()
    together = made(batch_of(2, 6, 4))
    for row, length in enumerate((2, 6, 4)):
        alone = made(batch_of(length))
        end = length + 1
        assert torch.allclose(together.arcs[row, :end, :end], alone.arcs[0], atol=1e-5)
        assert torch.allclose(together.labels.all()[row, :end, :end], alone.labels.all()[0], atol=1e-5)
        assert (together.arcs[row, :end, end:].exp() == 0).all()


def test_dropout_keeps_the_mean_and_has_one_mask_for_all_words_but_between_layers() -> None:
    made = network()
    drawn = made.draw_dropout(2000, 5)
    assert [tuple(mask.shape) for mask in drawn[1:5]] == [(2000, 1, 7), (2000, 6, 12), (2000, 1, 12), (2000, 1, 5)]
    for mask in drawn:
        assert sorted(set(mask.flatten().tolist())) == pytest.approx([0, 1 / 0.6])
        assert mask.mean().item() == pytest.approx(1, abs=0.05)
    seen: list[Tensor] = []
    arc_layer(made).register_forward_hook(lambda _, given, __: seen.append(given[0] == 0))
    made(batch_of(5, 5), [mask[:2] for mask in drawn])
    assert (seen[0] == seen[0][:, :1]).all()
    assert seen[0].any()
    assert not seen[0].all()


@pytest.fixture(params=[1, 2, 3])
def threads(request: pytest.FixtureRequest) -> Iterator[int]:
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


def test_gradients_are_the_same_however_many_cores_share_a_batch(threads: int, tiny: Encoder) -> None:
    sentences = [source for source, _, _ in toy_pairs(40)]
    store = FeatureStore(tiny)
    store.add(sentence.words for sentence in sentences)
    examples = TreeExamples(store.batch, sentences, inventory_of(sentences))
    made = network(len(store.layers), tiny.hidden, examples.inventory)
    torch.manual_seed(2)
    words, indices = sum(examples.lengths), list(range(40))
    loss = Learner(made, examples, TrainConfig(clip=1e9)).step(Ranks(), indices, decay=0.0)
    torch.manual_seed(2)
    whole = examples.loss(made, indices, made.draw_dropout(40, max(examples.lengths)))
    assert loss == pytest.approx(whole.item(), rel=1e-5)
    for found, expected in zip(
        made.parameters(), torch.autograd.grad(whole / words, list(made.parameters())), strict=True
    ):
        assert found.grad is not None
        assert torch.allclose(found.grad, expected, rtol=1e-4, atol=1e-5)
        assert found.grad.stride() == found.stride()  # Adam's fused step reads both as they lie in memory.
