"""How far the source parser may speak for target words that projection left without a head.

Its trustworthiness is measured without gold trees: on words that did get a head by projection, how often does the
source parser, run on the target sentence itself, choose the same one? Relation by relation, for function words and
content words transfer very differently.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from subdp.encoder.batch import UNTRAINED_WORDS, batches
from subdp.network.biaffine import Biaffine
from subdp.training.examples import SoftExamples

_SURE = 0.5  # The least mass on one head for projection to count as having chosen it.
_MOST_PAIRS = 1000  # Some 20,000 words: enough for a share by relation, whatever the size of the bitext.


@dataclass(frozen=True, slots=True, eq=False)
class Agreement:
    """By the relation the source parser chose: words where projection chose a head too, and where it chose the same.

    Shape: words, same [L].
    """

    words: Tensor
    same: Tensor

    @property
    def overall(self) -> float:
        """The share of all words on which both agree."""
        return float(self.same.sum() / self.words.sum().clamp(min=1))

    def trust(self) -> Tensor:
        """How much of a word's missing mass its relation earns it: 2a − 1, or nothing where that is below 0.

        Shape: [L].
        """
        return (2 * self.by_label() - 1).clamp(min=0)

    def by_label(self, prior: float = 50.0) -> Tensor:
        """The share by relation, drawn to the overall one where a relation is rare. Shape: [L]."""
        return (self.same + prior * self.overall) / (self.words + prior)


def with_teacher(examples: SoftExamples, network: Biaffine) -> tuple[SoftExamples, float | None]:
    """The examples with this network as teacher, if their losses ask for completion, and how far it agrees."""
    rule = examples.config.completion
    if rule == "none":
        return examples, None
    agreement = measure_agreement(network, examples)
    trust = torch.ones(len(examples.silver.label_names)) if rule == "source" else agreement.trust()
    trust = trust.to(network.mix.device)
    return replace(examples, teacher=copy.deepcopy(network), trust=trust), agreement.overall


@torch.no_grad()
def measure_agreement(teacher: Biaffine, examples: SoftExamples) -> Agreement:
    """Count how often the teacher's likeliest head is the one that projection chose, on the first examples."""
    count = len(examples.silver.label_names)
    words, same = torch.zeros(count), torch.zeros(count)
    for indices in batches(examples.lengths[:_MOST_PAIRS], UNTRAINED_WORDS, seed=0):
        pairs = [examples.silver[examples.indices[index]] for index in indices]
        own = teacher(examples.features.batch([pair.target for pair in pairs]))
        projected = examples.project(pairs, own.arcs.device)
        mass, head = projected.arcs.max(-1)
        chosen = own.arcs.argmax(-1)
        label = own.labels_at(chosen).argmax(-1)
        sure = own.mask & (mass >= _SURE)
        words += torch.bincount(label[sure].cpu(), minlength=count)
        same += torch.bincount(label[sure & (head == chosen)].cpu(), minlength=count)
    return Agreement(words, same)
