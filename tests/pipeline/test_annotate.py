"""`subdp annotate`: drafts that an annotator can start from, whatever the text came in."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from subdp.corpus.treebank import Sentence, read_conllu, write_conllu
from subdp.encoder.encoder import Encoder
from subdp.parser import Parser
from subdp.pipeline.annotate import annotate, doubt
from subdp.support.errors import SubdpError
from subdp.support.settings import NetworkConfig, Settings, TrainConfig
from tests.cli.test_cli import run
from tests.grammar import toy_pairs

pytestmark = pytest.mark.trains

SETTINGS = replace(
    Settings.resolve(),
    network=NetworkConfig(features=16, lstm=12, lstm_layers=1, arc=12, label=8),
    train=TrainConfig(epochs=3, batch_words=100),
)
NFD = "Cafe\u0301 no\u0308tig."


@pytest.fixture(scope="module")
def parser(tiny: Encoder) -> Parser:
    return Parser.train((tree for tree, _, _ in toy_pairs(20)), encoder=tiny, settings=SETTINGS)


def assert_valid(sentences: list[Sentence], folder: Path) -> None:
    path = folder / "valid.conllu"
    write_conllu(sentences, path)
    call = [str(Path(sys.executable).with_name("udvalidate")), "--lang", "ud", "--level", "2", str(path)]
    checked = subprocess.run(call, check=False, capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout + checked.stderr


BARE = """\
1-2 zum _ _ _ _ _ _ _ _
1 zu _ _ _ _ _ _ 3:case _
2 dem _ _ _ _ _ _ 3:det _
3 Haus _ _ _ _ _ _ 0:root SpaceAfter=No
3.1 das _ X _ _ _ _ 3:dep _
4 ! _ _ _ _ _ _ 3:punct _

"""
TEXTS = {
    "text.txt": f"The dog sleeps. It's 3,5 % — really?\n\n{NFD} „Ja“ (nein)\nالكلب يرى القط.\n狗看見貓。\nहम घर गए।\n",
    "long.txt": "the dog sees " * 400 + "a cat\n",
    "pairs.tsv": "The dog barks.\tLa hundo bojas.\nNothing\t\nIt rains.\tPluvas, ĉu ne?\n",
    "bare.conllu": BARE.replace(" ", "\t"),
}


@pytest.mark.parametrize("name", TEXTS)
def test_drafts_are_valid_whatever_the_text_came_in(parser: Parser, tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(TEXTS[name])
    drafts = list(annotate(str(tmp_path / name), parser))
    for sentence in drafts:
        assert sentence.conllu.count("HeadProb=") == sentence.conllu.count("LabelProb=") == len(sentence)
    write_conllu(drafts, tmp_path / "drafts.conllu")
    again = list(annotate(str(tmp_path / "drafts.conllu"), parser))
    assert again == drafts, "what was annotated before is annotated anew, not twice"
    assert_valid(drafts, tmp_path)


def test_what_the_file_says_is_kept_and_what_it_lacks_is_filled_in(parser: Parser, tmp_path: Path) -> None:
    (tmp_path / "bare.conllu").write_text(TEXTS["bare.conllu"])
    (tmp_path / "pairs.tsv").write_text(TEXTS["pairs.tsv"])
    (bare,) = annotate(str(tmp_path / "bare.conllu"), parser)
    assert bare.text == "zum Haus!"
    assert bare.sent_id == "1"
    assert bare.upos == ("X", "X", "X", "PUNCT")
    first, second = annotate(str(tmp_path / "pairs.tsv"), parser)
    assert (first.text, first.sent_id, second.sent_id) == ("La hundo bojas.", "1", "3")
    assert "# text_en = The dog barks." in first.comments
    assert second.words == ("Pluvas", ",", "ĉu", "ne", "?")


def test_the_most_doubtful_come_first_if_asked(parser: Parser, tmp_path: Path) -> None:
    sentences = [tree.words for tree, _, _ in toy_pairs(10, seed=8)] + [("xyzzy",) * 12]
    (tmp_path / "text.txt").write_text("".join(f"{' '.join(words)}\n" for words in sentences))
    drafts = list(annotate(str(tmp_path / "text.txt"), parser, format="words", order="doubt"))
    doubts = [doubt(sentence) for sentence in drafts]
    assert doubts == sorted(doubts, reverse=True)
    assert doubts[0] > doubts[-1] > 0
    assert f"# doubt = {doubts[0]:.3f}" in drafts[0].comments
    assert sorted(int(str(sentence.sent_id)) for sentence in drafts) == list(range(1, 12))
    with pytest.raises(SubdpError, match="without HeadProb"):
        doubt(Sentence.of(["a"]))


def test_the_command_writes_a_file_or_nothing(
    parser: Parser, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    parser.save(tmp_path / "parser")
    (tmp_path / "text.txt").write_text("la hundo vidas\nunu kato amas\n")
    call: list[str | Path] = ["annotate", tmp_path / "text.txt", "--parser", tmp_path / "parser", "-o"]
    assert run(*call, tmp_path / "out.conllu", "--order", "doubt") == 0
    assert len(list(read_conllu(tmp_path / "out.conllu"))) == 2
    assert run(*call, "-", "--format", "words") == 0
    assert capsys.readouterr().out.count("# doubt = ") == 2
    assert run(*call, tmp_path / "out.html") == 0
    assert '"name": "out"' in (tmp_path / "out.html").read_text(encoding="utf-8")
    for name, content, message in (
        ("empty.txt", b"\n", "empty.txt: holds no words"),
        ("latin.txt", "r\xf6d\n".encode("latin-1"), "latin.txt:1: byte 0xf6 is not UTF-8"),
        ("bad.tsv", b"no tab\n", "bad.tsv:1: no tab in the line"),
    ):
        (tmp_path / name).write_bytes(content)
        assert run("annotate", tmp_path / name, "--parser", tmp_path / "parser", "-o", tmp_path / "no.conllu") == 1
        assert message in capsys.readouterr().err
    assert not (tmp_path / "no.conllu").exists()
    assert run(*call, tmp_path / "absent" / "out.conllu") == 1
    assert "cannot be written" in capsys.readouterr().err

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "out.conllu")

    before = (tmp_path / "out.conllu").read_bytes()
    monkeypatch.setattr("os.fsync", full)
    assert run(*call, tmp_path / "out.conllu") == 1
    assert capsys.readouterr().err == "subdp: out.conllu: No space left on device\n"
    assert (tmp_path / "out.conllu").read_bytes() == before
