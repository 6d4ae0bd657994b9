"""A network run over a stream of sentences: the distributions or the best tree of each, in order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass
from itertools import chain
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import torch

from subdp.corpus.layers import UNANNOTATED
from subdp.corpus.treebank import Sentence
from subdp.decoding.decode import decode_batch
from subdp.decoding.labels import agreement, groups_of, labels_with_tags, one_of_each
from subdp.encoder.batch import Batcher, Words, batches, chunks
from subdp.encoder.threads import side_by_side
from subdp.network.biaffine import Biaffine
from subdp.network.scorers import HeadScores, PairScores, Scored
from subdp.projection.substructures import LABELS, Inventory

Floats = npt.NDArray[np.float32]

_BATCH_WORDS = {"cpu": 1000}  # Words, with padding, in one pass.
_OTHER_BATCH_WORDS = 8000
_CHUNK = 8  # Batches read ahead, so that sentences of like length go through the network together.
_Item = TypeVar("_Item", bound=Sized)
_Result = TypeVar("_Result")

UPOS = "upos"


@dataclass(frozen=True, slots=True, eq=False)
class Prediction:
    """The best tree of a sentence of n words and its tags, with the probabilities that they were chosen from.

    Shape: heads, labels [n] (numbers of heads and of labels); tags [n] for each substructure of words, numbers of its
    values; arcs [n+1, n+1], P(head | dependent); label_probabilities [n, L], P(label | chosen head → dependent);
    tag_probabilities [n, K] for each substructure of words, P(value | word).
    """

    heads: tuple[int, ...]
    labels: tuple[int, ...]
    tags: Mapping[str, tuple[int, ...]]
    arcs: Floats
    label_probabilities: Floats
    tag_probabilities: Mapping[str, Floats]


def predict(
    network: Biaffine, sentences: Iterable[Sentence], batcher: Batcher, inventory: Inventory, *, retag: bool = False
) -> Iterator[Prediction]:
    """The best tree of every sentence, and its tags.

    The label `root` goes to the root and to no other word; no word has two subjects or objects. Where the network
    predicts UPOS, labels and tags agree (`decoding/labels.py`), and a word with letters is not PUNCT; a UPOS that a
    sentence has already stays, unless it is to be `retag`ged.
    """
    names, values = inventory[LABELS.name], inventory.get(UPOS, ())
    root = names.index("root") if "root" in names else None
    agreed, groups = agreement(names, values), groups_of(names)

    def of_batch(scored: Scored, chosen: Sequence[Sentence]) -> list[Prediction]:
        arcs = scored.arcs.cpu().numpy()
        heads = decode_batch(arcs, [len(sentence) for sentence in chosen])
        inside = scored.mask.cpu().numpy()
        padded: npt.NDArray[np.int64] = np.zeros(inside.shape, np.int64)
        padded[inside] = list(chain.from_iterable(heads))
        at = torch.from_numpy(padded).to(scored.arcs.device)
        labels, roots = scored.labels.at(at), at == 0
        if root is not None:
            is_root = torch.arange(labels.shape[-1], device=labels.device) == root
            labels = labels.masked_fill(is_root != roots[..., None], -torch.inf).log_softmax(-1)
        tags = {name: scores.cpu().numpy() for name, scores in scored.words().items()}
        best = {name: scores.argmax(-1) for name, scores in tags.items()}
        scores = labels.cpu().numpy()
        if UPOS in tags:
            allowed = tags[UPOS] + _allowed(chosen, values, tags[UPOS].shape, retag=retag)
            scores, tag_of = labels_with_tags(scores, allowed, roots.cpu().numpy(), agreed)
        # All sentences at once, their heads numbered apart.
        apart = padded + padded.shape[1] * np.arange(len(padded))[:, None]
        best_labels: npt.NDArray[np.int64] = np.zeros(padded.shape, np.int64)
        best_labels[inside] = one_of_each(scores[inside], apart[inside], groups)
        if UPOS in tags:
            best[UPOS] = np.take_along_axis(tag_of, best_labels[..., None], -1).squeeze(-1)
        numbers, labelled = {name: values.tolist() for name, values in best.items()}, best_labels.tolist()
        chances, probabilities = np.exp(arcs), labels.exp().cpu().numpy()
        shares = {name: np.exp(scores) for name, scores in tags.items()}
        return [
            Prediction(
                tree,
                tuple(labelled[row][words]),
                {name: tuple(values[row][words]) for name, values in numbers.items()},
                chances[row, : len(tree) + 1, : len(tree) + 1],
                probabilities[row, words],
                {name: share[row, words] for name, share in shares.items()},
            )
            for row, tree in enumerate(heads)
            for words in [slice(1, len(tree) + 1)]
        ]

    return over_batches(network, sentences, lambda sentence: sentence.words, batcher, of_batch)


def _allowed(sentences: Sequence[Sentence], values: Sequence[str], size: tuple[int, ...], *, retag: bool) -> Floats:
    """0 for every UPOS that a word may have, −inf for the others. Shape: [B, N+1, K]."""
    numbers = {value: number for number, value in enumerate(values)}
    punct = numbers.get("PUNCT")
    allowed = np.zeros(size, np.float32)
    for row, sentence in enumerate(sentences):
        for word, (form, tag) in enumerate(zip(sentence.words, sentence.upos, strict=True), 1):
            if tag != UNANNOTATED and not retag:
                if tag in numbers:
                    allowed[row, word] = -np.inf
                    allowed[row, word, numbers[tag]] = 0
                elif punct is not None:
                    allowed[row, word, punct] = -np.inf
            elif punct is not None and any(map(str.isalpha, form)):
                allowed[row, word, punct] = -np.inf
    return allowed


def distributions(network: Biaffine, sentences: Iterable[Words], batcher: Batcher) -> Iterator[dict[str, Floats]]:
    """The distributions of every sentence, by substructure; the rows of ROOT, which has no head or tag, are zero.

    Shape: as in `projection/substructures.py`.
    """

    def of_batch(scored: Scored, chosen: Sequence[Words]) -> list[dict[str, Floats]]:
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
            for row, n in enumerate(map(len, chosen))
        ]

    return over_batches(network, sentences, lambda words: words, batcher, of_batch)


def chunk_words(device: torch.device) -> int:
    """How many words are read ahead; predictions depend, in rounding, on the sentences read together."""
    return _CHUNK * _BATCH_WORDS.get(device.type, _OTHER_BATCH_WORDS)


def over_batches(
    network: Biaffine,
    sentences: Iterable[_Item],
    words_of: Callable[[_Item], Words],
    batcher: Batcher,
    of_batch: Callable[[Scored, Sequence[_Item]], list[_Result]],
) -> Iterator[_Result]:
    """What `of_batch` makes of the network's scores of sentences, in order, as a stream."""
    device = network.device
    for chunk in chunks(sentences, chunk_words(device)):
        results: list[Any] = [None] * len(chunk)

        def run(indices: list[int], chunk: list[_Item] = chunk, results: list[Any] = results) -> None:
            chosen = [chunk[index] for index in indices]
            with torch.inference_mode():
                found = of_batch(network(batcher([words_of(item) for item in chosen])), chosen)
            for index, result in zip(indices, found, strict=True):
                results[index] = result

        words = chunk_words(device) // _CHUNK
        side_by_side(run, batches([len(item) for item in chunk], words, seed=0), device)
        yield from results
