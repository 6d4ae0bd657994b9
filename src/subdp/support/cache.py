"""Where everything that can be made again is kept between runs, and how much of it. Standard library and platformdirs.

`SUBDP_CACHE` names the folder, `SUBDP_CACHE_GB` sets a limit: when more is written, what was used least recently goes,
features shard by shard and silver folder by folder. The encoder stays.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from platformdirs import user_cache_dir

from subdp.support.errors import SubdpError

_IN_USE_SECONDS = 3600  # What was used this recently may be needed by a run that is going on.


def cache_folder() -> Path:
    """The cache folder: `SUBDP_CACHE`, or else the platform's cache folder for the user."""
    return Path(os.environ.get("SUBDP_CACHE") or user_cache_dir("subdp"))


def cache_limit() -> int | None:
    """The most bytes that the cache is to take, if a limit is set."""
    text = os.environ.get("SUBDP_CACHE_GB")
    if not text:
        return None
    try:
        limit = int(float(text) * 1e9)
        if limit < 0:
            raise ValueError
    except (ValueError, OverflowError):
        raise SubdpError(f"SUBDP_CACHE_GB is {text!r}", hint="give a number of gigabytes, such as 20") from None
    return limit


def mark_used(path: Path) -> None:
    """Note that a file is used now, if it is one of the cache."""
    if cache_folder() in path.parents:
        with suppress(OSError):
            os.utime(path)


def size_of(path: Path) -> int:
    """The bytes of a file, or of all files in a folder."""
    total = 0
    for file in (path, *path.rglob("*")):
        with suppress(OSError):  # Another process may just have removed it.
            total += file.stat().st_size if file.is_file() else 0
    return total


def keep_limit() -> None:
    """Remove what was used least recently until the cache is within its limit, and say so."""
    limit = cache_limit()
    if limit is None or (before := size_of(cache_folder())) <= limit:
        return
    left = before
    for used, path in sorted(_removable()):
        if left <= limit or time.time() - used < _IN_USE_SECONDS:
            break
        size = size_of(path)
        with suppress(OSError):  # Windows does not remove what is open.
            shutil.rmtree(path) if path.is_dir() else path.unlink()
            left -= size
    over = "" if left <= limit else "; the rest was used within the last hour, or is the encoder"
    said = f"removed {(before - left) / 1e9:.1f} GB that were used least recently, {left / 1e9:.1f} GB are left{over}"
    print(f"subdp: the cache was over its limit, SUBDP_CACHE_GB={limit / 1e9:g}: {said}", file=sys.stderr)


def _removable() -> Iterator[tuple[float, Path]]:
    """What may go, with the time when it was used last."""
    root = cache_folder()
    for mark in (*root.glob("features/*/*.arrow"), *root.glob("silver/*/silver.json")):
        with suppress(OSError):
            yield mark.stat().st_mtime, mark if mark.suffix == ".arrow" else mark.parent
