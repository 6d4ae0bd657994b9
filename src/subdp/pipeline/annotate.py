"""Drafts for an annotator: from text, CoNLL-U or a bitext to trees with confidences and rivals in MISC, in the order of
the document or the most doubtful first. Drafts of text pass `udvalidate` at level 2.

Imports no torch: the parser is given.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from subdp.corpus.bitext_rows import table_rows
from subdp.corpus.draft import AnyFormat, draft, format_of, read_sentences
from subdp.corpus.layers import find_layer
from subdp.corpus.tokenizers import choose_tokenizer, peeked
from subdp.corpus.treebank import Sentence
from subdp.corpus.words import composed, words_function
from subdp.support.engine import Engine, LocalEngine
from subdp.support.errors import SubdpError
from subdp.support.files import name_of
from subdp.support.progress import progress

if TYPE_CHECKING:
    from subdp.parser import Parser

Order = Literal["document", "doubt"]

_CERTAINTIES = ("HeadProb=", "LabelProb=")
_LEAST = 0.0005  # MISC has three digits: what is written as 0.000 is less probable than this.


def annotate(
    source: str,
    parser: Parser,
    *,
    format: AnyFormat | None = None,
    tokenizer: str | None = None,
    order: Order = "document",
    source_language: str = "en",
    retag: bool = False,
    engine: Engine | None = None,
) -> Iterator[Sentence]:
    """Sentences with trees, tags, probabilities and rivals in MISC and a comment `# doubt = …`, in the order asked for.

    Text is cut into words by `tokenizer`, by default the parser's own. The translation in a bitext of another
    `source_language` becomes a comment `# text_fr = …`, as UD has it.
    """
    sentences = read_drafts(source, parser, format, tokenizer, source_language)

    def parsed() -> Iterator[Sentence]:
        with progress("annotating", None, "sentences") as advance:
            drafts = parser.parse(sentences, confidence=True, retag=retag, engine=engine or LocalEngine())
            for sentence in drafts:
                yield with_doubt(sentence)
                advance(1)

    return parsed() if order == "document" else iter(sorted(parsed(), key=doubt, reverse=True))


def read_drafts(
    source: str,
    parser: Parser,
    format: AnyFormat | None = None,
    tokenizer: str | None = None,
    source_language: str = "en",
) -> Iterator[Sentence]:
    """The sentences of a file, complete but for what the parser adds."""
    keys = _confidence_keys(parser.layers)
    read = read_text(source, format, tokenizer or parser.tokenizer, source_language)
    return (_complete(sentence, number, keys) for number, sentence in enumerate(read, 1))


def with_doubt(sentence: Sentence) -> Sentence:
    """A parsed sentence with its doubt as a comment."""
    return _with_comment(sentence, f"# doubt = {doubt(sentence):.3f}")


def doubt(sentence: Sentence) -> float:
    """How unsure the parser was of an annotated sentence: the mean over its words of −log(HeadProb · LabelProb)."""
    total = 0.0
    for _, columns in _rows(sentence):
        found = dict(item.split("=", 1) for item in columns[9].split("|") if item.startswith(_CERTAINTIES))
        if len(found) < 2:
            hint = "`subdp annotate` and `subdp parse --confidence` write them"
            raise SubdpError("a word without HeadProb and LabelProb", where=sentence.sent_id, hint=hint)
        total -= sum(math.log(max(float(probability), _LEAST)) for probability in found.values())
    return total / len(sentence)


def read_text(source: str, format: AnyFormat | None, tokenizer: str, source_language: str = "en") -> Iterator[Sentence]:
    """The sentences of a file, as `parse` reads it; of a bitext, which by default is a `.tsv`, the target side."""
    found = format_of(source, format)
    if found == "bitext":
        sentences = _targets(source, tokenizer, source_language)
    else:
        sentences = read_sentences(source, found, tokenizer)
    count = 0
    for count, sentence in enumerate(sentences, 1):  # noqa: B007
        yield sentence
    if not count:
        raise SubdpError("has no sentences", where=name_of(source))


def _targets(source: str, tokenizer: str, source_language: str) -> Iterator[Sentence]:
    """The target sentences of a file of pairs, numbered by their lines, with the source sentence as a comment."""
    if not re.fullmatch(r"[A-Za-z0-9_-]+", source_language):
        raise SubdpError(f"{source_language!r} is not the code of a language", hint="name one such as en or pt-BR")
    first, rows = peeked(table_rows(source, "auto", None, Counter()))
    cut = words_function(choose_tokenizer(tokenizer, (text for _, _, text in first), "the target", name_of(source)))
    for line, other, text in rows:
        if words := cut(text):
            translation = composed(" ".join(other.split()))
            yield _with_comment(draft(text, words, str(line)), f"# text_{source_language} = {translation}")


def _confidence_keys(layers: Sequence[str]) -> set[str]:
    """The keys of MISC in which a parser tells how sure it is."""
    titles = ("Head", "Label", *(find_layer(name).title for name in ("upos", *layers)))
    return {f"{title}{what}" for title in titles for what in ("Prob", "Alt")}


def _complete(sentence: Sentence, number: int, keys: set[str]) -> Sentence:
    """The sentence with what `udvalidate` wants and it may lack: an id and its text; without older confidences."""
    lines = sentence.conllu.split("\n")
    for at, columns in _rows(sentence):
        kept = [item for item in columns[9].split("|") if item.partition("=")[0] not in keys]
        columns[9] = "|".join(kept) or "_"
        lines[at] = "\t".join(columns)
    comments = [line for line in lines if line.startswith("#") and not line.startswith("# doubt =")]
    if sentence.text is None:
        comments.insert(0, f"# text = {_text(lines)}")
    if sentence.sent_id is None:
        comments.insert(0, f"# sent_id = {number}")
    rows = [line for line in lines if not line.startswith("#")]
    return replace(sentence, conllu="\n".join([*comments, *rows]))


def _text(lines: list[str]) -> str:
    """The text that the words stand for, multiword tokens as they are written."""
    text, covered = "", 0
    for columns in (line.split("\t") for line in lines if not line.startswith("#")):
        first, dash, last = columns[0].partition("-")
        if "." in first or (not dash and int(first) <= covered):
            continue
        covered = int(last) if dash else covered
        text += columns[1] + ("" if "SpaceAfter=No" in columns[9].split("|") else " ")
    return text.strip()


def _rows(sentence: Sentence) -> Iterator[tuple[int, list[str]]]:
    """The columns of each word, with the number of its line."""
    for number, line in enumerate(sentence.conllu.split("\n")):
        if not line.startswith("#") and line[: line.index("\t")].isdecimal():
            yield number, line.split("\t")


def _with_comment(sentence: Sentence, comment: str) -> Sentence:
    """The sentence with one more comment, the last."""
    count = len(sentence.comments)
    lines = sentence.conllu.split("\n")
    return replace(sentence, conllu="\n".join([*lines[:count], comment, *lines[count:]]))
