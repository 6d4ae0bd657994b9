"""What sentences are to be fitted to, worked out once and kept in memory: a list of the places where there is mass.

Distributions over heads, labels and tags are nearly all zeros: where the weight of labels is that of their arcs, a word
has some 30 places with a mass of 10⁻⁴ or more, in 200 bytes, where all of them would take 4,000. What is less is
dropped, and masses are in half precision. The sentences of a batch share its arrays: small ones of their own, between
large ones that are freed, would take several times the memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from subdp.encoder.batch import Words
from subdp.network.scorers import PairScores, Scored

LEAST_MASS = 1e-4
"""Less than this is not kept."""
MOST_WORDS = 5_000_000
"""Words of packed sentences to hold in memory: one gigabyte."""


@dataclass(frozen=True, slots=True, eq=False)
class Packed:
    """A sentence, and the weights of its log probabilities in the loss (`loss_weights`) by substructure.

    Shape: places [places, axes] int16, masses [places] float16; the axes are those of `projection/substructures.py`.
    """

    words: Words
    places: Mapping[str, npt.NDArray[np.int16]]
    masses: Mapping[str, npt.NDArray[np.float16]]


def pack(weights: Mapping[str, Tensor], sentences: Sequence[Words]) -> list[Packed]:
    """The weights of a batch, packed by sentence.

    Shape: as `loss_weights` gives them.
    """
    places: list[dict[str, npt.NDArray[np.int16]]] = [{} for _ in sentences]
    masses: list[dict[str, npt.NDArray[np.float16]]] = [{} for _ in sentences]
    for name, values in weights.items():
        found = (values >= LEAST_MASS).nonzero()
        mass = values[found.unbind(1)].half().cpu().numpy()
        ends = torch.bincount(found[:, 0], minlength=len(sentences)).cumsum(0)[:-1].tolist()
        axes = found[:, 1:].to(torch.int16).cpu().numpy()
        for row, (place, part) in enumerate(zip(np.split(axes, ends), np.split(mass, ends), strict=True)):
            places[row][name], masses[row][name] = place, part
    return [Packed(*one) for one in zip(sentences, places, masses, strict=True)]


def packed_loss(scored: Scored, sentences: Sequence[Packed]) -> Tensor:
    """−Σ mass · log P2, summed over the places of all sentences of a batch that a network has scored."""
    total = torch.zeros((), device=scored.mask.device)
    for name, part in scored.parts.items():
        counts = torch.tensor([len(sentence.masses[name]) for sentence in sentences])
        rows = torch.arange(len(sentences)).repeat_interleave(counts)
        axes = torch.from_numpy(np.concatenate([sentence.places[name] for sentence in sentences])).long()
        masses = torch.from_numpy(np.concatenate([sentence.masses[name] for sentence in sentences])).to(total.device)
        logs = part.all() if isinstance(part, PairScores) else part.log_probabilities
        at = [index.to(total.device) for index in (rows, *axes.unbind(1))]
        total = total - (masses.to(logs.dtype) * logs[tuple(at)]).sum()
    return total
