"""The engine for a Ray cluster: Ray Data hands numbers of units to a pool of actors, each of which loads the work once.

The units themselves are written to one file in the cache, which all nodes share; results come back through Ray, in
order. Ray starts killed actors again and redoes what they were doing, also on another node. Whatever is written is
written by the units, and is the same bytes as with the local engine.
"""

from __future__ import annotations

import os
import pickle
import shutil
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from subdp.support.cache import cache_folder
from subdp.support.engine import load_work, title_of
from subdp.support.errors import SubdpError, first_line
from subdp.support.ray_cluster import check_nodes, connect, count_of, enter, surroundings

_Unit = TypeVar("_Unit")
_Result = TypeVar("_Result")
_ATTEMPTS = 3  # at a unit that fails or kills its process
_STALE_SECONDS = 24 * 3600  # Units not read for this long were left by a killed process.


@dataclass(frozen=True, slots=True)
class RayEngine:
    """Processes units in actors on a cluster, with a core each, or a GPU each; by default as many as there are.

    `address` is that of the cluster; without one, Ray is started on this machine.
    """

    address: str | None = None
    actors: int | None = None
    gpu: bool = False
    _checked: set[str] = field(default_factory=set, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.actors is not None and self.actors < 1:
            raise SubdpError(f"jobs cannot be {self.actors}", hint="give a whole number of at least 1")
        connect(self.address)

    @property
    def resource(self) -> str:
        """What each actor has one of."""
        return "GPU" if self.gpu else "CPU"

    def map(self, work: Callable[[_Unit], _Result], units: Iterable[_Unit]) -> Iterator[_Result]:
        """See `Engine`. All units are read before the first one is done."""
        packed = pickle.dumps(work)
        with _units_on_disk(units) as (folder, places):
            if places:
                self._check(packed)
                yield from self._results(packed, folder, places)

    def _check(self, work: bytes) -> None:
        """Compare the nodes, each once: what comes later is made of the same files."""
        import ray

        nodes = {node["NodeID"] for node in ray.nodes() if node["Alive"]}
        if not nodes <= self._checked:
            check_nodes(work, self.resource)
            self._checked.update(nodes)

    def _results(self, work: bytes, folder: Path, places: list[tuple[int, int]]) -> Iterator[Any]:
        import ray

        actors = min(self.actors or len(places), count_of(self.resource), len(places))
        rows = [{"number": number, "start": start, "end": end} for number, (start, end) in enumerate(places)]
        # A unit is a block: what is redone after a fault. Input in memory needs no tasks that actors could starve.
        data = ray.data.from_items(rows, override_num_blocks=len(rows)).map(
            _Worker,
            fn_constructor_args=(ray.put(work), str(folder), surroundings()),
            # A unit takes seconds: none waits behind another while the next actor is still being started.
            compute=ray.data.ActorPoolStrategy(size=actors, max_tasks_in_flight_per_actor=1),
            num_cpus=1,
            num_gpus=int(self.gpu),
        )
        data.context.enable_progress_bars = False
        data.context.execution_options.preserve_order = True
        try:
            with closing(iter(data.iter_rows())) as stream:
                for row in stream:
                    os.utime(folder)
                    yield _opened(row["result"])
        except ray.exceptions.RayError as error:
            hint = "what is done is kept, and the same command resumes from there"
            raise SubdpError(f"Ray stopped: {first_line(error)}", hint=hint) from error


class _Worker:
    """What an actor does: it loads the work once, and then does one unit after the other."""

    def __init__(self, work: Any, folder: str, surroundings: dict[str, str]):
        import ray

        enter(surroundings)
        self.work, self.folder = load_work(ray.get(work), threads=1), Path(folder)

    def __call__(self, row: dict[str, int]) -> dict[str, Any]:
        """The result of a unit, or the exception that it raised, pickled."""
        try:
            return {"result": _packed(True, self._do(row))}
        except Exception as error:
            return {"result": _packed(False, error)}

    def _do(self, row: dict[str, int]) -> Any:
        with (self.folder / "units").open("rb") as file:
            file.seek(row["start"])
            unit = pickle.loads(file.read(row["end"] - row["start"]))
        begun = self.folder / str(row["number"])  # It grows by a byte with every attempt, whoever makes it.
        while True:
            with begun.open("ab") as file:
                attempt = file.tell() + 1
                file.write(b".")
            if attempt > _ATTEMPTS:
                hint = "if memory ran out, use fewer --jobs; finished work is kept"
                raise SubdpError(f"{title_of(unit)}: failed or was killed {_ATTEMPTS} times", hint=hint)
            try:
                result = self.work(unit)
            except (SubdpError, OSError):
                raise
            except Exception as error:
                if attempt == _ATTEMPTS:
                    raise SubdpError(f"{title_of(unit)}: {first_line(error)}", hint="finished work is kept") from error
                continue
            begun.unlink(missing_ok=True)
            return result


def _packed(done: bool, result: Any) -> bytes:
    """A result or an exception; of an exception that cannot be pickled, its text."""
    try:
        packed = pickle.dumps((done, result))
        if not done:
            pickle.loads(packed)
        return packed
    except Exception as error:
        return pickle.dumps((False, SubdpError(first_line(error if done else result))))


def _opened(packed: bytes) -> Any:
    done, result = pickle.loads(packed)
    if not done:
        raise result
    return result


@contextmanager
def _units_on_disk(units: Iterable[Any]) -> Iterator[tuple[Path, list[tuple[int, int]]]]:
    """A folder that all nodes see, with all units in one file, and where each begins and ends; removed at the end."""
    root = cache_folder().absolute() / "units"
    folder = root / uuid.uuid4().hex
    try:
        folder.mkdir(parents=True)
        for other in root.iterdir():
            with suppress(OSError):  # Another command may be removing its own.
                if time.time() - other.stat().st_mtime > _STALE_SECONDS:
                    shutil.rmtree(other)
        yield folder, _write_units(units, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _write_units(units: Iterable[Any], folder: Path) -> list[tuple[int, int]]:
    """Write the units to one file; where each begins and ends. A full disk is told with the folder of all units."""
    places = []
    try:
        with (folder / "units").open("wb") as file:
            for unit in units:
                start = file.tell()
                pickle.dump(unit, file)
                places.append((start, file.tell()))
    except OSError as error:
        if error.filename is None:
            error.filename = str(folder.parent)
        raise
    return places
