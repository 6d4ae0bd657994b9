"""A network run over a stream of sentences: the distributions of each, or its best tree, in the order they came."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import torch

from subdp.decoding.decode import decode_batch
from subdp.encoder.batch import Batch, Batcher, Words, batches, chunks
from subdp.encoder.encoder import Encoder
from subdp.encoder.threads import side_by_side
from subdp.network.biaffine import Biaffine, Scored

Floats = npt.NDArray[np.float32]

_BATCH_WORDS = {"cpu": 1000}  # Words, with padding, in one pass.
_CHUNK = 8  # Batches read ahead at least, so that sentences of like length go through the network together.
_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True, eq=False)
class Prediction:
    """The best tree of a sentence of n words, with the probabilities it was chosen from.

    Shape: heads, labels [n] (numbers of heads and of labels); arcs [n+1, n+1], P(head | dependent); label_probabilities
    [n, L], P(label | chosen head → dependent).
    """

    heads: tuple[int, ...]
    labels: tuple[int, ...]
    arcs: Floats
    label_probabilities: Floats


def predict(
    network: Biaffine, sentences: Iterable[Words], batcher: Batcher, root_label: int | None
) -> Iterator[Prediction]:
    """The best tree of every sentence; `root_label` is given to the root and to no other word."""

    def of_batch(scored: Scored, lengths: list[int]) -> list[Prediction]:
        arcs = scored.arcs.cpu().numpy()
        heads = decode_batch(arcs, lengths)
        padded = torch.zeros(scored.mask.shape, dtype=torch.long)
        for row, tree in enumerate(heads):
            padded[row, 1 : len(tree) + 1] = torch.tensor(tree)
        padded = padded.to(scored.arcs.device)
        labels = scored.labels_at(padded)
        if root_label is not None:
            names = torch.arange(labels.shape[-1], device=labels.device) == root_label
            labels = labels.masked_fill(names != (padded == 0)[..., None], -torch.inf).log_softmax(-1)
        probabilities = labels.exp().cpu().numpy()
        return [
            Prediction(
                tree,
                tuple(probabilities[row, 1 : len(tree) + 1].argmax(-1).tolist()),
                np.exp(arcs[row, : len(tree) + 1, : len(tree) + 1]),
                probabilities[row, 1 : len(tree) + 1],
            )
            for row, tree in enumerate(heads)
        ]

    return _in_order(network, sentences, batcher, of_batch)


def distributions(network: Biaffine, sentences: Iterable[Words], batcher: Batcher) -> Iterator[tuple[Floats, Floats]]:
    """The arc and label distributions of every sentence, ROOT's own row empty.

    Shape: of each pair, [n+1, n+1] and [n+1, n+1, L].
    """

    def of_batch(scored: Scored, lengths: list[int]) -> list[tuple[Floats, Floats]]:
        arcs, labels = scored.arcs.exp(), scored.labels().exp().cpu().numpy()
        arcs[:, 0] = 0
        dense = arcs.cpu().numpy()
        return [(dense[row, : n + 1, : n + 1], labels[row, : n + 1, : n + 1]) for row, n in enumerate(lengths)]

    return _in_order(network, sentences, batcher, of_batch)


def encoder_batch(encoder: Encoder, layers: Sequence[int], sentences: Sequence[Words]) -> Batch:
    """The vectors of sentences fresh from the encoder, for text that is parsed once and need not be stored."""
    encoded = list(encoder.encode(sentences, layers))
    lengths = torch.tensor([len(words) for words in sentences])
    first = torch.zeros(len(encoded), int(lengths.max()), dtype=torch.long)
    last = torch.zeros_like(first)
    start = 0
    for row, sentence in enumerate(encoded):
        count = len(sentence.first)
        first[row, :count] = torch.from_numpy(sentence.first + start)
        last[row, :count] = torch.from_numpy(sentence.last + start)
        start += sentence.vectors.shape[1]
    # In half precision, as features are stored: a sentence gets the same tree by either way.
    vectors = torch.cat([torch.from_numpy(sentence.vectors).half() for sentence in encoded], dim=1)
    return Batch(vectors.transpose(0, 1), first, last, lengths)


def _in_order(
    network: Biaffine,
    sentences: Iterable[Words],
    batcher: Batcher,
    of_batch: Callable[[Scored, list[int]], list[_Result]],
) -> Iterator[_Result]:
    device = network.mix.device
    words = _BATCH_WORDS.get(device.type, 8000)
    for chunk in chunks(sentences, words * max(_CHUNK, 2 * torch.get_num_threads())):
        results: list[Any] = [None] * len(chunk)

        def run(indices: list[int], chunk: list[Words] = chunk, results: list[Any] = results) -> None:
            chosen = [chunk[index] for index in indices]
            with torch.inference_mode():
                found = of_batch(network(batcher(chosen)), [len(words) for words in chosen])
            for index, result in zip(indices, found, strict=True):
                results[index] = result

        side_by_side(run, batches([len(sentence) for sentence in chunk], words, seed=0), device)
        yield from results
