"""How fast pairs are aligned, beside simalign with the same model, and whether the links are the same.

    python benchmarks/align.py --bitext DIR            # speed, about five minutes; all ratios from one run
    python benchmarks/align.py --bitext DIR --check    # links of 200 pairs, each with three methods
    pip install simalign==0.4 networkx scikit-learn    # the other aligner

DIR holds one file a language, en.txt, de.txt, tr.txt, hi.txt and ar.txt, line N translating line N (NTREX-128).

Both aligners get the same words, model folder, layer and number of threads, and their models are loaded and warm.
simalign takes one pair a call and computes every layer of the encoder; subdp takes pairs in batches and stops at the
layer it reads. How much that stop is worth, a row that reads the last layer shows.
"""

from __future__ import annotations

import argparse
import logging
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from subdp.align import Link
from subdp.bitext import Pair, read_bitext
from subdp.encode import Encoded, Encoder
from subdp.similarity import METHODS, Floats, Links, Method, SimilarityAligner, cosine, default_layer

LANGUAGES = ("de", "tr", "hi", "ar")
CODES: dict[Method, str] = {"argmax": "a", "itermax": "i", "match": "m"}  # simalign's names of the methods,
NAMES: dict[Method, str] = {"argmax": "inter", "itermax": "itermax", "match": "mwmf"}  # and of their results
CHECKED = 50  # pairs of each language
TIMED: dict[Method, tuple[int, int]] = {"argmax": (500, 5), "match": (100, 5)}  # pairs in all and repeats
TIE = 1e-5
WIDTHS = (8, 7, 9, 21, 21, 21, 21)


def read_pairs(folder: Path, each: int) -> list[list[Pair]]:
    """So many pairs of each language, drawn at random, the same ones every time."""
    bitexts = (read_bitext(folder / "en.txt", folder / f"{language}.txt") for language in LANGUAGES)
    return [list(bitext.sample(each, seed=1)) for bitext in bitexts]


def load_simalign(folder: Path, methods: str, layer: int) -> Any:
    """simalign's aligner; if it cannot be imported, the end, with a line that says what is missing."""
    from transformers.utils import logging as chatter

    chatter.set_verbosity_error()
    chatter.disable_progress_bar()
    try:
        from simalign import SentenceAligner
    except ModuleNotFoundError as error:
        raise SystemExit(
            f"nothing to compare with: {error.name} is not installed (pip install simalign==0.4)"
        ) from None
    logging.getLogger("simalign.simalign").setLevel(logging.WARNING)
    return SentenceAligner(model=str(folder), token_type="bpe", matching_methods=methods, layer=layer)


def word_links(links: Links, source: Encoded, target: Encoded) -> set[Link]:
    """Subword links as links between their words."""
    rows, columns = np.nonzero(links)
    return set(zip(source.owners[rows].tolist(), target.owners[columns].tolist(), strict=True))


def only_a_tie(method: Method, ours: Floats, theirs: Floats, their_links: set[Link], sides: Sequence[Encoded]) -> bool:
    """Whether other links come from similarities that differ by rounding alone.

    Then our method finds simalign's links in simalign's similarities; for match, where equal totals may leave a choice,
    both matchings have the same total.
    """
    if ours.shape != theirs.shape or np.abs(ours - theirs).max() > TIE:
        return False
    if method == "match":
        import simalign

        matching = simalign.SentenceAligner.get_max_weight_match(theirs).astype(bool)
        return bool(abs(theirs[matching].sum() - theirs[METHODS["match"](ours)].sum()) < TIE)
    return word_links(METHODS[method](theirs), sides[0], sides[1]) == their_links


def remember_similarities(other: Any) -> list[Floats]:
    """A list to which simalign's aligner adds the similarities of each pair from now on."""
    seen: list[Floats] = []
    compute = other.get_similarity

    def remember(source: Floats, target: Floats) -> Floats:
        seen.append(compute(source, target))
        return seen[-1]

    other.get_similarity = remember
    return seen


def check(folder: Path, encoder: Encoder, layer: int) -> bool:
    """Compare links pair by pair and print what was found, a line for each language."""
    other = load_simalign(encoder.folder, "".join(CODES.values()), layer)
    aligners = {method: SimilarityAligner(encoder, method, layer) for method in CODES}
    seen = remember_similarities(other)
    unexplained = 0
    for language, pairs in zip(LANGUAGES, read_pairs(folder, CHECKED), strict=True):
        same, ties, farthest = dict.fromkeys(CODES, 0), 0, 0.0
        encoded = encoder.encode((side for pair in pairs for side in (pair.source, pair.target)), layers=[layer])
        for pair, source, target in zip(pairs, encoded, encoded, strict=True):
            theirs = other.get_word_aligns(list(pair.source), list(pair.target))
            ours = cosine(source.vectors[0], target.vectors[0])
            if ours.shape == seen[-1].shape:
                farthest = max(farthest, float(np.abs(ours - seen[-1]).max()))
            for method, aligner in aligners.items():
                their_links = set(theirs[NAMES[method]])
                if set(aligner.link(source, target).links) == their_links:
                    same[method] += 1
                elif only_a_tie(method, ours, seen[-1], their_links, (source, target)):
                    ties += 1
                else:
                    unexplained += 1
                    print(f"en-{language} line {pair.id}: other links by {method}")
        counts = ", ".join(f"{method} {count}" for method, count in same.items())
        print(f"en-{language}, {len(pairs)} pairs, same links: {counts}; ties: {ties}; ", end="")
        print(f"similarities differ by {farthest:.1e} at most", flush=True)
    return not unexplained


