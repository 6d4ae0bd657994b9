"""`subdp run`: what it writes, and what it makes of its inputs."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from subdp.alignment.links import write_alignments
from subdp.corpus.bitext import read_bitext
from subdp.corpus.treebank import Sentence, write_conllu
from subdp.encoder.encoder import Encoder
from subdp.parser import Parser
from subdp.pipeline.options import RunOptions
from subdp.projection.silver import SilverStore
from subdp.support.errors import SubdpError
from subdp.support.settings import TrainConfig
from tests.cli.test_cli import run as command
from tests.grammar import toy_pairs
from tests.pipeline.toy_run import SETTINGS, STAGES, make, silent, states, write_bitext

pytestmark = pytest.mark.trains


class TestResults:
    def test_a_run_writes_all_that_users_scripts_depend_on(
        self, data: Path, source: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        call: list[str | Path] = [
            "run",
            "--bitext",
            data / "pairs.tsv",
            "-o",
            data / "out",
            "--source-parser",
            source,
            "--tokenized",
        ]
        call += ["--test", data / "test.conllu", "--dev", data / "test.conllu", "--adapt.epochs", "2"]
        assert command(*call) == 0
        said = capsys.readouterr()
        assert said.out.split()[:2] == ["UAS", "LAS"]
        assert [line[:7] for line in said.out.splitlines()[1:]] == ["direct ", "SubDP  ", "direct ", "SubDP, "]
        assert "[1/7] clean: read pairs.tsv" in said.err
        scores = json.loads((data / "out" / "scores.json").read_text())
        assert scores["direct"].keys() >= {"uas", "las"} <= scores["subdp"].keys()
        assert scores["dev"] == {name: scores[name] for name in ("direct", "subdp")}
        report = json.loads((data / "out" / "report.json").read_text())
        assert report["filters"]["read"] == 30
        assert 0 < report["projection"]["coverage"] <= 1
        assert len(report["projection"]["worst"]) == 10
        assert Parser.load(data / "out" / "parser").about["title"] == "A parser made from pairs.tsv"
        assert {path.name for path in (data / "out" / "parser").iterdir()} >= {"config.toml", "metrics.jsonl"}
        assert not list(data.glob("out/stages/*/training"))
        assert command(*call, "--json") == 0
        again = capsys.readouterr()
        assert "there is nothing to do" in again.err
        assert json.loads(again.out) == {"parser": str(data / "out" / "parser"), "scores": scores}

    def test_it_says_where_adaptation_started_unless_that_is_the_source_parser(
        self, data: Path, source: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        said: list[str] = []
        make(data, source).perform(said.append)
        assert not any("started from" in line for line in said)
        about = {"title": "between two", "licence": "CC0"}
        monkeypatch.setattr(Parser, "_start", lambda self, *_: (self._with(self.network, about=about), 1.0))
        make(data, source, "other").perform(said.append)
        assert any("is kept; it started from between two" in line for line in said)

    def test_the_config_asks_for_the_same_run_again(
        self, data: Path, source: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        make(data, source, settings=replace(SETTINGS, adapt=TrainConfig(epochs=1)), seed=7).perform(silent)
        again: list[str | Path] = ["run", "--config", data / "out" / "config.toml", "-o", data / "out"]
        assert command(*again) == 0
        assert "there is nothing to do" in capsys.readouterr().err
        assert command(*again, "--dry-run", "--seed", "8") == 0
        assert "adapt     redo: seed changed" in capsys.readouterr().out

    def test_without_gold_trees_the_result_is_where_the_parser_is(
        self, data: Path, source: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        call: list[str | Path] = ["run", "--bitext", data / "pairs.tsv", "-o", data / "out", "--source-parser", source]
        assert command(*call, "--adapt.epochs", "1") == 0
        assert capsys.readouterr().out == f"{data / 'out' / 'parser'}\n"
        assert not (data / "out" / "scores.json").exists()

    def test_a_treebank_trains_the_source_parser_first(self, data: Path, tiny_folder: Path) -> None:
        write_conllu((tree for tree, _, _ in toy_pairs(10)), data / "source.conllu")
        run = make(data, data, source_parser=(), treebank=str(data / "source.conllu"), encoder=str(tiny_folder))
        assert run.perform(silent) == 8
        assert Parser.load(data / "out" / "source-parser").about["trained_on"]["sentences"] == 10
        other = make(
            data, data, source_parser=(), treebank=str(data / "source.conllu"), encoder=str(tiny_folder), seed=2
        )
        assert states(other)["source"] == "changed"

    def test_several_parsers_with_other_labels_teach_one(self, data: Path, source: Path, tiny: Encoder) -> None:
        trees = [tree.with_tree(tree.heads, [_renamed(label) for label in tree.labels]) for tree, _, _ in toy_pairs(10)]
        short = replace(SETTINGS, train=TrainConfig(epochs=1), adapt=TrainConfig(epochs=1))
        Parser.train(trees, encoder=tiny, settings=short).save(data / "second")
        write_bitext(data / "more.tsv", toy_pairs(10, seed=4))
        run = make(data, source, settings=short)
        run.perform(silent)
        bitexts, parsers = (*run.options.bitext, str(data / "more.tsv")), (str(source), str(data / "second"))
        joined = make(data, source, settings=short, source_parser=parsers, bitext=bitexts)
        assert states(joined) == {
            "clean": "done", "clean-2": "new", "encode": "done", "encode-2": "new", "project": "done",
            "project-2": "new", "report": "changed", "adapt": "changed", "finish": "changed",
            "evaluate": "changed",
        }  # fmt: skip
        joined.perform(silent)
        parser = Parser.load(data / "out" / "parser")
        assert parser.label_names == (*Parser.load(source).label_names, "obl")
        report = json.loads((data / "out" / "report.json").read_text())
        assert [part["projection"]["pairs"] for part in report["bitexts"]] == [29, 10]
        assert report["projection"]["pairs"] == 39


def _renamed(label: str) -> str:
    return "obl" if label == "advmod" else label


class TestInputs:
    def test_two_files_of_a_bitext_are_joined_by_a_comma(self, data: Path, source: Path) -> None:
        pairs = toy_pairs(5)
        for name, side in (("en", 0), ("xx", 1)):
            (data / f"{name}.txt").write_text("".join(f"{' '.join(pair[side].words)}\n" for pair in pairs))  # type: ignore[union-attr]
        short = replace(SETTINGS, adapt=TrainConfig(epochs=1))
        make(data, source, settings=short, bitext=(f"{data}/en.txt,{data}/xx.txt",)).perform(silent)
        with pytest.raises(SubdpError, match="join two files that belong together by a comma"):
            make(data, source, "other", bitext=(f"{data}/en.txt", f"{data}/xx.txt")).perform(silent)

    def test_links_of_a_file_follow_their_pairs_past_the_filters(self, data: Path, source: Path) -> None:
        pairs = toy_pairs(12, seed=5)
        sides: list[list[Sentence]] = [[], []]
        for number, (one, other, _) in enumerate(pairs):
            for side, tree in zip(sides, (one, one if number == 3 else other), strict=True):
                words, name = tree.words, f"sent_id = s{number}"
                side.append(Sentence.of(words, heads=tree.heads, labels=tree.labels, comments=[name]))
        for name, trees in zip(("en", "xx"), sides, strict=True):
            write_conllu(trees, data / f"{name}.conllu")
        write_alignments((links for _, _, links in pairs), data / "links.txt")
        bitext = (f"{data}/en.conllu,{data}/xx.conllu",)
        short = replace(SETTINGS, adapt=TrainConfig(epochs=1))
        run = make(data, source, settings=short, bitext=bitext, aligner=str(data / "links.txt"))
        run.perform(silent)
        found = [(pair.target, pair.alignment) for pair in SilverStore(run.root / "project" / "silver")]
        wanted = {other.words: links for number, (_, other, links) in enumerate(pairs) if number != 3}
        assert len(found) > 8
        assert [wanted[target] for target, _ in found] == [alignment for _, alignment in found]

    def test_gold_trees_of_a_translated_treebank_are_projected(
        self, data: Path, source: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        gold = [tree for tree, _, _ in toy_pairs(12, seed=5)]
        write_conllu([*gold[:3], gold[2], *gold[3:]], data / "gold.conllu")  # a duplicate, which is left out
        translator = "command:tr a-z n-za-m"
        call = ["translate", data / "gold.conllu", "-o", data / "pairs.tsv", "--to", "xx", "--translator", translator]
        assert command(*call) == 0
        call = ["--bitext", data / "pairs.tsv", "--gold-trees", data / "gold.conllu"]
        assert command("project", *call, "--parser", source, "-o", data / "silver") == 0
        assert command("run", *call, "--source-parser", source, "-o", data / "out", "--adapt.epochs", "1") == 0
        assert "read the gold trees, align" in capsys.readouterr().err
        run = make(data, source, gold_trees=(str(data / "gold.conllu"),), tokenized=False, test=None)
        kept = [pair.source for pair in read_bitext(data / "pairs.tsv").clean()]
        unique = [tree for tree in {tree.words: tree for tree in gold}.values() if tree.words in kept]
        assert 5 < len(unique) < len(gold)
        for silver in (run.work.silver(0), SilverStore(data / "silver")):
            assert [pair.source for pair in silver] == [tree.words for tree in unique]
            assert [pair.tree(silver.inventory).best_tree().heads for pair in silver] == [tree.heads for tree in unique]
            assert {float(mass) for pair in silver for mass in pair.distributions["arcs"].flat} == {0.0, 1.0}

    def test_gold_trees_are_known_by_their_hash(self, data: Path, source: Path) -> None:
        trees = [tree for tree, _, _ in toy_pairs(30, seed=3)]
        write_conllu(trees, data / "gold.conllu")
        short = replace(SETTINGS, adapt=TrainConfig(epochs=1))
        gold: dict[str, Any] = {"settings": short, "gold_trees": (str(data / "gold.conllu"),)}
        make(data, source, **gold).perform(silent)
        assert set(states(make(data, source, **gold)).values()) == {"done"}
        assert states(make(data, source, settings=short))["project"] == "changed"
        flat = [tree.with_tree([3, 3, 0, *[3] * (len(tree) - 3)], tree.labels) for tree in trees]
        write_conllu(flat, data / "gold.conllu")
        run = make(data, source, **gold)
        assert [name for name, state in states(run).items() if state == "changed"] == STAGES[2:]
        assert "project   redo: gold_trees changed" in run.plan()
        write_conllu(trees[1:], data / "gold.conllu")
        with pytest.raises(SubdpError, match=r"pairs.tsv:1: '.*' has no gold tree"):
            make(data, source, **gold).perform(silent)

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"bitext": ()}, "no bitext is named"),
            ({"treebank": "en.conllu"}, "both a treebank and a source parser"),
            ({"bitext": ("a", "b", "c"), "source_parser": ("p", "q")}, "2 source parsers for 3 bitexts"),
            ({"gold_trees": ("a", "b")}, "2 treebanks of gold trees for 1 bitext"),
            ({"gold_trees": ("absent.conllu",)}, "absent.conllu: no such file"),
            ({"bitext": ("-",)}, "cannot read standard input"),
            ({"gold_trees": ("-",)}, "cannot read standard input"),
            ({"aligner": "magic"}, "there is no aligner 'magic'.*argmax"),
            ({"bitext": ("absent.tsv",)}, "absent.tsv: no such file"),
            ({"source_parser": ("absent",)}, "absent: no such model folder"),
        ],
    )
    def test_what_cannot_be_is_said_before_anything_is_done(
        self, data: Path, source: Path, changes: dict[str, Any], message: str
    ) -> None:
        with pytest.raises(SubdpError, match=message):
            make(data, source, **changes).perform(silent)
        assert not (data / "out").exists()

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("run = 3\n", "run is not a section"),
            ("[run]\nbitexts = []\n", "there is no setting 'bitexts'"),
            ("[run]\nbitext = 'a'\n", "bitext cannot be 'a' .give a list of names"),
            ("[run]\nbitext = ['a']\nseed = -1\n", "seed cannot be -1 .give a whole number of at least 0"),
            ("[run]\nbitext = ['a']\npreset = 'huge'\n", "preset cannot be 'huge' .give small or paper"),
            ("[run]\nbitext = ['a']\ntest = 3\n", "test cannot be 3 .give a name"),
            ("[run]\nbitext = ['a']\none_to_one = 1\n", "one_to_one cannot be 1 .give true or false"),
        ],
    )
    def test_mistakes_in_the_config_are_told_with_the_file(self, tmp_path: Path, text: str, message: str) -> None:
        (tmp_path / "run.toml").write_text(text)
        with pytest.raises(SubdpError, match=f"run.toml: {message}"):
            RunOptions.resolve(tmp_path / "run.toml", {})

    def test_a_call_without_bitext_is_exit_2(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert command("run", "-o", tmp_path / "out") == 2
        assert "--bitext is missing" in capsys.readouterr().err

    def test_help_does_without_torch(self) -> None:
        code = "import sys, subdp.cli.main, subdp.pipeline.run; sys.exit('torch' in sys.modules)"
        assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize(
    ("bitext", "language"),
    [
        (("data/en-de.tsv",), "de"),
        (("en.txt,de.txt",), "de"),
        (("ntrex.en.gz,ntrex.tr.gz", "en-tr.tsv"), "tr"),
        (("en-de.tsv", "en-tr.tsv"), None),
        (("my.tsv",), None),
        (("pairs.tsv",), None),
        (("pairs_ok.tsv",), None),
        (("en-pt_br.tsv",), None),
    ],
)
def test_the_names_of_the_bitexts_tell_the_language(bitext: tuple[str, ...], language: str | None) -> None:
    assert RunOptions(bitext).language == language
