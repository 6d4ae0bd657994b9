"""What the tests of the Ray engine do on a cluster, in modules that its processes can import."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from subdp.support.errors import SubdpError


def _wait(for_this: Callable[[], bool], seconds: float = 60) -> None:
    """Wait until something is so, or until a test may fail for want of it."""
    end = time.monotonic() + seconds
    while not for_this() and time.monotonic() < end:
        time.sleep(0.05)


@dataclass(frozen=True)
class Square:
    """Squares a number, and tells the process and the node that did it; waits until so many processes have begun.

    Beside the folder is a file that grows by a byte whenever a process loads this.
    """

    folder: Path
    processes: int = 1

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        with self.loads.open("ab") as file:
            file.write(b".")

    @property
    def loads(self) -> Path:
        return self.folder.with_name(f"{self.folder.name}.loads")

    def __call__(self, unit: int) -> tuple[int, int, str]:
        import ray

        (self.folder / str(os.getpid())).touch()
        _wait(lambda: len(list(self.folder.iterdir())) >= self.processes)
        return unit * unit, os.getpid(), ray.get_runtime_context().get_node_id()


@dataclass(frozen=True)
class Failing:
    """Kills its process, or raises, at unit 2: as often as it is told to."""

    folder: Path
    times: int
    how: str = "kill"

    def __call__(self, unit: int) -> int:
        seen = len(list(self.folder.iterdir()))
        if unit == 2 and seen < self.times:
            (self.folder / str(seen)).touch()
            if self.how == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            raise ValueError("this pair is poisoned")
        return unit


@dataclass(frozen=True)
class KillsNode:
    """Kills the node that it runs on, once, if that is the one with the variable; the others wait for it."""

    mark: Path
    work: Callable[[Any], Any] = abs

    def __call__(self, unit: Any) -> Any:
        if os.environ.get("SUBDP_TEST_NODE") and not self.mark.exists():
            self.mark.touch()
            os.kill(int(os.environ["RAY_RAYLET_PID"]), signal.SIGKILL)  # the process that is the node
        _wait(self.mark.exists, 180)
        return self.work(unit)


@dataclass(frozen=True)
class Elsewhere:
    """Can be loaded only where a variable is not set: what an encoder that is missing on one node is like."""

    def __reduce__(self) -> Any:
        return _elsewhere, ()

    def __call__(self, unit: int) -> int:
        raise AssertionError("no unit is to be done")


def _elsewhere() -> Elsewhere:
    if os.environ.get("SUBDP_TEST_NODE"):
        raise SubdpError("the encoder of this name on this machine is a different one", where="/models/xlm-r")
    return Elsewhere()


@dataclass(frozen=True)
class FullDisk:
    """Any work, on a disk that takes a kilobyte and no more."""

    work: Callable[[Any], Any]

    def __call__(self, unit: Any) -> Any:
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1024, before[1]))
        try:
            return self.work(unit)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)


@dataclass(frozen=True)
class Killed:
    """Work whose process is killed once, at the end of a unit of silver: it is done, but nobody has been told."""

    work: Any
    mark: Path

    def __call__(self, unit: Any) -> Any:
        result = self.work(unit)
        if hasattr(self.work, "silver") and not self.mark.exists():
            self.mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return result


@dataclass(frozen=True)
class Removed:
    """Work on silver whose folder has gone."""

    work: Any

    def __call__(self, unit: Any) -> Any:
        if hasattr(self.work, "silver"):
            shutil.rmtree(self.work.silver.folder, ignore_errors=True)
        return self.work(unit)
