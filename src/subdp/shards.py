"""One file of the feature store: Arrow IPC, written once, memory-mapped, with a checksum. `features` has the store."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from os import fsync
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from numpy.typing import NDArray

from subdp.encode import Encoded

_LARGEST = float(np.finfo(np.float16).max)


@dataclass(frozen=True, slots=True)
class Row:
    """A sentence in a shard: `sizes` has two bytes for each word, the number of its subwords; then all vectors."""

    key: bytes
    sizes: bytes
    vectors: bytes

    @classmethod
    def of(cls, key: bytes, sentence: Encoded) -> Row:
        """All subwords, for alignment needs them; the parser reads the first and the last of each word."""
        # Some encoders have dimensions beyond the range of float16: large is near enough, infinite is not.
        half = torch.from_numpy(sentence.vectors).clamp(-_LARGEST, _LARGEST).half().transpose(0, 1)
        sizes = (sentence.last - sentence.first + 1).astype(np.uint16)
        return cls(key, sizes.tobytes(), half.contiguous().numpy().tobytes())


@dataclass(frozen=True, slots=True, eq=False)
class Shard:
    """A shard as arrays on its memory-mapped file; `expected` is the checksum of its columns."""

    file: Path
    columns: Sequence[Any]
    expected: int
    keys: list[bytes]
    sizes: NDArray[np.uint16]
    size_ends: NDArray[np.int64]
    vectors: NDArray[np.float16]
    vector_ends: NDArray[np.int64]

    def row(self, row: int) -> tuple[NDArray[np.uint16], NDArray[np.float16]]:
        """The sizes of a sentence's words, and its vectors in one line."""
        return (
            self.sizes[self.size_ends[row] : self.size_ends[row + 1]],
            self.vectors[self.vector_ends[row] : self.vector_ends[row + 1]],
        )

    def is_sound(self) -> bool:
        """Whether its bytes are those that were written."""
        return _checksum(self.columns) == self.expected

    @classmethod
    def read(cls, file: Path, width: int) -> Shard | None:
        """The shard in this file, or None if it is not to be read: the footer or a length is wrong."""
        try:
            with pa.memory_map(str(file)) as source, pa.ipc.open_file(source) as reader:
                table = reader.get_batch(0)
                expected = int(reader.schema.metadata[b"crc32"])
            columns = table.columns
            (_, size_ends, sizes), (_, vector_ends, vectors) = columns[1].buffers(), columns[2].buffers()
            shard = cls(
                file,
                columns,
                expected,
                columns[0].to_pylist(),
                np.frombuffer(sizes, np.uint16),
                np.frombuffer(size_ends, np.int64) // 2,
                np.frombuffer(vectors, np.float16),
                np.frombuffer(vector_ends, np.int64) // 2,
            )
        except (pa.ArrowException, OSError, ValueError, KeyError, TypeError, IndexError) as error:
            # A number means that the system would not let us read; without one it is Arrow that finds the file wrong.
            if isinstance(error, OSError) and error.errno is not None:
                raise
            return None
        return shard if shard.vector_ends[-1] == shard.sizes.sum(dtype=np.int64) * width else None


def write_shard(rows: list[Row], file: Path) -> None:
    arrays = [
        pa.array([row.key for row in rows], pa.binary(16)),
        pa.array([row.sizes for row in rows], pa.large_binary()),
        pa.array([row.vectors for row in rows], pa.large_binary()),
    ]
    metadata = {"crc32": str(_checksum(arrays))}
    batch = pa.record_batch(arrays, names=["key", "sizes", "vectors"]).replace_schema_metadata(metadata)
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
