"""Soft trees in CoNLL-U: `write_soft` and `read_soft`, for distributions that come from, or go to, another program.

The values of a substructure are a comment of each sentence, its distributions are in MISC; `Linked=No` is a word
without a link:

    # soft.labels = compound nsubj obl root
    3  了    _ _ _ _  _  _    _  Linked=No
    4  書店  _ _ _ _  2  obl  _  Soft.arcs=2:0.5,4:0.5|Soft.labels=2:obl:0.9,root:0.1;4:compound:1

Probabilities have five digits after the point, so that three are right however many of them a row has. What is not
written is 0; the labels of a pair that are not written are uniform. HEAD and DEPREL hold the likeliest tree.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from urllib.parse import unquote

import numpy as np
import numpy.typing as npt

from subdp.corpus.treebank import UNKNOWN, Sentence, read_conllu, write_conllu
from subdp.projection.soft_tree import SoftTree
from subdp.projection.substructures import ARCS, LABELS, Kind, find_substructure, shape
from subdp.support.errors import SubdpError
from subdp.support.files import Source, name_of

Floats = npt.NDArray[np.floating]

_DIGITS = 5
_KEY = "Soft."
_COMMENT = "# soft."
_UNLINKED = "Linked=No"


def write_soft(trees: Iterable[SoftTree], file: Source) -> None:
    """Write soft trees to a path, a `.gz`, `-` (standard output) or an open file."""
    write_conllu(map(_written, trees), file)


def read_soft(source: Source) -> Iterator[SoftTree]:
    """Read soft trees, one by one, that `write_soft` or another program wrote."""
    for number, sentence in enumerate(read_conllu(source, any_roots=True), 1):
        try:
            yield _read(sentence)
        except (SubdpError, ValueError, IndexError) as error:
            name = f"sentence {number}" + (f" ({sentence.sent_id})" if sentence.sent_id else "")
            reason, hint = (error.reason, error.hint) if isinstance(error, SubdpError) else (str(error), None)
            raise SubdpError(f"{name}: {reason}", where=name_of(source), hint=hint) from None


def _written(tree: SoftTree) -> Sentence:
    best, notes = tree.best_tree(), []
    for word in range(1, len(tree) + 1):
        parts = [_row(tree, name, word) for name in tree.inventory]
        parts += [] if tree.linked[word - 1] else [_UNLINKED]
        notes.append("|".join(filter(None, parts)) or "_")
    known = [bool(_row(tree, ARCS.name, word)) for word in range(1, len(tree) + 1)]
    return Sentence.of(
        tree.words,
        heads=[head if sure else UNKNOWN for head, sure in zip(best.heads, known, strict=True)],
        labels=[label if sure else "_" for label, sure in zip(best.labels, known, strict=True)],
        misc=notes,
        comments=[f"{_COMMENT}{name} = {' '.join(map(_escape, v))}" for name, v in tree.inventory.items() if v],
        any_roots=True,
    )


def _row(tree: SoftTree, name: str, word: int) -> str:
    """One word's part of a distribution, or nothing if that is all 0."""
    row, values = tree.distributions[name][word], [_escape(value) for value in tree.inventory[name]]
    kind = find_substructure(name).kind
    if kind == "pair":
        uniform, least = 1 / len(values), 0.5 * 10**-_DIGITS
        heads = np.nonzero(np.abs(row - uniform).max(axis=-1) > least)[0].tolist()
        text = ";".join(f"{head}:{_listed(values, row[head])}" for head in heads)
    else:
        text = _listed([str(head) for head in range(len(row))] if kind == "head" else values, row)
    return f"{_KEY}{name}={text}" if text else ""


def _listed(values: Sequence[str], row: Floats) -> str:
    """The values with their probabilities, the likeliest first."""
    rounded = [round(probability, _DIGITS) for probability in row.tolist()]
    order = sorted(range(len(rounded)), key=lambda at: -rounded[at])
    shown = ((values[at], f"{rounded[at]:.{_DIGITS}f}".rstrip("0").rstrip(".")) for at in order if rounded[at])
    return ",".join(f"{value}:{probability}" for value, probability in shown)


def _read(sentence: Sentence) -> SoftTree:
    comments = [comment.removeprefix(_COMMENT) for comment in sentence.comments if comment.startswith(_COMMENT)]
    inventory: dict[str, tuple[str, ...]] = {ARCS.name: ()}
    for name, _, values in (comment.partition(" = ") for comment in comments):
        inventory[name] = tuple(map(unquote, values.split()))
    if LABELS.name not in inventory:
        hint = "read_conllu reads trees; SoftTree.of(sentence) makes one soft"
        raise SubdpError(f"has no comment {_COMMENT}{LABELS.name}: it is not a soft tree", hint=hint)
    rows = [line.split("\t") for line in sentence.conllu.split("\n") if not line.startswith("#")]
    notes = [columns[9].split("|") for columns in rows if columns[0].isdecimal()]
    found = [dict(note.split("=", 1) for note in notes_ if note.startswith(_KEY)) for notes_ in notes]
    distributions = {name: _distribution(name, values, found) for name, values in inventory.items()}
    return SoftTree(sentence.words, distributions, inventory, tuple(_UNLINKED not in one for one in notes))


def _distribution(name: str, values: Sequence[str], notes: Sequence[Mapping[str, str]]) -> Floats:
    kind: Kind = find_substructure(name).kind
    result = np.zeros(shape(kind, len(notes), len(values)))
    if kind == "pair":
        result[:] = 1 / len(values)
    places = {value: place for place, value in enumerate(values)}
    if kind == "head":
        places = {str(head): head for head in range(len(notes) + 1)}
    for word, note in enumerate(notes, 1):
        text = note.get(f"{_KEY}{name}", "")
        if kind != "pair":
            result[word] = _parsed(text, places)
            continue
        for part in filter(None, text.split(";")):
            head, _, listed = part.partition(":")
            result[word, int(head)] = _parsed(listed, places)
    return result


def _parsed(text: str, places: Mapping[str, int]) -> Floats:
    row = np.zeros(len(places))
    for item in filter(None, text.split(",")):
        value, _, probability = item.rpartition(":")
        if unquote(value) not in places:
            raise ValueError(f"{unquote(value)!r} is not among the values")
        row[places[unquote(value)]] = float(probability)
    return row


def _escape(value: str) -> str:
    """A value without the characters that part others here or in MISC; a colon may stay, for the last one counts."""
    return re.sub(r"[%,;|=\s]", lambda match: f"%{ord(match[0]):02X}", value)
