"""The other parsers and the other aligner, at our sizes and with our encoder: what several benchmarks compare with.

All of them are called the way their users call them, with their own loops. Nothing here runs unless it is installed
(`peers.txt`).
"""

from __future__ import annotations

import logging
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch.optim import Adam
from torch.optim.lr_scheduler import ExponentialLR

from subdp.corpus.treebank import Sentence, write_conllu
from subdp.encoder.bundled.export import export_bundled
from subdp.encoder.encoder import Encoder
from subdp.support.cache import cache_folder
from subdp.support.settings import NetworkConfig, TrainConfig

BUCKETS = 8  # supar's number of length buckets. With more, its batches would not be full on a sample.
WORD_VECTOR = 100  # supar has vectors of words beside the encoder's: this much of the BiLSTM's input.


def model_folder(encoder: Encoder) -> Path:
    """The encoder as transformers, and so every peer, loads it; that of the bundled one is kept in the cache."""
    return export_bundled(cache_folder() / "encoders" / "exported") if encoder.name == "bundled" else encoder.folder


class Supar:
    """supar's biaffine parser."""

    def __init__(
        self,
        sentences: Sequence[Sentence],
        encoder: Encoder,
        network: NetworkConfig,
        training: TrainConfig,
        folder: Path,
    ):
        from supar import BiaffineDependencyParser

        file = str(folder / "train.conllu")
        write_conllu(sentences, file)
        torch.manual_seed(1)
        self.batch_words = training.batch_words
        self.parser: Any = BiaffineDependencyParser.build(
            path=str(folder / "model"),
            build=True,
            train=file,
            encoder="lstm",
            feat=["bert"],
            bert=str(model_folder(encoder)),
            freeze=True,
            embed=None,
            n_embed=WORD_VECTOR,
            n_feat_embed=network.features - WORD_VECTOR,
            n_bert_layers=len(encoder.check_layers(network.layers)),
            n_lstm_hidden=network.lstm,
            n_lstm_layers=network.lstm_layers,
            n_arc_mlp=network.arc,
            n_rel_mlp=network.label,
        )
        self.parser.args.update({"clip": training.clip, "update_steps": 1, "punct": True, "partial": False})
        self.begin(training)
        self.loader = self.load(file, training.batch_words, shuffle=True).loader

    def begin(self, training: TrainConfig) -> None:
        """A new optimiser, for a training from where the network is."""
        self.parser.optimizer = Adam(self.parser.model.parameters(), training.lr, (0.9, 0.9), 1e-12)
        self.parser.scheduler = ExponentialLR(self.parser.optimizer, 0.75 ** (1 / training.decay_steps))

    def load(self, data: Any, batch_words: int, *, shuffle: bool) -> Any:
        """supar's batches of a file, or of sentences as words."""
        from supar.utils import Dataset

        self.parser.transform.train(isinstance(data, str))  # Words alone have no trees to load.
        return Dataset(self.parser.transform, data).build(batch_words, BUCKETS, shuffle=shuffle)

    def epoch(self) -> None:
        """One pass over the treebank, by supar's own loop."""
        self.parser.transform.train()
        self.parser._train(self.loader)

    def scores(self, batch: Any) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Of a batch without trees the scores of arcs and labels, and True at its words, as supar's loops have them."""
        words, _, *features = batch
        mask = words.ne(self.parser.args.pad_index)
        mask = mask if mask.dim() < 3 else mask.any(-1)
        arcs, labels = self.parser.model(words, features)
        mask[:, 0] = False
        return arcs, labels, mask

    def parse(self, sentences: Sequence[Sentence]) -> list[Sentence]:
        """The best trees."""
        words = [list(sentence.words) for sentence in sentences]
        found = self.parser.predict(words, buckets=BUCKETS, batch_size=self.batch_words, verbose=False)
        trees = zip(sentences, found.arcs, found.rels, strict=True)
        return [sentence.with_tree(heads, labels) for sentence, heads, labels in trees]


class Stanza:
    """The network of stanza's depparse over the encoder alone: no tags, lemmas, characters or vectors of words."""

    def __init__(
        self,
        sentences: Sequence[Sentence],
        encoder: Encoder,
        network: NetworkConfig,
        training: TrainConfig,
        folder: Path,
    ):
        from stanza.models.depparse.trainer import GraphTrainer
        from stanza.models.parser import build_argparse

        logging.getLogger("stanza").setLevel(logging.WARNING)
        self.folder, self.batch_words = folder, training.batch_words
        flags = ["--no_char", "--no_pretrain", "--no_upos", "--no_xpos", "--no_ufeats", "--no_linearization"]
        sizes = {
            "shorthand": "en_x",
            "bert_model": model_folder(encoder),
            "bert_hidden_layers": len(encoder.check_layers(network.layers)),
            "hidden_dim": network.lstm,
            "num_layers": network.lstm_layers,
            "deep_biaff_hidden_dim": network.arc,
            "word_emb_dim": 0,
            "tag_emb_dim": 0,
            "batch_size": training.batch_words,
        }
        named = [str(part) for name, value in sizes.items() for part in (f"--{name}", value)]
        self.options = vars(build_argparse().parse_args([*flags, "--no_distance", *named]))
        torch.manual_seed(1)
        random.seed(1)
        self.vocabulary: Any = None
        self.loader = self.load(sentences, evaluation=False)
        self.vocabulary = self.loader.vocab
        self.trainer: Any = GraphTrainer(args=self.options, vocab=self.vocabulary, device="cpu")

    def load(self, sentences: Sequence[Sentence], *, evaluation: bool) -> Any:
        """stanza's batches of sentences."""
        from stanza.models.depparse.data import DataLoader
        from stanza.utils.conll import CoNLL

        file = str(self.folder / "stanza.conllu")
        write_conllu(sentences, file)
        loaded = CoNLL.conll2doc(input_file=file)
        how = {"evaluation": evaluation, "sort_during_eval": evaluation}
        return DataLoader(loaded, self.batch_words, self.options, None, vocab=self.vocabulary, **how)

    def epoch(self) -> None:
        """One pass over the treebank, as stanza's training loop does."""
        for batch in self.loader:
            self.trainer.update(batch, eval=False)

    def parse(self, sentences: Sequence[Sentence]) -> list[Sentence]:
        """The best trees."""
        from stanza.models.depparse.utils import predict_dataset

        found = predict_dataset(self.trainer, self.load(sentences, evaluation=True))
        return [
            sentence.with_tree([int(head) for head, _ in tree], [label for _, label in tree])
            for sentence, tree in zip(sentences, found, strict=True)
        ]


def load_simalign(folder: Path, methods: str, layer: int) -> Any:
    """simalign's aligner; exits with a message if it cannot be imported."""
    from transformers.utils import logging as chatter

    chatter.set_verbosity_error()
    chatter.disable_progress_bar()
    try:
        from simalign import SentenceAligner
    except ModuleNotFoundError as error:
        raise SystemExit(f"nothing to compare with: {error.name} is not installed (benchmarks/peers.txt)") from None
    logging.getLogger("simalign.simalign").setLevel(logging.WARNING)
    return SentenceAligner(model=str(folder), token_type="bpe", matching_methods=methods, layer=layer)
