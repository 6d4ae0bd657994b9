"""How fast words become vectors and how fast they are read back: one run, all ratios from it.

    python benchmarks/encode.py TREEBANK.conllu                     # a sample of 400 sentences, a minute or two
    python benchmarks/encode.py TREEBANK.conllu --sentences 100000  # all of it
    python benchmarks/encode.py TREEBANK.conllu --encoder xlm-roberta-base

The naive loop is what one writes first: a sentence at a time through tokenizer and model, all hidden states. Rounds of
both alternate and the best of each counts, so that whatever else the machine does matters little. Features are read
back in batches of 5,000 words in random order, as training does, through a store opened anew.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import torch

from subdp.encode import Encoder
from subdp.features import FeatureStore, store_sizes
from subdp.treebank import read_conllu

Sentences = list[Sequence[str]]


def seconds(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def one_at_a_time(encoder: Encoder, sentences: Sentences) -> None:
    """All layers of every sentence, without any of what `Encoder.encode` does."""
    with torch.inference_mode():
        for words in sentences:
            inputs = encoder.tokenizer(list(words), is_split_into_words=True, truncation=True, return_tensors="pt")
            inputs.pop("token_type_ids", None)
            states = encoder.model(**inputs.to(encoder.model.device), output_hidden_states=True).hidden_states
            torch.cat(states).cpu().numpy()


def encode(encoder: Encoder, sentences: Sentences, layers: Sequence[int] | None = None) -> None:
    for _ in encoder.encode(sentences, layers):
        pass


def batches(sentences: Sentences, words: int = 5000) -> list[Sentences]:
    """The sentences in random order, in batches of about this many words."""
    found: list[Sentences] = [[]]
    size = 0
    for sentence in random.Random(1).sample(sentences, len(sentences)):
        if size > words:
            found.append([])
            size = 0
        found[-1].append(sentence)
        size += len(sentence)
    return found


def read(store: FeatureStore, sentences: Sentences) -> None:
    for batch in batches(sentences):
        store.batch(batch)


def compare_encoding(encoder: Encoder, sentences: Sentences, rounds: int) -> None:
    words = sum(map(len, sentences))
    middle = encoder.layers // 2 + 1
    ways: dict[str, Callable[[], None]] = {
        "one sentence at a time, all layers": lambda: one_at_a_time(encoder, sentences),
        "encode, all layers": lambda: encode(encoder, sentences),
        f"encode, layer {middle} alone": lambda: encode(encoder, sentences, [middle]),
    }
    encode(encoder, sentences[:20])
    best = dict.fromkeys(ways, float("inf"))
    for _ in range(rounds):
        best = {name: min(best[name], seconds(run)) for name, run in ways.items()}
    naive = next(iter(best.values()))
    print(f"{'':40}{'words/s':>10}{'ratio':>8}")
    for name, took in best.items():
        print(f"{name:40}{words / took:10,.0f}{naive / took:8.2f}")


def measure_store(encoder: Encoder, layers: Sequence[int], sentences: Sentences) -> None:
    words = sum(map(len, sentences))
    with tempfile.TemporaryDirectory() as root:
        adding = seconds(lambda: FeatureStore(encoder, layers, Path(root)).add(sentences))
        opening = seconds(lambda: FeatureStore(encoder, layers, Path(root)))
        store = FeatureStore(encoder, layers, Path(root))
        reading = min(seconds(lambda: read(store, sentences)) for _ in range(3))
        size = store_sizes(Path(root))[0].bytes
    print(f"{f'layers {layers[0]} to {layers[-1]}':20}{size / 1e6:8,.0f}{size / words:12,.0f}", end="")
    print(f"{words / adding:10,.0f}{opening:9.2f}{words / reading:12,.0f}{adding / reading:10,.0f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("treebank", type=Path)
    parser.add_argument("--sentences", type=int, default=400)
    parser.add_argument("--encoder", default="bundled")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    start = time.perf_counter()
    encoder = Encoder.load(options.encoder)
    took = time.perf_counter() - start
    print(f"{encoder.name} on {encoder.model.device}, {torch.get_num_threads()} threads, loaded in {took:.1f} s")
    # In random order, as the first sentences of a treebank need not be like the others; each once.
    found = list(dict.fromkeys(sentence.words for sentence in read_conllu(options.treebank)))
    sentences: Sentences = random.Random(0).sample(found, min(options.sentences, len(found)))
    print(f"{len(sentences):,} sentences, {sum(map(len, sentences)):,} words\n")
    compare_encoding(encoder, sentences, options.rounds)
    print(f"\n{'the store':20}{'MB':>8}{'bytes/word':>12}{'add w/s':>10}{'open s':>9}{'read w/s':>12}{'read/add':>10}")
    for layers in (range(encoder.layers // 4, encoder.layers * 5 // 6 + 1), range(encoder.layers + 1)):
        measure_store(encoder, layers, sentences)


if __name__ == "__main__":
    main()
