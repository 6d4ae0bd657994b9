"""Adapting a network to many languages at once: the parser from which adaptation to one more language starts.

Each language is projected by itself, since the teacher is not trusted equally in all of them (`null_mass.py`; with
2a − 1, also in a second round), and the same form may have other tags in each (`forms.py`). Text of the source language
is learnt beside them, with the source parser's own distributions: SubDP with the identity as alignment. Without it,
languages near the source lose.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from subdp.encoder.batch import Words
from subdp.projection.silver import Silver
from subdp.projection.substructures import Inventory
from subdp.support.errors import SubdpError
from subdp.support.settings import LossConfig, Settings
from subdp.support.values import as_dict
from subdp.training.adapting import check_silver
from subdp.training.distilling import predicted
from subdp.training.examples import SoftExamples, TaughtExamples
from subdp.training.packed import Packed
from subdp.training.student import Student


def check_many(silvers: Sequence[Silver], inventory: Inventory, losses: LossConfig) -> None:
    """Raise unless a parser with this inventory can learn from the silver of all these languages."""
    if not silvers:
        raise SubdpError("there is no silver to learn from", hint="give one for each language")
    if losses.label_weight == "none":
        hint = "take the label weight arc or best"
        raise SubdpError("the labels of all word pairs in many languages are too many to keep in memory", hint=hint)
    for silver in silvers:
        check_silver(silver, inventory)


def adapt_to_many(
    student: Student,
    teacher: Student,
    source: Student,
    silvers: Sequence[Silver],
    text: Sequence[Words],
    settings: Settings,
    *,
    fingerprints: Sequence[str],
    seed: int,
    folder: Path | None = None,
) -> dict[str, Any]:
    """Train in place on silver of several languages and on text of the source language; the last epoch is kept.

    The teacher is asked where projection has nothing to say or is not believed, the source parser what it predicts on
    the text; `fingerprints` are theirs.
    """
    sentences = [sentence for silver in silvers for sentence in _worked_out(teacher, silver, settings.losses)]
    pairs = len(sentences)
    sentences += predicted(source, text)
    facts = [*fingerprints, [one.made_from for one in silvers], as_dict(settings.losses), text]
    origin = hashlib.sha256(json.dumps(facts, sort_keys=True, default=dict).encode()).hexdigest()
    examples = TaughtExamples(student.batcher, sentences, origin)
    options: Any = {"seed": seed, "held_out": None, "folder": folder, "title": "adapting the parser"}
    made = {
        "adapted_on": {"pairs": pairs, "languages": len(silvers), "sentences": len(text)},
        "losses": as_dict(settings.losses),
    }
    return made | student.fit(examples, settings.adapt, **options)


def _worked_out(teacher: Student, silver: Silver, losses: LossConfig) -> list[Packed]:
    """What the target sentences of one language are to be fitted to."""
    examples = SoftExamples(teacher.batcher, silver, np.arange(len(silver)), losses)
    kept = examples.taught_by(teacher.network)[0].worked_out(teacher.network.device).kept
    if len(kept) < len(silver):
        raise SubdpError("there is too much to keep in memory", where=silver.where, hint="take fewer pairs")
    return [kept[number] for number in range(len(silver))]
