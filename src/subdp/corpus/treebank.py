"""Sentences with dependency trees: CoNLL-U in and out, without loss, as a stream.

A `Sentence` keeps the text it was read from, so comments, multiword ranges (`1-2`), empty nodes (`7.1`) and every
column survive; words, heads and labels are parsed from it once. What is read from a file or made by `Sentence.of` is
checked; a caller that builds a `Sentence` directly, as `annotate` does, vouches for it. Imports no torch and no numpy.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import lru_cache
from typing import IO, Any
from unicodedata import is_normalized

from subdp.corpus.conllu_faults import find_fault, find_other_format
from subdp.corpus.layers import find_layer
from subdp.corpus.words import composed
from subdp.drawing.arcs import tree_arcs
from subdp.drawing.notebook import outline, scrolled
from subdp.drawing.svg import render_svg
from subdp.support.errors import SubdpError, counted
from subdp.support.files import Source, decode, name_of, open_input, open_text_output

UNKNOWN = -1
"""The head of a word whose head is not annotated (`_` in the file)."""

_CHUNK = 1 << 16  # Bytes read at a time; what is made of them stays in the processor's cache.
_BAD = -2
_NUMBER = re.compile("[0-9]+").fullmatch
_HEADS = {"_": UNKNOWN, **{str(number): number for number in range(500)}}


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence: its CoNLL-U text, and the columns a parser works with.

    `words` are the forms in Unicode's NFC, the same however accents are stored; the text keeps the forms as they were
    written. `heads[0]` is the head of word 1; 0 is ROOT, `UNKNOWN` (-1) where none is annotated.
    `Sentence.of` and `read_conllu` make sentences and check them.
    """

    conllu: str
    words: tuple[str, ...]
    heads: tuple[int, ...]
    labels: tuple[str, ...]
    upos: tuple[str, ...]

    @classmethod
    def of(
        cls,
        words: Sequence[str],
        *,
        heads: Sequence[int] | None = None,
        labels: Sequence[str] | None = None,
        upos: Sequence[str] | None = None,
        misc: Sequence[str] | None = None,
        comments: Sequence[str] = (),
        any_roots: bool = False,
    ) -> Sentence:
        """A sentence from its words and, where known, its tree; checked like one that is read from a file.

        >>> Sentence.of(["Dogs", "bark"], heads=[2, 0], labels=["nsubj", "root"]).heads
        (2, 0)
        """
        if isinstance(words, str):
            raise TypeError(f'words is one string; give a list of words, for example "{words}".split()')
        if not words:
            raise SubdpError("a sentence without words", where="<sentence>", hint="it has at least one")
        columns = {"heads": heads, "labels": labels, "upos": upos, "misc": misc}
        for name, column in columns.items():
            if column is not None and len(column) != len(words):
                raise SubdpError(f"{counted(len(words), 'word')} but {len(column)} {name}", where="<sentence>")
        for value in (*words, *(labels or ()), *(upos or ()), *(misc or ())):
            if not value or "\t" in value or "\n" in value:
                raise SubdpError(f"{value!r} cannot be a column of CoNLL-U", where="<sentence>")
        lines = [comment if comment.startswith("#") else f"# {comment}" for comment in comments]
        for index, word in enumerate(words):
            head = "_" if heads is None or heads[index] == UNKNOWN else str(heads[index])
            label = "_" if labels is None else labels[index]
            tag = "_" if upos is None else upos[index]
            note = "_" if misc is None else misc[index]
            lines.append(f"{index + 1}\t{word}\t_\t{tag}\t_\t_\t{head}\t{label}\t_\t{note}")
        return _located("\n".join(lines), "<sentence>", 1, any_roots=any_roots)

    def __len__(self) -> int:
        return len(self.words)

    def __repr__(self) -> str:
        return f"<Sentence of {counted(len(self), 'word')}: {outline(self.words)}>"

    def __str__(self) -> str:
        return self.conllu

    def _repr_svg_(self) -> str:
        tags = self.upos if any(tag != "_" for tag in self.upos) else ()
        return render_svg(self.words, tree_arcs(self.heads, self.labels), tags)

    def _repr_html_(self) -> str:
        return scrolled(self._repr_svg_())

    @property
    def universal_labels(self) -> tuple[str, ...]:
        """The labels without their subtypes: `nsubj` for `nsubj:pass`."""
        return tuple(label.partition(":")[0] for label in self.labels)

    @property
    def comments(self) -> tuple[str, ...]:
        """The lines above the words, each beginning with `#`."""
        return tuple(line for line in self.conllu.split("\n") if line.startswith("#"))

    @property
    def sent_id(self) -> str | None:
        """What the comment `# sent_id = …` says."""
        return self._comment("sent_id")

    @property
    def text(self) -> str | None:
        """What the comment `# text = …` says."""
        return self._comment("text")

    def _comment(self, key: str) -> str | None:
        for comment in self.comments:
            name, equals, value = comment[1:].partition("=")
            if equals and name.strip() == key:
                return value.strip()
        return None

    def with_tree(
        self,
        heads: Sequence[int],
        labels: Sequence[str],
        *,
        layers: Mapping[str, Sequence[str]] | None = None,
        misc: Sequence[str] | None = None,
        any_roots: bool = False,
    ) -> Sentence:
        """The same sentence with HEAD and DEPREL filled in, and other layers by name (see `corpus/layers.py`).

        `misc` is added to what MISC holds, in place of items with the same keys. All else stays.
        """
        layers = layers or {}
        writers = [(find_layer(name).write, values) for name, values in layers.items()]
        for name, column in {"heads": heads, "labels": labels, "misc": misc, **layers}.items():
            if column is not None and len(column) != len(self):
                raise SubdpError(f"{counted(len(self), 'word')} but {len(column)} {name}", where="<sentence>")
        lines, word = [], 0
        for line in self.conllu.split("\n"):
            if not line.startswith("#"):
                columns = line.split("\t")
                if columns[0].isdecimal():
                    columns[6] = "_" if heads[word] == UNKNOWN else str(heads[word])
                    columns[7] = labels[word]
                    for write, values in writers:
                        write(columns, values[word])
                    if misc is not None and misc[word]:
                        new = {item.partition("=")[0] for item in misc[word].split("|")}
                        kept = [item for item in columns[9].split("|") if item.partition("=")[0] not in {"_", *new}]
                        columns[9] = "|".join([*kept, misc[word]])
                    word += 1
                    line = "\t".join(columns)
            lines.append(line)
        return _located("\n".join(lines), "<sentence>", 1, any_roots=any_roots)


