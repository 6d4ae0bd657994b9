"""Settings: defaults, then the file, then flags; a slip is an error that says what there is."""

from __future__ import annotations

from pathlib import Path

import pytest

from subdp.support.errors import SubdpError
from subdp.support.settings import PRESETS, Settings, TrainConfig, with_changes


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
    settings = Settings.resolve(preset, "paper")  # type: ignore[arg-type]
    (tmp_path / "config.toml").write_text(settings.as_toml())
    assert Settings.resolve(preset, "paper", tmp_path / "config.toml") == settings  # type: ignore[arg-type]


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


def test_slips_are_errors_that_say_what_there_is(tmp_path: Path) -> None:
    with pytest.raises(SubdpError, match=r"no setting 'learning_rate'.*lr"):
        with_changes(TrainConfig(), {"learning_rate": 1})
    with pytest.raises(SubdpError, match=r"epochs cannot be 'many'.*a whole number"):
        with_changes(TrainConfig(), {"epochs": "many"})
    with pytest.raises(SubdpError, match=r"epochs cannot be 1.5"):
        with_changes(TrainConfig(), {"epochs": 1.5})
    with pytest.raises(SubdpError, match="lr cannot be -1"):
        with_changes(TrainConfig(), {"lr": -1})
    with pytest.raises(SubdpError, match=r"completion cannot be 'all'.*choose none, source, auto"):
        Settings.resolve(flags={"losses": {"completion": "all"}})
    with pytest.raises(SubdpError, match="no section 'nets'"):
        Settings.resolve(flags={"nets": {}})
    file = tmp_path / "bad.toml"
    file.write_text("lr = ")
    with pytest.raises(SubdpError, match=r"bad.toml: is not TOML"):
        Settings.resolve(file=file)
    file.write_text("[train]\nlayers = 3\n")
    with pytest.raises(SubdpError, match=r"bad.toml: there is no setting 'layers'"):
        Settings.resolve(file=file)
    file.write_text('[network]\nlayers = "x"\n')
    with pytest.raises(SubdpError, match="a list of layers"):
        Settings.resolve(file=file)


def test_a_value_outside_a_section_is_told(tmp_path: Path) -> None:
    file = tmp_path / "c.toml"
    file.write_text("adapt = 3\n")
    with pytest.raises(SubdpError, match=r"c.toml: adapt is not a section .*\[adapt\]"):
        Settings.resolve(file=file)
