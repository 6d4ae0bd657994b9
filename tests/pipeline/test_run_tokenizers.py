"""A run with a tokenizer of a plug-in: the parser keeps it, and words go to another aligner and links come back."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from subdp.corpus.treebank import read_conllu
from subdp.parser import Parser
from subdp.pipeline.run import Run
from subdp.projection.silver import SilverStore
from subdp.support.errors import SubdpError
from subdp.support.settings import TrainConfig
from tests.cli.test_cli import run as command
from tests.grammar import toy_pairs
from tests.pipeline.toy_run import SETTINGS, make, silent, states
from tests.support.test_plugins import install

pytestmark = pytest.mark.trains

SHORT = replace(SETTINGS, adapt=TrainConfig(epochs=1))


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A bitext whose target has dots for spaces, with a tokenizer that knows them, and two lines that are dropped."""
    monkeypatch.setenv("SUBDP_CACHE", str(tmp_path / "cache"))
    monkeypatch.syspath_prepend(str(tmp_path))
    code = "def words(text): return text.split('.')\n"
    install(tmp_path, "dotted", "[subdp.tokenizers]\ndotted = dotted:words\n", code)
    lines = [f"{' '.join(one.words)}\t{'.'.join(other.words)}\n" for one, other, _ in toy_pairs(12, seed=5)]
    lines[3:3] = ["the dog sleeps\t\n", "the dog sleeps\tthe.dog.sleeps\n"]
    (tmp_path / "pairs.tsv").write_text("".join(lines))
    return tmp_path


def dotted(data: Path, source: Path, **changes: str) -> Run:
    options: dict[str, Any] = {"tokenized": False, "tokenizer": "dotted", "test": None, **changes}
    return make(data, source, settings=SHORT, **options)


def test_the_parser_keeps_the_tokenizer_and_uses_it(data: Path, source: Path) -> None:
    run = dotted(data, source)
    run.perform(silent)
    parser = Parser.load(run.output / "parser")
    assert parser.tokenizer == "dotted"
    (sentence,) = parser("la.hundo.vidas")
    assert sentence.words == ("la", "hundo", "vidas")
    (sentence,) = parser("la hundo!", tokenizer="unicode")
    assert sentence.words == ("la", "hundo", "!")
    (data / "text.txt").write_text("la.kato.amas\n")
    for verb in ("parse", "annotate"):
        call = [verb, data / "text.txt", "--parser", run.output / "parser", "-o", data / "trees.conllu"]
        assert command(*call) == 0
        (sentence,) = read_conllu(data / "trees.conllu")
        assert sentence.words == ("la", "kato", "amas")
        assert command(*call, "--tokenizer", "whitespace") == 0
        (sentence,) = read_conllu(data / "trees.conllu")
        assert sentence.words == ("la.kato.amas",)
    config = run.output / "parser" / "config.json"
    facts = json.loads(config.read_text())
    del facts["tokenizer"]
    config.write_text(json.dumps(facts))
    assert Parser.load(run.output / "parser").tokenizer == "auto"


def test_single_steps_keep_it_too(data: Path, source: Path) -> None:
    call = ["project", "--bitext", data / "pairs.tsv", "--parser", source, "--tokenizer", "dotted"]
    assert command(*call, "-o", data / "silver") == 0
    call = ["adapt", "--silver", data / "silver", "--parser", source, "--adapt.epochs", "1"]
    assert command(*call, "-o", data / "parser") == 0
    assert Parser.load(data / "parser").tokenizer == "dotted"


def test_another_tokenizer_or_version_is_another_run(data: Path, source: Path) -> None:
    run = dotted(data, source)
    run.perform(silent)
    assert set(states(dotted(data, source)).values()) == {"done"}
    assert states(dotted(data, source, tokenizer="whitespace"))["clean"] == "changed"
    metadata = data / "dotted-1.2.dist-info" / "METADATA"
    metadata.write_text(metadata.read_text().replace("1.2", "1.3"))
    assert states(dotted(data, source))["clean"] == "changed"


def test_a_script_without_its_tokenizer_stops_a_run_before_any_work(data: Path, source: Path) -> None:
    (data / "pairs.tsv").write_text("the dog\tឆ្កែ\n", encoding="utf-8")
    with pytest.raises(SubdpError, match=r"pairs\.tsv: the target is written in Khmer script"):
        dotted(data, source, tokenizer="auto").perform(silent)
    assert not (data / "out").exists()
    with pytest.raises(SubdpError, match="no tokenizer is called 'khmer'"):
        dotted(data, source, tokenizer="khmer").perform(silent)
    with pytest.raises(SubdpError, match="a tokenizer is named for tokenised text"):
        make(data, source, tokenizer="dotted")


def test_words_go_to_another_aligner_and_its_links_come_back(
    data: Path, source: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = data / "words.tsv"
    call = ["align", "--bitext", data / "pairs.tsv", "--tokenizer", "dotted", "--write-words", words]
    assert command(*call) == 0
    assert capsys.readouterr().out == "", "no links are made unless they are asked for"
    lines = words.read_text().splitlines()
    assert len(lines) == 14
    assert lines[3] == ""
    assert lines[4] == "the dog sleeps\tthe dog sleeps"
    # An aligner that links the first word to the last.
    last = [len(line.partition("\t")[2].split()) - 1 for line in lines]
    links = data / "links.txt"
    links.write_text("".join(f"0-{at}\n" if at >= 0 else "\n" for at in last))
    run = dotted(data, source, aligner=str(links))
    run.perform(silent)
    silver = list(SilverStore(run.root / "project" / "silver"))
    assert 8 < len(silver) < 13, "the filters drop some pairs"
    assert all(pair.alignment.links == ((0, len(pair.target) - 1),) for pair in silver)
    again = make(data, source, "again", SHORT, bitext=(str(words),), aligner=str(links), test=None)
    again.perform(silent)
    assert [pair.target for pair in SilverStore(again.root / "project" / "silver")] == [pair.target for pair in silver]


def test_white_space_inside_a_word_does_not_make_two(data: Path) -> None:
    (data / "pairs.tsv").write_text("the dog\tla hundo.dormas\n")
    assert command("align", "--bitext", data / "pairs.tsv", "--tokenizer", "dotted", "--write-words", data / "w") == 0
    assert (data / "w").read_text() == "the dog\tla_hundo dormas\n"
