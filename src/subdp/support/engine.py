"""Engines: they process numbered units of work, in one process or in many.

A unit's result depends on the unit alone: it is the same whichever process computes it, in whatever order. That makes
resuming, `--jobs` and a cluster one mechanism: the caller of an engine leaves out the units that are done already.
Standard library only.
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing import active_children, get_context, parent_process
from typing import Any, Generic, Protocol, TypeVar

from subdp.support.errors import SubdpError, counted

_Unit = TypeVar("_Unit")
_Result = TypeVar("_Result")
_MOST_DEATHS = 3  # of processes at one unit, before the unit itself is taken to be the cause


class Engine(Protocol):
    """Processes units of work."""

    def map(self, work: Callable[[_Unit], _Result], units: Iterable[_Unit]) -> Iterator[_Result]:
        """The result of every unit, in the order of the units, as a stream.

        `work` holds everything that the units share, such as a parser; an engine with worker processes sends it to each
        of them once, pickled. An exception that it raises for a unit is raised here.
        """
        ...


@dataclass(frozen=True, slots=True)
class LocalEngine:
    """Processes units on this machine: in this process, or in several with a share of the cores each."""

    jobs: int = 1

    def __post_init__(self) -> None:
        if self.jobs < 1:
            raise SubdpError(f"jobs cannot be {self.jobs}", hint="give a whole number of at least 1")

    def map(self, work: Callable[[_Unit], _Result], units: Iterable[_Unit]) -> Iterator[_Result]:
        """See `Engine`. A killed process is replaced, and unfinished units are redone."""
        return map(work, units) if self.jobs == 1 else _Processes[_Unit, _Result](work, self.jobs).map(units)


class _Processes(Generic[_Unit, _Result]):
    """A pool of processes that is restarted when one of them is killed."""

    def __init__(self, work: Callable[[_Unit], _Result], jobs: int):
        self.work, self.jobs = pickle.dumps(work), jobs
        self.pool = self._new_pool()
        self.waiting: deque[_Task[_Unit, _Result]] = deque()

    def map(self, units: Iterable[_Unit]) -> Iterator[_Result]:
        before, stream = set(active_children()), iter(units)
        finished = False
        try:
            while True:
                while len(self.waiting) < 2 * self.jobs and (unit := next(stream, self)) is not self:
                    self.waiting.append(_Task(unit, self._submit(unit)))  # type: ignore[arg-type]
                if not self.waiting:
                    break
                try:
                    result = self.waiting[0].future.result()
                except BrokenProcessPool:
                    self._restart()
                    continue
                self.waiting.popleft()
                yield result
            finished = True
        finally:
            if not finished:  # Nobody is waiting for the remaining results.
                for child in set(active_children()) - before:
                    child.kill()
            self.pool.shutdown(cancel_futures=True)

    def _restart(self) -> None:
        """Start another pool and give it all unfinished units; a unit at which processes keep dying is an error."""
        self.pool.shutdown()
        self.pool = self._new_pool()
        for place, task in enumerate(self.waiting):
            if not isinstance(task.future.exception(), BrokenProcessPool):
                continue
            # The first unfinished units are those that were being worked on.
            task.deaths += place < self.jobs
            if task.deaths >= _MOST_DEATHS:
                hint = "if memory ran out, use fewer --jobs; finished work is kept"
                raise SubdpError(f"processes were killed {_MOST_DEATHS} times on the same unit of work", hint=hint)
            task.future = self._submit(task.unit)

    def _submit(self, unit: _Unit) -> Future[_Result]:
        """Hand out a unit; to a pool that a killed process has just broken, as one whose result says so."""
        try:
            return self.pool.submit(_do, unit)
        except BrokenProcessPool as error:
            broken = Future[_Result]()
            broken.set_exception(error)
            return broken

    def _new_pool(self) -> ProcessPoolExecutor:
        threads = max(1, (os.cpu_count() or 1) // self.jobs)
        return ProcessPoolExecutor(self.jobs, get_context("spawn"), _begin, (self.work, threads))


class _Task(Generic[_Unit, _Result]):
    """A unit that was handed out, and how often a process died while working on it."""

    def __init__(self, unit: _Unit, future: Future[_Result]):
        self.unit, self.future, self.deaths = unit, future, 0


_work: Any = None  # In a process of the pool: the function that it applies to units.


def _begin(work: bytes, threads: int) -> None:
    """In a new process: load what the units share, and make sure that the process ends with its parent."""
    global _work
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all of them; the parent handles it.
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _work = load_work(work, threads)


def load_work(work: bytes, threads: int) -> Any:
    """In a process of any engine: what was pickled for it, to be called with units on this many threads."""
    os.environ |= {"SUBDP_QUIET": "1", "OMP_NUM_THREADS": str(threads)}
    try:
        loaded = pickle.loads(work)
    except Exception as error:  # Raised again at the first unit: here it would only break the pool.
        loaded = _Unusable(error)
    if (torch := sys.modules.get("torch")) is not None:  # It may have been imported before the variable was set.
        torch.set_num_threads(threads)
    return loaded


def title_of(unit: Any) -> str:
    """A unit in errors: if it is a list of sentences, by the words of the first and the last one."""
    if not isinstance(unit, list) or not unit:
        return str(unit)
    words: list[Any] = [getattr(sentence, "words", sentence) for sentence in (unit[0], unit[-1])]
    first, last = map(" ".join, words)
    return f"{counted(len(unit), 'sentence')} from “{first}” to “{last}”"


@dataclass(frozen=True, slots=True)
class _Unusable:
    """Stands in for what could not be loaded."""

    error: Exception

    def __call__(self, unit: Any) -> Any:
        raise self.error


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _do(unit: Any) -> Any:
    return _work(unit)
