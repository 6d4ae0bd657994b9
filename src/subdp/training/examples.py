"""What the training loop trains on: gold trees, or soft trees projected on the fly from silver."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate
from typing import Protocol, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from subdp.corpus.layers import has_layer
from subdp.corpus.treebank import UNKNOWN, Sentence, trees_hash
from subdp.encoder.batch import UNTRAINED_WORDS, Batcher, Words, batches
from subdp.encoder.threads import side_by_side
from subdp.network.biaffine import Biaffine
from subdp.network.scorers import Scored
from subdp.projection.silver import Silver, SilverPair
from subdp.projection.substructures import ARCS, LABELS, SUBSTRUCTURES, Inventory, find_substructure, shape
from subdp.support.progress import progress
from subdp.support.settings import LossConfig
from subdp.support.values import as_dict
from subdp.training.forms import LAYERS as TAGGED_BY_FORM
from subdp.training.forms import Forms
from subdp.training.losses import Projected, loss_weights, mean_of_sources, project_batch, tree_loss, weighted_loss
from subdp.training.null_mass import Teacher, add_up, measure, same_heads
from subdp.training.packed import MOST_WORDS, Packed, pack, packed_loss

_Found = TypeVar("_Found")

_TOGETHER = 1000  # Sentences whose tags are worked out at once.
_MEASURED = 10_000  # Words: enough to measure agreement by relation, whatever the size of the bitext.


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

    @property
    def origin(self) -> str:
        """What tells them from others of the same lengths, so that a checkpoint is not taken for another training's."""
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

    @property
    def origin(self) -> str:
        """A hash of the trees."""
        return trees_hash(self.sentences)

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
    """Pairs of silver, projected batch by batch; a `teacher`, if there is one, is mixed in.

    `kept` has what pairs project to, by their numbers, where it has been worked out before; `forms` has what their
    words are tagged as, for the pairs that are not among them. `start` is the fingerprint of the parser that training
    starts from.
    """

    batcher: Batcher
    silver: Silver
    indices: NDArray[np.int64]
    config: LossConfig
    teacher: Teacher | None = None
    kept: Mapping[int, Packed] = field(default_factory=dict, repr=False)
    forms: Forms | None = field(default=None, repr=False)
    start: str = ""

    @cached_property
    def lengths(self) -> list[int]:
        """The number of target words of each pair."""
        lengths = np.fromiter((len(words) for words in self.silver.targets()), np.int32, len(self.silver))
        return lengths[self.indices].tolist()  # type: ignore[no-any-return]

    @property
    def origin(self) -> str:
        """What the silver was made from, what of it is fitted, and where training starts."""
        return json.dumps([self.silver.made_from, as_dict(self.config), self.start], sort_keys=True, default=dict)

    def taught_by(self, network: Biaffine, multilingual: bool = False) -> tuple[SoftExamples, float | None]:
        """The examples with this network as teacher, which may be `multilingual`, and its agreement; unchanged and None
        if `completion` is none.
        """
        if self.config.completion == "none":
            return self, None
        agreements = add_up(self._of_first(network, measure))
        labels = self.silver.inventory[LABELS.name]
        teacher = Teacher.of(network, self.batcher, labels, self.config, agreements, multilingual)
        return replace(self, teacher=teacher), agreements[ARCS.name].overall

    def agreeing(self, network: Biaffine) -> Tensor:
        """For each word for which projection chose a head, whether it is the network's likeliest head. Shape: [K]."""
        return torch.cat(self._of_first(network, same_heads))

    def worked_out(self, device: torch.device) -> SoftExamples:
        """The same examples with what they are to be fitted to worked out, as far as there is room for it.

        Always in the same batches, so that a training that is resumed has the same weights as one that was not.
        """
        if self.config.label_weight == "none":  # All pairs of words have labels to fit: too many to keep.
            return self
        enough = _first(self.lengths, MOST_WORDS)
        kept: dict[int, Packed] = {}
        with progress("projecting", sum(self.lengths[:enough]), "words") as advance:

            def work(indices: list[int]) -> None:
                kept.update(self._packed(self.indices[indices].tolist(), device))
                advance(sum(self.lengths[index] for index in indices))

            side_by_side(work, batches(self.lengths[:enough], UNTRAINED_WORDS, seed=0), device)
        done = replace(self, kept=kept)
        layers = {name: len(values) for name, values in self.silver.inventory.items() if name in TAGGED_BY_FORM}
        if not layers or not self.config.tags_by_form:
            return done
        numbers = sorted(kept)  # Threads fill it in any order, and sums depend on theirs.
        forms = Forms.of([kept[number] for number in numbers], layers, self.config.tags_by_form)
        for start in range(0, len(numbers), _TOGETHER):
            some = numbers[start : start + _TOGETHER]
            kept.update(zip(some, forms.shared([kept[number] for number in some]), strict=True))
        return replace(done, forms=forms if enough < len(self.lengths) else None)

    def loss(self, network: Biaffine, indices: Sequence[int], dropout: Sequence[Tensor] = ()) -> Tensor:
        """Partial cross entropy against the projected distributions."""
        numbers = self.indices[indices].tolist()
        if self.config.label_weight == "none":
            weights, words = self._weights(numbers, network.device)
            return weighted_loss(network(self.batcher(words), dropout), weights)
        missing = [number for number in numbers if number not in self.kept]
        new = self._packed(missing, network.device) if missing else {}
        sentences = [new[number] if number in new else self.kept[number] for number in numbers]
        return packed_loss(network(self.batcher([sentence.words for sentence in sentences]), dropout), sentences)

    def _packed(self, numbers: Sequence[int], device: torch.device) -> dict[int, Packed]:
        packed = pack(*self._weights(numbers, device))
        return dict(zip(numbers, packed if self.forms is None else self.forms.shared(packed), strict=True))

    @torch.no_grad()
    def _weights(self, numbers: Sequence[int], device: torch.device) -> tuple[dict[str, Tensor], list[Words]]:
        """What the log probabilities of these pairs' target sentences count in the loss, and the sentences."""
        pairs = [self.silver[number] for number in numbers]
        words: list[Words] = [pair.target for pair in pairs]
        projected = self._project(pairs, device)
        if self.teacher is not None:
            projected = self.teacher.complete(projected, self.teacher.batcher(words))
        lengths = torch.tensor([len(sentence) for sentence in words], device=device)[:, None]
        positions = torch.arange(projected.arcs.shape[1], device=device)
        return loss_weights(projected, (positions > 0) & (positions <= lengths), self.config), words

    def _of_first(self, network: Biaffine, what: Callable[[Scored, Projected], _Found]) -> list[_Found]:
        """What a function makes of a network's scores of the first examples and of the distributions projected onto
        them, but for labels, batch by batch.
        """
        parts = list(batches(self.lengths[: _first(self.lengths, _MEASURED)], UNTRAINED_WORDS, seed=0))
        found: dict[int, _Found] = {}

        @torch.no_grad()
        def work(number: int) -> None:
            pairs = [self.silver[index] for index in self.indices[parts[number]].tolist()]
            own = network(self.batcher([pair.target for pair in pairs]))
            found[number] = what(own, self._project(pairs, own.mask.device, labels=False))

        side_by_side(work, range(len(parts)), network.device)
        return [found[number] for number in range(len(parts))]

    def _project(self, pairs: Sequence[SilverPair], device: torch.device, *, labels: bool = True) -> Projected:
        """The projected distributions of a batch, padded; the mean where there are several sources."""
        every = [one for pair in pairs for one in (pair, *pair.more)]
        wanted = {name: values for name, values in self.silver.inventory.items() if labels or name != LABELS.name}
        source, alignment = _padded(every, wanted)
        tensors = {name: torch.from_numpy(array).to(device) for name, array in source.items()}
        projected = project_batch(tensors, torch.from_numpy(alignment).to(device), self.config)
        if len(every) == len(pairs):
            return projected
        owner = torch.tensor([row for row, pair in enumerate(pairs) for _ in (pair, *pair.more)], device=device)
        return mean_of_sources(projected, owner, len(pairs))


@dataclass(frozen=True)
class TaughtExamples:
    """Sentences with what a teacher predicts of them: SubDP with the identity as alignment."""

    batcher: Batcher
    sentences: Sequence[Packed]
    origin: str
    """The teacher's fingerprint, or a hash of it and of all that it taught."""

    @cached_property
    def lengths(self) -> list[int]:
        """The number of words of each sentence."""
        return [len(sentence.words) for sentence in self.sentences]

    def loss(self, network: Biaffine, indices: Sequence[int], dropout: Sequence[Tensor] = ()) -> Tensor:
        """Cross entropy against the teacher's distributions; labels count as much as their arcs."""
        chosen = [self.sentences[index] for index in indices]
        return packed_loss(network(self.batcher([sentence.words for sentence in chosen]), dropout), chosen)


def _first(lengths: Sequence[int], words: int) -> int:
    """How many of the first sentences have this many words together, or fewer; at least one."""
    return max(1, bisect_right(list(accumulate(lengths)), words))


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
