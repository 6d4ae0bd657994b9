"""Substructures: what a parser predicts and projection carries, each described once in the list below.

The paper projects arcs and their labels; its method works for whatever factors over words or pairs of words. Three
kinds are enough. For a sentence of T words, [dependent, head] and ROOT 0 as everywhere:

    kind   distribution        carried through an alignment by                        mass that meets NULL
    head   [T+1, T+1]          A_ts · P1 · A_st                                       is lost
    pair   [T+1, T+1, values]  Σ_i Σ_j A_ts[p,i] · P1(l | j→i) · A_ts[q,j]            becomes uniform
    word   [T+1, values]       Σ_i A_ts[p,i] · P1(k | i)                              is lost

The kind decides how the network scores a substructure (`network/scorers.py`), how it is carried (`carry`), and its loss
(`training/losses.py`); the description adds its name and how it is read from annotated sentences. Arcs and labels are
described here; every layer of words that CoNLL-U has (`corpus/layers.py`: upos, xpos, feats:Case, misc:NE) is a
substructure of the kind word under the layer's name. Numpy only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from subdp.corpus.layers import NONE, UNANNOTATED, broken_bio, find_layer, is_bio
from subdp.corpus.treebank import Sentence
from subdp.projection.operators import Array, project_arcs, project_labels, project_tags
from subdp.support.errors import SubdpError

Kind = Literal["head", "pair", "word"]

Inventory: TypeAlias = Mapping[str, tuple[str, ...]]
"""The values of each substructure that a parser predicts, by its name; arcs, whose values are words, have none."""


@dataclass(frozen=True, slots=True)
class Substructure:
    """One thing that a parser predicts of every word, or of every pair of words."""

    name: str
    kind: Kind
    read: Callable[[Sentence], Sequence[str]]
    """The value at every word of an annotated sentence, `_` where nobody annotated it; of a head, its number."""


ARCS = Substructure("arcs", "head", lambda sentence: [str(head) for head in sentence.heads])
LABELS = Substructure("labels", "pair", lambda sentence: sentence.universal_labels)
SUBSTRUCTURES = {one.name: one for one in (ARCS, LABELS)}
"""Substructures by name, besides the layers of CoNLL-U. A new one of a known kind is one more entry here."""


def find_substructure(name: str) -> Substructure:
    """The substructure of that name."""
    return SUBSTRUCTURES[name] if name in SUBSTRUCTURES else Substructure(name, "word", find_layer(name).read)


def of_kind(inventory: Inventory, kind: Kind) -> list[str]:
    """The names of an inventory's substructures of one kind."""
    return [name for name in inventory if find_substructure(name).kind == kind]


def inventory_of(sentences: Sequence[Sentence], more: Iterable[str] = ()) -> dict[str, tuple[str, ...]]:
    """The values that occur in annotated sentences: of arcs and labels, and of the other substructures named.

    A layer of which nothing is annotated is an error, and so are spans in BIO that do not begin with B.
    """
    found: dict[str, tuple[str, ...]] = {ARCS.name: ()}
    for name in (LABELS.name, *dict.fromkeys(more)):
        read = find_substructure(name).read
        values = {value for sentence in sentences for value in read(sentence)} - {UNANNOTATED}
        if name != LABELS.name and not values - {NONE}:
            hint = "do not predict it, or name a treebank that has it"
            raise SubdpError(f"the treebank has no {name}", hint=hint)
        if is_bio(sorted(values)):
            _check_bio(name, sentences)
        found[name] = tuple(sorted(values))
    return found


def _check_bio(name: str, sentences: Sequence[Sentence]) -> None:
    read = find_substructure(name).read
    for number, sentence in enumerate(sentences, 1):
        values = read(sentence)
        if (place := broken_bio(values)) is not None:
            where = sentence.sent_id or f"sentence {number}"
            reason = f"word {place + 1} ({sentence.words[place]!r}) has {name} {values[place]}, which continues nothing"
            raise SubdpError(reason, where=where, hint=f"a span begins with B-{values[place][2:]}")


def merged(inventories: Iterable[Inventory]) -> dict[str, tuple[str, ...]]:
    """The values of several inventories: those of the first in their order, then what the others add."""
    found: dict[str, dict[str, None]] = {}
    for inventory in inventories:
        for name, values in inventory.items():
            found.setdefault(name, {}).update(dict.fromkeys(values))
    return {name: tuple(values) for name, values in found.items()}


def new_values(before: Inventory, after: Inventory) -> list[str]:
    """What one inventory has and another has not, in a line for each substructure."""
    found = {name: [value for value in values if value not in before.get(name, ())] for name, values in after.items()}
    return [f"new {name}: {', '.join(values)}" for name, values in found.items() if values]


def shape(kind: Kind, words: int, values: int) -> tuple[int, ...]:
    """The shape of a distribution over a sentence with ROOT, as in the table above."""
    size = words + 1
    return {"head": (size, size), "pair": (size, size, values), "word": (size, values)}[kind]


def carry(kind: Kind, distribution: Array, alignment: Array) -> Array:
    """P̂2 of a substructure from its P1, without NULL.

    Shape: by kind as in the table above, with any leading dimensions; alignment [..., S+1, T+1].
    """
    if kind == "pair":
        return project_labels(distribution, alignment)
    return (project_arcs if kind == "head" else project_tags)(distribution, alignment)[..., :-1]
