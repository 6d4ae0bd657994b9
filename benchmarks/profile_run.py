"""Where the time of `subdp run` goes: by stage and, inside adapting, by torch's operations and by our functions.

    python benchmarks/profile_run.py --bitext en-de.tsv [--treebank en.conllu] [--pairs 500] [--epochs 2]

Runs the stages in this process, with nothing computed before, through a cache of its own. Under a profiler everything
is slower, so the stages are timed without one; then an epoch of adapting runs under torch's profiler and one under
Python's. What is found belongs in PROFILE.md, with the date and what was changed because of it.
"""

from __future__ import annotations

import argparse
import cProfile
import io
import os
import pstats
import shutil
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from measure import say, seconds, table
from subdp.corpus.bitext import read_bitext
from subdp.encoder.bundled.convert import bundled_encoder
from subdp.pipeline.options import RunOptions
from subdp.pipeline.run import Run
from subdp.support.settings import Settings

TOP = 15


def prepare(options: argparse.Namespace, folder: Path) -> Run:
    """The run, on a sample of the pairs, with a cache that has the bundled encoder and nothing else."""
    encoders = bundled_encoder().parent.resolve() if options.encoder is None else None
    os.environ["SUBDP_CACHE"] = str(folder / "cache")
    if encoders is not None:
        (folder / "cache").mkdir()
        (folder / "cache" / "encoders").symlink_to(encoders)
    pairs = read_bitext(*options.bitext)
    lines = [
        f"{' '.join(p.source)}\t{' '.join(p.target)}\n" for p in pairs.sample(min(options.pairs, len(pairs)), seed=1)
    ]
    (folder / "pairs.tsv").write_text("".join(lines), encoding="utf-8")
    parsers = () if options.source_parser is None else (options.source_parser,)
    chosen = RunOptions(
        bitext=(str(folder / "pairs.tsv"),),
        treebank=options.treebank,
        source_parser=parsers,
        encoder=options.encoder,
        test=options.test,
        tokenized=True,
    )
    changes = {"epochs": options.epochs, "patience": options.epochs}
    return Run(chosen, Settings.resolve(flags={"train": changes, "adapt": changes}), folder / "run")


def by_stage(run: Run) -> str:
    """Do all stages, and say what each took."""
    took: dict[str, float] = {"imports": seconds(lambda: __import__("subdp.pipeline.work"))}
    start, stage = time.perf_counter(), ""

    def watch(text: str) -> None:
        nonlocal start, stage
        now = time.perf_counter()
        if stage:
            took[stage] = took.get(stage, 0.0) + now - start
        start = now
        stage = text.split("] ")[1].split(":")[0] if text.startswith("[") else ""
        say(text)

    run.perform(watch)
    total = sum(took.values())
    rows = [[name, f"{value:.2f}", f"{value / total:.0%}"] for name, value in took.items()]
    return table([["stage", "s", "share"], *rows, ["all", f"{total:.2f}", ""]])


def adapt_once(run: Run) -> None:
    """One epoch of adapting, from the features and the silver that are there."""
    settings = replace(run.settings, adapt=replace(run.settings.adapt, epochs=1))
    run.work.parser(0).adapt(run.work.silver(0), settings=settings)


def by_operation(run: Run) -> str:
    """torch's operations in an epoch of adapting, by their own CPU time."""
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU]) as profiler:
        adapt_once(run)
    times = {event.key: (event.self_cpu_time_total / 1e6, event.count) for event in profiler.key_averages()}
    total = sum(taken for taken, _ in times.values())
    top = sorted(times.items(), key=lambda item: item[1], reverse=True)[:TOP]
    rows = [[name, f"{taken:.2f}", f"{taken / total:.0%}", f"{calls:,}"] for name, (taken, calls) in top]
    return table([["operation", "s", "share", "calls"], *rows])


def by_function(run: Run) -> str:
    """Functions in an epoch of adapting, with all that they call, as Python's profiler has them."""
    profiler = cProfile.Profile()
    profiler.runcall(adapt_once, run)
    stream = io.StringIO()
    pstats.Stats(profiler, stream=stream).strip_dirs().sort_stats("cumulative").print_stats("subdp|py", 3 * TOP)
    return f"```\n{stream.getvalue().strip()}\n```"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bitext", nargs="+", required=True, help="one file of pairs, or two files of lines")
    parser.add_argument("--treebank", help="to train the source parser on; without it the English one is taken")
    parser.add_argument("--source-parser", help="a model folder to take in its place")
    parser.add_argument("--encoder")
    parser.add_argument("--test")
    parser.add_argument("--pairs", type=int, default=500)
    parser.add_argument("--epochs", type=int, default=10, help="of each training, none stopping early")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp())
    try:
        run = prepare(options, folder)
        print(f"## By stage\n\n{by_stage(run)}\n", flush=True)
        print(f"## An epoch of adapting, by operation\n\n{by_operation(run)}\n", flush=True)
        print(f"## An epoch of adapting, by function\n\n{by_function(run)}")
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
