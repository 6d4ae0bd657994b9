"""What tags do to trees: with and without a tag head, with and without the rules on labels and tags, and in time.

    python benchmarks/tags.py --data DIR --languages de tr hi es --seeds 1 2 3

The English parser that ships is adapted to NTREX alone by the defaults, once as it is and once without its tag head
(which sends no gradient into the rest of the network, so that nothing else of the parser differs), and scored on dev
sentences. DIR is a folder as `subdp experiment` takes it.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from statistics import mean
from typing import Any
from unittest.mock import patch

import numpy as np

from measure import Row, alternate, arguments, compare, give, say, table
from subdp.corpus.draft import draft
from subdp.corpus.treebank import Sentence
from subdp.evaluation.attachment import evaluate
from subdp.experiments.corpora import Corpora
from subdp.network import prediction
from subdp.network.growth import new_network, with_weights
from subdp.network.prediction import UPOS
from subdp.parser import Parser

UNTAGGED, TAGGED = "without tags", "with tags"
RULES = ("chosen apart", "`punct` with PUNCT alone", "all rules, as it ships")
Found = list[tuple[float, float]]


def without_tags(parser: Parser) -> Parser:
    """The parser without its head for UPOS; all other weights are the same."""
    inventory = {name: values for name, values in parser.inventory.items() if name != UPOS}
    network = with_weights(parser.network, new_network(parser.config, parser.encoder, inventory, seed=1))
    return replace(parser, network=network.eval(), inventory=inventory)


@contextmanager
def rules(which: str) -> Iterator[None]:
    """Predict by some of the rules on labels and tags, among them that a word has one subject and one object."""

    def allowed(labels: Sequence[str], tags: Sequence[str]) -> np.ndarray:
        both = np.array([[(label == "punct") == (tag == "PUNCT") for tag in tags] for label in labels])
        return both if which == RULES[1] else np.ones_like(both)

    if which == RULES[2]:
        yield
    else:
        with patch.object(prediction, "agreement", allowed), patch.object(prediction, "groups_of", lambda _: []):
            yield


def scores(found: Sequence[Sequence[float]]) -> str:
    """The means of scores over several seeds."""
    return " / ".join(f"{mean(values):.2f}" for values in zip(*found, strict=True))


def of_language(language: str, corpora: Corpora, sources: Mapping[str, Parser], chosen: Any) -> dict[str, Found]:
    """UAS and LAS of parsers adapted from each source, LAS and UPOS of the last by each of the rules, seed by seed."""
    gold, bitext = corpora.gold(language, "dev", chosen.sentences), corpora.bitext(language)
    plain = words_alone(gold)
    silver = {name: source.project(bitext) for name, source in sources.items()}
    found: dict[str, Found] = {name: [] for name in (*sources, *RULES)}
    for seed in chosen.seeds:
        for name, source in sources.items():
            parser = source.adapt(silver[name], seed=seed)
            result = evaluate(gold, list(parser.parse(plain)))
            found[name].append((result.uas, result.las))
            say(f"{language} {name}, seed {seed}: {result.uas:.2f} / {result.las:.2f}")
        for name in RULES:
            with rules(name):
                result = evaluate(gold, list(parser.parse(plain)), layers=(UPOS,))
            found[name].append((result.las, result.layers[UPOS].accuracy))
    return found


def speed(sources: Mapping[str, Parser], sentences: Sequence[Sentence], repeats: int) -> list[Row]:
    """Parsing with and without tags, in turns."""
    ways = {name: lambda parser=parser: list(parser.parse(sentences)) for name, parser in sources.items()}
    work, count = f"parse {len(sentences):,} sentences, with tags", len(sentences)
    options: Any = {"unit": "sentences/s", "figure": lambda taken: count / taken, "ours": TAGGED}
    return compare(work, alternate(ways, repeats), aims={UNTAGGED: 0.95}, **options)


def main() -> None:
    chosen = options().parse_args()
    corpora = Corpora(chosen.data, ("ntrex",), 0)
    tagged = Parser.load("en")
    sources = {UNTAGGED: without_tags(tagged), TAGGED: tagged}
    found = {language: of_language(language, corpora, sources, chosen) for language in chosen.languages}
    trees = [["UAS / LAS, dev", *chosen.languages, "mean"]]
    for name in sources:
        each = [of[name] for of in found.values()]
        trees.append([name, *map(scores, each), scores([one for seeds in each for one in seeds])])
    agreed = [[name, *(scores(of[name]) for of in found.values())] for name in RULES]
    print(table(trees), table([["LAS / UPOS, dev", *chosen.languages], *agreed]), sep="\n\n", end="\n\n")
    give(speed(sources, words_alone(corpora.gold("en", "dev", chosen.sentences)), chosen.repeats), chosen.json)


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
