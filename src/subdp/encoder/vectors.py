"""Where the vectors that a parser reads come from: straight from its encoder, or from the store of what was encoded."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

from subdp.encoder.batch import Batcher, Words
from subdp.encoder.encoder import Encoder
from subdp.encoder.feature_store import FeatureStore
from subdp.encoder.trainable import EMBEDDINGS, TrainableEncoder, embeddings_batch, encoder_batch
from subdp.support.engine import Engine, LocalEngine

_HERE = LocalEngine()


@dataclass(frozen=True)
class Vectors:
    """An encoder at some of its layers (None: all), with layers of it that were trained and a store, if there are any.

    Without a store of its own it has the one in the user's cache.
    """

    encoder: Encoder
    chosen: Sequence[int] | None
    trained: TrainableEncoder | None = None
    given: FeatureStore | None = None

    @property
    def layers(self) -> tuple[int, ...]:
        """The layers by number."""
        return self.encoder.check_layers(self.chosen)

    @cached_property
    def store(self) -> FeatureStore:
        """The store of the encoder's vectors at these layers."""
        return FeatureStore(self.encoder, self.chosen) if self.given is None else self.given

    @property
    def fresh(self) -> Batcher:
        """Vectors straight from the encoder."""
        if self.layers == EMBEDDINGS:
            return partial(embeddings_batch, self.encoder)
        return self.trained or partial(encoder_batch, self.encoder, self.layers)

    @property
    def stored(self) -> Batcher:
        """Vectors from the store, for sentences that were remembered; fresh ones where nothing is stored."""
        return self.store.batch if self._stores else self.fresh

    def remember(self, sentences: Iterable[Words], engine: Engine = _HERE) -> int:
        """Add sentences to the store, unless nothing is stored; gives back how many were new to it."""
        return self.store.add(sentences, engine) if self._stores else 0

    def to_train(self, more: Sequence[int]) -> TrainableEncoder | None:
        """A copy of the encoder layers that were trained, together with `more` that will be; none if there are none."""
        layers = sorted({*more, *(self.trained.trained if self.trained is not None else ())})
        encoder = TrainableEncoder(self.encoder, self.layers, layers) if layers else None
        if encoder is not None and self.trained is not None:
            encoder.load_state_dict(self.trained.state_dict(), strict=False)  # New layers start as they were.
        return encoder

    @property
    def _stores(self) -> bool:
        """Whether vectors are stored: those of a trained encoder change, and embeddings are looked up in no time."""
        return self.trained is None and self.layers != EMBEDDINGS
