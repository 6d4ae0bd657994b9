"""Silver on disk: what goes in comes out, shards are whole or not there, and pruning says what it keeps."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import numpy as np
import pytest

from subdp.alignment.links import Alignment
from subdp.projection.silver import Silver, SilverPair
from subdp.support.errors import SubdpError

LABELS = ("root", "nsubj", "obj")


def pair(seed: int) -> SilverPair:
    random = np.random.default_rng(seed)
    source, target = random.integers(1, 6, 2).tolist()
    arcs = random.dirichlet(np.full(source + 1, 0.3), source + 1).astype(np.float16)
    arcs[0] = 0
    labels = random.dirichlet(np.ones(3), (source + 1, source + 1)).astype(np.float16)
    links = Alignment.of([(0, 0)], weights=[0.5])
    return SilverPair(tuple(f"s{i}" for i in range(source)), tuple(f"t{i}" for i in range(target)), links, arcs, labels)


def create(folder: Path, keep: float = 0.0) -> Silver:
    return Silver.create(folder, LABELS, keep=keep, made_from={"bitext": "x"})


def test_what_is_appended_is_read_back_exactly(tmp_path: Path) -> None:
    pairs = [pair(seed) for seed in range(600)]
    create(tmp_path).append(pairs)
    silver = Silver(tmp_path)
    assert len(silver) == 600
    assert list(silver.targets()) == [original.target for original in pairs]
    for original, read in zip(pairs, silver, strict=True):
        assert (read.source, read.target, read.alignment) == (original.source, original.target, original.alignment)
        np.testing.assert_array_equal(read.arcs, original.arcs)
        np.testing.assert_array_equal(read.labels, original.labels)
    with pytest.raises(IndexError):
        silver[600]


def test_two_processes_at_the_same_work_leave_each_pair_once(tmp_path: Path) -> None:
    pairs = [pair(seed) for seed in range(600)]
    first, second = create(tmp_path), create(tmp_path)
    first.append(pairs)
    second.append(pairs)
    assert [read.target for read in Silver(tmp_path)] == [original.target for original in pairs]


def test_pruning_keeps_the_labels_of_probable_arcs_and_all_arcs(tmp_path: Path) -> None:
    pairs = [pair(seed) for seed in range(20)]
    create(tmp_path, keep=0.1).append(pairs)
    for original, read in zip(pairs, Silver(tmp_path), strict=True):
        np.testing.assert_array_equal(read.arcs, original.arcs)
        kept = original.arcs >= np.float16(0.1)
        np.testing.assert_array_equal(read.labels[kept], original.labels[kept])
        np.testing.assert_allclose(read.labels[~kept], 1 / 3, atol=1e-3)


def test_a_half_written_shard_is_as_if_it_were_not_there(tmp_path: Path) -> None:
    def failing() -> object:
        yield from (pair(seed) for seed in range(512 + 10))
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        create(tmp_path).append(failing())  # type: ignore[arg-type]
    assert len(Silver(tmp_path)) == 512
    assert sorted(path.name for path in tmp_path.iterdir()) == ["00000.arrow", "silver.json"]


def test_damage_and_mistaken_folders_are_clear_errors(tmp_path: Path) -> None:
    with pytest.raises(SubdpError, match="holds no silver"):
        Silver(tmp_path)
    create(tmp_path).append([pair(0)])
    with pytest.raises(SubdpError, match="another parser, bitext, aligner or treebank"):
        Silver.create(tmp_path, LABELS, keep=0, made_from={"bitext": "y"})
    data = (tmp_path / "00000.arrow").read_bytes()
    (tmp_path / "00000.arrow").write_bytes(data[: len(data) // 2])
    with pytest.raises(SubdpError, match="is damaged"):
        Silver(tmp_path)
    (tmp_path / "silver.json").write_text("{")
    with pytest.raises(SubdpError, match="is damaged"):
        Silver(tmp_path)


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SubdpError, match=r"file/silver: cannot be written: Not a directory \(name another folder"):
        create(tmp_path / "file" / "silver")


def test_a_full_disk_is_told_with_the_file_and_leaves_no_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    silver = create(tmp_path)

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space left") as caught:
        silver.append([pair(1)])
    assert caught.value.filename == str(tmp_path / "00000.arrow")
    assert [path.name for path in tmp_path.iterdir()] == ["silver.json"]
