"""One parser shared by threads: sentences a second with 1, 2 and 4 threads that parse one or eight sentences in a call.

    python benchmarks/threads.py TEXT       # TEXT has a sentence a line; the bundled encoder, the English parser

Checks as well that every thread gets what a single one gets.
"""

from __future__ import annotations

import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from subdp.parser import Parser

CALLS, ROUNDS = 400, 3


def main() -> None:
    """Print a table: sentences a second by number of threads and sentences in a call."""
    lines = [line for line in Path(sys.argv[1]).read_text(encoding="utf-8").splitlines() if line.strip()]
    parser = Parser.load("en")

    def parse(texts: list[str]) -> str:
        return "".join(sentence.conllu for sentence in parser.parse(texts))

    for size in (1, 8):
        calls = [[lines[(number * size + at) % len(lines)] for at in range(size)] for number in range(CALLS // size)]
        alone = [parse(texts) for texts in calls]  # Also starts what is started once.
        base = 0.0
        for threads in (1, 2, 4):
            best = 0.0
            for _ in range(ROUNDS):
                with ThreadPoolExecutor(threads) as pool:
                    begun = time.perf_counter()
                    assert list(pool.map(parse, calls)) == alone
                    best = max(best, len(calls) * size / (time.perf_counter() - begun))
            base = base or best
            print(f"{size} in a call, {threads} threads: {best:6.1f} sentences/s, {best / base:.2f} times one thread")


if __name__ == "__main__":
    main()
