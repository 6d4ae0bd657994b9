"""Opening what users name (`path`, `path.gz`, `-`), reading its lines, and writing files all or nothing.

Text that users give and results they get come through here; model folders, caches and stages keep files of their own
besides. Standard library only.
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import json
import os
import re
import sys
import time
import uuid
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO, Any, TypeAlias

from subdp.support.errors import SubdpError

Source: TypeAlias = str | os.PathLike[str] | IO[str] | IO[bytes]
"""A path (`.gz` is unpacked), `-` for standard input or output, or an open file."""


def name_of(source: Source) -> str:
    """The name of a source in error messages."""
    if isinstance(source, str | os.PathLike):
        return "<stdin>" if os.fspath(source) == "-" else os.fspath(source)
    return str(getattr(source, "name", "<file>"))


def open_input(source: Source) -> contextlib.AbstractContextManager[IO[Any]]:
    """Open a path for reading bytes until the end of `with`; an open file and standard input stay open.

    A damaged `.gz`, noticed while it is read, is an error that says so.
    """
    if not isinstance(source, str | os.PathLike):
        return _Opened(source, name_of(source), close=False)
    if os.fspath(source) == "-":
        return _Opened(sys.stdin.buffer, name_of(source), close=False)
    path = Path(source)
    try:
        opener: Any = gzip.open if path.suffix == ".gz" else open
        return _Opened(opener(path, "rb"), name_of(source), close=True)
    except FileNotFoundError:
        raise SubdpError("no such file", where=name_of(source), hint="check the path") from None
    except IsADirectoryError:
        raise SubdpError("this is a folder, not a file", where=name_of(source), hint="name a file in it") from None
    except OSError as error:
        raise SubdpError(f"cannot be opened: {error.strerror}", where=name_of(source)) from None


def check_input(source: Source) -> None:
    """Raise unless a path can be opened: before a parser is loaded, which takes longer."""
    if isinstance(source, str | os.PathLike) and os.fspath(source) != "-":
        with open_input(source):
            pass


class _Opened(contextlib.AbstractContextManager[IO[Any]]):
    """A file while it is read."""

    def __init__(self, stream: IO[Any], name: str, *, close: bool):
        self.stream, self.name, self.close = stream, name, close

    def __enter__(self) -> IO[Any]:
        return self.stream

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if self.close:
            self.stream.close()
        if isinstance(error, gzip.BadGzipFile | EOFError | zlib.error):
            reason, hint = f"cannot be unpacked: {error}", "the .gz is damaged or cut off; download or make it again"
            raise SubdpError(reason, where=self.name, hint=hint) from None
        if isinstance(error, UnicodeDecodeError):  # from a file that was opened as text
            raise SubdpError(f"not UTF-8: {error.reason}", where=self.name, hint=_NOT_UTF8) from None


def read_bytes(source: Source) -> bytes:
    """All that a file holds."""
    with open_input(source) as stream:
        content: str | bytes = stream.read()
    return content.encode() if isinstance(content, str) else content


def read_lines(source: Source) -> Iterator[tuple[int, str]]:
    """The lines of a text file, numbered from 1, without their ends and without a byte order mark."""
    name = name_of(source)
    with open_input(source) as stream:
        for number, line in enumerate(stream, 1):
            text = line if isinstance(line, str) else decode(line, name, number)
            yield number, (text.removeprefix("\ufeff") if number == 1 else text).rstrip("\r\n")


def decode(data: bytes, name: str, line: int) -> str:
    """Bytes as text. `line` is the line of the file at which they begin, for errors."""
    if line == 1:
        for signature, (reason, hint) in _OTHER_KINDS.items():
            if data.startswith(signature):
                raise SubdpError(reason, where=name, hint=hint)
    if (zero := data.find(b"\0")) >= 0:
        place = line + data.count(b"\n", 0, zero)
        raise SubdpError("a NUL byte", where=name, line=place, hint=_NOT_TEXT)
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        place = line + data.count(b"\n", 0, error.start)
        hint = _NOT_TEXT if _CONTROL(data) else _NOT_UTF8
        raise SubdpError(f"byte 0x{data[error.start]:02x} is not UTF-8", where=name, line=place, hint=hint) from None


_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]").search  # which text in no encoding of one byte has
_NOT_TEXT = "this is not a text file in UTF-8"
_NOT_UTF8 = "convert the file, for example with iconv -f LATIN1 -t UTF-8"
_SAVE_AS_TEXT = "open it in the program that made it and save it as plain text (UTF-8)"
_OTHER_KINDS = {
    b"PK\x03\x04": ("this is a Word document or another zip file, not plain text", _SAVE_AS_TEXT),
    b"\xd0\xcf\x11\xe0": ("this is a document of an older Office program, not plain text", _SAVE_AS_TEXT),
    b"%PDF": ("this is a PDF, not plain text", "extract its text first, for example with pdftotext"),
    b"{\\rtf": ("this is an RTF document, not plain text", _SAVE_AS_TEXT),
    b"\x1f\x8b": ("this is compressed by gzip", "give it a name that ends in .gz"),
    b"\xff\xfe": ("this is UTF-16, not UTF-8", 'save it as "UTF-8 text"'),
    b"\xfe\xff": ("this is UTF-16, not UTF-8", 'save it as "UTF-8 text"'),
}


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


def leftovers(folder: Path, names: Iterable[str]) -> list[Path]:
    """What killed processes were writing under these names or patterns: hidden, with eight random characters after."""
    found = [path for name in names for path in folder.glob(f".{name}.????????")]
    return [path for path in found if path.name[-8:].replace("_", "a").isalnum()]


def remove_leftovers(folder: Path, names: Iterable[str]) -> None:
    """Remove such files from a folder that several processes may write to: only those that nobody is writing now."""
    for path in leftovers(folder, names):
        with contextlib.suppress(OSError):  # Another process may have removed it, and one that stays does no harm.
            if time.time() - path.stat().st_mtime > _LEFT_SECONDS:
                path.unlink()


_LEFT_SECONDS = 3600  # A file that was not written to for this long was left by a killed process.


def file_hash(source: Source) -> str:
    """The sha256 of a file's content, unpacked if it is a `.gz`."""
    digest = hashlib.sha256()
    with open_input(source) as stream:
        while block := stream.read(1 << 22):
            digest.update(block.encode() if isinstance(block, str) else block)
    return digest.hexdigest()


def _name(error: BaseException, path: str) -> None:
    """Put the file's name into an error that lacks it, such as that of a full disk."""
    if isinstance(error, OSError) and error.filename is None:
        error.filename = path


def map_file(path: Path) -> Any:
    """A file mapped into memory, for Arrow to read; that there is no room for a map does not make the file damaged."""
    import pyarrow as pa

    try:
        return pa.memory_map(str(path))
    except OSError as error:
        if error.errno is not None:
            raise
        hint = "allow more address space (ulimit -v) or more maps (vm.max_map_count)"
        raise SubdpError(f"cannot be mapped: {error}", where=str(path), hint=hint) from error
