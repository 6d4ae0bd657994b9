"""A spaCy component that parses spaCy's own tokens: `nlp.add_pipe("subdp", config={"parser": "DIR"})`.

It sets heads, relations and sentence starts, part-of-speech tags where the parser predicts them, and leaves what it
thought of each token in `token._.subdp`. spaCy finds it by the entry point `subdp` in the group `spacy_factories`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from spacy.attrs import DEP, HEAD, POS
from spacy.language import Language
from spacy.symbols import IDS
from spacy.tokens import Doc, Token
from spacy.util import minibatch

from subdp.corpus.treebank import Sentence
from subdp.corpus.words import sentences_of
from subdp.parser import Parser
from subdp.support.settings import EncoderBits

_BATCH = 64  # Documents parsed together, unless `nlp.pipe` is told otherwise.
_TAGS = "upos"


@Language.factory(  # type: ignore[untyped-decorator]
    "subdp",
    assigns=["token.head", "token.dep", "token.pos", "token.is_sent_start", "doc.sents"],
    default_config={"parser": "en", "encoder": None, "bits": 32},
)
def make_component(nlp: Language, name: str, parser: str, encoder: str | None, bits: EncoderBits) -> ParserPipe:
    """What `nlp.add_pipe("subdp")` calls; `parser`, `encoder` and `bits` are what `Parser.load` takes."""
    return ParserPipe(parser, encoder, bits)


class ParserPipe:
    """A parser as a component. It is loaded at the first document, or from the folder of a saved pipeline."""

    def __init__(self, parser: str, encoder: str | None = None, bits: EncoderBits = 32):
        self._name, self._encoder, self._bits = parser, encoder, bits
        if not Token.has_extension("subdp"):
            Token.set_extension("subdp", default=None)

    @cached_property
    def parser(self) -> Parser:
        """The parser that does the work."""
        return Parser.load(self._name, encoder=self._encoder, bits=self._bits)

    def __call__(self, doc: Doc) -> Doc:
        self._annotate([doc])
        return doc

    def pipe(self, stream: Iterable[Doc], *, batch_size: int = _BATCH) -> Iterator[Doc]:
        """Documents in batches, all sentences of a batch together."""
        for docs in minibatch(stream, size=batch_size):
            self._annotate(docs)
            yield from docs

    def to_disk(self, path: str | Path, *, exclude: Sequence[str] = ()) -> None:
        """Save the parser as part of a pipeline."""
        self.parser.save(path)

    def from_disk(self, path: str | Path, *, exclude: Sequence[str] = ()) -> ParserPipe:
        """Take the parser of a saved pipeline."""
        self._name = str(path)
        self.__dict__.pop("parser", None)
        return self

    def _annotate(self, docs: Sequence[Doc]) -> None:
        spans = [_sentences(doc) for doc in docs]
        words = [[token.text for token in span] for of_doc in spans for span in of_doc]
        parsed = self.parser.parse(words, confidence=True)
        for doc, of_doc in zip(docs, spans, strict=True):
            self._write(doc, [(span, next(parsed)) for span in of_doc])

    def _write(self, doc: Doc, trees: Sequence[tuple[list[Token], Sentence]]) -> None:
        """Give a document its trees; white space hangs on the word before it, at the start on the one after."""
        heads = [max(token.i - 1, 0) for token in doc]
        for token in doc[: trees[0][0][0].i] if trees else []:
            heads[token.i] = trees[0][0][0].i
        labels, tags = ["dep"] * len(doc), ["SPACE"] * len(doc)
        for span, tree in trees:
            for token, head, label, tag in zip(span, tree.heads, tree.labels, tree.upos, strict=True):
                heads[token.i] = span[head - 1].i if head else token.i
                labels[token.i] = label if head else "ROOT"
                tags[token.i] = tag
            for token, note in zip(span, _notes(tree), strict=True):
                token._.subdp = {name: _with_tokens(name, value, token, span) for name, value in note.items()}
        columns = {  # spaCy has offsets of heads among hashes of strings: all are unsigned, and wrap around
            HEAD: (np.array(heads, np.int64) - np.arange(len(doc))).astype(np.uint64),
            DEP: np.array([doc.vocab.strings.add(label) for label in labels], np.uint64),
        }
        if _TAGS in self.parser.inventory:
            columns[POS] = np.array([IDS.get(tag, IDS["X"]) for tag in tags], np.uint64)
        if len(doc):
            doc.from_array(list(columns), np.stack(list(columns.values()), axis=1))


def _sentences(doc: Doc) -> list[list[Token]]:
    """The tokens of each sentence without white space: as spaCy has cut them already, or else by our own rules."""
    if doc.has_annotation("SENT_START"):
        cut = [list(span) for span in doc.sents]
    else:
        starts, end = [], 0
        for text in sentences_of(doc.text):
            starts.append(doc.text.index(text, end))
            end = starts[-1] + len(text)
        cut = [[] for _ in (*starts, None)]
        passed = 0
        for token in doc:
            while passed < len(starts) and token.idx >= starts[passed]:
                passed += 1
            cut[passed].append(token)
    words = [[token for token in span if not token.is_space] for span in cut]
    return [span for span in words if span]


def _notes(tree: Sentence) -> Iterator[dict[str, Any]]:
    """What MISC says of each word: probabilities as numbers, rivals as (value, probability)."""
    for line in tree.conllu.split("\n"):
        if line.startswith("#"):
            continue
        found: dict[str, Any] = {}
        for name, _, value in (item.partition("=") for item in line.split("\t")[9].split("|")):
            if name.endswith("Prob"):
                found[name] = float(value)
            elif name.endswith("Alt"):
                rivals = (item.rpartition(":") for item in value.split(","))
                found[name] = [[rival, float(probability)] for rival, _, probability in rivals]
        yield found


def _with_tokens(name: str, value: Any, token: Token, span: Sequence[Token]) -> Any:
    """Rival heads as numbers of the document's tokens; ROOT is the token itself, as spaCy has it."""
    if name != "HeadAlt":
        return value
    return [[span[int(head) - 1].i if head != "0" else token.i, probability] for head, probability in value]
