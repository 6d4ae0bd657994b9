"""The parser: train it on a treebank, project its distributions onto translations, adapt it to their language, parse.

source = Parser.train(read_conllu("en.conllu"))
silver = source.project(read_bitext("en-de.tsv").clean())
german = source.adapt(silver)
german.save("german-parser")
"""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, islice, tee
from pathlib import Path
from typing import Any

import numpy as np
import torch

from subdp.alignment.similarity import Aligner, FileAligner, SimilarityAligner, find_aligner
from subdp.corpus.bitext import Bitext
from subdp.corpus.treebank import Sentence, trees_hash
from subdp.encoder.batch import Batch, Batcher, Words
from subdp.encoder.encoder import Encoder
from subdp.encoder.feature_store import FeatureStore
from subdp.evaluation.attachment import Scores, evaluate
from subdp.network.biaffine import Biaffine
from subdp.network.confidence import confidences
from subdp.network.model_folder import load_folder, save_folder
from subdp.network.prediction import distributions, encoder_batch, predict
from subdp.projection.gold_trees import check_trees, with_trees
from subdp.projection.silver import SHARD, Silver, SilverPair
from subdp.projection.soft_tree import SoftTree
from subdp.support.cache import cache_folder
from subdp.support.errors import SubdpError
from subdp.support.progress import progress
from subdp.support.settings import NetworkConfig, Settings, as_dict
from subdp.training.examples import SoftExamples, TreeExamples
from subdp.training.loop import Examples, mean_loss, train
from subdp.training.null_mass import with_teacher

_NEVER = -10.0  # The score of a label that a parser has not learnt: possible, but hardly ever its choice.
_HELD_OUT = 0.1  # The share of what is adapted to that chooses the epoch instead.


