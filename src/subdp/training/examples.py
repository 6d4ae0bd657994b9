"""What the training loop trains on: gold trees, or soft trees projected on the fly from silver."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from subdp.corpus.layers import has_layer
from subdp.corpus.treebank import UNKNOWN, Sentence
from subdp.encoder.batch import UNTRAINED_WORDS, Batcher, batches
from subdp.network.biaffine import Biaffine
from subdp.network.scorers import Scored
from subdp.projection.silver import Silver, SilverPair
from subdp.projection.substructures import ARCS, LABELS, SUBSTRUCTURES, Inventory, find_substructure, shape
from subdp.support.settings import LossConfig
from subdp.training.losses import Projected, mean_of_sources, project_batch, soft_loss, tree_loss
from subdp.training.null_mass import Teacher, measure

_GOLD_SHARE = 0.25
_MOST_REPEATS = 20
_MOST_PAIRS = 1000  # Some 20,000 words: enough to measure agreement by relation, whatever the size of the bitext.


class Examples(Protocol):
    """Training data: sentences of known lengths, and the loss of any batch of them.

    The batcher turns words into vectors. If it is a module with parameters of its own, they are trained too.
    """

    @property
    def batcher(self) -> Batcher: ...

    @property
    def lengths(self) -> Sequence[int]:
        """The number of words of each."""
        ...

    def loss(self, network: Biaffine, indices: Sequence[int], dropout: Sequence[Tensor] = ()) -> Tensor:
        """The loss of the examples with these indices, summed over words; in training, with dropout masks."""
        ...


@dataclass(frozen=True)
class TreeExamples:
    """Annotated sentences; a head, label or tag that is unknown or not in the inventory adds no loss."""

    batcher: Batcher
    sentences: Sequence[Sentence]
    inventory: Inventory

    @cached_property
    def lengths(self) -> list[int]:
        """The number of words of each sentence."""
        return [len(sentence) for sentence in self.sentences]

    @cached_property
    def _gold(self) -> dict[str, list[Sequence[int]]]:
        """What every sentence has, by substructure: heads, and the numbers of values."""
        found: dict[str, list[Sequence[int]]] = {ARCS.name: [sentence.heads for sentence in self.sentences]}
        for name, values in self.inventory.items():
            if name not in SUBSTRUCTURES and not has_layer(self.sentences, name):
                found[name] = [[UNKNOWN] * len(one) for one in self.sentences]  # Nobody annotated it: no loss.
            elif name != ARCS.name:
                read, numbers = find_substructure(name).read, {value: at for at, value in enumerate(values)}
                found[name] = [[numbers.get(value, UNKNOWN) for value in read(one)] for one in self.sentences]
        return found

    def loss(self, network: Biaffine, indices: Sequence[int], dropout: Sequence[Tensor] = ()) -> Tensor:
        """Cross entropy of heads, of labels given the gold heads, and of tags."""
        chosen = [self.sentences[index] for index in indices]
        scored = network(self.batcher([sentence.words for sentence in chosen]), dropout)
        gold = {name: torch.full(scored.mask.shape, UNKNOWN) for name in self.inventory}
        for row, index in enumerate(indices):
            for name, values in gold.items():
                values[row, 1 : self.lengths[index] + 1] = torch.tensor(self._gold[name][index])
        return tree_loss(scored, {name: values.to(scored.mask.device) for name, values in gold.items()})


@dataclass(frozen=True)
class SoftExamples:
    """Pairs of silver, projected batch by batch; a `teacher`, if there is one, is mixed in."""

    batcher: Batcher
    silver: Silver
    indices: Sequence[int]
    config: LossConfig
    teacher: Teacher | None = None

    @cached_property
    def lengths(self) -> list[int]:
        """The number of target words of each pair."""
        lengths = [len(words) for words in self.silver.targets()]
        return [lengths[index] for index in self.indices]

    def taught_by(self, network: Biaffine) -> tuple[SoftExamples, float | None]:
        """The examples with this network as teacher, and its agreement; unchanged and None if `completion` is none."""
        if self.config.completion == "none":
            return self, None
        agreements = measure(self._first(network))
        labels = self.silver.inventory[LABELS.name]
        teacher = Teacher.of(network, self.batcher, labels, self.config, agreements)
        return replace(self, teacher=teacher), agreements[ARCS.name].overall

    def loss(self, network: Biaffine, indices: Sequence[int], dropout: Sequence[Tensor] = ()) -> Tensor:
        """Partial cross entropy against the projected distributions."""
        pairs = [self.silver[self.indices[index]] for index in indices]
        targets = [pair.target for pair in pairs]
        batch = self.batcher(targets)
        scored = network(batch, dropout)
        projected = self._project(pairs, scored.mask.device)
        if self.teacher is not None:
            own = batch if self.teacher.batcher == self.batcher else self.teacher.batcher(targets)
            projected = self.teacher.complete(projected, own)
        return soft_loss(scored, projected, self.config)

    def _first(self, network: Biaffine) -> Iterator[tuple[Scored, Projected]]:
        """A network's scores of the first examples, with the distributions projected onto them."""
        for indices in batches(self.lengths[:_MOST_PAIRS], UNTRAINED_WORDS, seed=0):
            pairs = [self.silver[self.indices[index]] for index in indices]
            own = network(self.batcher([pair.target for pair in pairs]))
            yield own, self._project(pairs, own.mask.device)

    def _project(self, pairs: Sequence[SilverPair], device: torch.device) -> Projected:
        """The projected distributions of a batch, padded; the mean where there are several sources."""
        every = [one for pair in pairs for one in (pair, *pair.more)]
        source, alignment = _padded(every, self.silver.inventory)
        tensors = {name: torch.from_numpy(array).to(device) for name, array in source.items()}
        projected = project_batch(tensors, torch.from_numpy(alignment).to(device), self.config)
        if len(every) == len(pairs):
            return projected
        owner = torch.tensor([row for row, pair in enumerate(pairs) for _ in (pair, *pair.more)], device=device)
        return mean_of_sources(projected, owner, len(pairs))


