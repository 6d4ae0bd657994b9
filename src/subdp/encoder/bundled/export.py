"""The bundled encoder as a model folder that transformers loads: what tests and benchmarks compare with.

Imports `tokenizers`, which comes with transformers. Never imports torch.
"""

from __future__ import annotations

import json
import struct
from pathlib import Path

import numpy as np

from subdp.encoder.bundled.convert import WORDS, Weights, dequantise, read_weights, weights_file


def export_bundled(folder: Path) -> Path:
    """Write the four files of a model folder, 470 MB, and give it back; a folder that has them stays as it is."""
    from safetensors.numpy import save_file

    if (folder / "config.json").exists():
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    weights = read_weights(weights_file())
    tensors = dict(weights.tensors)
    blocks = tensors.pop(WORDS)
    tensors["embeddings.word_embeddings.weight"] = dequantise(blocks).reshape(len(blocks), -1)
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    write_tokenizer(weights, folder)
    (folder / "config.json").write_text(json.dumps(weights.config, indent=2), encoding="utf-8")
    return folder


def write_tokenizer(weights: Weights, folder: Path) -> None:
    """Write the tokenizer as the library `tokenizers` loads it."""
    from tokenizers import AddedToken, Regex, Tokenizer, normalizers, pre_tokenizers, processors
    from tokenizers.models import Unigram

    pieces, config = weights.pieces, weights.config
    text = {f"{role}_token": pieces[config[f"{role}_token_id"]][0] for role in ("bos", "eos", "pad", "unk")}
    bos, eos = text["bos_token"], text["eos_token"]
    tokenizer = Tokenizer(Unigram(pieces, unk_id=config["unk_token_id"], byte_fallback=False))
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.Precompiled(characters_map(weights.characters)), normalizers.Replace(Regex(" {2,}"), " ")]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always")
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{bos} $A {eos}",
        pair=f"{bos} $A {eos} {eos} $B {eos}",
        special_tokens=[(bos, config["bos_token_id"]), (eos, config["eos_token_id"])],
    )
    tokenizer.add_special_tokens([*text.values(), AddedToken("<mask>", lstrip=True)])
    tokenizer.save(str(folder / "tokenizer.json"), pretty=False)
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": config["max_position_embeddings"],
        "cls_token": bos,
        "sep_token": eos,
        "mask_token": "<mask>",
        **text,
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(settings, indent=2), encoding="utf-8")


def characters_map(rules: dict[str, str]) -> bytes:
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
