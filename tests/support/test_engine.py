"""Engines: results in order whoever does the work, faults raised here, killed processes replaced."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from subdp.support.engine import LocalEngine
from subdp.support.errors import SubdpError


def square(unit: int) -> tuple[int, int]:
    time.sleep(0.02 * (unit % 3))
    return unit * unit, os.getpid()


def fail(unit: int) -> int:
    if unit == 3:
        raise SubdpError(f"unit {unit} is bad", hint="look at it")
    return unit


@dataclass(frozen=True)
class KillItself:
    """Kills its process at one unit, as many times as it is told."""

    folder: Path
    times: int

    def __call__(self, unit: int) -> int:
        seen = len(list(self.folder.glob("*")))
        if unit == 2 and seen < self.times:
            (self.folder / str(seen)).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return unit


@pytest.mark.parametrize("jobs", [1, 3])
def test_results_come_in_the_order_of_the_units(jobs: int) -> None:
    found = list(LocalEngine(jobs).map(square, range(12)))
    assert [result for result, _ in found] == [unit * unit for unit in range(12)]
    assert (os.getpid() in {process for _, process in found}) == (jobs == 1)


def test_units_are_read_as_they_are_needed() -> None:
    def endless() -> object:
        unit = 0
        while True:
            yield unit
            unit += 1

    stream = LocalEngine(2).map(square, endless())  # type: ignore[arg-type]
    assert [next(stream)[0] for _ in range(3)] == [0, 1, 4]
    stream.close()  # type: ignore[attr-defined]


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_fault_in_a_unit_is_raised_after_the_results_before_it(jobs: int) -> None:
    stream = LocalEngine(jobs).map(fail, range(6))
    assert [next(stream) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(SubdpError, match=r"unit 3 is bad \(look at it\)") as caught:
        next(stream)
    assert caught.value.hint == "look at it"


def test_a_killed_process_is_replaced_and_its_unit_done_again(tmp_path: Path) -> None:
    assert list(LocalEngine(2).map(KillItself(tmp_path, times=2), range(5))) == list(range(5))
    assert len(list(tmp_path.iterdir())) == 2


def test_a_unit_at_which_processes_keep_dying_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SubdpError, match="killed 3 times on the same unit of work"):
        list(LocalEngine(2).map(KillItself(tmp_path, times=9), range(5)))


def test_no_jobs_are_refused() -> None:
    with pytest.raises(SubdpError, match="jobs cannot be 0"):
        LocalEngine(0)
