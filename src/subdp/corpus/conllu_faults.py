"""What exactly is wrong with a block of CoNLL-U: the slow, thorough counterpart of the reader's fast path.

Called only for a block that the fast path rejects (and for the ids of blocks with multiword ranges or empty nodes).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from subdp.support.errors import counted

_RANGE = re.compile(r"([1-9][0-9]*)-([1-9][0-9]*)")
_EMPTY = re.compile(r"(0|[1-9][0-9]*)\.([1-9][0-9]*)")
_COLUMNS = ("ID", "FORM", "LEMMA", "UPOS", "XPOS", "FEATS", "HEAD", "DEPREL", "DEPS", "MISC")


@dataclass(frozen=True, slots=True)
class BlockFault:
    """A reason and a hint, with the line counted from the block's first line, which is 0."""

    line: int
    reason: str
    hint: str | None = None


def find_fault(block: str, any_roots: bool, only_ids: bool = False) -> BlockFault | None:
    """The first fault of a block, in reading order; None if it has none."""
    lines = block.split("\n")
    for check in (find_other_format, _lines_fault, _columns_fault, _ids_fault):
        if fault := check(lines):
            return fault
    return None if only_ids else _tree_fault(lines, any_roots)


def find_other_format(lines: list[str]) -> BlockFault | None:
    """Text that is no CoNLL-U at all: no line of a word has a tab, nor begins with an id."""
    words = [(number, line) for number, line in enumerate(lines) if line.strip() and not line.startswith("#")]
    if not words or any("\t" in line for _, line in words) or words[0][1].split()[0].isdecimal():
        return None
    hint = "CoNLL-U has a line for each word, with 10 columns separated by tabs; `subdp parse` makes it from plain text"
    return BlockFault(words[0][0], "this is not CoNLL-U: the line has no tabs", hint)


def _rows(lines: list[str]) -> list[tuple[int, list[str]]]:
    return [(number, line.split("\t")) for number, line in enumerate(lines) if not line.startswith("#")]


def _lines_fault(lines: list[str]) -> BlockFault | None:
    seen_word = False
    for number, line in enumerate(lines):
        if line.endswith("\r"):
            hint = "CoNLL-U lines end in LF alone; convert the file, for example with dos2unix"
            return BlockFault(number, "lines end in CR LF", hint)
        if "\r" in line:
            return BlockFault(number, "a carriage return inside a line", "remove it")
        if not line:
            return BlockFault(
                number, "an empty line where a sentence should begin", "one empty line separates sentences"
            )
        if not line.strip():
            return BlockFault(number, "a line of white space", "the line after a sentence must be empty")
        if line.startswith("#"):
            if seen_word:
                return BlockFault(number, "a comment between words", "comments come before the first word")
        else:
            seen_word = True
    if not seen_word:
        return BlockFault(len(lines) - 1, "comments without a sentence", "remove them or add the words")
    return None


def _columns_fault(lines: list[str]) -> BlockFault | None:
    for number, columns in _rows(lines):
        if len(columns) == 1 and len(columns[0].split()) >= 10:
            return BlockFault(number, "columns are separated by spaces", "CoNLL-U separates its 10 columns by tabs")
        if len(columns) != 10:
            hint = "columns are separated by single tabs; an empty one holds _"
            return BlockFault(number, f"{counted(len(columns), 'column')} instead of 10", hint)
        for name, value in zip(_COLUMNS, columns, strict=True):
            if not value:
                return BlockFault(number, f"column {name} is empty", "an unknown value is written _")
    return None


def _ids_fault(lines: list[str]) -> BlockFault | None:
    word, covered, empty = 0, 0, 0
    end_line = 0
    for number, columns in _rows(lines):
        name = columns[0]
        if name.isdecimal():
            if name != str(word + 1):
                hint = f"words are numbered 1, 2, 3 … in order; this should be {word + 1}"
                return BlockFault(number, f"word id {name} is out of order", hint)
            word, empty = word + 1, 0
        elif match := _RANGE.fullmatch(name):
            first, last = int(match[1]), int(match[2])
            if first <= covered:
                return BlockFault(number, f"multiword range {name} overlaps the one before it")
            if first != word + 1:
                return BlockFault(number, f"multiword range {name} is not right before word {first}")
            if last <= first:
                return BlockFault(
                    number, f"multiword range {name} is not ascending", "it runs from a lower to a higher id"
                )
            if columns[6] != "_" or columns[7] != "_":
                return BlockFault(number, f"multiword range {name} has a head or a label", "only its words do")
            covered, end_line = last, number
        elif match := _EMPTY.fullmatch(name):
            if int(match[1]) != word or int(match[2]) != empty + 1:
                return BlockFault(number, f"empty node {name} is out of order", f"here it would be {word}.{empty + 1}")
            if columns[6] != "_" or columns[7] != "_":
                return BlockFault(number, f"empty node {name} has a head or a label", "its relations are in DEPS")
            empty += 1
        else:
            return BlockFault(number, f"{name!r} is not an id", "ids look like 7, 7-8 (range) or 7.1 (empty node)")
    if covered > word:
        return BlockFault(
            end_line, f"a multiword range ends at word {covered} but the sentence has {counted(word, 'word')}"
        )
    return None if word else BlockFault(len(lines) - 1, "a sentence without words", "only ranges or empty nodes")


def _tree_fault(lines: list[str], any_roots: bool) -> BlockFault | None:
    words = [(number, columns) for number, columns in _rows(lines) if columns[0].isdecimal()]
    heads: dict[int, int] = {}
    for number, columns in words:
        word, head = int(columns[0]), columns[6]
        if head == "_":
            continue
        if not re.fullmatch(r"[0-9]+", head):
            return BlockFault(number, f"word {word} has head {head!r}, not a number", "a head is a word's id, 0 or _")
        heads[word] = int(head)
        if heads[word] > len(words):
            return BlockFault(number, f"word {word} has head {head} but the sentence has {counted(len(words), 'word')}")
        if heads[word] == word:
            return BlockFault(number, f"word {word} is its own head")
    roots = [word for word, head in heads.items() if head == 0]
    if not any_roots and (len(roots) > 1 or (len(heads) == len(words) and not roots)):
        hint = "exactly one word has head 0; any_roots allows other trees"
        if not roots:
            return BlockFault(words[0][0], "no word has head 0: the sentence has no root", hint)
        return BlockFault(words[roots[1] - 1][0], f"words {roots[0]} and {roots[1]} both have head 0", hint)
    for number, columns in words:
        if cycle := _cycle_from(int(columns[0]), heads):
            path = " → ".join(map(str, cycle))
            return BlockFault(number, f"the heads form a cycle: {path}", "every chain of heads must reach ROOT (0)")
    return None


def _cycle_from(word: int, heads: dict[int, int]) -> list[int] | None:
    path = [word]
    while (word := heads.get(word, 0)) and word not in path:
        path.append(word)
    return [*path[path.index(word) :], word] if word else None
