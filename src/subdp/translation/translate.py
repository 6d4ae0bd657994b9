"""Translate the sentences of a treebank, or lines of text, into a bitext.

    translator = find_translator("apertium", "en", "es")
    translate("en_ewt-ud-train.conllu", "en-es.tsv", translator)

Line N of the result is sentence N of the input, source TAB translation. For a treebank the source side is its words
separated by spaces, so that `gold_trees` finds the tree of each pair. Imports no torch; `models` is imported when a
model is asked for.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Protocol

from subdp.corpus.treebank import read_conllu
from subdp.support.errors import SubdpError, counted
from subdp.support.files import name_of, open_text_output, read_lines
from subdp.support.languages import spellings
from subdp.support.plugins import make
from subdp.support.progress import progress

BUILT_IN = ("apertium", "transformers:NAME", "command:…")
BATCH = 200
"""Sentences per call of a translator; translations are saved to disk after each batch."""


class Translator(Protocol):
    """A translator. A plug-in's entry point names a class or function that is called with two language codes."""

    @property
    def name(self) -> str:
        """All that its translations depend on: an interrupted translation is resumed only with the same name."""

    def translate(self, sentences: Sequence[str]) -> Sequence[str]:
        """One translation for each sentence, in the same order; empty where there is none."""


@dataclass(frozen=True, slots=True)
class Translated:
    """Counts: sentences in the input, and non-empty ones without a translation."""

    sentences: int
    missing: int


def find_translator(
    name: str, source: str, target: str, *, beams: int | None = None, device: str | None = None
) -> Translator:
    """The translator `apertium`, `transformers:MODEL`, `command:SHELL COMMAND`, or a plug-in's, between two languages.

    Languages are codes such as `de`. `beams` and `device` are for transformers models only.
    """
    kind, _, rest = name.partition(":")
    if kind == "transformers" and rest:
        from subdp.translation.models import ModelTranslator

        return ModelTranslator(rest, source, target, beams=5 if beams is None else beams, device=device)
    if beams is not None or device is not None:
        raise SubdpError(f"{name} takes no beams or device", hint="only transformers:NAME does")
    if name == "apertium":
        return Apertium(source, target)
    if kind == "command" and rest:
        return Command(rest)
    made = make("subdp.translators", name, source, target, built_in=BUILT_IN)
    if not callable(getattr(made, "translate", None)) or not isinstance(getattr(made, "name", None), str):
        hint = "see Translator in subdp.translation.translate"
        raise SubdpError(f"the translator {name!r} has no name or no method translate", hint=hint)
    translator: Translator = made
    return translator


def translate(source: str, output: str, translator: Translator, *, batch: int = BATCH) -> Translated:
    """Translate a CoNLL-U file (`.conllu`, `.conllu.gz`) or lines of text into a file of sentence pairs.

    What is finished stands in `OUTPUT.part` until all is: the same call resumes an interrupted translation. A
    sentence that occurs again is translated once. Empty lines stay empty, so that line numbers fit.
    """
    if batch < 1:
        raise SubdpError(f"the batch size cannot be {batch}", hint="give a whole number of at least 1")
    rows = list(_rows(source))
    part = None if output == "-" else _Part(Path(f"{output}.part"), translator.name)
    done = {"": ""} if part is None else part.done
    todo = [text for text in dict.fromkeys(text for text, _ in rows) if text not in done]
    with progress("translating", len(todo), "sentences") as advance:
        for start in range(0, len(todo), batch):
            texts = todo[start : start + batch]
            finished = dict(zip(texts, _translations(translator, texts, part), strict=True))
            done.update(finished)
            if part is not None:
                part.add(finished)
            advance(len(texts))
    with _writing(output), open_text_output(output) as write:
        for text, words in rows:
            write(f"{words}\t{done[text]}\n")
    if part is not None:
        part.path.unlink()
    return Translated(len(rows), sum(bool(text) and not done[text] for text, _ in rows))


def _rows(source: str) -> Iterator[tuple[str, str]]:
    """For each sentence the text to translate, and the source side of its pair."""
    if name_of(source).removesuffix(".gz").endswith(".conllu"):
        for sentence in read_conllu(source, any_roots=True):
            words = _one_line(" ".join(sentence.words))
            yield _one_line(sentence.text or "") or words, words
    else:
        for _, line in read_lines(source):
            yield (_one_line(line),) * 2


def _one_line(text: str) -> str:
    """Replace all white space by single spaces: tabs and line breaks of any kind would break the table."""
    return " ".join(text.split())


def _translations(translator: Translator, texts: Sequence[str], part: _Part | None) -> list[str]:
    found = [_one_line(text) for text in translator.translate(texts)]
    if len(found) != len(texts):
        kept = "" if part is None else "; earlier batches are saved"
        reason = f"returned {counted(len(found), 'line')} for {counted(len(texts), 'sentence')}"
        raise SubdpError(reason, where=translator.name, hint=f"it must return one line for each sentence{kept}")
    return found


