"""The pipeline on a Ray cluster writes the bytes that one machine writes, whatever happens on the way."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch

from subdp.alignment.aligner import Aligner
from subdp.alignment.links import Alignment
from subdp.corpus.bitext import Bitext, Pair
from subdp.corpus.treebank import write_conllu
from subdp.encoder.encoder import Encoder
from subdp.parser import Parser
from subdp.support.engine import Engine
from subdp.support.errors import SubdpError
from subdp.support.ray_engine import RayEngine
from subdp.support.settings import NetworkConfig, Settings, TrainConfig
from tests.cli.test_cli import run as command
from tests.grammar import as_pair, toy_pairs
from tests.support.ray_work import FullDisk, Killed, KillsNode, Removed

pytestmark = [pytest.mark.cluster, pytest.mark.trains, pytest.mark.filterwarnings("ignore")]  # of Ray

SETTINGS = replace(
    Settings.resolve(),
    network=NetworkConfig(features=16, lstm=12, lstm_layers=1, arc=12, label=8, dropout=0.1),
    train=TrainConfig(epochs=2, batch_words=100, lr=1e-2),
)
# No pair twice: a number ends each.
BITEXT = Bitext.of(
    [
        Pair((*pair.source, str(number)), (*pair.target, str(number)))
        for number, pair in enumerate(as_pair(tree, other) for tree, other, _ in toy_pairs(1100, seed=3))
    ]
)
SECONDS = 240


@pytest.fixture(scope="module")
def source(tiny: Encoder, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The model folder of a source parser."""
    folder = tmp_path_factory.mktemp("source") / "parser"
    Parser.train((tree for tree, _, _ in toy_pairs(40)), encoder=tiny, settings=SETTINGS).save(folder)
    return folder


def content(folder: Path) -> dict[str, bytes]:
    """Everything in a folder, whatever was begun and left included."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def expected(source: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The silver that one process makes."""
    folder = tmp_path_factory.mktemp("local") / "silver"
    Parser.load(source).project(BITEXT, folder=folder)
    return content(folder)


def pairs_file(path: Path, pairs: Iterable[Pair]) -> Path:
    path.write_text("".join(f"{' '.join(pair.source)}\t{' '.join(pair.target)}\n" for pair in pairs))
    return path


