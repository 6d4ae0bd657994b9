"""How fast CoNLL-U is read, compared with other readers.

    python benchmarks/read_conllu.py en_ewt-ud-train.conllu

Every reader goes through the whole file, sentence by sentence. Ours also checks every id, head and tree. The others,
conllu and pyconll 3, are in `peers.txt`; one that is not installed is left out.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from functools import partial

from measure import alternate, arguments, compare, give, say
from subdp.corpus.treebank import read_conllu

AIMS = {"conllu": 10.0, "pyconll": 3.0}


def ours(path: str) -> int:
    return sum(len(sentence.words) for sentence in read_conllu(path))


def with_conllu(path: str) -> int:
    parse_incr = importlib.import_module("conllu").parse_incr
    with open(path, encoding="utf-8") as stream:  # noqa: PTH123 - as its users do
        return sum(isinstance(token["id"], int) for sentence in parse_incr(stream) for token in sentence)


def with_pyconll(path: str) -> int:
    sentences = importlib.import_module("pyconll").iter_from_file(path)
    return sum(token.id.isdecimal() for sentence in sentences for token in sentence)


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("treebank")
    options = parser.parse_args()
    readers: dict[str, Callable[[], int]] = {"subdp": partial(ours, options.treebank)}
    for name, reader in (("conllu", with_conllu), ("pyconll", with_pyconll)):
        if importlib.util.find_spec(name) is None:
            say(f"{name} is not installed: left out")
        else:
            readers[name] = partial(reader, options.treebank)
    words = {name: reader() for name, reader in readers.items()}
    assert len(set(words.values())) == 1, f"the readers disagree on the number of words: {words}"
    times = alternate(readers, options.repeats, warm=False)
    give(compare(f"read CoNLL-U, {words['subdp']:,} words", times, aims=AIMS), options.json)


if __name__ == "__main__":
    main()
