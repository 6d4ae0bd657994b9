"""What the stages cost as a bitext grows, as sentences grow, and how far each is from what the machine can do.

    python benchmarks/scale.py                                   # 1k, 10k, 100k pairs: a quarter of an hour, 4 GB
    python benchmarks/scale.py --pairs 20 40 --lengths 5 10 --limit-pairs 4 --limit-encoder FOLDER --each 4    # a try
    python benchmarks/scale.py --until clean --pairs 100000 1000000       # memory alone, of one stage
    python benchmarks/scale.py --until project --pairs 20000 200000       # or of several: half an hour, 7 GB

The bitext is made up: random words, a word's translation always the same, 10 words a sentence on average, nothing
dropped. Three tables:

* Growth. With a *small encoder with random weights* (made here; name another with --encoder), as the bundled one would
  take hours for 100,000 pairs: what counts is how the encoder's time grows, not the time itself. With --until, this is
  the only table, and goes to that stage.
* Length. Sentences of one length each, to 200 words; the same small encoder.
* Limits. The bundled encoder, few pairs. The operations of all matrix products (padding included) by the time of the
  stage, as a share of what one large matrix product reaches on as many threads; and the store's bytes by the time of
  writing and reading its files, as a share of what a plain file does in the same folder.

"own memory" is without mapped files, whose pages the system may take back at any time; "with files" is what getrusage
says. Each bitext has a process of its own. Needs no network.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import torch

from measure import LEAST_REPEATS, say, seconds, table

sys.path.append(str(Path(__file__).parents[1]))
from tests.tiny import tiny_encoder

from subdp.encoder.products import linear

STAGES = ("clean", "encode", "align", "project", "adapt")
LETTERS = "abcdefghijklmnopqrstuvwxyz"
VOCABULARY = 10_000
Found = dict[str, Any]


def write_bitext(path: Path, pairs: int, length: int | None = None) -> Path:
    """Made-up translations; sentences of 4 to 16 words unless all are to have the same length."""
    choose = random.Random(f"{pairs} {length}")
    spelled = random.Random(0).sample([a + b + c for a in LETTERS for b in LETTERS for c in LETTERS], VOCABULARY)
    with path.open("w", encoding="utf-8") as stream:
        for _ in range(pairs):
            words = choose.choices(spelled, k=length or choose.randint(4, 16))
            order = sorted(range(len(words)), key=lambda at: at + choose.uniform(-2, 2))
            stream.write(f"{' '.join(words)}\t{' '.join(words[at][::-1].upper() for at in order)}\n")
    return path


def measure(scratch: Path, encoder: str, pairs: int, length: int | None, *flags: str) -> Found:
    """Run one bitext through all stages, in a process of its own and a folder that is removed."""
    file = write_bitext(scratch / "pairs.tsv", pairs, length)
    script, folder = str(Path(__file__).with_name("scale_run.py")), scratch / "run"
    command = [sys.executable, script, str(file), "--encoder", encoder, "--folder", str(folder), *flags]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    shutil.rmtree(folder)
    found: Found = json.loads(done.stdout)
    taken = ", ".join(f"{name} {found['stages'][name]['seconds']:.1f} s" for name in STAGES if name in found["stages"])
    say(f"{pairs:,} pairs{f' of {length} words' if length else ''}: {taken}")
    return found


def per_pair(found: Found, stage: str) -> float:
    """Milliseconds."""
    milliseconds: float = found["stages"][stage]["seconds"] / found["pairs"] * 1e3
    return milliseconds


def growth(runs: list[Found]) -> str:
    """Time, memory and disk for each size; ratios to the size before."""
    rows = [["", *(f"{found['pairs']:,} pairs" for found in runs), "largest by the one before"]]
    stages = [stage for stage in STAGES if stage in runs[0]["stages"]]
    for stage in stages:
        values = [per_pair(found, stage) for found in runs]
        rows.append([f"{stage}, ms a pair", *(f"{value:.3f}" for value in values), _last(values)])
    for stage in stages:
        if stage == "align":  # It is done while projecting.
            continue
        values = [found["stages"][stage].get("megabytes", 0.0) for found in runs]
        rows.append([f"{stage}, own memory, MB", *(f"{value:,.0f}" for value in values), _last(values)])
    values = [found["megabytes"] for found in runs]
    rows.append(["most memory, with files, MB", *(f"{value:,.0f}" for value in values), _last(values)])
    for name in ("features", "silver"):
        values = [found[name] / found["pairs"] / 1e3 for found in runs]
        rows.append([f"{name} on disk, kB a pair", *(f"{value:.1f}" for value in values), _last(values)])
    return table(rows)


def _last(values: list[float]) -> str:
    return f"{values[-1] / values[-2]:.2f}" if len(values) > 1 and values[-2] else ""


def lengths(runs: dict[int, Found]) -> str:
    """Milliseconds a pair, and in brackets microseconds a word, for each length."""
    rows = [["ms a pair (µs a word)", *(f"{length} words" for length in runs)]]
    for stage in STAGES:
        values = [(per_pair(found, stage), length) for length, found in runs.items()]
        rows.append([stage, *(f"{value:.2f} ({value / length * 1e3:,.0f})" for value, length in values)])
    return table(rows)


def limits(found: Found, scratch: Path) -> str:
    """The share of its limit that each stage reaches."""
    peak = product_peak()
    write, read = file_speed(scratch)
    rows = [["stage", "reaches", "the limit", "share"]]
    for stage, count in found["operations"].items():
        rate = count / found["stages"][stage]["seconds"]
        rows.append([stage, f"{rate / 1e9:.1f} GFLOP/s", f"{peak / 1e9:.1f} GFLOP/s", f"{rate / peak:.0%}"])
    for name, volume, taken, limit in (
        ("features, written", found["features"], found["write seconds"], write),
        ("features, read back", found["read bytes"], found["stages"]["read back"]["seconds"], read),
    ):
        rate = volume / taken
        rows.append([name, f"{rate / 1e6:,.0f} MB/s", f"{limit / 1e6:,.0f} MB/s", f"{rate / limit:.0%}"])
    return table(rows)


def product_peak(size: int = 1024) -> float:
    """Operations a second of a large matrix product in float32, on as many threads as torch takes."""
    left, right = torch.rand(size, size), torch.rand(size, size)
    linear(left, right)
    return 2 * size**3 / median(seconds(lambda: linear(left, right)) for _ in range(2 * LEAST_REPEATS))


def file_speed(folder: Path, size: int = 1 << 26) -> tuple[float, float]:
    """Bytes a second of one plain file: written to the disk itself, and read back from the system's cache."""
    data, path = os.urandom(size), folder / "plain"

    def write() -> None:
        with path.open("wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())

    written = median(seconds(write) for _ in range(LEAST_REPEATS))
    read = median(seconds(partial(Path.read_bytes, path)) for _ in range(LEAST_REPEATS))
    path.unlink()
    return size / written, size / read


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--pairs", type=int, nargs="+", default=[1000, 10_000, 100_000])
    options.add_argument("--lengths", type=int, nargs="+", default=[10, 25, 50, 100, 150, 200])
    options.add_argument("--each", type=int, default=200, help="pairs of each length")
    options.add_argument("--encoder", help="for growth and length; by default a small one of random weights")
    options.add_argument("--until", choices=["clean", "project"], help="only growth, and only to this stage")
    options.add_argument("--limit-pairs", type=int, default=200)
    options.add_argument("--limit-encoder", default="bundled")
    options.add_argument("--scratch", type=Path, help="where the stores are written, and removed again")
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory(dir=chosen.scratch) as name:
        scratch = Path(name)
        small = chosen.encoder or str(tiny_encoder(scratch / "encoder", layers=12, hidden=16, positions=1024))
        title = chosen.encoder or "a small encoder of random weights"
        flags = [] if chosen.until is None else ["--until", chosen.until]
        grown = [measure(scratch, small, pairs, None, *flags) for pairs in chosen.pairs]
        if chosen.until is not None:
            print(f"## Growth: {title}, {grown[0]['threads']} threads\n\n{growth(grown)}")
            return
        by_length = {length: measure(scratch, small, chosen.each, length) for length in chosen.lengths}
        limited = measure(scratch, chosen.limit_encoder, chosen.limit_pairs, None, "--operations")
        threads = f"{limited['threads']} threads"
        print(f"## Growth: {title}, one epoch of adapting, {threads}\n\n{growth(grown)}\n")
        print(f"## Length: {title}, {chosen.each} pairs each, {threads}\n\n{lengths(by_length)}\n")
        print(f"## Limits: {chosen.limit_encoder}, {chosen.limit_pairs} pairs, {threads}\n\n{limits(limited, scratch)}")


if __name__ == "__main__":
    main()
