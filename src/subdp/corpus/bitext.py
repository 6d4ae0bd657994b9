"""Translated sentence pairs: reading, cleaning, sampling.

    bitext = read_bitext("en-de.tsv").clean(language="de")
    print(bitext.report)

Pairs that are left out are counted in the `report`; none is dropped silently. What is read, cleaned or sampled is kept
in a temporary file, not in memory (`support/on_disk.py`). Imports no torch, and numpy only to sample.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from os import fspath
from typing import TYPE_CHECKING, overload

from subdp.corpus.bitext_report import Report
from subdp.corpus.bitext_rows import Format, Path, Row, are_conllu, choose_tokenizers, rows_of
from subdp.corpus.filters import Filters
from subdp.corpus.tokenizers import AUTO, Tokenizer, peeked
from subdp.corpus.treebank import read_conllu
from subdp.corpus.words import words_function
from subdp.support.errors import SubdpError, counted
from subdp.support.files import name_of
from subdp.support.on_disk import Lines, Seen

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SIZES = tuple(50 * 2**k for k in range(10))
"""The paper's numbers of pairs for learning curves: 50, 100, … 25,600."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A sentence and its translation, as words.

    `id` is its sent_id, or the number of its line in the file; `line` is its position among the pairs of the file, from
    1, by which its links are found in the file of another aligner.
    """

    source: tuple[str, ...]
    target: tuple[str, ...]
    id: str | None = None
    line: int | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        for side in ("source", "target"):
            words = getattr(self, side)
            if isinstance(words, str):
                raise TypeError(f"{side} is one string; give its words, for example words_of({words!r})")
            if not words or not all(words):
                raise SubdpError(f"the {side} of a pair has no words or an empty word", where=self.id)
            if not all(isinstance(word, str) for word in words):
                raise TypeError(f"the {side} of a pair has a word that is not a string")
            object.__setattr__(self, side, tuple(map(str, words)))


def pair_as_line(pair: Pair) -> bytes:
    """A pair as a line of JSON, which `pair_of_line` reads."""
    return json.dumps({"source": pair.source, "target": pair.target, "id": pair.id, "line": pair.line}).encode()


def pair_of_line(line: bytes) -> Pair:
    """The pair that a line of JSON holds."""
    return Pair(**json.loads(line))


@dataclass(frozen=True)
class Bitext(Sequence[Pair]):
    """Pairs in order, where they came from, and the report of what was left out.

    `tokenizer` names what its target words are due to, if it was asked for or called for by their script: the parser
    that is made from it needs it too.
    """

    pairs: Sequence[Pair]
    where: str
    report: Report
    tokenizer: str | None = None

    def __post_init__(self) -> None:
        if self.report.kept != len(self.pairs):
            raise ValueError(f"the report says that {self.report.kept} pairs were kept, not {len(self.pairs)}")

    @classmethod
    def of(cls, pairs: Sequence[Pair], where: str = "<pairs>") -> Bitext:
        """A bitext from pairs."""
        return cls(tuple(pairs), where, Report(len(pairs)))

    def __len__(self) -> int:
        return len(self.pairs)

    @overload
    def __getitem__(self, index: int) -> Pair: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Pair, ...]: ...
    def __getitem__(self, index: int | slice) -> Pair | tuple[Pair, ...]:
        return tuple(self.pairs[index]) if isinstance(index, slice) else self.pairs[index]

    def __iter__(self) -> Iterator[Pair]:
        return iter(self.pairs)

    def __add__(self, other: Bitext) -> Bitext:
        # Line numbers of two files would be taken for those of one.
        pairs = (replace(pair, line=None) for pairs in (self, other) for pair in pairs)
        where, tokenizer = f"{self.where} + {other.where}", self.tokenizer or other.tokenizer
        return Bitext(_stored(pairs), where, self.report + other.report, tokenizer)

    def with_pairs(self, pairs: Iterable[Pair], *, report: Report | None = None) -> Bitext:
        """The same bitext with other pairs, given as a stream; as many, unless there is a report of those left out."""
        return replace(self, pairs=_stored(pairs), report=self.report + (report or Report(0)))

    @property
    def lines(self) -> int:
        """How many pairs its file had, including empty and dropped ones, but not sentences without a partner."""
        return self.report.read - sum(self.report.dropped.get(reason, 0) for reason in _WITHOUT_PARTNER)

    @property
    def words(self) -> tuple[int, int]:
        """The number of words on the source and on the target side."""
        source = target = 0
        for pair in self:
            source += len(pair.source)
            target += len(pair.target)
        return source, target

    @cached_property
    def fingerprint(self) -> str:
        """The sha256 of all words in order: the same for the same words, wherever they were read from."""
        digest = hashlib.sha256()
        for pair in self:
            digest.update(json.dumps([pair.source, pair.target]).encode() + b"\n")
        return digest.hexdigest()

    def clean(self, language: str | None = None, filters: Filters = Filters()) -> Bitext:  # noqa: B008 - frozen
        """Leave out pairs that are probably not translations (see `Filters`), and duplicates.

        `language` is the target's (`de`), needed only if translations by CRISS or mBART still contain language tokens.
        """
        dropped: Counter[str] = Counter()
        changed: Counter[str] = Counter()

        def kept() -> Iterator[Pair]:
            seen = Seen()
            for pair in self:
                verdict = filters.judge(pair.source, pair.target, language)
                if isinstance(verdict, str):
                    dropped[verdict] += 1
                elif not seen.add(json.dumps([pair.source, verdict]).encode()):
                    dropped["duplicate"] += 1
                elif verdict == pair.target:
                    yield pair
                else:
                    changed["language token taken out"] += 1
                    yield replace(pair, target=verdict)

        pairs = _stored(kept())
        return replace(self, pairs=pairs, report=self.report + Report(0, dropped, changed))

    def sample(self, count: int, seed: int) -> Bitext:
        """`count` pairs drawn at random, in their order; for one seed a larger sample holds every smaller one."""
        if not 0 <= count <= len(self):
            raise SubdpError(
                f"a sample of {count} from {counted(len(self), 'pair')}", where=self.where, hint="take a smaller sample"
            )
        left_out = {"not in the sample": len(self) - count} if count < len(self) else {}
        indices = self.drawn(seed)[:count]
        indices.sort()
        return self.with_pairs((self.pairs[index] for index in indices), report=Report(0, left_out))

    def drawn(self, seed: int) -> NDArray[np.int64]:
        """All indices in a random order: the first n of them are the sample of n pairs.

        `random()` is the one method that Python promises never to change.
        """
        import numpy as np

        draw = random.Random(seed).random
        keys = np.fromiter((draw() for _ in range(len(self))), np.float64, len(self))
        return np.argsort(keys, kind="stable")


def _stored(pairs: Iterable[Pair]) -> Lines[Pair]:
    return Lines.of(pairs, pair_as_line, pair_of_line)


def read_bitext(
    source: Path,
    target: Path | None = None,
    *,
    format: Format = "auto",
    tokenized: bool = False,
    tokenizer: str | Tokenizer = AUTO,
    source_tokenizer: str | Tokenizer = AUTO,
    threshold: float | None = None,
) -> Bitext:
    """Read translated pairs. Errors name file and line; pairs with an empty side are left out and counted.

    One file: `tsv` (source TAB target) or `wikimatrix` (score TAB source TAB target; scores below `threshold` are
    dropped). Two files: `moses` (line N translates line N), or `conllu` (joined by sent_id, words as annotated).
    `auto` tells them apart by number of files, ending and first line. A byte order mark and CR LF are fine.

    The source is tokenised by `source_tokenizer`, the target by `tokenizer` (see `words_of`); `auto` is what the script
    calls for, and an error where that is not installed. `tokenized` text has its words separated by spaces already.
    """
    paths = [fspath(path) for path in (source, target) if path is not None]
    if paths == ["-", "-"]:
        raise SubdpError("both sides cannot be read from standard input", hint="name a file for one of them")
    if format == "auto" and are_conllu(paths):
        format = "conllu"
    elif format == "auto" and target is not None:
        format = "moses"
    if (format in ("moses", "conllu")) != (target is not None):
        needs = "two files" if target is None else "one file"
        raise SubdpError(f"the format {format} is read from {needs}", where=name_of(source), hint=_FORMATS)
    if threshold is not None and format not in ("auto", "wikimatrix"):
        raise SubdpError(f"the format {format} has no scores for a threshold", where=name_of(source), hint=_FORMATS)
    if format == "conllu" and target is not None:
        return _read_conllu(source, target)
    dropped: Counter[str] = Counter()
    rows = rows_of(source, target, format, threshold, dropped)
    where = ", ".join(map(name_of, paths))
    if tokenized:
        return _tokenized(rows, where, ("whitespace", "whitespace"), dropped)
    first, rows = peeked(rows)
    tokenizers = choose_tokenizers(first, where, source_tokenizer, tokenizer)
    bitext = _tokenized(rows, where, tokenizers, dropped)
    known = isinstance(tokenizers[1], str) and (tokenizer, tokenizers[1]) != (AUTO, "unicode")
    return replace(bitext, tokenizer=str(tokenizers[1]) if known else None)


_FORMATS = "tsv and wikimatrix are one file, moses and conllu two: source and target"


def _tokenized(
    rows: Iterable[Row],
    where: str,
    tokenizers: tuple[str | Tokenizer, str | Tokenizer],
    dropped: Counter[str],
) -> Bitext:
    """Tokenise both sides."""
    source_words, target_words = map(words_function, tokenizers)

    def pairs() -> Iterator[Pair]:
        for line, source, target in rows:
            left, right = source_words(source), target_words(target)
            if left and right:
                yield Pair(left, right, str(line), line)
            else:
                dropped["empty side"] += 1

    stored = _stored(pairs())
    read = len(stored) + dropped.total()
    if not read:
        raise SubdpError("no lines", where=where, hint="the file is empty")
    return Bitext(stored, where, Report(read, dropped))


def _read_conllu(source: Path, target: Path) -> Bitext:
    """Pairs of sentences with the same sent_id, in the source's order."""
    left, right = _words_by_id(source), _words_by_id(target)
    common = [key for key in left if key in right]
    pairs = tuple(Pair(left[key], right[key], key, line) for line, key in enumerate(common, 1))
    if not pairs:
        raise SubdpError(f"no sent_id in common with {name_of(target)}", where=name_of(source), hint=_SENT_IDS)
    missing = dict(zip(_WITHOUT_PARTNER, (len(left) - len(pairs), len(right) - len(pairs)), strict=True))
    dropped = {reason: count for reason, count in missing.items() if count}
    report = Report(len(pairs) + sum(dropped.values()), dropped)
    return Bitext(pairs, f"{name_of(source)}, {name_of(target)}", report)


_WITHOUT_PARTNER = ("only in the source", "only in the target")
_SENT_IDS = "a sentence and its translation must have the same comment '# sent_id = …'"


def _words_by_id(path: Path) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for number, sentence in enumerate(read_conllu(path), 1):
        key = sentence.sent_id
        if key is None:
            raise SubdpError(f"sentence {number} has no sent_id", where=name_of(path), hint=_SENT_IDS)
        if key in found:
            raise SubdpError(f"sentence {number} repeats the sent_id {key}", where=name_of(path), hint=_SENT_IDS)
        found[key] = sentence.words
    return found
