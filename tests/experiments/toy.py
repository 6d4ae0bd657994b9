"""Treebanks, settings and grids in the toy language, for the tests of experiments."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from subdp.experiments.grid import ExperimentName, ExperimentOptions, Grid
from subdp.support.settings import NetworkConfig, Settings, TrainConfig
from tests.grammar import toy_pairs

PARTS = ("ntrex", "pud", "tatoeba")
SETTINGS = replace(
    Settings.resolve(),
    network=NetworkConfig(features=16, lstm=12, lstm_layers=1, arc=12, label=8),
    train=TrainConfig(epochs=2, batch_words=200),
    adapt=TrainConfig(epochs=1, batch_words=200),
)


def toy_grid(name: ExperimentName, options: ExperimentOptions, *languages: str, seeds: tuple[int, ...] = (1,)) -> Grid:
    """An experiment with small networks that are trained for a moment."""
    return Grid(name, replace(options, languages=languages, seeds=seeds), SETTINGS)


def write_treebank(path: Path, count: int, seed: int, side: int) -> None:
    """Trees of the toy language (side 0) or of its translation (side 1)."""
    path.parent.mkdir(parents=True, exist_ok=True)
    trees = [pair[:2][side] for pair in toy_pairs(count, seed=seed)]
    path.write_text("".join(f"# sent_id = s{number}\n{tree.conllu}\n\n" for number, tree in enumerate(trees)))
