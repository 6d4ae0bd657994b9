"""How well words are aligned, by layer, method and level, against manual alignments (docs/results.md).

    python benchmarks/alignment_quality.py --data DIR                               # every layer from 4, every method
    python benchmarks/alignment_quality.py --data DIR --layers 7 --nulls 0 0.9 0.95 # the null threshold

DIR has a folder for each language pair, at any depth, named en-xx: NAME.en and NAME.xx with spaces between words, line
N translating line N, and NAME.gold with `i-j` for sure and `i?j` for possible links, from 0, English first. Where NAME
is dev and test these are the two halves; otherwise the first half of the lines is dev. Where it is pud, gold has
content words only, so only links between two words that have gold links are counted.

The default is chosen by the mean AER over the dev halves of the sets whose gold covers all words; the test halves are
only reported. For gold with content words only, precision and recall are shown. Every sentence is encoded once.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np

from measure import table
from subdp.alignment.links import Alignment, AlignmentScores, read_alignments, score_alignments
from subdp.alignment.similarity import SimilarityAligner
from subdp.corpus.bitext import Pair, read_bitext
from subdp.encoder.encoder import Encoded, Encoder

Variant = tuple[int, SimilarityAligner]
Scores = dict[str, AlignmentScores]  # of the dev half, of the test half, of all sentences


@dataclass(frozen=True, slots=True)
class GoldSet:
    """A language pair: its sentence pairs with gold links; the first `dev` pairs are the dev half."""

    name: str
    pairs: tuple[Pair, ...]
    gold: tuple[Alignment, ...]
    dev: int
    content_words: bool

    def score(self, system: Sequence[Alignment]) -> Scores:
        """The scores of the dev half, of the test half and of both together."""
        parts = {"dev": slice(self.dev), "test": slice(self.dev, None), "all": slice(None)}
        return {
            name: score_alignments(self.gold[part], system[part], within_gold_words=self.content_words)
            for name, part in parts.items()
        }


def read_sets(data: Path) -> list[GoldSet]:
    """Every language pair below the folder."""
    folders = sorted({file.parent for file in data.rglob("en-*/*.gold")}, key=lambda folder: folder.name)
    if not folders:
        raise SystemExit(f"{data}: no folder en-xx with a .gold file in it")
    return [read_set(folder) for folder in folders]


def read_set(folder: Path) -> GoldSet:
    language = folder.name.removeprefix("en-")
    files = sorted(folder.glob("*.gold"))  # dev comes before test
    pairs: list[Pair] = []
    gold: list[Alignment] = []
    for file in files:
        bitext = read_bitext(file.with_suffix(".en"), file.with_suffix(f".{language}"), tokenized=True)
        pairs += bitext
        gold += read_alignments(file)
        if file.stem == "dev":
            dev = len(pairs)
    if len(files) == 1:
        dev = len(pairs) // 2
    return GoldSet(folder.name, tuple(pairs), tuple(gold), dev, files[0].stem == "pud")


def align_all(gold_set: GoldSet, encoder: Encoder, variants: list[Variant]) -> list[list[Alignment]]:
    """The alignments of every variant, from one run of the encoder."""
    layers = sorted({layer for layer, _ in variants})
    encoded = encoder.encode((side for pair in gold_set.pairs for side in (pair.source, pair.target)), layers=layers)
    results: list[list[Alignment]] = [[] for _ in variants]
    for source, target in zip(encoded, encoded, strict=True):
        for (layer, aligner), result in zip(variants, results, strict=True):
            at = layers.index(layer)
            result.append(
                aligner.link(*(Encoded(side.vectors[[at]], side.first, side.last) for side in (source, target)))
            )
    return results


def describe(layer: int, aligner: SimilarityAligner) -> list[str]:
    return [str(layer), aligner.method, aligner.level, f"{aligner.null:g}"]


def print_grid(sets: list[GoldSet], scores: list[list[Scores]], variants: list[Variant], part: str) -> list[float]:
    """Print a row for each variant, and return its mean AER over the sets whose gold covers all words."""
    full = [number for number, gold_set in enumerate(sets) if not gold_set.content_words]
    partial = [number for number, gold_set in enumerate(sets) if gold_set.content_words]
    rows, means = [], []
    for number, variant in enumerate(variants):
        whole = [scores[at][number][part] for at in full]
        content = [scores[at][number][part] for at in partial]
        means.append(float(np.mean([s.aer for s in whole])))
        cells = [*(f"{s.aer:.3f} / {s.f1:.3f}" for s in whole), f"{means[-1]:.3f}"]
        rows.append([*describe(*variant), *cells, *(f"{s.precision:.3f} / {s.recall:.3f}" for s in content)])
    names = [*(sets[at].name for at in full), "mean AER", *(f"{sets[at].name} P / R" for at in partial)]
    print(f"\nAER / F1, {part}\n\n{table([['layer', 'method', 'level', 'null', *names], *rows])}")
    return means


def main() -> None:
    parser = argparse.ArgumentParser(description="Alignment quality by layer, method and level.")
    parser.add_argument("--data", type=Path, required=True, help="folder with gold alignments")
    parser.add_argument("--encoder", default="bundled")
    parser.add_argument("--layers", type=int, nargs="+", default=list(range(4, 13)))
    parser.add_argument("--methods", nargs="+", default=["argmax", "itermax", "match"])
    parser.add_argument("--levels", nargs="+", default=["subword", "word"])
    parser.add_argument("--nulls", type=float, nargs="+", default=[0.0])
    options = parser.parse_args()

    encoder = Encoder.load(options.encoder)
    grid = product(options.methods, options.levels, options.nulls, options.layers)
    variants = [
        (layer, SimilarityAligner(encoder, method, layer, level, null=null)) for method, level, null, layer in grid
    ]
    sets = read_sets(options.data)
    scores = []
    for gold_set in sets:
        content = ", content words" if gold_set.content_words else ""
        print(
            f"{gold_set.name}: {gold_set.dev} dev, {len(gold_set.pairs) - gold_set.dev} test pairs{content}", flush=True
        )
        scores.append([gold_set.score(system) for system in align_all(gold_set, encoder, variants)])
    best = int(np.argmin(print_grid(sets, scores, variants, "dev")))
    print_grid(sets, scores, variants, "test")
    print(f"\nLowest mean AER on the dev halves: {', '.join(describe(*variants[best]))}\n")
    rows = []
    for gold_set, by_variant in zip(sets, scores, strict=True):
        for part in ("test", "all"):
            s = by_variant[best][part]
            rows.append([gold_set.name, part, *(f"{value:.3f}" for value in (s.precision, s.recall, s.f1, s.aer))])
    print(table([["", "sentences", "precision", "recall", "F1", "AER"], *rows]))


if __name__ == "__main__":
    main()
