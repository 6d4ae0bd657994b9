"""The feature store: a frozen encoder's vectors on disk, so that no sentence is encoded twice.

    store = FeatureStore(encoder, layers=range(9))
    store.add(sentences)                    # encodes those that are missing, with a progress bar on a terminal
    batch = store.batch(sentences[:250])    # one big copy out of memory-mapped files

A store belongs to one encoder (by its fingerprint) and one choice of layers. It is a folder of shards: Arrow IPC files
of about 64 MB or 100,000 words at most, each written under a temporary name, renamed when complete and never changed
afterwards. So any number of processes may read and write at once; at worst two of them encode the same sentence.
Imports torch; `Parser` and the similarity aligner use it.
"""

from __future__ import annotations

import contextlib
import json
import time
import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from subdp.encoder.batch import Batch, chunks
from subdp.encoder.encoder import Encoded, Encoder
from subdp.encoder.shards import KEY, Keys, Row, Shard, Shards, pack, write_shard
from subdp.support.cache import cache_folder, keep_limit, mark_used
from subdp.support.engine import Engine, LocalEngine
from subdp.support.errors import SubdpError
from subdp.support.on_disk import Lines, Seen
from subdp.support.progress import progress

if TYPE_CHECKING:
    import pyarrow as pa

_SHARD_BYTES = 64 << 20
_SHARD_WORDS = 100_000  # Of a small encoder: its words take more memory than their vectors.
_LOOKED_UP = 4096  # Sentences looked up at once.
_STALE_SECONDS = 3600  # A shard is written in a moment: a temporary file this old was left by an interrupted run.
_ABOUT = "store.json"
_HERE = LocalEngine()
_FORMAT = 2  # Part of a store's name, so that stores in another format are not read.


@dataclass(frozen=True, slots=True)
class StoreSize:
    """A store on disk: its encoder and layers, as far as they are recorded, and its size in bytes."""

    folder: Path
    encoder: str
    layers: tuple[int, ...]
    bytes: int


