"""How fast pairs are aligned, beside simalign with the same model, and whether the links are the same.

    python benchmarks/align.py --bitext DIR            # speed, about ten minutes
    python benchmarks/align.py --bitext DIR --check    # links of 200 pairs, each with three methods

DIR holds one file a language, en.txt, de.txt, tr.txt, hi.txt and ar.txt, line N translating line N (NTREX-128).
simalign 0.4 is in `peers.txt`.

Both aligners get the same words, model folder, layer and number of threads, and their models are loaded and warm.
simalign takes one pair a call and computes every layer of the encoder; subdp takes pairs in batches and stops at the
layer it reads; a row that reads the last layer shows how much that saves. As simalign matches slowly, matching is timed
on a fifth of the pairs. However fast the matching, a pair takes at least as long as the encoder's matrix products up to
the layer that is read. They are timed by themselves in the same turns; the aim of match is simalign's time divided by
theirs, which nobody can beat in float32.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from measure import Row, alternate, arguments, compare, give, say
from peers import load_simalign, model_folder
from subdp.alignment.links import Link
from subdp.alignment.similarity import METHODS, Floats, Links, Method, SimilarityAligner, cosine, default_layer
from subdp.corpus.bitext import Pair, read_bitext
from subdp.encoder.encoder import Encoded, Encoder
from subdp.encoder.products import linear
from subdp.encoder.threads import side_by_side

LANGUAGES = ("de", "tr", "hi", "ar")
CODES: dict[Method, str] = {"argmax": "a", "itermax": "i", "match": "m"}  # simalign's names of the methods,
NAMES: dict[Method, str] = {"argmax": "inter", "itermax": "itermax", "match": "mwmf"}  # and of their results
CHECKED = 50  # pairs of each language
ARGMAX_AIM = 3.0
FEED_FORWARD = 4  # Times the hidden size: the inner layer of the bundled encoder's transformer.
BATCH = 1024  # Subwords in one product, one core each, as when subdp encodes.
TIE = 1e-5


def read_pairs(folder: Path, each: int) -> list[list[Pair]]:
    """This many pairs of each language, drawn at random, the same ones every time."""
    bitexts = (read_bitext(folder / "en.txt", folder / f"{language}.txt") for language in LANGUAGES)
    return [list(bitext.sample(each, seed=1)) for bitext in bitexts]


def word_links(links: Links, source: Encoded, target: Encoded) -> set[Link]:
    """Subword links as links between their words."""
    rows, columns = np.nonzero(links)
    return set(zip(source.owners[rows].tolist(), target.owners[columns].tolist(), strict=True))


def only_a_tie(method: Method, ours: Floats, theirs: Floats, their_links: set[Link], sides: Sequence[Encoded]) -> bool:
    """Whether the links differ only because similarities differ in rounding.

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
    """A list to which simalign's aligner appends the similarities of each pair from now on."""
    seen: list[Floats] = []
    compute = other.get_similarity

    def remember(source: Floats, target: Floats) -> Floats:
        seen.append(compute(source, target))
        return seen[-1]

    other.get_similarity = remember
    return seen


def check(folder: Path, encoder: Encoder, layer: int) -> bool:
    """Compare links pair by pair and print what was found, a line for each language."""
    other = load_simalign(model_folder(encoder), "".join(CODES.values()), layer)
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


def products(pairs: list[Pair], encoder: Encoder, layer: int) -> Callable[[], object]:
    """The matrix products of the encoder's layers up to this one on these pairs, without attention and all else."""
    sides = dict.fromkeys(side for pair in pairs for side in (pair.source, pair.target))  # subdp encodes each once.
    count = sum(len(side.owners) + 2 for side in encoder.encode(sides, layers=[0]))  # With two special tokens.
    size, inner = encoder.hidden, FEED_FORWARD * encoder.hidden
    narrow, wide = torch.rand(BATCH, size), torch.rand(BATCH, inner)
    square, up, down = torch.rand(size, size), torch.rand(inner, size), torch.rand(size, inner)
    batches = [min(BATCH, count - start) for start in range(0, count, BATCH)]

    def layers(rows: int) -> None:
        for _ in range(layer):
            for _ in range(4):  # Query, key, value and output.
                linear(narrow[:rows], square)
            linear(narrow[:rows], up)
            linear(wide[:rows], down)

    return lambda: side_by_side(layers, batches, encoder.model.device)


