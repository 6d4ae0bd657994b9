"""Units of work: the same bytes with one process and with three, and after one of them is killed."""

from __future__ import annotations

import os
import signal
import threading
import time
from dataclasses import replace
from multiprocessing import active_children
from pathlib import Path

import pytest

from subdp.corpus.bitext import Bitext
from subdp.encoder.encoder import Encoder
from subdp.encoder.feature_store import FeatureStore
from subdp.parser import Parser
from subdp.support.engine import LocalEngine
from subdp.support.settings import NetworkConfig, Settings, TrainConfig
from tests.grammar import as_pair, toy_pairs

pytestmark = pytest.mark.trains

SETTINGS = replace(
    Settings.resolve(),
    network=NetworkConfig(features=24, lstm=16, lstm_layers=1, arc=16, label=12, dropout=0.1),
    train=TrainConfig(epochs=2, batch_words=100, lr=5e-3),
)
TREES = [tree for tree, _, _ in toy_pairs(40)]


@pytest.fixture
def source(tiny: Encoder) -> Parser:
    return Parser.train(TREES, encoder=tiny, settings=SETTINGS)


@pytest.fixture(autouse=True)
def small_units(monkeypatch: pytest.MonkeyPatch) -> None:
    """Units are cut in the process that hands them out."""
    monkeypatch.setattr("subdp.parser.chunk_words", lambda _: 160)
    monkeypatch.setattr("subdp.encoder.feature_store._SHARD_BYTES", 10_000)


def shards(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.rglob("*.arrow")}


def test_parsing_gives_the_same_bytes_whatever_the_number_of_jobs(source: Parser) -> None:
    gold = [tree for tree, _, _ in toy_pairs(100, seed=9)]
    texts = [[tree.conllu for tree in source.parse(gold, confidence=True, engine=LocalEngine(jobs))] for jobs in (1, 3)]
    assert texts[0] == texts[1]


def test_projecting_gives_the_same_bytes_whatever_the_number_of_jobs(source: Parser, tmp_path: Path) -> None:
    bitext = Bitext.of([as_pair(tree, other) for tree, other, _ in toy_pairs(1100, seed=3)])
    features, silver = {}, {}
    for jobs in (1, 3):
        root = tmp_path / f"features{jobs}"
        parser = replace(source, store=FeatureStore(source.encoder, None, root))
        parser.project(bitext, folder=tmp_path / f"silver{jobs}", engine=LocalEngine(jobs))
        features[jobs], silver[jobs] = shards(root), shards(tmp_path / f"silver{jobs}")
    assert len(features[1]) > 3
    assert len(silver[1]) == 3
    assert features[1] == features[3]
    assert silver[1] == silver[3]


def test_a_worker_that_is_killed_while_parsing_costs_nothing(source: Parser) -> None:
    gold = [tree for tree, _, _ in toy_pairs(600, seed=9)]
    expected = [tree.conllu for tree in source.parse(gold)]
    killed: list[int] = []

    def kill_one() -> None:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and not killed:
            for child in active_children():
                if child.pid is not None:
                    time.sleep(0.5)
                    os.kill(child.pid, signal.SIGKILL)
                    killed.append(child.pid)
                    break
            time.sleep(0.01)

    watcher = threading.Thread(target=kill_one)
    watcher.start()
    found = [tree.conllu for tree in source.parse(gold, engine=LocalEngine(2))]
    watcher.join()
    assert killed
    assert found == expected
