"""What becomes of NULL mass, the mass that projection lost because a word or its head has no link; and how far the
mass that it did place is believed.

The paper gives NULL mass to nobody: such a word adds less loss, or none. With `completion`, the parser that adaptation
starts from, run on the target sentence itself, is the teacher: its distributions receive all of the NULL mass
(`source`), or as much as they are trusted with (`auto`). Trust is measured without gold trees: where projection chose a
value, how often does the teacher choose the same one? For arcs this is counted by the relation that the teacher finds
likeliest, since function words and content words transfer very differently; for tags by the tag. With a as that share,
the source parser is trusted with 2a − 1, or not at all: where word order differs it errs in a systematic way. A teacher
that has learnt from projection in many languages is trusted with a: its errors differ from those of one language's
links.

The same trust, times `mixing`, is the teacher's share of the mass that projection placed: links are wrong at times, and
then the teacher is the better witness. Of tags its share is larger, because a tag depends on the word itself, which the
encoder sees, and hardly on word order: there the teacher is right more often than the projection. Labels stay
projected, because the teacher's errors in them are systematic where word order differs (a subject for an object), but
for `own_labels`: relations between words that the source language merely puts side by side, where others mark what they
are to each other and the teacher can see the marking.

A word's trust is that of its relation in expectation, under the teacher's label distribution at its likeliest head.
Mass that `self_loops = drop` removes is not NULL mass, and is not completed. The NULL mass of tags that is left goes to
their words' forms (`forms.py`).

`measure` and `add_up` count, `Agreement.trust` is the rule, `complete` applies it.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from subdp.encoder.batch import Batch, Batcher
from subdp.network.biaffine import Biaffine
from subdp.network.scorers import Scored
from subdp.support.errors import SubdpError
from subdp.support.settings import LossConfig
from subdp.training.losses import Projected

_SURE = 0.5  # Minimum mass on one value for projection to have chosen it.
_PRIOR = 50.0  # Pseudo-count: words at the overall agreement that every relation or tag starts with.


def beyond_half(agreement: Tensor) -> Tensor:
    """How far a parser of another language is trusted by its agreement a: max(0, 2a − 1). Shape: any → the same."""
    return (2 * agreement - 1).clamp(min=0)


@dataclass(frozen=True, slots=True, eq=False)
class Agreement:
    """Counts of words for which projection chose a value, and of those for which the teacher chose the same one.

    Grouped by the teacher's likeliest relation (arcs) or tag (tags). Shape: words, same [K].
    """

    words: Tensor
    same: Tensor

    @property
    def overall(self) -> float:
        """The share of all words on which both agree."""
        return float(self.same.sum() / self.words.sum().clamp(min=1))

    def by_value(self) -> Tensor:
        """The share by relation or tag, smoothed towards the overall one. Shape: [K]."""
        return (self.same + _PRIOR * self.overall) / (self.words + _PRIOR)

    def trust(self, *, multilingual: bool = False) -> Tensor:
        """The share of NULL mass that each relation or tag is trusted with. Shape: [K]."""
        return self.by_value() if multilingual else beyond_half(self.by_value())


@dataclass(frozen=True, slots=True, eq=False)
class Teacher:
    """A copy of the starting parser, with how far it is trusted, by substructure.

    Shape: trust [K], over relations for arcs, over tags for tags; own_labels [L], 1 at labels that are its own.
    """

    network: Biaffine
    batcher: Batcher
    trust: Mapping[str, Tensor]
    mixing: float
    own_labels: Tensor

    @classmethod
    def of(
        cls,
        network: Biaffine,
        batcher: Batcher,
        labels: Sequence[str],
        config: LossConfig,
        agreements: Mapping[str, Agreement],
        multilingual: bool = False,
    ) -> Teacher:
        """A copy of a network, trusted in full (`source`) or as far as it agrees with projection (`auto`): the more so
        if it is `multilingual`.
        """
        full, device = config.completion == "source", network.device
        trust = {
            name: (torch.ones_like(found.words) if full else found.trust(multilingual=multilingual)).to(device)
            for name, found in agreements.items()
        }
        own = own_label_mask(labels, config).to(device)
        return cls(copy.deepcopy(network), batcher, trust, config.mixing, own)

    @torch.no_grad()
    def complete(self, projected: Projected, batch: Batch) -> Projected:
        """Projected distributions, mixed with the teacher's as far as it is trusted."""
        return complete(projected, self.network(batch), self.trust, self.mixing, self.own_labels)


