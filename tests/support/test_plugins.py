"""Plug-ins are found in installed packages, loaded by name, and their faults are told in one sentence."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from subdp.cli.main import app
from subdp.corpus.words import words_of
from subdp.support.errors import SubdpError
from subdp.support.plugins import GROUPS, load, plugins

GROUP = "subdp.tokenizers"


def install(folder: Path, package: str, entries: str, code: str = "") -> None:
    """Put a package with entry points into a folder, as an installer would."""
    information = folder / f"{package}-1.2.dist-info"
    information.mkdir(parents=True)
    (information / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.2\n")
    (information / "entry_points.txt").write_text(entries)
    (folder / f"{package}.py").write_text(code)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def test_a_package_on_the_path_offers_its_tokenizer(site: Path) -> None:
    install(site, "dashes", f"[{GROUP}]\ndash = dashes:words\n", "def words(text): return text.split('-') + [' ']\n")
    assert "dash" in plugins(GROUP)
    assert load(GROUP, "dash")("a-b") == ["a", "b", " "]
    assert words_of("a-b c-d", tokenizer="dash") == ("a", "b c", "d")


def test_plugins_come_in_alphabetical_order_and_only_from_their_group(site: Path) -> None:
    install(site, "several", f"[{GROUP}]\nzebra = several:z\napple = several:a\n[subdp.aligners]\nother = several:o\n")
    names = list(plugins(GROUP))
    assert names == sorted(names)
    assert {"zebra", "apple"} <= set(names)
    assert "other" not in names


def test_an_unknown_name_lists_what_there_is(site: Path) -> None:
    install(site, "known", f"[{GROUP}]\nknown = known:words\n")
    with pytest.raises(SubdpError, match=r"no tokenizer is called 'thai' \(available: unicode, whitespace, .*known"):
        words_of("text", tokenizer="thai")


def test_nothing_available_is_said_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: ())
    with pytest.raises(SubdpError, match="available: none"):
        load("subdp.aligners", "any")


def test_a_plugin_that_cannot_be_imported_is_named_with_its_package(site: Path) -> None:
    install(site, "broken", f"[{GROUP}]\nbroken = broken:words\n", "import a_module_that_is_not_there\n")
    with pytest.raises(SubdpError, match=r"'broken' of broken 1\.2 cannot be loaded: ModuleNotFoundError"):
        load(GROUP, "broken")


def test_two_packages_with_one_name_are_an_error(site: Path) -> None:
    install(site, "first", f"[{GROUP}]\nsame = first:words\n")
    install(site, "second", f"[{GROUP}]\nsame = second:words\n")
    with pytest.raises(SubdpError, match=r"two packages offer 'same'.*first 1\.2.*second 1\.2|second 1\.2.*first 1\.2"):
        plugins(GROUP)


def test_a_group_that_does_not_exist_is_a_mistake_in_the_program() -> None:
    with pytest.raises(ValueError, match=r"subdp\.encoders"):
        plugins("subdp.parsers")
    assert len(GROUPS) == 4


def test_a_tokenizer_must_be_a_function_that_gives_strings(site: Path) -> None:
    install(site, "odd", f"[{GROUP}]\nnumber = odd:number\nbytes = odd:cut\n", "number = 3\ncut = str.encode\n")
    with pytest.raises(SubdpError, match="not a function"):
        words_of("text", tokenizer="number")
    with pytest.raises(SubdpError, match="gave a int instead of a word"):
        words_of("text", tokenizer="bytes")


def test_the_command_lists_what_packages_add(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    install(site, "cutter", f"[{GROUP}]\ncut = cutter:cut\n")
    app(["plugins"], result_action="return_value")
    assert "tokenizers: cut (cutter:cut)" in capsys.readouterr().out
    app(["plugins", "--json"], result_action="return_value")
    assert json.loads(capsys.readouterr().out)["tokenizers"] == {"cut": "cutter:cut"}