def one_method(method: Method, pairs: list[Pair], repeats: int, encoder: Encoder, layer: int) -> list[Row]:
    """From words to links: ours at the layer and, to see what stopping there is worth, at the last one."""
    other = load_simalign(model_folder(encoder), CODES[method], layer)
    ours, last = (SimilarityAligner(encoder, method, number) for number in (layer, encoder.layers))

    def theirs(pairs: list[Pair]) -> object:
        return [other.get_word_aligns(list(pair.source), list(pair.target)) for pair in pairs]

    ways: dict[str, Callable[[list[Pair]], object]] = {
        "subdp": lambda pairs: list(ours.align(pairs)),
        "last layer": lambda pairs: list(last.align(pairs)),
        "simalign": theirs,
    }
    bare = products(pairs, encoder, layer)
    bare()
    for way in ways.values():
        way(pairs[:4])
    turns = {name: partial(way, pairs) for name, way in ways.items()}
    times = alternate({**turns, "products": bare}, repeats, warm=False)
    bound = float(np.median(np.divide(times["simalign"], times["products"])))
    say(f"{method}: the encoder's products take {np.median(times['products']):.2f} s, simalign {bound:.1f} times that")
    rows = []
    for name, aims in (("subdp", {"simalign": ARGMAX_AIM if method == "argmax" else bound}), ("last layer", {})):
        both = {way: times[way] for way in (name, "simalign")}
        work = f"align {len(pairs)} pairs, {method}" + (", last layer" if name == "last layer" else "")
        rows += compare(work, both, unit="pairs/s", figure=lambda taken: len(pairs) / taken, aims=aims, ours=name)
    return rows


def matching_alone(pairs: list[Pair], repeats: int, encoder: Encoder, layer: int) -> list[Row]:
    """From similarities to a matching, without encoders."""
    from simalign import SentenceAligner

    encoded = encoder.encode((side for pair in pairs for side in (pair.source, pair.target)), layers=[layer])
    matrices = [cosine(source.vectors[0], target.vectors[0]) for source, target in zip(encoded, encoded, strict=True)]
    ways: dict[str, Callable[[], object]] = {
        "subdp": lambda: [METHODS["match"](matrix) for matrix in matrices],
        "simalign": lambda: [SentenceAligner.get_max_weight_match(matrix) for matrix in matrices],
    }
    times = alternate(ways, repeats, warm=False)
    work = f"match the subwords of {len(pairs)} pairs, without the encoder"
    return compare(work, times, unit="pairs/s", figure=lambda taken: len(pairs) / taken)


def compare_speed(folder: Path, encoder: Encoder, layer: int, count: int, repeats: int) -> list[Row]:
    """Both methods, and the matching by itself."""
    say(f"layer {layer}, {torch.get_num_threads()} threads")
    pairs = [pair for of_language in read_pairs(folder, count // len(LANGUAGES)) for pair in of_language]
    some = pairs[:: min(5, len(pairs))]
    rows = one_method("argmax", pairs, repeats, encoder, layer) + one_method("match", some, repeats, encoder, layer)
    return rows + matching_alone(some, repeats, encoder, layer)


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--bitext", type=Path, required=True, help="folder with en.txt, de.txt, tr.txt, hi.txt, ar.txt")
    parser.add_argument("--pairs", type=int, default=500)
    parser.add_argument("--check", action="store_true", help="compare links instead of speed")
    options = parser.parse_args()
    encoder = Encoder.load()
    layer = default_layer(encoder.layers)
    if options.check:
        raise SystemExit(0 if check(options.bitext, encoder, layer) else 1)
    give(compare_speed(options.bitext, encoder, layer, options.pairs, options.repeats), options.json)


if __name__ == "__main__":
    main()
