"""The projection operators of the paper, as pure functions on arrays.

Everything here takes numpy arrays or torch tensors, one sentence pair or a batch in the leading dimensions, and
returns the same type. Matrices are [dependent, head], ROOT is 0, NULL (the paper's dummy word) is the last column.
Ã, `alignment` below, is [S+1, T+1]: source by target, any non-negative weights, ROOT linked to ROOT alone.
Torch is never imported: a tensor brings its own operations. Numba is imported when a batch of labels is projected.
"""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

Array: TypeAlias = Any
"""A numpy array or a torch tensor; functions return the type they were given."""


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

    P1 and A_st are understood to have a NULL row with all its mass on NULL, so that a row of P̂2 sums to what its rows
    of P1 sum to, over T+1 words and NULL (Proposition 1). Adding A_ts's NULL column to the last one does that.

    Shape: arcs [..., S+1, S+1], alignment [..., S+1, T+1] → [..., T+1, T+2].
    """
    alignment = alignment * _ones_like(arcs[..., :1, :1])  # links of any dtype, in the arcs' dtype
    to_source = target_to_source(alignment)
    projected = to_source[..., :-1] @ arcs @ source_to_target(alignment)
    return _concatenate((projected[..., :-1], projected[..., -1:] + to_source[..., -1:]))


def project_labels(labels: Array, alignment: Array) -> Array:
    """P̂2(l | q→p) = Σ_i Σ_j A_ts[p,i] · P1(l | j→i) · A_ts[q,j], with 1/L wherever i or j is NULL.

    A_ts is on both sides, so every (p, q) gets a distribution (Proposition 2). Most words have one link, so a batch in
    main memory goes through a loop over links, several times as fast as products with a matrix that is mostly zeros.
    A single pair (not worth loading the compiled loop for), a batch on a GPU, and one that needs gradients take two
    matrix products instead.

    Shape: labels [..., S+1, S+1, L], alignment [..., S+1, T+1] → [..., T+1, T+1, L].
    """
    alignment = alignment * _ones_like(labels[..., :1, :1, 0])  # links of any dtype, in the labels' dtype
    *batch, source, target = alignment.shape
    plain = [_as_numpy(array) for array in (labels, alignment)]
    alike = labels.dtype == alignment.dtype and labels.shape[:-1] == (*batch, source, source)
    if not batch or not alike or any(array is None for array in plain):
        return _label_products(labels, alignment)
    size = (*batch, target, target, labels.shape[-1])
    result = np.empty(size, labels.dtype) if plain[0] is labels else labels.new_empty(size)
    arrays = (*plain, _as_numpy(result))
    flat = [array.reshape(math.prod(batch), *array.shape[len(batch) :]) for array in arrays]
    _compiled(flat[0].dtype)(*map(np.ascontiguousarray, flat))
    return result


def _label_products(labels: Array, alignment: Array) -> Array:
    """`project_labels` as two matrix products, to which the NULL terms are added.

    Their share is 1 − m_p·m_q, where m is the row sum of A_ts without NULL.
    """
    to_source = target_to_source(alignment)[..., :-1]
    *batch, source, _, count = labels.shape
    target = to_source.shape[-2]
    by_dependent = to_source @ labels.reshape(*batch, source, source * count)
    by_both = to_source[..., None, :, :] @ by_dependent.reshape(*batch, target, source, count)
    kept = to_source.sum(axis=-1)
    null = (1 - kept[..., :, None] * kept[..., None, :]).clip(0, 1)  # Rounding could make it negative.
    return by_both + null[..., None] / count


def project_tags(tags: Array, alignment: Array) -> Array:
    """P̂2(k | p) = Σ_i A_ts[p,i] · P1(k | i): carry distributions over the values of single words, such as tags.

    NULL gets A_ts's share of it, so that a row sums to what its rows of P1 sum to, over the values and NULL.

    Shape: tags [..., S+1, K], alignment [..., S+1, T+1] → [..., T+1, K+1].
    """
    alignment = alignment * _ones_like(tags[..., :1, :1])  # links of any dtype, in the tags' dtype
    to_source = target_to_source(alignment)
    return _concatenate((to_source[..., :-1] @ tags, to_source[..., -1:]))


def head_links(alignment: Array, arcs: Array) -> Array:
    """Ã[i,p] · (1 − Σ_j P1(j | i)), over the other source words j that p is linked to: links weighted by headedness.

    Not in the paper. Where one target word translates several source words (a pronoun and its verb, an article and its
    noun), it takes the place of the one that is the head of the others: with the head's tag, the head's relation, and
    no arc to itself. Weights do not fall below a thousandth, so that no word loses its last link.

    Shape: alignment [..., S+1, T+1], arcs [..., S+1, S+1] → as alignment.
    """
    linked = (alignment > 0) * _ones_like(arcs[..., :1, :1])
    own = _namespace(arcs).diagonal(arcs, 0, -2, -1)[..., None]
    return alignment * (1 - (arcs @ linked - own * linked)).clip(1e-3, 1.0)


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


def _as_numpy(array: Array) -> Any:
    """The array's own memory as a numpy array, or None where the loop cannot read it or would bypass autograd."""
    if not isinstance(array, np.ndarray):
        if array.device.type != "cpu" or array.requires_grad:
            return None
        array = array.detach().numpy()
    return array if array.dtype in (np.float32, np.float64) else None


