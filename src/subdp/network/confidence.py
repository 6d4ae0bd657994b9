"""How sure the parser is of each word, as attributes for MISC that an annotator can read and sort by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np

from subdp.corpus.layers import find_layer
from subdp.network.prediction import Prediction
from subdp.projection.substructures import LABELS, SUBSTRUCTURES, Inventory

_Row: TypeAlias = "np.ndarray[tuple[int], np.dtype[np.float32]]"
_WORTH_SHOWING = 0.05  # A rival less probable than this is noise to a person.
_RIVALS = 2


def confidences(found: Prediction, inventory: Inventory, written: Mapping[str, Sequence[str]]) -> list[str]:
    """For each word the probability of what was chosen and of its rivals, if any.

    Of a layer, what was chosen is what is `written`: the input's own value, where it has one. A value that the parser
    does not know has no probability.

    `HeadProb`, `LabelProb` and, for every layer, `UPOSProb` and the like; rivals in `HeadAlt`, `LabelAlt`, `UPOSAlt`.
    """
    labels = inventory[LABELS.name]
    layers = [
        (name, find_layer(name).title, {value: number for number, value in enumerate(inventory[name])})
        for name in found.tags
        if name not in SUBSTRUCTURES
    ]
    result = []
    for word, head in enumerate(found.heads, 1):
        arcs = found.arcs[word]
        heads = [other for other in _likeliest(arcs) if other not in (head, word)]
        rows = [
            ("Head", f"{arcs[head]:.3f}", [f"{other}:{arcs[other]:.3f}" for other in heads[:_RIVALS]]),
            ("Label", *_of_values(found.label_probabilities[word - 1], found.labels[word - 1], labels)),
        ]
        for name, title, numbers in layers:
            share, value = found.tag_probabilities[name][word - 1], numbers.get(written[name][word - 1])
            if value is not None:
                rows.append((title, *_of_values(share, value, inventory[name])))
        notes = [f"{title}Prob={probability}" for title, probability, _ in rows]
        notes += [f"{title}Alt={','.join(rivals)}" for title, _, rivals in rows if rivals]
        result.append("|".join(notes))
    return result


def _of_values(share: _Row, chosen: int, names: Sequence[str]) -> tuple[str, list[str]]:
    """The probability of a value, and its rivals with theirs."""
    rivals = [other for other in _likeliest(share) if other != chosen][:_RIVALS]
    return f"{share[chosen]:.3f}", [f"{names[other]}:{share[other]:.3f}" for other in rivals]


def _likeliest(probabilities: _Row) -> list[int]:
    order = np.argsort(-probabilities, kind="stable").tolist()
    return [index for index in order if probabilities[index] >= _WORTH_SHOWING]
