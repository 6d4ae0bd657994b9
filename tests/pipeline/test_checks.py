"""Each warning on a bitext that is spoiled in its way, and silence on clean ones."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from subdp.alignment.links import Alignment
from subdp.corpus.bitext import Bitext, Pair, read_bitext
from subdp.parser import Parser
from subdp.pipeline.checks import Caution, pair_cautions, score_cautions, size_cautions, text_cautions
from subdp.pipeline.quickstart import SAMPLE
from subdp.projection.silver import Silver, SilverPair
from subdp.support.settings import TrainConfig
from tests.cli.test_cli import run as command
from tests.pipeline.toy_run import SETTINGS, make, silent

LANGUAGES = pytest.mark.parametrize("language", ["de", "tr"])


@pytest.fixture(scope="module")
def parser() -> Parser:
    """The English parser, with the bundled encoder."""
    return Parser.load("en")


def sample(language: str) -> list[Pair]:
    return list(read_bitext(SAMPLE / f"en-{language}.tsv"))


def silver(pairs: Sequence[Pair]) -> Silver:
    return Silver.of([SilverPair(pair.source, pair.target, Alignment.of([]), {}) for pair in pairs], {"arcs": ()})


def kinds(cautions: Sequence[Caution]) -> list[str]:
    return [caution.kind for caution in cautions]


@LANGUAGES
def test_clean_pairs_are_silent(parser: Parser, language: str) -> None:
    pairs = sample(language)
    assert text_cautions(Bitext.of(pairs)) == []
    assert pair_cautions(parser, silver(pairs), "x") == []
    few = pair_cautions(parser, silver(pairs[:20]), "x")
    assert few == [], "nor does a small sample raise an alarm"


@LANGUAGES
def test_swapped_columns(parser: Parser, language: str) -> None:
    pairs = [Pair(pair.target, pair.source) for pair in sample(language)]
    (caution,) = pair_cautions(parser, silver(pairs), "x.tsv")
    assert caution.kind == "swapped"
    assert str(caution).startswith(
        "warning: x.tsv: the source parser is surer of the source than of the target in only"
    )
    assert "are the columns swapped?" in caution.text


@LANGUAGES
def test_shifted_lines(parser: Parser, language: str) -> None:
    pairs = list(pairwise(sample(language)))
    for said, shifted in (
        ("that of the next line", [Pair(second.source, first.target) for first, second in pairs]),
        ("that of the line before", [Pair(first.source, second.target) for first, second in pairs]),
    ):
        (caution,) = pair_cautions(parser, silver(shifted), "x.tsv")
        assert caution.kind == "shifted"
        assert said in caution.text
        assert caution.value < 0.2


def test_lines_that_are_shifted_from_the_middle_on(parser: Parser) -> None:
    pairs = sample("de")
    later = [Pair(first.source, second.target) for first, second in pairwise(pairs[60:])]
    (caution,) = pair_cautions(parser, silver([*pairs[:60], *later]), "x.tsv")
    assert caution.kind == "shifted"
    assert 0.4 < caution.value < 0.6


@pytest.mark.parametrize(
    ("markup", "found"),
    [
        ("Das ist <b>neu</b>.", "< b >"),
        ('<seg id="1">Das</seg>', '< seg id = " 1 " >'),
        ("Hund &amp; Katze", "& amp ;"),
        ("Hund&#160;!", "& # 160 ;"),
        ("Das [[Haus]]", "[ ["),
        ("Fr&uuml;her", "& uuml ;"),
    ],
)
def test_markup(tmp_path: Path, markup: str, found: str) -> None:
    path = tmp_path / "x.tsv"
    path.write_text("This is new.\tDas ist neu.\n" * 60 + f"A dog.\t{markup}\n")
    (caution,) = text_cautions(read_bitext(path))
    assert caution.kind == "markup"
    assert f"x.tsv: 2% of the pairs have markup, such as {found!r} in line 61" in caution.text


@pytest.mark.parametrize("text", ["3 < 4 und 5 > 4", "Hund & Katze; Maus", "a <- b", "R&D;", "<3"])
def test_signs_that_are_no_markup(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.tsv"
    path.write_text(f"A dog.\t{text}\n")
    assert text_cautions(read_bitext(path)) == []


@pytest.mark.parametrize(
    "header", ["English\tGerman", "source\ttarget", "en\tde", "Source text\tTranslation", "English\tYorùbá"]
)
def test_a_header(tmp_path: Path, header: str) -> None:
    path = tmp_path / "x.tsv"
    path.write_text(f"{header}\nA dog sleeps.\tEin Hund schläft.\n")
    (caution,) = text_cautions(read_bitext(path))
    assert caution.kind == "header"
    assert "x.tsv:1: looks like a header" in caution.text
    path.write_text(f"A dog sleeps.\tEin Hund schläft.\n{header}\n")
    assert text_cautions(read_bitext(path)) == [], "further down it is just a pair"


def test_few_pairs_and_few_links() -> None:
    assert size_cautions({"pairs": 50, "linked": 0.6}) == []
    (few,) = size_cautions({"pairs": 49, "linked": 0.6})
    assert few.text.startswith("only 49 pairs can be used; the method was never measured with fewer than 50")
    (links,) = size_cautions({"pairs": 400, "linked": 0.2})
    assert links.text.startswith("only 20% of the target's words have a link")


def test_direct_transfer_that_is_as_good() -> None:
    good, bad = {"uas": 70.0, "las": 60.0}, {"uas": 60.0, "las": 50.0}
    assert score_cautions({"direct": bad, "subdp": good, "dev": {"direct": bad, "subdp": good}}) == []
    assert kinds(score_cautions({"direct": good, "subdp": good})) == ["direct"]
    (caution,) = score_cautions({"direct": bad, "subdp": good, "dev": {"direct": good, "subdp": bad}})
    assert "on the dev set direct transfer has LAS 60.0, the adapted parser 50.0" in caution.text


@pytest.mark.trains
def test_a_run_says_them_and_keeps_them(data: Path, source: Path) -> None:
    text = (data / "pairs.tsv").read_text()
    (data / "pairs.tsv").write_text("source\ttarget\n" + text.replace("vidas", "<i> vidas </i>"))
    (data / "links.txt").write_text("0-0\n" * 31)
    still = replace(SETTINGS, adapt=TrainConfig(epochs=1, lr=1e-12))  # It learns nothing: direct transfer is as good.
    said: list[str] = []
    run = make(data, source, settings=still, aligner=str(data / "links.txt"))
    run.perform(said.append)
    report = data / "out" / "report.json"
    warnings = json.loads(report.read_text())["warnings"]
    assert {"markup", "header", "pairs", "links", "direct"} <= {one["kind"] for one in warnings}
    assert all(one["text"] in "\n".join(said) for one in warnings)
    report.unlink()
    run.perform(silent)
    assert json.loads(report.read_text())["warnings"] == warnings


@pytest.mark.trains
def test_project_says_and_keeps_them_too(data: Path, source: Path, capsys: pytest.CaptureFixture[str]) -> None:
    call = ["project", "--bitext", data / "pairs.tsv", "--parser", source, "--tokenized", "-o", data / "silver"]
    assert command(*call) == 0
    assert "warning: only" in (said := capsys.readouterr().err)
    report = json.loads((data / "silver" / "report.json").read_text())
    assert {"pairs"} <= {one["kind"] for one in report["warnings"]}
    assert all(one["text"] in said for one in report["warnings"])
    assert report["projection"]["pairs"] == report["filters"]["kept"]
