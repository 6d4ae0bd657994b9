"""Settings: defaults, then the file, then flags; every value checked, however it was given."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from subdp.experiments.grid import ExperimentOptions
from subdp.pipeline.options import RunOptions
from subdp.support.errors import SubdpError
from subdp.support.settings import PRESETS, LossConfig, NetworkConfig, Settings, TrainConfig
from subdp.support.values import as_toml, converted


def test_flags_win_over_the_file_and_the_file_over_the_preset(tmp_path: Path) -> None:
    file = tmp_path / "run.toml"
    file.write_text('[train]\nlr = 0.5\nepochs = 7\n[losses]\ncompletion = "none"\n[network]\nlayers = [1, 2]\n')
    settings = Settings.resolve("small", "default", file, {"train": {"lr": "0.25"}})
    assert settings.train.lr == 0.25
    assert settings.train.epochs == 7
    assert settings.train.batch_words == PRESETS["small"].train.batch_words
    assert settings.losses.completion == "none"
    assert settings.network.layers == (1, 2)


@pytest.mark.parametrize("preset", ["small", "paper"])
def test_what_is_written_is_read_back_the_same(tmp_path: Path, preset: str) -> None:
    settings = Settings.resolve(preset, "paper", flags={"train": {"lr": "1e-7", "clip": 3}})  # type: ignore[arg-type]
    (tmp_path / "config.toml").write_text(settings.as_toml())
    assert Settings.resolve(preset, "paper", tmp_path / "config.toml") == settings  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "name", ["plain.tsv", "tab\there.tsv", 'quo"te\\.tsv', "🦊👩‍🌾.tsv", "línea\nnueva", "\x7f", ""]
)
def test_options_with_any_file_name_are_read_back_the_same(tmp_path: Path, name: str) -> None:
    options = RunOptions(bitext=(name, "other.tsv"), test=name, seed=2**63 - 1)
    (tmp_path / "config.toml").write_text(as_toml({"run": options}), encoding="utf-8", newline="")
    assert RunOptions.resolve(tmp_path / "config.toml", {}) == options


def test_a_file_name_that_toml_cannot_hold_is_refused_when_it_is_given() -> None:
    with pytest.raises(SubdpError, match="test cannot be"):
        RunOptions(bitext=("a.tsv",), test="bad\udcff.conllu")


def test_the_paper_preset_holds_the_papers_numbers() -> None:
    paper = Settings.resolve("paper", "paper")
    assert (paper.train.epochs, paper.train.lr, paper.train.batch_words, paper.train.decay_steps) == (
        100,
        2e-3,
        5000,
        5000,
    )
    assert (paper.adapt.epochs, paper.adapt.lr) == (30, 5e-4)
    assert (paper.network.lstm, paper.network.lstm_layers, paper.network.arc, paper.network.label) == (400, 3, 500, 100)
    assert (paper.losses.label_weight, paper.losses.completion, paper.losses.temperature) == ("none", "none", 1)


def test_the_configuration_of_the_paper_has_the_papers_settings() -> None:
    file = Path(__file__).parents[2] / "configs" / "paper.toml"
    assert Settings.resolve("paper", "default", file) == Settings.resolve("paper", "paper")


WRONG: list[tuple[type, str, Any, str]] = [
    (TrainConfig, "decay_steps", 0, "a whole number of at least 1"),
    (TrainConfig, "least_batches", 0, "a whole number of at least 1"),
    (TrainConfig, "epochs", 0, "a whole number of at least 1"),
    (TrainConfig, "epochs", 1.5, "a whole number of at least 1"),
    (TrainConfig, "epochs", True, "a whole number of at least 1"),
    (TrainConfig, "epochs", "many", "a whole number of at least 1"),
    (TrainConfig, "lr", math.nan, "a number above 0"),
    (TrainConfig, "lr", math.inf, "a number above 0"),
    (TrainConfig, "lr", -1, "a number above 0"),
    (TrainConfig, "clip", 0, "a number above 0"),
    (TrainConfig, "average", 1.0, "a number of at least 0 below 1"),
    (NetworkConfig, "dropout", 1, "a number of at least 0 below 1"),
    (NetworkConfig, "lstm", 0, "a whole number of at least 1"),
    (NetworkConfig, "layers", (-1,), "a list of whole numbers of at least 0"),
    (NetworkConfig, "layers", (), "at least one"),
    (NetworkConfig, "layers", ("x",), "a list of whole numbers"),
    (LossConfig, "temperature", 0, "a number above 0"),
    (LossConfig, "completion", "all", "none or source or auto"),
    (ExperimentOptions, "jobs", 0, "a whole number of at least 1"),
    (ExperimentOptions, "seeds", (-1,), "a list of whole numbers of at least 0"),
    (ExperimentOptions, "languages", "de", "a list of names"),
]


@pytest.mark.parametrize(("config", "name", "value", "wanted"), WRONG)
def test_a_value_that_cannot_be_is_refused_when_the_settings_are_made(
    config: type, name: str, value: Any, wanted: str
) -> None:
    with pytest.raises(SubdpError, match=f"{name} cannot be .*{wanted}"):
        config(**{name: value})
    with pytest.raises(SubdpError, match=f"{name} cannot be"):
        replace(config(), **converted(config, {name: value}))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("lr = ", "is not TOML"),
        ("[train]\nlayers = 3\n", "there is no setting 'layers' .the settings are epochs, patience, lr"),
        ('[network]\nlayers = "x"\n', "layers cannot be"),
        ("[train]\nlr = nan\n", "lr cannot be nan"),
        ("[adapt]\ndecay_steps = 0\n", "decay_steps cannot be 0"),
        ("adapt = 3\n", r"adapt is not a section .*\[adapt\]"),
        ("[nets]\n", "there is no section 'nets'"),
    ],
)
def test_a_mistake_in_a_file_is_told_with_the_file(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "c.toml").write_text(text)
    with pytest.raises(SubdpError, match=f"c.toml: {said}"):
        Settings.resolve(file=tmp_path / "c.toml")


def test_a_flag_is_a_string_that_becomes_the_type_of_its_setting() -> None:
    losses = {"completion": "none", "own_labels": "compound,flat"}
    flags = {"train": {"lr": "1e-3", "epochs": "7"}, "network": {"layers": "3,4"}, "losses": losses}
    settings = Settings.resolve(flags=flags)
    assert (settings.train.lr, settings.train.epochs, settings.network.layers) == (0.001, 7, (3, 4))
    assert (settings.losses.completion, settings.losses.own_labels) == ("none", ("compound", "flat"))
    assert Settings.resolve(flags={"losses": {"own_labels": ""}}).losses.own_labels == ()
    with pytest.raises(SubdpError, match=r"no setting 'learning_rate'.*lr"):
        Settings.resolve(flags={"train": {"learning_rate": "1"}})
