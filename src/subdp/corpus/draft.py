"""Sentences without trees, from raw text, tokenised lines or CoNLL-U. No torch.

What they become is valid CoNLL-U once a parser has filled in trees and tags: with `# sent_id`, `# text` and
`SpaceAfter=No`.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from textwrap import shorten
from typing import Any, Literal, TypeAlias

from subdp.corpus.tokenizers import AUTO, Tokenizer, choose_tokenizer, peeked
from subdp.corpus.treebank import Sentence, read_conllu
from subdp.corpus.words import composed, sentences_of, words_function
from subdp.support.errors import SubdpError
from subdp.support.files import Source, name_of, read_lines

TextFormat = Literal["text", "words", "conllu"]
AnyFormat = Literal[TextFormat, "bitext"]

Texts: TypeAlias = str | Sentence | Iterable[str | Sentence | Sequence[str]]
"""What a parser takes: raw text, a sentence, or several of them; a sentence may also be a list of its words."""


def read_sentences(
    source: Source, format: TextFormat | None = None, tokenizer: str | Tokenizer = AUTO
) -> Iterator[Sentence]:
    """Sentences from `text` (split and tokenised here), `words` (one sentence per line, tokenised), or `conllu`.

    By default a file that ends in `.conllu` (or `.conllu.gz`) is CoNLL-U and anything else is text; but not `.tsv`,
    whose lines are a sentence and its translation.
    """
    found = format_of(source, format)
    if found == "bitext":
        hint = "`subdp annotate` parses the second column; --format text reads each line as one text"
        raise SubdpError("a .tsv file holds pairs of sentences, not text", where=name_of(source), hint=hint)
    if found == "conllu":
        return read_conllu(source, any_roots=True)
    return _from_lines(source, split=found != "words", tokenizer=tokenizer)


def format_of(source: Source, format: AnyFormat | None = None) -> AnyFormat:
    """The format given, or the one that a file's name tells."""
    name = name_of(source).removesuffix(".gz")
    told: AnyFormat = "bitext" if name.endswith(".tsv") else "conllu" if name.endswith(".conllu") else "text"
    return format or told


def as_sentences(given: Texts, tokenizer: str | Tokenizer = AUTO) -> Iterator[Sentence]:
    """The sentences of whatever Python code has at hand, as a stream: text is split and tokenised, words are kept.

    >>> [sentence.words for sentence in as_sentences(["Go! Now.", ["Stay", "here"]])]
    [('Go', '!'), ('Now', '.'), ('Stay', 'here')]
    """
    if isinstance(given, str | Sentence):
        given = [given]
    elif isinstance(given, bytes | Mapping) or not isinstance(given, Iterable):
        raise _not_sentences(given)
    return _from_items(given, tokenizer)


def _from_items(given: Iterable[Any], tokenizer: str | Tokenizer) -> Iterator[Sentence]:
    first, items = peeked(given)
    cut = words_function(choose_tokenizer(tokenizer, (item for item in first if isinstance(item, str))))
    number = 0
    for item in items:
        if isinstance(item, Sentence):
            yield item
        elif isinstance(item, str):
            for text in sentences_of(item):
                if words := cut(text):
                    number += 1
                    yield draft(text, words, str(number))
        elif isinstance(item, Sequence) and all(isinstance(word, str) for word in item):
            number += 1
            yield draft(" ".join(item), tuple(item), str(number))
        else:
            raise _not_sentences(item)


def _not_sentences(given: object) -> TypeError:
    what = f"{type(given).__name__}, {shorten(repr(given), 60)}"
    return TypeError(f"a parser takes text, sentences, and lists of words, but was given this {what}")


def _from_lines(source: Source, *, split: bool, tokenizer: str | Tokenizer) -> Iterator[Sentence]:
    first, lines = peeked(line for _, line in read_lines(source))
    cut = words_function(choose_tokenizer(tokenizer, first, where=name_of(source)) if split else "whitespace")
    count = 0
    for line in lines:
        for text in sentences_of(line) if split else (line.strip(),):
            if words := cut(text):
                count += 1
                yield draft(text, words, str(count))
    if not count:
        raise SubdpError("holds no words", where=name_of(source), hint="it needs at least one sentence")


def draft(text: str, words: tuple[str, ...], sent_id: str) -> Sentence:
    """A sentence whose tree is not known yet, ready to be written as CoNLL-U. `words` are those of `words_of`.

    >>> draft("Go!", ("Go", "!"), "1").conllu.split("\\n")[2].endswith("SpaceAfter=No")
    True
    """
    text = composed(text)  # as the words are, and as Universal Dependencies requires
    misc, end = [], 0
    for word in words:
        start = text.find(word, end)
        if start >= 0:
            end = start + len(word)
        misc.append("SpaceAfter=No" if start >= 0 and end < len(text) and not text[end].isspace() else "_")
    spaced = "".join(word + ("" if note != "_" else " ") for word, note in zip(words, misc, strict=True)).strip()
    comments = [f"# sent_id = {sent_id}", f"# text = {spaced}"]
    return Sentence.of(words, misc=misc, comments=comments)


def upos_of(word: str) -> str:
    """The UPOS that follows from a word's characters: PUNCT, SYM, NUM, else X."""
    kinds = {unicodedata.category(character)[0] for character in word}
    if kinds == {"P"}:
        return "PUNCT"
    if kinds <= {"S", "P"}:
        return "SYM"
    return "NUM" if "N" in kinds and kinds <= {"N", "P"} else "X"
