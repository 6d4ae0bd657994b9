"""How long a command with little to do takes, compared with the commands of supar and stanza.

    python benchmarks/startup.py

`subdp --help` is compared with the help of the others' commands, and `subdp evaluate` on a small file with the help of
their scoring commands: those also need a model, so theirs is the least they could take.
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

GOLD = Path(subdp.__file__).parent / "sample" / "de-test.conllu"
STANZA = [sys.executable, "-m", "stanza.models.parser", "--help"]
MOST_SECONDS, AIM = 0.5, 5.0
WORKS = {
    "subdp --help": {
        "subdp": [script("subdp"), "--help"],
        "supar biaffine-dep --help": [script("biaffine-dep"), "--help"],
        "stanza models.parser --help": STANZA,
    },
    "subdp evaluate, a small file": {
        "subdp": [script("subdp"), "evaluate", str(GOLD), str(GOLD)],
        "supar biaffine-dep evaluate --help": [script("biaffine-dep"), "evaluate", "--help"],
        "stanza models.parser --help": STANZA,
    },
}


def run(command: list[str]) -> None:
    """One call, without what it prints."""
    # Byte code is kept as on a user's machine: pip has compiled the others' already, but not what it installs editable.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)


def one_work(work: str, commands: dict[str, list[str]], repeats: int) -> list[Row]:
    """Compare the commands for one task; the first calls, which read the files from disk, are not counted."""
    ways: dict[str, Callable[[], object]] = {name: partial(run, command) for name, command in commands.items()}
    times = alternate(ways, repeats)
    return compare(work, times, aims=dict.fromkeys(commands, AIM), most=MOST_SECONDS)


def main() -> None:
    options = arguments(__doc__).parse_args()
    give([row for work, commands in WORKS.items() for row in one_work(work, commands, options.repeats)], options.json)


if __name__ == "__main__":
    main()
