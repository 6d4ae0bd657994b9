"""What the training loop trains on: gold trees, or soft trees projected on the fly from silver."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from subdp.corpus.treebank import UNKNOWN, Sentence
from subdp.encoder.feature_store import FeatureStore
from subdp.network.biaffine import Biaffine
from subdp.projection.silver import Silver, SilverPair
from subdp.support.settings import LossConfig
from subdp.training.losses import Projected, complete, mean_of_sources, project_batch, soft_loss, tree_loss


@dataclass(frozen=True)
class TreeExamples:
    """Sentences with gold or projected trees; a word whose head is unknown gives no loss."""

    features: FeatureStore
    sentences: Sequence[Sentence]
    label_ids: Mapping[str, int]

    @cached_property
    def lengths(self) -> list[int]:
        """The number of words of each sentence."""
        return [len(sentence) for sentence in self.sentences]

    def loss(self, network: Biaffine, indices: Sequence[int], dropout: Sequence[Tensor] = ()) -> Tensor:
        """Cross entropy of heads, and of labels given the gold heads."""
        chosen = [self.sentences[index] for index in indices]
        scored = network(self.features.batch([sentence.words for sentence in chosen]), dropout)
        heads = torch.full(scored.mask.shape, UNKNOWN)
        labels = torch.full(scored.mask.shape, UNKNOWN)
        for row, sentence in enumerate(chosen):
            end = len(sentence) + 1
            heads[row, 1:end] = torch.tensor(sentence.heads)
            ids = [self.label_ids.get(label, UNKNOWN) for label in sentence.universal_labels]
            labels[row, 1:end] = torch.tensor(ids)
        heads, labels = heads.to(scored.arcs.device), labels.to(scored.arcs.device)
        return tree_loss(scored.arcs, scored.labels_at(heads.clamp(min=0)), heads, labels, scored.mask)


@dataclass(frozen=True)
class SoftExamples:
    """Some of the pairs of a silver store, projected when a batch asks for them.

    With a `teacher`, a word's NULL mass goes to that network's own distributions, as far as `trust` [L] says of the
    label that it gives the word.
    """

    features: FeatureStore
    silver: Silver
    indices: Sequence[int]
    config: LossConfig
    teacher: Biaffine | None = None
    trust: Tensor | None = None

    @cached_property
    def lengths(self) -> list[int]:
        """The number of target words of each pair."""
        lengths = [len(words) for words in self.silver.targets()]
        return [lengths[index] for index in self.indices]

    def loss(self, network: Biaffine, indices: Sequence[int], dropout: Sequence[Tensor] = ()) -> Tensor:
        """Partial cross entropy against the projected distributions."""
        pairs = [self.silver[self.indices[index]] for index in indices]
        batch = self.features.batch([pair.target for pair in pairs])
        scored = network(batch, dropout)
        projected = self.project(pairs, scored.arcs.device)
        if self.teacher is not None and self.trust is not None:
            with torch.no_grad():
                own = self.teacher(batch)
                arcs, labels = own.arcs.exp(), own.labels().exp()
                best = labels.gather(2, arcs.argmax(-1)[..., None, None].expand(-1, -1, 1, labels.shape[-1])).squeeze(2)
                projected = complete(projected, arcs, labels, best @ self.trust)
        return soft_loss(scored.arcs, scored.labels(), projected, scored.mask, self.config)

    def project(self, pairs: Sequence[SilverPair], device: torch.device) -> Projected:
        """The projected distributions of a batch, padded; of several sources, their mean. Shape: as `Projected`."""
        every = [one for pair in pairs for one in (pair, *pair.more)]
        projected = self._project(every, device)
        if len(every) == len(pairs):
            return projected
        owner = torch.tensor([row for row, pair in enumerate(pairs) for _ in (pair, *pair.more)], device=device)
        return mean_of_sources(projected, owner, len(pairs))

    def _project(self, pairs: Sequence[SilverPair], device: torch.device) -> Projected:
        count = len(self.silver.label_names)
        source = max(len(pair.source) for pair in pairs) + 1
        target = max(len(pair.target) for pair in pairs) + 1
        arcs = np.zeros((len(pairs), source, source), np.float32)
        labels = np.full((len(pairs), source, source, count), 1 / count, np.float32)
        alignment = np.zeros((len(pairs), source, target), np.float32)
        for row, pair in enumerate(pairs):
            end = len(pair.source) + 1
            arcs[row, :end, :end] = pair.arcs
            labels[row, :end, :end] = pair.labels
            alignment[row, :end, : len(pair.target) + 1] = pair.alignment.matrix(end - 1, len(pair.target))
        tensors = [torch.from_numpy(array).to(device) for array in (arcs, labels, alignment)]
        return project_batch(tensors[0], tensors[1], tensors[2], self.config)
