"""The documents cannot lie: their Python runs and prints what they say, and their commands have the flags they use."""

from __future__ import annotations

import doctest
import re
import shlex
import shutil
from collections.abc import Iterator
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest

from subdp.cli.main import app
from subdp.corpus.layers import find_layer

ROOT = Path(__file__).parents[1]
SAMPLE = ROOT / "src/subdp/pipeline/sample"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(ROOT.glob("docs/*.md"))]


def examples(page: Path) -> list[str]:
    """A page's Python without prompts, which doctest runs; a line that includes a file is none."""
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    return [block for block in blocks if ">>>" not in block and "--8<--" not in block]


def ran(page: Path) -> dict[str, Any]:
    names: dict[str, Any] = {}
    for code in examples(page):
        exec(code, names)  # our own documentation
    return names


WITH_PROMPTS = [page for page in ROOT.glob("docs/*.md") if ">>>" in page.read_text(encoding="utf-8")]


@pytest.mark.parametrize("page", WITH_PROMPTS, ids=lambda page: page.stem)
def test_examples_print_what_the_page_says(page: Path) -> None:
    result = doctest.testfile(str(page), module_relative=False)
    assert result.attempted > 1
    assert result.failed == 0


@pytest.mark.trains
def test_named_entities_are_projected_onto_german(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    names = ran(ROOT / "docs/layers.md")
    assert "NE=B-PER" in capsys.readouterr().out
    german, english = names["german"], names["english"]
    assert german.layers == english.layers == ("upos", "misc:NE")
    (sentence,) = german("Peter kommt aus Wien.")
    found = find_layer("misc:NE").read(sentence)
    assert found[0] == "B-PER"
    assert found[3] == "B-LOC"


@pytest.mark.trains
def test_another_parsers_distributions_are_the_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(ROOT / "docs/examples", tmp_path / "docs/examples")
    monkeypatch.chdir(tmp_path)
    names = ran(ROOT / "docs/researchers.md")
    assert len(names["silver"]) == len(names["bitext"])
    assert "schläft" in (tmp_path / "soft.conllu").read_text(encoding="utf-8")


@pytest.mark.trains
def test_the_readmes_way_from_a_treebank_to_a_german_parser(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copy(ROOT / "docs/examples/entities.conllu", tmp_path / "en.conllu")
    for name in ("en-de.tsv", "de-test.conllu"):
        shutil.copy(SAMPLE / name, tmp_path)
    monkeypatch.chdir(tmp_path)
    ran(ROOT / "README.md")
    assert (tmp_path / "german-parser/model.safetensors").exists()


def test_no_other_page_has_python_that_no_test_runs() -> None:
    assert {page.stem for page in PAGES if examples(page)} == {"README", "layers", "researchers"}


def commands(page: Path) -> Iterator[list[str]]:
    """Every call of subdp on a page, in a block or within a line, as its words."""
    text = re.sub(r"```python.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    text = re.sub(r"\\\n\s*", "", text)
    calls = re.findall(r"`(subdp [^`]+)`", text.replace("\n", " "))
    for line in re.findall(r"^(?: {4}|\t)(.*)$", text, re.MULTILINE):
        calls += re.findall(r"(?:^|\| |bin/)(subdp .*)", line)
    for call in calls:
        call = re.sub(r"^(subdp \S+) +", r"\1 ", call)  # Verbs may be aligned; other wide gaps precede an explanation.
        yield shlex.split(re.split(r"\s[|#;&]\s| {3,}", call)[0].replace("'", " "))


def flags(words: list[str]) -> set[str]:
    """The flags of the verb that a call begins with."""
    found = app
    for word in words[1:]:
        if word.startswith("-") or word not in found:
            break
        found = found[word]
    known = {name for flag in found.assemble_argument_collection() for name in flag.names}
    return {"--help", "--quiet", "--debug", *known}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_commands_have_the_flags_that_pages_use(page: Path) -> None:
    for words in commands(page):
        if words[1] == "VERB" or words[1].startswith("-"):
            continue
        assert words[1] in app, words
        used = {word.replace("_", "-") for word in words if re.fullmatch(r"--?[a-z][\w.-]*", word)}
        assert used <= flags(words), words


def test_the_service_answers_many_at_once_and_refuses_what_is_too_large() -> None:
    testclient = pytest.importorskip("starlette.testclient", reason="starlette is not installed")
    spec = spec_from_file_location("service", ROOT / "docs/examples/service.py")
    assert spec is not None
    assert spec.loader is not None
    service = module_from_spec(spec)
    spec.loader.exec_module(service)
    with testclient.TestClient(service.app) as client:
        answer = client.post("/parse", content="The little dog slept. Nobody saw it.")
        assert answer.status_code == 200
        assert answer.text.count("nsubj") == 2
        large = client.post("/parse", content="Go. " * 300_000)
        assert (large.status_code, "1,200,000 bytes" in large.text) == (413, True)
        long = client.post("/parse", content="a " * 100_000)
        assert (long.status_code, "100,000 words" in long.text) == (413, True)
        assert client.post("/parse", content="").text == ""
        assert client.post("/parse", content="Nobody saw it.").text.count("nsubj") == 1
