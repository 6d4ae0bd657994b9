"""`subdp run`: no mishap costs more than a moment's work."""

from __future__ import annotations

import errno
import json
import os
import random
import shutil
import signal
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from subdp.corpus.treebank import write_conllu
from subdp.pipeline.run import Run
from subdp.pipeline.stages import MANIFEST
from subdp.support.errors import SubdpError
from subdp.support.files import open_output
from subdp.support.settings import TrainConfig
from tests.cli.test_cli import run as command
from tests.grammar import toy_pairs
from tests.pipeline.toy_run import SETTINGS, STAGES, make, result, silent, small_shards, states, write_bitext

pytestmark = pytest.mark.trains


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
        assert not (data / "out.training").exists()
        (data / "out.training").mkdir()
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
        "report": ("subdp.pipeline.work.measure", fail),
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
