"""What word forms are tagged as in a whole bitext: a second witness for the tag of each of their occurrences.

A tag depends on the form of a word more than on anything else. Where a link is wrong or missing, the other occurrences
of the same form tell. Of a word p with the form f, where P̂2(k|p) is what its tag is to be fitted to, and P(k|f) is the
mean of that over all occurrences of f, normalised:

    P̂2(k|p) ← (1 − λ) · P̂2(k|p) + (1 − (1 − λ) · Σ_k P̂2(k|p)) · P(k|f)

so that NULL mass goes to the form as well. Upper and lower case are one form.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from subdp.encoder.batch import Words
from subdp.training.packed import LEAST_MASS, Packed

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True, eq=False)
class Forms:
    """The tags of forms, by layer, and λ, their `share`. A form that has no tag anywhere has a row of zeros.

    Shape: means [forms, K].
    """

    numbers: Mapping[str, int]
    means: Mapping[str, Floats]
    share: float

    @classmethod
    def of(cls, sentences: Sequence[Packed], layers: Mapping[str, int], share: float) -> Forms:
        """Those of all sentences; `layers` has the number of values K of each layer."""
        numbers = {form: row for row, form in enumerate(dict.fromkeys(_forms(one.words for one in sentences)))}
        means = {name: np.zeros((len(numbers), count), np.float32) for name, count in layers.items()}
        for one in sentences:
            rows = [numbers[form] for form in _forms([one.words])]
            for name, mean in means.items():
                np.add.at(mean, rows, _unpacked(one, name, mean.shape[1]))
        for mean in means.values():
            mean /= mean.sum(-1, keepdims=True).clip(min=LEAST_MASS)
        return cls(numbers, means, share)

    def shared(self, sentence: Packed) -> Packed:
        """The sentence with tags that its words' forms have a share in."""
        places, masses = dict(sentence.places), dict(sentence.masses)
        known = np.array([self.numbers.get(form, -1) for form in _forms([sentence.words])])
        for name, mean in self.means.items():
            own = _unpacked(sentence, name, mean.shape[1])
            of_form = np.where(known[:, None] >= 0, mean[known], 0)
            less = (1 - self.share) * own
            both = less + (1 - less.sum(-1, keepdims=True)).clip(min=0) * of_form
            total = np.where(of_form.any(-1, keepdims=True), both, own)
            words, values = np.nonzero(total >= LEAST_MASS)
            places[name] = np.stack([words + 1, values], axis=1).astype(np.int16)
            masses[name] = total[words, values].astype(np.float16)
        return replace(sentence, places=places, masses=masses)


def _forms(sentences: Iterable[Words]) -> list[str]:
    return [word.casefold() for words in sentences for word in words]


def _unpacked(sentence: Packed, name: str, count: int) -> Floats:
    """The masses of a layer. Shape: [n, K]."""
    found = np.zeros((len(sentence.words), count), np.float32)
    found[sentence.places[name][:, 0] - 1, sentence.places[name][:, 1]] = sentence.masses[name]
    return found
