"""Soft trees: for every word a distribution over heads, for every pair of words one over labels, possibly more.

A parser's output on a sentence is a soft tree; so is its projection onto the translation, where a row may sum to less
than 1 (the rest went to NULL). Numpy only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from subdp.alignment.links import Alignment
from subdp.corpus.treebank import UNKNOWN, Sentence
from subdp.decoding.decode import decode
from subdp.drawing.arcs import Arc
from subdp.drawing.notebook import outline, scrolled
from subdp.drawing.svg import render_svg
from subdp.projection.operators import head_links, project_hard, target_to_source
from subdp.projection.substructures import ARCS, LABELS, Inventory, carry, find_substructure, shape
from subdp.support.errors import SubdpError, counted
from subdp.support.settings import ManyToOne

Floats = npt.NDArray[np.floating]
_TOLERANCE = 1e-3  # for rows that sum to 1 in half precision
_WORTH_DRAWING = 0.05  # an arc less probable than this would only fill the picture


@dataclass(frozen=True, slots=True)
class Head:
    """One possible head of a word: its index (0 is ROOT), its form, the likeliest label and the arc's probability."""

    head: int
    word: str
    label: str
    probability: float


@dataclass(frozen=True, slots=True, eq=False)
class SoftTree:
    """Distributions over the words of one sentence, by substructure: arcs, labels, whatever else is predicted.

    Shape: as in `projection/substructures.py`: arcs [T+1, T+1] and labels [T+1, T+1, L], dependent by head with ROOT 0.
    Row 0 of arcs is zero because ROOT has no head. `inventory` names the values. `linked` says whether each word has an
    alignment link; in a parser's own tree all are True.
    """

    words: tuple[str, ...]
    distributions: Mapping[str, Floats]
    inventory: Inventory
    linked: tuple[bool, ...]

    def __post_init__(self) -> None:
        if len(self.linked) != len(self.words):
            raise SubdpError(f"{len(self.words)} words but {len(self.linked)} values of linked", where="<soft tree>")
        if set(self.distributions) != set(self.inventory) or not {ARCS.name, LABELS.name} <= set(self.inventory):
            raise SubdpError("arcs, labels and all else in the inventory need a distribution", where="<soft tree>")
        for name, values in self.inventory.items():
            _check(name, self.distributions[name], len(self.words), len(values))

    @property
    def arcs(self) -> Floats:
        """P(head | dependent). Shape: [T+1, T+1], ROOT 0."""
        return self.distributions[ARCS.name]

    @property
    def labels(self) -> Floats:
        """P(label | head → dependent). Shape: [T+1, T+1, L], ROOT 0."""
        return self.distributions[LABELS.name]

    @property
    def label_names(self) -> tuple[str, ...]:
        """The labels in the order of the last axis of `labels`."""
        return self.inventory[LABELS.name]

    @classmethod
    def of(
        cls, sentence: Sentence, label_names: Sequence[str] | None = None, *, more: Inventory | None = None
    ) -> SoftTree:
        """A discrete tree as a soft one: all mass on its arcs; labels of pairs that are not arcs are uniform.

        A word with an unknown head has an empty row, one with an unknown label a uniform one. A label that is not among
        `label_names` loses its subtype: `nsubj:pass` becomes `nsubj`. `more` has the values of other substructures.
        """
        own = dict.fromkeys(label for label in sentence.labels if label != "_")
        names = tuple(own or ("_",)) if label_names is None else tuple(label_names)
        index = {name: number for number, name in enumerate(names)}
        size, count = len(sentence) + 1, len(names)
        arcs = np.zeros((size, size))
        labels = np.full((size, size, count), 1 / count)
        for word, (head, label) in enumerate(zip(sentence.heads, sentence.labels, strict=True), 1):
            if head == UNKNOWN:
                continue
            arcs[word, head] = 1
            if label != "_":
                number = index.get(label, index.get(label.partition(":")[0]))
                if number is None:
                    raise SubdpError(f"label {label!r} is not among {', '.join(names)}", where="<soft tree>")
                labels[word, head] = 0
                labels[word, head, number] = 1
        distributions = {ARCS.name: arcs, LABELS.name: labels}
        for name, values in (more or {}).items():
            distributions[name] = np.array(
                [[0.0] * len(values), *([float(own == value) for value in values] for own in _values(name, sentence))]
            )
        inventory = {ARCS.name: (), LABELS.name: names, **(more or {})}
        return cls(sentence.words, distributions, inventory, (True,) * len(sentence))

    def __len__(self) -> int:
        return len(self.words)

    def __repr__(self) -> str:
        size, kept = counted(len(self), "word"), self.coverage.mean()
        return f"<SoftTree of {size}, {kept:.0%} of the mass kept: {outline(self.words)}>"

    def _repr_svg_(self) -> str:
        arcs = [
            Arc(word, found.head, found.label, min(found.probability, 1.0))
            for word in range(1, len(self) + 1)
            for found in self.heads_of(word)
            if found.probability >= _WORTH_DRAWING
        ]
        return render_svg(self.words, arcs)

    def _repr_html_(self) -> str:
        return scrolled(self._repr_svg_())

    def heads_of(self, word: int) -> list[Head]:
        """The heads of a word (from 1) with probability above 0, likeliest first."""
        if not 1 <= word <= len(self):
            raise SubdpError(f"there is no word {word} in a sentence of {len(self)}", hint="words count from 1")
        row = self.arcs[word]
        heads = sorted(np.nonzero(row)[0].tolist(), key=lambda head: -row[head])
        forms = ("ROOT", *self.words)
        best = self.labels[word].argmax(axis=-1)
        return [Head(head, forms[head], self.label_names[best[head]], float(row[head])) for head in heads]

    @property
    def coverage(self) -> Floats:
        """α: the share of each word's mass that was kept; the rest went to NULL.

        Shape: [T].
        """
        result: Floats = self.arcs[1:].sum(axis=-1)
        return result

    @property
    def entropy(self) -> Floats:
        """The entropy, in bits, of each word's head among the mass that was kept; 0 where none was.

        Shape: [T].
        """
        kept = self.coverage[:, None]
        share = np.divide(self.arcs[1:], kept, out=np.zeros_like(self.arcs[1:]), where=kept > 0)
        logs = np.log2(share, out=np.zeros_like(share), where=share > 0)
        result: Floats = np.abs((share * logs).sum(axis=-1))
        return result

    @property
    def self_loop_mass(self) -> float:
        """How much mass, summed over words, lies on arcs from a word to itself."""
        return float(np.trace(self.arcs))

    @property
    def unaligned(self) -> tuple[int, ...]:
        """The words (from 1) that had no alignment link."""
        return tuple(word for word, linked in enumerate(self.linked, 1) if not linked)

    def best_tree(self) -> Sentence:
        """The likeliest tree; a word whose mass is all lost gets an arbitrary head that makes it a tree."""
        scores = np.log(self.arcs, out=np.full_like(self.arcs, -np.inf), where=self.arcs > 0)
        heads = decode(scores)
        best = self.labels.argmax(axis=-1)
        labels = [self.label_names[best[word, head]] for word, head in enumerate(heads, 1)]
        return Sentence.of(self.words, heads=heads, labels=labels)