def read_conllu(source: Source, *, any_roots: bool = False) -> Iterator[Sentence]:
    """Read sentences one by one from a path, a `.gz`, `-` (standard input) or an open file.

    A fault raises `SubdpError` with file, line, reason and hint. `any_roots` lets trees with no root or several pass.
    """
    return _sentences(open_input(source), name_of(source), any_roots)


def write_conllu(sentences: Iterable[Sentence], file: Source) -> None:
    """Write sentences as they were read, or as `Sentence.of` and `with_tree` made them; all or nothing for a path."""
    with open_text_output(file) as write:
        for sentence in sentences:
            write(f"{sentence.conllu}\n\n")


def _sentences(opened: AbstractContextManager[IO[Any]], name: str, any_roots: bool) -> Iterator[Sentence]:
    with opened as stream:
        for line, block in _blocks(stream, name):
            yield _located(block, name, line, any_roots)


def _blocks(stream: IO[Any], name: str) -> Iterator[tuple[int, str]]:
    """The texts between empty lines, each with the number of its first line."""
    line, rest = 1, b""
    while chunk := stream.read(max(_CHUNK, len(rest))):  # More where there is no empty line: few copies of the rest.
        rest += chunk.encode() if isinstance(chunk, str) else chunk
        if line == 1 and rest.startswith(b"\xef\xbb\xbf"):
            raise SubdpError("begins with a byte order mark", where=name, line=1, hint="save it as UTF-8 without BOM")
        end = rest.rfind(b"\n\n") + 2
        if end < 2:
            continue
        for block in decode(rest[: end - 2], name, line).split("\n\n"):
            yield line, block
            line += block.count("\n") + 2
        rest = rest[end:]
    if rest:
        raise _unfinished(decode(rest, name, line), name, line)
    if line == 1:
        raise SubdpError("the file is empty", where=name, hint="a treebank has at least one sentence")


