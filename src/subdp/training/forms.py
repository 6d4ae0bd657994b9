"""What word forms are tagged as in a bitext: a second witness for the tag of each occurrence.

A tag depends on the form of a word more than on anything else, and a link that is wrong or missing in one place is
right in others. Let P̂2(k|p) be what the tag of word p is to be fitted to, and P(k|f) the mean of that over all
occurrences of its form f, p itself among them, normalised. Then

    P̂2(k|p) ← (1 − λ) · P̂2(k|p) + (1 − (1 − λ) · Σ_k P̂2(k|p)) · P(k|f)

so that the form receives NULL mass as well. Upper and lower case are one form, since sentences begin with either.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

import numpy as np
import numpy.typing as npt

from subdp.training.packed import LEAST_MASS, Packed

Floats = npt.NDArray[np.float32]

LAYERS = ("upos", "xpos")
"""The layers that depend on forms in this way. An entity's B- or I-, say, depends on the words before it."""


@dataclass(frozen=True, slots=True, eq=False)
class Forms:
    """The tags of forms, by layer, and λ, their `share`. A form that is tagged nowhere has a row of zeros.

    Shape: means [forms + 1, K]; the last row is that of forms that are not known, and zero.
    """

    numbers: Mapping[str, int]
    means: Mapping[str, Floats]
    share: float

    @classmethod
    def of(cls, sentences: Sequence[Packed], layers: Mapping[str, int], share: float) -> Forms:
        """Those of all sentences; `layers` has the number of values K of each layer."""
        numbers = {form: row for row, form in enumerate(dict.fromkeys(_forms(sentences)))}
        means = {name: np.zeros((len(numbers) + 1, count), np.float32) for name, count in layers.items()}
        for one in sentences:
            rows = [numbers[form] for form in _forms([one])]
            for name, mean in means.items():
                np.add.at(mean, rows, _unpacked([one], name, mean.shape[1]))
        for mean in means.values():
            mean /= mean.sum(-1, keepdims=True).clip(min=LEAST_MASS)
        return cls(numbers, means, share)

    def shared(self, sentences: Sequence[Packed]) -> list[Packed]:
        """Sentences with tags that their words' forms have a share in; they share arrays, as those of `pack` do."""
        rows = [self.numbers.get(form, -1) for form in _forms(sentences)]
        ends = list(accumulate(len(one.words) for one in sentences))
        starts = np.repeat([0, *ends[:-1]], [len(one.words) for one in sentences])
        found = list(sentences)
        for name, mean in self.means.items():
            own, of_form = _unpacked(sentences, name, mean.shape[1]), mean[rows]
            less = (1 - self.share) * own
            both = less + (1 - less.sum(-1, keepdims=True)).clip(min=0) * of_form
            total = np.where(of_form.any(-1, keepdims=True), both, own)
            words, values = np.nonzero(total >= LEAST_MASS)
            cut = np.searchsorted(words, ends[:-1])
            places = np.split(np.stack([words - starts[words] + 1, values], axis=1).astype(np.int16), cut)
            masses = np.split(total[words, values].astype(np.float16), cut)
            found = [
                replace(one, places={**one.places, name: place}, masses={**one.masses, name: mass})
                for one, place, mass in zip(found, places, masses, strict=True)
            ]
        return found


def _forms(sentences: Iterable[Packed]) -> list[str]:
    return [word.casefold() for sentence in sentences for word in sentence.words]


def _unpacked(sentences: Sequence[Packed], name: str, count: int) -> Floats:
    """The masses of a layer, all sentences one after the other. Shape: [words, K]."""
    parts = []
    for sentence in sentences:
        part = np.zeros((len(sentence.words), count), np.float32)
        part[sentence.places[name][:, 0] - 1, sentence.places[name][:, 1]] = sentence.masses[name]
        parts.append(part)
    return np.concatenate(parts)
