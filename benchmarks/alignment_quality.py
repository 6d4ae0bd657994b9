"""How well words are aligned, by layer, method and level, against alignments made by hand: docs/alignment-results.md.

    python benchmarks/alignment_quality.py --data DIR                               # every layer from 4, every method
    python benchmarks/alignment_quality.py --data DIR --layers 7 --nulls 0 0.9 0.95 # the null threshold

DIR has a folder for each language pair, at any depth, named en-xx: NAME.en and NAME.xx with spaces between words, line
N translating line N, and NAME.gold with `i-j` for sure and `i?j` for possible links, from 0, English first. Where NAME
is dev and test these are the two halves; otherwise the first half of the lines is dev. Where it is pud, gold has
content words alone, so only links between two words that have gold links are counted.

What to use is chosen by the mean AER over the dev halves; the test halves are only reported. Every sentence is encoded
once for all layers.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np

from subdp.align import Alignment, AlignmentScores, read_alignments, score_alignments
from subdp.bitext import Pair, read_bitext
from subdp.encode import Encoded, Encoder
from subdp.similarity import SimilarityAligner

Variant = tuple[int, SimilarityAligner]


@dataclass(frozen=True, slots=True)
class GoldSet:
    """A language pair: its sentence pairs with gold links, the first `dev` of which are the dev half."""

    name: str
    pairs: tuple[Pair, ...]
    gold: tuple[Alignment, ...]
    dev: int
    content_words: bool

    def score(self, system: Sequence[Alignment]) -> tuple[AlignmentScores, AlignmentScores]:
        """The scores of the dev and of the test half."""
        halves = (slice(self.dev), slice(self.dev, None))
        dev, test = (
            score_alignments(self.gold[half], system[half], within_gold_words=self.content_words) for half in halves
        )
        return dev, test


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


def table(header: list[str], rows: list[list[str]]) -> str:
    return "\n".join(f"| {' | '.join(row)} |" for row in [header, ["---"] * len(header), *rows])


def describe(layer: int, aligner: SimilarityAligner) -> list[str]:
    return [str(layer), aligner.method, aligner.level, f"{aligner.null:g}"]


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
    scores = []  # by set, then by variant, then dev and test
    for gold_set in sets:
        content = ", content words" if gold_set.content_words else ""
        print(
            f"{gold_set.name}: {gold_set.dev} dev, {len(gold_set.pairs) - gold_set.dev} test pairs{content}", flush=True
        )
        scores.append([gold_set.score(system) for system in align_all(gold_set, encoder, variants)])

    names = [gold_set.name for gold_set in sets]
    settings = ["layer", "method", "level", "null"]
    means = np.array([[dev.aer for dev, _ in by_variant] for by_variant in scores]).mean(0)
    best = int(means.argmin())
    for title, half in (("dev", 0), ("test", 1)):
        rows = []
        for number, variant in enumerate(variants):
            aers = [by_variant[number][half].aer for by_variant in scores]
            rows.append([*describe(*variant), *(f"{aer:.3f}" for aer in aers), f"{np.mean(aers):.3f}"])
        print(f"\nAER, {title} halves\n\n{table([*settings, *names, 'mean'], rows)}")
    print(f"\nLowest mean AER on the dev halves: {', '.join(describe(*variants[best]))}; its test halves:\n")
    measures = ("precision", "recall", "f1", "aer")
    tests = [by_variant[best][1].as_dict() for by_variant in scores]
    rows = [[name, *(f"{test[key]:.3f}" for key in measures)] for name, test in zip(names, tests, strict=True)]
    print(table(["", "precision", "recall", "F1", "AER"], rows))


if __name__ == "__main__":
    main()
