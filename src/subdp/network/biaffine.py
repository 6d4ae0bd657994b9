"""The network: a deep biaffine dependency parser over the layers of an encoder (the paper's appendix).

    V  = mix of the encoder's layers, [first subword ; last subword] of every word, ROOT's vector in front
    Ṽ  = LSTM(MLP_feature(V))

and a scorer over Ṽ for each substructure (`scorers.py`). Sizes: B sentences, N words in the longest of them; positions
0..N, ROOT 0.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from subdp.encoder.batch import Batch
from subdp.encoder.products import Linear
from subdp.network.scorers import Scored, WordScorer, make_scorer, outer_layers
from subdp.projection.substructures import Inventory, Kind
from subdp.support.settings import NetworkConfig


class Biaffine(nn.Module):
    """Scores every substructure of a batch of sentences."""

    def __init__(self, config: NetworkConfig, layers: int, hidden: int, inventory: Inventory):
        super().__init__()
        self.dropout = config.dropout
        self.mix = nn.Parameter(torch.zeros(layers))
        self.scale = nn.Parameter(torch.ones(()))
        self.root = nn.Parameter(torch.zeros(2 * hidden))
        self.features = Linear(2 * hidden, config.features)
        inputs = (config.features, *[2 * config.lstm] * (config.lstm_layers - 1))
        self.forward_lstm, self.backward_lstm = (
            nn.ModuleList(nn.LSTM(size, config.lstm, batch_first=True) for size in inputs) for _ in range(2)
        )
        sizes: dict[Kind, int] = {"head": config.arc, "pair": config.label, "word": config.label}
        states = 2 * config.lstm
        read: dict[Kind, int] = {"head": states, "pair": states, "word": states + 2 * hidden}
        self.scorers = nn.ModuleDict(
            {name: make_scorer(name, read, sizes, len(values)) for name, values in inventory.items()}
        )
        outer = [layer for scorer in self.scorers.values() for layer in outer_layers(scorer)]
        for layer in (self.features, *outer):
            if not layer.weight.is_meta:  # A network that is loaded has no weights yet, and random ones take a second.
                nn.init.orthogonal_(layer.weight)
        # The sizes of what dropout is applied to, in that order.
        self._stages = [2 * hidden, config.features, *[2 * config.lstm] * config.lstm_layers]
        self._stages += [layer.out_features for layer in outer]

    @property
    def device(self) -> torch.device:
        """The device of its weights."""
        return self.mix.device

    def draw_dropout(self, sentences: int, longest: int) -> list[Tensor]:
        """Dropout masks for a batch in training, one for each stage.

        All positions of a sentence share a mask, but between two layers of the BiLSTM every position has its own. Masks
        are drawn before they are used, so that sentences scored in parallel get the same ones as in one batch.

        Shape: [B, 1, d], between layers [B, N+1, d].
        """
        if not self.dropout:
            return []
        keep, between = 1 - self.dropout, range(2, 1 + len(self.forward_lstm))
        sizes = [(longest + 1 if stage in between else 1, size) for stage, size in enumerate(self._stages)]
        return [(torch.rand((sentences, *size), device=self.device) < keep) / keep for size in sizes]

    def forward(self, batch: Batch, dropout: Sequence[Tensor] = ()) -> Scored:
        """Score a batch; in training with the masks of `draw_dropout`.

        Shape: vectors [K, layers, hidden]; first, last [B, N]; lengths [B].
        """
        weights = self.scale * self.mix.softmax(0)
        vectors, first, last, lengths = (
            tensor.to(weights.device) for tensor in (batch.vectors, batch.first, batch.last, batch.lengths)
        )
        masks = iter(dropout)

        def drop(x: Tensor) -> Tensor:
            return x * next(masks)[:, : x.shape[1]] if dropout else x

        # Layer by layer: one product over all of them would first copy the vectors into another layout.
        mixed = torch.zeros((), dtype=weights.dtype, device=weights.device)
        for layer, weight in enumerate(weights):
            mixed = mixed + weight * vectors[:, layer].to(weights.dtype)
        words = torch.cat((mixed[first], mixed[last]), dim=-1)  # [B, N, 2·hidden]
        v = torch.cat((self.root.expand(len(words), 1, -1), words), dim=1)  # [B, N+1, 2·hidden]
        x = drop(torch.relu(self.features(drop(v))))
        positions = torch.arange(x.shape[1], device=x.device)
        inside = positions <= lengths[:, None]  # [B, N+1], ROOT and words
        # Padding comes last in both directions. Sequences are not packed, which would be slower on a CPU.
        turned = torch.where(inside, lengths[:, None] - positions, positions)[..., None]
        for forth, back in zip(self.forward_lstm, self.backward_lstm, strict=True):
            ahead = forth(x)[0]
            behind = back(x.gather(1, turned.expand_as(x)))[0]
            x = drop(torch.cat((ahead, behind.gather(1, turned.expand_as(behind))), dim=-1))
        parts = {
            name: scorer(torch.cat((x, v), dim=-1) if isinstance(scorer, WordScorer) else x, inside, drop)
            for name, scorer in self.scorers.items()
        }
        return Scored(inside & (positions > 0), parts)