def pairs_a_second(align: Callable[[list[Pair]], object], pairs: list[Pair]) -> float:
    start = time.perf_counter()
    align(pairs)
    return len(pairs) / (time.perf_counter() - start)


def spread(values: Sequence[float]) -> str:
    """The median and the interquartile range."""
    low, middle, high = np.percentile(values, [25, 50, 75])
    return f"{middle:.1f} ({low:.1f}–{high:.1f})"


def one_method(method: Method, pairs: list[Pair], repeats: int, encoder: Encoder, layer: int) -> list[list[float]]:
    """Pairs a second in each repeat: subdp at the layer, subdp at the last layer, simalign."""
    other = load_simalign(encoder.folder, CODES[method], layer)
    ours, last = (SimilarityAligner(encoder, method, number) for number in (layer, encoder.layers))
    ways: list[Callable[[list[Pair]], object]] = [
        lambda pairs: list(ours.align(pairs)),
        lambda pairs: list(last.align(pairs)),
        lambda pairs: [other.get_word_aligns(list(pair.source), list(pair.target)) for pair in pairs],
    ]
    for way in ways:
        way(pairs[:4])
    return [[pairs_a_second(way, pairs) for way in ways] for _ in range(repeats)]


def matching_alone(pairs: list[Pair], repeats: int, encoder: Encoder, layer: int) -> list[list[float]]:
    """Pairs a second in each repeat, from similarities to a matching, without encoders: subdp, simalign."""
    from simalign import SentenceAligner

    encoded = encoder.encode((side for pair in pairs for side in (pair.source, pair.target)), layers=[layer])
    matrices = [cosine(source.vectors[0], target.vectors[0]) for source, target in zip(encoded, encoded, strict=True)]
    ways: list[Callable[[list[Pair]], object]] = [
        lambda _: [METHODS["match"](matrix) for matrix in matrices],
        lambda _: [SentenceAligner.get_max_weight_match(matrix) for matrix in matrices],
    ]
    return [[pairs_a_second(way, pairs) for way in ways] for _ in range(repeats)]


def compare_speed(folder: Path, encoder: Encoder, layer: int) -> None:
    """Print pairs a second, and how many times as fast as simalign subdp is in the same repeat."""
    print(f"pairs a second, median (interquartile range); layer {layer}, {torch.get_num_threads()} threads")
    header = ("method", "pairs", "repeats", f"subdp, layer {layer}", "subdp, last layer", "simalign", "times as fast")
    print("".join(title.rjust(width) for title, width in zip(header, WIDTHS, strict=True)))
    for method, (count, repeats) in TIMED.items():
        by_language = read_pairs(folder, count // len(LANGUAGES))
        pairs = [pair for of_language in by_language for pair in of_language]
        speeds = one_method(method, pairs, repeats, encoder, layer)
        columns = [*zip(*speeds, strict=True), [ours / theirs for ours, _, theirs in speeds]]
        cells = [method, str(len(pairs)), str(repeats), *map(spread, columns)]
        print("".join(cell.rjust(width) for cell, width in zip(cells, WIDTHS, strict=True)), flush=True)
    speeds = matching_alone(pairs, repeats, encoder, layer)
    ours, theirs, ratio = map(spread, (*zip(*speeds, strict=True), [ours / theirs for ours, theirs in speeds]))
    print(f"matching alone, without the encoder: subdp {ours}, simalign {theirs}, {ratio} times as fast")


def main() -> None:
    parser = argparse.ArgumentParser(description="Alignment beside simalign: speed, or with --check the links.")
    parser.add_argument("--bitext", type=Path, required=True, help="folder with en.txt, de.txt, tr.txt, hi.txt, ar.txt")
    parser.add_argument("--check", action="store_true", help="compare links instead of speed")
    options = parser.parse_args()
    encoder = Encoder.load()
    layer = default_layer(encoder.layers)
    if options.check:
        raise SystemExit(0 if check(options.bitext, encoder, layer) else 1)
    compare_speed(options.bitext, encoder, layer)


if __name__ == "__main__":
    main()
