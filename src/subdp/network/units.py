"""Units of work on sentences: parsing them, or aligning and projecting them, in whichever process.

`support/engine.py` hands the units out. Each class holds what all units share and is called with one of them; the
result depends on that unit alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch

from subdp.alignment.aligner import Aligner
from subdp.corpus.bitext import Pair
from subdp.corpus.draft import upos_of
from subdp.corpus.layers import NONE, UNANNOTATED, find_layer
from subdp.corpus.treebank import Sentence
from subdp.encoder.batch import Batcher, Words
from subdp.network.biaffine import Biaffine
from subdp.network.confidence import confidences
from subdp.network.prediction import UPOS, Prediction, distributions, predict
from subdp.projection.silver import SHARD, SilverPair, SilverStore
from subdp.projection.soft_tree import SoftTree
from subdp.projection.substructures import LABELS, SUBSTRUCTURES, Inventory, of_kind
from subdp.support.engine import title_of
from subdp.support.shard_folder import ShardFolder


@dataclass(frozen=True, slots=True)
class ParseUnit:
    """Gives sentences their trees and tags, with probabilities and rivals in MISC if asked; all else stays.

    Tags that a sentence has already stay too, unless `retag` is set. A parser that predicts no UPOS leaves the tags
    that a word's characters tell.
    """

    network: Biaffine
    batcher: Batcher
    inventory: Inventory
    confidence: bool = False
    retag: bool = False

    def __call__(self, sentences: Sequence[Sentence]) -> list[Sentence]:
        names = self.inventory[LABELS.name]
        predictions = predict(self.network, sentences, self.batcher, self.inventory, retag=self.retag)
        return [
            sentence.with_tree(
                found.heads,
                [names[label] for label in found.labels],
                layers=layers,
                misc=confidences(found, self.inventory, layers) if self.confidence else None,
            )
            for sentence, found in zip(sentences, predictions, strict=True)
            for layers in [self._layers(sentence, found)]
        ]

    def _layers(self, sentence: Sentence, found: Prediction) -> dict[str, Sequence[str]]:
        """The values of every layer that is predicted."""
        layers: dict[str, Sequence[str]] = {
            name: [self.inventory[name][value] for value in values]
            for name, values in found.tags.items()
            if name not in SUBSTRUCTURES
        }
        if UPOS not in layers:
            layers[UPOS] = [upos_of(word) for word in sentence.words]
        guessed = [] if UPOS in found.tags else [UPOS]  # from characters alone: what the sentence has is better
        for name in guessed if self.retag else list(layers):
            own = zip(find_layer(name).read(sentence), layers[name], strict=True)
            layers[name] = [new if old in (UNANNOTATED, NONE) else old for old, new in own]
        return layers


@dataclass(frozen=True, slots=True)
class SentencesUnit:
    """The sentences of one file among many."""

    number: int
    sentences: list[Sentence]

    @property
    def name(self) -> str:
        """The file."""
        return f"{self.number:05d}.conllu"

    def __str__(self) -> str:
        return f"{self.name}: {title_of(self.sentences)}"


@dataclass(frozen=True, slots=True)
class ParseToFile:
    """Parses the sentences of a file and writes it, each as `finish` makes it."""

    parse: ParseUnit
    folder: ShardFolder
    finish: Callable[[Sentence], Sentence] | None = None

    def __call__(self, unit: SentencesUnit) -> int:
        trees = self.parse(unit.sentences)
        trees = trees if self.finish is None else list(map(self.finish, trees))
        self.folder.write(unit.name, "".join(f"{tree.conllu}\n\n" for tree in trees).encode())
        return len(trees)


@dataclass(frozen=True, slots=True)
class PairsUnit:
    """The pairs of one shard of silver and, where they replace the parser's output, the source's gold trees."""

    number: int
    pairs: Sequence[Pair]
    gold: Sequence[Sentence] | None

    def __str__(self) -> str:
        start = self.number * SHARD + 1
        first, last = (" ".join(pair.source) for pair in (self.pairs[0], self.pairs[-1]))
        return f"pairs {start:,} to {start + len(self.pairs) - 1:,}, from “{first}” to “{last}”"


@dataclass(frozen=True, slots=True)
class ProjectUnit:
    """Aligns pairs and writes them to a shard of silver, with the distributions over their source sentences."""

    network: Biaffine
    batcher: Batcher
    aligner: Aligner
    silver: SilverStore

    def __call__(self, unit: PairsUnit) -> int:
        links = self.aligner.align(unit.pairs)
        found = [
            # By torch: numpy takes 28 times as long.
            {name: torch.from_numpy(values).half().numpy() for name, values in tree.distributions.items()}
            for tree in self._trees(unit)
        ]
        self.silver.write(
            unit.number,
            [
                SilverPair(pair.source, pair.target, alignment, halves)
                for pair, alignment, halves in zip(unit.pairs, links, found, strict=True)
            ],
        )
        return len(unit.pairs)

    def _trees(self, unit: PairsUnit) -> Iterator[SoftTree]:
        inventory = self.silver.inventory
        if unit.gold is None:
            yield from soft_trees(self.network, [pair.source for pair in unit.pairs], self.batcher, inventory)
            return
        more = {name: inventory[name] for name in of_kind(inventory, "word")}
        for tree in unit.gold:
            yield SoftTree.of(tree, inventory[LABELS.name], more=more)


def soft_trees(
    network: Biaffine, sentences: Sequence[Words], batcher: Batcher, inventory: Inventory
) -> Iterator[SoftTree]:
    """A network's distributions over each sentence."""
    for words, found in zip(sentences, distributions(network, sentences, batcher), strict=True):
        yield SoftTree(tuple(words), found, inventory, (True,) * len(words))
