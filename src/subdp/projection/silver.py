"""Silver on disk: source distributions, alignments and words of every sentence pair, in shards of Arrow IPC.

Dense target distributions are never stored; training projects them from these, batch by batch. A shard appears only
when it is complete, so an interrupted `append` goes on where the last shard ends.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from subdp.alignment.links import Alignment
from subdp.projection.soft_tree import SoftTree
from subdp.support.errors import SubdpError
from subdp.support.files import open_output

Half = npt.NDArray[np.float16]
SHARD = 512
"""Pairs in a shard: what at most is done again after an interruption."""

_SCHEMA = pa.schema(
    [
        ("source", pa.list_(pa.string())),
        ("target", pa.list_(pa.string())),
        ("links", pa.list_(pa.int16())),
        ("weights", pa.list_(pa.float32())),
        ("arcs", pa.large_binary()),
        ("kept", pa.large_binary()),
        ("labels", pa.large_binary()),
    ]
)


@dataclass(frozen=True, slots=True, eq=False)
class SilverPair:
    """A sentence pair, its alignment, and the source parser's distributions (or a gold tree) on the source sentence.

    `more` are other pairs of the same target sentence, as from other source languages, for a mean over all of them.

    Shape: arcs [S+1, S+1], labels [S+1, S+1, L], [dependent, head], ROOT 0.
    """

    source: tuple[str, ...]
    target: tuple[str, ...]
    alignment: Alignment
    arcs: Half
    labels: Half
    more: tuple[SilverPair, ...] = ()

    def tree(self, label_names: tuple[str, ...]) -> SoftTree:
        """What the source parser, or the treebank, said of the source sentence."""
        arcs, labels = self.arcs.astype(np.float32), self.labels.astype(np.float32)
        return SoftTree(self.source, arcs, labels, label_names, (True,) * len(self.source))


class Silver:
    """Sentence pairs with source distributions, read from disk as they are asked for."""

    def __init__(self, folder: Path):
        self.folder = folder
        try:
            info = json.loads((folder / "silver.json").read_text())
        except FileNotFoundError:
            raise SubdpError("holds no silver", where=str(folder), hint="`subdp project` makes it") from None
        except ValueError:
            raise SubdpError("is damaged", where=str(folder / "silver.json"), hint="make the folder anew") from None
        self.label_names: tuple[str, ...] = tuple(info["labels"])
        self.keep: float = info["keep"]
        self.made_from: dict[str, Any] = info["made_from"]
        self._load()

    @classmethod
    def create(cls, folder: Path, label_names: Iterable[str], *, keep: float, made_from: dict[str, Any]) -> Silver:
        """A new store, or the one that is there if it was made from the same; otherwise an error.

        `keep` above 0 stores labels only of arcs at least so probable. That is right with `label_weight = arc` alone:
        elsewhere the labels of improbable arcs count too.
        """
        info = {"labels": list(label_names), "keep": keep, "made_from": made_from}
        path = folder / "silver.json"
        if path.exists():
            if json.loads(path.read_text()) != json.loads(json.dumps(info)):
                hint = "name another folder, or remove this one"
                reason = "holds silver of another parser, bitext, aligner or treebank"
                raise SubdpError(reason, where=str(folder), hint=hint)
        else:
            try:
                folder.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                hint = "name another folder"
                raise SubdpError(f"cannot be written: {error.strerror}", where=str(folder), hint=hint) from None
            with open_output(path) as output:
                output.write(json.dumps(info, ensure_ascii=False, indent=2).encode())
        return cls(folder)

    def append(self, pairs: Iterable[SilverPair]) -> None:
        """Add pairs, shard by shard."""
        stream, number = iter(pairs), len(self._starts) - 1
        while shard := list(islice(stream, SHARD)):
            # Counted here and not on disk: another process at the same work writes the same shard under the same name.
            path = self.folder / f"{number:05d}.arrow"
            number += 1
            with open_output(path) as output, pa.ipc.new_file(output, _SCHEMA) as writer:
                writer.write_batch(pa.RecordBatch.from_pylist([self._row(pair) for pair in shard], _SCHEMA))
            self._load()

    def __len__(self) -> int:
        return self._starts[-1]

    def __getitem__(self, index: int) -> SilverPair:
        if not 0 <= index < len(self):
            raise IndexError(index)
        shard = bisect_right(self._starts, index) - 1
        row = index - self._starts[shard]
        table = self._open(shard)
        columns = {name: table.column(number)[row] for number, name in enumerate(_SCHEMA.names)}
        source, target = (tuple(columns[name].as_py()) for name in ("source", "target"))
        size, count = len(source) + 1, len(self.label_names)
        arcs = np.frombuffer(columns["arcs"].as_buffer(), np.float16).reshape(size, size)
        labels = np.frombuffer(columns["labels"].as_buffer(), np.float16)
        if self.keep:
            full = np.full((size * size, count), 1 / count, np.float16)
            full[np.frombuffer(columns["kept"].as_buffer(), np.int32)] = labels.reshape(-1, count)
            labels = full
        links = np.asarray(columns["links"].as_py(), dtype=int).reshape(-1, 2).tolist()
        alignment = Alignment(tuple((i, j) for i, j in links), tuple(columns["weights"].as_py()))
        return SilverPair(source, target, alignment, arcs, labels.reshape(size, size, count))

    def __iter__(self) -> Iterator[SilverPair]:
        return (self[index] for index in range(len(self)))

    def targets(self) -> Iterator[tuple[str, ...]]:
        """The words of every target sentence, as a stream."""
        for shard in range(len(self._starts) - 1):
            yield from map(tuple, self._open(shard).column(1).to_pylist())

    def _row(self, pair: SilverPair) -> dict[str, Any]:
        kept = np.flatnonzero(pair.arcs >= self.keep).astype(np.int32) if self.keep else np.empty(0, np.int32)
        labels = pair.labels.reshape(-1, len(self.label_names))
        return {
            "source": pair.source,
            "target": pair.target,
            "links": [index for link in pair.alignment.links for index in link],
            "weights": pair.alignment.weights,
            "arcs": pair.arcs.astype(np.float16).tobytes(),
            "kept": kept.tobytes(),
            "labels": (labels[kept] if self.keep else labels).astype(np.float16).tobytes(),
        }

    def _load(self) -> None:
        """Find the shards that are there; they are numbered without gaps."""
        self._open = lru_cache(maxsize=None)(self._open_shard)
        self._starts = [0]
        while (self.folder / f"{len(self._starts) - 1:05d}.arrow").exists():
            self._starts.append(self._starts[-1] + self._open(len(self._starts) - 1).num_rows)

    def _open_shard(self, shard: int) -> Any:
        path = self.folder / f"{shard:05d}.arrow"
        try:
            return pa.ipc.open_file(pa.memory_map(str(path))).get_batch(0)
        except (pa.ArrowInvalid, OSError) as error:
            raise SubdpError(f"is damaged: {error}", where=str(path), hint="remove it and project again") from None
