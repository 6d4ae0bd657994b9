"""Tiny real encoders with random weights, built in memory: what tests use in place of a downloaded model."""

from __future__ import annotations

import string
from pathlib import Path
from typing import Any, Literal

import torch

Kind = Literal["bert", "wordpiece", "xlm-roberta", "mbart"]

SPECIAL = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
CHARACTERS = string.ascii_letters + string.digits + string.punctuation + "äöüßéèêçñığşİабвгдежзи"
PIECES = ["▁the", "▁a", "▁in", "▁to", "▁of", "▁and", "ing", "ed", "er", "es", "en", "th", "sch", "▁St", "▁ver", "ung"]


def tiny_encoder(folder: Path, kind: Kind = "bert", *, layers: int = 3, hidden: int = 16, positions: int = 64) -> Path:
    """Save a small encoder and its tokenizer into `folder` and return it; the same call gives the same weights.

    `bert` has a SentencePiece-like tokenizer, as the bundled encoder does; `wordpiece` is mBERT's family; `xlm-roberta`
    counts its positions from 2; `mbart` is an encoder-decoder.
    """
    from transformers import (
        BertConfig,
        BertModel,
        MBartConfig,
        MBartModel,
        PreTrainedTokenizerFast,
        XLMRobertaConfig,
        XLMRobertaModel,
    )

    tokenizer = _wordpiece() if kind == "wordpiece" else _unigram()
    sizes: dict[str, Any] = {"vocab_size": len(tokenizer.get_vocab()), "pad_token_id": 1, "bos_token_id": 0}
    if kind == "mbart":
        sides = {
            f"{side}_{name}": value
            for side in ("encoder", "decoder")
            for name, value in (("layers", layers), ("attention_heads", 2), ("ffn_dim", 2 * hidden))
        }
        config: Any = MBartConfig(d_model=hidden, max_position_embeddings=positions, eos_token_id=2, **sides, **sizes)
    else:
        make = XLMRobertaConfig if kind == "xlm-roberta" else BertConfig
        config = make(
            hidden_size=hidden,
            num_hidden_layers=layers,
            num_attention_heads=2,
            intermediate_size=2 * hidden,
            max_position_embeddings=positions + (2 if kind == "xlm-roberta" else 0),
            initializer_range=0.3,
            **sizes,
        )
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = {"mbart": MBartModel, "xlm-roberta": XLMRobertaModel}.get(kind, BertModel)(config)
    model.save_pretrained(folder)
    names = dict(zip(("bos", "pad", "eos", "unk", "mask"), SPECIAL, strict=True)) | {"cls": "<s>", "sep": "</s>"}
    tokens = {f"{role}_token": token for role, token in names.items()}
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=positions, **tokens).save_pretrained(folder)
    return folder


def _unigram() -> Any:
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

    pieces = [(piece, 0.0) for piece in SPECIAL] + [("▁", -2.0)]
    pieces += [(piece, -3.0) for piece in PIECES] + [(character, -5.0) for character in CHARACTERS]
    tokenizer = Tokenizer(models.Unigram(pieces, unk_id=3, byte_fallback=False))
    # As in the real ones, some characters are nothing at all.
    tokenizer.normalizer = normalizers.Sequence([normalizers.Nmt(), normalizers.NFKC()])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    return _with_special(tokenizer)


def _wordpiece() -> Any:
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

    pieces = [*SPECIAL, *CHARACTERS, *(f"##{piece.strip('▁')}" for piece in (*PIECES, *CHARACTERS))]
    numbers = {piece: number for number, piece in enumerate(dict.fromkeys(pieces))}
    tokenizer = Tokenizer(models.WordPiece(numbers, unk_token="<unk>"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=False)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return _with_special(tokenizer)


def _with_special(tokenizer: Any) -> Any:
    from tokenizers import processors

    tokenizer.add_special_tokens(SPECIAL)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> </s> $B </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    return tokenizer
