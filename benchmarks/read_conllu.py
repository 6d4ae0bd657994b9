"""How fast CoNLL-U is read, beside other readers: all ratios from one run.

    python benchmarks/read_conllu.py en_ewt-ud-train.conllu
    pip install conllu pyconll==3.3.1       # the others; one that is missing is skipped

Every reader goes through the whole file, sentence by sentence. Ours also checks every id, head and tree.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
import time
from collections.abc import Callable

import numpy as np

from subdp.treebank import read_conllu

REPEATS = 5


def ours(path: str) -> int:
    return sum(len(sentence.words) for sentence in read_conllu(path))


def with_conllu(path: str) -> int:
    parse_incr = importlib.import_module("conllu").parse_incr
    with open(path, encoding="utf-8") as stream:  # noqa: PTH123 - as its users do
        return sum(isinstance(token["id"], int) for sentence in parse_incr(stream) for token in sentence)


def with_pyconll(path: str) -> int:
    sentences = importlib.import_module("pyconll").iter_from_file(path)
    return sum(token.id.isdecimal() for sentence in sentences for token in sentence)


def seconds(read: Callable[[str], int], path: str) -> float:
    start = time.perf_counter()
    read(path)
    return time.perf_counter() - start


def main() -> None:
    path = sys.argv[1]
    readers = {"subdp": ours}
    for name, reader in (("conllu", with_conllu), ("pyconll", with_pyconll)):
        if importlib.util.find_spec(name) is None:
            print(f"{name} is not installed: skipped")
        else:
            readers[name] = reader
    words = {name: reader(path) for name, reader in readers.items()}
    assert len(set(words.values())) == 1, f"the readers disagree on the number of words: {words}"
    times: dict[str, list[float]] = {name: [] for name in readers}
    for _ in range(REPEATS):
        for name, reader in readers.items():
            times[name].append(seconds(reader, path))
    for name, values in times.items():
        low, middle, high = np.percentile(values, [25, 50, 75])
        ratio = np.median(np.array(values) / np.array(times["subdp"]))
        rate = f"{words[name] / middle:>9,.0f} words/s"
        print(f"{name:8} {middle:7.3f} s ({low:.3f}–{high:.3f})   {rate}   {ratio:5.1f} × ours")


if __name__ == "__main__":
    main()
