"""The command line: what a user types, sees, and gets back as exit code."""

from __future__ import annotations

import io
import json
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
from cyclopts import App

from subdp.cli.main import VERBS, app
from subdp.corpus.treebank import Sentence, read_conllu, write_conllu
from tests.grammar import toy_pairs

GOLD = Sentence.of(
    ["Dogs", "bark", "."], heads=[2, 0, 2], labels=["nsubj", "root", "punct"], upos=["NOUN", "VERB", "PUNCT"]
)
WRONG = Sentence.of(
    ["Dogs", "bark", "."], heads=[0, 1, 2], labels=["root", "obj", "punct"], upos=["NOUN", "VERB", "PUNCT"]
)


def run(*words: object) -> int:
    """Run a command line and give back its exit code."""
    try:
        app.meta([str(word) for word in words])
    except SystemExit as exit_:
        return int(exit_.code or 0)
    return 0


@pytest.fixture
def treebanks(tmp_path: Path) -> tuple[Path, Path]:
    gold, system = tmp_path / "gold.conllu", tmp_path / "system.conllu"
    write_conllu([GOLD, GOLD], gold)
    write_conllu([GOLD, WRONG], system)
    return gold, system


def test_evaluate_prints_scores_or_json(treebanks: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert run("evaluate", *treebanks) == 0
    assert capsys.readouterr().out.startswith("UAS 50.0  LAS 50.0")
    assert run("evaluate", *treebanks, "--json", "--punctuation", "none") == 0
    assert json.loads(capsys.readouterr().out)["words"] == 6


def test_evaluate_compares_two_systems_by_the_paired_bootstrap(
    treebanks: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    gold, system = treebanks
    assert run("evaluate", gold, gold, "--compare", system) == 0
    own, other, gain = capsys.readouterr().out.splitlines()
    assert own.startswith("UAS 100.0")
    assert f"{system}: UAS 50.0" in other
    assert f"gain over {system}: UAS +50.0 [" in gain
    assert run("evaluate", gold, gold, "--compare", system, "--json") == 0
    said = json.loads(capsys.readouterr().out)
    assert said["las"] == 100
    assert said["compare"]["las"] == 50
    assert said["compare"]["gain"]["las"]["gain"] == 50


def test_bad_data_is_one_line_and_exit_1(treebanks: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    broken = treebanks[0].with_name("broken.conllu")
    broken.write_text("1\ta\n\n")
    assert run("evaluate", treebanks[0], broken) == 1
    message = capsys.readouterr().err
    assert "broken.conllu:1: 2 columns instead of 10" in message
    assert "Traceback" not in message
    assert len(message.splitlines()) == 1


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (["evaluate", "gold.conllu"], "--system"),
        (["evaluate", "a", "b", "--punctuation", "some"], '"some" for --punctuation'),
        (["evaluate", "a", "b", "--nothing"], "--nothing"),
        (["evaluate", "-x", "b"], "there is no option -x"),
        (["evalu"], 'Did you mean "evaluate"'),
        (["align", "--bitext", "a", "--method", "magic"], '"magic" for --method. Choose from: argmax, itermax'),
        (["project", "--bitext", "a", "-o", "b", "--alignment", "magic"], '"magic" for --alignment. Choose from'),
        (["run", "--bitext", "a", "-o", "b", "--aligner", "links.txt"], "or name a file of links"),
    ],
)
def test_a_bad_call_is_one_line_and_exit_2(call: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(*call) == 2
    message = capsys.readouterr().err
    assert message.startswith("subdp: ")
    assert said in message
    assert len(message.splitlines()) == 1


def test_a_bad_value_of_an_option_for_all_verbs_is_one_line_too() -> None:
    subdp = str(Path(sys.executable).with_name("subdp"))
    done = subprocess.run([subdp, "--quiet=3", "cache"], check=False, capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.startswith("subdp: ")
    assert len(done.stderr.splitlines()) == 1


def test_help_imports_no_verb_and_neither_torch_nor_numpy() -> None:
    code = """
import sys
from subdp.cli.main import VERBS, app
app(["--help"], result_action="return_value")
sys.exit(any(name in sys.modules for name in ("torch", "numba", "numpy", "subdp.cli.runs")))
"""
    assert subprocess.run([sys.executable, "-c", code], check=False, stdout=subprocess.DEVNULL).returncode == 0


@pytest.mark.parametrize("verb", [["parse"], ["annotate"], ["distill", "en", "-o", "small", "--text"]])
def test_a_missing_file_is_found_before_torch_is_imported(verb: list[str]) -> None:
    code = """
import sys
from subdp.cli.main import app
try:
    app.meta(sys.argv[1:])
except SystemExit as end:
    sys.exit(99 if "torch" in sys.modules else end.code)
"""
    done = subprocess.run(
        [sys.executable, "-c", code, *verb, "nowhere.txt"], check=False, capture_output=True, text=True
    )
    assert done.returncode == 1
    assert done.stderr == "subdp: nowhere.txt: no such file (check the path)\n"


def test_evaluate_needs_no_torch(treebanks: tuple[Path, Path]) -> None:
    code = """
import sys
from subdp.cli.main import VERBS, app
app(["evaluate", *sys.argv[1:]], result_action="return_value")
sys.exit("torch" in sys.modules or "numba" in sys.modules)
"""
    call = [sys.executable, "-c", code, *map(str, treebanks)]
    assert subprocess.run(call, check=False, stdout=subprocess.DEVNULL).returncode == 0


@pytest.mark.parametrize("verb", VERBS)
def test_the_list_of_verbs_says_what_each_verb_says_of_itself(verb: str) -> None:
    module, said = VERBS[verb]
    called = getattr(import_module(f"subdp.cli.{module}"), verb.replace("-", "_"))
    own = called.help if isinstance(called, App) else called.__doc__.split("Parameters\n")[0]
    assert said.split() == own.split()


def test_show_draws_text_pages_and_pictures(treebanks: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    gold = treebanks[0]
    assert run("show", gold) == 0
    assert "nsubj ← bark" in capsys.readouterr().out
    for ending, content in ((".html", "<html"), (".svg", "<svg")):
        picture = gold.with_suffix(ending)
        assert run("show", gold, "-o", picture) == 0
        assert content in picture.read_text()


def test_the_three_steps_from_a_treebank_to_a_parser(
    tmp_path: Path, tiny_folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pairs = toy_pairs(40)
    write_conllu((tree for tree, _, _ in pairs), tmp_path / "source.conllu")
    (tmp_path / "pairs.tsv").write_text(
        "".join(f"{' '.join(tree.words)}\t{' '.join(translation.words)}\n" for tree, translation, _ in pairs)
    )
    small = ["--train.epochs", "2", "--network.lstm", "8", "--network.layers", "1,2", "--train.batch_words", "100"]
    train = ["train", "--treebank", tmp_path / "source.conllu", "--dev", tmp_path / "source.conllu", "--encoder"]
    assert run(*train, tiny_folder, "-o", tmp_path / "source", *small) == 0
    assert capsys.readouterr().out.startswith("dev: UAS")
    assert {path.name for path in (tmp_path / "source").iterdir()} >= {"config.json", "config.toml", "metrics.jsonl"}
    silver = tmp_path / "silver"
    parser = ["--parser", tmp_path / "source"]
    assert (
        run("project", "--bitext", tmp_path / "pairs.tsv", "-o", silver, *parser, "--tokenized", "--alignment", "match")
        == 0
    )
    assert "kept" in capsys.readouterr().err
    assert run("adapt", "--silver", silver, "-o", tmp_path / "target", *parser, "--adapt.epochs", "1") == 0
    assert not (tmp_path / "target.training").exists()
    (tmp_path / "text.txt").write_text("La hundo vidas unu kato. Ĉu vi aŭdas?\n")
    parse = ["parse", tmp_path / "text.txt", "--parser", tmp_path / "target", "--confidence"]
    assert run(*parse, "-o", tmp_path / "out.conllu") == 0
    first, second = read_conllu(tmp_path / "out.conllu")
    assert first.words == ("La", "hundo", "vidas", "unu", "kato", ".")
    assert first.text == "La hundo vidas unu kato."
    assert second.sent_id == "2"
    assert "HeadProb=" in first.conllu
    udvalidate, file = str(Path(sys.executable).with_name("udvalidate")), str(tmp_path / "out.conllu")
    validate = [udvalidate, "--lang", "ud", "--level", "2", file]
    assert subprocess.run(validate, check=False, capture_output=True).returncode == 0

    class Input:
        buffer = io.BytesIO(b"la hundo vidas\n")

    monkeypatch.setattr("sys.stdin", Input())
    capsys.readouterr()
    assert run("parse", "-", "--format", "words", *parse[2:4]) == 0


def test_a_parser_whose_encoder_was_moved_is_told_where_it_is(tmp_path: Path, tiny_folder: Path) -> None:
    before, after = tmp_path / "before", tmp_path / "after"
    shutil.copytree(tiny_folder, before)
    write_conllu((tree for tree, _, _ in toy_pairs(6)), tmp_path / "trees.conllu")
    small = ["--train.epochs", "1", "--network.lstm", "8", "--network.layers", "1,2"]
    train = ["train", "--treebank", tmp_path / "trees.conllu", "--encoder", before, "-o", tmp_path / "parser"]
    assert run(*train, *small) == 0
    before.rename(after)
    for parse in (["parse"], ["annotate"]):
        call = [*parse, tmp_path / "trees.conllu", "--parser", tmp_path / "parser", "-o", tmp_path / "out.conllu"]
        assert run(*call) == 1
        assert run(*call, "--encoder", after) == 0


def test_an_interrupted_training_is_named_and_resumed_only_when_asked(
    tmp_path: Path, tiny_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_conllu((tree for tree, _, _ in toy_pairs(5)), tmp_path / "source.conllu")
    (tmp_path / "model.training").mkdir()
    (tmp_path / "model.training" / "metrics.jsonl").touch()
    train = ["train", "--treebank", tmp_path / "source.conllu", "--encoder", tiny_folder, "-o", tmp_path / "model"]
    small = ["--train.epochs", "1", "--network.lstm", "8", "--network.layers", "1,2"]
    assert run(*train, *small) == 1
    assert "--resume" in capsys.readouterr().err
    assert run(*train, *small, "--resume") == 0


def test_align_writes_links_and_scores_them(
    tmp_path: Path, tiny_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "pairs.tsv").write_text("a dog\ta dog\nthe cat\tthe cat\n")
    align = ["align", "--bitext", tmp_path / "pairs.tsv", "--encoder", tiny_folder, "--layer", "0"]
    assert run(*align, "-o", tmp_path / "links.txt") == 0
    assert (tmp_path / "links.txt").read_text() == "0-0 1-1\n0-0 1-1\n"
    assert run(*align, "--score", tmp_path / "links.txt", "--json") == 0
    assert json.loads(capsys.readouterr().out)["aer"] == 0
    (tmp_path / "gold.txt").write_text("0-0 0-7 1-9\n0-0\n")
    assert run(*align, "--score", tmp_path / "gold.txt", "--json") == 0
    said = capsys.readouterr()
    assert "gold.txt:1: link 0-7 names target word 7 but the target sentence has 2 words (sure links" in said.err
    assert len(said.err.splitlines()) == 1
    assert json.loads(said.out)["recall"] == 2 / 4  # those beyond the sentence count as missed
    (tmp_path / "pairs.tsv").write_text("a dog\ta dog\n\tempty\nthe cat\tthe cat\n\tend\n")
    assert run(*align, "-o", tmp_path / "links.txt") == 0
    assert (tmp_path / "links.txt").read_text() == "0-0 1-1\n\n0-0 1-1\n\n"


def test_the_cache_is_shown_and_cleared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SUBDP_CACHE", str(tmp_path))
    (tmp_path / "silver").mkdir()
    (tmp_path / "silver" / "pairs").write_bytes(bytes(2_000_000))
    assert run("cache") == 0
    assert capsys.readouterr().out.splitlines()[-1].split() == ["2", "MB", "in", "all"]
    entry = {"folder": str(tmp_path / "silver"), "bytes": 2_000_000, "what": "projected pairs"}
    assert run("cache", "--json") == 0
    said = {"cleared": False, "bytes": 2_000_000, "limit": None, "entries": [entry]}
    assert json.loads(capsys.readouterr().out) == said
    monkeypatch.setenv("SUBDP_CACHE_GB", "0.5")
    assert run("cache") == 0
    assert capsys.readouterr().out.endswith("2 MB  in all, of 500 MB that SUBDP_CACHE_GB allows\n")
    monkeypatch.setenv("SUBDP_CACHE_GB", "much")
    assert run("cache") == 1
    assert "SUBDP_CACHE_GB is 'much' (give a number of gigabytes, such as 20)" in capsys.readouterr().err
    monkeypatch.delenv("SUBDP_CACHE_GB")
    assert run("cache", "--clear", "--json") == 0
    assert json.loads(capsys.readouterr().out) == {**said, "cleared": True}
    assert run("cache", "--clear") == 0
    assert capsys.readouterr().out.split() == ["0", "MB", "freed"]


def test_one_is_not_called_several(treebanks: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    gold = treebanks[0]
    assert run("show", gold, "--most", "1") == 0
    assert capsys.readouterr().err == "drawing the first sentence; --most shows more\n"
    assert run("show", gold, "-o", gold.with_suffix(".svg")) == 0
    assert capsys.readouterr().err == "drawing the first sentence; an .html file shows more\n"
    word = gold.with_name("word.conllu")
    write_conllu([Sentence.of(["Go"], heads=[0], labels=["root"], upos=["VERB"])], word)
    assert run("evaluate", word, word) == 0
    assert "(1 word, 1 sentence)" in capsys.readouterr().out


def test_a_file_of_the_wrong_kind_is_called_what_it_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "raw.txt").write_text("Dogs bark.\nCats do not.\n")
    (tmp_path / "pairs.tsv").write_text("Dogs bark.\tHunde bellen.\n")
    for verb, name, said in (
        ("show", "raw.txt", "raw.txt:1: this is not CoNLL-U"),
        ("parse", "pairs.tsv", "pairs.tsv: a .tsv file holds pairs of sentences, not text (`subdp annotate`"),
    ):
        assert run(verb, tmp_path / name) == 1
        assert said in capsys.readouterr().err


@pytest.mark.parametrize("verb", ["train", "adapt"])
def test_a_folder_of_something_else_is_refused_before_training(
    treebanks: tuple[Path, Path], tmp_path: Path, verb: str, capsys: pytest.CaptureFixture[str]
) -> None:
    model = tmp_path / "xlm-roberta"
    model.mkdir()
    (model / "config.json").write_text('{"model_type": "xlm-roberta", "architectures": ["XLMRobertaModel"]}')
    (model / "model.safetensors").write_bytes(b"weights")
    given = ["--treebank", treebanks[0]] if verb == "train" else ["--silver", tmp_path / "silver"]
    assert run(verb, *given, "-o", model) == 1
    assert "xlm-roberta: holds something other than a parser" in capsys.readouterr().err
    assert (model / "model.safetensors").read_bytes() == b"weights"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["gold.conllu", "system.conllu", "xlm-roberta"]


def test_a_training_leaves_what_it_did_not_make_in_its_folder_of_checkpoints(
    treebanks: tuple[Path, Path], tmp_path: Path, tiny_folder: Path
) -> None:
    (tmp_path / "out.training").mkdir()
    (tmp_path / "out.training" / "notes.txt").write_text("years of work")
    call = ["train", "--treebank", treebanks[0], "-o", tmp_path / "out", "--encoder", tiny_folder, "--train.epochs", 1]
    small = ["--network.layers", "1", "--network.lstm", 4, "--network.features", 4, "--network.arc", 4]
    assert run(*call, *small) == 1
    assert run(*call, *small, "--resume", "--device", "cpu") == 0
    assert (tmp_path / "out" / "model.safetensors").exists()
    assert [path.name for path in (tmp_path / "out.training").iterdir()] == ["notes.txt"]


WITH_A_NETWORK = ["train", "run", "align", "project", "adapt", "distill", "parse", "annotate", "experiment"]


@pytest.mark.parametrize("verb", WITH_A_NETWORK)
def test_every_verb_with_a_network_takes_a_device(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(verb, "--help") == 0
    assert "--device" in capsys.readouterr().out


def test_a_device_that_is_not_there_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "text.txt").write_text("Dogs bark.\n")
    assert run("parse", tmp_path / "text.txt", "--device", "gpu") == 1
    message = capsys.readouterr().err
    assert "the device 'gpu' cannot be used" in message
    assert len(message.splitlines()) == 1


def test_a_seed_below_0_is_a_wrong_call(treebanks: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert run("train", "--treebank", treebanks[0], "-o", "x", "--seed", "-1") == 2
    assert "cannot be a random seed" in capsys.readouterr().err