@dataclass(frozen=True)
class MixedExamples:
    """Silver and gold trees of the same language, trained on together.

    A few trees among thousands of pairs would hardly be heard, so each is seen several times an epoch: until trees are
    a quarter of the words, but no tree more than 20 times, because a handful of sentences repeated more often are
    learnt by heart.
    """

    silver: SoftExamples
    trees: TreeExamples

    @property
    def batcher(self) -> Batcher:
        """The silver's, which is the trees' too."""
        return self.silver.batcher

    @cached_property
    def repeats(self) -> int:
        """How often each tree is seen in an epoch."""
        enough = _GOLD_SHARE / (1 - _GOLD_SHARE) * sum(self.silver.lengths) / max(1, sum(self.trees.lengths))
        return max(1, min(_MOST_REPEATS, round(enough)))

    @cached_property
    def lengths(self) -> list[int]:
        """The number of words of each example, the silver's first."""
        return [*self.silver.lengths, *self.trees.lengths * self.repeats]

    def loss(self, network: Biaffine, indices: Sequence[int], dropout: Sequence[Tensor] = ()) -> Tensor:
        """The sum of both losses; a batch may hold examples of both kinds."""
        pairs = len(self.silver.lengths)
        total = torch.zeros((), device=network.device)
        for gold, examples in ((False, self.silver), (True, self.trees)):
            rows = [row for row, index in enumerate(indices) if (index >= pairs) == gold]
            if rows:
                chosen = [(indices[row] - pairs) % len(self.trees.lengths) if gold else indices[row] for row in rows]
                total = total + examples.loss(network, chosen, [mask[rows] for mask in dropout])
        return total


Floats = np.ndarray[tuple[int, ...], np.dtype[np.float32]]


def _padded(pairs: Sequence[SilverPair], inventory: Inventory) -> tuple[Mapping[str, Floats], Floats]:
    """Source distributions and alignments of several pairs, padded: labels with 1/L, everything else with 0.

    Shape: each distribution [B, …] as `projection/substructures.py` has it for the longest source; [B, S+1, T+1].
    """
    source, target = (max(len(getattr(pair, side)) for pair in pairs) for side in ("source", "target"))
    distributions: dict[str, Floats] = {}
    for name, values in inventory.items():
        kind, count = find_substructure(name).kind, len(values)
        empty = 1 / count if kind == "pair" else 0.0
        padded = np.full((len(pairs), *shape(kind, source, count)), empty, np.float32)
        for row, pair in enumerate(pairs):
            size = len(pair.source) + 1
            if kind == "word":
                padded[row, :size] = pair.distributions[name]
            else:
                padded[row, :size, :size] = pair.distributions[name]
        distributions[name] = padded
    alignment = np.zeros((len(pairs), source + 1, target + 1), np.float32)
    for row, pair in enumerate(pairs):
        matrix = pair.alignment.matrix(len(pair.source), len(pair.target))
        alignment[row, : matrix.shape[0], : matrix.shape[1]] = matrix
    return distributions, alignment
