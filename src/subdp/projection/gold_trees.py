"""Gold trees in place of a source parser: find each pair's tree in the treebank that was translated.

    bitext, trees = with_trees(read_bitext("en-es.tsv").clean(), read_conllu("en_ewt-ud-train.conllu"))

Called by `Parser.project`. Imports no torch.
"""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from subdp.alignment.file_links import line_numbers
from subdp.corpus.bitext import Bitext, Pair
from subdp.corpus.treebank import UNKNOWN, Sentence
from subdp.corpus.words import words_of
from subdp.support.errors import SubdpError, counted


def with_trees(
    bitext: Bitext, treebank: Iterable[Sentence], *, same_words: bool = False
) -> tuple[Bitext, tuple[Sentence, ...]]:
    """The pairs of a translated treebank with the treebank's own words, and for each pair its gold tree.

    Line N of the output of `subdp translate` is sentence N of the treebank, so a pair's line number finds its tree
    whatever a filter has dropped; pairs without line numbers are counted. If the tree found has another text, as in a
    shuffled file, the first tree with the same text is used. `same_words`: a pair must already have its tree's words.
    """
    sentences = list(treebank)
    texts = [_characters(sentence.words) for sentence in sentences]
    places = {text: place for place, text in reversed(list(enumerate(texts)))}
    pairs, trees, without = [], [], []
    numbers = line_numbers(bitext) or range(1, len(bitext) + 1)
    for pair, number in zip(bitext, numbers, strict=True):
        text = _characters(pair.source)
        place = number - 1 if texts[number - 1 : number] == [text] else places.get(text)
        if place is None:
            without.append(pair)
            continue
        pairs.append(replace(pair, source=sentences[place].words))
        trees.append(sentences[place])
        if same_words and pairs[-1] != pair:
            hint = "a file of links counts the words of the bitext as read: is --tokenized missing? or name a method"
            raise _fault("has other words than its gold tree", pair, bitext, hint)
    if without:
        others = f", nor {'has' if len(without) == 2 else 'have'} {counted(len(without) - 1, 'other pair')}"
        hint = "the treebank must contain the source sentences; `subdp translate` makes such a bitext from it"
        raise _fault(f"has no gold tree{others if len(without) > 1 else ''}", without[0], bitext, hint)
    return bitext.with_pairs(pairs), tuple(trees)


def check_trees(trees: Sequence[Sentence], label_names: Collection[str]) -> None:
    """Raise unless trees have heads, and only labels that the parser knows, subtypes ignored."""
    if trees and all(head == UNKNOWN for tree in trees for head in tree.heads):
        raise SubdpError("the gold trees have no heads", hint="name a treebank that is annotated")
    for tree in trees:
        if unknown := sorted({*tree.universal_labels} - {"_", *label_names}):
            name = tree.sent_id or textwrap.shorten(" ".join(tree.words), 60)
            hint = f"it knows {', '.join(label_names)}; `subdp train` makes a parser with the treebank's own labels"
            raise SubdpError(f"the gold tree of {name!r} has a label that the parser lacks: {unknown[0]}", hint=hint)


def _characters(words: Sequence[str]) -> str:
    """The visible characters of a text, which do not depend on how it is split into words."""
    return "".join(words_of(" ".join(words)))


def _fault(reason: str, pair: Pair, bitext: Bitext, hint: str) -> SubdpError:
    text = textwrap.shorten(" ".join(pair.source), 60)
    line = pair.line if pair.id == str(pair.line) else None  # In CoNLL-U, `line` counts sentences.
    return SubdpError(f"{text!r} {reason}", where=bitext.where, line=line, hint=hint)
