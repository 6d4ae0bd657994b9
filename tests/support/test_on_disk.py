"""A sequence and a set on disk behave as those in memory do."""

from __future__ import annotations

import errno
import json
import pickle
import re
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from subdp.support.errors import SubdpError
from subdp.support.on_disk import Lines, Seen, map_columns

ITEMS = st.lists(st.lists(st.text(st.characters(codec=None), max_size=5), max_size=4), max_size=12)


def stored(items: list[list[str]]) -> Lines[list[str]]:
    return Lines.of(items, lambda item: json.dumps(item).encode(), json.loads)


@given(ITEMS, st.integers(-15, 15), st.integers(-15, 15))
def test_lines_are_a_sequence_of_what_was_stored(items: list[list[str]], start: int, stop: int) -> None:
    lines = stored(items)
    assert list(lines) == items
    assert len(lines) == len(items)
    assert lines[start:stop] == tuple(items[start:stop])
    assert lines == tuple(items)
    assert lines != [*items, ["another"]]
    if -len(items) <= start < len(items):
        assert lines[start] == items[start]
    else:
        with pytest.raises(IndexError):
            lines[start]


def test_lines_of_a_file_are_read_where_they_are(tmp_path: Path) -> None:
    path = tmp_path / "numbers.jsonl"
    path.write_bytes(b"[1]\n[2]\n[3]")
    assert list(Lines.read(path, json.loads)) == [[1], [2], [3]]


def test_another_process_gets_the_items() -> None:
    assert pickle.loads(pickle.dumps(stored([["a"], ["b"]]))) == (["a"], ["b"])


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_is_told_with_the_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    with Path("/dev/full").open("wb", buffering=0) as full:
        monkeypatch.setattr(tempfile, "TemporaryFile", lambda: full)
        with pytest.raises(OSError, match="No space left") as caught:
            stored([["a"]])
    assert caught.value.filename == tempfile.gettempdir()


@given(st.lists(st.tuples(st.binary(max_size=3), st.binary(max_size=3)), max_size=5))
def test_columns_are_their_parts_one_after_the_other(parts: list[tuple[bytes, bytes]]) -> None:
    assert [bytes(column) for column in map_columns(parts, 2)] == [
        b"".join(part[0] for part in parts),
        b"".join(part[1] for part in parts),
    ]


@given(st.lists(st.binary(max_size=3), max_size=50))
def test_a_key_is_new_once(keys: list[bytes]) -> None:
    seen = Seen()
    assert [key for key in keys if seen.add(key)] == list(dict.fromkeys(keys))


def test_more_keys_than_fit_into_the_cache_are_remembered() -> None:
    seen = Seen()
    seen._database.execute("PRAGMA cache_size = 10")  # pages
    assert all(seen.add(b"%d" % number) for number in range(5000))
    assert not any(seen.add(b"%d" % number) for number in range(5000))


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs a list of open files")
def test_keys_are_kept_in_the_folder_that_errors_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "it's here"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    seen = Seen()
    seen._database.execute("PRAGMA cache_size = 10")
    for number in range(5000):
        seen.add(b"%d" % number)
    opened = [path.readlink() for path in Path("/proc/self/fd").iterdir() if path.is_symlink()]
    assert any(file.parent == folder for file in opened)


def test_only_a_full_disk_is_called_one() -> None:
    seen = Seen()
    seen._database.execute("PRAGMA max_page_count = 10")
    with pytest.raises(OSError, match="No space left") as caught:
        all(seen.add(b"%d" % number) for number in range(5000))
    assert (caught.value.errno, caught.value.filename) == (errno.ENOSPC, tempfile.gettempdir())
    seen = Seen()
    seen._database.execute("DROP TABLE seen")
    where = re.escape(tempfile.gettempdir())
    with pytest.raises(SubdpError, match=rf"^{where}: .* cannot be written: no such table: seen \(set TMPDIR"):
        seen.add(b"key")


def test_a_temporary_folder_that_has_gone_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))
    with pytest.raises(SubdpError, match=r"gone: a temporary file cannot be written: .*\(set TMPDIR"):
        Seen()
