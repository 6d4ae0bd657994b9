"""What training minimises: cross entropy on trees, partial cross entropy on soft trees. Pure functions on tensors.

All sum over the words of a batch; the training loop divides by their number. B sentences, N words in the longest, L
labels; positions 0..N with ROOT 0; `mask` [B, N+1] is True at words, so that ROOT as a dependent never counts.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from subdp.projection.operators import project_arcs, project_labels
from subdp.support.settings import LossConfig, SelfLoops


def tree_loss(arcs: Tensor, labels: Tensor, heads: Tensor, label_ids: Tensor, mask: Tensor) -> Tensor:
    """−Σ_p log P2(head_p | p) + log P2(label_p | head_p → p), over words whose head (label) is known, not −1.

    Shape: arcs [B, N+1, N+1] and labels [B, N+1, L] (at the gold heads) in logs; heads, label_ids [B, N+1].
    """
    known = mask & (heads >= 0)
    arc = arcs.gather(-1, heads.clamp(min=0)[..., None]).squeeze(-1)
    label = labels.gather(-1, label_ids.clamp(min=0)[..., None]).squeeze(-1)
    return -arc[known].sum() - label[known & (label_ids >= 0)].sum()


@dataclass(frozen=True, slots=True, eq=False)
class Projected:
    """Projected distributions of a batch, with what the label loss needs to know of them.

    Shape: arcs [B, N+1, N+1], P̂2(q | p); labels [B, N+1, N+1, L], P̂2(l | q→p); linked [B, N+1], True at words with a
    link, and at ROOT.
    """

    arcs: Tensor
    labels: Tensor
    linked: Tensor


def project_batch(arcs: Tensor, labels: Tensor, alignment: Tensor, config: LossConfig) -> Projected:
    """Project a batch of source distributions, the temperature applied before and the rule for self-loops after.

    Shape: arcs [B, S+1, S+1], labels [B, S+1, S+1, L], alignment [B, S+1, N+1], ROOT linked to ROOT.
    """
    carried = project_arcs(soften(arcs, config.temperature), alignment)[..., :-1]
    linked = alignment.sum(dim=1) > 0
    return Projected(
        without_self_loops(carried, config.self_loops),
        project_labels(soften(labels, config.temperature), alignment),
        linked,
    )


def mean_of_sources(projected: Projected, owner: Tensor, count: int) -> Projected:
    """The mean over projections from several sources onto one target sentence; `owner` [rows] says onto which of them.

    Labels are weighted by the arcs that they come with. Shape: as `Projected`, rows → count.
    """

    def total(values: Tensor) -> Tensor:
        return values.new_zeros(count, *values.shape[1:]).index_add_(0, owner, values)

    sources = torch.bincount(owner, minlength=count)[:, None, None]
    weight = (projected.arcs + 1e-6)[..., None]  # alike where no source has an arc
    labels = total(weight * projected.labels) / total(weight)
    return Projected(total(projected.arcs) / sources, labels, total(projected.linked.float()) > 0)


def soften(probabilities: Tensor, temperature: float) -> Tensor:
    """P^(1/τ), made to sum to what it summed to; τ = 1 changes nothing. Shape: [..., n] → the same."""
    if temperature == 1:
        return probabilities
    powered = probabilities ** (1 / temperature)
    return powered * (probabilities.sum(-1, keepdim=True) / powered.sum(-1, keepdim=True).clamp(min=1e-30))


def without_self_loops(arcs: Tensor, rule: SelfLoops) -> Tensor:
    """`keep` arcs from a word to itself, `drop` their mass, or `renormalise`: give it to the word's other arcs.

    Shape: [B, N+1, N+1] → the same.
    """
    if rule == "keep":
        return arcs
    others = arcs * (1 - torch.eye(arcs.shape[-1], device=arcs.device, dtype=arcs.dtype))
    if rule == "drop":
        return others
    kept = others.sum(-1, keepdim=True)
    return torch.where(kept > 0, others * (arcs.sum(-1, keepdim=True) / kept.clamp(min=1e-30)), others)


def complete(projected: Projected, arcs: Tensor, labels: Tensor, trust: Tensor) -> Projected:
    """Give a word's NULL mass to another parser's distributions, as far as that parser is trusted.

    P̂2(q|p) + τ_p (1 − α_p) Q(q|p), where α_p is the mass that projection kept. The label distribution of a pair becomes
    the mean of both, weighted by the arc mass that each brings.

    Shape: arcs [B, N+1, N+1] and labels [B, N+1, N+1, L], Q as probabilities; trust [B, N+1] in 0..1.
    """
    missing = (1 - projected.arcs.sum(-1, keepdim=True)).clamp(min=0) * trust[..., None]
    added = missing * arcs
    total = projected.arcs + added
    share = (added / total.clamp(min=1e-30))[..., None]
    return Projected(total, torch.lerp(projected.labels, labels, share), projected.linked)


def soft_loss(arcs: Tensor, labels: Tensor, projected: Projected, mask: Tensor, config: LossConfig) -> Tensor:
    """Partial cross entropy: −Σ_p Σ_q P̂2(q|p) log P2(q|p) − Σ_p Σ_q w_pq Σ_l P̂2(l|q→p) log P2(l|q→p).

    p = 1..T, q = 0..T; nothing is renormalised. w is 1 (`none`: the paper), P̂2(q|p) (`arc`), or that at the likeliest q
    alone (`best`); `label_pairs = aligned` makes it 0 where p or q has no link.

    Shape: arcs [B, N+1, N+1] and labels [B, N+1, N+1, L] in logs; mask [B, N+1].
    """
    pairs = mask[:, :, None] & (mask | _root(mask))[:, None, :]
    arc = projected.arcs * pairs
    weight = _label_weight(arc, config) * pairs
    if config.label_pairs == "aligned":
        weight = weight * (projected.linked[:, :, None] & projected.linked[:, None, :])
    label = (projected.labels * labels).sum(-1)
    return -(arc * arcs).sum() - (weight * label).sum()


def _label_weight(arc: Tensor, config: LossConfig) -> Tensor:
    if config.label_weight == "none":
        return torch.ones_like(arc)
    if config.label_weight == "arc":
        return arc
    best = torch.zeros_like(arc).scatter_(-1, arc.argmax(-1, keepdim=True), 1)
    return best * arc


def _root(mask: Tensor) -> Tensor:
    root = torch.zeros_like(mask)
    root[:, 0] = True
    return root
