"""Plug-ins of all four groups, used through the command line as an installed package offers them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from subdp.corpus.treebank import read_conllu, write_conllu
from subdp.encoder.encoder import Encoder
from subdp.support.errors import SubdpError
from tests.grammar import toy_pairs
from tests.support.test_plugins import install

ENTRIES = """
[subdp.encoders]
toy-encoder = toys:encoder
[subdp.aligners]
diagonal = toys:Diagonal
[subdp.translators]
shouting = toys:Shouting
[subdp.tokenizers]
dashes = toys:dashes
"""

CODE = """
import os
from pathlib import Path

import subdp


def encoder():
    return os.environ["TOY_ENCODER"]


class Diagonal(subdp.Aligner):
    # It has no repr, so that its address is all that `repr` tells.
    def __init__(self, encoder, *, one_to_one):
        self.hidden, self.one_to_one = encoder.hidden, one_to_one

    @property
    def fingerprint(self):
        return f"diagonal, one to one: {self.one_to_one}"

    def align(self, pairs):
        for pair in pairs:
            with Path(os.environ["TOY_LOG"]).open("a") as log:
                print(*pair.target, file=log)
            if "TOY_STOP" in os.environ and len(Path(os.environ["TOY_LOG"]).read_text().splitlines()) == 20:
                raise KeyboardInterrupt
            yield subdp.Alignment.of((n, n) for n in range(min(len(pair.source), len(pair.target))))


class Shouting:
    def __init__(self, source, target):
        self.name = f"shouting {source}-{target}"

    def translate(self, sentences):
        return [sentence.upper() for sentence in sentences]


def dashes(text):
    return text.split("-")
"""

# Small shards, so that an interrupted projection has finished some of them; then several commands in one process.
SCRIPT = """
import json, sys
import subdp.projection.silver
from subdp.cli.main import app
subdp.projection.silver.SHARD = 8
for call in json.loads(sys.argv[1]):
    try:
        app.meta(call)
    except SystemExit as ended:
        if ended.code:
            raise
"""


def subdp(folder: Path, *calls: Sequence[object], **environment: object) -> subprocess.CompletedProcess[str]:
    """Run command lines one after the other in a process of their own that finds the package."""
    paths = os.pathsep.join([str(folder), *sys.path])
    variables = os.environ | {"PYTHONPATH": paths} | {name: str(value) for name, value in environment.items()}
    arguments = json.dumps([[str(word) for word in call] for call in calls])
    command = [sys.executable, "-c", SCRIPT, arguments]
    return subprocess.run(command, capture_output=True, text=True, env=variables, cwd=folder)


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A folder with the package, and files to work on."""
    install(tmp_path, "toys", ENTRIES, CODE)
    pairs = toy_pairs(60, seed=3)
    write_conllu((tree for tree, _, _ in pairs), tmp_path / "trees.conllu")
    lines = (f"{' '.join(one.words)}\t{' '.join(other.words)}\n" for one, other, _ in pairs)
    (tmp_path / "pairs.tsv").write_text("".join(lines))
    return tmp_path


def test_the_command_lists_all_four_kinds_and_translates_with_one(site: Path) -> None:
    (site / "text.txt").write_text("a dog\n")
    translate = ["translate", "text.txt", "-o", "-", "--to", "de", "--translator", "shouting"]
    ran = subdp(site, ["plugins", "--json"], translate)
    assert ran.returncode == 0, ran.stderr
    assert "translating with shouting en-de" in ran.stderr
    listed, end = json.JSONDecoder().raw_decode(ran.stdout)
    assert listed == {
        "encoders": {"toy-encoder": "toys:encoder"},
        "aligners": {"diagonal": "toys:Diagonal"},
        "translators": {"shouting": "toys:Shouting"},
        "tokenizers": {"dashes": "toys:dashes"},
    }
    assert ran.stdout[end:].strip() == "a dog\tA DOG"


def test_the_command_align_takes_an_aligner_of_a_plug_in(site: Path, tiny_folder: Path) -> None:
    (site / "two.tsv").write_text("a dog\tein Hund\n")
    align = ["align", "--bitext", "two.tsv", "--encoder", "toy-encoder", "--method"]
    ran = subdp(site, [*align, "diagonal"], TOY_ENCODER=tiny_folder, TOY_LOG=site / "log")
    assert ran.stdout == "0-0 1-1\n", ran.stderr
    ran = subdp(site, [*align, "diagonal", "--layer", "1"], TOY_ENCODER=tiny_folder)
    assert ran.returncode == 1
    assert "the aligner 'diagonal' takes no layer" in ran.stderr
    ran = subdp(site, [*align, "magic"], TOY_ENCODER=tiny_folder)
    assert ran.returncode == 2
    assert "Choose from: argmax, itermax, match, forward, reverse, diagonal." in ran.stderr


@pytest.mark.trains
def test_an_encoder_an_aligner_and_a_tokenizer_go_through_a_run_that_is_interrupted(
    site: Path, tiny_folder: Path
) -> None:
    log = site / "log"
    small = ["--preset", "paper", "--network.lstm", "8", "--network.lstm_layers", "1", "--network.features", "8"]
    train = ["train", "--treebank", "trees.conllu", "-o", "source", "--encoder", "toy-encoder", "--train.epochs", "1"]
    run = ["run", "--bitext", "pairs.tsv", "--tokenized", "--source-parser", "source", "--aligner", "diagonal"]
    run += ["-o", "out", "--adapt.epochs", "1"]
    toys = {"TOY_ENCODER": tiny_folder, "TOY_LOG": log}

    stopped = subdp(site, [*train, *small], run, **toys, TOY_STOP=1)
    assert stopped.returncode == 130, stopped.stderr
    assert "stopped in stage project" in stopped.stderr
    kept = json.loads((site / "source" / "config.json").read_text())["encoder"]
    assert (kept["name"], kept["fingerprint"]) == ("toy-encoder", Encoder.load(tiny_folder).fingerprint)

    (site / "text.txt").write_text("the-dog\n")
    parse = ["parse", "text.txt", "--parser", "out/parser", "--tokenizer", "dashes", "-o", "parsed.conllu"]
    log.unlink()
    ended = subdp(site, run, parse, **toys)
    assert ended.returncode == 0, ended.stderr
    pairs = json.loads((site / "out" / "report.json").read_text())["projection"]["pairs"]
    assert len(log.read_text().splitlines()) == pairs - 16, "two shards of eight pairs were finished before"
    assert [sentence.words for sentence in read_conllu(site / "parsed.conllu")] == [("the", "dog")]


def test_an_encoder_that_is_no_folder_or_fails_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = "def nowhere(): return '/no/such/folder'\ndef failing(): return 1 / 0\n"
    install(tmp_path, "faulty", "[subdp.encoders]\nnowhere = faulty:nowhere\nfailing = faulty:failing\n", code)
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(SubdpError, match="plug-in 'nowhere' returned '/no/such/folder', which is not a folder"):
        Encoder.load("nowhere")
    with pytest.raises(SubdpError, match=r"the encoder 'failing' of faulty 1\.2 failed: ZeroDivisionError"):
        Encoder.load("failing")
