"""What may be wrong with the data of a run, said with a scale and with what to do about it.

`run` and `project` call this. Nothing is stopped or changed: every finding is a `Caution`, printed and kept in
`report.json`. Its limit lies well between what was measured on clean and on spoiled text (docs/decisions.md). A
sample of the pairs is looked at, whose vectors are computed anyway.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from subdp.alignment.similarity import SimilarityAligner, cosine
from subdp.corpus.bitext import Bitext, Pair
from subdp.pipeline.annotate import doubt
from subdp.projection.silver import Silver, SilverPair
from subdp.support.errors import counted

if TYPE_CHECKING:
    from subdp.parser import Parser

WARNINGS = "warnings"
"""What they are called in `report.json`."""

MARKUP, SURER, NEAREST, LINKED, PAIRS = 0.01, 0.45, 0.85, 0.4, 50
"""The limits: a share of pairs with markup from which to warn, and shares and a number of pairs below which to warn."""

_STRETCHES, _STRETCH = 8, 25  # The sample: 8 stretches of 25 neighbouring pairs.
_PARSED = 2  # Every second pair of the sample is parsed on both sides.
_ENOUGH = 20  # Shares of fewer pairs say little.
_NEIGHBOURS = (-2, -1, 1, 2)

# Of words joined by spaces, as tokenizers leave them: tags, entities, and the brackets of wikis.
_ENTITIES = (
    r"# ?x?[0-9a-fA-F]+|amp|lt|gt|quot|apos|nbsp|szlig|[A-Za-z]{1,2}(?:uml|acute|grave|circ|tilde|cedil|dash|quo)"
)
_MARKUP = re.compile(rf"< ?/? ?[A-Za-z][\w-]*(?: [^<>]*)?/? ?>|& ?(?:{_ENTITIES}) ?;|\[ ?\[|\{{ ?\{{")
_HEADERS = frozenset("source src sentence sentences text original language english en eng".split())


@dataclass(frozen=True, slots=True)
class Caution:
    """Something that may be wrong: its kind, what was measured and the limit, and a sentence for the user."""

    kind: str
    text: str
    value: float
    limit: float

    def __str__(self) -> str:
        return f"warning: {self.text}"


def text_cautions(bitext: Bitext) -> list[Caution]:
    """What the words of a bitext show before it is cleaned: markup, and a header."""
    found = []
    marked = ((pair.line, match) for pair in bitext if (match := _markup(pair)))
    line, match = next(marked, (None, ""))
    share = (bool(match) + sum(1 for _ in marked)) / max(len(bitext), 1)
    if share >= MARKUP:
        first = f"{match!r} in line {line}" if line else repr(match)
        text = f"{share:.0%} of the pairs have markup, such as {first} (take tags and entities out of the text)"
        found.append(Caution("markup", f"{bitext.where}: {text}", share, MARKUP))
    if bitext and _is_header(pair := bitext[0]):
        header = f"{' '.join(pair.source)} | {' '.join(pair.target)}"
        text = f"{bitext.where}:1: looks like a header, not a pair: {header} (remove the line)"
        found.append(Caution("header", text, 1, 1))
    return found


def _is_header(pair: Pair) -> bool:
    """Whether the first line names columns: the source by words that do, the target in a few words and no signs."""
    short = len(pair.target) <= 3 and all(word.isalnum() for word in pair.target)
    return pair.line == 1 and short and {word.lower() for word in pair.source} <= _HEADERS


def _markup(pair: Pair) -> str | None:
    for side in (pair.source, pair.target):
        if match := _MARKUP.search(" ".join(side)):
            return match[0]
    return None


def pair_cautions(parser: Parser, silver: Silver, where: str) -> list[Caution]:
    """What the sides of projected pairs show: swapped columns, lines that do not belong together."""
    if len(silver) < _ENOUGH:
        return []
    stretches = [[silver[index] for index in stretch] for stretch in _sample(len(silver))]
    return [*_swapped(parser, stretches, where), *_shifted(parser, stretches, where)]


def _sample(pairs: int) -> list[range]:
    """Stretches of neighbouring pairs, evenly spaced."""
    if pairs <= _STRETCHES * _STRETCH:
        return [range(pairs)]
    starts = np.linspace(0, pairs - _STRETCH, _STRETCHES).astype(int).tolist()
    return [range(start, start + _STRETCH) for start in starts]


def _swapped(parser: Parser, stretches: Sequence[Sequence[SilverPair]], where: str) -> list[Caution]:
    """A parser is surer of sentences of its own language than of their translations."""
    pairs = [pair for stretch in stretches for pair in stretch][::_PARSED]
    source, target = (
        [doubt(tree) for tree in parser.parse(sentences, confidence=True, remember=True)]
        for sentences in ([pair.source for pair in pairs], [pair.target for pair in pairs])
    )
    share = sum(one < other for one, other in zip(source, target, strict=True)) / len(pairs)
    if share >= SURER:
        return []
    text = (
        f"{where}: the source parser is surer of the source than of the target in only {share:.0%} of the pairs; "
        "two thirds or more are usual (are the columns swapped? the source, the parser's language, comes first)"
    )
    return [Caution("swapped", text, share, SURER)]


def _shifted(parser: Parser, stretches: Sequence[Sequence[SilverPair]], where: str) -> list[Caution]:
    """A sentence is more similar to its translation than to those of the lines around it."""
    aligner = SimilarityAligner(parser.encoder, store=parser.features)
    nearest: Counter[int] = Counter()
    for stretch in stretches:
        sides = [[pair.source for pair in stretch], [pair.target for pair in stretch]]
        source, target = (
            np.stack([side.vectors[0].astype(np.float32).mean(axis=0) for side in aligner.encoded(words)])
            for words in sides
        )
        similarity = cosine(source - source.mean(axis=0), target - target.mean(axis=0))
        nearest.update(_nearest(similarity, sides[0]))
    share = nearest[0] / nearest.total()
    if share >= NEAREST:
        return []
    shift, count = nearest.most_common(1)[0]
    text = (
        f"{where}: only {share:.0%} of the sentences are more similar to their own translation than to those of the "
        f"lines around it; 97 % or more are usual, and 20 % is chance"
    )
    seen = f"; {count / nearest.total():.0%} are most similar to that of {_SHIFTS[shift]}" if shift else ""
    hint = "line N must translate line N: look for a line that is missing or extra on one side"
    return [Caution("shifted", f"{text}{seen} ({hint})", share, NEAREST)]


_SHIFTS = {-2: "two lines before", -1: "the line before", 1: "the next line", 2: "two lines after"}


def _nearest(similarity: Any, sources: Sequence[Sequence[str]]) -> list[int]:
    """For each source sentence, how far away the most similar target is. *Shape:* similarity [n, n]."""
    found = []
    for at, words in enumerate(sources):
        # A sentence that is there twice may have either translation.
        around = [at, *(at + by for by in _NEIGHBOURS if 0 <= at + by < len(sources) and sources[at + by] != words)]
        found.append(max(around, key=lambda other: similarity[at, other]) - at)
    return found


def size_cautions(projection: Mapping[str, Any]) -> list[Caution]:
    """What the summary of a projection shows: few pairs, few links."""
    found = []
    pairs, linked = projection["pairs"], projection["linked"]
    if pairs < PAIRS:
        text = (
            f"only {counted(pairs, 'pair')} can be used; the method was never measured with fewer than {PAIRS}, "
            "and a few hundred are a good start (translate more sentences)"
        )
        found.append(Caution("pairs", text, pairs, PAIRS))
    if linked < LINKED:
        text = (
            f"only {linked:.0%} of the target's words have a link; 60 % to 90 % are usual (do the lines translate "
            "each other, is the text tokenised as the aligner saw it, does the encoder know the language?)"
        )
        found.append(Caution("links", text, linked, LINKED))
    return found


def score_cautions(scores: Mapping[str, Any]) -> list[Caution]:
    """Gold sets on which the source parser as it is does as well as the adapted one."""
    sets = {"test": scores} | {name: rows for name, rows in scores.items() if "uas" not in rows}
    return [
        Caution(
            "direct",
            f"on the {name} set direct transfer has LAS {rows['direct']['las']:.1f}, the adapted parser "
            f"{rows['subdp']['las']:.1f}: adapting did not help (look at the other warnings and at the worst "
            "pairs in report.json; more or cleaner pairs help, or a few corrected trees with --trees)",
            rows["subdp"]["las"],
            rows["direct"]["las"],
        )
        for name, rows in sets.items()
        if "direct" in rows and rows["subdp"]["las"] <= rows["direct"]["las"]
    ]
