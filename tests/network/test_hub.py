"""Parsers by name: the one that ships, folders, and a Hub on this machine that is pushed to and loaded from."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import subdp
from subdp.corpus.treebank import Sentence
from subdp.encoder.encoder import Encoder
from subdp.network.hub import FILES, SHIPPED, find_model
from subdp.parser import Parser
from subdp.support.errors import SubdpError
from subdp.support.settings import NetworkConfig, Settings, TrainConfig
from tests.grammar import toy_pairs
from tests.network.fake_hub import fake_hub

_PUSH_AND_LOAD = """
import sys
from subdp.parser import Parser
parser = Parser.load(sys.argv[1])
print(parser.push_to_hub("org/toy"))
print(Parser.load("org/toy").fingerprint == parser.fingerprint)
"""


@pytest.fixture(scope="module")
def folder(tiny: Encoder, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A parser that has learnt next to nothing."""
    settings = replace(Settings.resolve(), network=NetworkConfig(lstm=8, layers=(1,)), train=TrainConfig(epochs=1))
    path = tmp_path_factory.mktemp("parsers") / "toy"
    Parser.train([tree for tree, _, _ in toy_pairs(3)], encoder=tiny, settings=settings).save(path)
    return path


def test_names_and_folders_are_found() -> None:
    assert find_model("en") == SHIPPED
    assert find_model(SHIPPED) == find_model(str(SHIPPED)) == SHIPPED
    assert find_model("german") == Path("german"), "no name on the Hub: loading it says that there is no such folder"


def test_a_misspelt_path_is_not_asked_for_on_the_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "german").mkdir()
    monkeypatch.chdir(tmp_path)
    assert find_model("german/praser") == Path("german/praser"), "loading it says that there is no such folder"


def test_what_is_pushed_is_loaded_and_nothing_else_is_fetched(folder: Path, tmp_path: Path) -> None:
    files, asked = {"evil.py": b"1 / 0", "pytorch_model.bin": b"pickled"}, list[str]()
    with fake_hub(files, asked) as address:
        done = _python(_PUSH_AND_LOAD, str(folder), address=address, home=tmp_path)
        assert done.stdout.splitlines() == [f"{address}/org/toy", "True"], done.stderr
        assert set(files) == {*FILES, "evil.py", "pytorch_model.bin"}
        assert not [line for line in asked if "evil" in line or "pytorch" in line]
        assert not list(tmp_path.rglob("evil.py"))
    again = _python("from subdp.parser import Parser; Parser.load('org/toy')", address=address, home=tmp_path)
    assert again.returncode == 0, "once fetched, a parser is there without a network"


def test_a_name_that_the_hub_does_not_know_is_an_error_of_one_line(tmp_path: Path) -> None:
    main = "from subdp.cli.main import main; main()"
    with fake_hub({}, []) as address:
        done = _python(main, "parse", "-", "--parser", "org/toy", address=address, home=tmp_path)
    assert done.returncode == 1
    assert "org/toy: no such model folder, and the Hub gave no parser of that name" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_name_that_cannot_be_one_is_not_pushed(folder: Path, tiny: Encoder) -> None:
    with pytest.raises(SubdpError, match=r"my parser: is not a name on the Hub \(give it as org/name\)"):
        Parser.load(folder, encoder=tiny).push_to_hub("my parser")


def test_a_parser_of_a_folder_by_its_path(folder: Path, tiny: Encoder) -> None:
    (parsed,) = subdp.Parser.load(str(folder), encoder=tiny).parse([Sentence.of(["the", "dog"])])
    assert parsed.heads.count(0) == 1


def _python(code: str, *arguments: str, address: str, home: Path) -> subprocess.CompletedProcess[str]:
    """Python with this hub as the only one: its address is read once, when huggingface_hub is imported."""
    ours = {"HF_ENDPOINT": address, "HF_HOME": str(home), "HF_TOKEN": "hf_of_nobody", "NO_PROXY": "127.0.0.1"}
    paths = {"PYTHONPATH": str(Path(subdp.__file__).parents[1])}
    left = {name: value for name, value in os.environ.items() if not name.startswith("HF_")}
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(
        command, check=False, capture_output=True, text=True, env={**left, **ours, **paths}, input="a b"
    )
