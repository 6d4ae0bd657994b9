"""The one downloader: files over HTTP, with a progress bar, resumed where an earlier attempt was cut off.

Every failure is an error that says which address, why, and what to do. Standard library only.
"""

from __future__ import annotations

import hashlib
import io
import json
import tempfile
from http.client import HTTPException
from pathlib import Path
from typing import IO, Any
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from subdp.support.errors import SubdpError
from subdp.support.progress import progress

RESUMES = "the same command resumes the download"
SECONDS = 30.0  # without a byte from the server before giving up
_CHUNK = 1 << 16
_PART = ".part"  # the ending of a file that is not complete yet


def check_url(url: str, hint: str = "URLs start with https://") -> str:
    """The address without a slash at its end; an error if it is not one of the web."""
    if not url.startswith(("http://", "https://")):
        raise SubdpError(f"{url!r} is not a URL", hint=hint)
    return url.rstrip("/")


def download(place: str, to: IO[bytes], *, have: int = 0, hint: str = "try again") -> bool:
    """Download a file; False if the server has none. Any other failure is an error.

    `to` has the first `have` bytes already: only the rest is asked for, or everything if the server cannot do that.
    """
    headers = {"Range": f"bytes={have}-"} if have else {}
    try:
        with urlopen(Request(place, headers=headers), timeout=SECONDS) as answer:
            if have and answer.status != 206:
                to.seek(0)
                to.truncate()
            pour(answer, to, answer.length, place, hint=hint)
        return True
    except HTTPError as error:
        with error:
            if error.code == 404:
                return False
            if not (have and error.code == 416):
                reason = f"the server answered {error.code} {error.reason}"
                raise SubdpError(reason, where=place, hint="try again later") from None
    except (OSError, HTTPException) as error:
        cause = error.reason if isinstance(error, URLError) else error
        reason = getattr(cause, "strerror", None) or str(cause) or type(cause).__name__
        raise SubdpError(f"cannot be downloaded: {reason}", where=place, hint=hint) from None
    to.seek(0)  # The server's file ends before what is here: it is another one.
    to.truncate()
    return download(place, to, hint=hint)


def pour(stream: Any, to: IO[bytes], size: int | None, place: str, *, hint: str = "try again") -> None:
    """Copy a stream with a progress bar; `size` is None if unknown."""
    done = 0
    with progress(place.rpartition("/")[2], None if size is None else size // 1000, "kB") as advance:
        while chunk := stream.read(_CHUNK):
            _write(to, chunk)
            done += len(chunk)
            advance(len(chunk) / 1000)
    if size is not None and done != size:
        raise SubdpError(f"only {done:,} of {size:,} bytes arrived", where=place, hint=hint)


def _write(to: IO[bytes], chunk: bytes) -> None:
    left = memoryview(chunk)
    try:
        while left:
            left = left[to.write(left) :]
    except OSError as error:
        name = getattr(to, "name", None)
        where = name if isinstance(name, str) else tempfile.gettempdir()
        raise SubdpError(f"cannot be written: {error.strerror}", where=where, hint=f"make room; {RESUMES}") from None


def download_file(place: str, file: Path, *, git_hash: str | None = None) -> bool:
    """Download to a file that gets its name only when complete; False if the server has none.

    What has arrived is kept in a file whose name ends in `.part`, from which the next attempt resumes. With the hash
    by which git knows a file, its content is checked.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    part = file.with_name(file.name + _PART)
    with part.open("ab", buffering=0) as to:  # With a buffer, closing it on a full disk would be a second error.
        found = download(place, to, have=to.tell(), hint=RESUMES)
    if not found:
        part.unlink()
        return False
    if git_hash is not None and _git_hash(part) != git_hash:
        part.unlink()
        hint = "it was damaged in transit and has been removed; try again"
        raise SubdpError("does not match the published checksum", where=place, hint=hint)
    part.replace(file)
    return True


def download_json(place: str) -> Any:
    """What a server says in JSON; None if it has nothing there."""
    to = io.BytesIO()
    if not download(place, to):
        return None
    try:
        return json.loads(to.getvalue())
    except ValueError:
        raise SubdpError("is not JSON", where=place, hint="is this the right server? try again") from None


def _git_hash(file: Path) -> str:
    """The hash by which git knows a file's content."""
    digest = hashlib.sha1(b"blob %d\0" % file.stat().st_size, usedforsecurity=False)
    with file.open("rb") as stream:
        while block := stream.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()