def _unfinished(rest: str, name: str, line: int) -> SubdpError:
    """What is wrong with a file's last lines, after which there is no empty one."""
    last = line + rest.count("\n")
    if fault := find_other_format(rest.split("\n")):
        return SubdpError(fault.reason, where=name, line=line + fault.line, hint=fault.hint)
    if rest.endswith("\r\n"):
        hint = "CoNLL-U lines end in LF alone; convert the file, for example with dos2unix"
        return SubdpError("lines end in CR LF", where=name, line=line, hint=hint)
    if rest.endswith("\n"):
        return SubdpError("no empty line after the last sentence", where=name, line=last, hint=_CUT_OFF)
    return SubdpError("the last line does not end", where=name, line=last, hint=_CUT_OFF)


_CUT_OFF = "the file may be cut off; if it is whole, add the missing newline"


def _located(block: str, name: str, line: int, any_roots: bool) -> Sentence:
    """Parse one block; if anything is wrong, raise an error that says what and where."""
    sentence = _parse(block, any_roots)
    if sentence is None:
        fault = find_fault(block, any_roots)
        assert fault is not None, "the fast path refused a block in which nothing is wrong"
        raise SubdpError(fault.reason, where=name, line=line + fault.line, hint=fault.hint)
    return sentence


@lru_cache(maxsize=1024)
def _ids(count: int) -> list[str]:
    return [str(number) for number in range(1, count + 1)]


def _parse(block: str, any_roots: bool) -> Sentence | None:
    """The fast path: column slices of a well-formed block, or None for any other."""
    if "\r" in block:
        return None
    start = 0
    while block.startswith("#", start):
        start = block.find("\n", start) + 1
        if start == 0:
            return None
    body = block[start:]
    count = body.count("\n") + 1
    # Line ends become fields of their own, so a line with too many or too few columns puts one of them out of place.
    fields = body.replace("\n", "\t\n\t").split("\t")
    if len(fields) != 11 * count - 1 or fields[10::11].count("\n") != count - 1 or "" in fields:
        return None
    if fields[::11] != _ids(count):
        if find_fault(block, any_roots=True, only_ids=True) is not None:
            return None
        rows = (row for row in body.split("\n") if row[: row.index("\t")].isdecimal())
        fields = "\t\n\t".join(rows).split("\t")
    try:
        heads = tuple(map(_HEADS.__getitem__, fields[6::11]))
    except KeyError:
        heads = tuple(UNKNOWN if head == "_" else int(head) if _NUMBER(head) else _BAD for head in fields[6::11])
    if not _sound(heads, any_roots):
        return None
    words = fields[1::11] if is_normalized("NFC", body) else [composed(word) for word in fields[1::11]]
    return Sentence(block, tuple(words), heads, tuple(fields[7::11]), tuple(fields[3::11]))


def _sound(heads: tuple[int, ...], any_roots: bool) -> bool:
    """Whether heads are in range, without a cycle and, unless `any_roots`, with one root where all heads are known."""
    low, count = min(heads), len(heads)
    if low < UNKNOWN or max(heads) > count:
        return False
    roots = heads.count(0)
    if not any_roots and (roots > 1 or (low >= 0 and not roots)):
        return False
    # Follow the chain of heads from each word and mark what it passes with that word's number. A chain that meets its
    # own mark is a cycle; one that meets an earlier mark is known to end. The last place, -1, is that of unknown heads.
    settled = [0] * (count + 2)
    settled[0] = settled[UNKNOWN] = count + 1
    for word, head in enumerate(heads, 1):
        if settled[word]:
            continue
        settled[word] = word
        while not settled[head]:
            settled[head] = word
            head = heads[head - 1]
        if settled[head] == word:
            return False
    return True


def trees_hash(sentences: Iterable[Sentence]) -> str:
    """The sha256 of the CoNLL-U of sentences, in order: a cache key for what is made from them."""
    digest = hashlib.sha256()
    for sentence in sentences:
        digest.update(f"{sentence.conllu}\n\n".encode())
    return digest.hexdigest()
