"""Parsing to a folder of numbered files: together they are the one file, and an interrupted command resumes."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path

import pytest

from subdp.corpus.treebank import write_conllu
from subdp.encoder.encoder import Encoder
from subdp.parser import Parser
from subdp.support.errors import SubdpError
from subdp.support.settings import NetworkConfig, Settings, TrainConfig
from subdp.support.shard_folder import ShardFolder
from tests.cli.test_cli import run
from tests.grammar import toy_pairs

SETTINGS = replace(
    Settings.resolve(),
    network=NetworkConfig(features=16, lstm=12, lstm_layers=1, arc=12, label=8, dropout=0.1),
    train=TrainConfig(epochs=1, batch_words=100, lr=1e-2),
)


@pytest.fixture(scope="module")
def parser(tiny: Encoder, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model") / "parser"
    Parser.train((tree for tree, _, _ in toy_pairs(20)), encoder=tiny, settings=SETTINGS).save(folder)
    return folder


@pytest.fixture
def text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for module in ("subdp.parser", "subdp.pipeline.parsing"):
        monkeypatch.setattr(f"{module}.chunk_words", lambda _: 160)
    write_conllu((tree for tree, _, _ in toy_pairs(100, seed=9)), tmp_path / "text.conllu")
    return tmp_path / "text.conllu"


@pytest.mark.parametrize(("verb", "scheme"), [("parse", ""), ("parse", "file://"), ("annotate", "")])
def test_the_files_of_a_folder_are_the_whole_and_only_those_missing_are_made_again(
    verb: str, scheme: str, parser: Path, text: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    call = [verb, text, "--parser", parser, "-o"]
    assert run(*call, tmp_path / "one.conllu") == 0
    assert run(*call, f"{scheme}{tmp_path}/shards/") == 0
    assert "100 sentences parsed now" in capsys.readouterr().err
    files = sorted((tmp_path / "shards").glob("*.conllu"))
    assert [file.name for file in files[:2]] == ["00000.conllu", "00001.conllu"]
    whole = (tmp_path / "one.conllu").read_bytes()
    assert b"".join(file.read_bytes() for file in files) == whole
    kept = files[0].stat().st_mtime_ns
    files[1].unlink()
    assert run(*call, f"{scheme}{tmp_path}/shards/") == 0
    assert b"".join(file.read_bytes() for file in files) == whole
    assert files[0].stat().st_mtime_ns == kept
    assert run(*call, f"{scheme}{tmp_path}/shards/", *(["--retag"] if verb == "annotate" else ["--confidence"])) == 1
    assert "holds the result of another text, parser or set of options" in capsys.readouterr().err


def test_files_of_another_size_are_not_resumed(
    parser: Path, text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A GPU parses more words at a time: the same number would be another part of the text."""
    call = ["parse", text, "--parser", parser, "-o", f"{tmp_path}/shards/"]
    assert run(*call) == 0
    monkeypatch.setattr("subdp.pipeline.parsing.chunk_words", lambda _: 320)
    assert run(*call) == 1
    assert "holds the result of another text, parser or set of options" in capsys.readouterr().err


def test_drafts_and_trees_of_one_text_are_not_taken_for_each_other(
    parser: Path, text: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = [text, "--parser", parser, "-o", f"{tmp_path}/shards/"]
    assert run("parse", "--confidence", *options) == 0
    assert run("annotate", *options) == 1
    assert "holds the result of another text, parser or set of options" in capsys.readouterr().err


def test_one_text_read_in_two_ways_is_not_the_same(
    parser: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("pairs.txt", "pairs.tsv"):
        (tmp_path / name).write_text("Nobody slept .\tNiemand schlief .\n")
    to = ["--parser", parser, "-o", f"{tmp_path}/drafts/"]
    assert run("annotate", tmp_path / "pairs.txt", *to) == 0
    assert run("annotate", tmp_path / "pairs.tsv", *to) == 1
    assert "holds the result of another text, parser or set of options" in capsys.readouterr().err
    assert run("annotate", tmp_path / "pairs.txt", "--format", "text", *to) == 0


@pytest.mark.parametrize(("name", "content"), [("pairs.tsv", "a\tb\n"), ("empty.txt", ""), ("bad.conllu", "1\tx\n\n")])
def test_what_cannot_be_read_leaves_no_folder(parser: Path, tmp_path: Path, name: str, content: str) -> None:
    (tmp_path / name).write_text(content)
    assert run("parse", tmp_path / name, "--parser", parser, "-o", f"{tmp_path}/trees/") == 1
    assert not (tmp_path / "trees").exists()


def test_numbered_files_are_in_the_order_of_the_text(
    parser: Path, text: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("annotate", text, "--parser", parser, "--order", "doubt", "-o", f"{tmp_path}/drafts/") == 1
    assert (
        "numbered files cannot be in the order of doubt (name a file, or leave out --order" in capsys.readouterr().err
    )
    assert not (tmp_path / "drafts").exists()


def test_hidden_files_do_not_make_a_folder_somebody_elses(tmp_path: Path) -> None:
    (tmp_path / ".DS_Store").touch()
    assert ShardFolder(f"{tmp_path}/").begin({}) == {".DS_Store"}


def test_what_a_killed_process_left_half_written_is_removed_after_an_hour(tmp_path: Path) -> None:
    folder = ShardFolder(f"{tmp_path}/")
    folder.begin({})
    left = [".00003.conllu.1a2b3c4d", ".made-from.json.1a2b3c4d"]
    kept = ["00003.conllu", ".00003.conllu.swp", ".notes.markdown", ".00004.conllu.1a2b3c4d"]
    for name in left + kept:
        (tmp_path / name).touch()
        os.utime(tmp_path / name, times=(time.time() - 3700,) * 2)
    (tmp_path / ".00004.conllu.1a2b3c4d").touch()  # Another process may be writing it.
    folder.begin({})
    assert {path.name for path in tmp_path.iterdir()} == {"made-from.json", *kept}


def test_what_cannot_be_written_to_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes.txt").touch()
    with pytest.raises(SubdpError, match="holds other files"):
        ShardFolder(f"{tmp_path}/other/").begin({})
    with pytest.raises(SubdpError, match=r"^ftp://host/x: cannot be written to: "):
        ShardFolder("ftp://host/x").begin({})
    assert run("parse", "-", "-o", f"{tmp_path}/new/") == 1
    assert "standard input cannot be parsed to a folder" in capsys.readouterr().err
    assert run("run", "--bitext", "pairs.tsv", "-o", "s3://bucket/run") == 2
    assert "s3://bucket/run is not on a disk" in capsys.readouterr().err
