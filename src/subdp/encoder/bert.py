"""The bundled encoder's network and tokenizer, as far as `Encoder` uses them.

They compute what transformers computes from the same folder, without its import, which takes about four seconds. All
other encoders go through transformers (`pretrained.py`). Imports torch.
"""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.nn import functional

from subdp.encoder.bundled import LAYER
from subdp.support.errors import SubdpError


def load_bundled(folder: Path, dtype: torch.dtype) -> tuple[Bert, Subwords]:
    """The network and the tokenizer in the bundled encoder's model folder."""
    from tokenizers import Tokenizer

    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        with torch.device("meta"):  # No random weights: these are replaced.
            model = Bert(config)
        weights = load_file(folder / "model.safetensors")
        model.load_state_dict({name: weights[_full_name(name)].to(dtype) for name in model.state_dict()}, assign=True)
        return model, Subwords(Tokenizer.from_file(str(folder / "tokenizer.json")), config)
    except MemoryError:
        raise
    except Exception as error:  # The tokenizer has no exception class of its own.
        reason = f"{type(error).__name__}: {' '.join(str(error).split())}"
        hint = "if its files are damaged, remove the folder; it will be made again"
        raise SubdpError(f"the bundled encoder cannot be loaded: {reason}", where=str(folder), hint=hint) from error


def _full_name(name: str) -> str:
    """The name in the folder of one of our weights; the parts of a layer have short names here."""
    whole, *parts = name.split(".")
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
        sizes = {"word": "vocab_size", "position": "max_position_embeddings", "token_type": "type_vocab_size"}
        # Not nn.Embedding: making one without weights imports torch's compiler, which takes a second.
        self.embeddings = nn.ParameterDict({name: torch.empty(config[size], hidden) for name, size in sizes.items()})
        self.norm = nn.LayerNorm(hidden, config["layer_norm_eps"])
        self.layers = nn.ModuleList(_Layer(config) for _ in range(config["num_hidden_layers"]))

    @property
    def device(self) -> torch.device:
        """The device of its weights."""
        return next(self.parameters()).device

    @property
    def dtype(self) -> torch.dtype:
        """The dtype of its weights."""
        return next(self.parameters()).dtype

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> SimpleNamespace:
        """The states after the last layer.

        *Shape:* `input_ids`, `attention_mask` [rows, length] → `last_hidden_state` [rows, length, hidden].
        """
        tables = self.embeddings
        x = self.norm(tables["word"][input_ids] + tables["token_type"][0] + tables["position"][: input_ids.shape[1]])
        seen = attention_mask.bool()[:, None, None]  # [rows, 1, 1, length]
        for layer in self.layers:
            x = layer(x, seen)
        return SimpleNamespace(last_hidden_state=x)


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


class Subwords:
    """The tokenizer, called as `Encoder` calls those of transformers."""

    def __init__(self, tokenizer: Any, config: dict[str, Any]):
        self._tokenizer = tokenizer
        self.model_max_length: int = config["max_position_embeddings"]
        self.pad_token_id: int = config["pad_token_id"]
        self.unk_token_id: int = config["unk_token_id"]

    def __call__(
        self,
        text: str | list[str],
        *,
        add_special_tokens: bool = True,
        verbose: bool = True,
    ) -> dict[str, Any]:
        """The subword ids of a text, or of each of several; `verbose` has no effect."""
        if isinstance(text, str):
            return {"input_ids": self._tokenizer.encode(text, add_special_tokens=add_special_tokens).ids}
        cuts = self._tokenizer.encode_batch_fast(text, add_special_tokens=add_special_tokens)
        return {"input_ids": [cut.ids for cut in cuts]}
