"""Tarjan's contracting algorithm for the maximum spanning arborescence, on dense matrices, compiled by numba.

O(n²), at most two decodings a sentence, no recursion. Only `decode` calls this, by way of `decoder`. Everything that
is compiled stays in this one file: numba keeps the machine code until the file changes. Node 0 is ROOT, nodes 1..n are
the words, nodes from n+1 are cycles that have been contracted to one node, in the order of contraction.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int32]
Scores = npt.NDArray[np.float64]
# Either float64, or complex128 standing for a pair (see _pairs): everything below works on both.
Weights = npt.NDArray[Any]

INFINITY = np.inf
# Leaves room for sums of scores near the largest float; a power of two costs no precision.
SCALE = 2.0**-20

# Decoded before numba is imported, in cells of matrices: some 100 sentences of 20 words. It takes as long to import as
# Python takes to decode some twenty times as much, and with a sentence or two that is most of what a user waits for.
MOST_INTERPRETED = 50_000
NEW, ON_PATH, ATTACHED = 0, 1, 2


DecodeAll = Callable[[Scores, bool, Integers], int]
_interpreted = 0


def decoder(cells: int) -> DecodeAll:
    """`_decode_all`, compiled once enough cells of matrices have been decoded for that to pay."""
    global _interpreted
    if _interpreted < MOST_INTERPRETED:
        _interpreted += cells
        if _interpreted < MOST_INTERPRETED:
            return _decode_all
    return compiled()


@functools.cache
def compiled() -> DecodeAll:
    """`_decode_all`, compiled; the machine code is cached on disk."""
    from numba import njit, types
    from numba.extending import register_jitable

    first = (_decode_one, _best_heads, _roots, _is_tree, _is_finite, _scaled, _pairs)
    for function in (*first, _solve, _solve_weights, _contract, _merge, _best_head, _above, _expand):
        register_jitable(function)
    # Read-only in the signature admits writable arrays too, with one compilation for both.
    scores = types.Array(types.float64, 2, "C", readonly=True)
    signature = types.int64(scores, types.boolean, types.int32[::1])
    try:
        return njit(signature, nogil=True, cache=True)(_decode_all)  # type: ignore[no-any-return]
    except RuntimeError:  # no cache folder: compile in every process
        return njit(signature, nogil=True)(_decode_all)  # type: ignore[no-any-return]


class _Nodes(NamedTuple):
    """One entry per node."""

    head: Integers  # the word that is the head of the best arc into the node
    dependent: Integers  # the word inside the node where that arc ends
    parent: Integers  # the cycle that the node went into, 0 if none
    row: Integers  # the row of the weights with the arcs into the node; a cycle takes over one of its members'
    state: Integers  # NEW, ON_PATH or ATTACHED


def _decode_all(scores: Scores, single_root: bool, heads: Integers) -> int:
    """Fill `heads`; return the first sentence with an unusable score, or -1.

    Where ROOT's head would be stands, when this is called, by how many words the sentence is shorter than its matrix.
    The sentences are one after the other, not in an axis of their own: that is a tenth of a call with 20 words.

    *Shape:* scores [B · (N+1), N+1], heads [B · (N+1)].
    """
    full = scores.shape[1]
    for start in range(0, len(scores), full):
        size = full - heads[start]
        matrix, tree = scores[start : start + size], heads[start : start + size]
        if not _best_heads(matrix, size, tree):
            return int(start // full)
        if not _is_tree(tree, size, single_root):
            _decode_one(matrix, size, single_root, tree)
    return -1


def _decode_one(scores: Scores, size: int, single_root: bool, heads: Integers) -> None:
    """Turn `heads`, the best head of every word, which do not make a tree, into those of the best tree.

    Forcing a single root costs more: all words have to be contracted. Most sentences can do without: unless two words
    have ROOT as their best head, which they would keep, the best tree of any kind may well have a single root.
    """
    if not single_root or _roots(heads, size) <= 1:
        _solve(scores, size, False, heads)
        if not single_root or _roots(heads, size) == 1:
            return
        _best_heads(scores, size, heads)
    _solve(scores, size, True, heads)


def _best_heads(scores: Scores, size: int, heads: Integers) -> bool:
    """Fill `heads` with the best head of every word; return whether no score is NaN or +inf."""
    usable = True
    for word in range(1, size):
        best, top = 0, scores[word, 0]
        usable &= top < INFINITY
        # Two loops, around the diagonal: they run twice as fast as one that has to look for it.
        for head in range(1, word):
            usable &= scores[word, head] < INFINITY
            if scores[word, head] > top:
                best, top = head, scores[word, head]
        for head in range(word + 1, size):
            usable &= scores[word, head] < INFINITY
            if scores[word, head] > top:
                best, top = head, scores[word, head]
        heads[word] = best
    return usable


def _roots(heads: Integers, size: int) -> int:
    roots = 0
    for word in range(1, size):
        roots += heads[word] == 0
    return roots


def _is_tree(heads: Integers, size: int, single_root: bool) -> bool:
    """Whether all words reach ROOT, through one word only if `single_root`."""
    if single_root and _roots(heads, size) != 1:
        return False
    seen_from = np.zeros(size, np.int32)
    for start in range(1, size):
        word = start
        while word != 0 and seen_from[word] == 0:
            seen_from[word] = start
            word = heads[word]
        if word != 0 and seen_from[word] == start:
            return False
    return True


def _is_finite(scores: Scores, size: int) -> bool:
    """Whether no arc is -inf."""
    finite = True
    for word in range(1, size):
        for head in range(size):
            finite &= scores[word, head] > -INFINITY or head == word
    return finite


def _scaled(scores: Scores, size: int) -> Weights:
    """A copy to work on."""
    weights = np.empty((size, size), np.float64)
    for word in range(size):
        for head in range(size):
            weights[word, head] = scores[word, head] * SCALE
    return weights


def _pairs(scores: Scores, size: int) -> Weights:
    """Scores as (-1 if -inf else 0, score if finite else 0), as the real and the imaginary part of a number.

    They add up to minus the number of -inf arcs and the sum of the others, and compare in that order: no penalty has
    to be chosen, and none swallows the scores.
    """
    pairs = np.empty((size, size), np.complex128)
    for word in range(size):
        for head in range(size):
            score = scores[word, head]
            pairs[word, head] = complex(-1.0, 0.0) if score == -INFINITY else complex(0.0, score * SCALE)
    return pairs


def _solve(scores: Scores, size: int, single_root: bool, heads: Integers) -> None:
    """Turn `heads`, the best head of every word, into those of the best tree."""
    if _is_finite(scores, size):
        _solve_weights(_scaled(scores, size), single_root, heads)
    else:
        _solve_weights(_pairs(scores, size), single_root, heads)


def _solve_weights(weights: Weights, single_root: bool, heads: Integers) -> None:
    """The same for weights, which are overwritten."""
    size = len(weights)
    zeros = np.zeros((5, 2 * size), np.int32)
    nodes = _Nodes(zeros[0], zeros[1], zeros[2], zeros[3], zeros[4])
    nodes.state[0] = ATTACHED
    for word in range(1, size):
        weights[word, word] = -INFINITY
        nodes.head[word] = heads[word]
        nodes.dependent[word] = nodes.row[word] = word
        if single_root and heads[word] == 0:
            nodes.head[word] = _best_head(weights[word], True)
    count = _contract(weights, single_root, nodes)
    _expand(nodes, count, heads)


def _above(weight: Any, other: Any) -> bool:
    """weight > other; for pairs, the first parts decide before the second ones."""
    return bool(weight.real > other.real or (weight.real == other.real and weight.imag > other.imag))


def _best_head(row: Weights, single_root: bool) -> int:
    """The head of the best arc in a row; with `single_root` it is ROOT only where no word is left to choose.

    Never choosing ROOT earlier is what makes the root single: the words contract until they are one node, and that
    node needs one arc from ROOT. It is exact, as if every arc from ROOT had an infinite penalty.
    """
    best = 1 if single_root else 0
    top = row[best]
    for head in range(best + 1, len(row)):
        if _above(row[head], top):
            best, top = head, row[head]
    return best if top.real > -INFINITY else 0


def _contract(weights: Weights, single_root: bool, nodes: _Nodes) -> int:
    """Follow best arcs from every word towards ROOT and contract each cycle met; return the number of nodes."""
    size = len(weights)
    dependents = np.empty((size, size), np.int32)
    for word in range(size):
        dependents[word] = word
    outermost = np.arange(size, dtype=np.int32)  # of the nodes that a word is in
    path = np.empty(size, np.int32)
    count = size
    for word in range(1, size):
        depth, node = 0, outermost[word]
        while nodes.state[node] != ATTACHED:
            if nodes.state[node] == ON_PATH:
                start = depth - 1
                while path[start] != node:
                    start -= 1
                _merge(weights, dependents, nodes, path[start:depth], outermost, count)
                row = nodes.row[count]
                nodes.head[count] = _best_head(weights[row], single_root)
                nodes.dependent[count] = dependents[row, nodes.head[count]]
                depth, node = start, count
                count += 1
            nodes.state[node] = ON_PATH
            path[depth] = node
            depth += 1
            node = outermost[nodes.head[node]]
        for step in range(depth):
            nodes.state[path[step]] = ATTACHED
    return count


def _merge(
    weights: Weights, dependents: Integers, nodes: _Nodes, cycle: Integers, outermost: Integers, new: int
) -> None:
    """Make the nodes of `cycle` one node: an arc into it is worth what it adds in place of the arc that it breaks.

    Weights are relative to the arc that the first member would lose, so that the row of the first member stays as it
    is and the others are compared with it.
    """
    row = nodes.row[cycle[0]]
    lost = weights[row, nodes.head[cycle[0]]]
    for member in cycle[1:]:
        other = nodes.row[member]
        shift = lost - weights[other, nodes.head[member]]
        for head in range(len(weights)):
            # Chosen without a branch: which of the two is better cannot be predicted.
            weight, kept = weights[other, head] + shift, weights[row, head]
            dependent, kept_dependent = dependents[other, head], dependents[row, head]
            better = _above(weight, kept)
            weights[row, head] = weight if better else kept
            dependents[row, head] = dependent if better else kept_dependent
    nodes.row[new] = row
    for member in cycle:
        nodes.parent[member] = new
    for word in range(1, len(weights)):
        if nodes.parent[outermost[word]] == new:
            outermost[word] = new
            weights[row, word] = -INFINITY


def _expand(nodes: _Nodes, count: int, heads: Integers) -> None:
    """Undo the contractions, last one first: the arc into a node replaces the arcs of all it enters on its way in."""
    replaced = np.zeros(count, np.bool_)
    for node in range(count - 1, 0, -1):
        if not replaced[node]:
            word = nodes.dependent[node]
            heads[word] = nodes.head[node]
            while word != node:
                replaced[word] = True
                word = nodes.parent[word]
