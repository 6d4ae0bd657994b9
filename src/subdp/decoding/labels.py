"""Labels and tags of words whose heads are known, chosen together so that they agree as Universal Dependencies demands.

Two rules, both exact: a word's label and its tag fit each other (`agreement`), and no word has two subjects or two
objects (`one_of_each`). Numpy only.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.floating]
Integers = npt.NDArray[np.integer]
Booleans = npt.NDArray[np.bool_]

_TAGS_OF = {
    "advmod": "ADJ ADV CCONJ DET PART SYM",
    "aux": "AUX",
    "cop": "AUX DET PRON SYM",
    "det": "DET PRON",
    "expl": "DET PART PRON",
    "nummod": "NOUN NUM SYM",
    "punct": "PUNCT",
}
_NO_TAGS_OF = {
    "case": "ADJ AUX DET NUM PRON PROPN",
    "cc": "ADJ AUX DET INTJ NOUN NUM PRON PROPN VERB",
    "mark": "ADJ AUX DET INTJ NOUN NUM PRON PROPN",
}
_ONCE = ({"nsubj", "csubj"}, {"obj"})


def agreement(labels: Sequence[str], tags: Sequence[str]) -> Booleans:
    """Which labels go with which UPOS, whatever the labels' subtypes: those of function words with few, PUNCT with
    `punct` alone. A label or a tag that would be left with nothing to go with is free.

    Shape: [L, K].
    """
    allowed = np.ones((len(labels), len(tags)), bool)
    for row, label in enumerate(labels):
        name = label.partition(":")[0]
        only, never = _TAGS_OF.get(name, "").split(), _NO_TAGS_OF.get(name, "").split()
        allowed[row] = [
            (tag in only if only else tag not in never) and (name == "punct" or tag != "PUNCT") for tag in tags
        ]
    allowed[~allowed.any(axis=1)] = True
    allowed[:, ~allowed.any(axis=0)] = True
    return allowed


def labels_with_tags(labels: Floats, tags: Floats, roots: Booleans, allowed: Booleans) -> tuple[Floats, Integers]:
    """For each label of a word, its score and that of the best tag that it agrees with, added up; and that tag.

    A word below ROOT is exempt: a sentence that is nothing but a full stop has a root all the same. What must not be
    chosen has the score −inf.

    Shape: labels [..., L], tags [..., K], roots [...], allowed [L, K] → scores [..., L], numbers of tags [..., L].
    """
    rules, rule = np.unique(allowed, axis=0, return_inverse=True)  # Most labels share one.
    fitting = np.where(rules | roots[..., None, None], tags[..., None, :], -np.inf)
    return labels + fitting.max(-1)[..., rule], fitting.argmax(-1)[..., rule]


def groups_of(labels: Sequence[str]) -> list[list[int]]:
    """The labels, by number, of which a word's dependents may have one: subjects and objects.

    A subject that is `:outer` may stand beside another.
    """
    parts = [label.partition(":") for label in labels]
    found = [[at for at, (name, _, more) in enumerate(parts) if name in names and more != "outer"] for names in _ONCE]
    return [numbers for numbers in found if numbers]


def one_of_each(scores: Floats, heads: Sequence[int] | Integers, groups: Sequence[Sequence[int]]) -> Integers:
    """The labels of words with the highest sum of scores such that no head has two dependents of one group.

    Of several sentences at once if their heads have different numbers.

    Shape: scores [n, L], heads [n] → [n].
    """
    best: Integers = scores.argmax(-1)
    at = np.asarray(heads)
    for head in {int(head) for group in groups for head in _repeated(at[np.isin(best, group)])}:
        words = np.flatnonzero(at == head)
        best[words] = _once(scores[words], groups)
    return best


def _repeated(heads: Integers) -> Integers:
    values, counts = np.unique(heads, return_counts=True)
    return values[counts > 1]


def _once(scores: Floats, groups: Sequence[Sequence[int]]) -> Integers:
    """`one_of_each` for the dependents of one head.

    Of each group, only as many candidates as there are groups can matter, since the other groups take one each at most.
    A word that can be nothing else keeps its label, and the group is then closed to the others.

    Shape: [m, L] → [m].
    """
    free = scores.copy()
    free[:, [label for group in groups for label in group]] = -np.inf
    forced = ~np.isfinite(free.max(-1))
    result: Integers = np.where(forced[:, None], scores, free).argmax(-1)
    with np.errstate(invalid="ignore"):
        gains = [
            np.nan_to_num(scores[:, group].max(-1) - free.max(-1), nan=-np.inf, posinf=-np.inf, neginf=-np.inf)
            for group in groups
        ]
    for group, gain in zip(groups, gains, strict=True):
        if np.isin(result[forced], group).any():
            gain[:] = -np.inf
    candidates = [[None, *np.argsort(-gain, kind="stable")[: len(groups)].tolist()] for gain in gains]
    possible = [chosen for chosen in product(*candidates) if _distinct(chosen)]
    chosen = max(possible, key=lambda words: sum(gain[word] for gain, word in _pairs(gains, words)))
    for group, word in _pairs(groups, chosen):
        result[word] = group[int(scores[word, group].argmax())]
    return result


def _pairs(each: Sequence[Any], words: Sequence[int | None]) -> list[tuple[Any, int]]:
    return [(one, word) for one, word in zip(each, words, strict=True) if word is not None]


def _distinct(words: Sequence[int | None]) -> bool:
    chosen = [word for word in words if word is not None]
    return len(set(chosen)) == len(chosen)
