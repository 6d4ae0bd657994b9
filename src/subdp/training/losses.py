"""What training minimises: cross entropy on trees, partial cross entropy on soft trees. Pure functions on tensors.

There is one loss for each kind of substructure and each kind of example; `tree_loss` and `soft_loss` add them up. All
sum over the words of a batch; the training loop divides by their number. B sentences, N words in the longest, K values;
positions 0..N with ROOT 0; `mask` [B, N+1] is True at words, so that ROOT as a dependent never counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from subdp.network.scorers import PairScores, Scored
from subdp.projection.operators import head_links
from subdp.projection.substructures import carry, find_substructure
from subdp.support.settings import LossConfig, SelfLoops


def tree_loss(scored: Scored, gold: Mapping[str, Tensor]) -> Tensor:
    """−Σ_p log P2(head_p | p) + log P2(label_p | head_p → p) + log P2(tag_p | p), over words where each is known.

    Shape: for each substructure [B, N+1], the indices of heads or values, −1 where unknown.
    """
    heads = gold["arcs"]
    known_head = scored.mask & (heads >= 0)
    total = torch.zeros((), device=scored.mask.device)
    for name, part in scored.parts.items():
        known = scored.mask & (gold[name] >= 0)
        if isinstance(part, PairScores):  # There is no label without a head.
            scores, known = part.at(heads.clamp(min=0)), known & known_head
        else:
            scores = part.log_probabilities
        chosen = scores.gather(-1, gold[name].clamp(min=0)[..., None]).squeeze(-1)
        total = total - chosen[known].sum()
    return total


@dataclass(frozen=True, slots=True, eq=False)
class Projected:
    """Projected distributions of a batch, by substructure, with what the losses need besides.

    Shape: distributions as in `projection/substructures.py`, with B in front; linked [B, N+1], True at
    words with a link, and at ROOT; null [B, N+1], the mass of a word's arcs that went to NULL.
    """

    distributions: Mapping[str, Tensor]
    linked: Tensor
    null: Tensor

    @property
    def arcs(self) -> Tensor:
        """P̂2(q | p). Shape: [B, N+1, N+1]."""
        return self.distributions["arcs"]


def project_batch(source: Mapping[str, Tensor], alignment: Tensor, config: LossConfig) -> Projected:
    """Project a batch of source distributions; temperature and weights of links come before, self-loops after.

    Mass that `self_loops = drop` removes is not NULL mass: projection did place it, so completion does not replace it.

    Shape: source as in `projection/substructures.py`, with B in front; alignment [B, S+1, N+1], ROOT linked to ROOT.
    """
    softened = {name: soften(distribution, config.temperature) for name, distribution in source.items()}
    links = head_links(alignment, softened["arcs"]) if config.many_to_one == "head" else alignment
    found = {name: carry(find_substructure(name).kind, distribution, links) for name, distribution in softened.items()}
    null = (1 - found["arcs"].sum(-1)).clamp(min=0)
    found["arcs"] = without_self_loops(found["arcs"], config.self_loops)
    return Projected(found, alignment.sum(dim=1) > 0, null)


def mean_of_sources(projected: Projected, owner: Tensor, count: int) -> Projected:
    """The mean of the projections onto each target sentence from its sources; `owner` [rows] is each row's sentence.

    Labels are weighted by their arcs' probabilities. Shape: as `Projected`, rows → count.
    """

    def total(values: Tensor) -> Tensor:
        return values.new_zeros(count, *values.shape[1:]).index_add_(0, owner, values)

    def mean(values: Tensor) -> Tensor:
        return total(values) / torch.bincount(owner, minlength=count).view(-1, *[1] * (values.dim() - 1))

    weight = (projected.arcs + 1e-6)[..., None]  # equal weights where no source has an arc
    means = {
        name: total(weight * values) / total(weight) if find_substructure(name).kind == "pair" else mean(values)
        for name, values in projected.distributions.items()
    }
    return Projected(means, total(projected.linked.float()) > 0, mean(projected.null))


def soften(probabilities: Tensor, temperature: float) -> Tensor:
    """P^(1/τ), rescaled to its former sum; τ = 1 changes nothing. Shape: [..., n] → the same."""
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


def soft_loss(scored: Scored, projected: Projected, config: LossConfig) -> Tensor:
    """Partial cross entropy: −Σ_p Σ_q P̂2(q|p) log P2(q|p) − Σ_p Σ_q w_pq Σ_l P̂2(l|q→p) log P2(l|q→p), and for tags
    −Σ_p Σ_k P̂2(k|p) log P2(k|p); w as in `loss_weights`. p = 1..T, q = 0..T; nothing is renormalised.

    Shape: as in `Scored` and `Projected`.
    """
    return weighted_loss(scored, loss_weights(projected, scored.mask, config))


def loss_weights(projected: Projected, mask: Tensor, config: LossConfig) -> dict[str, Tensor]:
    """What each log probability of the network counts in the loss: P̂2(q|p), w_pq · P̂2(l|q→p), P̂2(k|p); 0 at padding.

    w is 1 (`none`: the paper), P̂2(q|p) (`arc`), or P̂2(q|p) at the likeliest q and 0 elsewhere (`best`);
    `label_pairs = aligned` makes it 0 where p or q has no link.

    Shape: as in `Projected`; mask [B, N+1].
    """
    pairs = mask[:, :, None] & (mask | _root(mask))[:, None, :]
    arcs = projected.arcs * pairs
    weight = _label_weight(arcs, config) * pairs
    if config.label_pairs == "aligned":
        weight = weight * (projected.linked[:, :, None] & projected.linked[:, None, :])
    by_kind = {"head": pairs, "pair": weight[..., None], "word": mask[..., None]}
    return {name: values * by_kind[find_substructure(name).kind] for name, values in projected.distributions.items()}


def weighted_loss(scored: Scored, weights: Mapping[str, Tensor]) -> Tensor:
    """−Σ weight · log P2, over all that the network predicts.

    Shape: weights as `loss_weights` gives them.
    """
    total = torch.zeros((), device=scored.mask.device)
    for name, part in scored.parts.items():
        logs = part.all() if isinstance(part, PairScores) else part.log_probabilities
        total = total - (weights[name] * logs).sum()
    return total


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
