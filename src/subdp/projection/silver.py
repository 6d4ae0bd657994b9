"""Silver: sentence pairs with the source parser's distributions and an alignment, which `adapt` learns from.

Dense target distributions are never stored; training projects them batch by batch. `Silver` is the interface that
training uses; `SilverStore` is silver on disk, in numbered shards of Arrow IPC. A shard is a unit of work, written once
and as a whole. pyarrow is imported when a shard is read or written: parsing a sentence need not wait for it.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from html import escape
from itertools import islice
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from subdp.alignment.links import Alignment
from subdp.corpus.treebank import Sentence
from subdp.drawing.notebook import outline, scrolled
from subdp.projection.soft_tree import SoftTree, project
from subdp.projection.substructures import ARCS, LABELS, Inventory, find_substructure, shape
from subdp.support.cache import mark_used
from subdp.support.errors import SubdpError, counted
from subdp.support.files import map_file, open_output, remove_leftovers

Half = npt.NDArray[np.float16]
SHARD = 512
"""Pairs in a shard: the most that is redone after an interruption."""

_INFO = "silver.json"
_DRAWN = 3  # pairs that a notebook shows
_COLUMNS = ("source", "target", "links", "weights")


@dataclass(frozen=True, slots=True, eq=False)
class SilverPair:
    """A sentence pair, its alignment, and the source parser's distributions (or a gold tree) on the source sentence.

    `more` are other pairs with the same target sentence, from other source languages say; training takes their mean.

    Shape: distributions as in `projection/substructures.py`.
    """

    source: tuple[str, ...]
    target: tuple[str, ...]
    alignment: Alignment
    distributions: Mapping[str, Half]
    more: tuple[SilverPair, ...] = ()

    def __repr__(self) -> str:
        links = counted(len(self.alignment.links), "link")
        return f"<SilverPair: {outline(self.source)} → {outline(self.target)}, {links}>"

    def tree(self, inventory: Inventory) -> SoftTree:
        """The distributions over the source sentence as a soft tree."""
        distributions = {name: values.astype(np.float32) for name, values in self.distributions.items()}
        return SoftTree(self.source, distributions, inventory, (True,) * len(self.source))


Source: TypeAlias = tuple[Sentence | SoftTree, Alignment, Sequence[str]]
"""A tree, discrete or soft, the word alignment, and the words of the translation: what `project` takes."""


class Silver(ABC):
    """Sentence pairs with source distributions; `made_from` records their origin, `where` names them in errors."""

    inventory: Inventory
    made_from: Mapping[str, Any]
    where: str

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def __getitem__(self, index: int) -> SilverPair: ...

    @abstractmethod
    def targets(self) -> Iterator[tuple[str, ...]]:
        """The words of every target sentence, as a stream."""

    @property
    def tokenizer(self) -> str | None:
        """The name of the tokenizer that the target words are due to, if it is known."""
        return self.made_from.get("tokenizer")

    def __iter__(self) -> Iterator[SilverPair]:
        return (self[index] for index in range(len(self)))

    @staticmethod
    def of(pairs: Iterable[Source | SilverPair], inventory: Inventory | None = None) -> Silver:
        """Silver in memory, from any parser's trees or distributions: of each pair (tree, alignment, words).

        `inventory` has the values that the parser to be adapted knows, its `Parser.inventory`; without it they are the
        labels that occur. Pairs of other silver, as for a part of it, are taken as they are and need its inventory.
        """
        from subdp.projection.silver_list import SilverList

        return SilverList(list(pairs), inventory)

    def __repr__(self) -> str:
        return f"<Silver of {counted(len(self), 'pair')}: {self.where}>"

    def _repr_html_(self) -> str:
        """The first pairs, as they are projected."""
        pictures = [f"<b>{counted(len(self), 'pair')}: {escape(self.where)}</b>"]
        for pair in islice(self, _DRAWN):
            soft = project(pair.tree(self.inventory), pair.alignment, onto=pair.target)
            pictures.append(scrolled(soft._repr_svg_(), outline(pair.source)))
        return "\n".join(pictures)


class SilverStore(Silver):
    """Silver on disk, read on demand. An unfinished store can be written to, but not read."""

    def __init__(self, folder: Path):
        self.folder, self.where = folder, str(folder)
        info = _read_info(folder)
        mark_used(folder / _INFO)
        self.made_from, self.pairs = info["made_from"], int(info["pairs"])
        self.inventory = {name: tuple(values) for name, values in info["values"].items()}
        self._open = lru_cache(maxsize=None)(self._open_shard)

    def __reduce__(self) -> Any:
        return SilverStore, (self.folder,)

    @classmethod
    def create(cls, folder: Path, inventory: Inventory, *, pairs: int, made_from: Mapping[str, Any]) -> SilverStore:
        """A new store for this many pairs, or the existing one if made from the same inputs; else an error.

        Removes what killed processes left half-written.
        """
        info = {"values": inventory, "pairs": pairs, "made_from": made_from}
        if (folder / _INFO).exists():
            if _read_info(folder) != json.loads(json.dumps(info)):
                hint = "name another folder, or remove this one"
                reason = "holds silver made with another parser, bitext, aligner or treebank"
                raise SubdpError(reason, where=str(folder), hint=hint)
        else:
            if folder.is_dir() and any(not path.name.startswith(".") for path in folder.iterdir()):
                raise SubdpError("holds something other than silver", where=str(folder), hint="name a new folder")
            try:
                folder.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                hint = "name another folder"
                raise SubdpError(f"cannot be written: {error.strerror}", where=str(folder), hint=hint) from None
            with open_output(folder / _INFO) as output:
                output.write(json.dumps(info, ensure_ascii=False, indent=2).encode())
        remove_leftovers(folder, (_INFO, "[0-9]*.arrow"))
        return cls(folder)

    @property
    def units(self) -> list[range]:
        """The pairs of each shard."""
        return [range(start, min(start + SHARD, self.pairs)) for start in range(0, self.pairs, SHARD)]

    def missing(self) -> list[int]:
        """The numbers of the shards that are still to be written."""
        return [number for number in range(len(self.units)) if not self._path(number).exists()]

    def write(self, number: int, pairs: Sequence[SilverPair]) -> None:
        """Write one shard, all or nothing; every process writes the same bytes."""
        import pyarrow as pa

        kinds = (pa.list_(kind) for kind in (pa.string(), pa.string(), pa.int16(), pa.float32()))
        columns = zip(_COLUMNS, kinds, strict=True)
        schema = pa.schema([*columns, *((name, pa.large_binary()) for name in self.inventory)])
        batch = pa.RecordBatch.from_pylist([_row(pair) for pair in pairs], schema)
        with open_output(self._path(number)) as output, pa.ipc.new_file(output, schema) as writer:
            writer.write_batch(batch)

    def check(self) -> SilverStore:
        """The store itself if it is complete; otherwise an error."""
        if missing := self.missing():
            hint = "run the same `subdp project` command to finish it"
            reason = f"is not finished: {len(missing)} of {counted(len(self.units), 'shard')} missing"
            raise SubdpError(reason, where=self.where, hint=hint)
        return self

    def __len__(self) -> int:
        return self.pairs

    def __getitem__(self, index: int) -> SilverPair:
        if not 0 <= index < len(self):
            raise IndexError(index)
        table, row = self._open(index // SHARD), index % SHARD
        source, target, links, weights = (table.column(name)[row].as_py() for name in _COLUMNS)
        distributions = {
            name: np.frombuffer(table.column(name)[row].as_buffer(), np.float16).reshape(
                shape(find_substructure(name).kind, len(source), len(values))
            )
            for name, values in self.inventory.items()
        }
        alignment = Alignment(tuple(zip(links[::2], links[1::2], strict=True)), tuple(weights))
        return SilverPair(tuple(source), tuple(target), alignment, distributions)

    def targets(self) -> Iterator[tuple[str, ...]]:
        for number in range(len(self.units)):
            yield from map(tuple, self._open(number).column("target").to_pylist())

    def _path(self, number: int) -> Path:
        return self.folder / f"{number:05d}.arrow"

    def _open_shard(self, number: int) -> Any:
        import pyarrow as pa

        path = self._path(number)
        try:
            return pa.ipc.open_file(map_file(path)).get_batch(0)
        except FileNotFoundError:
            self.check()
            raise
        except (pa.ArrowInvalid, OSError) as error:
            raise SubdpError(f"is damaged: {error}", where=str(path), hint="remove it and project again") from None


def _row(pair: SilverPair) -> dict[str, Any]:
    return {
        "source": pair.source,
        "target": pair.target,
        "links": [index for link in pair.alignment.links for index in link],
        "weights": pair.alignment.weights,
        **{name: values.astype(np.float16).tobytes() for name, values in pair.distributions.items()},
    }


def _read_info(folder: Path) -> dict[str, Any]:
    """What `silver.json` says of a store, or the same facts worked out for a store of an earlier version."""
    try:
        info: dict[str, Any] = json.loads((folder / _INFO).read_text(encoding="utf-8"))
        if "labels" in info:
            return _read_first_version(folder, info)
        return {name: info[name] for name in ("values", "pairs", "made_from")}
    except FileNotFoundError:
        raise SubdpError("holds no silver", where=str(folder), hint="`subdp project` makes it") from None
    except (ValueError, KeyError, AttributeError):
        raise SubdpError("is damaged", where=str(folder / _INFO), hint="remove the folder and project again") from None


def _read_first_version(folder: Path, info: dict[str, Any]) -> dict[str, Any]:
    import pyarrow as pa

    if info["keep"]:
        hint = "an earlier version left out labels that matter: project again into another folder"
        raise SubdpError("is silver with labels left out", where=str(folder), hint=hint)
    rows = [pa.ipc.open_file(map_file(path)).get_batch(0).num_rows for path in folder.glob("*.arrow")]
    return {"values": {ARCS.name: [], LABELS.name: info["labels"]}, "pairs": sum(rows), "made_from": info["made_from"]}
