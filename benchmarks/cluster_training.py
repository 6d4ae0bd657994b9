"""Training on several ranks: seconds an epoch and scores, with one rank, with two, and with two cores of one process.

    python benchmarks/cluster_training.py TRAIN.conllu DEV.conllu [--sentences 1000] [--epochs 6] [--repeats 3]

The bundled encoder, the small preset. Each way trains twice, for one epoch and for `--epochs`: the difference is the
time of the epochs, the rest is start-up. The ways take turns. Vectors come from the cache, which is filled first.
Rank 0's CPU time tells what the others take off it, also on a machine that is busy with something else.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from dataclasses import replace
from itertools import islice

from measure import Spread, say, table

WAYS = {"1 rank, 1 thread": (1, 1), "2 ranks, 1 thread each": (2, 1), "1 rank, 2 threads": (1, 2)}


def main() -> None:
    """Print a table of all ways; in a process that it starts, train."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("treebank")
    parser.add_argument("dev")
    parser.add_argument("--sentences", type=int, default=1000)
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--rank", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.rank:
        _rank(options)
        return
    found: dict[str, list[dict[str, float]]] = {name: [] for name in WAYS}
    for repeat in range(options.repeats + 1):
        for name, (ranks, threads) in WAYS.items():
            result = _start(ranks, threads)
            say(f"{name}: {result}")
            if repeat:  # The first turn fills the cache.
                found[name].append(result)
    alone = found["1 rank, 1 thread"]
    rows: list[tuple[str, ...]] = [
        ("", "s an epoch", "times as fast", "CPU s of rank 0", "times less", "start-up, s", "UAS", "LAS")
    ]
    for name, results in found.items():
        cells = [name]
        for unit in ("wall", "cpu"):
            cells.append(str(Spread.of(result[unit] for result in results)))
            cells.append(str(Spread.of(one[unit] / two[unit] for one, two in zip(alone, results, strict=True))))
        cells.append(str(Spread.of(result["start"] for result in results)))
        rows.append((*cells, *(f"{results[0][score]:.2f}" for score in ("uas", "las"))))
    print(table(rows))


def _start(ranks: int, threads: int) -> dict[str, float]:
    """Train in processes of their own."""
    call = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks)]
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads)}
    done = subprocess.run([*call, *sys.argv, "--rank"], env=environment, stdout=subprocess.PIPE, check=True)
    result: dict[str, float] = json.loads(done.stdout)
    return result


def _rank(options: argparse.Namespace) -> None:
    from subdp import Encoder, Parser, Settings, read_conllu
    from subdp.training.ranks import leave, on_ranks

    def work() -> None:
        trees = list(islice(read_conllu(options.treebank), options.sentences))
        dev, encoder = list(read_conllu(options.dev)), Encoder.load()
        walls, cpus = list[float](), list[float]()
        for epochs in (1, options.epochs):
            settings = Settings.resolve()
            settings = replace(settings, train=replace(settings.train, epochs=epochs))
            wall, cpu = time.perf_counter(), time.process_time()
            parser = Parser.train(trees, encoder=encoder, settings=settings, seed=1)
            walls.append(time.perf_counter() - wall)
            cpus.append(time.process_time() - cpu)
        epoch, busy = ((times[1] - times[0]) / (options.epochs - 1) for times in (walls, cpus))
        scores = parser.evaluate(dev)
        facts = {"wall": epoch, "cpu": busy, "start": walls[0] - epoch}
        print(json.dumps({**facts, "uas": scores.uas, "las": scores.las}))

    if int(os.environ["WORLD_SIZE"]) > 1:
        on_ranks(work)
        leave(0)
    else:
        work()


if __name__ == "__main__":
    main()
