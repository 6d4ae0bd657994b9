"""How fast the parser trains and parses, beside supar 1.1.4: one run, all ratios from it.

    pip install --no-deps supar==1.1.4 && pip install dill nltk stanza     # in an environment that has subdp
    python benchmarks/parser.py TREEBANK.conllu                            # about ten minutes on two cores

The same sentences, encoder folder (frozen) and sizes: layers of the mix, BiLSTM and its input, arc and label vectors,
labels, words in a batch. An epoch of one and an epoch of the other alternate, then parsing in the same way; medians
count, with the quartiles beside them. The first epoch of each is left out: ours has its sentences encoded before it,
which is timed apart, and no other epoch runs the encoder. Both parse with what they learnt meanwhile, from words to
single-rooted trees, sentences that they have not seen; the scores show that both are parsers by then.
"""

from __future__ import annotations

import argparse
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from supar import BiaffineDependencyParser
from supar.utils import Dataset
from torch.optim import Adam
from torch.optim.lr_scheduler import ExponentialLR

from subdp.biaffine import Biaffine
from subdp.config import PRESETS
from subdp.encode import Encoder
from subdp.evaluate import Scores, evaluate
from subdp.examples import TreeExamples
from subdp.features import FeatureStore
from subdp.parser import Parser
from subdp.train import train
from subdp.treebank import Sentence, read_conllu, write_conllu

NETWORK, TRAIN = PRESETS["small"].network, PRESETS["small"].train
BUCKETS = 8  # supar's number of length buckets. With more, its batches would not be full on a sample.


