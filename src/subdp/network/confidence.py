"""How sure the parser is of each word, as attributes for MISC that an annotator can read and sort by."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from subdp.network.prediction import Prediction

_WORTH_SHOWING = 0.05  # A rival less probable than this is noise to a person.
_RIVALS = 2


def confidences(found: Prediction, label_names: Sequence[str]) -> list[str]:
    """For each word, `HeadProb` and `LabelProb` of what was chosen, and `HeadAlt` and `LabelAlt` of its rivals, if any.

    A rival is a head or label that was not chosen but is likely: `HeadProb=0.930|LabelProb=0.880|HeadAlt=4:0.060`.
    """
    result = []
    for word, (head, label) in enumerate(zip(found.heads, found.labels, strict=True), 1):
        arcs, labels = found.arcs[word], found.label_probabilities[word - 1]
        parts = [f"HeadProb={arcs[head]:.3f}", f"LabelProb={labels[label]:.3f}"]
        heads = [other for other in _likeliest(arcs) if other not in (head, word)]
        names = [other for other in _likeliest(labels) if other != label]
        if heads:
            parts.append("HeadAlt=" + ",".join(f"{other}:{arcs[other]:.3f}" for other in heads[:_RIVALS]))
        if names:
            parts.append(
                "LabelAlt=" + ",".join(f"{label_names[other]}:{labels[other]:.3f}" for other in names[:_RIVALS])
            )
        result.append("|".join(parts))
    return result


def _likeliest(probabilities: np.ndarray[tuple[int], np.dtype[np.float32]]) -> list[int]:
    order = np.argsort(-probabilities, kind="stable").tolist()
    return [index for index in order if probabilities[index] >= _WORTH_SHOWING]