def own_label_mask(labels: Sequence[str], config: LossConfig) -> Tensor:
    """1 at the labels that are the teacher's own. One that the parser lacks is an error, unless it is the default's.

    Shape: [L].
    """
    wrong = [name for name in config.own_labels if name not in labels and name not in LossConfig().own_labels]
    if wrong:
        raise SubdpError(f"own_labels names {wrong[0]!r}, which the parser lacks", hint=f"it has {', '.join(labels)}")
    return torch.tensor([float(label in config.own_labels) for label in labels])


def complete(
    projected: Projected, own: Scored, trust: Mapping[str, Tensor], mixing: float, own_labels: Tensor
) -> Projected:
    """Give NULL mass to the teacher's distributions Q as far as they are trusted, and μ = `mixing` times that share of
    the mass that projection placed.

    Arcs become (1 − μ·τ_p) · P̂2(q|p) + τ_p · (null_p + μ · Σ_q P̂2(q|p)) · Q(q|p), where τ_p = Σ_l Q(l | q*→p) · τ_l at
    Q's likeliest head q*. A pair's labels are projected as far as projection placed the arc, the rest is Q's; so is the
    mass of `own_labels`. Tags become (1 − σ_p) · P̂2(k|p) + (null_p · τ_k + σ_p · Σ_k P̂2(k|p)) · Q(k|p), where null_p
    is 1 − Σ_k P̂2(k|p) and σ_p = min(1, μ · (1 + Σ_k Q(k|p) · τ_k)).

    Shape: trust [K] by substructure, own_labels [L]; the rest as in `Projected` and `Scored`.
    """
    arcs, labels = own.arcs.exp(), own.labels.all().exp()
    at_best = labels.gather(2, arcs.argmax(-1)[..., None, None].expand(-1, -1, 1, labels.shape[-1])).squeeze(2)
    trusted = (at_best @ trust["arcs"])[..., None]
    placed = projected.arcs.sum(-1, keepdim=True)
    total = (1 - mixing * trusted) * projected.arcs + trusted * (projected.null[..., None] + mixing * placed) * arcs
    beyond = ((total - projected.arcs).clamp(min=0) / total.clamp(min=1e-30))[..., None]
    theirs = projected.distributions["labels"]
    theirs = theirs * (1 - own_labels) + (theirs @ own_labels)[..., None] * labels
    found = {**projected.distributions, "arcs": total, "labels": torch.lerp(theirs, labels, beyond)}
    for name, scores in own.words().items():
        known, values = projected.distributions[name], scores.exp()
        placed = known.sum(-1, keepdim=True)
        share = (mixing * (1 + values @ trust[name])).clamp(max=1)[..., None]
        found[name] = (1 - share) * known + ((1 - placed).clamp(min=0) * trust[name] + share * placed) * values
    return Projected(found, projected.linked, projected.null)


@torch.no_grad()
def measure(own: Scored, projected: Projected) -> dict[str, Agreement]:
    """Count how often the parser's likeliest value is the one that projection chose in a batch, by substructure."""
    chosen = own.arcs.argmax(-1)
    relation = own.labels.at(chosen)
    counts = {"arcs": _count(projected.arcs, chosen, relation.argmax(-1), own.mask, relation.shape[-1])}
    for name, scores in own.words().items():
        value = scores.argmax(-1)
        counts[name] = _count(projected.distributions[name], value, value, own.mask, scores.shape[-1])
    return counts


def add_up(batches: Sequence[Mapping[str, Agreement]]) -> dict[str, Agreement]:
    """The agreement in several batches together."""
    found: dict[str, Agreement] = {}
    for counts in batches:
        for name, now in counts.items():
            before = found.get(name)
            found[name] = now if before is None else Agreement(before.words + now.words, before.same + now.same)
    return found


def same_heads(own: Scored, projected: Projected) -> Tensor:
    """For each word for which projection chose a head, whether the parser's likeliest head is the same. Shape: [K]."""
    best, sure = _chosen(projected.arcs, own.mask)
    return (own.arcs.argmax(-1) == best)[sure].cpu()


def _count(projected: Tensor, chosen: Tensor, group: Tensor, mask: Tensor, groups: int) -> Agreement:
    """Agreement in one batch, by the groups that words are in. Shape: projected [B, N+1, values], the rest [B, N+1]."""
    best, sure = _chosen(projected, mask)
    return Agreement(
        torch.bincount(group[sure].cpu(), minlength=groups).float(),
        torch.bincount(group[sure & (best == chosen)].cpu(), minlength=groups).float(),
    )


def _chosen(projected: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """The value with most projected mass, and the words for which projection chose it. Shape: [B, N+1] both."""
    mass, best = projected.max(-1)
    return best, mask & (mass >= _SURE)
