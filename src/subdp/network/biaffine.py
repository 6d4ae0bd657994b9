"""The network: a deep biaffine dependency parser over the layers of a frozen encoder (the paper's appendix).

    V  = mix of the encoder's layers, [first subword ; last subword] of every word, ROOT's vector in front
    Ṽ  = LSTM(MLP_feature(V))
    H, D = MLP_head(Ṽ), MLP_dependent(Ṽ)          once for arcs, once for labels
    S_arc = [D ; 1] W Hᵀ,   S_label[l] = [D ; 1] W_l [H ; 1]ᵀ

Sizes: B sentences, N words in the longest of them, L labels; positions 0..N, ROOT 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from subdp.encoder.batch import Batch
from subdp.support.settings import NetworkConfig

_NEVER = -1e30  # The score of a head beyond the sentence's end: no probability, yet finite in sums.


@dataclass(frozen=True, slots=True, eq=False)
class Scored:
    """What the network says of a batch.

    Shape: arcs [B, N+1, N+1], log P(head | dependent); mask [B, N+1], True at the words (not at ROOT or padding).
    """

    arcs: Tensor
    mask: Tensor
    label_dependents: Tensor
    label_heads: Tensor
    label_weight: Tensor

    def labels(self) -> Tensor:
        """log P(label | head → dependent) for all pairs. Shape: [B, N+1, N+1, L]."""
        size, count = self.label_heads.shape[-1], self.label_weight.shape[0]
        by_label = self.label_dependents @ self.label_weight.transpose(0, 1).reshape(size, count * size)
        batch, length = self.arcs.shape[:2]
        scores = by_label.reshape(batch, length * count, size) @ self.label_heads.transpose(1, 2)
        return scores.reshape(batch, length, count, length).transpose(2, 3).log_softmax(-1)

    def labels_at(self, heads: Tensor) -> Tensor:
        """log P(label | head → dependent) for one head of each word. Shape: heads [B, N+1] → [B, N+1, L]."""
        size, count = self.label_heads.shape[-1], self.label_weight.shape[0]
        chosen = self.label_heads.gather(1, heads[..., None].expand(-1, -1, size))
        by_label = self.label_dependents @ self.label_weight.transpose(0, 1).reshape(size, count * size)
        scores = (by_label.reshape(*heads.shape, count, size) * chosen[..., None, :]).sum(-1)
        return scores.log_softmax(-1)


class Biaffine(nn.Module):
    """Scores every arc and every label of a batch of sentences."""

    def __init__(self, config: NetworkConfig, layers: int, hidden: int, labels: int):
        super().__init__()
        self.dropout = config.dropout
        # The sizes of what dropout is applied to, in that order.
        outer = [config.arc, config.arc, config.label, config.label]
        self._stages = [2 * hidden, config.features, *[2 * config.lstm] * config.lstm_layers, *outer]
        self.mix = nn.Parameter(torch.zeros(layers))
        self.scale = nn.Parameter(torch.ones(()))
        self.root = nn.Parameter(torch.zeros(2 * hidden))
        self.features = nn.Linear(2 * hidden, config.features)
        inputs = (config.features, *[2 * config.lstm] * (config.lstm_layers - 1))
        self.forward_lstm, self.backward_lstm = (
            nn.ModuleList(nn.LSTM(size, config.lstm, batch_first=True) for size in inputs) for _ in range(2)
        )
        self.arc_dependent, self.arc_head = (nn.Linear(2 * config.lstm, config.arc) for _ in range(2))
        self.label_dependent, self.label_head = (nn.Linear(2 * config.lstm, config.label) for _ in range(2))
        self.arc_weight = nn.Parameter(torch.zeros(config.arc + 1, config.arc))
        self.label_weight = nn.Parameter(torch.zeros(labels, config.label + 1, config.label + 1))
        for layer in (self.features, self.arc_dependent, self.arc_head, self.label_dependent, self.label_head):
            nn.init.orthogonal_(layer.weight)

    def draw_dropout(self, sentences: int, longest: int) -> list[Tensor]:
        """What a batch in training is multiplied by, stage by stage.

        One mask serves all positions of a sentence, but between two layers of the BiLSTM every position has its own.
        Drawn apart from its use, so that sentences scored side by side get the same as in one batch.

        Shape: [B, 1, d], between layers [B, N+1, d].
        """
        if not self.dropout:
            return []
        keep, between = 1 - self.dropout, range(2, 1 + len(self.forward_lstm))
        sizes = [(longest + 1 if stage in between else 1, size) for stage, size in enumerate(self._stages)]
        return [torch.full((sentences, *size), keep, device=self.mix.device).bernoulli() / keep for size in sizes]

    def forward(self, batch: Batch, dropout: Sequence[Tensor] = ()) -> Scored:
        """Score a batch; in training with what `draw_dropout` gave.

        Shape: vectors [K, layers, hidden]; first, last [B, N]; lengths [B].
        """
        weights = self.scale * self.mix.softmax(0)
        vectors, first, last, lengths = (
            tensor.to(weights.device) for tensor in (batch.vectors, batch.first, batch.last, batch.lengths)
        )
        masks = iter(dropout)

        def drop(x: Tensor) -> Tensor:
            return x * next(masks)[:, : x.shape[1]] if dropout else x

        # Layer by layer: one product over all of them would copy the vectors into another order first.
        mixed = torch.zeros((), dtype=weights.dtype, device=weights.device)
        for layer, weight in enumerate(weights):
            mixed = mixed + weight * vectors[:, layer].to(weights.dtype)
        words = torch.cat((mixed[first], mixed[last]), dim=-1)  # [B, N, 2·hidden]
        x = torch.cat((self.root.expand(len(words), 1, -1), words), dim=1)  # [B, N+1, 2·hidden]
        x = drop(torch.relu(self.features(drop(x))))
        positions = torch.arange(x.shape[1], device=x.device)
        inside = positions <= lengths[:, None]  # [B, N+1], ROOT and words
        # Padding is behind a sentence both ways: not packed, for packed sequences take a slower way on a CPU.
        turned = torch.where(inside, lengths[:, None] - positions, positions)[..., None]
        for forth, back in zip(self.forward_lstm, self.backward_lstm, strict=True):
            ahead = forth(x)[0]
            behind = back(x.gather(1, turned.expand_as(x)))[0]
            x = drop(torch.cat((ahead, behind.gather(1, turned.expand_as(behind))), dim=-1))

        arc_d, arc_h, label_d, label_h = (
            drop(torch.relu(layer(x)))
            for layer in (self.arc_dependent, self.arc_head, self.label_dependent, self.label_head)
        )
        scores = _with_one(arc_d) @ self.arc_weight @ arc_h.transpose(1, 2)
        arcs = scores.masked_fill(~inside[:, None, :], _NEVER).log_softmax(-1)
        mask = inside & (positions > 0)
        return Scored(arcs, mask, _with_one(label_d), _with_one(label_h), self.label_weight)


def _with_one(x: Tensor) -> Tensor:
    """A constant feature at the end, which makes a bilinear form biaffine. Shape: [..., d] → [..., d + 1]."""
    return torch.cat((x, torch.ones_like(x[..., :1])), dim=-1)
