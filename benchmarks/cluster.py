"""The Ray engine beside the local one, and memory as a bitext grows.

    python benchmarks/cluster.py PAIRS.tsv [--pairs 2000] [--repeats 3]
    python benchmarks/cluster.py --memory 100000 1000000            # an hour: made-up pairs, a tiny encoder

The first: the bundled encoder, the English parser; both sides encoded, then aligned and projected, by `--jobs 2` and by
two actors on a Ray that is started on this machine. Steady state is the time between the first unit that is done and
the last, by the units in between; all else is start-up. Ray hands results over in bursts, which flatters it there: the
whole time is the safer figure. Each turn has a cache of its own, the engines take turns, and
their bytes are compared.

The second: clean, encode and project with one actor, and the most memory of any process of ours: the command and the
actors, without Ray's own and without mapped files. Training on ranks is `cluster_training.py`.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any

from measure import Spread, say, table

sys.path.append(str(Path(__file__).parents[1]))
from subdp.support.engine import Engine, LocalEngine

ACTORS = 2


@dataclass
class Timed:
    """An engine that notes when the results of each call come."""

    engine: Engine
    calls: list[list[float]] = field(default_factory=list)

    def map(self, work: Callable[[Any], Any], units: Iterable[Any]) -> Iterator[Any]:
        times = [time.perf_counter()]
        self.calls.append(times)
        for result in self.engine.map(work, units):
            times.append(time.perf_counter())
            yield result


def turn(engine: Engine, bitext: Any, folder: Path) -> tuple[dict[str, float], dict[str, bytes]]:
    """Seconds a unit of encoding and of projecting, start-up included and not; and all that was written."""
    from subdp import Parser
    from subdp.encoder.feature_store import FeatureStore

    timed, parser = Timed(engine), Parser.load("en")
    parser = replace(parser, store=FeatureStore(parser.encoder, parser.config.layers, folder / "features"))
    start = time.perf_counter()
    for side in ("source", "target"):
        parser.features.add((getattr(pair, side) for pair in bitext), timed)
    parser.project(bitext, folder=folder / "silver", engine=timed)
    whole = time.perf_counter() - start
    found = {"whole": whole, "steady": sum(map(steady, timed.calls))}
    found["start-up"] = whole - found["steady"]
    return found, {path.name: path.read_bytes() for path in folder.rglob("*.arrow")}


def steady(times: list[float]) -> float:
    """The seconds that all units of a call take in the steady state.

    Results come in the order of the units, and each worker's first one includes its start: they are left out.
    """
    units, first = len(times) - 1, ACTORS
    return (times[-1] - times[first]) / (units - first) * units if units > first else times[-1] - times[0]


def compare(file: str, pairs: int, repeats: int) -> None:
    """Both engines in turns."""
    from subdp import read_bitext
    from subdp.corpus.bitext import Bitext
    from subdp.support.ray_engine import RayEngine

    bitext = Bitext.of(list(islice(read_bitext(file).clean(), pairs)))
    start = time.perf_counter()
    ray = RayEngine(actors=ACTORS)
    say(f"Ray is started: {time.perf_counter() - start:.1f} s")
    found: dict[str, list[dict[str, float]]] = {"local": [], "ray": []}
    written: dict[str, dict[str, bytes]] = {}
    for _ in range(repeats):
        for name, engine in (("local", LocalEngine(ACTORS)), ("ray", ray)):
            with tempfile.TemporaryDirectory() as folder:
                result, written[name] = turn(engine, bitext, Path(folder))
            found[name].append(result)
            say(f"{name}: {result}")
    rows: list[tuple[str, ...]] = [("s", "--jobs 2", "Ray, 2 actors", "Ray by --jobs")]
    for what in ("steady", "start-up", "whole"):
        local, other = ([result[what] for result in found[name]] for name in ("local", "ray"))
        ratio = Spread.of(two / one for one, two in zip(local, other, strict=True))
        rows.append((what, str(Spread.of(local)), str(Spread.of(other)), str(ratio)))
    print(f"{len(bitext):,} pairs, {' and '.join(f'{count:,}' for count in bitext.words)} words\n\n{table(rows)}\n")
    print(f"the same bytes in {len(written['local'])} files: {written['local'] == written['ray']}")


class Memory:
    """The most memory of one kind that a process of ours has: anonymous pages, looked up twice a second."""

    def __init__(self) -> None:
        self.most: dict[str, float] = {}
        threading.Thread(target=self._look, daemon=True).start()

    def _look(self) -> None:
        own = str(os.getpid())
        while True:
            for process in Path("/proc").iterdir():
                if process.name.isdecimal():
                    self._note(process, "the command" if process.name == own else "an actor")
            time.sleep(0.5)

    def _note(self, process: Path, kind: str) -> None:
        try:
            title = (process / "cmdline").read_bytes()
            if kind == "the command" or title.startswith(b"ray::MapWorker"):
                status = (process / "status").read_text().split("RssAnon:")[1].split()[0]
                self.most[kind] = max(self.most.get(kind, 0.0), int(status) / 1024)
        except (OSError, IndexError):
            pass  # It has ended.


def memory(sizes: list[int], scratch: Path) -> None:
    """A table of the most memory for each size; each has processes of its own."""
    from tests.tiny import tiny_encoder

    from scale import write_bitext

    encoder = tiny_encoder(scratch / "encoder", layers=1, hidden=8)
    rows: list[tuple[str, ...]] = [("pairs", "the command, MB", "an actor, MB", "minutes")]
    for size in sizes:
        file = write_bitext(scratch / "pairs.tsv", size)
        start = time.perf_counter()
        call = [sys.executable, __file__, str(file), "--encoder", str(encoder)]
        done = subprocess.run(call, stdout=subprocess.PIPE, check=True, env={**os.environ, "TMPDIR": str(scratch)})
        most = json.loads(done.stdout)
        minutes = (time.perf_counter() - start) / 60
        rows.append((f"{size:,}", *(f"{most[kind]:,.0f}" for kind in ("the command", "an actor")), f"{minutes:.1f}"))
        say(" | ".join(rows[-1]))
    print(table(rows))


def work_through(file: str, name: str, folder: Path) -> None:
    """Clean, encode and project a bitext on Ray; prints the most memory."""
    from scale_run import make_parser
    from subdp import Encoder, Settings, read_bitext
    from subdp.support.ray_engine import RayEngine

    os.environ["SUBDP_CACHE"] = str(folder / "cache")
    settings = Settings.resolve()
    tiny = replace(settings.network, layers=(1,), features=16, lstm=12, lstm_layers=1, arc=12, label=8)
    parser = make_parser(Encoder.load(name), replace(settings, network=tiny), folder)
    engine, watch = RayEngine(actors=1), Memory()
    bitext = read_bitext(file, tokenized=True).clean()
    parser = replace(parser, store=parser.features)
    for side in ("source", "target"):
        parser.features.add((getattr(pair, side) for pair in bitext), engine)
    parser.project(bitext, folder=folder / "silver", engine=engine)
    print(json.dumps(watch.most))


def main() -> None:
    """Compare the engines, or measure memory; in a process that it starts, work through one bitext."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", nargs="?")
    parser.add_argument("--pairs", type=int, default=2000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--memory", type=int, nargs="+", metavar="PAIRS")
    parser.add_argument("--encoder", help=argparse.SUPPRESS)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if options.memory:
            memory(options.memory, Path(folder))
        elif options.encoder:
            work_through(options.file, options.encoder, Path(folder))
        elif options.file:
            compare(options.file, options.pairs, options.repeats)
        else:
            parser.error("name a file of pairs, or give --memory")


if __name__ == "__main__":
    main()
