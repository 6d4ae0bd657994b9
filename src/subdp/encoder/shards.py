"""The files of the feature store (`feature_store.py`): Arrow IPC, written once, memory-mapped, with a checksum.

pyarrow is imported when a file is read or written: parsing a sentence need not wait for it.
"""

from __future__ import annotations

import contextlib
import zlib
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from os import fsync
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from subdp.encoder.batch import chunks
from subdp.encoder.encoder import Encoded
from subdp.support.files import map_file
from subdp.support.on_disk import map_columns

if TYPE_CHECKING:
    import pyarrow as pa

KEY = np.dtype("S16")
Keys = NDArray[np.bytes_]
_ROWS = 1 << 32  # A place is a shard's number times this, plus the row.
_SORTED_AT_ONCE = 1 << 18  # Keys, of some 100 bytes each while they are sorted.
_LARGEST = float(np.finfo(np.float16).max)


@dataclass(frozen=True, slots=True)
class Row:
    """A sentence in a shard: `sizes` has two bytes for each word, the number of its subwords; then all vectors."""

    key: bytes
    sizes: bytes
    vectors: bytes

    @classmethod
    def of(cls, key: bytes, sentence: Encoded) -> Row:
        """A row with all subwords, since alignment needs them; the parser reads the first and the last of each word."""
        # Some encoders have values beyond the range of float16: clamped they do no harm, infinite they would.
        half = torch.from_numpy(sentence.vectors).clamp(-_LARGEST, _LARGEST).half().transpose(0, 1)
        sizes = (sentence.last - sentence.first + 1).astype(np.uint16)
        return cls(key, sizes.tobytes(), half.contiguous().numpy().tobytes())


