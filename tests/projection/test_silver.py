"""Silver on disk: what goes in comes out, and a shard is there whole or not at all."""

from __future__ import annotations

import errno
import json
import os
import time
from pathlib import Path

import numpy as np
import pytest

from subdp.alignment.links import Alignment
from subdp.corpus.treebank import Sentence
from subdp.projection.silver import SHARD, Silver, SilverPair, SilverStore
from subdp.projection.soft_tree import SoftTree
from subdp.support.errors import SubdpError

VALUES: dict[str, tuple[str, ...]] = {"arcs": (), "labels": ("root", "nsubj", "obj")}


def pair(seed: int) -> SilverPair:
    random = np.random.default_rng(seed)
    source, target = random.integers(1, 6, 2).tolist()
    arcs = random.dirichlet(np.full(source + 1, 0.3), source + 1).astype(np.float16)
    arcs[0] = 0
    labels = random.dirichlet(np.ones(3), (source + 1, source + 1)).astype(np.float16)
    links = Alignment.of([(0, 0)], weights=[0.5])
    words, translation = (tuple(f"{side}{i}" for i in range(count)) for side, count in (("s", source), ("t", target)))
    return SilverPair(words, translation, links, {"arcs": arcs, "labels": labels})


def create(folder: Path, pairs: int = 600) -> SilverStore:
    return SilverStore.create(folder, VALUES, pairs=pairs, made_from={"bitext": "x"})


def fill(silver: SilverStore, pairs: list[SilverPair], numbers: list[int] | None = None) -> SilverStore:
    for number in silver.missing() if numbers is None else numbers:
        silver.write(number, [pairs[index] for index in silver.units[number]])
    return silver


def test_what_is_written_is_read_back_exactly_whatever_the_order_of_the_shards(tmp_path: Path) -> None:
    pairs = [pair(seed) for seed in range(600)]
    fill(create(tmp_path), pairs, [1, 0])
    silver = SilverStore(tmp_path).check()
    assert len(silver) == 600
    assert list(silver.targets()) == [original.target for original in pairs]
    for original, read in zip(pairs, silver, strict=True):
        assert (read.source, read.target, read.alignment) == (original.source, original.target, original.alignment)
        for name in VALUES:
            np.testing.assert_array_equal(read.distributions[name], original.distributions[name])
    with pytest.raises(IndexError):
        silver[600]


def test_two_processes_at_the_same_work_leave_each_pair_once(tmp_path: Path) -> None:
    pairs = [pair(seed) for seed in range(600)]
    first, second = create(tmp_path), create(tmp_path)
    fill(first, pairs)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    fill(second, pairs, [0, 1])
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    assert [read.target for read in SilverStore(tmp_path)] == [original.target for original in pairs]


def test_a_store_that_is_not_finished_can_be_finished_but_not_read(tmp_path: Path) -> None:
    pairs = [pair(seed) for seed in range(2 * SHARD + 10)]
    silver = fill(create(tmp_path, len(pairs)), pairs, [1])
    assert silver.missing() == [0, 2]
    with pytest.raises(SubdpError, match="is not finished: 2 of 3 shards missing"):
        silver.check()
    with pytest.raises(SubdpError, match="is not finished"):
        list(SilverStore(tmp_path).targets())
    fill(create(tmp_path, len(pairs)), pairs)
    assert [read.target for read in SilverStore(tmp_path).check()] == [original.target for original in pairs]


def test_what_a_killed_process_left_half_written_is_removed_after_an_hour(tmp_path: Path) -> None:
    create(tmp_path, 1)
    for name in (".00000.arrow.1a2b3c4d", ".silver.json.1a2b3c4d", ".notes.markdown"):
        (tmp_path / name).touch()
        os.utime(tmp_path / name, times=(time.time() - 3700,) * 2)
    (tmp_path / ".00000.arrow.5e6f7a8b").touch()  # Another process may be writing it.
    create(tmp_path, 1)
    assert {path.name for path in tmp_path.iterdir()} == {"silver.json", ".notes.markdown", ".00000.arrow.5e6f7a8b"}


