"""From arc scores to trees: the exact maximum spanning arborescence, with one root or any number of them.

The algorithm is in `arborescence`; here its input is checked. Imports numpy and, after some 100 sentences, numba, which
takes nearly a second to import and, on a new machine, a few seconds to compile.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from subdp.decoding.arborescence import INFINITY, Integers, Scores, decoder
from subdp.support.errors import SubdpError

# Passed as objects: making them of types takes a twentieth of a call with 20 words.
_FLOAT64, _INT32 = np.dtype(np.float64), np.dtype(np.int32)


def decode(scores: npt.ArrayLike, *, single_root: bool = True) -> tuple[int, ...]:
    """The heads of the tree with the highest sum of scores: `heads[0]` is the head of word 1, and 0 is ROOT.

    Exact (up to float64 rounding). With `single_root` exactly one word hangs from ROOT, otherwise one or more. Row 0
    and the diagonal are ignored. A score of -inf is an arc of last resort: the tree has as few of them as
    possible, and among such trees the highest sum of the others, so that there is always an answer. Ties are
    broken the same way every time. NaN and +inf are errors.

    *Shape:* scores [n+1, n+1], dependent by head, ROOT at 0.
    """
    matrix = np.ascontiguousarray(scores, _FLOAT64)
    shape = matrix.shape
    if len(shape) != 2 or shape[0] != shape[1] or shape[0] == 0:
        hint = "a batch of sentences goes to decode_batch" if len(shape) == 3 else None
        raise SubdpError(f"scores must have the shape [n+1, n+1], not {list(shape)}", hint=hint)
    heads: Integers = np.zeros(shape[0], _INT32)
    if decoder(matrix.size)(matrix, single_root, heads) >= 0:
        raise _unusable(matrix, where=None)
    return tuple(heads.tolist()[1:])


def decode_batch(
    scores: npt.ArrayLike, lengths: npt.NDArray[np.integer[Any]] | Sequence[int], *, single_root: bool = True
) -> list[tuple[int, ...]]:
    """`decode` for many sentences in one call: for each, as many heads as `lengths` says it has words, no padding.

    Padding is ignored. The call releases the interpreter lock.

    *Shape:* scores [B, N+1, N+1], dependent by head, ROOT at 0; lengths [B], in words, without ROOT.
    """
    matrices = np.ascontiguousarray(scores, dtype=np.float64)
    if matrices.ndim != 3 or matrices.shape[1] != matrices.shape[2] or matrices.shape[1] == 0:
        raise SubdpError(f"a batch of scores must have the shape [B, N+1, N+1], not {list(matrices.shape)}")
    words = np.ascontiguousarray(lengths, dtype=np.int64)
    if words.shape != matrices.shape[:1]:
        raise SubdpError(f"{len(matrices)} sentences need as many lengths, not the shape {list(words.shape)}")
    longest = matrices.shape[1] - 1
    if np.any((words < 0) | (words > longest)):
        raise SubdpError(
            f"lengths must be from 0 to {longest}, but run from {words.min()} to {words.max()}",
            hint="lengths count words, without ROOT",
        )
    heads: Integers = np.empty(matrices.shape[:2], np.int32)
    heads[:, 0] = longest - words
    bad = decoder(matrices.size)(matrices.reshape(-1, longest + 1), single_root, heads.reshape(-1))
    if bad >= 0:
        size = words[bad] + 1
        raise _unusable(matrices[bad, :size, :size], where=f"sentence {bad + 1} of the batch")
    return [tuple(row[1 : length + 1]) for row, length in zip(heads.tolist(), words.tolist(), strict=True)]


def _unusable(scores: Scores, where: str | None) -> SubdpError:
    """The error that names the first score that is NaN or +inf."""
    wrong = ~(scores < INFINITY)
    wrong[0] = False
    np.fill_diagonal(wrong, False)
    dependent, head = np.argwhere(wrong)[0].tolist()
    value = scores[dependent, head]
    return SubdpError(
        f"the score of head {head} for word {dependent} is {value}", where=where, hint="scores must be finite or -inf"
    )
