"""How fast trees are decoded, compared with other decoders.

    python benchmarks/decode.py                            # about three minutes with all of them
    python benchmarks/decode.py --scores hard --lengths 20

Every decoder finds the best tree with a single root for the same log-probabilities, one sentence a call, the way its
users call it; one that is not installed (`peers.txt` has them all) is left out:

* ufal: the C++ decoder has no single-root option; if there are several, again with a large penalty on arcs from ROOT.
* SuPar: best heads first; where they are not a tree, `mst`, as its parsers do.
* Stanza: `chuliu_edmonds_one_root`, as its parser does.

Scores are those of a parser that is sure of most gold arcs ("trained"), of one that often errs ("weak"), and of one
that knows nothing ("noise"): normal noise plus a margin on the arcs of a random tree with mostly short arcs, as
log-softmax; "hard" are sentences of the trained parser whose best heads are not a tree, so that the algorithm itself
has to run. Times are CPU time on one core. Rows "in a batch" pass all sentences in one call, as the parser does.

Where best heads are a tree, SuPar runs no algorithm, and how many times as fast we can be is bounded: SuPar's time
divided by that of a compiled function, called from Python with the same matrix, that only finds the best heads. It is
measured in the same turns, and is the aim of those rows.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType

import numba
import numpy as np
import numpy.typing as npt

from measure import Row, alternate, arguments, compare, give, say
from subdp.decoding.decode import decode, decode_batch

Matrix = npt.NDArray[np.float64]
Decoder = Callable[[Matrix], object]

LENGTHS = (10, 20, 50, 100)
MARGINS = {"trained": 9.0, "hard": 9.0, "weak": 5.0, "noise": 0.0}
NOISE = 2.0
SENTENCES = 20
UFAL, SUPAR, STANZA = "ufal.chu-liu-edmonds", "supar", "stanza"
LEAST = "best heads alone"
LOOPS = {"subdp": 20, "in a batch": 20, UFAL: 20, LEAST: 20}


def gold_heads(n: int, random: np.random.Generator) -> list[int]:
    """A random tree with one root: words are attached in random order, each near to a word that has a head."""
    order = (random.permutation(n) + 1).tolist()
    heads = [0] * n
    for position, word in enumerate(order[1:], 1):
        distances = np.abs(np.array(order[:position]) - word)
        weights = distances**-2.0
        heads[word - 1] = int(random.choice(order[:position], p=weights / weights.sum()))
    return heads


def parser_scores(n: int, margin: float, random: np.random.Generator) -> Matrix:
    """Log-probabilities of heads. *Shape:* [n+1, n+1]"""
    scores = random.normal(scale=NOISE, size=(n + 1, n + 1))
    scores[np.arange(1, n + 1), gold_heads(n, random)] += margin
    np.fill_diagonal(scores, -np.inf)
    normalised: Matrix = scores - np.log(np.exp(scores).sum(1, keepdims=True))
    return normalised


def greedy_is_best(scores: Matrix) -> bool:
    return tuple(scores[1:].argmax(1).tolist()) == decode(scores)


def sample(kind: str, n: int, random: np.random.Generator) -> list[Matrix]:
    """As many score matrices of a kind as one cell of the table needs."""
    sentences: list[Matrix] = []
    while len(sentences) < SENTENCES:
        scores = parser_scores(n, MARGINS[kind], random)
        if kind != "hard" or not greedy_is_best(scores):
            sentences.append(scores)
    return sentences


def import_alone(name: str, *packages: str) -> ModuleType:
    """Import a module without running the `__init__` of the packages it needs: those have heavy dependencies."""
    for package in packages:
        spec = importlib.util.find_spec(package)
        if spec is None:
            raise ModuleNotFoundError(name=package)
        sys.modules[package] = importlib.util.module_from_spec(spec)
    return importlib.import_module(name)


def ufal_decoder() -> Decoder:
    from ufal.chu_liu_edmonds import chu_liu_edmonds

    def run(scores: Matrix) -> object:
        heads = chu_liu_edmonds(scores)[0][1:]
        if heads.count(0) > 1:
            penalised = scores.copy()
            penalised[:, 0] -= 1e6
            heads = chu_liu_edmonds(penalised)[0][1:]
        return heads

    return run


def supar_decoder() -> Decoder:
    import torch

    torch.set_num_threads(1)
    functions = import_alone("supar.structs.fn", "supar", "supar.structs", "supar.utils")

    def run(scores: Matrix) -> object:
        tensor = torch.from_numpy(scores).float()[None]
        heads = tensor.argmax(-1)[0, 1:].tolist()
        if heads.count(0) == 1 and next(functions.tarjan(heads), None) is None:
            return heads
        mask = torch.ones(tensor.shape[:2], dtype=torch.bool)
        mask[:, 0] = False
        return functions.mst(tensor, mask)[0, 1:].tolist()

    return run


def stanza_decoder() -> Decoder:
    functions = import_alone("stanza.models.common.chuliu_edmonds", "stanza", "stanza.models", "stanza.models.common")
    return lambda scores: functions.chuliu_edmonds_one_root(scores)[1:].tolist()


def available() -> dict[str, Decoder]:
    """subdp and those of the other decoders that are installed."""
    decoders: dict[str, Decoder] = {"subdp": decode}
    for name, make in {UFAL: ufal_decoder, SUPAR: supar_decoder, STANZA: stanza_decoder}.items():
        try:
            decoders[name] = make()
        except ModuleNotFoundError as error:
            say(f"{name} is left out: {error.name} is not installed")
    return decoders


def same_totals(sentences: list[Matrix], decoders: dict[str, Decoder]) -> None:
    """Report a decoder whose tree has another score than ours: its times would not be for the same work."""
    for name, decoder in decoders.items():
        worse = 0
        for scores in sentences:
            words = np.arange(1, len(scores))
            difference = scores[words, np.array(decoder(scores))].sum() - scores[words, decode(scores)].sum()
            worse += abs(difference) > 1e-3
        if worse:
            say(f"{name} found a tree of another score in {worse} of {len(sentences)} sentences")


def best_heads(scores: Matrix) -> npt.NDArray[np.int64]:
    """What every decoder has to do at least. *Shape:* [n+1, n+1] → [n+1]"""
    heads = np.zeros(len(scores), np.int64)
    for word in range(1, len(scores)):
        heads[word] = scores[word].argmax()
    return heads


def aims(kind: str, n: int, times: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """How many times as fast as each we aim to be; below 20 words the C++ decoder's call is too short to gain on."""
    found = {SUPAR: 100.0, STANZA: 100.0} | ({UFAL: 3.0} if n >= 20 else {})
    if kind == "trained" and SUPAR in times:
        bound = float(np.median(np.divide(times[SUPAR], times[LEAST])))
        say(f"{kind}, {n} words: at most {bound:.0f} times as fast as SuPar, which finds best heads alone")
        found[SUPAR] = min(found[SUPAR], bound)
    return found


