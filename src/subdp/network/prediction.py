"""A network run over a stream of sentences: the distributions or the best tree of each, in order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import torch

from subdp.decoding.decode import decode_batch
from subdp.encoder.batch import Batcher, Words, batches, chunks
from subdp.encoder.threads import side_by_side
from subdp.network.biaffine import Biaffine
from subdp.network.scorers import HeadScores, PairScores, Scored

Floats = npt.NDArray[np.float32]

_BATCH_WORDS = {"cpu": 1000}  # Words, with padding, in one pass.
_OTHER_BATCH_WORDS = 8000
_CHUNK = 8  # Batches read ahead, so that sentences of similar length go through the network together.
_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True, eq=False)
class Prediction:
    """The best tree of a sentence of n words, with the probabilities that it was chosen from.

    Shape: heads, labels [n] (indices); arcs [n+1, n+1], P(head | dependent); label_probabilities
    [n, L], P(label | chosen head → dependent); words [n, K] for each substructure of kind word, P(value | word).
    """

    heads: tuple[int, ...]
    labels: tuple[int, ...]
    arcs: Floats
    label_probabilities: Floats
    words: Mapping[str, Floats]


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
        labels = scored.labels.at(padded)
        if root_label is not None:
            names = torch.arange(labels.shape[-1], device=labels.device) == root_label
            labels = labels.masked_fill(names != (padded == 0)[..., None], -torch.inf).log_softmax(-1)
        probabilities = labels.exp().cpu().numpy()
        words = {name: scores.exp().cpu().numpy() for name, scores in scored.words().items()}
        return [
            Prediction(
                tree,
                tuple(probabilities[row, 1 : len(tree) + 1].argmax(-1).tolist()),
                np.exp(arcs[row, : len(tree) + 1, : len(tree) + 1]),
                probabilities[row, 1 : len(tree) + 1],
                {name: values[row, 1 : len(tree) + 1] for name, values in words.items()},
            )
            for row, tree in enumerate(heads)
        ]

    return _in_order(network, sentences, batcher, of_batch)


def distributions(network: Biaffine, sentences: Iterable[Words], batcher: Batcher) -> Iterator[dict[str, Floats]]:
    """The distributions of every sentence, by substructure; the rows of ROOT, which has no head or tag, are zero.

    Shape: as in `projection/substructures.py`.
    """

    def of_batch(scored: Scored, lengths: list[int]) -> list[dict[str, Floats]]:
        found: dict[str, Floats] = {}
        square = {name for name, part in scored.parts.items() if isinstance(part, HeadScores | PairScores)}
        for name, part in scored.parts.items():
            scores = part.all() if isinstance(part, PairScores) else part.log_probabilities
            found[name] = scores.exp().cpu().numpy()
            if not isinstance(part, PairScores):
                found[name][:, 0] = 0
        return [
            {
                name: values[row, : n + 1, : n + 1] if name in square else values[row, : n + 1]
                for name, values in found.items()
            }
            for row, n in enumerate(lengths)
        ]

    return _in_order(network, sentences, batcher, of_batch)


def chunk_words(device: torch.device) -> int:
    """How many words are read ahead; predictions depend, in rounding, on the sentences read together."""
    return _CHUNK * _BATCH_WORDS.get(device.type, _OTHER_BATCH_WORDS)


def _in_order(
    network: Biaffine,
    sentences: Iterable[Words],
    batcher: Batcher,
    of_batch: Callable[[Scored, list[int]], list[_Result]],
) -> Iterator[_Result]:
    device = network.device
    for chunk in chunks(sentences, chunk_words(device)):
        results: list[Any] = [None] * len(chunk)

        def run(indices: list[int], chunk: list[Words] = chunk, results: list[Any] = results) -> None:
            chosen = [chunk[index] for index in indices]
            with torch.inference_mode():
                found = of_batch(network(batcher(chosen)), [len(words) for words in chosen])
            for index, result in zip(indices, found, strict=True):
                results[index] = result

        words = chunk_words(device) // _CHUNK
        side_by_side(run, batches([len(sentence) for sentence in chunk], words, seed=0), device)
        yield from results
