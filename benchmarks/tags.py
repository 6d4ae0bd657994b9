"""What tags do to trees: with and without a tag head, with and without the rules on labels and tags, and in time.

    python benchmarks/tags.py --data DIR --languages de tr hi es --seeds 1 2 3

The English parser that ships is adapted to NTREX alone by the defaults, once as it is and once without its tag head
(which sends no gradient into the rest of the network, so that nothing else of the parser differs), and scored on dev
sentences. DIR is a folder as `subdp experiment` takes it.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from statistics import mean
from unittest.mock import patch

import numpy as np

from measure import alternate, arguments, compare, give, say
from subdp.corpus.draft import draft
from subdp.corpus.treebank import Sentence
from subdp.evaluation.attachment import evaluate
from subdp.experiments.corpora import Corpora
from subdp.network import prediction
from subdp.network.growth import new_network, with_weights
from subdp.network.prediction import UPOS
from subdp.parser import Parser

RULES = ("chosen apart", "`punct` with PUNCT alone", "all rules, as it ships")


def without_tags(parser: Parser) -> Parser:
    """The parser without its head for UPOS; all other weights are the same."""
    inventory = {name: values for name, values in parser.inventory.items() if name != UPOS}
    network = with_weights(parser.network, new_network(parser.config, parser.encoder, inventory, seed=1))
    return replace(parser, network=network.eval(), inventory=inventory)


@contextmanager
def rules(which: str) -> Iterator[None]:
    """Predict by some of the rules on labels and tags."""

    def allowed(labels: Sequence[str], tags: Sequence[str]) -> np.ndarray:
        both = np.array([[(label == "punct") == (tag == "PUNCT") for tag in tags] for label in labels])
        return both if which == RULES[1] else np.ones_like(both)

    if which == RULES[2]:
        yield
    else:
        with patch.object(prediction, "agreement", allowed), patch.object(prediction, "groups_of", lambda _: []):
            yield


def table(title: str, columns: Sequence[str], rows: dict[str, list[str]]) -> str:
    """A Markdown table."""
    lines = [[title, *columns], ["---"] * (len(columns) + 1), *([name, *cells] for name, cells in rows.items())]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def scores(found: Sequence[Sequence[float]]) -> str:
    """The means of scores over several seeds."""
    return " / ".join(f"{mean(values):.2f}" for values in zip(*found, strict=True))


def main() -> None:
    chosen = options().parse_args()
    corpora = Corpora(chosen.data, ("ntrex",), 0)
    tagged = Parser.load("en")
    sources = {"without tags": without_tags(tagged), "with tags": tagged}
    trees: dict[str, list[list[tuple[float, float]]]] = {name: [] for name in sources}
    agreed: dict[str, list[str]] = {name: [] for name in RULES}
    for language in chosen.languages:
        gold = corpora.gold(language, "dev", chosen.sentences)
        plain = words_alone(gold)
        bitext = corpora.bitext(language)
        found: dict[str, list[tuple[float, float]]] = {name: [] for name in (*sources, *RULES)}
        for seed in chosen.seeds:
            for name, source in sources.items():
                parser = source.adapt(source.project(bitext), seed=seed)
                result = evaluate(gold, list(parser.parse(plain)))
                found[name].append((result.uas, result.las))
                say(f"{language} {name}, seed {seed}: {result.uas:.2f} / {result.las:.2f}")
            for name in RULES:
                with rules(name):
                    result = evaluate(gold, list(parser.parse(plain)), layers=(UPOS,))
                found[name].append((result.las, result.layers[UPOS].accuracy))
        for name in sources:
            trees[name].append(found[name])
        for name in RULES:
            agreed[name].append(scores(found[name]))
    cells = {
        name: [*map(scores, each), scores([score for one in each for score in one])] for name, each in trees.items()
    }
    print(table("UAS / LAS, dev", [*chosen.languages, "mean"], cells))
    print(table("LAS / UPOS, dev", chosen.languages, agreed))
    english = words_alone(corpora.gold("en", "dev", chosen.sentences))
    for parser in sources.values():
        list(parser.parse(english))
    ways = {
        "subdp": lambda: list(tagged.parse(english)),
        "without tags": lambda: list(sources["without tags"].parse(english)),
    }
    times = alternate(ways, chosen.repeats)
    count = len(english)
    aims = {"without tags": 0.95}
    work = f"parse {count:,} sentences, with tags"
    give(compare(work, times, unit="sentences/s", figure=lambda taken: count / taken, aims=aims), chosen.json)


def words_alone(trees: Sequence[Sentence]) -> list[Sentence]:
    """Sentences of the same words, without their annotation."""
    return [draft(" ".join(tree.words), tree.words, str(number)) for number, tree in enumerate(trees, 1)]


def options() -> argparse.ArgumentParser:
    parser = arguments(__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--languages", nargs="+", default=["de", "tr", "hi", "es"])
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3])
    parser.add_argument("--sentences", type=int, default=400, help="of each dev set")
    return parser


if __name__ == "__main__":
    main()
