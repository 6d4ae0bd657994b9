"""Ranks: two processes that train together end where one does, resume its work, and never hang when one fails."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

from subdp.corpus.treebank import write_conllu
from subdp.training.loop import CHECKPOINT, METRICS
from tests.cli.test_cli import run as command
from tests.grammar import toy_pairs
from tests.training.rank_work import trained

pytestmark = pytest.mark.trains

ROOT = Path(__file__).parents[2]
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1"}
ROUNDING = 1e-3  # 30 times what was found; another dropout and another order of the batches make 26 times as much.
SECONDS = 300  # Far more than any of them takes: without it a test of hanging could hang.


def torchrun(*words: object) -> subprocess.CompletedProcess[str]:
    """A module on two ranks."""
    call = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m"]
    return subprocess.run(
        [*call, *map(str, words)], cwd=ROOT, env=ENVIRONMENT, capture_output=True, text=True, timeout=SECONDS
    )


def own_lines(errors: str) -> list[str]:
    """What was written to standard error, but for torch's log: on a busy machine it warns of connections that wait."""
    return [line for line in errors.splitlines() if not re.match(r"\[?[IWE]\d{4} |\[[IWE] ", line)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What two ranks trained: from the beginning, half of it, and the other half of what one process began."""
    folder = tmp_path_factory.mktemp("ranks")
    for name in ("begun-by-one", "begun-by-two"):
        (folder / name).mkdir()
    trained(folder / "begun-by-one", epochs=2)
    done = torchrun("tests.training.rank_work", "train", folder)
    assert (done.returncode, done.stdout, own_lines(done.stderr)) == (0, "", [])
    return folder


@pytest.fixture(scope="module")
def alone() -> Mapping[str, Tensor]:
    """What one process with one thread trains."""
    return trained().state_dict()


@pytest.fixture
def two_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def difference(found: Mapping[str, Tensor], expected: Mapping[str, Tensor]) -> float:
    """The mean distance of two weights. Single ones may be far apart where Adam makes steps out of mere rounding."""
    every = [(found[name] - tensor).abs().flatten() for name, tensor in expected.items()]
    return torch.cat(every).mean().item()


@pytest.mark.usefixtures("two_threads")
def test_two_ranks_share_a_batch_exactly_as_two_cores_do(folder: Path) -> None:
    found = load_file(folder / "whole.safetensors")
    for name, tensor in trained().state_dict().items():
        assert torch.equal(found[name], tensor), name


def test_two_ranks_end_where_one_does_but_for_rounding(folder: Path, alone: Mapping[str, Tensor]) -> None:
    assert difference(load_file(folder / "whole.safetensors"), alone) < ROUNDING
    assert difference(trained(seed=2).state_dict(), alone) > 10 * ROUNDING


def test_two_ranks_resume_what_one_began(folder: Path, alone: Mapping[str, Tensor]) -> None:
    assert difference(load_file(folder / "resumed-by-two.safetensors"), alone) < ROUNDING


def test_one_rank_resumes_what_two_began(folder: Path, alone: Mapping[str, Tensor]) -> None:
    assert difference(trained(folder / "begun-by-two").state_dict(), alone) < ROUNDING
    lines = (folder / "begun-by-two" / METRICS).read_text().splitlines()
    assert [json.loads(line)["epoch"] for line in lines] == [1, 2, 3, 4], "one rank alone writes"
    assert sorted(path.name for path in (folder / "begun-by-two").iterdir()) == [CHECKPOINT, METRICS]


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("fails", "rank 1: features: no such shard\n"),
        ("killed", "no connection to the other ranks: "),
        ("hangs", "no connection to the other ranks: "),
    ],
)
def test_a_rank_that_fails_ends_the_training_with_one_error(how: str, said: str, tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    where = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": "2"}
    call = [sys.executable, "-m", "tests.training.rank_work", how, str(tmp_path)]
    ranks = [
        subprocess.Popen(
            call,
            cwd=ROOT,
            env={**ENVIRONMENT, **where, "RANK": str(rank)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    try:
        output, errors = ranks[0].communicate(timeout=SECONDS)
    finally:
        for rank in ranks:
            rank.kill()
            rank.communicate()
    assert ranks[0].returncode == 1, errors
    assert output.startswith(said)
    assert "Traceback" not in errors


@pytest.mark.usefixtures("two_threads")
def test_run_on_two_ranks_trains_both_parsers_and_prints_once(
    tiny_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_conllu((tree for tree, _, _ in toy_pairs(60)), tmp_path / "source.conllu")
    write_conllu((tree for _, tree, _ in toy_pairs(20, seed=9)), tmp_path / "test.conllu")
    pairs = [f"{' '.join(one.words)}\t{' '.join(other.words)}\n" for one, other, _ in toy_pairs(60, seed=3)]
    (tmp_path / "pairs.tsv").write_text("".join(pairs))
    sizes = "[network]\nlayers = [3]\nfeatures = 16\nlstm = 12\nlstm_layers = 1\narc = 12\nlabel = 8\ndropout = 0.1\n"
    lengths = "epochs = 4\nbatch_words = 200\nleast_batches = 1\nlr = 0.01\n"
    (tmp_path / "small.toml").write_text(f"{sizes}[train]\n{lengths}[adapt]\n{lengths}")
    call: list[str | Path] = ["run", "--tokenized", "--encoder", tiny_folder, "--config", tmp_path / "small.toml"]
    call += ["--treebank", tmp_path / "source.conllu", "--bitext", tmp_path / "pairs.tsv"]
    call += ["--test", tmp_path / "test.conllu"]
    assert command(*call, "-o", tmp_path / "one") == 0
    done = torchrun("subdp", *call, "-o", tmp_path / "two")
    assert done.returncode == 0, done.stderr
    assert done.stdout == capsys.readouterr().out
    for name in ("scores.json", "source-parser/model.safetensors", "parser/model.safetensors"):
        assert (tmp_path / "two" / name).read_bytes() == (tmp_path / "one" / name).read_bytes(), name