class _Part:
    """The finished part of a translation, as JSON lines: the translator's name, then pairs of text and translation."""

    def __init__(self, path: Path, name: str):
        self.path, self.done = path, {"": ""}
        head = json.dumps({"translator": name}).encode() + b"\n"
        with _writing(str(path)):
            data = path.read_bytes() if path.exists() else b""
            if not data.startswith(head[:14]) and not head.startswith(data):
                raise SubdpError("is not a partial translation", where=str(path), hint="move it or name another output")
            data = data[: data.rfind(b"\n") + 1]  # A run that was killed may have left half a line.
            first, *rest = data.splitlines(keepends=True) or [head]
            if rest and first != head:
                hint = "finish it with that translator, or remove this file to start over"
                raise SubdpError("was made by another translator", where=str(path), hint=hint)
            try:
                self.done.update(json.loads(line) for line in rest)
            except (ValueError, TypeError):
                raise SubdpError("is damaged", where=str(path), hint="remove it to start over") from None
            if rest:
                os.truncate(path, len(data))
            else:
                path.write_bytes(head)

    def add(self, finished: dict[str, str]) -> None:
        """Save translations to disk."""
        self.done.update(finished)
        with _writing(str(self.path)), self.path.open("ab") as file:
            file.writelines(json.dumps(pair).encode() + b"\n" for pair in finished.items())
            file.flush()
            os.fsync(file.fileno())


@contextmanager
def _writing(path: str) -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        hint = f"free some space or choose another output{'' if path == '-' else '; finished translations are saved'}"
        raise SubdpError(f"cannot be written: {error.strerror}", where=path, hint=hint) from None


class Command:
    """Any shell command that reads one sentence per line and writes one translation per line; run for each batch."""

    def __init__(self, command: str):
        self.command, self.name = command, f"command:{command}"

    def translate(self, sentences: Sequence[str]) -> list[str]:
        """Run the command once."""
        text = "".join(f"{sentence}\n" for sentence in sentences)
        ran = subprocess.run(self.command, shell=True, input=text.encode(), stdout=subprocess.PIPE)
        if ran.returncode:
            raise SubdpError(f"failed with exit code {ran.returncode}", where=self.name, hint=_KEPT)
        return _output_lines(ran.stdout, self.name)


_KEPT = "finished batches are kept; run the same command to resume"

# The language pairs of Debian 12, each a package apertium-PAIR, for both directions where there are two.
_DEBIAN = """
afr-nld arg-cat bel-rus br-fr cat-ita cat-srd dan-nor en-gl eng-cat eng-spa eo-ca eo-en eo-es eo-fr es-gl es-pt es-ro
eu-en eu-es fr-es fra-cat fra-frp hbs-eng hbs-mkd hbs-slv ind-zlm isl-eng isl-swe mkd-bul mkd-eng nno-nob oc-es oci-fra
pol-szl por-cat pt-gl rus-ukr spa-arg spa-ast spa-cat spa-ita srd-ita swe-dan swe-nor urd-hin
""".split()

# Apertium's tagger degrades from sentence to sentence: of 200 EWT sentences, English to Spanish, 10 come out other than
# they do alone if all are translated in one run, 5 in runs of 50, 1 in runs of 10. But each run takes 0.3 s to start.
_TOGETHER = 25


class Apertium:
    """The machine translation system Apertium, as installed on this machine."""

    def __init__(self, source: str, target: str):
        pairs = [f"{one}-{other}" for one, other in product(spellings(source), spellings(target))]
        installed = self._run(["-l"], "", pairs).decode(errors="replace").split()
        mode = next((pair for pair in pairs if pair in installed), None)
        if mode is None:
            raise SubdpError(f"the Apertium pair {source}-{target} is not installed", hint=_install(pairs))
        self.mode, self.name = mode, f"apertium {mode}"

    def translate(self, sentences: Sequence[str]) -> list[str]:
        """Run Apertium on a few sentences at a time. Unknown words come back untranslated and unmarked."""
        parts = (sentences[start : start + _TOGETHER] for start in range(0, len(sentences), _TOGETHER))
        return [translation for part in parts for translation in self._together(part)]

    def _together(self, sentences: Sequence[str]) -> list[str]:
        # Reordering may move words across line breaks, so sentences are separated by an empty line.
        text = "".join(f"{sentence}\n\n" for sentence in sentences)
        lines = _output_lines(self._run(["-u", self.mode], text, [self.mode]), self.name)
        if any(lines[1::2]):
            raise SubdpError("Apertium merged sentences", where=self.name, hint="please report this")
        return lines[::2]

    @staticmethod
    def _run(arguments: list[str], text: str, pairs: list[str]) -> bytes:
        try:
            ran = subprocess.run(["apertium", *arguments], input=text.encode(), capture_output=True)
        except FileNotFoundError:
            raise SubdpError("the program apertium is not installed", hint=_install(pairs)) from None
        if ran.returncode:
            said = ran.stderr.decode(errors="replace").strip() or f"exit code {ran.returncode}"
            raise SubdpError(f"apertium failed: {said.splitlines()[-1]}", hint=_KEPT)
        return ran.stdout


def _install(pairs: list[str]) -> str:
    """How to install one of these pairs, in either direction."""
    either = {*pairs, *("-".join(reversed(pair.split("-"))) for pair in pairs)}
    package = next((pair for pair in _DEBIAN if pair in either), None)
    if package is None:
        return f"Debian has no package for {pairs[0]}: choose another translator"
    return f"on Debian or Ubuntu: apt install apertium apertium-{package}"


def _output_lines(output: bytes, name: str) -> list[str]:
    try:
        return output.decode().removesuffix("\n").split("\n") if output else []
    except UnicodeDecodeError:
        raise SubdpError("the output is not UTF-8", where=name) from None