@dataclass(frozen=True, slots=True, eq=False)
class Shard:
    """A shard as arrays on its memory-mapped file; `expected` is the checksum of its columns. Ends are in bytes."""

    file: Path
    columns: Sequence[Any]
    expected: int
    keys: Keys
    sizes: NDArray[np.uint16]
    size_ends: NDArray[np.int64]
    vectors: NDArray[np.float16]
    vector_ends: NDArray[np.int64]

    def row(self, row: int) -> tuple[NDArray[np.uint16], NDArray[np.float16]]:
        """The number of subwords of each word of a sentence, and its vectors, flat."""
        return (
            self.sizes[self.size_ends[row] // 2 : self.size_ends[row + 1] // 2],
            self.vectors[self.vector_ends[row] // 2 : self.vector_ends[row + 1] // 2],
        )

    def is_sound(self) -> bool:
        """Whether its checksum is right."""
        return _checksum(self.columns) == self.expected

    @classmethod
    def read(cls, file: Path, width: int) -> Shard | None:
        """The shard in this file, or None if it is damaged: the footer or a length is wrong."""
        import pyarrow as pa

        try:
            with map_file(file) as source, pa.ipc.open_file(source) as reader:
                table = reader.get_batch(0)
                expected = int(reader.schema.metadata[b"crc32"])
            columns = table.columns
            (_, size_ends, sizes), (_, vector_ends, vectors) = columns[1].buffers(), columns[2].buffers()
            shard = cls(
                file,
                columns,
                expected,
                np.frombuffer(columns[0].buffers()[1], KEY),
                np.frombuffer(sizes, np.uint16),
                np.frombuffer(size_ends, np.int64),
                np.frombuffer(vectors, np.float16),
                np.frombuffer(vector_ends, np.int64),
            )
        except (pa.ArrowException, OSError, ValueError, KeyError, TypeError, IndexError) as error:
            # With an errno the operating system refused to read; without one Arrow found the file invalid.
            if isinstance(error, OSError) and error.errno is not None:
                raise
            return None
        return shard if shard.vector_ends[-1] == 2 * shard.sizes.sum(dtype=np.int64) * width else None


class Shards:
    """All shards of a store, and where each sentence is: sorted keys and their places, in files that are mapped.

    The index is replaced as a whole, so that a thread may read while another adds.
    """

    def __init__(self) -> None:
        self._shards: list[Shard] = []
        self._sound: set[int] = set()
        self._damaged: set[int] = set()
        self._index: tuple[Keys, NDArray[np.int64]] = (np.zeros(0, KEY), np.zeros(0, np.int64))

    def __len__(self) -> int:
        return len(self._index[0])

    @property
    def files(self) -> set[Path]:
        """The files of all shards but damaged ones, so that a file rewritten under the same name counts as new."""
        return {shard.file for number, shard in enumerate(self._shards) if number not in self._damaged}

    def add(self, shards: Sequence[Shard]) -> None:
        """Add shards; a sentence that is in two of them is read from the first."""
        if shards:
            self._build([*self._shards, *shards])

    def _build(self, shards: list[Shard]) -> None:
        """Index all shards that are not damaged. *Shape:* keys, sorted, and places, both [sentences]."""
        keys = [shard.keys[: 0 if at in self._damaged else None] for at, shard in enumerate(shards)]
        parts = 1 + sum(map(len, keys)) // _SORTED_AT_ONCE
        blocks = list(chunks(keys, _SORTED_AT_ONCE))
        known, places = map_columns((_sorted(blocks, part, parts) for part in range(parts)), 2)
        self._shards = shards
        self._index = np.frombuffer(known, KEY), np.frombuffer(places, np.int64)

    def find(self, keys: Keys) -> NDArray[np.int64]:
        """The places of sentences, −1 for one that is missing."""
        known, places = self._index
        if not len(known):
            return np.full(len(keys), -1)
        at = np.minimum(np.searchsorted(known, keys), len(known) - 1)
        return np.where(known[at] == keys, places[at], -1)

    def files_of(self, places: NDArray[np.int64]) -> list[Path]:
        """The files in which the sentences at these places are."""
        return [self._shards[number].file for number in np.unique(places // _ROWS).tolist() if number >= 0]

    def find_sound(self, keys: Keys) -> NDArray[np.int64]:
        """As `find`, but the checksum of each shard concerned is verified, once; a damaged one is removed.

        Verifying all shards when the store is opened would take long for a few sentences.
        """
        while True:
            places = self.find(keys)
            unread = {number for number in np.unique(places // _ROWS).tolist() if number >= 0} - self._sound
            if not unread:
                return places
            damaged = {number for number in unread if not self._shards[number].is_sound()}
            self._sound |= unread - damaged
            self._damaged |= damaged
            for number in damaged:
                with contextlib.suppress(OSError):
                    self._shards[number].file.unlink()
            if damaged:
                self._build(self._shards)

    def rows(self, keys: Keys) -> list[tuple[NDArray[np.uint16], NDArray[np.float16]]]:
        """What is stored of these sentences (see `Shard.row`), which must have been added."""
        places = self.find(keys)
        if (places < 0).any():
            raise KeyError("a sentence is not in the store: add() it first")
        return [self._shards[place // _ROWS].row(place % _ROWS) for place in places.tolist()]


def _sorted(blocks: Sequence[Sequence[Keys]], part: int, parts: int) -> tuple[Keys, NDArray[np.int64]]:
    """One of so many parts of all keys, cut by their first bytes: sorted, and the place at which each is first.

    `blocks` has the keys of all shards, some shards at a time, since there are many small ones.
    """
    found, places, number = [np.zeros(0, KEY)], [np.zeros(0, np.int64)], 0
    for block in blocks:
        keys = np.concatenate(block)
        rows = np.flatnonzero(keys.view(">u2")[:: KEY.itemsize // 2].astype(np.int64) * parts >> 16 == part)
        ends = np.cumsum([len(one) for one in block])
        shard = np.searchsorted(ends, rows, side="right")
        found.append(keys[rows])
        places.append((number + shard) * _ROWS + rows - np.append(0, ends)[shard])
        number += len(block)
    known, first = np.unique(np.concatenate(found), return_index=True)
    return known, np.concatenate(places)[first]


def pack(rows: Iterable[Row]) -> pa.RecordBatch:
    """The contents of a shard.

    Rows are appended to one buffer as they come: holding many small pieces would fragment memory.
    """
    import pyarrow as pa

    keys, sizes, vectors = bytearray(), bytearray(), bytearray()
    size_ends, vector_ends = array("q", [0]), array("q", [0])
    for row in rows:
        keys += row.key
        sizes += row.sizes
        vectors += row.vectors
        size_ends.append(len(sizes))
        vector_ends.append(len(vectors))
    kinds = {"key": pa.binary(16), "sizes": pa.large_binary(), "vectors": pa.large_binary()}
    columns = [
        pa.Array.from_buffers(kind, len(size_ends) - 1, [None, *map(pa.py_buffer, buffers)])
        for kind, buffers in zip(kinds.values(), [(keys,), (size_ends, sizes), (vector_ends, vectors)], strict=True)
    ]
    schema = pa.schema(kinds.items(), {"crc32": str(_checksum(columns))})
    return pa.record_batch(columns, schema=schema)


def write_shard(batch: pa.RecordBatch, file: Path) -> None:
    """Write a shard and flush it to disk."""
    import pyarrow as pa

    with file.open("wb") as stream:
        with pa.ipc.new_file(stream, batch.schema) as writer:
            writer.write_batch(batch)
        stream.flush()
        fsync(stream.fileno())


def _checksum(columns: Iterable[Any]) -> int:
    value = 0
    for column in columns:
        for buffer in column.buffers():
            value = zlib.crc32(buffer, value) if buffer else value
    return value
