"""The parser: train it on a treebank, project its distributions onto translations, adapt it to their language, parse.

source = Parser.train(read_conllu("en.conllu"))
silver = source.project(read_bitext("en-de.tsv").clean())
german = source.adapt(silver)
german.save("german-parser")
"""

from __future__ import annotations

import copy
import hashlib
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import chain
from pathlib import Path
from typing import Any

import torch

from subdp.alignment.aligner import Aligner
from subdp.alignment.registry import find_aligner
from subdp.corpus.bitext import Bitext
from subdp.corpus.draft import Texts, as_sentences
from subdp.corpus.layers import UNANNOTATED, has_layer
from subdp.corpus.tokenizers import AUTO, Tokenizer
from subdp.corpus.treebank import Sentence, trees_hash
from subdp.drawing.notebook import table
from subdp.encoder.batch import Batcher, Words, chunks
from subdp.encoder.encoder import Encoder
from subdp.encoder.feature_store import FeatureStore
from subdp.encoder.trainable import TrainableEncoder, encoder_batch, trained_layers
from subdp.evaluation.attachment import evaluate
from subdp.evaluation.scores import Scores
from subdp.network.biaffine import Biaffine
from subdp.network.growth import with_values
from subdp.network.hub import find_model, push
from subdp.network.model_card import facts as card_facts
from subdp.network.model_folder import Model, check_replaceable, load_folder, save_folder
from subdp.network.prediction import UPOS, chunk_words
from subdp.network.units import PairsUnit, ParseUnit, ProjectUnit, soft_trees
from subdp.projection.gold_trees import check_trees, with_trees
from subdp.projection.silver import Silver, SilverStore
from subdp.projection.silver_views import JoinedSilver
from subdp.projection.soft_tree import SoftTree
from subdp.projection.substructures import LABELS, SUBSTRUCTURES, Inventory, inventory_of, merged, of_kind
from subdp.support.cache import cache_folder
from subdp.support.engine import Engine, LocalEngine
from subdp.support.errors import SubdpError
from subdp.support.progress import progress
from subdp.support.settings import NetworkConfig, Settings
from subdp.support.values import as_dict
from subdp.training.adapting import HELD_OUT, Student, adapt_to_silver, adapt_to_trees
from subdp.training.examples import TreeExamples
from subdp.training.loop import train

