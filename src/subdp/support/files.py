"""Opening what users name (`path`, `path.gz`, `-`) and writing so that no half-written file bears the final name.

Standard library only; every module that reads or writes a file comes through here.
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import json
import os
import sys
import uuid
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, TypeAlias

from subdp.support.errors import SubdpError

Source: TypeAlias = str | os.PathLike[str] | IO[str] | IO[bytes]
"""A path (`.gz` is unpacked), `-` for standard input or output, or an open file."""


def name_of(source: Source) -> str:
    """The name by which errors speak of a source."""
    if isinstance(source, str | os.PathLike):
        return "<stdin>" if os.fspath(source) == "-" else os.fspath(source)
    return str(getattr(source, "name", "<file>"))


def open_input(source: Source) -> contextlib.AbstractContextManager[IO[Any]]:
    """Open a path for reading bytes, until the end of `with`; what is open already, as standard input, stays open."""
    if not isinstance(source, str | os.PathLike):
        return contextlib.nullcontext(source)
    if os.fspath(source) == "-":
        return contextlib.nullcontext(sys.stdin.buffer)
    path = Path(source)
    try:
        opener: Any = gzip.open if path.suffix == ".gz" else open
        stream: IO[bytes] = opener(path, "rb")
        return stream
    except FileNotFoundError:
        raise SubdpError("no such file", where=name_of(source), hint="check the path") from None
    except IsADirectoryError:
        raise SubdpError("this is a folder, not a file", where=name_of(source), hint="name a file in it") from None
    except OSError as error:
        raise SubdpError(f"cannot be opened: {error.strerror}", where=name_of(source)) from None


@contextlib.contextmanager
def unpacking(name: str) -> Iterator[None]:
    """While a file is read: a damaged `.gz` is an error that says so."""
    try:
        yield
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise SubdpError(f"cannot be unpacked: {error}", where=name, hint="the .gz is damaged") from None


@contextlib.contextmanager
def open_output(target: Source) -> Iterator[IO[Any]]:
    """Write to a path all or nothing: the file appears under its name only when complete and on disk.

    `-` is standard output; an open file is written to as it is; `.gz` is compressed, the same bytes every time.
    """
    if not isinstance(target, str | os.PathLike):
        yield target
        return
    if os.fspath(target) == "-":
        try:
            yield sys.stdout.buffer
            sys.stdout.buffer.flush()
        except OSError as error:
            _name(error, "<stdout>")
            raise
        return
    path = Path(target)
    if path.is_dir():
        raise SubdpError("this is a folder, not a file", where=str(path), hint="name a file in it")
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}")
    try:
        raw = temporary.open("xb")
    except OSError as error:
        raise SubdpError(
            f"cannot be written: {error.strerror}", where=str(path), hint="check that the folder exists and is writable"
        ) from None
    try:
        with raw:
            if path.suffix == ".gz":
                with gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) as packed:
                    yield packed  # type: ignore[misc]  # a binary file in all but its declared type
            else:
                yield raw
            raw.flush()
            os.fsync(raw.fileno())
        temporary.replace(path)
    except BaseException as error:
        temporary.unlink(missing_ok=True)
        _name(error, str(path))
        raise


@contextlib.contextmanager
def open_text_output(target: Source) -> Iterator[Callable[[str], object]]:
    """As `open_output`, giving a function that writes text, as UTF-8 where the file takes bytes."""
    with open_output(target) as output:
        yield output.write if hasattr(output, "encoding") else lambda text: output.write(text.encode())


def write_json(path: Path, value: Any) -> None:
    """Write a JSON file, all or nothing."""
    with open_output(path) as output:
        output.write((json.dumps(value, ensure_ascii=False, indent=2) + "\n").encode())


def file_hash(path: str | Path) -> str:
    """The sha256 of what a file holds."""
    digest = hashlib.sha256()
    with open_input(path) as stream:
        while block := stream.read(1 << 22):
            digest.update(block)
    return digest.hexdigest()


def _name(error: BaseException, path: str) -> None:
    """A full disk does not say which file it has no room for."""
    if isinstance(error, OSError) and error.filename is None:
        error.filename = path
