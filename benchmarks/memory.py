"""How much memory `subdp parse` takes for 1,000 sentences, above what `import torch` takes.

    python benchmarks/memory.py EN-EWT-DEV

Two figures, both at their peak. Memory of its own (RssAnon, looked up every 20 ms) is what no other process can share:
the weights and the tokenizer's tables are mapped from files and do not count. Resident memory (VmHWM) has these too, as
far as they were read. Linux only.
"""

from __future__ import annotations

import itertools
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from measure import Row, Spread, arguments, give, script
from subdp.corpus.treebank import read_conllu

SENTENCES = 1000
MOST = 500.0
TORCH = [sys.executable, "-c", "import torch, time; time.sleep(0.1)"]
KINDS = {"RssAnon": "memory of its own", "VmHWM": "resident memory"}


def peaks(command: list[str]) -> dict[str, float]:
    """The highest figures of a command, in MB."""
    highest = dict.fromkeys(KINDS, 0.0)
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    while process.poll() is None:
        for line in Path(f"/proc/{process.pid}/status").read_text().splitlines():
            name, _, value = line.partition(":")
            if name in KINDS:
                highest[name] = max(highest[name], int(value.split()[0]) * 1024 / 1e6)
        time.sleep(0.02)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} failed with exit code {process.returncode}")
    return highest


def measure(treebank: str, sentences: int, repeats: int) -> list[Row]:
    """A row for each kind of memory."""
    with tempfile.TemporaryDirectory() as folder:
        text = Path(folder) / "words.txt"
        lines = (" ".join(sentence.words) for sentence in read_conllu(treebank))
        text.write_text("\n".join([*itertools.islice(lines, sentences), ""]), encoding="utf-8")
        parse = [script("subdp"), "parse", str(text), "--format", "words"]
        found = [(peaks(TORCH), peaks(parse)) for _ in range(repeats)]
    rows = []
    for kind, title in KINDS.items():
        torch, above = [one[kind] for one, _ in found], [ours[kind] - one[kind] for one, ours in found]
        ratio = Spread.of(one / own for one, own in zip(torch, above, strict=True))
        work = f"subdp parse, {sentences:,} sentences, {title} above import torch ({kind})"
        rows.append(Row(work, "MB", "torch import", Spread.of(above), Spread.of(torch), ratio, repeats, most=MOST))
    return rows


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("treebank")
    parser.add_argument("--sentences", type=int, default=SENTENCES)
    options = parser.parse_args()
    give(measure(options.treebank, options.sentences, options.repeats), options.json)


if __name__ == "__main__":
    main()