_HERE = LocalEngine()


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
            tagged = any(tag != UNANNOTATED for sentence in sentences for tag in sentence.upos)
            predict = [UPOS] if tagged else []
        inventory = inventory_of(sentences, predict)
        model = encoder if isinstance(encoder, Encoder) else Encoder.load(encoder)
        layers = model.check_layers(settings.network.layers)
        torch.manual_seed(seed)
        network = Biaffine(settings.network, len(layers), model.hidden, inventory).to(model.model.device)
        parser = cls(network, settings.network, inventory, model)
        parser._remember(sentence.words for sentence in [*sentences, *held_out])
        history = train(
            network,
            examples := TreeExamples(parser._stored, sentences, inventory),
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
        found = inventory_of(sentences, predict)
        wider = self.with_values({**self.inventory, **{name: found[name] for name in predict}}, seed)
        if wider.trained_encoder is not None:
            wider = replace(wider, trained_encoder=copy.deepcopy(wider.trained_encoder).requires_grad_(False))
        wider.network.requires_grad_(False)
        for name in predict:
            wider.network.scorers[name].requires_grad_(True)
        wider._remember(sentence.words for sentence in [*sentences, *held_out])

        def accuracy(_: Biaffine) -> float:
            scores = wider.evaluate(held_out)
            return sum(scores.layers[name].accuracy for name in predict if name in scores.layers)

        history = train(
            wider.network,
            TreeExamples(wider._stored, sentences, wider.inventory),
            settings.train,
            seed=seed,
            held_out=accuracy if held_out else None,
            folder=folder,
            title=f"training {', '.join(predict)}",
        )
        wider.network.requires_grad_(True)
        added = {"layers": list(predict), "sentences": len(sentences), "epochs": history.epoch, "seed": seed}
        return replace(wider, about={**self.about, "added": [*self.about.get("added", []), added]})

    @classmethod
    def load(
        cls, folder: str | Path, *, encoder: str | Path | Encoder | None = None, device: str | None = None
    ) -> Parser:
        """Load a model folder; nothing in it is executed. `encoder` says where its encoder is if it has moved.

        `en` is the English parser that ships with the package, `org/name` one on the Hugging Face Hub.
        `device` is where it runs, `cpu` or `cuda` for example: by default a GPU if there is one, or where `encoder` is.
        """
        found = load_folder(find_model(folder))
        facts = found.encoder
        model = encoder if isinstance(encoder, Encoder) else Encoder.load(encoder or facts["name"], device)
        if model.fingerprint != facts["fingerprint"]:
            hint = f"it was trained with {facts['name']}; name that one with --encoder, or encoder= in Python"
            raise SubdpError("was trained with another encoder", where=str(folder), hint=hint)
        network = found.network.to(model.model.device)
        parser = cls(network, found.config, found.inventory, model, found.about, tokenizer=found.tokenizer)
        if not found.encoder_state:
            return parser
        trained = TrainableEncoder(model, parser._layers, trained_layers(found.encoder_state))
        trained.load_state_dict(dict(found.encoder_state))
        return replace(parser, trained_encoder=trained)

    def save(self, folder: str | Path, *, half: bool = False) -> None:
        """Write a model folder, in half precision if asked, all or nothing."""
        facts = {
            "name": self.encoder.name,
            "fingerprint": self.encoder.fingerprint,
            "layers": self.encoder.layers,
            "hidden": self.encoder.hidden,
        }
        state = {} if self.trained_encoder is None else self.trained_encoder.state_dict()
        model = Model(self.network, self.config, self.inventory, facts, self.about, state, self.tokenizer)
        save_folder(Path(folder), model, half=half)

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
    def features(self) -> FeatureStore:
        """The store of the encoder's vectors at this parser's layers."""
        return FeatureStore(self.encoder, self.config.layers) if self.store is None else self.store

    @cached_property
    def fingerprint(self) -> str:
        """A hash of the weights, which ties silver to the parser that made it."""
        digest = hashlib.sha256(self.encoder.fingerprint.encode())
        state = dict(self.network.state_dict())
        if self.trained_encoder is not None:
            state |= {f"encoder.{name}": tensor for name, tensor in self.trained_encoder.state_dict().items()}
        for name, tensor in sorted(state.items()):
            digest.update(name.encode() + tensor.detach().cpu().numpy().tobytes())
        return digest.hexdigest()[:32]

    def distributions(self, sentences: Iterable[Words]) -> Iterator[SoftTree]:
        """For each tokenised sentence, the distributions over heads, labels and the rest it predicts, as a stream."""
        for chunk in chunks(sentences, chunk_words(self.network.device)):
            yield from soft_trees(self.network, chunk, self._fresh, self.inventory)

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
        batcher, given = self._fresh, as_sentences(sentences, tokenizer or self.tokenizer)
        if remember:
            kept, batcher = list(given), self._stored
            self._remember(sentence.words for sentence in kept)
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
        if not bitext:
            dropped = ", ".join(f"{count:,} {reason}" for reason, count in bitext.report.dropped.items())
            raise SubdpError("no pair can be used", where=bitext.where, hint=f"left out: {dropped or 'none'}")
        align = find_aligner(aligner, self.features) if isinstance(aligner, str) else aligner
        gold: Sequence[Sentence] | None = None
        if trees is not None:
            bitext, gold = with_trees(bitext, trees, same_words=align.reads_lines)
            check_trees(gold, self.label_names)
        bitext = align.prepared(bitext)
        made_from = {"parser": self.fingerprint, "bitext": bitext.fingerprint, "aligner": align.fingerprint}
        made_from |= {} if gold is None else {"trees": trees_hash(gold)}
        made_from |= {} if bitext.tokenizer is None else {"tokenizer": bitext.tokenizer}
        if folder is None:
            key = hashlib.sha256(repr(sorted(made_from.items())).encode()).hexdigest()[:32]
            folder = cache_folder() / "silver" / key
        silver = SilverStore.create(folder, self.inventory, pairs=len(bitext), made_from=made_from)
        self._fill(silver, bitext, align, gold, engine)
        return silver

    def _fill(
        self, silver: SilverStore, bitext: Bitext, align: Aligner, gold: Sequence[Sentence] | None, engine: Engine
    ) -> None:
        """Write the shards that are missing."""
        missing = [(number, silver.units[number]) for number in silver.missing()]
        if not missing:
            return
        wanted = [bitext[index] for _, unit in missing for index in unit]
        if gold is None or align.reads_vectors:
            self._remember([*(pair.source for pair in wanted), *(pair.target for pair in wanted)], engine)
        units = (
            PairsUnit(number, bitext[unit.start : unit.stop], None if gold is None else gold[unit.start : unit.stop])
            for number, unit in missing
        )
        work = ProjectUnit(self.network, self._stored, align, silver)
        with progress("aligning and projecting", len(wanted), "pairs") as advance:
            for done in engine.map(work, units):
                advance(done)

    def adapt(
        self,
        silver: Silver,
        *,
        trees: Iterable[Sentence] = (),
        settings: Settings | None = None,
        seed: int = 1,
        held_out: float = HELD_OUT,
        encoder_layers: Sequence[int] = (),
        folder: Path | None = None,
        about: Mapping[str, Any] | None = None,
    ) -> Parser:
        """Train a copy of this parser on projected distributions; the epoch that fits held-out pairs best is kept.

        Gold `trees` of the target language are trained on together with them; what they have and the parser lacks,
        labels or tags, it learns. `encoder_layers` lists the encoder layers to train as well, numbered from 1.
        """
        settings, gold = settings or Settings.resolve(), list(trees)
        start = self.grown(gold, seed) if gold else self
        if dict(start.inventory) != dict(self.inventory):
            silver = JoinedSilver([silver], start.inventory)
        if dict(silver.inventory) != dict(start.inventory):
            hint = "make it with this parser, or with Silver.of(pairs, parser.inventory)"
            raise SubdpError("the silver has other labels than this parser", where=silver.where, hint=hint)
        if len(silver) == 0:
            raise SubdpError("there are no sentence pairs to learn from", where=silver.where)
        start._remember(chain(silver.targets(), (tree.words for tree in gold)))
        adapted = start._to_train(encoder_layers)
        options: Any = {"seed": seed, "held_out": held_out, "folder": folder}
        made = adapt_to_silver(adapted._student, start._student, silver, gold, settings, **options)
        made = {**made, "adapted_from": self.about, **(about or {})}
        return replace(adapted, about=made, tokenizer=silver.tokenizer or AUTO)

    def adapt_to_trees(
        self,
        trees: Iterable[Sentence],
        *,
        settings: Settings | None = None,
        seed: int = 1,
        folder: Path | None = None,
    ) -> Parser:
        """Train a copy of this parser on trees, otherwise as `adapt`; a word with an unknown head adds no loss."""
        sentences = list(trees)
        if not sentences:
            raise SubdpError("there are no trees to learn from")
        self._remember(tree.words for tree in sentences)
        adapted = self.grown(sentences, seed)._to_train(())
        made = adapt_to_trees(adapted._student, sentences, settings or Settings.resolve(), seed=seed, folder=folder)
        return replace(adapted, about={**made, "adapted_from": self.about})

    def grown(self, trees: Sequence[Sentence], seed: int = 1) -> Parser:
        """This parser with the labels and tags that it lacks and the trees have."""
        annotated = [name for name in self.layers if has_layer(trees, name)]
        return self.with_values(merged([self.inventory, inventory_of(trees, annotated)]), seed)

    def untrained(self, seed: int) -> Parser:
        """The same parser with random weights, to measure what starting from a trained one is worth."""
        torch.manual_seed(seed)
        network = Biaffine(self.config, len(self._layers), self.encoder.hidden, self.inventory)
        return self._with(network.to(self.network.device), about={"untrained": True})

    def with_values(self, inventory: Inventory, seed: int = 1) -> Parser:
        """The same parser with more values after its own; it hardly ever predicts those it has not learnt."""
        if dict(inventory) == dict(self.inventory):
            return self
        torch.manual_seed(seed)
        wider = Biaffine(self.config, len(self._layers), self.encoder.hidden, inventory)
        return self._with(with_values(self.network, self.inventory, inventory, wider), inventory=inventory)

    def _with(self, network: Biaffine, **changes: Any) -> Parser:
        return replace(self, network=network, store=self.features, **changes)

    def _to_train(self, encoder_layers: Sequence[int]) -> Parser:
        """A copy of this parser with its own weights, including those of trained encoder layers."""
        encoder = copy.deepcopy(self.trained_encoder)
        if encoder_layers:
            encoder = TrainableEncoder(self.encoder, self._layers, encoder_layers)
        return self._with(copy.deepcopy(self.network), trained_encoder=encoder)

    @property
    def _student(self) -> Student:
        return Student(self.network, self._stored, self.inventory)

    @property
    def _layers(self) -> tuple[int, ...]:
        return self.encoder.check_layers(self.config.layers)

    @property
    def _fresh(self) -> Batcher:
        """Vectors straight from the encoder."""
        return self.trained_encoder or partial(encoder_batch, self.encoder, self._layers)

    @property
    def _stored(self) -> Batcher:
        """Vectors from the store, for sentences that are in it; a trained encoder bypasses it."""
        return self.trained_encoder or self.features.batch

    def _remember(self, sentences: Iterable[Words], engine: Engine = _HERE) -> None:
        """Add sentences to the feature store; a trained encoder bypasses it."""
        if self.trained_encoder is None:
            self.features.add(sentences, engine)