@pytest.fixture
def two_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("two_threads")
def test_run_on_a_cluster_and_its_ranks_writes_the_same_bytes(
    cluster: Any, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two ranks train as two threads do, to the bit."""
    write_conllu((tree for _, tree, _ in toy_pairs(10, seed=9)), tmp_path / "test.conllu")
    bitext = pairs_file(tmp_path / "pairs.tsv", BITEXT[:600])
    call = ["run", "--tokenized", "--source-parser", source, "--bitext", bitext, "--test", tmp_path / "test.conllu"]
    call += ["--adapt.epochs", "1"]
    found = {}
    for name, flags in {
        "local": [],
        "ray": ["--engine", "ray", "--ray-address", cluster.address, "--ranks", 2],
    }.items():
        monkeypatch.setenv("SUBDP_CACHE", str(tmp_path / f"{name}-cache"))
        assert command(*call, "-o", tmp_path / name, *flags) == 0
        silver = content(tmp_path / name / "stages" / "project" / "silver")
        vectors = content(tmp_path / f"{name}-cache" / "features")
        scores, weights = (
            (tmp_path / name / file).read_bytes() for file in ("scores.json", "parser/model.safetensors")
        )
        found[name] = [silver, vectors, scores, weights]
    for local, ray in zip(found["local"], found["ray"], strict=True):
        assert local == ray


@pytest.mark.parametrize("verb", ["parse", "annotate"])
def test_text_is_parsed_to_the_same_bytes(
    verb: str, cluster: Any, source: Path, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    write_conllu((tree for tree, _, _ in toy_pairs(60, seed=9)), tmp_path / "text.conllu")
    call = [verb, tmp_path / "text.conllu", "--parser", source]
    assert command(*call, "--engine", "ray", "--ray-address", cluster.address) == 0
    there = capfdbinary.readouterr().out
    assert command(*call) == 0
    assert capfdbinary.readouterr().out == there != b""


def test_a_killed_driver_is_resumed_by_the_same_command(
    cluster: Any, source: Path, tmp_path: Path, expected: dict[str, bytes]
) -> None:
    bitext, output = pairs_file(tmp_path / "pairs.tsv", BITEXT), tmp_path / "silver"
    call = [sys.executable, "-m", "subdp", "project", "--tokenized", "--bitext", bitext, "--parser", source]
    call += ["--engine", "ray", "--ray-address", cluster.address, "-o", output]
    killed = subprocess.Popen(list(map(str, call)), stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + SECONDS
    while not list(output.glob("*.arrow")) and time.monotonic() < deadline and killed.poll() is None:
        time.sleep(0.01)
    os.kill(killed.pid, signal.SIGKILL)
    assert killed.wait() == -signal.SIGKILL
    assert len(list(output.glob("*.arrow"))) > 0
    subprocess.run(list(map(str, call)), check=True, capture_output=True, timeout=SECONDS)
    found = {path.name: path.read_bytes() for path in output.glob("[0-9]*.arrow")}
    assert found == {name: data for name, data in expected.items() if name.endswith(".arrow")}


@dataclass(frozen=True)
class Changed:
    """An engine whose work is changed first."""

    engine: Engine
    change: Callable[[Any], Any]

    def map(self, work: Callable[[Any], Any], units: Iterable[Any]) -> Iterator[Any]:
        return self.engine.map(self.change(work), units)


@pytest.mark.parametrize(("change", "said"), [(FullDisk, "File too large"), (Removed, "cannot be written: No such")])
def test_a_folder_that_is_full_or_gone_is_named_and_nothing_is_half_written(
    change: Any, said: str, cluster: Any, source: Path, expected: dict[str, bytes], tmp_path: Path
) -> None:
    engine = Changed(RayEngine(cluster.address), change)
    with pytest.raises((SubdpError, OSError), match=said) as caught:
        Parser.load(source).project(BITEXT, folder=tmp_path / "silver", engine=engine)
    assert str(tmp_path / "silver" / "0000") in str(caught.value)
    assert set(content(tmp_path)) <= {"silver/silver.json"}
    Parser.load(source).project(BITEXT, folder=tmp_path / "silver", engine=engine.engine)
    assert content(tmp_path / "silver") == expected


def test_an_actor_that_is_killed_while_it_projects_costs_nothing(
    cluster: Any, source: Path, expected: dict[str, bytes], tmp_path: Path
) -> None:
    engine = Changed(RayEngine(cluster.address), partial(Killed, mark=tmp_path / "killed"))
    Parser.load(source).project(BITEXT, folder=tmp_path / "silver", engine=engine)
    assert (tmp_path / "killed").exists()
    assert content(tmp_path / "silver") == expected


def test_a_node_that_is_killed_while_it_projects_costs_nothing(
    cluster: Any, source: Path, expected: dict[str, bytes], tmp_path: Path
) -> None:
    parser = Parser.load(source)
    parser.features.add(words for pair in BITEXT for words in (pair.source, pair.target))
    cluster.add_node(num_cpus=1, env_vars={"SUBDP_TEST_NODE": "1"})
    engine = Changed(RayEngine(cluster.address), partial(KillsNode, tmp_path / "killed"))
    parser.project(BITEXT, folder=tmp_path / "silver", engine=engine)
    assert (tmp_path / "killed").exists()
    assert content(tmp_path / "silver") == expected


class Poisoned(Aligner):
    """Fails at one pair."""

    fingerprint = "poisoned"

    def align(self, pairs: Iterable[Pair]) -> Iterator[Alignment]:
        for pair in pairs:
            if pair == BITEXT[600]:
                raise ValueError("a poisoned pair")
            yield Alignment.of([(0, 0)])


def test_a_poisoned_pair_is_named_with_its_neighbours_and_the_rest_is_kept(
    cluster: Any, source: Path, tmp_path: Path
) -> None:
    first, last = " ".join(BITEXT[512].source), " ".join(BITEXT[1023].source)
    said = f"pairs 513 to 1,024, from “{first}” to “{last}”: ValueError: a poisoned pair"
    with pytest.raises(SubdpError, match=said):
        Parser.load(source).project(
            BITEXT, aligner=Poisoned(), folder=tmp_path / "silver", engine=RayEngine(cluster.address)
        )
    assert (tmp_path / "silver" / "00000.arrow").exists()
    assert not (tmp_path / "silver" / "00001.arrow").exists()
