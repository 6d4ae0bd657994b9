"""Batches side by side, one core each: many small products are done sooner so than one by one with all cores."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import TypeVar

import torch

_Part = TypeVar("_Part")


def side_by_side(work: Callable[[_Part], None], parts: Iterable[_Part], device: torch.device) -> None:
    """Do all parts of a work, on a CPU as many at once as torch has threads; a lone part has all of them."""
    waiting, cores = list(parts), torch.get_num_threads()
    threads = min(len(waiting), cores if device.type == "cpu" else 1)
    if threads <= 1:
        for part in waiting:
            work(part)
        return
    ready = Barrier(threads + 1)

    def begin() -> None:
        torch.get_num_threads()  # Torch gives a thread its number when it is first asked, and then no more.
        torch.set_num_threads(1)
        ready.wait()

    pool = ThreadPoolExecutor(threads, initializer=begin)
    try:
        done = pool.map(work, waiting)
        ready.wait()
        torch.set_num_threads(cores)  # What the workers have set is also the number for threads yet to come.
        for _ in done:
            pass
    finally:
        pool.shutdown(cancel_futures=True)
