"""The cache and its limit: what was used least recently goes first, what is in use stays."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from subdp.encoder.encoder import Encoder
from subdp.encoder.feature_store import FeatureStore
from subdp.support.cache import cache_limit, keep_limit, mark_used
from subdp.support.errors import SubdpError

HOUR = 3600


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of 5 MB: two shards of features, two folders of silver, an encoder; the first are the oldest."""
    monkeypatch.setenv("SUBDP_CACHE", str(tmp_path))
    names = ("features/a/0.arrow", "silver/b/silver.json", "features/a/1.arrow", "silver/c/silver.json", "encoders/x/w")
    for age, name in zip((50, 40, 30, 20, 90), names, strict=True):
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(bytes(1_000_000))
        os.utime(file, (time.time() - age * HOUR,) * 2)
    return tmp_path


def left(root: Path) -> list[str]:
    return sorted(path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file())


def test_the_least_recently_used_goes_first(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SUBDP_CACHE_GB", "0.003")
    keep_limit()
    assert left(root) == ["encoders/x/w", "features/a/1.arrow", "silver/c/silver.json"]
    assert "over its limit, SUBDP_CACHE_GB=0.003: removed 0.0 GB that were used least" in capsys.readouterr().err


def test_what_is_used_stays(root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("SUBDP_CACHE_GB", "0")
    mark_used(root / "features/a/0.arrow")
    keep_limit()
    assert left(root) == ["encoders/x/w", "features/a/0.arrow"]
    assert "the rest was used within the last hour" in capsys.readouterr().err


@pytest.mark.parametrize("limit", ["", "1"])
def test_without_a_limit_or_within_it_all_stays(root: Path, monkeypatch: pytest.MonkeyPatch, limit: str) -> None:
    monkeypatch.setenv("SUBDP_CACHE_GB", limit)
    keep_limit()
    assert len(left(root)) == 5


@pytest.mark.parametrize("text", ["much", "-1", "inf", "nan"])
def test_a_limit_is_a_number(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("SUBDP_CACHE_GB", text)
    with pytest.raises(SubdpError, match="give a number of gigabytes"):
        cache_limit()


def test_encoding_keeps_the_limit_and_marks_what_it_reads(
    root: Path, tiny: Encoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = FeatureStore(tiny)
    store.add([["a", "dog"]])
    (shard,) = store.folder.glob("*.arrow")
    os.utime(shard, (time.time() - 99 * HOUR,) * 2)
    monkeypatch.setenv("SUBDP_CACHE_GB", "0.0025")
    store.add([["a", "dog"], ["a", "cat"]])
    assert shard.exists(), "the oldest file, but in use again"
    assert "features/a/0.arrow" not in left(root)


def test_files_elsewhere_are_left_alone(root: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    other = tmp_path_factory.mktemp("mine") / "silver.json"
    other.touch()
    os.utime(other, (0, 0))
    mark_used(other)
    assert other.stat().st_mtime == 0
