"""The training loop: every word once an epoch, the same bytes from the same seed, and no harm from being killed."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import subdp.training.loop
import subdp.training.step
from subdp.encoder.batch import batches
from subdp.encoder.encoder import Encoder
from subdp.parser import Parser
from subdp.support.errors import SubdpError
from subdp.support.settings import NetworkConfig, Settings, TrainConfig
from subdp.training.examples import TreeExamples
from subdp.training.loop import CHECKPOINT, METRICS
from subdp.training.step import _clip
from tests.grammar import toy_pairs

pytestmark = pytest.mark.trains

NETWORK = NetworkConfig(features=24, lstm=16, lstm_layers=2, arc=16, label=12, dropout=0.1)


@given(st.lists(st.integers(1, 30), max_size=60), st.integers(1, 100), st.integers(0, 5))
def test_every_example_is_in_exactly_one_batch_and_no_batch_is_too_large(
    lengths: list[int], words: int, seed: int
) -> None:
    found = list(batches(lengths, words, seed))
    assert sorted(index for batch in found for index in batch) == list(range(len(lengths)))
    for batch in found:
        assert len(batch) == 1 or len(batch) * max(lengths[index] for index in batch) <= words
    assert found == list(batches(lengths, words, seed))


def train(
    encoder: Encoder,
    folder: Path | None = None,
    *,
    seed: int = 1,
    epochs: int = 4,
    average: float = 0.9,
    batch_words: int = 40,
) -> Parser:
    """Trained without held-out trees, so that the last epoch is kept: which one is best may hang on rounding."""
    config = TrainConfig(epochs=epochs, batch_words=batch_words, average=average, lr=0.02)
    settings = replace(Settings.resolve(), network=NETWORK, train=config)
    trees = [source for source, _, _ in toy_pairs(30)]
    return Parser.train(trees, encoder=encoder, settings=settings, seed=seed, folder=folder)


def test_the_same_seed_gives_the_same_bytes_and_another_seed_others(tiny: Encoder) -> None:
    first, again, other = train(tiny), train(tiny), train(tiny, seed=2)
    assert first.fingerprint == again.fingerprint
    assert first.fingerprint != other.fingerprint


@pytest.mark.parametrize("scores", [[1.0, 3.0, 2.0], [3.0, 1.0, 2.0], [1.0, 2.0, 3.0]])
def test_the_epoch_that_does_best_on_what_was_held_out_is_kept(
    tiny: Encoder, tmp_path: Path, scores: list[float]
) -> None:
    best = scores.index(3.0) + 1
    expected = train(tiny, epochs=best)
    parser, given = train(tiny, epochs=1).untrained(1), iter(scores)
    examples = TreeExamples(parser.vectors.stored, [source for source, _, _ in toy_pairs(30)], parser.inventory)
    config = TrainConfig(epochs=3, batch_words=40, average=0.9, lr=0.02)
    history = subdp.training.loop.train(
        parser.network, examples, config, seed=1, held_out=lambda _: next(given), folder=tmp_path
    )
    assert (history.epoch, history.best_epoch, history.best) == (3, best, 3.0)
    assert parser.fingerprint == expected.fingerprint
    resumed = parser.untrained(2)
    again = subdp.training.loop.train(resumed.network, examples, config, seed=1, folder=tmp_path)
    assert (again.best_epoch, resumed.fingerprint) == (best, expected.fingerprint), "a checkpoint holds the best too"


def test_a_training_that_is_resumed_from_ends_in_the_same_bytes(tiny: Encoder, tmp_path: Path) -> None:
    whole = train(tiny)
    train(tiny, tmp_path, epochs=2)
    assert train(tiny, tmp_path).fingerprint == whole.fingerprint
    lines = [json.loads(line) for line in (tmp_path / METRICS).read_text().splitlines()]
    assert [line["epoch"] for line in lines] == [1, 2, 3, 4]
    assert lines[-1]["loss"] < lines[0]["loss"]


def test_a_training_with_another_seed_or_on_other_sentences_is_not_resumed(tiny: Encoder, tmp_path: Path) -> None:
    parser = train(tiny, tmp_path, epochs=1)
    refused = (
        rf"{CHECKPOINT}: cannot be resumed from: its data, encoder or seed was another .it belongs to another training"
    )
    with pytest.raises(SubdpError, match=refused):
        train(tiny, tmp_path, seed=2)
    trees = [source for source, _, _ in toy_pairs(30)]
    corrected = [trees[0].with_tree(trees[0].heads, ["dep", *trees[0].labels[1:]]), *trees[1:]]
    for other in (trees[:29], corrected):
        examples = TreeExamples(parser.vectors.stored, other, parser.inventory)
        with pytest.raises(SubdpError, match=refused):
            subdp.training.loop.train(parser.network, examples, TrainConfig(), seed=1, folder=tmp_path)


def test_a_checkpoint_is_of_its_epoch_though_the_next_goes_on_while_it_is_written(
    tiny: Encoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = train(tiny)
    steps, clip, write = list[int](), subdp.training.step._clip, subdp.training.loop._write

    def count_steps(*given: Any) -> None:
        steps.append(1)
        clip(*given)

    def write_late(folder: Path, metrics: dict[str, float], *given: Any) -> None:
        if metrics["epoch"] == 1:
            while len(steps) < metrics["step"] + 3:
                time.sleep(0.01)
            write(folder, metrics, *given)

    with monkeypatch.context() as patch:
        patch.setattr(subdp.training.step, "_clip", count_steps)
        patch.setattr(subdp.training.loop, "_write", write_late)
        train(tiny, tmp_path, epochs=2)
    assert train(tiny, tmp_path).fingerprint == whole.fingerprint


def test_the_same_bytes_come_of_two_cores_that_share_a_batch(tiny: Encoder, tmp_path: Path) -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        whole = train(tiny, batch_words=150)
        train(tiny, tmp_path, epochs=2, batch_words=150)
        assert train(tiny, tmp_path, batch_words=150).fingerprint == whole.fingerprint
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize(("longest", "expected"), [(10.0, [3.0, 4.0]), (1.0, [0.6, 0.8])])
def test_a_gradient_is_made_shorter_only_if_it_is_too_long(longest: float, expected: list[float]) -> None:
    network = torch.nn.Linear(2, 1, bias=False)
    network.weight.grad = torch.tensor([[3.0, 4.0]])
    _clip(network, longest)
    assert network.weight.grad.tolist()[0] == pytest.approx(expected, rel=1e-4)


def test_averaging_changes_what_is_kept_and_not_how_it_is_trained(tiny: Encoder, tmp_path: Path) -> None:
    parsers, losses = [], []
    for average in (0.0, 0.9):
        folder = tmp_path / str(average)
        folder.mkdir()
        parsers.append(train(tiny, folder, average=average))
        losses.append([json.loads(line)["loss"] for line in (folder / METRICS).read_text().splitlines()])
    assert losses[0] == losses[1]
    assert parsers[0].fingerprint != parsers[1].fingerprint


def test_a_damaged_checkpoint_is_refused(tiny: Encoder, tmp_path: Path) -> None:
    train(tiny, tmp_path, epochs=1)
    data = (tmp_path / CHECKPOINT).read_bytes()
    (tmp_path / CHECKPOINT).write_bytes(data[: len(data) // 2])
    with pytest.raises(SubdpError, match=r"cannot be resumed from: .*\(it is damaged; remove it to start over\)"):
        train(tiny, tmp_path)


SCRIPT = """
import sys
from pathlib import Path
import torch
from subdp.encoder.encoder import Encoder
from tests.training.test_loop import train
torch.set_num_threads(1)
print("ready", flush=True)
train(Encoder.load(sys.argv[1]), Path(sys.argv[2]), epochs=12).save(sys.argv[3])
"""


def test_killed_at_ten_random_moments_training_ends_in_the_same_weights(
    tiny: Encoder, tiny_folder: Path, tmp_path: Path
) -> None:
    whole = train(tiny, epochs=12)
    checkpoints, model = tmp_path / "checkpoints", tmp_path / "model"
    checkpoints.mkdir()
    moments = random.Random(0)
    root = Path(__file__).parents[2]
    command = [sys.executable, "-c", SCRIPT, str(tiny_folder), str(checkpoints), str(model)]

    def start() -> subprocess.Popen[str]:
        process = subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, text=True, env=os.environ)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        return process

    for _ in range(10):
        process = start()
        time.sleep(moments.uniform(0, 0.7))
        process.send_signal(signal.SIGKILL)
        process.communicate()
        if model.exists():
            assert Parser.load(model, encoder=tiny).fingerprint == whole.fingerprint
    process = start()
    process.communicate()
    assert process.returncode == 0
    assert Parser.load(model, encoder=tiny).fingerprint == whole.fingerprint
    assert all(torch.isfinite(parameter).all() for parameter in whole.network.parameters())