@dataclass(frozen=True)
class Parser:
    """A biaffine parser over a frozen encoder. `about` tells where it comes from and goes into its model card."""

    network: Biaffine
    config: NetworkConfig
    label_names: tuple[str, ...]
    encoder: Encoder
    about: dict[str, Any] = field(default_factory=dict)
    store: FeatureStore | None = field(default=None, repr=False, compare=False)

    @classmethod
    def train(
        cls,
        treebank: Iterable[Sentence],
        *,
        dev: Iterable[Sentence] = (),
        encoder: str | Path | Encoder = "bundled",
        settings: Settings | None = None,
        seed: int = 1,
        folder: Path | None = None,
        about: dict[str, Any] | None = None,
    ) -> Parser:
        """Train on gold trees; with `dev` trees the best epoch by LAS on them is kept, otherwise the last.

        Checkpoints go to `folder`; a training that was interrupted goes on from there.
        """
        settings = Settings.resolve() if settings is None else settings
        sentences, held_out = list(treebank), list(dev)
        if not sentences:
            raise SubdpError("the treebank has no sentences")
        names = tuple(sorted({label for sentence in sentences for label in sentence.universal_labels} - {"_"}))
        model = encoder if isinstance(encoder, Encoder) else Encoder.load(encoder)
        layers = model.check_layers(settings.network.layers)
        torch.manual_seed(seed)
        network = Biaffine(settings.network, len(layers), model.hidden, len(names)).to(model.model.device)
        parser = cls(network, settings.network, names, model)
        parser.features.add(sentence.words for sentence in [*sentences, *held_out])
        examples = TreeExamples(parser.features, sentences, {name: number for number, name in enumerate(names)})
        history = train(
            network,
            examples,
            settings.train,
            seed=seed,
            held_out=(lambda _: parser.evaluate(held_out).las) if held_out else None,
            folder=folder,
            title="training the parser",
        )
        made = {
            "trained_on": {
                "sentences": len(sentences),
                "words": sum(examples.lengths),
                "sha256": trees_hash(sentences),
            },
            "seed": seed,
            "training": as_dict(settings.train),
            "epochs": history.epoch,
            "best_epoch": history.best_epoch,
        }
        return replace(parser, about={**(about or {}), **made})

    @classmethod
    def load(cls, folder: str | Path, *, encoder: str | Path | Encoder | None = None) -> Parser:
        """Load a model folder; nothing in it is executed. `encoder` says where its encoder is, if not where it was."""
        network, config, names, facts, about = load_folder(Path(folder))
        model = encoder if isinstance(encoder, Encoder) else Encoder.load(encoder or facts["name"])
        if model.fingerprint != facts["fingerprint"]:
            hint = f"it was trained with {facts['name']}; name that one with encoder="
            raise SubdpError("was trained with another encoder", where=str(folder), hint=hint)
        return cls(network.to(model.model.device), config, names, model, about)

    def save(self, folder: str | Path, *, half: bool = False) -> None:
        """Write a model folder, in half precision if asked, all or nothing."""
        facts = {
            "name": self.encoder.name,
            "fingerprint": self.encoder.fingerprint,
            "layers": self.encoder.layers,
            "hidden": self.encoder.hidden,
        }
        save_folder(Path(folder), self.network, self.config, self.label_names, facts, self.about, half=half)

    @cached_property
    def features(self) -> FeatureStore:
        """Where the encoder's vectors for this parser's layers are kept."""
        return self.store or FeatureStore(self.encoder, self.config.layers)

    @cached_property
    def fingerprint(self) -> str:
        """A hash of the weights: silver made with one parser never passes for another's."""
        digest = hashlib.sha256(self.encoder.fingerprint.encode())
        for name, tensor in sorted(self.network.state_dict().items()):
            digest.update(name.encode() + tensor.detach().cpu().numpy().tobytes())
        return digest.hexdigest()[:32]

    def distributions(self, sentences: Iterable[Words]) -> Iterator[SoftTree]:
        """For each tokenised sentence, the distributions over heads and labels, as a stream."""
        return self._soft_trees(sentences, self._encode)

    def parse(
        self, sentences: Iterable[Sentence], *, confidence: bool = False, remember: bool = False
    ) -> Iterator[Sentence]:
        """Fill in HEAD and DEPREL, as a stream; all else stays. `confidence` adds probabilities and rivals to MISC.

        With `remember`, what the encoder says of the sentences is kept, and not computed if it is there already: for
        sentences that are parsed by more than one parser. They are all read first.
        """
        if not remember:
            return self._trees(sentences, self._encode, confidence)
        kept = list(sentences)
        self.features.add(sentence.words for sentence in kept)
        return self._trees(kept, self.features.batch, confidence)

    def evaluate(self, treebank: Iterable[Sentence], **options: Any) -> Scores:
        """Parse the words of a gold treebank and score the result, as `subdp.evaluate` does."""
        gold = list(treebank)
        return evaluate(gold, self.parse(gold, remember=True), **options)

    def project(
        self,
        bitext: Bitext,
        *,
        aligner: Aligner | str = "argmax",
        trees: Iterable[Sentence] | None = None,
        folder: Path | None = None,
        keep: float = 0.0,
    ) -> Silver:
        """Run the parser on the source sentences and align the pairs: what `adapt` trains on.

        With `trees`, a treebank that holds the source sentences, its gold trees stand in for what the parser says.
        Goes on where an interrupted call with the same folder stopped. Without a folder, silver goes to the cache.
        """
        if not bitext:
            dropped = ", ".join(f"{count:,} {reason}" for reason, count in bitext.report.dropped.items())
            raise SubdpError("no pair can be used", where=bitext.where, hint=f"left out: {dropped or 'none'}")
        align = find_aligner(aligner, self.features) if isinstance(aligner, str) else aligner
        gold: Sequence[Sentence] | None = None
        if trees is not None:
            bitext, gold = with_trees(bitext, trees, same_words=isinstance(align, FileAligner))
            check_trees(gold, self.label_names)
        made_from = {"parser": self.fingerprint, "bitext": bitext.fingerprint, "aligner": repr(align)}
        made_from |= {} if gold is None else {"trees": trees_hash(gold)}
        if folder is None:
            key = hashlib.sha256(repr((sorted(made_from.items()), keep)).encode()).hexdigest()[:32]
            folder = cache_folder() / "silver" / key
        silver = Silver.create(folder, self.label_names, keep=keep, made_from=made_from)
        self._fill(silver, bitext, align, gold)
        return silver

    def _fill(self, silver: Silver, bitext: Bitext, align: Aligner, gold: Sequence[Sentence] | None) -> None:
        """Add the pairs that are not in the silver yet."""
        done = len(silver)
        rest = bitext[done:]
        if gold is None or isinstance(align, SimilarityAligner):  # It reads vectors from the store too.
            self.features.add([*(pair.source for pair in rest), *(pair.target for pair in rest)])
        if gold is None:
            # Shard by shard: the same sentences go through the network together, whether or not it was interrupted.
            parts = ([pair.source for pair in rest[start : start + SHARD]] for start in range(0, len(rest), SHARD))
            sources: Iterator[SoftTree] = chain.from_iterable(
                self._soft_trees(part, self.features.batch) for part in parts
            )
        else:
            sources = (SoftTree.of(tree, self.label_names) for tree in gold[done:])
        # A file of links is for the whole bitext, whatever part of it is done.
        links = islice(align.align(bitext), done, None) if isinstance(align, FileAligner) else align.align(rest)
        with progress("aligning and projecting", len(rest), "pairs") as advance:

            def pairs() -> Iterator[SilverPair]:
                for pair, alignment, tree in zip(rest, links, sources, strict=True):
                    # By torch: numpy takes 28 times as long.
                    arcs, labels = (torch.from_numpy(array).half().numpy() for array in (tree.arcs, tree.labels))
                    yield SilverPair(pair.source, pair.target, alignment, arcs, labels)
                    advance(1)

            silver.append(pairs())

    def adapt(
        self,
        silver: Silver,
        *,
        settings: Settings | None = None,
        seed: int = 1,
        held_out: float = _HELD_OUT,
        folder: Path | None = None,
        about: dict[str, Any] | None = None,
    ) -> Parser:
        """Train a copy of this parser on projected distributions; the epoch that fits held-out pairs best is kept."""
        settings = Settings.resolve() if settings is None else settings
        if silver.label_names != self.label_names:
            raise SubdpError("the silver has other labels than this parser", where=str(silver.folder))
        if len(silver) == 0:
            raise SubdpError("there are no sentence pairs to learn from", where=str(silver.folder))
        self.features.add(silver.targets())
        order = np.random.default_rng(seed).permutation(len(silver)).tolist()
        apart = round(held_out * len(silver))
        examples = SoftExamples(self.features, silver, order[apart:], settings.losses)
        examples, agreement = with_teacher(examples, self.network)
        made = {
            "adapted_on": {"pairs": len(silver), "made_from": silver.made_from},
            "losses": as_dict(settings.losses),
            "agreement": agreement,
            **(about or {}),
        }
        test = replace(examples, indices=order[:apart])
        return self._adapted(examples, test, settings, seed, folder, made)

    def adapt_to_trees(
        self, trees: Iterable[Sentence], *, settings: Settings, seed: int = 1, folder: Path | None = None
    ) -> Parser:
        """Train a copy of this parser on trees, in all else as `adapt`; a word whose head is unknown gives no loss."""
        sentences = list(trees)
        if not sentences:
            raise SubdpError("there are no trees to learn from")
        self.features.add(tree.words for tree in sentences)
        order = np.random.default_rng(seed).permutation(len(sentences)).tolist()
        apart = round(_HELD_OUT * len(sentences))
        ids = {name: number for number, name in enumerate(self.label_names)}
        examples = TreeExamples(self.features, [sentences[index] for index in order[apart:]], ids)
        known = sum(head >= 0 for tree in sentences for head in tree.heads)
        made = {"adapted_on": {"trees": len(sentences), "known_heads": known}}
        test = replace(examples, sentences=[sentences[index] for index in order[:apart]])
        return self._adapted(examples, test, settings, seed, folder, made)

    def untrained(self, seed: int) -> Parser:
        """The same parser with weights drawn at random: what adaptation gains by starting from a trained one."""
        torch.manual_seed(seed)
        layers = self.encoder.check_layers(self.config.layers)
        network = Biaffine(self.config, len(layers), self.encoder.hidden, len(self.label_names))
        network = network.to(self.encoder.model.device)
        return replace(self, network=network, about={"untrained": True}, store=self.features)

    def with_labels(self, names: Sequence[str]) -> Parser:
        """The same parser with more labels, `names` beginning with its own; those it has not learnt it hardly gives."""
        known = len(self.label_names)
        if tuple(names[:known]) != self.label_names:
            raise SubdpError("the labels do not begin with the parser's own")
        if len(names) == known:
            return self
        weights = self.network.state_dict()
        old = weights["label_weight"]
        new = torch.zeros(len(names), *old.shape[1:], device=old.device)
        new[:known] = old
        new[known:, -1, -1] = _NEVER  # The last entries of both vectors are the constant 1: this is the label's bias.
        network = Biaffine(self.config, len(weights["mix"]), self.encoder.hidden, len(names)).to(old.device)
        network.load_state_dict({**weights, "label_weight": new})
        return replace(self, network=network, label_names=tuple(names), store=self.features)

    def _adapted(
        self,
        examples: Examples,
        test: Examples,
        settings: Settings,
        seed: int,
        folder: Path | None,
        about: dict[str, Any],
    ) -> Parser:
        """A copy of this parser trained on examples; `test` examples, if any, choose the epoch."""
        network = copy.deepcopy(self.network)
        history = train(
            network,
            examples,
            settings.adapt,
            seed=seed,
            held_out=(lambda current: -mean_loss(current, test)) if test.lengths else None,
            folder=folder,
            title="adapting the parser",
        )
        made = {
            "adapted_from": self.about,
            "seed": seed,
            "training": as_dict(settings.adapt),
            "epochs": history.epoch,
            "best_epoch": history.best_epoch,
        }
        return replace(self, network=network, about={**about, **made}, store=self.features)

    def _encode(self, sentences: Sequence[Words]) -> Batch:
        return encoder_batch(self.encoder, self.encoder.check_layers(self.config.layers), sentences)

    def _soft_trees(self, sentences: Iterable[Words], batcher: Batcher) -> Iterator[SoftTree]:
        ahead, behind = tee(sentences)
        for words, (arcs, labels) in zip(behind, distributions(self.network, ahead, batcher), strict=True):
            yield SoftTree(tuple(words), arcs, labels, self.label_names, (True,) * len(words))

    def _trees(self, sentences: Iterable[Sentence], batcher: Batcher, confidence: bool = False) -> Iterator[Sentence]:
        ahead, behind = tee(sentences)
        root = self.label_names.index("root") if "root" in self.label_names else None
        predictions = predict(self.network, (sentence.words for sentence in ahead), batcher, root)
        for sentence, found in zip(behind, predictions, strict=True):
            labels = [self.label_names[label] for label in found.labels]
            misc = confidences(found, self.label_names) if confidence else None
            yield sentence.with_tree(found.heads, labels, misc=misc)
