"""How long a command with little to do takes, compared with the commands of supar and stanza.

    python benchmarks/startup.py

`subdp --help` is compared with the help of the others' commands, and `subdp evaluate` on a small file with the help of
their scoring commands: those also need a model, so theirs is the least they could take. `subdp parse` of one sentence
is compared with `import torch` alone, which it cannot do without; the aim is to take no more than half as long again.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import subdp
from measure import Row, alternate, arguments, compare, give, script

GOLD = Path(subdp.__file__).parent / "pipeline" / "sample" / "de-test.conllu"
STANZA = [sys.executable, "-m", "stanza.models.parser", "--help"]
MOST_SECONDS, AIM = 0.5, 5.0
HELP, EVALUATE, PARSE = "subdp --help", "subdp evaluate, a small file", "subdp parse, one sentence"
WORKS = {
    HELP: {
        "subdp": [script("subdp"), "--help"],
        "supar biaffine-dep --help": [script("biaffine-dep"), "--help"],
        "stanza models.parser --help": STANZA,
    },
    EVALUATE: {
        "subdp": [script("subdp"), "evaluate", str(GOLD), str(GOLD)],
        "supar biaffine-dep evaluate --help": [script("biaffine-dep"), "evaluate", "--help"],
        "stanza models.parser --help": STANZA,
    },
    PARSE: {
        "subdp": [script("subdp"), "parse", "-"],
        "torch import": [sys.executable, "-c", "import torch"],
    },
}


def run(command: list[str]) -> None:
    """One call, with a sentence as its input, without what it prints."""
    # Byte code is kept as on a user's machine: pip has compiled the others' already, but not what it installs editable.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    subprocess.run(command, check=True, input=b"One sentence.\n", env=environment, capture_output=True)


def one_work(work: str, commands: dict[str, list[str]], repeats: int) -> list[Row]:
    """Compare the commands for one task; the first calls, which read the files from disk, are not counted."""
    ways: dict[str, Callable[[], object]] = {name: partial(run, command) for name, command in commands.items()}
    times = alternate(ways, repeats)
    if work == PARSE:
        return compare(work, times, aims=dict.fromkeys(commands, 1 / 1.5))
    return compare(work, times, aims=dict.fromkeys(commands, AIM), most=MOST_SECONDS)


def main() -> None:
    options = arguments(__doc__).parse_args()
    give([row for work, commands in WORKS.items() for row in one_work(work, commands, options.repeats)], options.json)


if __name__ == "__main__":
    main()
