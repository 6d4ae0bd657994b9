"""The spaCy component, with the real spaCy: what it sets, saves, and gives to others."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from subdp.cli.main import app
from subdp.corpus.treebank import Sentence
from subdp.encoder.encoder import Encoder
from subdp.parser import Parser
from tests.grammar import toy_pairs
from tests.test_parser import SETTINGS

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

spacy = pytest.importorskip("spacy", reason="spaCy is not installed: pip install 'subdp[spacy]'")
from confection import ConfigValidationError  # noqa: E402

from subdp.integrations.spacy_pipe import ParserPipe  # noqa: E402

TEXT = " the dog sees a cat.\n\nthe bird hears the horse often! "


@pytest.fixture(scope="module")
def folder(tiny: Encoder, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("parsers") / "toy"
    Parser.train((tree for tree, _, _ in toy_pairs(60)), encoder=tiny, settings=SETTINGS).save(path)
    return path


@pytest.fixture
def nlp(folder: Path) -> Any:
    nlp = spacy.blank("xx")
    nlp.add_pipe("subdp", config={"parser": str(folder)})
    return nlp


class Stub:
    """Stands for a parser that gives every sentence the same tree."""

    def __init__(self, heads: list[int], upos: list[str] | None = None, misc: list[str] | None = None):
        self.heads, self.upos, self.misc = heads, upos, misc
        self.inventory = {"arcs": (), "labels": ("dep", "root")} | ({} if upos is None else {"upos": ("NOUN", "VERB")})

    def parse(self, sentences: Iterable[list[str]], confidence: bool) -> Iterator[Sentence]:
        for words in sentences:
            labels = ["dep" if head else "root" for head in self.heads]
            yield Sentence.of(words, heads=self.heads, labels=labels, upos=self.upos, misc=self.misc)


def piped(parser: Any, text: str) -> Any:
    pipe = ParserPipe("nothing is loaded from here")
    pipe.__dict__["parser"] = parser
    return pipe(spacy.blank("xx")(text))


def test_heads_labels_and_sentences_are_those_of_the_parser(nlp: Any, folder: Path) -> None:
    doc = nlp(TEXT)
    words = [[token.text for token in sentence if not token.is_space] for sentence in doc.sents]
    assert words == [["the", "dog", "sees", "a", "cat", "."], ["the", "bird", "hears", "the", "horse", "often", "!"]]
    for sentence, tree in zip(doc.sents, Parser.load(folder).parse(words), strict=True):
        tokens = [token for token in sentence if not token.is_space]
        heads = [0 if token.head == token else tokens.index(token.head) + 1 for token in tokens]
        assert tuple(heads) == tree.heads
        assert tuple(token.dep_.replace("ROOT", "root") for token in tokens) == tree.labels
    assert [token.dep_ for token in doc if token.is_space] == ["dep"] * 2
    assert not any(token.pos_ for token in doc), "this parser predicts no tags"


def test_confidences_are_with_the_tokens(nlp: Any) -> None:
    doc = nlp("dog a today sees")
    assert all(0 <= token._.subdp["HeadProb"] <= 1 for token in doc)
    assert all(0 < token._.subdp["LabelProb"] <= 1 for token in doc)


def test_rivals_are_tokens_of_the_document_and_root_is_the_token_itself() -> None:
    doc = piped(Stub([2, 0], misc=["HeadProb=0.7|HeadAlt=0:0.2", "HeadProb=0.6|HeadAlt=1:0.4"]), " dogs bark")
    assert [token._.subdp for token in doc[1:]] == [
        {"HeadProb": 0.7, "HeadAlt": [[1, 0.2]]},
        {"HeadProb": 0.6, "HeadAlt": [[1, 0.4]]},
    ]


def test_the_precision_of_the_encoder_is_part_of_the_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def load(name: str, encoder: Any, bits: int) -> Stub:
        asked.append(bits)
        return Stub([0])

    monkeypatch.setattr(Parser, "load", load)
    for config in ({}, {"bits": 8}):
        nlp = spacy.blank("xx")
        nlp.add_pipe("subdp", config=config)
        nlp("One")
    assert asked == [32, 8]
    with pytest.raises(ConfigValidationError, match="bits"):
        spacy.blank("xx").add_pipe("subdp", config={"bits": 16})


def test_tags_are_set_where_the_parser_predicts_them() -> None:
    doc = piped(Stub([2, 0], ["NOUN", "VERB"]), "dogs bark")
    assert [token.pos_ for token in doc] == ["NOUN", "VERB"]


def test_crossing_arcs_and_sentences_that_are_cut_already_stay() -> None:
    doc = piped(Stub([3, 4, 0, 3]), "a b c d")
    assert [token.head.i for token in doc] == [2, 3, 2, 2]
    assert len(list(doc.sents)) == 1
    nlp = spacy.blank("xx")
    nlp.add_pipe("sentencizer", config={"punct_chars": ["|"]})
    pipe = ParserPipe("")
    pipe.__dict__["parser"] = Stub([2, 0, 2])
    assert [sentence.text for sentence in pipe(nlp("a b | c. d |")).sents] == ["a b |", "c. d |"]


@pytest.mark.parametrize("text", ["", " ", "\n"])
def test_a_document_without_words_passes(nlp: Any, text: str) -> None:
    assert nlp(text).text == text


def test_many_documents_are_parsed_in_batches_and_in_processes(
    nlp: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = [TEXT, "the dog sees a cat", "", "a bird"] * 3
    one_by_one = [[(token.head.i, token.dep_) for token in nlp(text)] for text in texts]
    calls: list[int] = []
    parse = Parser.parse

    def counting(self: Parser, words: list[list[str]], **options: Any) -> Iterator[Sentence]:
        calls.append(len(words))
        return parse(self, words, **options)

    monkeypatch.setattr(Parser, "parse", counting)
    assert [[(token.head.i, token.dep_) for token in doc] for doc in nlp.pipe(texts, batch_size=6)] == one_by_one
    assert len(calls) == 2
    monkeypatch.undo()
    docs = list(nlp.pipe(texts, n_process=2, batch_size=4))
    assert [[(token.head.i, token.dep_) for token in doc] for doc in docs] == one_by_one
    assert docs[0][1]._.subdp["HeadProb"] > 0


def test_a_saved_pipeline_has_its_parser_with_it(nlp: Any, tmp_path: Path) -> None:
    nlp.to_disk(tmp_path / "pipeline")
    config = tmp_path / "pipeline" / "config.cfg"
    config.write_text(config.read_text().replace(nlp.config["components"]["subdp"]["parser"], "not there any more"))
    loaded = spacy.load(tmp_path / "pipeline")
    assert [token.head.i for token in loaded(TEXT)] == [token.head.i for token in nlp(TEXT)]


def test_displacy_draws_what_it_did(nlp: Any) -> None:
    from spacy import displacy

    picture = displacy.render(nlp("the dog sees a cat"), style="dep", jupyter=False)
    assert "nsubj" in picture


def test_spacy_finds_the_component_by_the_entry_point() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    module, _, name = project["entry-points"]["spacy_factories"]["subdp"].partition(":")
    assert callable(getattr(sys.modules[module], name))


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # spaCy's: it leaves closing files to Python
def test_a_parser_becomes_a_package_that_pip_installs(folder: Path, tmp_path: Path, capfd: Any) -> None:
    pytest.importorskip("setuptools", reason="setuptools is not installed")
    with pytest.raises(SystemExit) as caught:
        app.meta(["convert", "spacy", str(folder), "-o", str(tmp_path), "--name", "toy"])
    assert caught.value.code == 0
    made = Path(capfd.readouterr().out.strip())
    assert str(folder) not in (made / made.name.partition("-")[0] / made.name / "config.cfg").read_text()
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run([*pip, "--target", str(tmp_path / "site"), str(made)], check=True)
    code = "import spacy, subdp.integrations.spacy_pipe; print(*(t.dep_ for t in spacy.load('xx_toy')('the dog sees')))"
    found = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, env=_environment(tmp_path / "site")
    )
    assert "ROOT" in found.stdout


def _environment(site: Path) -> dict[str, str]:
    import os

    import subdp

    paths = [str(site), str(Path(subdp.__file__).parents[1])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
