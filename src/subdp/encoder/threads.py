"""Run parts of a job in parallel, one core each: for small products, faster than all cores on one at a time."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import cache
from threading import Barrier, Lock
from typing import TypeVar

import torch

_Part = TypeVar("_Part")
_STARTING = Lock()  # Held while a pool of threads is started.


def cores(device: torch.device) -> int:
    """How many parts of a job can run at once: on a CPU, the number of torch's threads."""
    if device.type != "cpu":
        return 1
    with _STARTING:  # A new thread that asks while a pool is started would be told 1, for good.
        return torch.get_num_threads()


def side_by_side(work: Callable[[_Part], None], parts: Iterable[_Part], device: torch.device) -> None:
    """Run all parts of a job in parallel, one core each.

    A single part gets one core too: dividing a product among cores changes its rounding, and results must not depend on
    the number of cores. If a part fails, those not yet started are cancelled; none is running when this returns.
    """
    waiting, threads = list(parts), cores(device)
    if threads == 1:
        for part in waiting:
            work(part)
        return
    begun: list[Future[None]] = [_pool(threads).submit(work, part) for part in waiting]
    try:
        for one in begun:
            one.result()
    finally:
        for one in begun:
            one.cancel()
        wait(begun)


@contextmanager
def in_background() -> Iterator[Callable[[Callable[[], None]], None]]:
    """Yield a function that starts a task in the background and returns at once: for writing files.

    One task at a time: the next call waits for the one before, and so does the end of `with`. An error in a task is
    raised by the next call or at the end, unless the caller itself has failed. Not to be used inside a task, nor across
    a fork.
    """
    going_on: list[Future[None]] = []

    def finish() -> None:
        wait(going_on)
        while going_on:
            going_on.pop().result()

    def begin(work: Callable[[], None]) -> None:
        finish()
        going_on.append(_pool(1).submit(work))

    try:
        yield begin
    finally:
        wait(going_on)
    finish()


def _pool(threads: int) -> ThreadPoolExecutor:
    """Threads with one core each, shared by all callers, who may be threads themselves."""
    with _STARTING:
        return _started(threads)


@cache
def _started(threads: int) -> ThreadPoolExecutor:
    """They are kept because starting one costs more than a small part of a job."""
    before, ready = torch.get_num_threads(), Barrier(threads + 1)

    def begin() -> None:
        torch.get_num_threads()  # Torch initialises a thread's number when first asked, and then never again.
        torch.set_num_threads(1)
        ready.wait()

    pool = ThreadPoolExecutor(threads, "subdp", initializer=begin)
    for _ in range(threads):
        pool.submit(int)
    ready.wait()
    torch.set_num_threads(before)  # What the workers have set would also apply to later threads.
    return pool


def _after_fork() -> None:
    """A forked process has none of its parent's threads."""
    _started.cache_clear()
    _STARTING.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_STARTING.acquire, after_in_parent=_STARTING.release, after_in_child=_after_fork)
