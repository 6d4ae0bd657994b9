"""The parser: train it on a treebank, project its distributions onto translations, adapt it to their language, parse.

source = Parser.train(read_conllu("en.conllu"))
silver = source.project(read_bitext("en-de.tsv").clean())
german = source.adapt(silver)
german.save("german-parser")
"""

from __future__ import annotations

import copy
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import chain
from pathlib import Path
from typing import Any

from subdp.alignment.aligner import Aligner
from subdp.alignment.registry import find_aligner
from subdp.corpus.bitext import Bitext
from subdp.corpus.draft import Texts, as_sentences
from subdp.corpus.layers import has_layer
from subdp.corpus.tokenizers import AUTO, Tokenizer
from subdp.corpus.treebank import Sentence
from subdp.drawing.notebook import table
from subdp.encoder.batch import Words, chunks
from subdp.encoder.encoder import Encoder
from subdp.encoder.feature_store import FeatureStore
from subdp.encoder.trainable import EMBEDDINGS, TrainableEncoder, with_trained_layers
from subdp.encoder.vectors import Vectors
from subdp.evaluation.attachment import evaluate
from subdp.evaluation.scores import Scores
from subdp.network.biaffine import Biaffine
from subdp.network.growth import has_weights, new_network, towards, with_values, with_weights
from subdp.network.hub import MULTILINGUAL, SHIPPED, find_model, push
from subdp.network.model_card import facts as card_facts
from subdp.network.model_folder import Model, check_replaceable, encoder_facts, load_folder, save_folder
from subdp.network.prediction import UPOS, chunk_words
from subdp.network.projecting import ToProject, folder_in_cache
from subdp.network.units import ParseUnit, soft_trees
from subdp.projection.silver import Silver, SilverStore
from subdp.projection.soft_tree import SoftTree
from subdp.projection.substructures import LABELS, SUBSTRUCTURES, Inventory, inventory_of, merged, of_kind
from subdp.support.engine import Engine, LocalEngine
from subdp.support.errors import SubdpError
from subdp.support.settings import EncoderBits, LossConfig, NetworkConfig, Settings
from subdp.training.adapting import (
    HELD_OUT,
    adapt_to_silver,
    adapt_to_trees,
    check_silver,
    count_corrections,
    share_of_other,
)
from subdp.training.distilling import check_frozen, distil, worth_learning
from subdp.training.many import adapt_to_many, check_many
from subdp.training.student import Student
from subdp.training.supervised import train_layers, train_on_treebank

_HERE = LocalEngine()
TREES = "trees"
"""The folder in that of a training's checkpoints for those of the training on trees that follows."""


