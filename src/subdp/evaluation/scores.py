"""The results of an evaluation: the scores of one system, their spread over runs, the difference of two systems.

`subdp.evaluate` makes them; they print as one line and turn into JSON with `as_dict`. Standard library only.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal, NamedTuple

from subdp.drawing.notebook import table
from subdp.support.errors import counted

Punctuation = Literal["upos", "deprel", "form", "none"]
Labels = Literal["universal", "full"]

LENGTH_BINS = ((1, 10), (11, 20), (21, 30), (31, 40), (41, 50), (51, None))
"""Sentence lengths, in words with punctuation, that `Scores.by_length` reports together."""


def _title(layer: str) -> str:
    return layer.upper() if layer in ("upos", "xpos") else layer


def _percent(part: int, whole: int) -> float:
    return 100.0 * part / whole if whole else 0.0


@dataclass(frozen=True, slots=True)
class Attachment:
    """Counts over scored words: all, those with the right head, and those with the right head and label.

    Every score here and below is in percent, and 0 where there is nothing to count.
    """

    words: int
    right_heads: int
    right_arcs: int

    @property
    def uas(self) -> float:
        """Words with the right head."""
        return _percent(self.right_heads, self.words)

    @property
    def las(self) -> float:
        """Words with the right head and label."""
        return _percent(self.right_arcs, self.words)

    @property
    def label_accuracy(self) -> float:
        """Words with the right label, among those with the right head."""
        return _percent(self.right_arcs, self.right_heads)

    def as_dict(self) -> dict[str, Any]:
        """The scores as plain values, ready for JSON."""
        return {"uas": self.uas, "las": self.las, "label_accuracy": self.label_accuracy, "words": self.words}


@dataclass(frozen=True, slots=True)
class RelationScores(Attachment):
    """The words that have one relation in the gold standard; `predicted` words have it in the system."""

    predicted: int

    @property
    def precision(self) -> float:
        """Of the words given this relation, those that have it, and the right head."""
        return _percent(self.right_arcs, self.predicted)

    @property
    def recall(self) -> float:
        """Of the words that have this relation, those given it, and the right head: the relation's LAS."""
        return self.las

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall."""
        return _percent(2 * self.right_arcs, self.words + self.predicted)

    def as_dict(self) -> dict[str, Any]:
        more = {"predicted": self.predicted, "precision": self.precision, "recall": self.recall, "f1": self.f1}
        return Attachment.as_dict(self) | more


@dataclass(frozen=True, slots=True)
class LengthScores(Attachment):
    """The words of the sentences of one range of lengths."""

    sentences: int

    def as_dict(self) -> dict[str, Any]:
        return Attachment.as_dict(self) | {"sentences": self.sentences}


@dataclass(frozen=True, slots=True)
class LayerScores:
    """How many words have the right value of a layer, such as UPOS, of those that the gold standard annotates."""

    words: int
    right: int

    @property
    def accuracy(self) -> float:
        """Words with the right value, in percent."""
        return _percent(self.right, self.words)

    def as_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {"accuracy": self.accuracy, "words": self.words}


class SentenceCounts(NamedTuple):
    """One sentence, as the bootstrap needs it. `right_root` is None where the gold standard has no scored root."""

    length: int
    words: int
    right_heads: int
    right_arcs: int
    right_root: bool | None


@dataclass(frozen=True, slots=True)
class Scores(Attachment):
    """What `evaluate` found, under which rules, and how much those rules left out."""

    punctuation: Punctuation
    labels: Labels
    max_length: int | None
    by_relation: dict[str, RelationScores]
    """By relation, the most frequent in the gold standard first; the last ones may occur in the system only."""
    per_sentence: tuple[SentenceCounts, ...]
    """The sentences with at least one scored word, in order."""
    punctuation_words: int
    """Words left out by the punctuation rule."""
    unknown_words: int
    """Words left out because the gold standard does not know their head."""
    long_sentences: int
    """Sentences left out for having more than `max_length` words."""
    empty_sentences: int
    """Sentences left out because none of their words is scored."""
    untagged_words: int
    """Words without UPOS that the punctuation rule `upos` had to take for words, and so are scored."""
    layers: dict[str, LayerScores]
    """The layers that both sides have, by name, over all words, punctuation included."""

    @property
    def upos(self) -> float | None:
        """UPOS accuracy over all words, in percent; None where one side has no tags."""
        return self.layers["upos"].accuracy if "upos" in self.layers else None

    @property
    def sentences(self) -> int:
        """Sentences with at least one scored word."""
        return len(self.per_sentence)

    @property
    def exact_match(self) -> float:
        """Sentences in which every scored word has the right head and label."""
        return _percent(sum(counts.right_arcs == counts.words for counts in self.per_sentence), self.sentences)

    @property
    def unlabelled_exact_match(self) -> float:
        """Sentences in which every scored word has the right head."""
        return _percent(sum(counts.right_heads == counts.words for counts in self.per_sentence), self.sentences)

    @property
    def root_accuracy(self) -> float:
        """Sentences whose scored words below ROOT are exactly the right ones, among those that have any."""
        rooted = [counts.right_root for counts in self.per_sentence if counts.right_root is not None]
        return _percent(sum(rooted), len(rooted))

    @property
    def by_length(self) -> dict[str, LengthScores]:
        """Scores by sentence length, in the ranges of `LENGTH_BINS` that occur."""
        result = {}
        for low, high in LENGTH_BINS:
            inside = [one for one in self.per_sentence if low <= one.length and (high is None or one.length <= high)]
            if inside:
                _, words, heads, arcs, _ = zip(*inside, strict=True)
                name = f"{low}+" if high is None else f"{low}-{high}"
                result[name] = LengthScores(sum(words), sum(heads), sum(arcs), len(inside))
        return result

    def as_dict(self) -> dict[str, Any]:
        """Everything but the counts of single sentences as plain values, ready for JSON."""
        return Attachment.as_dict(self) | {
            "upos": self.upos,
            "layers": {name: scores.as_dict() for name, scores in self.layers.items()},
            "exact_match": self.exact_match,
            "unlabelled_exact_match": self.unlabelled_exact_match,
            "root_accuracy": self.root_accuracy,
            "sentences": self.sentences,
            "punctuation": self.punctuation,
            "labels": self.labels,
            "max_length": self.max_length,
            "punctuation_words": self.punctuation_words,
            "unknown_words": self.unknown_words,
            "long_sentences": self.long_sentences,
            "empty_sentences": self.empty_sentences,
            "untagged_words": self.untagged_words,
            "by_relation": {relation: scores.as_dict() for relation, scores in self.by_relation.items()},
            "by_length": {name: scores.as_dict() for name, scores in self.by_length.items()},
        }

    @property
    def brief(self) -> str:
        """UAS, LAS and the accuracy of layers, for a model card."""
        tags = "".join(f", {_title(name)} {scores.accuracy:.1f}" for name, scores in self.layers.items())
        return f"UAS {self.uas:.1f}, LAS {self.las:.1f}{tags}"

    def __repr__(self) -> str:
        return f"<Scores: {str(self).partition('  (')[0]}>"

    def _repr_html_(self) -> str:
        rows = (
            (relation, f"{found.words:,}", f"{found.uas:.1f}", f"{found.las:.1f}", f"{found.f1:.1f}")
            for relation, found in self.by_relation.items()
        )
        return table(rows, head=("relation", "words", "UAS", "LAS", "F1"), title=str(self))

    def __str__(self) -> str:
        remarks = {
            f"{self.punctuation_words:,} punctuation left out": self.punctuation_words,
            f"{self.unknown_words:,} without gold head left out": self.unknown_words,
            f"{counted(self.long_sentences, 'sentence')} over {self.max_length} words left out": self.long_sentences,
            f"{counted(self.empty_sentences, 'sentence')} with nothing to score left out": self.empty_sentences,
            f"{counted(self.untagged_words, 'word')} without UPOS scored": self.untagged_words,
        }
        tags = "".join(f"  {_title(name)} {scores.accuracy:.1f}" for name, scores in self.layers.items())
        notes = "".join(f"; {remark}" for remark, count in remarks.items() if count)
        return (
            f"UAS {self.uas:.1f}  LAS {self.las:.1f}{tags}  label accuracy {self.label_accuracy:.1f}"
            f"  exact match {self.exact_match:.1f}  root {self.root_accuracy:.1f}"
            f"  ({counted(self.words, 'word')}, {counted(self.sentences, 'sentence')}{notes})"
        )


@dataclass(frozen=True, slots=True)
class Spread:
    """Mean and sample standard deviation over runs; of a single run, the deviation is unknown (None)."""

    mean: float
    std: float | None

    def __str__(self) -> str:
        return f"{self.mean:.1f}" if self.std is None else f"{self.mean:.1f} ± {self.std:.1f}"


@dataclass(frozen=True, slots=True)
class Summary:
    """The scores of several runs, such as several seeds."""

    uas: Spread
    las: Spread
    runs: int

    def as_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        return f"UAS {self.uas}  LAS {self.las}  ({self.runs} run{'s' if self.runs > 1 else ''})"


@dataclass(frozen=True, slots=True)
class Difference:
    """What the second system gains over the first, with its 95 % interval and two-sided p-value."""

    gain: float
    low: float
    high: float
    p_value: float

    def __str__(self) -> str:
        return f"{self.gain:+.1f} [{self.low:+.1f}, {self.high:+.1f}] p = {self.p_value:.2g}"


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two systems on one gold standard."""

    uas: Difference
    las: Difference
    samples: int

    def as_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        return f"UAS {self.uas}  LAS {self.las}  ({self.samples:,} samples)"
