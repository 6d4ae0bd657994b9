"""How the benchmarks here time things, compare them and report the results.

    options = arguments(__doc__).parse_args()
    times = alternate({"subdp": ours, "conllu": theirs}, options.repeats)
    give(compare("read a treebank", times, aims={"conllu": 10}), options.json)

Whatever is compared takes turns, repeat by repeat, so that a busy moment of the machine falls on all alike, and a ratio
is always of one repeat. What counts is the median; the interquartile range beside it is the machine's noise. Rows go to
standard output, as a table or (`--json`) for `suite.py`; talk goes to standard error. Imports no torch.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np

OURS = "subdp"
LEAST_REPEATS = 5
"""Fewer repeats say little of the noise; a row with fewer says so."""


@dataclass(frozen=True, slots=True)
class Spread:
    """A median between its quartiles."""

    low: float
    middle: float
    high: float

    @classmethod
    def of(cls, values: Iterable[float]) -> Spread:
        low, middle, high = np.percentile(list(values), [25, 50, 75]).tolist()
        return cls(low, middle, high)

    def __str__(self) -> str:
        digits = 0 if self.middle >= 100 else 1 if self.middle >= 10 else 2 if self.middle >= 0.1 else 4
        low, middle, high = (f"{value:,.{digits}f}" for value in (self.low, self.middle, self.high))
        return f"{middle} ({low}–{high})"


@dataclass(frozen=True, slots=True)
class Row:
    """One comparison. `ratio` is how many times as fast as the peer we are; `aim` is the least that it should be.

    `most` is the maximum that our own figure should have, if there is one.
    """

    work: str
    unit: str
    peer: str
    ours: Spread
    theirs: Spread
    ratio: Spread
    repeats: int
    aim: float | None = None
    most: float | None = None

    @classmethod
    def of_json(cls, values: Mapping[str, object]) -> Row:
        """A row that `give` wrote."""
        spreads = {name: Spread(**values[name]) for name in ("ours", "theirs", "ratio")}  # type: ignore[arg-type]
        return cls(**{**values, **spreads})  # type: ignore[arg-type]

    @property
    def reached(self) -> bool | None:
        """Whether the aim is reached, or None where there is none."""
        if self.aim is None and self.most is None:
            return None
        fast = self.aim is None or self.ratio.middle >= self.aim
        return fast and (self.most is None or self.ours.middle <= self.most)

    def cells(self) -> list[str]:
        """The row as the cells of a table."""
        few = f" *(repeats: {self.repeats})*" if self.repeats < LEAST_REPEATS else ""
        aims = [f"≥ {self.aim:.3g}×"] if self.aim is not None else []
        aims += [f"≤ {self.most:g} {self.unit}"] if self.most is not None else []
        verdict = {None: "", True: "yes", False: "**no**"}[self.reached]
        figures = map(str, (self.ours, self.theirs, self.ratio))
        return [self.work + few, self.unit, self.peer, *figures, "; ".join(aims), verdict]


HEADER = ("work", "unit", "peer", "subdp", "the peer's", "times as fast", "aim", "reached")


def arguments(description: str | None) -> argparse.ArgumentParser:
    """The options that every benchmark has."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print the rows as JSON")
    parser.add_argument("--repeats", type=int, default=LEAST_REPEATS)
    return parser


def alternate(
    ways: Mapping[str, Callable[[], object]],
    repeats: int,
    *,
    clock: Callable[[], float] = time.perf_counter,
    loops: Mapping[str, int] | None = None,
    warm: bool = True,
) -> dict[str, list[float]]:
    """The seconds that each way takes, in each repeat; one after the other, after one turn each that is not counted.

    A way too short for the clock is run as often as `loops` says in every turn.
    """
    if warm:
        for run in ways.values():
            run()
    times: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(repeats):
        for name, run in ways.items():
            count = 1 if loops is None else loops.get(name, 1)
            start = clock()
            for _ in range(count):
                run()
            times[name].append((clock() - start) / count)
    return times


def compare(
    work: str,
    times: Mapping[str, Sequence[float]],
    *,
    unit: str = "s",
    figure: Callable[[float], float] = float,
    aims: Mapping[str, float] | None = None,
    most: float | None = None,
    ours: str = OURS,
) -> list[Row]:
    """A row for each peer: all in `times` but ours. `figure` makes the figure that is shown from seconds."""
    own = Spread.of(map(figure, times[ours]))
    return [
        Row(
            work,
            unit,
            named(peer),
            own,
            Spread.of(map(figure, theirs)),
            Spread.of(other / mine for mine, other in zip(times[ours], theirs, strict=True)),
            len(theirs),
            (aims or {}).get(peer),
            most,
        )
        for peer, theirs in times.items()
        if peer != ours
    ]


def named(peer: str) -> str:
    """A peer with its version. The first word is the package's name; what is not a package has no version."""
    package, _, rest = peer.partition(" ")
    try:
        return " ".join(filter(None, (package, version(package), rest)))
    except PackageNotFoundError:
        return peer


def seconds(run: Callable[[], object]) -> float:
    """How long something takes that is done once, such as a part of a larger work."""
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def script(name: str) -> str:
    """The path of a command that is installed in this environment."""
    return str(Path(sys.executable).with_name(name))


def say(text: str) -> None:
    """Print a message to standard error."""
    print(text, file=sys.stderr, flush=True)


def table(rows: Iterable[Sequence[str]]) -> str:
    """Cells as a table in Markdown, the first row its header, padded so that the source is readable."""
    cells = [list(row) for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    cells.insert(1, ["-" * width for width in widths])
    return "\n".join(
        f"| {' | '.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))} |" for row in cells
    )


def give(rows: Sequence[Row], as_json: bool) -> None:
    """Print the results."""
    if as_json:
        print(json.dumps([asdict(row) for row in rows], ensure_ascii=False))
    else:
        print(table([HEADER, *(row.cells() for row in rows)]))
