"""Batches straight from an encoder: a frozen one, for text that is parsed once, or its embeddings alone, or one that
is trained.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from subdp.encoder.batch import Batch, Words
from subdp.encoder.encoder import Encoder
from subdp.support.errors import SubdpError

EMBEDDINGS = (0,)
"""The layers of a parser that reads embeddings alone; these are then without positions."""


def encoder_batch(encoder: Encoder, layers: Sequence[int], sentences: Sequence[Words]) -> Batch:
    """The vectors of sentences fresh from the encoder, for text that is parsed once and need not be stored."""
    encoded = list(encoder.encode(sentences, layers))
    # In half precision, as features are stored: a sentence gets the same tree either way.
    vectors = torch.cat([torch.from_numpy(sentence.vectors).half() for sentence in encoded], dim=1)
    return _batch(vectors.transpose(0, 1), [sentence.last - sentence.first + 1 for sentence in encoded])


def embeddings_batch(encoder: Encoder, sentences: Sequence[Words]) -> Batch:
    """The vectors of words out of context, from the encoder's embeddings; each form is looked up once.

    In the place of the first subword's vector is the mean of all of them (see docs/decisions.md).
    """
    numbers = {word: number for number, word in enumerate(dict.fromkeys(chain.from_iterable(sentences)))}
    vectors = torch.cat(encoder.embeddings(list(numbers)))
    lengths = np.array([len(words) for words in sentences])
    first = np.zeros((len(sentences), max(lengths)), np.int64)
    first[np.arange(max(lengths)) < lengths[:, None]] = [numbers[word] for words in sentences for word in words]
    places = torch.from_numpy(first)
    return Batch(vectors[:, None], places, places + len(numbers), torch.from_numpy(lengths))


class TrainableEncoder(nn.Module):
    """An encoder with some trainable layers: a batcher whose batches carry gradients.

    It shares all other weights with the encoder it is made from, which does not change. Its state is the trained layers
    only: that is what checkpoints and the model folder hold.
    """

    def __init__(self, encoder: Encoder, layers: Sequence[int], trained: Sequence[int]):
        super().__init__()
        self.layers, self.trained = encoder.check_layers(layers), encoder.check_layers(trained)
        if encoder.bits == 8:
            hint = "leave out --encoder-bits"
            raise SubdpError("8-bit products cannot be used with trained encoder layers", hint=hint)
        if max(self.trained) > max(self.layers):
            hint = f"the network reads layers up to {max(self.layers)}; name none above it"
            raise SubdpError(f"layer {max(self.trained)} of the encoder cannot be trained", hint=hint)
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

    def __reduce__(self) -> Any:
        """Other processes load the encoder from disk, and are sent only what is trained of it."""
        trainable = any(parameter.requires_grad for parameter in self.parameters())
        return _rebuilt, (self._own[0], self.layers, self.trained, self.state_dict(), trainable)

    def forward(self, sentences: Sequence[Words]) -> Batch:
        """The vectors of sentences, as the network reads them."""
        vectors, sizes = self._own[0].tensors(sentences, self.layers)
        return _batch(vectors, sizes)


def _rebuilt(
    encoder: Encoder, layers: Sequence[int], trained: Sequence[int], state: Mapping[str, Tensor], trainable: bool
) -> TrainableEncoder:
    twin = TrainableEncoder(encoder, layers, trained)
    twin.load_state_dict(state)
    return twin.requires_grad_(trainable)


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


def with_trained_layers(
    encoder: Encoder, layers: Sequence[int], state: Mapping[str, Tensor]
) -> TrainableEncoder | None:
    """The encoder with the trained layers of a stored state, whose tensors' names tell which; none if it is empty."""
    if not state:
        return None
    trained = TrainableEncoder(encoder, layers, sorted({int(name.split(".")[1]) for name in state}))
    trained.load_state_dict(dict(state))
    return trained
