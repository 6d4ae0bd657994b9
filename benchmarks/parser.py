"""How fast the parser trains and parses, compared with supar 1.1.4 and stanza's depparse network.

    python benchmarks/parser.py TREEBANK.conllu            # about ten minutes on two cores

The same sentences, encoder folder (frozen) and sizes: layers of the mix, BiLSTM and its input, arc and label vectors,
labels, words in a batch. An epoch of ours and one of supar's alternate, then parsing in the same way. The first epoch
of each is left out: ours has its sentences encoded before it, which is timed apart, and no other epoch runs the
encoder. All parse with what they learnt meanwhile (stanza's network for three epochs, which are not timed), from words
to single-rooted trees, sentences that they have not seen; the scores show that they are parsers by then.
"""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import torch

from measure import Row, alternate, arguments, compare, give, say, seconds
from peers import Stanza, Supar
from subdp.corpus.treebank import Sentence, read_conllu
from subdp.encoder.encoder import Encoder
from subdp.encoder.feature_store import FeatureStore
from subdp.evaluation.attachment import evaluate
from subdp.network.biaffine import Biaffine
from subdp.parser import Parser
from subdp.projection.substructures import inventory_of
from subdp.support.settings import PRESETS
from subdp.training.examples import TreeExamples
from subdp.training.loop import train

NETWORK, TRAIN = PRESETS["small"].network, PRESETS["small"].train
STANZA_EPOCHS = 3


def train_both(parser: Parser, store: FeatureStore, sentences: list[Sentence], supar: Supar, repeats: int) -> list[Row]:
    """An epoch of ours and one of supar's in turn, through our loop's call after every epoch."""
    examples = TreeExamples(store.batch, sentences, parser.inventory)
    words = sum(examples.lengths)
    times: dict[str, list[float]] = {"subdp": [], "supar": []}
    start = time.perf_counter()

    def after_epoch(_: Biaffine) -> float:
        nonlocal start
        times["subdp"].append(time.perf_counter() - start)
        times["supar"].append(seconds(supar.epoch))
        start = time.perf_counter()
        return float(len(times["subdp"]))

    passes: list[object] = []
    watch = parser.encoder.model.register_forward_pre_hook(lambda *inputs: passes.append(inputs))
    train(parser.network, examples, replace(TRAIN, epochs=repeats + 1), seed=1, held_out=after_epoch)
    watch.remove()
    say(f"passes of our encoder in {repeats + 1} epochs: {len(passes)}")
    later = {name: values[1:] for name, values in times.items()}
    work = f"train on {words:,} words, frozen encoder, from epoch 2"
    return compare(work, later, unit="words/s", figure=lambda taken: words / taken, aims={"supar": 3.0})


def parse_all(parser: Parser, sentences: list[Sentence], supar: Supar, stanza: Stanza, repeats: int) -> list[Row]:
    """Parse the same sentences in turn, and say how good each is at it."""
    ways: dict[str, Callable[[], list[Sentence]]] = {
        "subdp": lambda: list(parser.parse(sentences)),
        "supar": lambda: supar.parse(sentences),
        "stanza depparse": lambda: stanza.parse(sentences),
    }
    for name, parse in ways.items():
        scores = evaluate(sentences, parse())
        say(f"{name}: UAS {scores.uas:.1f}, LAS {scores.las:.1f}")
    times = alternate(ways, repeats, warm=False)
    aims = {name: 2.0 for name in ways if name != "subdp"}
    work, count = f"parse {len(sentences):,} sentences", len(sentences)
    return compare(work, times, unit="sentences/s", figure=lambda taken: count / taken, aims=aims)


def read_sample(treebank: Path, count: int) -> tuple[list[Sentence], list[Sentence]]:
    """Sentences to learn from, and a quarter as many to parse; with universal labels, as ours.

    In random order, as the first sentences of a treebank need not be like the others.
    """
    found = {sentence.words: sentence for sentence in read_conllu(treebank)}
    sample = random.Random(0).sample(list(found.values()), min(count + count // 4, len(found)))
    sample = [sentence.with_tree(sentence.heads, sentence.universal_labels) for sentence in sample]
    return sample[: len(sample) * 4 // 5], sample[len(sample) * 4 // 5 :]


def main() -> None:
    options = arguments(__doc__)
    options.add_argument("treebank", type=Path)
    options.add_argument("--sentences", type=int, default=1000, help="to train on; a quarter as many are parsed")
    options.add_argument("--encoder", default="bundled")
    chosen = options.parse_args()
    learnt, fresh = read_sample(chosen.treebank, chosen.sentences)
    encoder = Encoder.load(chosen.encoder)
    inventory = inventory_of(learnt)
    layers = encoder.check_layers(NETWORK.layers)
    torch.manual_seed(1)
    parser = Parser(Biaffine(NETWORK, len(layers), encoder.hidden, inventory), NETWORK, inventory, encoder)
    say(f"{encoder.name} on {encoder.model.device}, {torch.get_num_threads()} threads")
    with tempfile.TemporaryDirectory() as folder:
        store = FeatureStore(encoder, layers, Path(folder))
        took = seconds(lambda: store.add(sentence.words for sentence in learnt))
        say(f"{len(learnt):,} sentences, {sum(map(len, learnt)):,} words, encoded once in {took:.1f} s")
        supar = Supar(learnt, encoder, NETWORK, TRAIN, Path(folder))
        rows = train_both(parser, store, learnt, supar, chosen.repeats)
        stanza = Stanza(learnt, encoder, NETWORK, TRAIN, Path(folder))
        for _ in range(STANZA_EPOCHS):
            stanza.epoch()
        rows += parse_all(parser, fresh, supar, stanza, chosen.repeats)
    give(rows, chosen.json)


if __name__ == "__main__":
    main()
