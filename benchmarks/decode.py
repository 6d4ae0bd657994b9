"""How fast trees are decoded, beside other decoders: one table, all ratios from one run.

    python benchmarks/decode.py                                     # about three minutes with all of them
    pip install --no-deps ufal.chu-liu-edmonds supar==1.1.4 stanza  # the others; one that is missing is skipped

Every decoder finds the best tree with a single root for the same log-probabilities, one sentence a call, the way its
users call it:

* ufal: the C++ decoder knows no single root; if there are more, once more with a large penalty on arcs from ROOT.
* SuPar: best heads first; where they are no tree, `mst`, as its parsers do.
* Stanza: `chuliu_edmonds_one_root`, as its parser does.

Scores are those of a parser that is sure of most gold arcs ("trained"), of one that often errs ("weak"), and of one
that knows nothing ("noise"): normal noise plus a margin on the arcs of a random tree with mostly short arcs, as
log-softmax. The column "trees" is the share of sentences whose best heads are a tree already, the easy case; "hard" are
sentences of the trained parser where they are not, so that the algorithm proper has to run. Times are CPU time, each
decoder on one thread, so that other work on the machine counts as little as possible.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
import time
import warnings
from collections.abc import Callable
from types import ModuleType

import numpy as np
import numpy.typing as npt

from subdp.decode import decode, decode_batch

Matrix = npt.NDArray[np.float64]
Decoder = Callable[[Matrix], object]

LENGTHS = (10, 20, 50, 100)
MARGINS = {"trained": 9.0, "hard": 9.0, "weak": 5.0, "noise": 0.0}
NOISE = 2.0
REPEATS = 7
SENTENCES = 20


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
    """Import a module without running the `__init__` of the packages it needs: theirs want heavy dependencies."""
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
    for name, make in {"ufal": ufal_decoder, "SuPar": supar_decoder, "Stanza": stanza_decoder}.items():
        try:
            decoders[name] = make()
        except ModuleNotFoundError as error:
            print(f"{name} is skipped: {error.name} is not installed")
    return decoders


def microseconds(decoder: Callable[[Matrix], object], inputs: list[Matrix], loops: int) -> float:
    """The mean over inputs; short runs are looped so that the clock sees them."""
    start = time.process_time()
    for _ in range(loops):
        for scores in inputs:
            decoder(scores)
    return (time.process_time() - start) / loops / len(inputs) * 1e6


def one_repeat(sentences: list[Matrix], decoders: dict[str, Decoder]) -> dict[str, float]:
    """Microseconds a sentence, for each decoder and for `decode_batch`."""
    times = {
        name: microseconds(decoder, sentences, loops=20 if name in ("subdp", "ufal") else 1)
        for name, decoder in decoders.items()
    }
    lengths = [len(scores) - 1 for scores in sentences]
    batch = np.array(sentences)
    times["batch"] = microseconds(lambda scores: decode_batch(scores, lengths), [batch], loops=20) / len(sentences)
    return times


def spread(values: list[float], digits: int) -> str:
    """The median and the interquartile range."""
    low, middle, high = np.percentile(values, [25, 50, 75])
    return f"{middle:.{digits}f} ({low:.{digits}f}–{high:.{digits}f})"


def same_totals(sentences: list[Matrix], decoders: dict[str, Decoder]) -> None:
    """Say so if another decoder finds a tree of another score than ours: then the times are not of the same work."""
    for name, decoder in decoders.items():
        worse = 0
        for scores in sentences:
            words = np.arange(1, len(scores))
            difference = scores[words, np.array(decoder(scores))].sum() - scores[words, decode(scores)].sum()
            worse += abs(difference) > 1e-3
        if worse:
            print(f"  {name} found a tree of another score in {worse} of {len(sentences)} sentences")


def main() -> None:
    warnings.filterwarnings("ignore", module="supar")
    decoders = available()
    others = [name for name in decoders if name != "subdp"]
    header = ["scores", "words", "trees", "subdp µs", "in a batch µs", *(f"× {name}" for name in others)]
    widths = [8, 5, 5, 20, 20, *[20] * len(others)]
    print(f"median (interquartile range) of {REPEATS} repeats, {SENTENCES} sentences each; × is times as fast")
    print("  ".join(title.rjust(width) for title, width in zip(header, widths, strict=True)))
    random = np.random.default_rng(1)
    for kind in MARGINS:
        for n in LENGTHS:
            sentences = sample(kind, n, random)
            trees = np.mean([greedy_is_best(scores) for scores in sentences])
            same_totals(sentences, decoders)
            repeats = [one_repeat(sentences, decoders) for _ in range(REPEATS)]
            cells = [kind, str(n), f"{trees:.0%}", *(spread([r[k] for r in repeats], 1) for k in ("subdp", "batch"))]
            cells += [spread([r[name] / r["subdp"] for r in repeats], 1) for name in others]
            print("  ".join(cell.rjust(width) for cell, width in zip(cells, widths, strict=True)), flush=True)


if __name__ == "__main__":
    main()
