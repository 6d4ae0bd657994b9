"""Settings as flags: --help lists them all with their defaults, and what is given reaches the settings."""

from __future__ import annotations

from dataclasses import fields

import pytest

from subdp.cli.main import app
from subdp.support.settings import PRESETS, Settings


def _help(verb: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("COLUMNS", "400")
    with pytest.raises(SystemExit):
        app.meta([verb, "--help"])
    return capsys.readouterr().out


def test_help_lists_every_setting_with_its_default(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = _help("run", capsys, monkeypatch)
    names = {"losses": "loss"}
    for section, config in Settings.resolve().sections.items():
        for field in fields(config):
            assert f"--{names.get(section, section)}.{field.name.replace('_', '-')} " in text
    (epochs,) = (line for line in text.splitlines() if "--train.epochs" in line)
    small, paper = (PRESETS[name].train.epochs for name in ("small", "paper"))
    assert f"Maximum number of epochs. [a whole number of at least 1; default: {small}, paper: {paper}]" in epochs


@pytest.mark.parametrize(
    ("verb", "sections"),
    [
        ("train", {"train", "network"}),
        ("distill", {"train", "network"}),
        ("adapt", {"adapt", "loss"}),
        ("experiment", {"adapt", "loss"}),
    ],
)
def test_each_verb_lists_the_settings_that_it_takes(
    verb: str, sections: set[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = _help(verb, capsys, monkeypatch)
    for section, name in (("train", "lr"), ("network", "lstm"), ("adapt", "lr"), ("loss", "completion")):
        assert (f"--{section}.{name} " in text) == (section in sections)


@pytest.mark.parametrize(
    ("flag", "value", "message"),
    [
        ("--train.lrr", "1", "--train.lrr"),
        ("--train.lr", "fast", "lr cannot be 'fast' (give a number above 0)"),
        ("--train.epochs", "0", "epochs cannot be"),
    ],
)
def test_what_is_no_setting_is_refused(flag: str, value: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        app.meta(
            ["train", "--treebank", "none.conllu", "-o", "out", flag, value], exit_on_error=False, print_error=False
        )
    assert stopped.value.code in (1, 2)
    assert message in capsys.readouterr().err
