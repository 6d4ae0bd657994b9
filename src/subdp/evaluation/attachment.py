"""How good a parse is: attachment scores, their spread over runs, and whether one system beats another.

`evaluate` compares two streams of sentences; `summarize` takes the scores of several runs, `compare` those of two
systems on one gold standard. Imports no torch, and numpy only when `compare` draws samples.
"""

from __future__ import annotations

import math
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING, NamedTuple, get_args

from subdp.corpus.layers import NONE, UNANNOTATED, Layer, find_layer
from subdp.evaluation.scores import (
    Comparison,
    Difference,
    Labels,
    LayerScores,
    Punctuation,
    RelationScores,
    Scores,
    SentenceCounts,
    Spread,
    Summary,
)
from subdp.support.errors import SubdpError

if TYPE_CHECKING:
    from subdp.corpus.treebank import Sentence

__all__ = ["Comparison", "Scores", "Summary", "compare", "evaluate", "summarize"]


def evaluate(
    gold: Iterable[Sentence],
    system: Iterable[Sentence],
    *,
    punctuation: Punctuation = "upos",
    labels: Labels = "universal",
    max_length: int | None = 150,
    layers: Sequence[str] = ("upos",),
) -> Scores:
    """Score a system's trees against gold trees over the same words, in one pass.

    `punctuation` says which words are left out, always by the gold standard: `upos` PUNCT and SYM, `deprel` punct,
    `form` all characters of Unicode category P (as the CoNLL shared tasks did), `none` no word. `labels` compares
    `universal` labels (without subtypes) or `full` ones. Sentences over `max_length` words are left out. `layers` are
    scored over all words, punctuation included, if both sides have them (`corpus/layers.py` says which there are).

    A head the system leaves unknown is wrong; a word whose head the gold standard leaves unknown is not scored. Words
    that differ, or a different number of sentences, raise `SubdpError` naming the first difference.
    """
    for value, choices, name in ((punctuation, Punctuation, "punctuation"), (labels, Labels, "labels")):
        if value not in get_args(choices):
            raise SubdpError(f"there is no {name} rule {value!r}", hint=f"choose {', '.join(get_args(choices))}")
    per_sentence: list[SentenceCounts] = []
    arcs: Counter[_Arc] = Counter()
    tags = {name: _Tags(find_layer(name)) for name in layers}
    punctuation_words = unknown_words = long_sentences = empty_sentences = untagged_words = 0
    for truth, guess in _side_by_side(gold, system):
        if max_length is not None and len(truth.words) > max_length:
            long_sentences += 1
            continue
        for one in tags.values():
            one.count(truth, guess)
        kept = _kept(truth, punctuation)
        scored = [index for index in kept if truth.heads[index] >= 0]
        punctuation_words += len(truth.words) - len(kept)
        unknown_words += len(kept) - len(scored)
        if not scored:
            empty_sentences += 1
            continue
        if punctuation == "upos":
            untagged_words += sum(truth.upos[index] == "_" for index in scored)
        counts, found = _count(truth, guess, scored, labels)
        per_sentence.append(counts)
        arcs.update(found)
    if not per_sentence:
        raise SubdpError("there is no word to score", hint="does the gold have heads, and not only punctuation?")
    _, words, right_heads, right_arcs, _ = zip(*per_sentence, strict=True)
    return Scores(
        words=sum(words),
        right_heads=sum(right_heads),
        right_arcs=sum(right_arcs),
        punctuation=punctuation,
        labels=labels,
        max_length=max_length,
        by_relation=_by_relation(arcs),
        per_sentence=tuple(per_sentence),
        punctuation_words=punctuation_words,
        unknown_words=unknown_words,
        long_sentences=long_sentences,
        empty_sentences=empty_sentences,
        untagged_words=untagged_words,
        layers={name: LayerScores(one.words, one.right) for name, one in tags.items() if one.found and one.guessed},
    )


@dataclass(slots=True)
class _Tags:
    """Counts of a layer: words that the gold standard annotates, those with a value, guessed at, guessed right."""

    layer: Layer
    words: int = 0
    found: int = 0
    guessed: int = 0
    right: int = 0

    def count(self, truth: Sentence, guess: Sentence) -> None:
        for wanted, given in zip(self.layer.read(truth), self.layer.read(guess), strict=True):
            if wanted != UNANNOTATED:
                self.words += 1
                self.found += wanted != NONE
                self.guessed += given != UNANNOTATED
                # A sentence none of whose words has the feature reads as unannotated.
                self.right += given == wanted or (wanted == NONE and given == UNANNOTATED)


class _Arc(NamedTuple):
    label: str
    guessed_label: str
    right_head: bool


def _side_by_side(gold: Iterable[Sentence], system: Iterable[Sentence]) -> Iterator[tuple[Sentence, Sentence]]:
    """Gold and system sentences in pairs; an error where their words differ."""
    for number, (truth, guess) in enumerate(zip_longest(gold, system), start=1):
        if truth is None or guess is None:
            longer, shorter = ("gold standard", "system") if guess is None else ("system", "gold standard")
            raise SubdpError(
                f"the {longer} has {_name(number, truth or guess)}, but the {shorter} ends after {number - 1}",
                hint="both must hold the same sentences in the same order",
            )
        if truth.words != guess.words:
            pairs = zip_longest(truth.words, guess.words)
            word, (wanted, found) = next((at, pair) for at, pair in enumerate(pairs, start=1) if pair[0] != pair[1])
            raise SubdpError(
                f"{_name(number, truth)}, word {word}: the gold standard has {_quote(wanted)},"
                f" the system has {_quote(found)}",
                hint="both must hold the same words; parse the words of the gold file, not its text",
            )
        yield truth, guess


