"""Word aligners after SimAlign (Jalili Sabet et al. 2020): links from a matrix of cosine similarities.

The functions on matrices are plain numpy; `SimilarityAligner` runs an encoder over sentence pairs and applies one of
them. Links are found between subwords (or words) and reduced to words, which is where many-to-one links come from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
import numpy.typing as npt

from subdp.alignment.aligner import Aligner
from subdp.alignment.links import Alignment
from subdp.corpus.bitext import Pair
from subdp.support.errors import SubdpError

if TYPE_CHECKING:
    from subdp.encoder.encoder import Encoded, Encoder
    from subdp.encoder.feature_store import FeatureStore

Floats = npt.NDArray[np.floating]
Links = npt.NDArray[np.bool_]
Method = Literal["argmax", "itermax", "match", "forward", "reverse"]
Level = Literal["subword", "word"]
Weights = Literal["binary", "count", "similarity"]

DEFAULT_METHOD: Method = "argmax"
DEFAULT_LAYER = 7
# Pairs encoded together. It divides a shard of silver, so that a resumed projection encodes the same sentences together
# as an uninterrupted one, and gets the same bits.
_BLOCK = 256


def cosine(source: Floats, target: Floats) -> Floats:
    """Cosine similarities, rescaled from −1..1 to 0..1 so that a discount lowers every one of them.

    *Shape:* source [m, d], target [n, d] → [m, n].
    """
    unit = [vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9) for vectors in (source, target)]
    result: Floats = np.clip((unit[0] @ unit[1].T + 1) / 2, 0, 1)
    return result


def forward(similarity: Floats) -> Links:
    """Every source row links to its most similar column. *Shape:* [m, n] → the same."""
    return _one_hot(similarity.argmax(axis=1), similarity.shape[1])


def reverse(similarity: Floats) -> Links:
    """Every target column links to its most similar row. *Shape:* [m, n] → the same."""
    return forward(similarity.T).T


def argmax(similarity: Floats) -> Links:
    """Mutual argmax: links that are the best of their row and of their column. *Shape:* [m, n] → the same."""
    return forward(similarity) & reverse(similarity)


def itermax(similarity: Floats) -> Links:
    """Mutual argmax, then a second round for unlinked units, in which links to an already linked unit are discounted.

    As in SimAlign, there is no second round if a side has at most two units or no unlinked one.

    *Shape:* [m, n] → the same.
    """
    links = argmax(similarity)
    rows, columns = ~links.any(axis=1, keepdims=True), ~links.any(axis=0, keepdims=True)
    if min(similarity.shape) <= 2 or not (rows.any() and columns.any()):
        return links
    share = np.where(rows & columns, 1.0, _DISCOUNT) * (rows | columns)
    return links | (argmax(share * similarity) & (rows | columns))


_DISCOUNT = 0.9


def match(similarity: Floats) -> Links:
    """The one-to-one matching of greatest total similarity, with as many links as the shorter side has units.

    *Shape:* [m, n] → the same.
    """
    from scipy.optimize import linear_sum_assignment

    links = np.zeros(similarity.shape, dtype=bool)
    links[linear_sum_assignment(similarity, maximize=True)] = True
    return links


METHODS: dict[Method, Callable[[Floats], Links]] = {
    "argmax": argmax,
    "itermax": itermax,
    "match": match,
    "forward": forward,
    "reverse": reverse,
}


def _one_hot(index: npt.NDArray[np.integer], size: int) -> Links:
    """*Shape:* [m] → [m, size]."""
    result: Links = index[:, None] == np.arange(size)
    return result


@dataclass(frozen=True)
class SimilarityAligner(Aligner):
    """Aligns by the similarity of one layer's vectors; the defaults work best with the bundled encoder.

    The default `layer` is the best one of the bundled encoder, or the one at the same relative depth in another.
    `level` is what is linked: subwords, whose links are then reduced to words, or words (the mean of their subwords).
    `weights` is the weight of a word link: 1, the number of its subword links, or the sum of their similarities.
    Links with a similarity below `null` (0..1) are dropped; `one_to_one` keeps one-to-one links only. With a `store`
    that has the layer, the stored vectors (in half precision) are used and the encoder does not run again.
    """

    encoder: Encoder
    method: Method = DEFAULT_METHOD
    layer: int | None = None
    level: Level = "subword"
    weights: Weights = "binary"
    null: float = 0.0
    one_to_one: bool = False
    store: FeatureStore | None = field(default=None, repr=False)

    reads_vectors = True

    @property
    def fingerprint(self) -> str:
        """The encoder's fingerprint and all settings."""
        return repr(self)

    def __post_init__(self) -> None:
        for name, choices in (("method", Method), ("level", Level), ("weights", Weights)):
            if getattr(self, name) not in get_args(choices):
                reason = f"there is no alignment {name} {getattr(self, name)!r}"
                raise SubdpError(reason, hint=f"choose {', '.join(get_args(choices))}")
        if not 0 <= self.null <= 1:
            raise SubdpError(f"the similarity threshold must be between 0 and 1, not {self.null}")
        if self.layer is not None:
            self.encoder.check_layers([self.layer])

    def align(self, pairs: Iterable[Pair]) -> Iterator[Alignment]:
        """One alignment for each pair, as a stream; with a store, sentences that it lacks are added to it first."""
        stream = iter(pairs)
        while block := list(islice(stream, None if self._stored else _BLOCK)):
            encoded = self.encoded([side for pair in block for side in (pair.source, pair.target)])
            for source, target in zip(encoded, encoded, strict=True):
                yield self.link(source, target)

    def encoded(self, sentences: Sequence[Sequence[str]]) -> Iterator[Encoded]:
        """The vectors of sentences that are compared: at the aligner's layer, from the store if it has it."""
        if self._stored and self.store is not None:
            self.store.add(sentences)
            return self.store.encode(sentences, [self._layer])
        return self.encoder.encode(sentences, [self._layer])

    @property
    def _layer(self) -> int:
        return default_layer(self.encoder.layers) if self.layer is None else self.layer

    @property
    def _stored(self) -> bool:
        return self.store is not None and self._layer in self.store.layers

    def link(self, source: Encoded, target: Encoded) -> Alignment:
        """The alignment of two sentences, each encoded at a single layer."""
        (source_vectors, source_words), (target_vectors, target_words) = self._units(source), self._units(target)
        similarity = cosine(source_vectors, target_vectors)
        rows, columns = np.nonzero(METHODS[self.method](similarity) & (similarity >= self.null))
        strength = similarity[rows, columns] if self.weights == "similarity" else np.ones(len(rows))
        matrix = np.zeros((len(source.first), len(target.first)))
        np.add.at(matrix, (source_words[rows], target_words[columns]), strength)
        alignment = Alignment.from_matrix(matrix > 0 if self.weights == "binary" else matrix)
        return alignment.one_to_one() if self.one_to_one else alignment

    def _units(self, side: Encoded) -> tuple[Floats, npt.NDArray[np.integer]]:
        """The units to link, and the word that each belongs to. *Shape:* [units, hidden], [units]."""
        (vectors,) = side.vectors.astype(np.float32)
        if self.level == "subword":
            return vectors, side.owners
        sums = np.add.reduceat(vectors, side.first, axis=0)
        return sums / (side.last - side.first + 1)[:, None], np.arange(len(side.first))


def default_layer(layers: int) -> int:
    """The layer to align with in an encoder with this many: the same relative depth as layer 7 of the bundled 12."""
    return round(DEFAULT_LAYER / 12 * layers)
