"""One bitext through every stage, in a process of its own: seconds, memory and disk by stage, as JSON.

    python benchmarks/scale_run.py PAIRS.tsv --encoder FOLDER --folder SCRATCH [--until STAGE] [--operations]

`scale.py` starts this in a process for each bitext, because peak memory is counted per process.
The source parser has random weights: its output is nonsense, but costs as much to compute. With `--operations`, the
matrix products of the encoder and the network are counted too, in a second pass over the same pairs.
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn.modules.module import register_module_forward_hook
from torch.utils.flop_counter import FlopCounterMode

from measure import seconds
from subdp.alignment.aligner import Aligner
from subdp.alignment.links import Alignment
from subdp.alignment.similarity import SimilarityAligner
from subdp.corpus.bitext import Bitext, Pair, read_bitext
from subdp.corpus.filters import Filters
from subdp.encoder import feature_store as features
from subdp.encoder.encoder import Encoder
from subdp.encoder.feature_store import FeatureStore
from subdp.encoder.shards import write_shard
from subdp.network.biaffine import Biaffine
from subdp.parser import Parser
from subdp.projection.silver import SilverStore
from subdp.projection.substructures import Inventory
from subdp.support.settings import Settings

LABELS = 37  # as many as universal relations
BATCH = 250  # sentences read back at once, to time that alone


class Watch:
    """Seconds by stage, and the most memory in it that is the process's own (mapped files are not).

    Memory is sampled ten times a second, where the system reports it (Linux).
    """

    def __init__(self) -> None:
        self.stages: dict[str, dict[str, float]] = {}
        self._now = "start"
        threading.Thread(target=self._look, daemon=True).start()

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        self._now, start = name, time.perf_counter()
        yield
        self.stages.setdefault(name, {})["seconds"] = time.perf_counter() - start
        self._note()

    def _look(self) -> None:
        while True:
            self._note()
            time.sleep(0.1)

    def _note(self) -> None:
        status = Path("/proc/self/status")
        lines = status.read_text().splitlines() if status.exists() else []
        for line in lines:
            if line.startswith("RssAnon"):
                stage = self.stages.setdefault(self._now, {})
                stage["megabytes"] = max(stage.get("megabytes", 0.0), int(line.split()[1]) / 1024)


class TimedAligner(Aligner):
    """An aligner that adds up its own time, since it works in parts between those of others."""

    def __init__(self, aligner: SimilarityAligner):
        self.aligner, self.seconds = aligner, 0.0

    reads_vectors = True

    @property
    def fingerprint(self) -> str:
        return self.aligner.fingerprint

    def align(self, pairs: Iterable[Pair]) -> Iterator[Alignment]:
        stream = self.aligner.align(pairs)
        while True:
            start = time.perf_counter()
            found = next(stream, None)
            self.seconds += time.perf_counter() - start
            if found is None:
                return
            yield found


def make_parser(encoder: Encoder, settings: Settings, folder: Path) -> Parser:
    """A source parser with random weights, and a store of features in the folder."""
    layers = encoder.check_layers(settings.network.layers)
    names = ("root", *(f"label{number}" for number in range(1, LABELS)))
    torch.manual_seed(1)
    inventory: Inventory = {"arcs": (), "labels": names}
    network = Biaffine(settings.network, len(layers), encoder.hidden, inventory)
    parser = Parser(network, settings.network, inventory, encoder)
    parser.__dict__["features"] = FeatureStore(encoder, layers, folder / "features")
    return parser


def timed_writing() -> list[float]:
    """A list to which the seconds of each shard written from now on are appended."""
    taken: list[float] = []

    def timed(*given: Any) -> None:
        taken.append(seconds(lambda: write_shard(*given)))

    features.write_shard = timed  # type: ignore[assignment,attr-defined]
    return taken


def read_back(store: FeatureStore, bitext: Bitext) -> None:
    for start in range(0, len(bitext), BATCH):
        store.batch([pair.target for pair in bitext[start : start + BATCH]])


def size(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def warm_up(parser: Parser, settings: Settings, folder: Path) -> None:
    """All stages on a few other pairs: loading and compiling code, the same for any size, is not to be counted."""
    few = Bitext.of([Pair(("Warm", "up", str(number)), ("Auf", "wärmen", str(number))) for number in range(4)])
    parser.adapt(parser.project(few, folder=folder), settings=settings, held_out=0.0)


def run(file: str, encoder: Encoder, settings: Settings, folder: Path, until: str = "adapt") -> dict[str, Any]:
    """All stages, or those until one of them; what each took and left behind."""
    parser = make_parser(encoder, settings, folder)
    warm_up(parser, settings, folder / "warm")
    watch = Watch()
    store, aligner = parser.features, TimedAligner(SimilarityAligner(encoder))
    writing = timed_writing()
    with watch.stage("clean"):
        bitext = read_bitext(file, tokenized=True).clean(filters=Filters(longest=1000))
    if until != "clean":
        with watch.stage("encode"):
            for side in ("source", "target"):
                store.add(getattr(pair, side) for pair in bitext)
        with watch.stage("read back"):
            read_back(store, bitext)
        with watch.stage("project"):
            silver = parser.project(bitext, aligner=aligner, folder=folder / "silver")
        watch.stages["align"] = {"seconds": aligner.seconds}
        watch.stages["project"]["seconds"] -= aligner.seconds
    if until == "adapt":
        with watch.stage("adapt"):
            parser.adapt(silver, settings=settings, held_out=0.0)
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    stored, targets = size(folder / "features"), sum(len(pair.target) for pair in bitext)
    return {
        "pairs": len(bitext),
        "words": list(bitext.words),
        "stages": {name: values for name, values in watch.stages.items() if "seconds" in values},
        "megabytes": most / (1 << 20 if sys.platform == "darwin" else 1 << 10),
        "features": stored,
        "silver": size(folder / "silver"),
        "write seconds": sum(writing),
        "read bytes": stored * targets / sum(bitext.words),
    }


def count(work: Callable[[], object]) -> float:
    """The floating-point operations of all matrix products in some work, padding and backward passes included.

    torch's counter does not see into an LSTM: its weights are used once for every position, and twice more going back.
    """
    inside = 0.0

    def note(module: nn.Module, inputs: Any, _: object) -> None:
        nonlocal inside
        if isinstance(module, nn.LSTM):
            weights = sum(weight.numel() for weight in module.parameters() if weight.dim() == 2)
            inside += 2.0 * weights * inputs[0][..., 0].numel() * (3 if torch.is_grad_enabled() else 1)

    hook = register_module_forward_hook(note)
    with FlopCounterMode(display=False) as counter:
        work()
    hook.remove()
    return float(counter.get_total_flops()) + inside


def operations(file: str, encoder: Encoder, settings: Settings, folder: Path) -> dict[str, float]:
    """The operations of each stage that is made of matrix products."""
    shutil.rmtree(folder, ignore_errors=True)
    parser = make_parser(encoder, settings, folder)
    bitext = read_bitext(file, tokenized=True).clean(filters=Filters(longest=1000))
    sides = [side for pair in bitext for side in (pair.source, pair.target)]
    aligner = SimilarityAligner(encoder)
    found = {"encode": count(lambda: parser.features.add(sides)), "align": count(lambda: list(aligner.align(bitext)))}
    both = count(lambda: parser.project(bitext, aligner=aligner, folder=folder / "silver"))
    silver = SilverStore(folder / "silver")
    adapt = count(lambda: parser.adapt(silver, settings=settings, held_out=0.0))
    return {**found, "project": both - found["align"], "adapt": adapt}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("file")
    options.add_argument("--encoder", required=True)
    options.add_argument("--folder", type=Path, required=True)
    options.add_argument("--epochs", type=int, default=1)
    options.add_argument("--until", choices=["clean", "project", "adapt"], default="adapt")
    options.add_argument("--operations", action="store_true")
    chosen = options.parse_args()
    encoder, settings = Encoder.load(chosen.encoder), Settings.resolve()
    settings = replace(settings, adapt=replace(settings.adapt, epochs=chosen.epochs, least_batches=1))
    found = run(chosen.file, encoder, settings, chosen.folder, chosen.until)
    found["threads"] = torch.get_num_threads()
    if chosen.operations:
        torch.set_num_threads(1)  # The counter does not see what other threads do.
        found["operations"] = operations(chosen.file, encoder, settings, chosen.folder)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
