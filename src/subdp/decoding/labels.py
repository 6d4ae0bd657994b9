"""Labels and tags of words whose heads are known, chosen together where they must agree. Numpy only."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.floating]
Integers = npt.NDArray[np.integer]
Booleans = npt.NDArray[np.bool_]


def labels_with_tags(
    labels: Floats, tags: Floats, roots: Booleans, punct: int | None, tagged_punct: int | None
) -> tuple[Integers, Integers]:
    """The label and the tag of each word with the highest sum of scores, such that both call it punctuation or neither.

    A word below ROOT is exempt: a sentence that is nothing but a full stop has a root all the same. What must not be
    chosen has the score −inf; where nothing else is left, the tag decides.

    *Shape:* labels [..., L], tags [..., K], roots [...] → numbers of labels and of tags [...].
    """
    label, tag = labels.argmax(-1), tags.argmax(-1)
    if punct is None or tagged_punct is None:
        return label, tag
    as_punct = labels[..., punct] + tags[..., tagged_punct]
    other_labels, other_tags = _without(labels, punct), _without(tags, tagged_punct)
    as_other = other_labels.max(-1) + other_tags.max(-1)
    both = (as_punct > as_other) | ((as_punct == as_other) & (tag == tagged_punct))
    together = np.where(both, punct, other_labels.argmax(-1)), np.where(both, tagged_punct, other_tags.argmax(-1))
    return np.where(roots, label, together[0]), np.where(roots, tag, together[1])


def _without(scores: Floats, value: int) -> Floats:
    result = scores.copy()
    result[..., value] = -np.inf
    return result
