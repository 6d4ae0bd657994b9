"""Parts of a work side by side: each with one core, all of them done, and torch left as it was."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator

import pytest
import torch

from subdp.encoder.threads import _pool, in_background, side_by_side

CPU = torch.device("cpu")


@pytest.fixture
def four() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(4)
    yield
    torch.set_num_threads(before)


def in_a_new_thread() -> int:
    found: list[int] = []
    thread = threading.Thread(target=lambda: found.append(torch.get_num_threads()))
    thread.start()
    thread.join()
    return found[0]


@pytest.mark.usefixtures("four")
def test_every_part_is_done_once_with_one_core_and_others_keep_theirs() -> None:
    seen: list[tuple[int, int]] = []
    others: list[int] = []

    def work(part: int) -> None:
        torch.ones(100_000).sum()
        seen.append((part, torch.get_num_threads()))
        others.append(in_a_new_thread())

    side_by_side(work, range(20), CPU)
    assert sorted(seen) == [(part, 1) for part in range(20)]
    assert set(others) == {4}
    assert (torch.get_num_threads(), in_a_new_thread()) == (4, 4)


@pytest.mark.usefixtures("four")
def test_a_lone_part_has_one_core_too_for_their_number_decides_the_rounding() -> None:
    seen: list[int] = []
    side_by_side(lambda _: seen.append(torch.get_num_threads()), [0], CPU)
    assert seen == [1]


@pytest.mark.usefixtures("four")
def test_a_fault_in_one_part_is_raised_and_the_rest_is_left() -> None:
    def work(part: int) -> None:
        raise ValueError(f"part {part}")

    with pytest.raises(ValueError, match="part 0"):
        side_by_side(work, range(100), CPU)
    assert torch.get_num_threads() == 4


@pytest.mark.usefixtures("four")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="a system without fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # newer Pythons: threads do not live on
def test_a_forked_process_has_threads_of_its_own() -> None:
    side_by_side(lambda _: None, range(4), CPU)
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        done: list[int] = []
        side_by_side(done.append, range(4), CPU)
        os._exit(0 if sorted(done) == [0, 1, 2, 3] else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_a_work_in_the_background_is_done_before_the_next_begins_and_by_the_end() -> None:
    may_go_on, done = threading.Event(), list[int]()

    def first() -> None:
        assert may_go_on.wait(10)
        done.append(1)

    with in_background() as begin:
        begin(first)
        assert done == []
        threading.Timer(0.2, may_go_on.set).start()
        begin(lambda: done.append(2))
        assert done[0] == 1
    assert done == [1, 2]


def test_a_fault_in_the_background_is_raised_once_at_the_next_work_or_at_the_end() -> None:
    def fail() -> None:
        raise ValueError("disk")

    with in_background() as begin:
        begin(fail)
        with pytest.raises(ValueError, match="disk"):
            begin(lambda: pytest.fail("begun after a fault"))
    with pytest.raises(ValueError, match="disk"), in_background() as begin:
        begin(fail)


def test_a_fault_of_the_caller_waits_for_the_work_in_the_background() -> None:
    done: list[int] = []

    def work() -> None:
        time.sleep(0.2)
        done.append(1)

    with pytest.raises(KeyboardInterrupt), in_background() as begin:  # noqa: PT012
        begin(work)
        raise KeyboardInterrupt
    assert done == [1]


@pytest.mark.usefixtures("four")
def test_threads_that_start_at_once_share_one_pool_and_torch_keeps_its_number() -> None:
    pools, together = [], threading.Barrier(4)

    def begin() -> None:
        together.wait()
        pools.append(_pool(7))

    threads = [threading.Thread(target=begin) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(pools) == 4
    assert len(set(map(id, pools))) == 1
    assert in_a_new_thread() == 4
