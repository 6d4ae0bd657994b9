"""Sentences put together for a network: what a batch holds, which sentences go into one, who makes it from words.

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
"""Words in a batch, padding included, where nothing is trained."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Sentences as the network wants them: all their stored vectors, and where each word's two are.

    The network mixes the layers first, K vectors and not two for each word, and only then looks up the words:
    `mixed = weights @ vectors; words = cat(mixed[first], mixed[last])`.

    *Shape:* `vectors` [K, layers, hidden] float16; `first`, `last` [sentences, longest] int64, with 0 behind a
    sentence's end; `lengths` [sentences] int64, in words.
    """

    vectors: Tensor
    first: Tensor
    last: Tensor
    lengths: Tensor


Batcher: TypeAlias = Callable[[Sequence[Words]], Batch]
"""From tokenised sentences to the vectors that the network reads: a feature store's `batch`, or an encoder."""


def chunks(sentences: Iterable[_Sentence], words: int) -> Iterator[list[_Sentence]]:
    """Sentences in lists that end with the sentence that makes them this many words long, or longer.

    Where whole lists are taken away, the rest falls into the same lists as before.
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
    order = np.argsort(np.asarray(lengths) + random.random(len(lengths)))
    groups: list[list[int]] = [[]]
    for index in order.tolist():
        if groups[-1] and (len(groups[-1]) + 1) * lengths[index] > batch_words:
            groups.append([])
        groups[-1].append(index)
    for number in random.permutation(len(groups)):
        if groups[number]:
            yield groups[number]
