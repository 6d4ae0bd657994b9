"""How the network scores a substructure of each kind: small layers over the BiLSTM's states.

    head   S = [D ; 1] W Hᵀ                 an arc: bias on the dependent's side
    pair   S[l] = [D ; 1] W_l [H ; 1]ᵀ      a label of an arc: biases on both sides
    word   S = W MLP([Ṽ ; V]) + b          a tag

with D = MLP_dependent(Ṽ), H = MLP_head(Ṽ). Sizes: B sentences, N words in the longest of them, K values; positions
0..N, ROOT 0. Biaffine weights start at zero.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import torch
from torch import Tensor, nn

from subdp.encoder.products import Linear, linear
from subdp.projection.substructures import Kind, find_substructure

_NEVER = -1e30  # The score of a head beyond the sentence's end: no probability, yet finite in sums.

Drop: TypeAlias = Callable[[Tensor], Tensor]
"""Dropout for the next stage of the network; the identity outside of training."""


@dataclass(frozen=True, slots=True, eq=False)
class HeadScores:
    """log P(head | dependent). Shape: [B, N+1, N+1]."""

    log_probabilities: Tensor


@dataclass(frozen=True, slots=True, eq=False)
class PairScores:
    """log P(value | head → dependent), computed on demand because pairs are many.

    Shape: dependents, heads [B, N+1, d+1]; weight [K, d+1, d+1].
    """

    dependents: Tensor
    heads: Tensor
    weight: Tensor

    def all(self) -> Tensor:
        """For all pairs. Shape: [B, N+1, N+1, K]."""
        batch, length, size = self.heads.shape
        # Heads first, so that the values of a pair lie side by side in memory.
        scores = self.heads @ self._by_value().reshape(batch, -1, size).transpose(1, 2)
        return scores.reshape(batch, length, length, -1).log_softmax(-1).transpose(1, 2)

    def at(self, heads: Tensor) -> Tensor:
        """For one head of each word. Shape: heads [B, N+1] → [B, N+1, K]."""
        size = self.heads.shape[-1]
        chosen = self.heads.gather(1, heads[..., None].expand(-1, -1, size))
        scores = (self._by_value().reshape(*heads.shape, -1, size) * chosen[..., None, :]).sum(-1)
        return scores.log_softmax(-1)

    def _by_value(self) -> Tensor:
        """D W_l for all values l. Shape: [B, N+1, K · (d+1)]."""
        size = self.heads.shape[-1]
        return linear(self.dependents, self.weight.transpose(1, 2).reshape(-1, size))


@dataclass(frozen=True, slots=True, eq=False)
class WordScores:
    """log P(value | word). Shape: [B, N+1, K]."""

    log_probabilities: Tensor


Scores: TypeAlias = HeadScores | PairScores | WordScores


@dataclass(frozen=True, slots=True, eq=False)
class Scored:
    """The network's scores of a batch, by substructure.

    Shape: mask [B, N+1], True at the words (not at ROOT or padding).
    """

    mask: Tensor
    parts: Mapping[str, Scores]

    @property
    def arcs(self) -> Tensor:
        """log P(head | dependent). Shape: [B, N+1, N+1]."""
        found = self.parts["arcs"]
        assert isinstance(found, HeadScores)
        return found.log_probabilities

    @property
    def labels(self) -> PairScores:
        """The labels of arcs, for all pairs or at chosen heads."""
        found = self.parts["labels"]
        assert isinstance(found, PairScores)
        return found

    def words(self) -> dict[str, Tensor]:
        """log P(value | word) for each substructure of kind word. Shape: [B, N+1, K]."""
        return {name: part.log_probabilities for name, part in self.parts.items() if isinstance(part, WordScores)}


class HeadScorer(nn.Module):
    """Scores every word as the head of every other."""

    def __init__(self, inputs: int, size: int):
        super().__init__()
        self.dependent, self.head = Linear(inputs, size), Linear(inputs, size)
        self.weight = nn.Parameter(torch.zeros(size + 1, size))

    def forward(self, x: Tensor, inside: Tensor, drop: Drop) -> HeadScores:
        """Shape: x [B, N+1, inputs]; inside [B, N+1], True at ROOT and words."""
        dependents, heads = drop(torch.relu(self.dependent(x))), drop(torch.relu(self.head(x)))
        scores = linear(_with_one(dependents), self.weight.t()) @ heads.transpose(1, 2)
        return HeadScores(scores.masked_fill(~inside[:, None, :], _NEVER).log_softmax(-1))


class PairScorer(nn.Module):
    """Scores every value of every pair of words."""

    def __init__(self, inputs: int, size: int, values: int):
        super().__init__()
        self.dependent, self.head = Linear(inputs, size), Linear(inputs, size)
        self.weight = nn.Parameter(torch.zeros(values, size + 1, size + 1))

    def forward(self, x: Tensor, inside: Tensor, drop: Drop) -> PairScores:
        """Shape: x [B, N+1, inputs]."""
        dependents, heads = drop(torch.relu(self.dependent(x))), drop(torch.relu(self.head(x)))
        return PairScores(_with_one(dependents), _with_one(heads), self.weight)


class WordScorer(nn.Module):
    """Scores every value of every word, from the BiLSTM's states and the vectors below it, neither of which it moves.

    Tags that are trained through the BiLSTM cost trees in other languages more than they give: see docs/decisions.md.
    """

    def __init__(self, inputs: int, size: int, values: int):
        super().__init__()
        self.dependent = Linear(inputs, size)
        self.weight = Linear(size, values)

    def forward(self, x: Tensor, inside: Tensor, drop: Drop) -> WordScores:
        """Shape: x [B, N+1, inputs], detached here."""
        x = x.detach()
        return WordScores(self.weight(drop(torch.relu(self.dependent(x)))).log_softmax(-1))


def make_scorer(name: str, inputs: Mapping[Kind, int], sizes: Mapping[Kind, int], values: int) -> nn.Module:
    """The scorer of a substructure, by its kind; `sizes` are those of the vectors D and H for each kind."""
    kind = find_substructure(name).kind
    if kind == "head":
        return HeadScorer(inputs[kind], sizes[kind])
    return (PairScorer if kind == "pair" else WordScorer)(inputs[kind], sizes[kind], values)


def outer_layers(scorer: nn.Module) -> list[nn.Linear]:
    """The layers that make D and H of a scorer, in the order in which dropout is applied to them."""
    assert isinstance(scorer, HeadScorer | PairScorer | WordScorer)
    return [scorer.dependent] if isinstance(scorer, WordScorer) else [scorer.dependent, scorer.head]


def _with_one(x: Tensor) -> Tensor:
    """A constant feature at the end, which makes a bilinear form biaffine. Shape: [..., d] → [..., d + 1]."""
    return torch.cat((x, torch.ones_like(x[..., :1])), dim=-1)
