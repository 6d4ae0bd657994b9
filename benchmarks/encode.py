"""How fast words become vectors and how fast they are read back.

    python benchmarks/encode.py TREEBANK.conllu                     # a sample of 400 sentences, some minutes
    python benchmarks/encode.py TREEBANK.conllu --sentences 100000  # all of it
    python benchmarks/encode.py TREEBANK.conllu --encoder xlm-roberta-base

The peer is the loop that one writes first: a sentence at a time through tokenizer and model, all hidden states.
Features are read back in batches of 5,000 words in random order, as training does, through a newly opened store;
this is compared with encoding and storing them. Where the processor has the instructions for it, encoding in 8 bits is
compared with encoding in 32, at the layers that a parser reads.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch

from measure import Row, alternate, arguments, compare, give, say, seconds
from peers import model_folder
from subdp.corpus.treebank import read_conllu
from subdp.encoder.eight_bits import check_processor
from subdp.encoder.encoder import Encoder
from subdp.encoder.feature_store import FeatureStore, store_sizes
from subdp.encoder.pretrained import load_folder
from subdp.support.errors import SubdpError

Sentences = list[Sequence[str]]


def one_at_a_time(model: Any, tokenizer: Any, sentences: Sentences) -> None:
    """All layers of every sentence, by transformers alone."""
    with torch.inference_mode():
        for words in sentences:
            inputs = tokenizer(list(words), is_split_into_words=True, truncation=True, return_tensors="pt")
            inputs.pop("token_type_ids", None)
            states = model(**inputs.to(model.device), output_hidden_states=True).hidden_states
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


def compare_encoding(encoder: Encoder, sentences: Sentences, repeats: int) -> list[Row]:
    words = sum(map(len, sentences))
    middle = encoder.layers // 2 + 1
    naive = "transformers one sentence at a time"
    model, tokenizer = load_folder(model_folder(encoder), encoder.model.dtype)
    model.eval().to(encoder.model.device)
    ways: dict[str, Callable[[], None]] = {
        "all layers": lambda: encode(encoder, sentences),
        f"layer {middle} alone": lambda: encode(encoder, sentences, [middle]),
        naive: lambda: one_at_a_time(model, tokenizer, sentences),
    }
    encode(encoder, sentences[:20])
    times = alternate(ways, repeats, warm=False)
    rows = []
    for name in [name for name in ways if name != naive]:
        both = {way: times[way] for way in (name, naive)}
        rows += compare(f"encode, {name}", both, unit="words/s", figure=lambda taken: words / taken, ours=name)
    return rows


def compare_bits(encoder: Encoder, sentences: Sentences, repeats: int) -> list[Row]:
    """Encoding in 8 bits beside 32, where that is possible."""
    try:
        check_processor()
    except SubdpError as error:
        say(str(error))
        return []
    words, layers = sum(map(len, sentences)), [layer for layer in range(9) if layer <= encoder.layers]
    eight = Encoder.load(encoder.name, encoder.model.device, bits=8)
    ways = {"8 bits": lambda: encode(eight, sentences, layers), "32 bits": lambda: encode(encoder, sentences, layers)}
    times = alternate(ways, repeats)
    work, aims = f"encode, layers 0 to {layers[-1]}, in 8 bits", {"32 bits": 1.8}
    return compare(work, times, unit="words/s", figure=lambda taken: words / taken, aims=aims, ours="8 bits")


def measure_store(encoder: Encoder, layers: Sequence[int], sentences: Sentences, repeats: int) -> list[Row]:
    """Reading back beside encoding; the size goes to standard error."""
    words = sum(map(len, sentences))
    adding, reading = list[float](), list[float]()
    for _ in range(repeats):
        with tempfile.TemporaryDirectory() as root:
            store = FeatureStore(encoder, layers, Path(root))
            adding.append(seconds(partial(store.add, sentences)))
            opening = seconds(partial(FeatureStore, encoder, layers, Path(root)))
            store = FeatureStore(encoder, layers, Path(root))
            read(store, sentences)
            reading.append(seconds(partial(read, store, sentences)))
            size = store_sizes(Path(root))[0].bytes
    name = f"layers {layers[0]} to {layers[-1]}"
    say(f"the store, {name}: {size / 1e6:,.0f} MB, {size / words:,.0f} bytes a word, opened in {opening:.2f} s")
    times = {"subdp": reading, "encoding and storing them": adding}
    return compare(f"read features back, {name}", times, unit="words/s", figure=lambda taken: words / taken)


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("treebank", type=Path)
    parser.add_argument("--sentences", type=int, default=400)
    parser.add_argument("--encoder", default="bundled")
    options = parser.parse_args()
    encoder = Encoder.load(options.encoder)
    say(f"{encoder.name} on {encoder.model.device}, {torch.get_num_threads()} threads")
    # In random order, as the first sentences of a treebank need not be like the others; each once.
    found = list(dict.fromkeys(sentence.words for sentence in read_conllu(options.treebank)))
    sentences: Sentences = random.Random(0).sample(found, min(options.sentences, len(found)))
    say(f"{len(sentences):,} sentences, {sum(map(len, sentences)):,} words")
    rows = compare_encoding(encoder, sentences, options.repeats)
    rows += compare_bits(encoder, sentences, options.repeats)
    for layers in (range(encoder.layers // 4, encoder.layers * 5 // 6 + 1), range(encoder.layers + 1)):
        rows += measure_store(encoder, layers, sentences, options.repeats)
    give(rows, options.json)


if __name__ == "__main__":
    main()