def _name(number: int, sentence: Sentence) -> str:
    return f"sentence {number}" + (f" ({sentence.sent_id})" if sentence.sent_id else "")


def _quote(word: str | None) -> str:
    return "no more words" if word is None else repr(word)


def _kept(sentence: Sentence, punctuation: Punctuation) -> Sequence[int]:
    """The indices of the words that the punctuation rule keeps."""
    if punctuation == "upos":
        return [index for index, tag in enumerate(sentence.upos) if tag not in ("PUNCT", "SYM")]
    if punctuation == "deprel":
        return [index for index, label in enumerate(sentence.universal_labels) if label != "punct"]
    if punctuation == "form":
        return [index for index, word in enumerate(sentence.words) if not _is_punctuation(word)]
    return range(len(sentence.words))


def _is_punctuation(word: str) -> bool:
    return all(unicodedata.category(character).startswith("P") for character in word)


def _count(truth: Sentence, guess: Sentence, scored: list[int], labels: Labels) -> tuple[SentenceCounts, list[_Arc]]:
    """The counts of one sentence, and its scored words one by one."""
    wanted = truth.labels if labels == "full" else truth.universal_labels
    given = guess.labels if labels == "full" else guess.universal_labels
    arcs = [_Arc(wanted[index], given[index], truth.heads[index] == guess.heads[index]) for index in scored]
    right_heads = sum(arc.right_head for arc in arcs)
    right_arcs = sum(arc.right_head and arc.label == arc.guessed_label for arc in arcs)
    roots = [index for index in scored if truth.heads[index] == 0]
    right_root = roots == [index for index in scored if guess.heads[index] == 0] if roots else None
    return SentenceCounts(len(truth.words), len(scored), right_heads, right_arcs, right_root), arcs


def _by_relation(arcs: Counter[_Arc]) -> dict[str, RelationScores]:
    words, predicted, right_heads, right_arcs = Counter[str](), Counter[str](), Counter[str](), Counter[str]()
    for arc, count in arcs.items():
        words[arc.label] += count
        predicted[arc.guessed_label] += count
        if arc.right_head:
            right_heads[arc.label] += count
            right_arcs[arc.label] += count if arc.label == arc.guessed_label else 0
    return {
        label: RelationScores(words[label], right_heads[label], right_arcs[label], predicted[label])
        for label in sorted(words | predicted, key=lambda label: (-words[label], label))
    }


_NOT_COMPARABLE = "the two scores are not comparable"


def summarize(runs: Sequence[Scores]) -> Summary:
    """Mean ± sample standard deviation of UAS and LAS over runs."""
    if not runs:
        raise SubdpError("there is no run to summarize")
    return Summary(spread([run.uas for run in runs]), spread([run.las for run in runs]), len(runs))


def spread(values: Sequence[float]) -> Spread:
    """Mean and sample standard deviation."""
    mean = math.fsum(values) / len(values)
    squares = math.fsum((value - mean) ** 2 for value in values)
    return Spread(mean, math.sqrt(squares / (len(values) - 1)) if len(values) > 1 else None)


def compare(first: Scores, second: Scores, *, samples: int = 10_000, seed: int = 0) -> Comparison:
    """Paired bootstrap over sentences: is `second` better than `first`, or did the test set favour it?

    Each sample draws as many sentences as there are, with replacement, for both systems at once. The interval is what
    the middle 95 % of the samples gain; the p-value is the share of samples whose gain is at least as far from the
    observed gain as that is from zero, counting the observation itself, so it is never 0.
    """
    rules = [(scores.punctuation, scores.labels, scores.max_length) for scores in (first, second)]
    if rules[0] != rules[1]:
        raise SubdpError(_NOT_COMPARABLE, hint="evaluate both on the same gold, by the same rules")
    return compare_counts(first.per_sentence, second.per_sentence, samples=samples, seed=seed)


def compare_counts(
    first: Sequence[SentenceCounts], second: Sequence[SentenceCounts], *, samples: int = 10_000, seed: int = 0
) -> Comparison:
    """`compare`, given the counts of every sentence."""
    import numpy as np

    sizes = [[(one.length, one.words) for one in counts] for counts in (first, second)]
    if sizes[0] != sizes[1]:
        raise SubdpError(_NOT_COMPARABLE, hint="evaluate both on the same gold, by the same rules")
    if samples < 1:
        raise SubdpError(f"cannot draw {samples} samples", hint="give at least 1")
    rows = [
        (b.right_heads - a.right_heads, b.right_arcs - a.right_arcs, a.words)
        for a, b in zip(first, second, strict=True)
    ]
    columns = np.array(rows, dtype=np.int32).T.copy()
    generator = np.random.default_rng(seed)
    gains = np.empty((samples, 2))
    step = max(1, 1_000_000 // len(rows))  # keeps memory flat, whatever the number of sentences and samples
    for start in range(0, samples, step):
        drawn = generator.integers(len(rows), size=(min(step, samples - start), len(rows)))
        heads, arcs, words = (column[drawn].sum(axis=1) for column in columns)
        gains[start : start + step] = 100 * np.stack([heads, arcs], axis=1) / words[:, None]
    observed = 100 * columns[:2].sum(axis=1) / columns[2].sum()
    extreme = np.abs(gains - observed) >= np.abs(observed) - 1e-9
    p_values = (extreme.sum(axis=0) + 1) / (samples + 1)
    low, high = np.percentile(gains, [2.5, 97.5], axis=0)
    uas, las = (Difference(*map(float, row)) for row in zip(observed, low, high, p_values, strict=True))
    return Comparison(uas, las, samples)
