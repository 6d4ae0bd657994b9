"""What becomes of NULL mass: what projection lost because a word, or its head, has no link.

The paper gives it to nobody: no loss. Here the source parser, run on the target sentence itself, may speak for those
words (`completion`), as far as it can be trusted. That is measured without gold trees: on words where projection did
choose a value, how often does the source parser choose the same one? For arcs by the relation that it gives the word,
since function words and content words transfer very differently; for tags by the tag itself.

Measuring is `measure`, the rule is `Agreement.trust`, the use is `complete`.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from subdp.encoder.batch import Batch, Batcher
from subdp.network.biaffine import Biaffine
from subdp.network.scorers import Scored
from subdp.support.settings import Completion
from subdp.training.losses import Projected

_SURE = 0.5  # The least mass on one value for projection to count as having chosen it.
_PRIOR = 50.0  # Words that a relation is taken to have had with the overall share before any were counted.


@dataclass(frozen=True, slots=True, eq=False)
class Agreement:
    """Words for which projection chose a value, and those where the source parser chose the same, by its choice.

    For arcs by the relation that the source parser gives the word, for tags by the tag. Shape: words, same [K].
    """

    words: Tensor
    same: Tensor

    @property
    def overall(self) -> float:
        """The share of all words on which both agree."""
        return float(self.same.sum() / self.words.sum().clamp(min=1))

    def by_value(self) -> Tensor:
        """The share by relation or tag, drawn to the overall one where it is rare. Shape: [K]."""
        return (self.same + _PRIOR * self.overall) / (self.words + _PRIOR)

    def trust(self) -> Tensor:
        """How much of a word's missing mass its relation or tag earns it: 2a − 1, or nothing where that is below 0.

        Shape: [K].
        """
        return (2 * self.by_value() - 1).clamp(min=0)


@dataclass(frozen=True, slots=True, eq=False)
class Teacher:
    """The source parser as it was, with the share of NULL mass that it is given, by substructure.

    Shape: trust [K], over relations for arcs, over tags for tags.
    """

    network: Biaffine
    batcher: Batcher
    trust: Mapping[str, Tensor]

    @classmethod
    def of(cls, network: Biaffine, batcher: Batcher, rule: Completion, agreements: Mapping[str, Agreement]) -> Teacher:
        """A copy of a network, trusted in full (`source`) or as far as it agrees with the projection (`auto`)."""
        trust = {
            name: torch.ones_like(agreement.words) if rule == "source" else agreement.trust()
            for name, agreement in agreements.items()
        }
        return cls(copy.deepcopy(network), batcher, {name: values.to(network.device) for name, values in trust.items()})

    @torch.no_grad()
    def complete(self, projected: Projected, batch: Batch) -> Projected:
        """Projected distributions with what the teacher says of the same sentences in place of NULL mass."""
        return complete(projected, self.network(batch), self.trust)


def complete(projected: Projected, own: Scored, trust: Mapping[str, Tensor]) -> Projected:
    """Give a word's NULL mass to another parser's distributions, as far as that parser is trusted.

    P̂2(q|p) + τ_p · null_p · Q(q|p), where τ_p is the trust of p's relation in expectation under Q, at Q's likeliest
    head. The label distribution of a pair becomes the mean of both, weighted by the arc mass that each brings. Tags get
    P̂2(k|p) + null_p · τ_k · Q(k|p), null_p being what is missing of 1.

    Shape: trust [K] by substructure; the rest as in `Projected` and `Scored`.
    """
    arcs, labels = own.arcs.exp(), own.labels.all().exp()
    at_best = labels.gather(2, arcs.argmax(-1)[..., None, None].expand(-1, -1, 1, labels.shape[-1])).squeeze(2)
    added = projected.null[..., None] * (at_best @ trust["arcs"])[..., None] * arcs
    total = projected.arcs + added
    share = (added / total.clamp(min=1e-30))[..., None]
    found = {**projected.distributions, "arcs": total}
    found["labels"] = torch.lerp(projected.distributions["labels"], labels, share)
    for name, scores in own.words().items():
        known = projected.distributions[name]
        missing = (1 - known.sum(-1, keepdim=True)).clamp(min=0)
        found[name] = known + missing * trust[name] * scores.exp()
    return Projected(found, projected.linked, projected.null)


@torch.no_grad()
def measure(batches: Iterator[tuple[Scored, Projected]]) -> dict[str, Agreement]:
    """Count how often the parser's likeliest value is the one that projection chose, by substructure."""
    found: dict[str, Agreement] = {}
    for own, projected in batches:
        chosen = own.arcs.argmax(-1)
        relation = own.labels.at(chosen)
        counts = {"arcs": _count(projected.arcs, chosen, relation.argmax(-1), own.mask, relation.shape[-1])}
        for name, scores in own.words().items():
            value = scores.argmax(-1)
            counts[name] = _count(projected.distributions[name], value, value, own.mask, scores.shape[-1])
        for name, now in counts.items():
            before = found.get(name)
            found[name] = now if before is None else Agreement(before.words + now.words, before.same + now.same)
    return found


def _count(projected: Tensor, chosen: Tensor, group: Tensor, mask: Tensor, groups: int) -> Agreement:
    """Agreement in one batch, by the groups that words are in. Shape: projected [B, N+1, values], the rest [B, N+1]."""
    mass, best = projected.max(-1)
    sure = mask & (mass >= _SURE)
    return Agreement(
        torch.bincount(group[sure].cpu(), minlength=groups).float(),
        torch.bincount(group[sure & (best == chosen)].cpu(), minlength=groups).float(),
    )
