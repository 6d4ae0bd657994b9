"""A toy language and its translation, for tests that train: learnt in seconds, with gold trees on both sides.

Sentences are `the dog sees a bird today`; the translation puts the verb last and has other words.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from subdp.alignment.links import Alignment, write_alignments
from subdp.corpus.bitext import Bitext, Pair
from subdp.corpus.treebank import Sentence
from subdp.projection.silver import SilverStore
from subdp.projection.substructures import Substructure

if TYPE_CHECKING:
    from subdp.parser import Parser

FIRST = Substructure("first", "word", lambda sentence: ["yes", *["no"] * (len(sentence) - 1)])
"""A made-up substructure of words: whether a word is the first of its sentence."""

NOUNS = {"dog": "hundo", "cat": "kato", "bird": "birdo", "child": "infano", "horse": "cevalo"}
VERBS = {"sees": "vidas", "likes": "amas", "hears": "audas"}
DETERMINERS = {"the": "la", "a": "unu"}
ADVERBS = {"today": "hodiau", "often": "ofte", "here": "tie"}


def toy_pairs(count: int, seed: int = 0) -> list[tuple[Sentence, Sentence, Alignment]]:
    """Source trees, target trees and gold alignments of `count` sentence pairs."""
    return [_toy_pair(random.Random(f"{seed}-{number}")) for number in range(count)]


def _toy_pair(choose: random.Random) -> tuple[Sentence, Sentence, Alignment]:
    subject, object_ = (_noun_phrase(choose) for _ in range(2))
    verb = choose.choice(sorted(VERBS))
    adverb = [choose.choice(sorted(ADVERBS))] if choose.random() < 0.5 else []
    source = [*subject, verb, *object_, *adverb]
    target_order = [*range(2), *range(3, 5), *range(5, len(source)), 2]
    lexicon = NOUNS | VERBS | DETERMINERS | ADVERBS
    heads, labels = [2, 3, 0, 5, 3], ["det", "nsubj", "root", "det", "obj"]
    if adverb:
        heads, labels = [*heads, 3], [*labels, "advmod"]
    place = {old: new for new, old in enumerate(target_order)}
    return (
        Sentence.of(source, heads=heads, labels=labels),
        Sentence.of(
            [lexicon[source[old]] for old in target_order],
            heads=[0 if heads[old] == 0 else place[heads[old] - 1] + 1 for old in target_order],
            labels=[labels[old] for old in target_order],
        ),
        Alignment.of((old, new) for new, old in enumerate(target_order)),
    )


def _noun_phrase(choose: random.Random) -> list[str]:
    return [choose.choice(sorted(DETERMINERS)), choose.choice(sorted(NOUNS))]


def as_pair(source: Sentence, target: Sentence) -> Pair:
    """The words of both sides."""
    return Pair(source.words, target.words)


def toy_silver(parser: Parser, pairs: Iterable[tuple[Sentence, Sentence, Alignment]], folder: Path) -> SilverStore:
    """What a parser projects through the alignments of the pairs."""
    kept = list(pairs)
    write_alignments((alignment for _, _, alignment in kept), folder / "links.txt")
    bitext = Bitext.of([as_pair(tree, translation) for tree, translation, _ in kept])
    return parser.project(bitext, aligner=str(folder / "links.txt"), folder=folder / "silver")
