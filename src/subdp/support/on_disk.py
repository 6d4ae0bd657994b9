"""A sequence, a set and columns on disk, for a bitext that is larger than memory: at most 8 bytes an item are in it.

Their files are temporary, nameless, and gone with the object; `TMPDIR` says where they are. Standard library only.
"""

from __future__ import annotations

import errno
import os
import sqlite3
import tempfile
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from hashlib import blake2b
from itertools import accumulate
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import IO, Any, TypeVar, overload

from subdp.support.errors import SubdpError

_Item = TypeVar("_Item")


class Lines(Sequence[_Item]):
    """Items that are the lines of a file; in memory is only where each line ends. Threads may share it."""

    def __init__(self, file: IO[bytes], decode: Callable[[bytes], _Item]):
        """The lines of an open file, from its beginning; `decode` makes an item of a line."""
        file.seek(0)
        self._ends = array("q", accumulate(map(len, file), initial=0))
        self._bytes: Any = mmap(file.fileno(), 0, access=ACCESS_READ) if len(self) else b""
        self._decode = decode

    @classmethod
    def of(
        cls, items: Iterable[_Item], encode: Callable[[_Item], bytes], decode: Callable[[bytes], _Item]
    ) -> Lines[_Item]:
        """Items as a stream, written to a temporary file; `encode` makes a line, without its end, of each."""
        with _naming_the_full_disk(), tempfile.TemporaryFile() as file:
            file.writelines(encode(item) + b"\n" for item in items)
            file.flush()
            return cls(file, decode)

    @classmethod
    def read(cls, path: Path, decode: Callable[[bytes], _Item]) -> Lines[_Item]:
        """The lines of an existing file."""
        with path.open("rb") as file:
            return cls(file, decode)

    def __len__(self) -> int:
        return len(self._ends) - 1

    @overload
    def __getitem__(self, index: int) -> _Item: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[_Item, ...]: ...
    def __getitem__(self, index: int | slice) -> _Item | tuple[_Item, ...]:
        if isinstance(index, slice):
            return tuple(self[at] for at in range(*index.indices(len(self))))
        at = range(len(self))[index]
        return self._decode(self._bytes[self._ends[at] : self._ends[at + 1]])

    def __iter__(self) -> Iterator[_Item]:
        return (self[at] for at in range(len(self)))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence):
            return NotImplemented
        return len(self) == len(other) and all(one == two for one, two in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]  # as a list

    def __reduce__(self) -> Any:
        return tuple, (list(self),)  # Another process cannot see the file.


def map_columns(parts: Iterable[Sequence[Any]], columns: int) -> list[Any]:
    """For each column, the buffers of all parts one after the other, as one buffer that is a mapped file."""
    with _naming_the_full_disk(), ExitStack() as stack:
        files = [stack.enter_context(tempfile.TemporaryFile()) for _ in range(columns)]
        for part in parts:
            for file, values in zip(files, part, strict=True):
                file.write(values)
        return [_map(file) for file in files]


def _map(file: IO[bytes]) -> Any:
    file.flush()
    return mmap(file.fileno(), 0, access=ACCESS_READ) if file.tell() else b""


class Seen:
    """Remembers which keys it was given, by hashes of 16 bytes in a database on disk."""

    def __init__(self) -> None:
        folder = tempfile.gettempdir().replace("'", "''")
        try:
            # The empty name stands for a temporary database, which goes to a file when it outgrows the cache.
            self._database = sqlite3.connect("", isolation_level=None)
            # SQLite would take /var/tmp, and reads its environment variable only when Python first imports it.
            self._database.execute(f"PRAGMA temp_store_directory = '{folder}'")
            self._database.execute("PRAGMA journal_mode = OFF")
            self._database.execute("PRAGMA cache_size = -16000")  # in kilobytes
            self._database.execute("BEGIN")
            self._database.execute("CREATE TABLE seen (hash BLOB PRIMARY KEY) WITHOUT ROWID")
        except sqlite3.OperationalError as error:
            raise _located(error) from error

    def add(self, key: bytes) -> bool:
        """Whether the key is new."""
        digest = blake2b(key, digest_size=16).digest()
        try:
            return self._database.execute("INSERT OR IGNORE INTO seen VALUES (?)", (digest,)).rowcount == 1
        except sqlite3.OperationalError as error:
            raise _located(error) from error


def _located(error: sqlite3.OperationalError) -> Exception:
    """SQLite's error with the folder of its file: of a full disk as of any other file, or with its own text."""
    if str(error) == "database or disk is full":
        return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), tempfile.gettempdir())
    reason, hint = f"a temporary file cannot be written: {error}", "set TMPDIR to another folder"
    return SubdpError(reason, where=tempfile.gettempdir(), hint=hint)


@contextmanager
def _naming_the_full_disk() -> Iterator[None]:
    """A temporary file has no name, but that of its folder says where to make room."""
    try:
        yield
    except OSError as error:
        if error.errno == errno.ENOSPC:
            error.filename = error.filename or tempfile.gettempdir()
        raise
