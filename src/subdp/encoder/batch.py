"""Batches: what one holds, which sentences go into it, and the `Batcher` that makes it from words.

Everything above this folder takes a `Batcher` and does not know whether vectors come from a file or from an encoder.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

import numpy as np
from torch import Tensor

Words: TypeAlias = Sequence[str]
_Sentence = TypeVar("_Sentence", bound=Sized)

UNTRAINED_WORDS = 1000
"""Words in a batch, padding included, outside of training."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Sentences as the network reads them: subword vectors, and where the first and the last of each word are.

    Of embeddings alone, the mean of a word's subwords stands in the place of the first.

    The network mixes the layers of the K vectors first and then looks up two for each word, not the other way round:
    `mixed = weights @ vectors; words = cat(mixed[first], mixed[last])`.

    *Shape:* `vectors` [K, layers, hidden], from a store in float16; `first`, `last` [sentences, longest] int64, padded
    with 0 or any other number below K; `lengths` [sentences] int64, in words.
    """

    vectors: Tensor
    first: Tensor
    last: Tensor
    lengths: Tensor


Batcher: TypeAlias = Callable[[Sequence[Words]], Batch]
"""From tokenised sentences to the vectors that the network reads: a feature store's `batch`, or an encoder."""


def chunks(sentences: Iterable[_Sentence], words: int) -> Iterator[list[_Sentence]]:
    """Lists of consecutive sentences, each closed as soon as it has this many words or more.

    If whole lists are left out of the input, the others stay the same.
    """
    chunk: list[_Sentence] = []
    size = 0
    for sentence in sentences:
        chunk.append(sentence)
        size += len(sentence)
        if size >= words:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk


def batches(lengths: Sequence[int], batch_words: int, seed: int) -> Iterator[list[int]]:
    """Batches of examples of about the same length, at most `batch_words` words with padding, in random order.

    A longer sentence is a batch of its own. Every example is in exactly one batch.
    """
    random = np.random.default_rng(seed)
    sizes = np.asarray(lengths, np.int64)
    order = np.argsort(sizes + random.random(len(sizes)))
    starts = [0]  # of the batches, in this order
    for place, size in enumerate(sizes[order].tolist()):
        if place > starts[-1] and (place - starts[-1] + 1) * size > batch_words:
            starts.append(place)
    ends = [*starts[1:], len(order)]
    for number in random.permutation(len(starts)).tolist():
        if starts[number] < ends[number]:
            yield order[starts[number] : ends[number]].tolist()