def project(
    source: Sentence | SoftTree, alignment: Alignment, *, onto: Sequence[str], many_to_one: ManyToOne = "mean"
) -> SoftTree:
    """Carry a tree, discrete or soft, through a word alignment onto the words of the translation.

    A word with links to several source words stands for all of them alike (`mean`, as in the paper), or for the one
    that is the `head` of the others, as training has it by default.

    >>> english = Sentence.of("I slept".split(), heads=[2, 0], labels=["nsubj", "root"])
    >>> project(english, Alignment.parse("0-0 1-1"), onto="Ich schlief".split()).heads_of(1)
    [Head(head=2, word='schlief', label='nsubj', probability=1.0)]
    """
    tree = SoftTree.of(source) if isinstance(source, Sentence) else source
    matrix = _matrix(tree.words, alignment, onto)
    null = target_to_source(matrix)[1:, -1]
    if many_to_one == "head":
        matrix = head_links(matrix, tree.arcs)
    carried = {
        name: carry(find_substructure(name).kind, distribution, matrix)
        for name, distribution in tree.distributions.items()
    }
    return SoftTree(tuple(onto), carried, tree.inventory, tuple((null == 0).tolist()))


def project_tree(source: Sentence, alignment: Alignment, *, onto: Sequence[str]) -> Sentence:
    """Hard projection of a discrete tree: a partial tree, with unknown heads where a word has no one-to-one link.

    Where the source has several roots, so may the target.
    """
    arcs = SoftTree.of(source).arcs
    matrix = _matrix(source.words, alignment, onto)
    projected = project_hard(arcs, matrix)[1:]
    label_of = dict(alignment.one_to_one().transpose().links)
    heads = [int(row.argmax()) if row.any() else UNKNOWN for row in projected]
    labels = [source.labels[label_of[word]] if head != UNKNOWN else "_" for word, head in enumerate(heads)]
    return Sentence.of(onto, heads=heads, labels=labels, any_roots=True)


def _check(name: str, distribution: Floats, words: int, values: int) -> None:
    """Raise unless an array is a distribution of this substructure."""
    kind = find_substructure(name).kind
    if distribution.shape != (wanted := shape(kind, words, values)):
        raise SubdpError(f"{name} have shape {distribution.shape}, not {wanted}", where="<soft tree>")
    sums = distribution.sum(axis=-1)
    if kind == "pair":
        if not (distribution.min() >= 0 and np.abs(sums - 1).max() <= _TOLERANCE):
            raise SubdpError(f"the {name} of a pair are not a distribution", where="<soft tree>")
        return
    if not (distribution.min(initial=0) >= 0 and sums.max() <= 1 + _TOLERANCE):
        raise SubdpError(f"a row of {name} is not a distribution or part of one", where="<soft tree>")
    if distribution[0].any():
        has = "a head" if kind == "head" else name
        raise SubdpError(f"ROOT has {has}", where="<soft tree>", hint=f"row 0 of {name} must be zero")


def _values(name: str, sentence: Sentence) -> Sequence[str]:
    return find_substructure(name).read(sentence)


def _matrix(words: Sequence[str], alignment: Alignment, onto: Sequence[str]) -> npt.NDArray[np.float64]:
    if isinstance(onto, str):
        raise TypeError(f'onto is one string; give a list of words, for example "{onto}".split()')
    return alignment.matrix(len(words), len(onto))
