"""Batches side by side, one core each: many small products are done sooner so than one by one with all cores."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import torch

_Part = TypeVar("_Part")


def side_by_side(work: Callable[[_Part], None], parts: Iterable[_Part], device: torch.device) -> None:
    """Do all parts of a work, on a CPU as many at once as torch has threads."""
    threads = torch.get_num_threads() if device.type == "cpu" else 1
    if threads == 1:
        for part in parts:
            work(part)
        return
    pool = ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,))
    try:
        for _ in pool.map(work, parts):
            pass
    finally:
        pool.shutdown(cancel_futures=True)
        torch.set_num_threads(threads)  # It is the number for threads yet to come, too.