def one_cell(kind: str, n: int, sentences: list[Matrix], decoders: dict[str, Decoder], repeats: int) -> list[Row]:
    """Time all decoders on sentences of one kind and length."""

    def run(decoder: Decoder) -> Callable[[], object]:
        return lambda: [decoder(scores) for scores in sentences]

    lengths, batch = [n] * len(sentences), np.array(sentences)
    ways = {name: run(decoder) for name, decoder in decoders.items()}
    ways["in a batch"] = lambda: decode_batch(batch, lengths)
    ways[LEAST] = run(numba.njit(best_heads))
    times = alternate(ways, repeats, clock=time.process_time, loops=LOOPS)
    batched = {name: times[name] for name in ("in a batch", UFAL) if name in times}
    single = {name: values for name, values in times.items() if name not in ("in a batch", LEAST)}
    wanted = aims(kind, n, times)
    work, figure = f"decode, {n} words, {kind}", lambda taken: taken / len(sentences) * 1e6
    rows = compare(work, single, unit="µs", figure=figure, aims=wanted)
    return rows + compare(f"{work}, in a batch", batched, unit="µs", figure=figure, aims=wanted, ours="in a batch")


def main() -> None:
    warnings.filterwarnings("ignore", module="supar")
    parser = arguments(__doc__)
    parser.add_argument("--scores", nargs="+", choices=list(MARGINS), default=list(MARGINS))
    parser.add_argument("--lengths", type=int, nargs="+", default=list(LENGTHS))
    options = parser.parse_args()
    decoders = available()
    random = np.random.default_rng(1)
    rows = []
    for kind in options.scores:
        for n in options.lengths:
            sentences = sample(kind, n, random)
            trees = np.mean([greedy_is_best(scores) for scores in sentences])
            say(f"{kind}, {n} words: the best heads of {trees:.0%} are a tree already")
            same_totals(sentences, decoders)
            rows += one_cell(kind, n, sentences, decoders, options.repeats)
    give(rows, options.json)


if __name__ == "__main__":
    main()