class FeatureStore:
    """Features of one encoder at some of its layers (default: all), below `root` (default: the user's cache)."""

    def __init__(self, encoder: Encoder, layers: Sequence[int] | None = None, root: Path | None = None):
        self.encoder, self.layers = encoder, encoder.check_layers(layers)
        name = f"{encoder.fingerprint}-v{_FORMAT}-{'_'.join(map(str, self.layers))}"
        self.folder = (features_folder() if root is None else root) / name
        self._shards = Shards()
        self._find_shards()

    def __len__(self) -> int:
        return len(self._shards)

    def __contains__(self, sentence: Sequence[str]) -> bool:
        return bool(self._shards.find(_keys([sentence]))[0] >= 0)

    def __reduce__(self) -> Any:
        return FeatureStore, (self.encoder, self.layers, self.folder.parent)

    def add(self, sentences: Iterable[Sequence[str]], engine: Engine = _HERE) -> int:
        """Encode and store the sentences that are missing; return how many there were.

        A shard is a unit of work. A sentence's vectors depend slightly on the others in its batch; with fixed units
        they are the same to the last bit after an interruption, and in whichever process.
        """
        self._find_shards()
        # On disk, to be gone through twice: how many words there are says how long it will take.
        missing = Lines.of(self._missing(sentences), lambda words: json.dumps(words).encode(), json.loads)
        if not missing:
            return 0
        self._prepare_folder()
        most = min(_SHARD_WORDS, _SHARD_BYTES // (4 * len(self.layers) * self.encoder.hidden))  # two vectors a word
        with progress("encoding", sum(map(len, missing)), "words") as advance:
            for words in engine.map(self.write_unit, chunks(missing, most)):
                advance(words)
        self._find_shards()
        keep_limit()
        return len(missing)

    def write_unit(self, sentences: Sequence[Sequence[str]]) -> int:
        """Encode the sentences of one shard and write it under a hash of them; return the number of words."""
        keys = list(map(_key, sentences))
        batch = pack(
            Row.of(key, sentence)
            for key, sentence in zip(keys, self.encoder.encode(sentences, self.layers), strict=True)
        )
        self._write(batch, blake2b(b"".join(keys), digest_size=16).hexdigest())
        return sum(map(len, sentences))

    def _missing(self, sentences: Iterable[Sequence[str]]) -> Iterator[Sequence[str]]:
        """The sentences that are not in the store, or only in a damaged shard; each once, in order."""
        stream, seen = iter(sentences), Seen()
        while part := list(islice(stream, _LOOKED_UP)):
            keys = _keys(part)
            places = self._shards.find_sound(keys)
            for file in self._shards.files_of(places):
                mark_used(file)
            for index in np.flatnonzero(places < 0).tolist():
                if seen.add(keys[index]):
                    yield part[index]

    def batch(self, sentences: Sequence[Sequence[str]]) -> Batch:
        """The features of sentences that have been added: one copy, no other work."""
        parts = self._shards.rows(_keys(sentences))
        sizes = np.concatenate([np.zeros(0, np.int64), *(part for part, _ in parts)], dtype=np.int64)
        kept = 1 + (sizes > 1)  # the first and the last subword of each word, once where they are the same
        vectors = torch.empty((int(kept.sum()), len(self.layers), self.encoder.hidden), dtype=torch.float16)
        flat, done = vectors.numpy().reshape(-1, len(self.layers) * self.encoder.hidden), 0
        for part, stored in parts:
            rows = _endpoints(part)
            np.take(stored.reshape(-1, flat.shape[1]), rows, axis=0, out=flat[done : done + len(rows)], mode="clip")
            done += len(rows)
        lengths = np.array([len(part) for part, _ in parts], np.int64)
        inside = np.arange(max(lengths, default=0)) < lengths[:, None]
        first, last = np.zeros(inside.shape, np.int64), np.zeros(inside.shape, np.int64)
        ends = np.cumsum(kept)
        first[inside], last[inside] = ends - kept, ends - 1
        return Batch(vectors, torch.from_numpy(first), torch.from_numpy(last), torch.from_numpy(lengths))

    def encode(self, sentences: Iterable[Sequence[str]], layers: Sequence[int]) -> Iterator[Encoded]:
        """As `Encoder.encode`, in half precision, for sentences that have been added."""
        columns = [self.layers.index(layer) for layer in layers]
        for words in sentences:
            ((sizes, stored),) = self._shards.rows(_keys([words]))
            vectors = stored.reshape(-1, len(self.layers), self.encoder.hidden)[:, columns]
            ends = np.cumsum(sizes, dtype=np.int32)
            yield Encoded(vectors.swapaxes(0, 1), ends - sizes.astype(np.int32), ends - 1)

    def _find_shards(self) -> None:
        """Open the shards that are new on disk. A damaged one is removed; its sentences then count as missing."""
        found = []
        for file in sorted({*self.folder.glob("*.arrow")} - self._shards.files):
            shard = Shard.read(file, len(self.layers) * self.encoder.hidden)
            if shard is None:
                with contextlib.suppress(OSError):
                    file.unlink()
            else:
                found.append(shard)
        self._shards.add(found)

    def _prepare_folder(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        for file in self.folder.glob("*.part"):
            with contextlib.suppress(OSError):
                if time.time() - file.stat().st_mtime > _STALE_SECONDS:
                    file.unlink()
        about = {"encoder": self.encoder.title, "layers": self.layers, "hidden": self.encoder.hidden}
        (self.folder / _ABOUT).write_text(json.dumps(about), encoding="utf-8")

    def _write(self, batch: pa.RecordBatch, name: str) -> None:
        part = self.folder / f"{uuid.uuid4().hex}.part"
        try:
            write_shard(batch, part)
            part.replace(self.folder / f"{name}.arrow")
        except OSError as error:
            hint = "free some space, or set SUBDP_CACHE to a folder on another disk"
            raise SubdpError(f"features cannot be written: {error.strerror}", where=str(part), hint=hint) from error
        finally:
            part.unlink(missing_ok=True)


def _endpoints(sizes: NDArray[np.uint16]) -> NDArray[np.int64]:
    """Where the first and the last subword of each word are, once if they are the same. *Shape:* [words] → [kept]."""
    ends = np.cumsum(sizes, dtype=np.int64)
    both = np.stack([ends - sizes, ends - 1], axis=1)
    kept: NDArray[np.int64] = both[np.stack([np.ones(len(sizes), bool), sizes > 1], axis=1)]
    return kept


def _keys(sentences: Sequence[Sequence[str]]) -> Keys:
    return np.fromiter(map(_key, sentences), KEY, len(sentences))


def _key(words: Sequence[str]) -> bytes:
    # JSON keeps words apart whatever characters they have, even if they have none.
    text = json.dumps(tuple(words), ensure_ascii=False)
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def features_folder() -> Path:
    """Where stores are kept by default."""
    return cache_folder() / "features"


def store_sizes(root: Path | None = None) -> list[StoreSize]:
    """All stores below `root`, the largest first."""
    found = []
    for folder in (features_folder() if root is None else root).glob("*/"):
        about: dict[str, Any] = {}
        with contextlib.suppress(OSError, ValueError):
            about = json.loads((folder / _ABOUT).read_text(encoding="utf-8"))
        size = sum(file.stat().st_size for file in folder.iterdir())
        found.append(StoreSize(folder, about.get("encoder", "?"), tuple(about.get("layers", ())), size))
    return sorted(found, key=lambda store: store.bytes, reverse=True)