@dataclass(frozen=True)
class Parser:
    """A biaffine parser over an encoder. `inventory` has the values of everything it predicts.

    `about` records its origin, for the model card. `trained_encoder` has the encoder layers that were trained with the
    network; without it the encoder is frozen. `tokenizer` is the one for raw text, by default by its script.
    Threads may share a parser to parse with.
    """

    network: Biaffine
    config: NetworkConfig
    inventory: Inventory
    encoder: Encoder
    about: Mapping[str, Any] = field(default_factory=dict)
    store: FeatureStore | None = field(default=None, repr=False, compare=False)
    trained_encoder: TrainableEncoder | None = field(default=None, repr=False, compare=False)
    tokenizer: str = AUTO

    @classmethod
    def train(
        cls,
        treebank: Iterable[Sentence],
        *,
        dev: Iterable[Sentence] = (),
        encoder: str | Path | Encoder = "bundled",
        predict: Sequence[str] | None = None,
        settings: Settings | None = None,
        seed: int = 1,
        folder: Path | None = None,
        about: Mapping[str, Any] | None = None,
    ) -> Parser:
        """Train on gold trees; with `dev` trees the best epoch by LAS on them is kept, otherwise the last.

        `predict` names the layers to predict besides trees (`corpus/layers.py`); by default UPOS, if the treebank has
        it. Checkpoints go to `folder`; a training that was interrupted resumes from there.
        """
        settings = Settings.resolve() if settings is None else settings
        sentences, held_out = list(treebank), list(dev)
        if not sentences:
            raise SubdpError("the treebank has no sentences")
        if predict is None:
            predict = [UPOS] if has_layer(sentences, UPOS) else []
        inventory = inventory_of(sentences, predict)
        model = encoder if isinstance(encoder, Encoder) else Encoder.load(encoder)
        network = new_network(settings.network, model, inventory, seed).to(model.model.device)
        parser = cls(network, settings.network, inventory, model)._to_train(settings.train.encoder_layers)
        parser.vectors.remember(sentence.words for sentence in [*sentences, *held_out])
        scores = partial(parser.evaluate, held_out) if held_out else None
        options: Any = {"dev_scores": scores, "seed": seed, "folder": folder}
        made = train_on_treebank(parser._student, sentences, settings.train, **options)
        return replace(parser, about={**(about or {}), **made})

    def with_layers(
        self,
        treebank: Iterable[Sentence],
        predict: Sequence[str],
        *,
        dev: Iterable[Sentence] = (),
        settings: Settings | None = None,
        seed: int = 1,
        folder: Path | None = None,
    ) -> Parser:
        """This parser with more layers, which are trained on a treebank; what it predicts already stays as it is.

        With `dev` sentences the epoch with the highest accuracy of the new layers is kept, otherwise the last.
        """
        settings = Settings.resolve() if settings is None else settings
        sentences, held_out = list(treebank), list(dev)
        if known := sorted(set(predict) & set(self.layers)):
            raise SubdpError(f"the parser predicts {known[0]} already", hint="name other layers")
        if settings.train.encoder_layers:
            raise SubdpError("with new layers the encoder stays as it is", hint="leave out train.encoder-layers")
        found = inventory_of(sentences, predict)
        for name in predict:
            if held_out and not has_layer(held_out, name):
                raise SubdpError(f"the dev set has no {name}", hint="name one that has it, or none")
        wider = self.with_values({**self.inventory, **{name: found[name] for name in predict}}, seed)
        if wider.trained_encoder is not None:
            wider = replace(wider, trained_encoder=copy.deepcopy(wider.trained_encoder).requires_grad_(False))
        wider.vectors.remember(sentence.words for sentence in [*sentences, *held_out])
        scores = partial(wider.evaluate, held_out) if held_out else None
        options: Any = {"dev_scores": scores, "seed": seed, "folder": folder}
        added = train_layers(wider._student, predict, sentences, settings.train, **options)
        return replace(wider, about={**self.about, "added": [*self.about.get("added", []), added]})

    @classmethod
    def load(
        cls,
        folder: str | Path,
        *,
        encoder: str | Path | Encoder | None = None,
        device: str | None = None,
        bits: EncoderBits | None = None,
    ) -> Parser:
        """Load a model folder; nothing in it is executed. `encoder` says where its encoder is if it has moved.

        `en` is the English parser that ships with the package, `multi` the multilingual one, `org/name` one on the
        Hugging Face Hub.
        `device` is where it runs, `cpu` or `cuda` for example: by default a GPU if there is one, or where `encoder` is.
        `bits` is the precision of the encoder's matrix products, 32 by default, or 8, which is faster (`Encoder.load`).
        """
        found = load_folder(find_model(folder))
        if isinstance(encoder, Encoder):
            model = encoder
            if bits not in (None, model.bits):
                raise SubdpError(f"the encoder that is given has {model.bits}-bit products", hint="leave out bits=")
        else:
            wanted = 32 if found.config.layers == EMBEDDINGS else bits or 32  # Embeddings are looked up, not computed.
            model = Encoder.load(encoder or found.encoder["name"], device, bits=wanted)
        found.check_encoder(model, str(folder))
        network = found.network.to(model.model.device)
        parser = cls(network, found.config, found.inventory, model, found.about, tokenizer=found.tokenizer)
        return replace(parser, trained_encoder=with_trained_layers(model, parser.vectors.layers, found.encoder_state))

    def save(self, folder: str | Path, *, half: bool = False) -> None:
        """Write a model folder, in half precision if asked, all or nothing."""
        save_folder(Path(folder), self._model, half=half)

    def push_to_hub(self, name: str, *, private: bool = False, half: bool = False) -> str:
        """Copy the parser to the Hugging Face Hub as `org/name`, for `Parser.load`; gives back its address.

        The language and the licence that the Hub is to show are `about["language"]` and `about["licence"]`.
        """
        with tempfile.TemporaryDirectory() as folder:
            self.save(Path(folder) / "parser", half=half)
            return push(Path(folder) / "parser", name, private=private)

    @staticmethod
    def check_folder(folder: str | Path) -> None:
        """Raise unless a parser may be saved there; worth calling before hours of training."""
        check_replaceable(Path(folder))

    def __repr__(self) -> str:
        (_, title), (_, kinds), (_, encoder), *_ = card_facts(self.inventory, self.encoder.name, self.about)
        return f"<Parser: {title}, {kinds}, encoder {encoder}>"

    def _repr_html_(self) -> str:
        return table(card_facts(self.inventory, self.encoder.name, self.about))

    @property
    def label_names(self) -> tuple[str, ...]:
        """The relations that it knows."""
        return self.inventory[LABELS.name]

    @property
    def layers(self) -> tuple[str, ...]:
        """What it predicts of single words: `upos`, for example."""
        return tuple(name for name in of_kind(self.inventory, "word") if name not in SUBSTRUCTURES)

    @cached_property
    def vectors(self) -> Vectors:
        """Where the vectors that it reads come from."""
        return Vectors(self.encoder, self.config.layers, self.trained_encoder, self.store)

    @property
    def features(self) -> FeatureStore:
        """The store of the encoder's vectors at this parser's layers."""
        return self.vectors.store

    @cached_property
    def fingerprint(self) -> str:
        """A hash of the weights, which ties silver to the parser that made it."""
        return self._model.fingerprint

    @property
    def _model(self) -> Model:
        """What a model folder holds of it."""
        state = {} if self.trained_encoder is None else self.trained_encoder.state_dict()
        facts = encoder_facts(self.encoder)
        return Model(self.network, self.config, self.inventory, facts, self.about, state, self.tokenizer)

    def distributions(self, sentences: Iterable[Words]) -> Iterator[SoftTree]:
        """For each tokenised sentence, the distributions over heads, labels and the rest it predicts, as a stream."""
        for chunk in chunks(sentences, chunk_words(self.network.device)):
            yield from soft_trees(self.network, chunk, self.vectors.fresh, self.inventory)

    def __call__(self, texts: Texts, **options: Any) -> list[Sentence]:
        """The sentences of a text, with trees; all that `parse` takes."""
        return list(self.parse(texts, **options))

    def parse(
        self,
        sentences: Texts,
        *,
        tokenizer: str | Tokenizer | None = None,
        confidence: bool = False,
        retag: bool = False,
        remember: bool = False,
        engine: Engine = _HERE,
    ) -> Iterator[Sentence]:
        """Fill in trees and tags, as a stream; all else stays. `confidence` adds probabilities and rivals to MISC.

        A UPOS that a sentence has already stays too, unless `retag` is set. What is given may be a raw text, which is
        split into sentences and words (by `tokenizer`, or the parser's own), or many: texts, lists of words, sentences.

        With `remember`, the encoder's vectors are read from the feature store, or added to it: for sentences that more
        than one parser parses. All of them are then read before the first one is parsed.
        """
        batcher, given = self.vectors.fresh, as_sentences(sentences, tokenizer or self.tokenizer)
        if remember:
            kept, batcher = list(given), self.vectors.stored
            self.vectors.remember(sentence.words for sentence in kept)
            given = iter(kept)
        work = ParseUnit(self.network, batcher, self.inventory, confidence, retag)
        return chain.from_iterable(engine.map(work, chunks(given, chunk_words(self.network.device))))

    def evaluate(self, treebank: Iterable[Sentence], **options: Any) -> Scores:
        """Parse the words of a gold treebank and score the result, as `subdp.evaluate` does."""
        gold = list(treebank)
        return evaluate(gold, self.parse(gold, retag=True, remember=True), layers=self.layers, **options)

    def project(
        self,
        bitext: Bitext,
        *,
        aligner: Aligner | str = "argmax",
        trees: Iterable[Sentence] | None = None,
        folder: Path | None = None,
        engine: Engine = _HERE,
    ) -> SilverStore:
        """Run the parser on the source sentences and align the pairs: what `adapt` trains on.

        With `trees`, a treebank that contains the source sentences, gold trees replace the parser's distributions. An
        interrupted call with the same folder resumes. Without a folder, silver goes to the cache.
        """
        align = aligner if isinstance(aligner, Aligner) else find_aligner(aligner, self.encoder, store=self.features)
        work = ToProject.of(bitext, align, trees, self.label_names)
        made_from = work.made_from(self.fingerprint)
        place = folder_in_cache(made_from) if folder is None else folder
        silver = SilverStore.create(place, self.inventory, pairs=len(work.bitext), made_from=made_from)
        work.fill(silver, self.network, self.vectors, engine)
        return silver

    def adapt(
        self,
        silver: Silver,
        *,
        trees: Iterable[Sentence] = (),
        settings: Settings | None = None,
        seed: int = 1,
        held_out: float = HELD_OUT,
        folder: Path | None = None,
        about: Mapping[str, Any] | None = None,
    ) -> Parser:
        """Train a copy of this parser on projected distributions; the epoch that fits held-out pairs best is kept.

        If this is the English parser that ships, the copy starts from a mix of its weights and the multilingual
        parser's, unless `losses.start` is `source`. Gold `trees` of the target language, if there are any, are learnt
        afterwards, as by `adapt_to_trees`.
        """
        settings, gold = settings or Settings.resolve(), list(trees)
        check_silver(silver, self.inventory)
        self.vectors.remember(silver.targets())
        start, share = self._start(silver, settings.losses)
        adapted = start._to_train(settings.adapt.encoder_layers)
        options: Any = {"fingerprint": start.fingerprint, "seed": seed, "held_out": held_out, "folder": folder}
        options["multilingual"] = share
        made = adapt_to_silver(adapted._student, start._student, silver, settings, **options)
        made = {**made, "adapted_from": start.about, **(about or {})}
        adapted = replace(adapted, about=made, tokenizer=silver.tokenizer or AUTO)
        if not gold:
            return adapted
        place = None if folder is None else folder / TREES
        if place is not None:
            place.mkdir(exist_ok=True)
        return adapted.adapt_to_trees(gold, settings=settings, seed=seed, folder=place, about=about)

    def adapt_to_many(
        self,
        silvers: Sequence[Silver],
        text: Iterable[Words],
        *,
        source: Parser | None = None,
        settings: Settings | None = None,
        seed: int = 1,
        folder: Path | None = None,
        about: Mapping[str, Any] | None = None,
    ) -> Parser:
        """Train a copy of this parser on projected distributions of several languages, one silver each, at once.

        `text` is tokenised text of the source language, on which it is to predict what the source parser does. That is
        this parser; in a second round, which starts from what a first one made, name it as `source`.
        """
        settings, own, source = settings or Settings.resolve(), list(text), source or self
        check_frozen(settings.adapt, "a multilingual parser", "adapt")
        check_many(silvers, self.inventory, settings.losses)
        if dict(source.inventory) != dict(self.inventory):
            raise SubdpError("the source parser has other labels than this one", hint="name the one it was made from")
        self.vectors.remember(chain(own, *(silver.targets() for silver in silvers)))
        source.vectors.remember(own)
        adapted = self._to_train(())
        options: Any = {"fingerprints": [self.fingerprint, source.fingerprint], "seed": seed, "folder": folder}
        made = adapt_to_many(adapted._student, self._student, source._student, silvers, own, settings, **options)
        return replace(adapted, about={**made, "adapted_from": self.about, **(about or {})}, tokenizer=AUTO)

    def adapt_to_trees(
        self,
        trees: Iterable[Sentence],
        *,
        settings: Settings | None = None,
        seed: int = 1,
        folder: Path | None = None,
        about: Mapping[str, Any] | None = None,
    ) -> Parser:
        """Train a copy of this parser on gold trees, a few or many; a word with an unknown head adds no loss.

        What the trees have and the parser lacks, labels or tags, it learns. A few trees move it less far than many.
        """
        settings, sentences = settings or Settings.resolve(), list(trees)
        if not sentences:
            raise SubdpError("there are no trees to learn from")
        adapted = self.grown(sentences, seed)._to_train(settings.tune.encoder_layers)
        self.vectors.remember(tree.words for tree in sentences)
        blank = (Sentence.of(tree.words) for tree in sentences)
        made = adapt_to_trees(
            adapted._student,
            sentences,
            settings.tune,
            corrections=count_corrections(self.parse(blank, remember=True), sentences),
            seed=seed,
            folder=folder,
        )
        return replace(adapted, about={**made, "adapted_from": self.about, **(about or {})})

    def distill(
        self,
        texts: Texts,
        *,
        tokenizer: str | Tokenizer | None = None,
        settings: Settings | None = None,
        seed: int = 1,
        folder: Path | None = None,
        about: Mapping[str, Any] | None = None,
    ) -> Parser:
        """A smaller parser, trained to predict on raw text what this one predicts, many times as fast.

        By default it reads the encoder's embeddings alone, without its layers. It starts from those weights of this
        parser that fit its own sizes. `texts` are as in `parse`; annotation that they may have is not used.
        """
        settings = Settings.resolve("distilled") if settings is None else settings
        check_frozen(settings.train)
        sentences = worth_learning(as_sentences(texts, tokenizer or self.tokenizer))
        network = with_weights(self.network, new_network(settings.network, self.encoder, self.inventory, seed))
        small = Parser(network, settings.network, self.inventory, self.encoder, tokenizer=self.tokenizer)
        student, teacher = (
            Student(one.network, one.vectors.fresh, one.inventory, one.encoder.fingerprint) for one in (small, self)
        )
        options: Any = {"fingerprint": self.fingerprint, "seed": seed, "folder": folder}
        made = distil(student, teacher, sentences, settings.train, **options)
        return replace(small, about={**made, "distilled_from": self.about, **(about or {})})

    def grown(self, trees: Sequence[Sentence], seed: int = 1) -> Parser:
        """This parser with the labels and tags that it lacks and the trees have."""
        annotated = [name for name in self.layers if has_layer(trees, name)]
        return self.with_values(merged([self.inventory, inventory_of(trees, annotated)]), seed)

    def untrained(self, seed: int) -> Parser:
        """The same parser with random weights, to measure what starting from a trained one is worth."""
        network = new_network(self.config, self.encoder, self.inventory, seed)
        return self._with(network.to(self.network.device), about={"untrained": True})

    def with_values(self, inventory: Inventory, seed: int = 1) -> Parser:
        """The same parser with more values after its own; it hardly ever predicts those it has not learnt."""
        if dict(inventory) == dict(self.inventory):
            return self
        wider = new_network(self.config, self.encoder, inventory, seed)
        return self._with(with_values(self.network, self.inventory, inventory, wider), inventory=inventory)

    def _with(self, network: Biaffine, **changes: Any) -> Parser:
        return replace(self, network=network, store=self.features, **changes)

    def _start(self, silver: Silver, losses: LossConfig) -> tuple[Parser, float]:
        """Where adaptation starts: for the English parser that ships, a mix of it and of the multilingual one that was
        made from it, and the latter's share (`share_of_other`). Layers that a user adds to the English one are fitted
        to its states: such a parser is its own start, as any other is.
        """
        if losses.start == "source" or self.trained_encoder is not None:
            return self, 0.0
        if not has_weights(self.network, load_folder(SHIPPED).network):
            return self, 0.0
        found = load_folder(MULTILINGUAL)
        share = share_of_other(self._student, towards(self.network, found.network, 1), silver, losses)
        if share == 0:
            return self, 0.0
        mix = f"a mix of subdp's parsers, {1 - share:.0%} English and {share:.0%} multilingual"
        title = "subdp's multilingual parser" if share == 1 else mix
        about = {"title": title, "licence": found.about["licence"], "adapted_from": found.about}
        return self._with(towards(self.network, found.network, share), about=about), share

    def _to_train(self, encoder_layers: Sequence[int]) -> Parser:
        """A copy of this parser with its own weights, also those of encoder layers that were or will be trained."""
        return self._with(copy.deepcopy(self.network), trained_encoder=self.vectors.to_train(encoder_layers))

    @property
    def _student(self) -> Student:
        return Student(self.network, self.vectors.stored, self.inventory, self.encoder.fingerprint)
