"""`subdp run`: what it does again after a change, and what not."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from subdp.corpus.treebank import write_conllu
from subdp.parser import Parser
from subdp.pipeline.stages import MANIFEST
from subdp.support.settings import Settings, TrainConfig
from tests.cli.test_cli import run as command
from tests.grammar import toy_pairs
from tests.pipeline.toy_run import SETTINGS, STAGES, make, result, silent, states

pytestmark = pytest.mark.trains


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
        assert changed(encoder_bits=8) == [stage for stage in STAGES if stage != "clean"]
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
