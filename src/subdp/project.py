"""The projection operators of the paper, as pure functions on arrays.

Everything here takes numpy arrays or torch tensors, one sentence pair or a batch in the leading dimensions, and gives
back what it was given. Matrices are [dependent, head], ROOT is 0, NULL (the paper's dummy word) is the last column.
Ã, `alignment` below, is [S+1, T+1]: source by target, any non-negative weights, ROOT linked to ROOT alone.
Torch is never imported: a tensor brings its own operations along.
"""

from __future__ import annotations

import sys
from typing import Any, TypeAlias

Array: TypeAlias = Any
"""A numpy array or a torch tensor; what comes back is of the kind that went in."""


def delta(matrix: Array) -> Array:
    """Δ: add a NULL column that is 1 exactly where the row is all zero.

    Shape: [..., r, c] → [..., r, c + 1].
    """
    empty = matrix.sum(axis=-1, keepdims=True) == 0
    return _concatenate((matrix, empty * _ones_like(matrix[..., :1])))


def normalize(matrix: Array) -> Array:
    """N: divide every row by its sum.

    Shape: [..., r, c] → the same.
    """
    return matrix / matrix.sum(axis=-1, keepdims=True)


def source_to_target(alignment: Array) -> Array:
    """A_st = N(Δ(Ã)): for every source word, the share of each target word and of NULL.

    Shape: [..., S+1, T+1] → [..., S+1, T+2].
    """
    return normalize(delta(alignment))


def target_to_source(alignment: Array) -> Array:
    """A_ts = N(Δ(Ãᵀ)): for every target word, the share of each source word and of NULL.

    Shape: [..., S+1, T+1] → [..., T+1, S+2].
    """
    return normalize(delta(alignment.swapaxes(-1, -2)))


def project_arcs(arcs: Array, alignment: Array) -> Array:
    """P̂2 = A_ts · P1 · A_st: carry arc distributions from source to target words.

    P1 is meant with a NULL row, all of whose mass is on NULL, and A_st too, so that a row of P̂2 sums to what its
    rows of P1 sum to, over T+1 words and NULL (Proposition 1). Adding A_ts's NULL column to the last one does that.

    Shape: arcs [..., S+1, S+1], alignment [..., S+1, T+1] → [..., T+1, T+2].
    """
    alignment = alignment * _ones_like(arcs[..., :1, :1])  # 0 and 1 of any kind, as numbers of the arcs' kind
    to_source = target_to_source(alignment)
    projected = to_source[..., :-1] @ arcs @ source_to_target(alignment)
    return _concatenate((projected[..., :-1], projected[..., -1:] + to_source[..., -1:]))


def project_labels(labels: Array, alignment: Array) -> Array:
    """P̂2(l | q→p) = Σ_i Σ_j A_ts[p,i] · P1(l | j→i) · A_ts[q,j], with 1/L wherever i or j is NULL.

    A_ts is on both sides, so every (p, q) gets a distribution (Proposition 2). The NULL terms have the share
    1 − m_p·m_q, where m is the row sum of A_ts without NULL; the rest is two matrix products.

    Shape: labels [..., S+1, S+1, L], alignment [..., S+1, T+1] → [..., T+1, T+1, L].
    """
    to_source = target_to_source(alignment * _ones_like(labels[..., :1, :1, 0]))[..., :-1]
    *batch, source, _, count = labels.shape
    target = to_source.shape[-2]
    by_dependent = to_source @ labels.reshape(*batch, source, source * count)
    by_both = to_source[..., None, :, :] @ by_dependent.reshape(*batch, target, source, count)
    kept = to_source.sum(axis=-1)
    null = 1 - kept[..., :, None] * kept[..., None, :]
    return by_both + null[..., None] / count


def one_to_one(alignment: Array) -> Array:
    """The links of Ã whose two words have no other link, as 0 and 1.

    Shape: [..., S+1, T+1] → the same.
    """
    links = (alignment > 0) * _ones_like(alignment)
    alone = (links.sum(axis=-1, keepdims=True) == 1) & (links.sum(axis=-2, keepdims=True) == 1)
    return links * alone


def project_hard(arcs: Array, alignment: Array) -> Array:
    """Hard projection (Lacroix et al. 2016): an arc only where both its ends have a one-to-one link.

    With O the one-to-one links, Oᵀ · P1 · O: for a discrete tree a row holds a single 1, or nothing where the head
    stays unknown.

    Shape: arcs [..., S+1, S+1], alignment [..., S+1, T+1] → [..., T+1, T+1].
    """
    links = one_to_one(alignment) * _ones_like(arcs[..., :1, :1])
    return links.swapaxes(-1, -2) @ arcs @ links


def _namespace(array: Any) -> Any:
    return sys.modules[type(array).__module__.partition(".")[0]]


def _concatenate(arrays: tuple[Array, ...]) -> Array:
    return _namespace(arrays[0]).concatenate(arrays, axis=-1)


def _ones_like(array: Array) -> Array:
    return _namespace(array).ones_like(array)
