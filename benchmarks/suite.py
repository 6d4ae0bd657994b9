"""Every benchmark that has a peer, one after the other, with the results in RESULTS.md: what `make bench` runs.

    python benchmarks/suite.py --data DATA                    # all: more than an hour on two cores
    python benchmarks/suite.py --data DATA --only decode startup
    python benchmarks/suite.py --data DATA --repeats 3        # instead of five; the rows then say so
    python benchmarks/suite.py --data DATA --try              # smallest sizes, one repeat, to see that all of it runs

DATA holds UD 2.2, NTREX-128 and Tatoeba as `ud/UD_English-EWT`, `ud/UD_German-GSD`, `bitext/ntrex/en.txt`, `de.txt` and
so on, and `bitext/tatoeba/en-de.tsv` (`subdp data ud` fetches the treebanks). A benchmark whose data is missing, or
that fails, is named in the results and the others continue. Rows of benchmarks that were not run this time are kept
from the last time, if neither the processor nor an installed version has changed since.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path

from measure import HEADER, Row, say, table

HERE = Path(__file__).parent
PACKAGES = ("subdp", "torch", "transformers", "numpy", "numba")
BUILD = HERE.parent / "build"
PEERS = re.findall(r"^[A-Za-z][\w.-]*", (HERE / "peers.txt").read_text(), re.MULTILINE)
VERSIONS = {name: version(name) for name in (*PACKAGES, *PEERS)}
VECTORS = ("avx2", "avx512f", "avx512_vnni", "avx_vnni")
TRIED = "Smallest sizes and one repeat: these figures say nothing but that everything runs."

BOUNDS = (
    "Two aims are bounds, measured in the same turns. match: simalign's time divided by that of the encoder's matrix",
    "products alone. SuPar's decoder runs no algorithm where best heads are a tree already: the aim is its time",
    "divided by that of a compiled function that finds the best heads alone.",
)

TREEBANK = "ud/UD_English-EWT/en_ewt-ud-train.conllu"
DEV, TEST = "ud/UD_English-EWT/en_ewt-ud-dev.conllu", "ud/UD_English-EWT/en_ewt-ud-test.conllu"
NTREX, TATOEBA = "bitext/ntrex", "bitext/tatoeba/en-de.tsv"
GOLD = "ud/UD_German-GSD/de_gsd-ud-test.conllu"
_QUICK = ("--iterations", "1")  # Of the peers' training: ten would take an hour, and parse no faster.


def commands(data: Path, trying: bool) -> dict[str, list[str]]:
    """The arguments of each benchmark, in the order in which they run."""
    treebank = str(data / TREEBANK)
    given = {
        "startup": [],
        "memory": [str(data / DEV)],
        "read_conllu": [treebank],
        "decode": ["--scores", "trained", "hard"],
        "project": [],
        "align": ["--bitext", str(data / NTREX)],
        "encode": [treebank],
        "parser": [treebank],
        "distilled": ["en", "--text", treebank, "--test", str(data / TEST), "--peers", "udpipe", "spacy", *_QUICK],
        "whole": ["--treebank", treebank, "--bitext", str(data / TATOEBA), "--test", str(data / GOLD)],
    }
    if not trying:
        return given
    smallest = {
        "decode": ["--scores", "hard", "--lengths", "10"],
        "memory": ["--sentences", "4"],
        "align": ["--pairs", "4"],
        "encode": ["--sentences", "4"],
        "parser": ["--sentences", "12"],
        "distilled": ["--sentences", "40"],
        "whole": ["--sentences", "12", "--pairs", "12", "--epochs", "1"],
    }
    return {name: [*flags, *smallest.get(name, []), "--repeats", "1"] for name, flags in given.items()}


def missing(flags: list[str]) -> str | None:
    """The first file or folder among the arguments that is not there."""
    return next((flag for flag in flags if "/" in flag and not Path(flag).exists()), None)


def run(name: str, flags: list[str]) -> list[Row] | str:
    """The rows of one benchmark, or why there are none. What it says goes to the terminal."""
    absent = missing(flags)
    if absent is not None:
        return f"needs {Path(absent).name}, which is not there"
    say(f"\n== {name}")
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, str(HERE / f"{name}.py"), *flags, "--json"], stdout=subprocess.PIPE, text=True, check=False
    )
    if done.returncode:
        return f"failed with exit code {done.returncode}"
    say(f"== {name}: {time.perf_counter() - start:.0f} s")
    return [Row.of_json(values) for values in json.loads(done.stdout.splitlines()[-1])]


def processor() -> str:
    """The processor's name and the vector instructions that it has, as far as Linux tells."""
    file = Path("/proc/cpuinfo")
    told = dict(re.findall(r"^(model name|flags)\s*: (.*)$", file.read_text(), re.MULTILINE)) if file.exists() else {}
    flags = [name for name in VECTORS if name in told.get("flags", "").split()]
    return f"{told.get('model name', platform.processor() or 'unknown processor')} ({', '.join(flags) or '?'})"


