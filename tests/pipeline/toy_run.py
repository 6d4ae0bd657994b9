"""Runs of `subdp run` on toy data, for the tests of what it writes, redoes and survives."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from subdp.pipeline.options import RunOptions
from subdp.pipeline.run import Run
from subdp.support.settings import NetworkConfig, Settings, TrainConfig

SETTINGS = replace(
    Settings.resolve(),
    network=NetworkConfig(features=16, lstm=12, lstm_layers=1, arc=12, label=8, dropout=0.1),
    train=TrainConfig(epochs=8, batch_words=100, lr=1e-2),
    adapt=TrainConfig(epochs=3, batch_words=100, lr=5e-3),
)
STAGES = ["clean", "encode", "project", "report", "adapt", "finish", "evaluate"]


def write_bitext(path: Path, pairs: list[Any]) -> None:
    path.write_text("".join(f"{' '.join(one.words)}\t{' '.join(other.words)}\n" for one, other, _ in pairs))


def make(data: Path, source: Path, output: str = "out", settings: Settings = SETTINGS, **changes: Any) -> Run:
    values = {"bitext": (str(data / "pairs.tsv"),), "source_parser": (str(source),), "test": str(data / "test.conllu")}
    return Run(RunOptions(**{**values, "tokenized": True, **changes}), settings, data / output)


def states(run: Run) -> dict[str, str]:
    return {stage.name: stage.state(run.root)[0] for stage in run.stages}


def result(run: Run) -> tuple[Any, bytes]:
    """The scores and the weights: what must be the same whatever happened on the way."""
    return run.scores(), (run.output / "parser" / "model.safetensors").read_bytes()


def silent(_: str) -> None: ...


def small_shards(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("subdp.projection.silver.SHARD", 8)
    patch.setattr("subdp.alignment.similarity._BLOCK", 8)
    patch.setattr("subdp.encoder.feature_store._SHARD_BYTES", 10_000)
