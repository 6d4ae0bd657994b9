"""`subdp run`: what it writes, what it does again and what not, and that no mishap costs more than a moment's work."""

from __future__ import annotations

import errno
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
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
from subdp.pipeline.run import Run
from subdp.pipeline.stages import MANIFEST
from subdp.projection.silver import SilverStore
from subdp.support.errors import SubdpError
from subdp.support.files import open_output
from subdp.support.settings import NetworkConfig, Settings, TrainConfig
from tests.cli.test_cli import run as command
from tests.grammar import toy_pairs

pytestmark = pytest.mark.trains

SETTINGS = replace(
    Settings.resolve(),
    network=NetworkConfig(features=16, lstm=12, lstm_layers=1, arc=12, label=8, dropout=0.1),
    train=TrainConfig(epochs=8, batch_words=100, lr=1e-2),
    adapt=TrainConfig(epochs=3, batch_words=100, lr=5e-3),
)
STAGES = ["clean", "encode", "project", "report", "adapt", "finish", "evaluate"]


@pytest.fixture(scope="module")
def source(tiny: Encoder, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The model folder of a source parser."""
    folder = tmp_path_factory.mktemp("source") / "parser"
    Parser.train((tree for tree, _, _ in toy_pairs(40)), encoder=tiny, settings=SETTINGS).save(folder)
    return folder


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a bitext and gold trees, and a cache of its own."""
    monkeypatch.setenv("SUBDP_CACHE", str(tmp_path / "cache"))
    write_bitext(tmp_path / "pairs.tsv", toy_pairs(30, seed=3))
    write_conllu((tree for _, tree, _ in toy_pairs(10, seed=9)), tmp_path / "test.conllu")
    return tmp_path


def write_bitext(path: Path, pairs: list[Any]) -> None:
    path.write_text("".join(f"{' '.join(one.words)}\t{' '.join(other.words)}\n" for one, other, _ in pairs))


def make(data: Path, source: Path, output: str = "out", settings: Settings = SETTINGS, **changes: Any) -> Run:
    values = {"bitext": (str(data / "pairs.tsv"),), "source_parser": (str(source),), "test": str(data / "test.conllu")}
    return Run(RunOptions(**{**values, "tokenized": True, **changes}), settings, data / output)


def states(run: Run) -> dict[str, str]:
    return {stage.name: stage.state(run.root)[0] for stage in run.stages}


def result(run: Run) -> tuple[Any, bytes]:
    """The scores and the weights: what must be the same whatever happened on the way."""
    return run.scores(), (run.output / "parser" / "model.safetensors").read_bytes()


def silent(_: str) -> None: ...


@pytest.fixture(scope="module")
def undisturbed(source: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, bytes]:
    """The result of a run that nothing disturbed, with shards so small that there are many."""
    with pytest.MonkeyPatch.context() as patch:
        small_shards(patch)
        folder = tmp_path_factory.mktemp("undisturbed")
        patch.setenv("SUBDP_CACHE", str(folder / "cache"))
        write_bitext(folder / "pairs.tsv", toy_pairs(30, seed=3))
        write_conllu((tree for _, tree, _ in toy_pairs(10, seed=9)), folder / "test.conllu")
        run = make(folder, source)
        run.perform(silent)
        return result(run)


def small_shards(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("subdp.projection.silver.SHARD", 8)
    patch.setattr("subdp.alignment.similarity._BLOCK", 8)
    patch.setattr("subdp.encoder.feature_store._SHARD_BYTES", 10_000)


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
        with pytest.raises(SubdpError, match="joined by a comma"):
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


class TestRedoing:
    def test_only_what_depends_on_a_change_is_done_again(self, data: Path, source: Path) -> None:
        make(data, source).perform(silent)

        def changed(settings: Settings = SETTINGS, **changes: Any) -> list[str]:
            return [
                name
                for name, state in states(make(data, source, settings=settings, **changes)).items()
                if state != "done"
            ]

        assert changed() == []
        assert changed(test=None) == []
        assert changed(dev=str(data / "test.conllu")) == ["evaluate"]
        assert changed(seed=2) == ["adapt", "finish", "evaluate"]
        assert changed(replace(SETTINGS, adapt=TrainConfig(epochs=4))) == ["adapt", "finish", "evaluate"]
        assert changed(replace(SETTINGS, train=TrainConfig(epochs=4), tune=TrainConfig(epochs=4))) == []
        assert changed(trees=(str(data / "test.conllu"),), test=None) == ["finish"]
        means = replace(SETTINGS, losses=replace(SETTINGS.losses, many_to_one="mean"))
        assert changed(means) == ["report", "adapt", "finish", "evaluate"]
        assert changed(aligner="itermax") == ["project", "report", "adapt", "finish", "evaluate"]
        assert changed(one_to_one=True) == ["project", "report", "adapt", "finish", "evaluate"]
        (data / "pairs.tsv").write_text((data / "pairs.tsv").read_text() + "the dog\tla hundo\n")
        assert changed() == STAGES

    def test_a_changed_option_gives_what_a_new_run_gives(self, data: Path, source: Path) -> None:
        make(data, source).perform(silent)
        run, new = make(data, source, aligner="match"), make(data, source, "new", aligner="match")
        assert run.plan().splitlines()[2:4] == ["project   redo: aligner changed", "report    redo: project changed"]
        assert run.perform(silent) == 5
        new.perform(silent)
        assert result(run) == result(new)

    def test_corrected_trees_cost_no_more_than_their_own_training_and_can_be_taken_back(
        self, data: Path, source: Path
    ) -> None:
        plain = make(data, source, test=None)
        plain.perform(silent)
        before = result(plain)
        write_conllu((tree for _, tree, _ in toy_pairs(5, seed=8)), data / "corrected.conllu")
        corrected = make(data, source, test=None, trees=(str(data / "corrected.conllu"),))
        assert [name for name, state in states(corrected).items() if state != "done"] == ["finish"]
        assert corrected.perform(silent) == 1
        parser = Parser.load(data / "out" / "parser")
        assert parser.about["adapted_on"]["trees"] == 5
        assert parser.about["title"] == parser.about["adapted_from"]["title"]
        assert make(data, source, test=None).perform(silent) == 1
        assert result(plain) == before
        shutil.rmtree(data / "out" / "stages" / "adapt" / "parser")
        assert states(corrected)["adapt"] == "begun", "what is lost is made again"
        corrected.perform(silent)
        assert Parser.load(data / "out" / "parser").fingerprint == parser.fingerprint

    def test_a_dry_run_writes_nothing(self, data: Path, source: Path, capsys: pytest.CaptureFixture[str]) -> None:
        call: list[str | Path] = [
            "run",
            "--bitext",
            data / "pairs.tsv",
            "-o",
            data / "out",
            "--source-parser",
            source,
            "--dry-run",
        ]
        assert command(*call) == 0
        assert (
            capsys.readouterr().out
            == "clean    to do\nencode   to do\nproject  to do\nreport   to do\nadapt    to do\nfinish   to do\n"
        )
        assert not (data / "out").exists()

    def test_a_finished_run_touches_nothing(self, data: Path, source: Path) -> None:
        run = make(data, source)
        assert run.perform(silent) == 7
        before = {path: path.stat().st_mtime_ns for path in run.output.rglob("*")}
        assert make(data, source).perform(silent) == 0
        assert {path: path.stat().st_mtime_ns for path in run.output.rglob("*")} == before

    def test_a_damaged_manifest_or_a_lost_result_is_made_again(self, data: Path, source: Path) -> None:
        run = make(data, source)
        run.perform(silent)
        before = result(run)
        (run.root / "project" / MANIFEST).write_text("{")
        (run.output / "scores.json").unlink()
        assert {name for name, state in states(run).items() if state != "done"} == {"project", "evaluate"}
        assert make(data, source).perform(silent) == 2
        assert result(run) == before


class TestMishaps:
    @pytest.mark.parametrize("stage", STAGES)
    def test_ctrl_c_in_any_stage_costs_no_more_than_that(
        self, data: Path, source: Path, undisturbed: Any, monkeypatch: pytest.MonkeyPatch, stage: str
    ) -> None:
        small_shards(monkeypatch)
        said: list[str] = []
        with monkeypatch.context() as patch:
            patch.setattr(*_late(stage, KeyboardInterrupt()))
            with pytest.raises(KeyboardInterrupt):
                make(data, source).perform(said.append)
        assert said[-1].startswith(f"stopped in stage {stage};")
        assert "the same command resumes" in said[-1]
        run = make(data, source)
        assert list(states(run).values()) == ["done"] * STAGES.index(stage) + ["begun"] + ["new"] * (
            len(STAGES) - 1 - STAGES.index(stage)
        )
        run.perform(said.append)
        assert result(run) == undisturbed

    @pytest.mark.parametrize(
        "file", ["pairs.jsonl", "00002.arrow", "report.json", "checkpoint.safetensors", "scores.json"]
    )
    def test_a_full_disk_is_told_and_leaves_nothing_half_written(
        self, data: Path, source: Path, undisturbed: Any, monkeypatch: pytest.MonkeyPatch, file: str
    ) -> None:
        small_shards(monkeypatch)
        with monkeypatch.context() as patch:
            for module in ("support.files", "pipeline.work", "projection.silver", "training.loop"):
                patch.setattr(f"subdp.{module}.open_output", _full(file))
            with pytest.raises(SubdpError, match=r"No space left on device \(make room"):
                make(data, source).perform(silent)
        assert not [path for path in (data / "out").rglob("*") if path.name == file and "stages" not in path.parts]
        run = make(data, source)
        run.perform(silent)
        assert result(run) == undisturbed

    def test_a_full_disk_while_the_parser_is_saved(
        self, data: Path, source: Path, undisturbed: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        small_shards(monkeypatch)

        def full(self: Path, data: bytes) -> int:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self))

        with monkeypatch.context() as patch:
            patch.setattr(Path, "write_bytes", full)
            with pytest.raises(SubdpError, match="No space left on device"):
                make(data, source).perform(silent)
        assert [path.name for path in (data / "out").iterdir() if path.name != "stages"] == ["report.json"]
        run = make(data, source)
        assert run.perform(silent) == 3
        assert result(run) == undisturbed

    def test_killed_while_writing_the_last_file_it_writes_it(self, data: Path, source: Path) -> None:
        run = make(data, source)
        run.perform(silent)
        config = run.output / "config.toml"
        for former in ("", "# of a run before it\n"):
            config.rename(run.output / ".config.toml.0123abcd")
            if former:
                config.write_text(former)
            assert run.perform(silent) == 0
            assert config.read_text() == run.config()
            assert not (run.output / ".config.toml.0123abcd").exists()

    def test_a_config_that_a_run_reads_is_there_until_the_run_is_done(
        self, data: Path, source: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        make(data, source, settings=replace(SETTINGS, adapt=TrainConfig(epochs=1))).perform(silent)
        config = data / "out" / "config.toml"
        edited = config.read_text().replace("seed = 1", "seed = 2  # mine")
        config.write_text(edited)
        again: list[str | Path] = ["run", "--config", config, "-o", data / "out"]
        with monkeypatch.context() as patch:
            patch.setattr("subdp.pipeline.work.Work.adapt", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt()))
            assert command(*again) != 0
        assert config.read_text() == edited
        assert command(*again) == 0
        assert "seed = 2" in config.read_text()

    @pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
    def test_killed_at_ten_random_moments_it_ends_with_the_same_scores(
        self, data: Path, source: Path, undisturbed: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        small_shards(monkeypatch)
        start = time.perf_counter()
        make(data, source, "timed").perform(silent)
        whole = time.perf_counter() - start
        monkeypatch.setenv("SUBDP_CACHE", str(data / "cache2"))
        choose = random.Random(5)
        killed = 0
        while killed < 10:
            if _killed_after(make(data, source), choose.uniform(0, whole / 2)):
                killed += 1
            else:  # It was finished: take some of it away again.
                (data / "out" / "stages" / choose.choice(STAGES) / MANIFEST).unlink()
        run = make(data, source)
        run.perform(silent)
        assert result(run) == undisturbed
        assert not list(run.output.rglob(".*"))

    def test_folders_that_cannot_be_written_to(self, data: Path, source: Path) -> None:
        (data / "file").write_text("")
        (data / "thesis").mkdir()
        (data / "thesis" / "chapter1.txt").write_text("years of work")
        with pytest.raises(SubdpError, match=r"file: cannot be written: File exists \(name another folder"):
            make(data, source, "file").perform(silent)
        with pytest.raises(SubdpError, match="file/out: cannot be written: Not a directory"):
            make(data, source, "file/out").perform(silent)
        with pytest.raises(SubdpError, match=r"thesis: holds other files \(name a new folder"):
            make(data, source, "thesis").perform(silent)
        assert [path.name for path in (data / "thesis").iterdir()] == ["chapter1.txt"]

    @pytest.mark.parametrize("name", ["parser/config.json", "stages/clean/pairs.jsonl", "stages/1/manifest.json"])
    def test_a_folder_that_only_looks_like_a_run_is_left_alone(self, data: Path, source: Path, name: str) -> None:
        file = data / "mine" / name
        file.parent.mkdir(parents=True)
        file.write_text('{"model_type": "bert"}')
        (data / "mine" / "stages").mkdir(exist_ok=True)
        before = sorted(data.rglob("*"))
        with pytest.raises(SubdpError, match="mine: holds other files"):
            make(data, source, "mine").perform(silent)
        assert sorted(data.rglob("*")) == before

    def test_a_model_of_others_put_in_the_parsers_place_is_refused_before_anything_is_done(
        self, data: Path, source: Path
    ) -> None:
        make(data, source).perform(silent)
        swap = data / "out" / ".config.toml.swp"
        swap.write_text("an editor has it open")
        shutil.rmtree(data / "out" / "parser")
        (data / "out" / "parser").mkdir()
        (data / "out" / "parser" / "config.json").write_text('{"model_type": "bert"}')
        said: list[str] = []
        with pytest.raises(SubdpError, match="parser: holds something other than a parser"):
            make(data, source, seed=9).perform(said.append)
        assert said == []
        assert (data / "out" / "parser" / "config.json").exists()
        assert swap.exists()

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("the dog\tthe dog\na cat\ta cat\n", "no pair can be used: 2 pairs read, 0 kept; left out: 2 copy"),
            ("the dog\t\n\tla kato\n\t\n", "no pair can be used: 3 pairs read, 0 kept; left out: 3 empty side"),
            ("", "no lines"),
            ("the dog la hundo\n", "pairs.tsv:1: no tab in the line"),
            ("the dog\tla hundo\nthe d\xf6g\tla hundo\n", "pairs.tsv:2: byte 0xf6 is not UTF-8 .*iconv"),
        ],
    )
    def test_a_bitext_of_which_nothing_can_be_used(self, data: Path, source: Path, text: str, message: str) -> None:
        (data / "pairs.tsv").write_bytes(text.encode("latin-1"))
        with pytest.raises(SubdpError, match=message):
            make(data, source).perform(silent)
        assert not (data / "out" / "parser").exists()
        write_bitext(data / "pairs.tsv", toy_pairs(5))
        make(data, source).perform(silent)

    @pytest.mark.parametrize(
        ("text", "dropped"),
        [
            ("the dog sees a cat\tla hundo vidas unu katon\n", {}),
            ("the dog sees a cat\tהכלב רואה חתול\nthe bird\tالطائر\n", {}),
            ("the dog sees a cat\tla 狗 видит कुत्ता 🐕\na bird\tथ 鳥\n", {}),
            (f"the dog\tla hundo\n{'dog ' * 1250}\t{'hundo ' * 833}\n{'d' * 5000}\t{'h' * 5000}\n", {"too long": 1}),
        ],
    )
    def test_strange_text_and_a_single_pair_go_through(
        self, data: Path, source: Path, text: str, dropped: dict[str, int]
    ) -> None:
        (data / "pairs.tsv").write_text(text)
        run = make(data, source, settings=replace(SETTINGS, adapt=TrainConfig(epochs=1)), tokenized=False)
        run.perform(silent)
        assert json.loads((run.output / "report.json").read_text())["filters"]["dropped"] == dropped

    def test_gold_trees_in_latin_1_are_found_before_anything_is_done(self, data: Path, source: Path) -> None:
        good = (data / "test.conllu").read_text()
        (data / "test.conllu").write_bytes(good.replace("\tla\t", "\tl\xfc\t").encode("latin-1"))
        said: list[str] = []
        with pytest.raises(SubdpError, match=r"test.conllu:\d+: byte 0xfc is not UTF-8 .*iconv"):
            make(data, source).perform(said.append)
        assert said == []

    def test_a_treebank_in_latin_1(self, data: Path, tiny_folder: Path) -> None:
        write_conllu((tree for tree, _, _ in toy_pairs(3)), data / "source.conllu")
        text = (data / "source.conllu").read_text().replace("dog", "d\xf6g", 1)
        (data / "source.conllu").write_bytes(text.encode("latin-1"))
        run = make(data, data, source_parser=(), treebank=str(data / "source.conllu"), encoder=str(tiny_folder))
        with pytest.raises(SubdpError, match=r"source.conllu:\d+: byte 0xf6 is not UTF-8"):
            run.perform(silent)
        assert not (data / "out" / "source-parser").exists()

    def test_a_training_that_did_not_begin_is_not_in_the_way(
        self, data: Path, tiny_folder: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        (data / "latin.conllu").write_bytes(b"1\td\xf6g\t_\t_\t_\t_\t0\troot\t_\t_\n\n")
        call = ("train", "--treebank", data / "latin.conllu", "-o", data / "out", "--encoder", tiny_folder)
        for _ in range(2):
            assert command(*call) == 1
            assert "latin.conllu:1: byte 0xf6 is not UTF-8" in capsys.readouterr().err
        (data / "out.training" / "checkpoint.safetensors").touch()
        assert command(*call) == 1
        assert "holds an interrupted training run (resume it with --resume" in capsys.readouterr().err


def _late(stage: str, error: BaseException) -> tuple[str, Callable[..., Any]]:
    """What to patch so that a stage fails when part of its work is done."""

    def fail(*_: Any, **__: Any) -> Any:
        raise error

    after = iter(range(3))

    def third(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*values: Any, **options: Any) -> Any:
            if next(after, None) == 2:
                raise error
            return real(*values, **options)

        return call

    import subdp.encoder.shards
    import subdp.projection.silver
    import subdp.training.loop

    return {
        "clean": ("subdp.pipeline.work.pair_as_line", fail),
        "encode": ("subdp.encoder.feature_store.write_shard", third(subdp.encoder.shards.write_shard)),
        "project": ("subdp.projection.silver.open_output", third(open_output)),
        "report": ("subdp.pipeline.work.pair_qualities", fail),
        "adapt": ("subdp.training.loop._write", third(subdp.training.loop._write)),
        "finish": ("subdp.pipeline.work.read_trees", fail),
        "evaluate": ("subdp.pipeline.work.as_values", fail),
    }[stage]


def _full(name: str) -> Callable[..., Any]:
    """`open_output` on a disk that is full by the time the file of that name is written."""
    from contextlib import contextmanager

    @contextmanager
    def opened(target: Any) -> Iterator[Any]:
        with open_output(target) as output:
            yield output
            if str(target).endswith(name):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    return opened


def _killed_after(run: Run, seconds: float) -> bool:
    """Run in another process and kill it after so many seconds; False if it was finished by then."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of threads and fork: the child does nothing with the parent's
        child = os.fork()
    if child == 0:
        try:
            run.perform(silent)
        finally:
            os._exit(0)
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != 0


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