def test_a_store_of_the_first_version_is_read_and_one_with_labels_left_out_refused(tmp_path: Path) -> None:
    pairs = [pair(seed) for seed in range(3)]
    fill(create(tmp_path, 3), pairs)
    info = {"labels": VALUES["labels"], "keep": 0.0, "made_from": {"bitext": "x"}}
    (tmp_path / "silver.json").write_text(json.dumps(info))
    silver = SilverStore(tmp_path).check()
    assert silver.inventory == VALUES
    assert [read.target for read in silver] == [original.target for original in pairs]
    (tmp_path / "silver.json").write_text(json.dumps({**info, "keep": 0.01}))
    with pytest.raises(SubdpError, match="labels left out"):
        SilverStore(tmp_path)


def test_damage_and_mistaken_folders_are_clear_errors(tmp_path: Path) -> None:
    with pytest.raises(SubdpError, match="holds no silver"):
        SilverStore(tmp_path)
    fill(create(tmp_path, 1), [pair(0)])
    with pytest.raises(SubdpError, match="another parser, bitext, aligner or treebank"):
        SilverStore.create(tmp_path, VALUES, pairs=1, made_from={"bitext": "y"})
    data = (tmp_path / "00000.arrow").read_bytes()
    (tmp_path / "00000.arrow").write_bytes(data[: len(data) // 2])
    with pytest.raises(SubdpError, match="is damaged"):
        SilverStore(tmp_path)[0]
    (tmp_path / "silver.json").write_text("{")
    with pytest.raises(SubdpError, match="is damaged"):
        SilverStore(tmp_path)


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SubdpError, match=r"file/silver: cannot be written: Not a directory \(name another folder"):
        create(tmp_path / "file" / "silver")


def test_a_full_disk_is_told_with_the_file_and_leaves_no_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    silver = create(tmp_path, 1)

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space left") as caught:
        silver.write(0, [pair(1)])
    assert caught.value.filename == str(tmp_path / "00000.arrow")
    assert [path.name for path in tmp_path.iterdir()] == ["silver.json"]


def test_silver_in_memory_is_made_of_anybodys_trees() -> None:
    tree = Sentence.of(["It", "rains"], heads=[2, 0], labels=["expl:pv", "root"])
    soft = SoftTree.of(Sentence.of(["It", "snows"], heads=[2, 0], labels=["expl", "root"]))
    links, inventory = Alignment.parse("0-0 1-1"), {"arcs": (), "labels": ("root", "obj", "expl")}
    silver = Silver.of([(tree, links, ["Es", "regnet"]), (soft, links, ["Es", "schneit"])], inventory)
    assert list(silver.targets()) == [("Es", "regnet"), ("Es", "schneit")]
    for pair in silver:
        found = pair.tree(inventory)
        assert [found.heads_of(1)[0].label, found.heads_of(2)[0].label] == ["expl", "root"]
    part = Silver.of([silver[1]], silver.inventory)
    assert part[0].target == ("Es", "schneit")
    assert Silver.of([(tree, links, ["Es", "regnet"])]).inventory["labels"] == ("expl", "root")


def test_silver_in_memory_is_checked_when_it_is_made() -> None:
    tree = Sentence.of(["It", "rains"], heads=[2, 0], labels=["expl", "root"])
    inventory = {"arcs": (), "labels": ("root", "obj")}
    with pytest.raises(SubdpError, match="label that the parser lacks: expl"):
        Silver.of([(tree, Alignment.parse("0-0"), ["Es"])], inventory)
    with pytest.raises(SubdpError, match="'expl' is not among the values of the parser"):
        Silver.of([(SoftTree.of(tree), Alignment.parse("0-0"), ["Es"])], inventory)
    with pytest.raises(SubdpError, match="target word 1 but the target sentence has 1 word"):
        Silver.of([(tree, Alignment.parse("0-1"), ["Es"])])
    with pytest.raises(SubdpError, match="do not name their values"):
        Silver.of([Silver.of([(tree, Alignment.parse("0-0"), ["Es"])])[0]])
