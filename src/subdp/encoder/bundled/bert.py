"""The bundled encoder's network, as far as `Encoder` uses it.

It computes what transformers computes from the same weights, without its import, which takes about four seconds. All
other encoders go through transformers (`pretrained.py`). The weights stay in the mapped file; only the rows of word
embeddings that a batch needs are unpacked. Imports torch.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.nn import functional

from subdp.encoder.bundled.convert import BLOCK, BLOCK_BYTES, LAYER, WORDS
from subdp.encoder.bundled.subwords import Subwords
from subdp.support.errors import SubdpError


def load_bundled(folder: Path, dtype: torch.dtype) -> tuple[Bert, Subwords]:
    """The network and the tokenizer in the bundled encoder's model folder."""
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        with torch.device("meta"):  # No random weights: these are replaced.
            model = Bert(config)
        weights = load_file(folder / "model.safetensors")
        state = {name: weights[_full_name(name)] for name in model.state_dict()}
        floats = {name: tensor.to(dtype) for name, tensor in state.items() if tensor.is_floating_point()}
        model.load_state_dict(state | floats, assign=True)
        return model, Subwords(folder, config)
    except MemoryError:
        raise
    except Exception as error:  # Of many kinds, which all mean the same to the user.
        reason = f"{type(error).__name__}: {' '.join(str(error).split())}"
        hint = "if its files are damaged, remove the folder; it will be made again"
        raise SubdpError(f"the bundled encoder cannot be loaded: {reason}", where=str(folder), hint=hint) from error


def _full_name(name: str) -> str:
    """The name in the folder of one of our weights; the parts of a layer have short names here."""
    whole, *parts = name.split(".")
    if whole == "words":
        return WORDS
    if whole == "embeddings":
        return f"embeddings.{parts[0]}_embeddings.weight"
    if whole == "norm":
        return f"embeddings.LayerNorm.{parts[0]}"
    number, part, kind = parts
    return f"encoder.layer.{number}.{LAYER[part]}.{kind}"


class Bert(nn.Module):
    """BERT's encoder: embeddings, and a list of layers, whose outputs `Encoder` reads."""

    def __init__(self, config: dict[str, Any]):
        super().__init__()
        self.config = SimpleNamespace(**config)
        hidden = config["hidden_size"]
        sizes = {"position": "max_position_embeddings", "token_type": "type_vocab_size"}
        # Not nn.Embedding: making one without weights imports torch's compiler, which takes a second.
        self.embeddings = nn.ParameterDict({name: torch.empty(config[size], hidden) for name, size in sizes.items()})
        blocks = torch.empty(config["vocab_size"], hidden // BLOCK * BLOCK_BYTES, dtype=torch.uint8)
        self.words = nn.Parameter(blocks, requires_grad=False)
        self.norm = nn.LayerNorm(hidden, config["layer_norm_eps"])
        self.layers = nn.ModuleList(_Layer(config) for _ in range(config["num_hidden_layers"]))

    @property
    def device(self) -> torch.device:
        """The device of its weights."""
        return self.norm.weight.device

    @property
    def dtype(self) -> torch.dtype:
        """The dtype of its weights."""
        return self.norm.weight.dtype

    def get_input_embeddings(self) -> Callable[[Tensor], Tensor]:
        """What gives the embeddings of subwords, under the name that transformers has for it."""
        return lambda ids: dequantised(self.words[ids]).to(self.dtype)

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> SimpleNamespace:
        """The states after the last layer.

        *Shape:* `input_ids`, `attention_mask` [rows, length] → `last_hidden_state` [rows, length, hidden].
        """
        tables = self.embeddings
        words = self.get_input_embeddings()(input_ids)
        x = self.norm(words + tables["token_type"][0] + tables["position"][: input_ids.shape[1]])
        seen = attention_mask.bool()[:, None, None]  # [rows, 1, 1, length]
        for layer in self.layers:
            x = layer(x, seen)
        return SimpleNamespace(last_hidden_state=x)


def dequantised(blocks: Tensor) -> Tensor:
    """Rows of weights from their blocks, exactly: what `bundled.dequantise` does, for tensors.

    *Shape:* [..., blocks · 18] bytes → [..., blocks · 32] float32.
    """
    parts = blocks.reshape(*blocks.shape[:-1], -1, BLOCK_BYTES)
    scale = parts[..., :2].contiguous().view(torch.float16).float()
    weights = torch.cat([parts[..., 2:] & 15, parts[..., 2:] >> 4], dim=-1).float()
    return ((weights - 8) * scale).flatten(-2)


class _Layer(nn.Module):
    """Self-attention, then feed-forward with GELU; each with a residual connection and layer normalisation."""

    def __init__(self, config: dict[str, Any]):
        super().__init__()
        hidden, wide, epsilon = config["hidden_size"], config["intermediate_size"], config["layer_norm_eps"]
        self.heads = config["num_attention_heads"]
        self.q, self.k, self.v, self.ao = (nn.Linear(hidden, hidden) for _ in range(4))
        self.fi, self.fo = nn.Linear(hidden, wide), nn.Linear(wide, hidden)
        self.aln, self.oln = (nn.LayerNorm(hidden, epsilon) for _ in range(2))

    def forward(self, x: Tensor, seen: Tensor) -> Tensor:
        """*Shape:* x [rows, length, hidden], seen [rows, 1, 1, length] → [rows, length, hidden]."""
        q, k, v = (part(x).unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in (self.q, self.k, self.v))
        found = functional.scaled_dot_product_attention(q, k, v, seen)
        x = self.aln(self.ao(found.transpose(1, 2).flatten(2)) + x)
        normalised: Tensor = self.oln(self.fo(functional.gelu(self.fi(x))) + x)
        return normalised