class Kept:
    """The rows so far, by benchmark, in a file, so that a later failure does not lose hours of work."""

    def __init__(self, path: Path):
        self.path, self.rows = path, dict[str, list[Row]]()
        values = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        if values.get("versions") == VERSIONS and values.get("processor") == processor():
            self.rows = {name: [Row.of_json(row) for row in rows] for name, rows in values["rows"].items()}

    def add(self, name: str, rows: list[Row]) -> None:
        self.rows[name] = rows
        plain = {name: [asdict(row) for row in rows] for name, rows in self.rows.items()}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        facts = {"versions": VERSIONS, "processor": processor(), "rows": plain}
        self.path.write_text(json.dumps(facts, indent=1), encoding="utf-8")


def report(rows: list[Row], faults: Mapping[str, str], trying: bool) -> str:
    """The results as a page."""
    aimed = [row for row in rows if row.reached is not None]
    threads = os.environ.get("OMP_NUM_THREADS") or os.cpu_count()
    lines = [
        "# Benchmarks: subdp beside its peers",
        "",
        "Written by `make bench` (`benchmarks/suite.py`), not by hand. Figures are medians, the interquartile range",
        "in brackets. What is compared takes turns, and “times as fast” is the median of the ratios, repeat by repeat.",
        "",
        f"- {platform.system()}, {platform.machine()}, {processor()}, {os.cpu_count()} cores, {threads} threads, "
        f"Python {platform.python_version()}; {time.strftime('%Y-%m-%d')}",
        f"- {', '.join(f'{name} {number}' for name, number in VERSIONS.items())}",
        f"- Aims reached: {sum(bool(row.reached) for row in aimed)} of {len(aimed)}",
        *([f"- **{TRIED}**"] if trying else []),
        *(f"- `{name}` is missing: {why}." for name, why in faults.items()),
        "",
        table([HEADER, *(row.cells() for row in rows)]) if rows else "Nothing was measured.",
        "",
        *BOUNDS,
        "",
    ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("data"))
    parser.add_argument("--only", nargs="+", choices=list(commands(Path(), False)))
    parser.add_argument("--repeats", type=int)
    parser.add_argument("--try", dest="trying", action="store_true", help="smallest sizes, one repeat; into build/")
    options = parser.parse_args()
    name = "bench-try" if options.trying else "bench"
    page = BUILD / "bench-try.md" if options.trying else HERE / "RESULTS.md"
    kept, faults = Kept(BUILD / f"{name}.json"), dict[str, str]()
    order = commands(options.data, options.trying)
    for name in options.only or order:
        found = run(name, [*order[name], *(["--repeats", str(options.repeats)] if options.repeats else [])])
        if isinstance(found, str):
            faults[name] = found
            say(f"{name}: {found}")
        else:
            kept.add(name, found)
        rows = [row for benchmark in order for row in kept.rows.get(benchmark, [])]
        absent = {other: "it was not run" for other in order if other not in kept.rows}
        page.write_text(report(rows, absent | faults, options.trying), encoding="utf-8")
    print(page.read_text(encoding="utf-8"))
    raise SystemExit(1 if faults else 0)


if __name__ == "__main__":
    main()