@functools.cache
def _compiled(kind: np.dtype[Any]) -> Callable[[Array, Array, Array], None]:
    """`_project_all` compiled for one dtype; the machine code is cached on disk."""
    from numba import from_dtype, njit, types
    from numba.extending import register_jitable

    register_jitable(inline="always")(_blend)
    number = from_dtype(kind)
    # Read-only in the signature admits writable arrays too, with one compilation for both.
    labels, alignment = (types.Array(number, dimensions, "C", readonly=True) for dimensions in (4, 3))
    signature = types.void(labels, alignment, types.Array(number, 4, "C"))
    try:
        return njit(signature, nogil=True, cache=True)(_project_all)  # type: ignore[no-any-return]
    except RuntimeError:  # no cache folder: compile in every process
        return njit(signature, nogil=True)(_project_all)  # type: ignore[no-any-return]


def _project_all(labels: Array, alignment: Array, result: Array) -> None:
    """`project_labels` on a batch, link by link; compiled.

    For every dependent p the source's label distributions are blended into one row for each source head, which stay in
    the processor's cache while each head q takes its blend of them.

    Shape: labels [B, S+1, S+1, L], alignment [B, S+1, T+1], result [B, T+1, T+1, L].
    """
    batch, source, target = alignment.shape
    count = labels.shape[3]
    words = np.empty((target, source), np.uint32)  # Unsigned: the loops over labels become vector instructions then.
    shares = np.empty((target, source), labels.dtype)
    links = np.empty(target, np.int64)
    rows = np.empty(source * count, labels.dtype)
    for b in range(batch):
        links[:] = 0
        for i in range(source):
            for p in range(target):
                if alignment[b, i, p] != 0:
                    words[p, links[p]], shares[p, links[p]] = i, alignment[b, i, p]
                    links[p] += 1
        for p in range(target):
            shares[p, : links[p]] /= shares[p, : links[p]].sum()
        given, out = labels[b].reshape(-1), result[b].reshape(-1)
        for p in range(target):
            if links[p]:
                _blend(given, words[p], shares[p], links[p], rows, 0, source * count)
            for q in range(target):
                start = (p * target + q) * count
                if links[p] and links[q]:
                    _blend(rows, words[q], shares[q], links[q], out, start, count)
                else:
                    out[start : start + count] = 1 / count


def _blend(rows: Array, words: Array, shares: Array, links: int, out: Array, start: int, width: int) -> None:
    """The mean of one or more rows of `width` numbers, weighted by their shares; compiled."""
    first, share = words[0] * width, shares[0]
    if links == 1:
        for x in range(width):
            out[start + x] = rows[first + x]
        return
    second, other = words[1] * width, shares[1]
    for x in range(width):
        out[start + x] = share * rows[first + x] + other * rows[second + x]
    for k in range(2, links - 1, 2):  # Two at a time: half the traffic with `out`.
        first, second, share, other = words[k] * width, words[k + 1] * width, shares[k], shares[k + 1]
        for x in range(width):
            out[start + x] += share * rows[first + x] + other * rows[second + x]
    if links % 2:
        first, share = words[links - 1] * width, shares[links - 1]
        for x in range(width):
            out[start + x] += share * rows[first + x]
