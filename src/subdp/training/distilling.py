"""Distilling: a smaller network learns to predict what a larger one predicts on raw text, and on text made up from it.

This is SubDP with the identity as alignment: the student is fitted to the teacher's distributions by the same losses.
Gives back what a model card says of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from subdp.corpus.treebank import Sentence
from subdp.encoder.batch import Words
from subdp.network.prediction import UPOS, over_batches
from subdp.network.scorers import PairScores, Scored
from subdp.projection.substructures import LABELS
from subdp.support.errors import SubdpError
from subdp.support.progress import progress
from subdp.support.settings import LossConfig, TrainConfig
from subdp.training.adapting import HELD_OUT
from subdp.training.examples import TaughtExamples
from subdp.training.loop import mean_loss
from subdp.training.losses import Projected, loss_weights
from subdp.training.packed import Packed, pack
from subdp.training.student import Student

_MOST_WORDS = 150  # The labels of a longer sentence would take too much memory.
_LOSSES = LossConfig(label_weight="arc")
_TIMES = 2  # Sentences made up from each one.
_ENOUGH = 450_000  # Words of the text and of what is made up together, at most: of much text nothing is made up.
_REPLACED = 0.3  # The share of their words that are replaced.
_MOST_HELD_OUT = 1000  # Sentences: enough to choose an epoch by, whatever the size of the text.


def check_frozen(config: TrainConfig, what: str = "a distilled parser", section: str = "train") -> None:
    """Raise if layers of the encoder are to be trained: a student reads the encoder as it is."""
    if config.encoder_layers:
        raise SubdpError(f"the encoder of {what} is not trained", hint=f"leave out {section}.encoder-layers")


def worth_learning(sentences: Iterable[Sentence]) -> list[Words]:
    """The words of each sentence, once, unless it is too long."""
    kept: list[Words] = [words for words in dict.fromkeys(one.words for one in sentences) if len(words) <= _MOST_WORDS]
    if not kept:
        raise SubdpError("there is no text to learn from")
    return kept


def distil(
    student: Student,
    teacher: Student,
    sentences: Sequence[Words],
    config: TrainConfig,
    *,
    fingerprint: str,
    seed: int,
    folder: Path | None = None,
) -> dict[str, Any]:
    """Train the student in place on what the teacher, of this `fingerprint`, predicts; held-out sentences choose the
    epoch.
    """
    order = np.random.default_rng(seed).permutation(len(sentences)).tolist()
    apart = min(round(HELD_OUT * len(sentences)), _MOST_HELD_OUT)
    taught = predicted(teacher, sentences)
    own = [taught[index] for index in order[apart:]]
    known = set(sentences)
    more = predicted(teacher, [words for words in made_up(own, seed) if words not in known], "parsing more text")
    examples = TaughtExamples(student.batcher, [*own, *more], fingerprint)
    test = replace(examples, sentences=[taught[index] for index in order[:apart]])
    facts = {"sentences": len(sentences), "words": sum(map(len, sentences)), "made_up": len(more)}
    return {"distilled_on": facts} | student.fit(
        examples,
        config,
        seed=seed,
        held_out=(lambda current: -mean_loss(current, test)) if apart else None,
        folder=folder,
        title="training the student",
    )


def made_up(taught: Sequence[Packed], seed: int) -> list[Words]:
    """New sentences from those that were taught: some words of each are replaced by others with the same tag, each form
    with the same probability.

    Text is often short, and a student that reads words out of context must see each of them in many places. What such
    a sentence means does not matter: the teacher is asked about it as about any other. Without tags, words with the
    same relation replace each other. A few sentences stay as they are.
    """
    forms = np.array([word for one in taught for word in one.words], object)
    tags = np.concatenate([_tags(one) for one in taught])
    ends = np.cumsum([len(one.words) for one in taught] * _TIMES)
    count = int(np.searchsorted(ends, _ENOUGH - len(forms), side="right"))
    if count == 0:
        return []
    changed, kinds = (np.tile(values, _TIMES)[: ends[count - 1]] for values in (forms, tags))
    chosen, drawn = np.random.default_rng(seed).random((2, len(kinds)))  # At once: a tag moves no other word's draw.
    for tag in np.unique(tags):
        pool = np.unique(forms[tags == tag])
        places = np.flatnonzero((kinds == tag) & (chosen < _REPLACED))
        changed[places] = pool[(drawn[places] * len(pool)).astype(int)]
    return list(dict.fromkeys(tuple(part) for part in np.split(changed, ends[: count - 1])))


def _tags(sentence: Packed) -> npt.NDArray[np.int64]:
    """The likeliest tag of each word, or without tags its likeliest relation, as numbers."""
    name = UPOS if UPOS in sentence.places else LABELS.name
    places, found = sentence.places[name], np.full(len(sentence.words), -1)
    order = sentence.masses[name].argsort(kind="stable")  # The last one that is set is the likeliest.
    found[places[order, 0] - 1] = places[order, -1]
    return found


def predicted(teacher: Student, sentences: Sequence[Words], title: str = "parsing the text") -> list[Packed]:
    """The teacher's distributions over every sentence, packed: 200 bytes a word."""

    def of_batch(scored: Scored, chosen: Sequence[Words]) -> list[Packed]:
        own = {
            name: (part.all() if isinstance(part, PairScores) else part.log_probabilities).exp()
            for name, part in scored.parts.items()
        }
        whole = Projected(own, torch.ones_like(scored.mask), torch.zeros(scored.mask.shape))
        return pack(loss_weights(whole, scored.mask, _LOSSES), chosen)

    found = []
    with progress(title, sum(map(len, sentences)), "words") as advance:
        for packed in over_batches(teacher.network, sentences, lambda words: words, teacher.batcher, of_batch):
            found.append(packed)
            advance(len(packed.words))
    return found
