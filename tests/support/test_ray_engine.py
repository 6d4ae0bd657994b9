"""The Ray engine on a cluster of two nodes with a core each: results in order, and whatever is killed costs nothing."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from subdp.support.cache import cache_folder
from subdp.support.errors import SubdpError
from subdp.support.ray_engine import RayEngine, _units_on_disk, _Worker
from tests.support.ray_work import Elsewhere, Failing, FullDisk, KillsNode, Square

pytestmark = pytest.mark.filterwarnings("ignore")  # of Ray


@pytest.fixture
def engine(cluster: Any) -> RayEngine:
    return RayEngine(cluster.address)


def test_results_come_in_the_order_of_the_units_from_all_nodes(engine: RayEngine, tmp_path: Path) -> None:
    square = Square(tmp_path, processes=2)
    found = list(engine.map(square, range(20)))
    assert [result for result, _, _ in found] == [unit * unit for unit in range(20)]
    assert len({process for _, process, _ in found}) == 2
    assert len({node for _, _, node in found}) == 2
    assert square.loads.stat().st_size == 4, "once on each node to check it, and once in each actor for all its units"
    assert list(engine.map(Square(tmp_path), [])) == []


def test_a_killed_actor_is_replaced_and_its_unit_done_again(engine: RayEngine, tmp_path: Path) -> None:
    assert list(engine.map(Failing(tmp_path, times=2), range(5))) == list(range(5))
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("kill", r"^2: failed or was killed 3 times \(.*finished work is kept\)"),
        ("raise", r"^2: ValueError: this pair is poisoned"),
    ],
)
def test_a_unit_that_always_fails_is_named_after_three_attempts(
    how: str, said: str, engine: RayEngine, tmp_path: Path
) -> None:
    stream = engine.map(Failing(tmp_path, 99, how), range(5))
    assert [next(stream), next(stream)] == [0, 1]
    with pytest.raises(SubdpError, match=said):
        next(stream)
    assert len(list(tmp_path.iterdir())) == 3
    assert not list((cache_folder() / "units").iterdir())


def test_a_node_that_cannot_load_the_work_is_named_before_any(cluster: Any) -> None:
    node = cluster.add_node(num_cpus=1, env_vars={"SUBDP_TEST_NODE": "1"})
    try:
        with pytest.raises(SubdpError, match=r"node .* cannot load .*: /models/xlm-r: the encoder of this name"):
            list(RayEngine(cluster.address).map(Elsewhere(), range(5)))
    finally:
        cluster.remove_node(node)


def test_a_node_with_another_subdp_is_named_before_any_work(cluster: Any, tmp_path: Path) -> None:
    (tmp_path / "subdp" / "support").mkdir(parents=True)
    for file in ("__init__.py", "support/__init__.py", "support/ray_cluster.py"):
        (tmp_path / "subdp" / file).write_text("")
    other = "enter = None\ndef installed():\n    return {'subdp': '9.9 (code 01234567)', 'torch': '1.0'}\n"
    (tmp_path / "subdp" / "support" / "ray_cluster.py").write_text(other)
    node = cluster.add_node(num_cpus=1, env_vars={"PYTHONPATH": str(tmp_path)})
    try:
        with pytest.raises(SubdpError, match=r"node .* has subdp 9\.9 .*, torch 1\.0; this machine has subdp 0"):
            list(RayEngine(cluster.address).map(Square(tmp_path), range(5)))
    finally:
        cluster.remove_node(node)


def test_a_killed_node_costs_nothing(cluster: Any, tmp_path: Path) -> None:
    cluster.add_node(num_cpus=1, env_vars={"SUBDP_TEST_NODE": "1"})
    assert list(RayEngine(cluster.address).map(KillsNode(tmp_path / "killed"), range(60))) == list(range(60))
    assert (tmp_path / "killed").exists()


def test_a_disk_that_is_full_of_units_is_told_with_their_folder() -> None:
    def write(units: list[bytes]) -> None:
        with _units_on_disk(units):
            raise AssertionError("they do not fit")

    with pytest.raises(OSError, match="File too large") as caught:
        FullDisk(write)([b"a long sentence" * 1000])
    assert caught.value.filename == str(cache_folder().absolute() / "units")


def test_attempts_that_failed_and_attempts_that_were_killed_are_not_confused() -> None:
    worker = object.__new__(_Worker)
    with _units_on_disk([2]) as (folder, [(start, end)]):
        worker.work, worker.folder = str, folder
        (folder / "0").write_bytes(b"...")  # two that raised an exception and one that was killed, say
        with pytest.raises(SubdpError, match=r"^2: failed or was killed 3 times"):
            worker._do({"number": 0, "start": start, "end": end})


def test_no_actors_are_refused() -> None:
    with pytest.raises(SubdpError, match="jobs cannot be 0"):
        RayEngine(os.devnull, 0)
