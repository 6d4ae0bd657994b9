"""Batches straight from an encoder: a frozen one, for text that is parsed once, or one that is trained."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from subdp.encoder.batch import Batch, Words
from subdp.encoder.encoder import Encoder


def encoder_batch(encoder: Encoder, layers: Sequence[int], sentences: Sequence[Words]) -> Batch:
    """The vectors of sentences fresh from the encoder, for text that is parsed once and need not be stored."""
    encoded = list(encoder.encode(sentences, layers))
    # In half precision, as features are stored: a sentence gets the same tree either way.
    vectors = torch.cat([torch.from_numpy(sentence.vectors).half() for sentence in encoded], dim=1)
    return _batch(vectors.transpose(0, 1), [sentence.last - sentence.first + 1 for sentence in encoded])


class TrainableEncoder(nn.Module):
    """An encoder with some trainable layers: a batcher whose batches carry gradients.

    It shares all other weights with the encoder it is made from, which does not change. Its state is the trained layers
    only: that is what checkpoints and the model folder hold.
    """

    def __init__(self, encoder: Encoder, layers: Sequence[int], trained: Sequence[int]):
        super().__init__()
        self.layers, self.trained = encoder.check_layers(layers), encoder.check_layers(trained)
        shared = {
            id(parameter): parameter
            for number, block in enumerate(encoder.blocks, 1)
            for parameter in block.parameters()
            if number not in self.trained
        }
        inside = {id(parameter) for block in encoder.blocks for parameter in block.parameters()}
        shared |= {id(one): one for one in encoder.model.parameters() if id(one) not in inside}
        model = copy.deepcopy(encoder.model, shared)
        # In a tuple, so that it is not registered: this module's parameters are the trained ones only.
        self._own: tuple[Encoder] = (Encoder(encoder.name, encoder.folder, model, encoder.tokenizer),)
        self.blocks = nn.ModuleDict({str(number): self._own[0].blocks[number - 1] for number in self.trained})
        self.blocks.requires_grad_(True)

    def __deepcopy__(self, memo: dict[int, Any]) -> TrainableEncoder:
        twin = TrainableEncoder(self._own[0], self.layers, self.trained)
        twin.load_state_dict(self.state_dict())
        return twin

    def forward(self, sentences: Sequence[Words]) -> Batch:
        """The vectors of sentences, as the network reads them."""
        vectors, sizes = self._own[0].tensors(sentences, self.layers)
        return _batch(vectors, sizes)


def _batch(vectors: Tensor, sizes: Sequence[Any]) -> Batch:
    """A batch of sentences whose subword vectors are concatenated.

    Shape: vectors [K, layers, hidden]; sizes, for each sentence, [words]: how many subwords each word has.
    """
    lengths = torch.tensor([len(words) for words in sizes])
    first = torch.zeros(len(sizes), int(lengths.max()), dtype=torch.long)
    last = torch.zeros_like(first)
    start = 0
    for row, words in enumerate(sizes):
        ends = torch.as_tensor(words, dtype=torch.long).cumsum(0) + start
        first[row, : len(words)] = ends - torch.as_tensor(words, dtype=torch.long)
        last[row, : len(words)] = ends - 1
        start = int(ends[-1])
    return Batch(vectors, first, last, lengths)


def trained_layers(state: Mapping[str, Tensor]) -> tuple[int, ...]:
    """The layers that a state of `TrainableEncoder` holds, from the names of its tensors."""
    return tuple(sorted({int(name.split(".")[1]) for name in state}))