def seconds(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


class Supar:
    """supar's parser at our sizes, with its own loops for training and for parsing."""

    def __init__(self, sentences: Sequence[Sentence], encoder: Encoder, folder: Path):
        file = str(folder / "train.conllu")
        write_conllu(sentences, file)
        torch.manual_seed(1)
        words = 100
        self.parser: Any = BiaffineDependencyParser.build(
            path=str(folder / "model"),
            build=True,
            train=file,
            encoder="lstm",
            feat=["bert"],
            bert=str(encoder.folder),
            freeze=True,
            embed=None,
            n_embed=words,
            n_feat_embed=NETWORK.features - words,
            n_bert_layers=len(encoder.check_layers(NETWORK.layers)),
            n_lstm_hidden=NETWORK.lstm,
            n_lstm_layers=NETWORK.lstm_layers,
            n_arc_mlp=NETWORK.arc,
            n_rel_mlp=NETWORK.label,
        )
        self.parser.args.update({"clip": TRAIN.clip, "update_steps": 1, "punct": True, "partial": False})
        self.parser.optimizer = Adam(self.parser.model.parameters(), TRAIN.lr, (0.9, 0.9), 1e-12)
        self.parser.scheduler = ExponentialLR(self.parser.optimizer, 0.75 ** (1 / TRAIN.decay_steps))
        self.loader = Dataset(self.parser.transform, file).build(TRAIN.batch_words, BUCKETS, shuffle=True).loader

    def epoch(self) -> None:
        self.parser.transform.train()
        self.parser._train(self.loader)

    def parse(self, sentences: Sequence[Sentence]) -> list[Sentence]:
        words = [list(sentence.words) for sentence in sentences]
        found = self.parser.predict(words, buckets=BUCKETS, batch_size=TRAIN.batch_words, verbose=False)
        trees = zip(sentences, found.arcs, found.rels, strict=True)
        return [sentence.with_tree(heads, labels) for sentence, heads, labels in trees]


def train_both(parser: Parser, store: FeatureStore, sentences: list[Sentence], supar: Supar, rounds: int) -> None:
    """An epoch of ours and one of supar's in turn, through our loop's call after every epoch; prints words a second."""
    examples = TreeExamples(store, sentences, {name: number for number, name in enumerate(parser.label_names)})
    words = sum(examples.lengths)
    took: dict[str, list[float]] = {"supar": [], "subdp": []}
    start = time.perf_counter()

    def after_epoch(_: Biaffine) -> float:
        nonlocal start
        took["subdp"].append(time.perf_counter() - start)
        took["supar"].append(seconds(supar.epoch))
        start = time.perf_counter()
        return float(len(took["subdp"]))

    train(parser.network, examples, replace(TRAIN, epochs=rounds + 1), seed=1, held_out=after_epoch)
    report("training, words a second", {name: [words / each for each in times[1:]] for name, times in took.items()})


def parse_both(parser: Parser, sentences: list[Sentence], supar: Supar, rounds: int) -> None:
    """Parse the same sentences in turn; prints sentences a second, and how good the two are at it."""
    ways: dict[str, Callable[[], list[Sentence]]] = {
        "supar": lambda: supar.parse(sentences),
        "subdp": lambda: list(parser.parse(sentences)),
    }
    scores: dict[str, Scores] = {name: evaluate(sentences, parse()) for name, parse in ways.items()}
    rates: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, parse in ways.items():
            rates[name].append(len(sentences) / seconds(parse))
    report("parsing, sentences a second", rates)
    for name, score in scores.items():
        print(f"{name:10}UAS {score.uas:.1f}  LAS {score.las:.1f}")


def report(title: str, rates: dict[str, list[float]]) -> None:
    """The median of each, its quartiles, and the ratio to the first."""
    print(f"\n{title:30}{'median':>10}{'quartiles':>20}{'ratio':>8}")
    first = statistics.median(next(iter(rates.values())))
    for name, each in rates.items():
        low, middle, high = statistics.quantiles(each, n=4, method="inclusive")
        print(f"{name:30}{middle:10,.0f}{f'{low:,.0f} to {high:,.0f}':>20}{middle / first:8.2f}")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("treebank", type=Path)
    options.add_argument("--sentences", type=int, default=2000, help="to train on; a quarter as many are parsed")
    options.add_argument("--encoder", default="bundled")
    options.add_argument("--rounds", type=int, default=12)
    chosen = options.parse_args()
    # In random order, as the first sentences of a treebank need not be like the others; with universal labels, as ours.
    found = {sentence.words: sentence for sentence in read_conllu(chosen.treebank)}
    count = chosen.sentences + chosen.sentences // 4
    sample = random.Random(0).sample(list(found.values()), min(count, len(found)))
    sample = [sentence.with_tree(sentence.heads, sentence.universal_labels) for sentence in sample]
    learnt, fresh = sample[: len(sample) * 4 // 5], sample[len(sample) * 4 // 5 :]

    encoder = Encoder.load(chosen.encoder)
    names = tuple(sorted({label for sentence in learnt for label in sentence.labels}))
    layers = encoder.check_layers(NETWORK.layers)
    torch.manual_seed(1)
    parser = Parser(Biaffine(NETWORK, len(layers), encoder.hidden, len(names)), NETWORK, names, encoder)
    print(f"{encoder.name} on {encoder.model.device}, {torch.get_num_threads()} threads")
    with tempfile.TemporaryDirectory() as folder:
        store = FeatureStore(encoder, layers, Path(folder))
        took = seconds(lambda: store.add(sentence.words for sentence in learnt))
        words = sum(map(len, learnt))
        print(f"{len(learnt):,} sentences, {words:,} words, encoded once in {took:.1f} s")
        passes: list[object] = []
        watch = encoder.model.register_forward_pre_hook(lambda *inputs: passes.append(inputs))
        supar = Supar(learnt, encoder, Path(folder))
        train_both(parser, store, learnt, supar, chosen.rounds)
        watch.remove()
        print(f"passes of our encoder in {chosen.rounds + 1} epochs: {len(passes)}")
        parse_both(parser, fresh, supar, chosen.rounds)


if __name__ == "__main__":
    main()
