"""Parts of a work side by side, one core each: small products are done sooner so than one by one with all cores."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import cache
from threading import Barrier
from typing import TypeVar

import torch

_Part = TypeVar("_Part")


def cores(device: torch.device) -> int:
    """How many parts of a work can be done at once: on a CPU as many as torch has threads."""
    return torch.get_num_threads() if device.type == "cpu" else 1


def side_by_side(work: Callable[[_Part], None], parts: Iterable[_Part], device: torch.device) -> None:
    """Do all parts of a job, as many at once as there are cores, with one core each.

    A lone part has one core too: how a product is shared among cores decides how it is rounded, and results must not
    depend on their number. If one part fails, those not yet begun are left; none is running when this returns.
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
    """Give a function that starts a piece of work and returns at once: for writing files.

    One at a time: the next one waits for the last, and so does the end of `with`. What goes wrong is raised by the next
    call or at the end, unless the caller itself has failed. Not to be used by such a work itself, nor across a fork.
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


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    """Threads with one core each. They are kept, for to start them takes longer than a small part of a work."""
    before, ready = torch.get_num_threads(), Barrier(threads + 1)

    def begin() -> None:
        torch.get_num_threads()  # Torch gives a thread its number when it is first asked, and then no more.
        torch.set_num_threads(1)
        ready.wait()

    pool = ThreadPoolExecutor(threads, "subdp", initializer=begin)
    for _ in range(threads):
        pool.submit(int)
    ready.wait()
    torch.set_num_threads(before)  # What the workers have set is also the number for threads yet to come.
    return pool


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)  # A forked process has none of its parent's threads.
