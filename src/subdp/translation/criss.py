"""Convert CRISS (Tran et al. 2020), the paper's translator and encoder, from a fairseq checkpoint to an mBART folder.

    convert(Path("criss_checkpoints/criss.3rd.pt"), Path("criss"))

CRISS was trained on sources without a language token (`words </s>`) and on targets that begin with one (`</s> de_DE
words </s>`), and so the folder's tokenizer and settings are made. No code in a checkpoint is run. Imports torch;
transformers, sentencepiece and protobuf only when called.
"""

from __future__ import annotations

import pickle
import re
import tempfile
from argparse import Namespace
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from subdp.encoder.pretrained import require_transformers
from subdp.support.errors import SubdpError, counted

_SPECIAL = ("<s>", "<pad>", "</s>", "<unk>")  # Rows 0 to 3 of fairseq's embeddings.
_END, _UNKNOWN = 2, 3
_OFFSET = 2  # Positions start after the padding index.
_COPIES = ("model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight")
_FAIRSEQ_SHARED = (*_COPIES, "model.decoder.output_projection.weight")
_SHARED = (*_COPIES, "model.shared.weight", "lm_head.weight")


def convert(checkpoint: Path, folder: Path) -> None:
    """Write a checkpoint as a model folder, completely or not at all.

    `checkpoint` is a `.pt` file or a folder with one. `dict.txt`, `lang_dict.txt` (the languages in the order of
    training) and `sentence.bpe.model` must be in the same folder, as in the CRISS archive.
    """
    require_transformers("CRISS")
    file = _find(checkpoint)
    if folder.exists():
        raise SubdpError("already exists", where=str(folder), hint="choose a new folder")
    tokens = _Tokens.read(file.parent)
    settings, weights = _load(file)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{folder.name}.", dir=folder.parent) as temporary:
            made = Path(temporary) / "model"
            positions = _save_model(settings, weights, len(tokens.pieces), made, str(file))
            _save_tokenizer(tokens, positions, made)
            made.replace(folder)
    except OSError as error:
        raise SubdpError(f"cannot be written: {error.strerror}", where=str(folder)) from None


def _find(checkpoint: Path) -> Path:
    if not checkpoint.is_dir():
        return checkpoint
    files = sorted(checkpoint.glob("*.pt"))
    if len(files) != 1:
        names = ", ".join(file.name for file in files) or "none"
        reason = f"holds {counted(len(files), 'checkpoint')} instead of one: {names}"
        raise SubdpError(reason, where=str(checkpoint), hint="give the .pt file itself")
    return files[0]


def _load(file: Path) -> tuple[Namespace, dict[str, Tensor]]:
    """A checkpoint's settings and weights. Anything but plain data is refused and never run."""
    try:
        with torch.serialization.safe_globals(_harmless()):
            content = torch.load(file, map_location="cpu", weights_only=True)
    except FileNotFoundError:
        raise SubdpError("no such file", where=str(file), hint="give the .pt file of CRISS") from None
    except pickle.UnpicklingError as error:
        name = re.search(r"GLOBAL (\S+)", str(error))
        if name is None:
            raise SubdpError("is not a fairseq checkpoint", where=str(file)) from None
        reason = f"holds more than weights and settings: {name[1]} could run code and is not loaded"
        hint = "if you trust the file, load it with torch and save only its entries 'model' and 'args'"
        raise SubdpError(reason, where=str(file), hint=hint) from None
    except (OSError, RuntimeError, EOFError, ValueError) as error:
        raise SubdpError(f"cannot be read: {error}".splitlines()[0], where=str(file)) from None
    if not isinstance(content, dict) or not isinstance(content.get("model"), dict):
        raise SubdpError("is not a fairseq checkpoint: it has no entry 'model'", where=str(file))
    return content.get("args") or Namespace(), content["model"]


def _harmless() -> list[Any]:
    """What checkpoints hold besides tensors: settings, and numpy numbers, also under numpy's older module name."""
    number, array = np.float64(0).__reduce__()[0], np.zeros(0).__reduce__()[0]
    modules = ("numpy.core.multiarray", "numpy._core.multiarray")
    functions = [(number, f"{module}.scalar") for module in modules]
    functions += [(array, f"{module}._reconstruct") for module in modules]
    return [Namespace, np.ndarray, np.dtype, *(type(np.dtype(kind)) for kind in "?bhilqBHILQefd"), *functions]


def _save_model(settings: Namespace, state: dict[str, Tensor], pieces: int, folder: Path, where: str) -> int:
    """Write configuration and weights; returns the number of positions."""
    from transformers import GenerationConfig, MBartConfig, MBartForConditionalGeneration

    shared, weights = _places(state, where)
    if len(shared) != pieces:
        hint = "dict.txt and lang_dict.txt must belong to the checkpoint"
        raise SubdpError(f"{len(shared)} embeddings for {pieces} pieces", where=where, hint=hint)
    try:
        config = MBartConfig(vocab_size=pieces, d_model=shared.shape[1], **_sizes(settings, weights))
        with torch.device("meta"):
            model = MBartForConditionalGeneration(config)
        same = dict.fromkeys([name for name in model.state_dict() if name in _SHARED], shared)
        # Strict: every tensor has a place, every place gets a tensor, and the shapes agree.
        model.load_state_dict(weights | same | {"final_logits_bias": shared.new_zeros(1, pieces)}, assign=True)
    except (KeyError, RuntimeError, ValueError) as error:
        reason = " ".join(str(error).split())[:200]
        raise SubdpError(
            f"the weights are not mBART's: {reason}", where=where, hint="give a CRISS checkpoint"
        ) from None
    model.tie_weights()
    ids = {f"{name}_token_id": getattr(config, f"{name}_token_id") for name in ("bos", "pad", "eos", "decoder_start")}
    model.generation_config = GenerationConfig(**ids, num_beams=5)
    model.save_pretrained(folder)
    return int(config.max_position_embeddings)


def _places(state: dict[str, Tensor], where: str) -> tuple[Tensor, dict[str, Tensor]]:
    """The embeddings shared by encoder and decoder, and all other weights under their names in transformers."""
    state = {f"model.{name}": tensor for name, tensor in state.items()}
    shared = [state.pop(name) for name in _FAIRSEQ_SHARED if name in state]
    if not shared or not all(torch.equal(shared[0], other) for other in shared):
        raise SubdpError("encoder and decoder do not share their embeddings, as mBART's do", where=where)
    return shared[0], {name: state[name] for name in state if not name.endswith((".version", "._float_tensor"))}


def _sizes(settings: Namespace, weights: dict[str, Tensor]) -> dict[str, Any]:
    """The configuration: sizes from the weights, the rest from the settings, defaults from fairseq's `mbart_large`."""
    sizes: dict[str, Any] = {
        "max_position_embeddings": len(weights["model.encoder.embed_positions.weight"]) - _OFFSET,
        "activation_function": getattr(settings, "activation_fn", "gelu"),
        "scale_embedding": not getattr(settings, "no_scale_embedding", False),
        "decoder_start_token_id": _END,
        "forced_eos_token_id": None,
    }
    for side in ("encoder", "decoder"):
        layers = {name.split(".")[3] for name in weights if name.startswith(f"model.{side}.layers.")}
        sizes[f"{side}_layers"] = len(layers)
        sizes[f"{side}_ffn_dim"] = len(weights[f"model.{side}.layers.0.fc1.weight"])
        sizes[f"{side}_attention_heads"] = getattr(settings, f"{side}_attention_heads", 16)
    return sizes


@dataclass(frozen=True, slots=True)
class _Tokens:
    """The pieces with their scores in the order of the embeddings, the languages, and SentencePiece's character map."""

    pieces: list[tuple[str, float]]
    languages: list[str]
    characters: bytes

    @classmethod
    def read(cls, folder: Path) -> _Tokens:
        """Fairseq's numbering: special pieces, the pieces of dict.txt, the languages, the mask."""
        scored, characters = _sentencepiece(folder / "sentence.bpe.model")
        scores = dict(scored)
        # Only a line feed ends a line here: other line separators are pieces.
        words = [line.rpartition(" ")[0] for line in _read(folder / "dict.txt").decode().split("\n") if line]
        if len({*words}) != len(words) or not scores.keys() <= {*words}:
            reason, hint = "does not list the pieces of sentence.bpe.model", "both must belong to the checkpoint"
            raise SubdpError(reason, where=str(folder / "dict.txt"), hint=hint)
        languages = _read(folder / "lang_dict.txt").decode().split()
        lowest = min(scores.values())
        pieces = [(word, scores.get(word, lowest)) for word in words]
        special, rest = ([(piece, 0.0) for piece in names] for names in (_SPECIAL, (*languages, "<mask>")))
        return cls([*special, *pieces, *rest], languages, characters)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        hint = "the CRISS archive has it next to the checkpoints"
        raise SubdpError("is missing", where=str(path), hint=hint) from None


def _save_tokenizer(tokens: _Tokens, positions: int, folder: Path) -> None:
    """Write the SentencePiece model as a fast tokenizer, which needs no SentencePiece. Sources are `words </s>`."""
    from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.Unigram(tokens.pieces, unk_id=_UNKNOWN, byte_fallback=False))
    steps: list[Any] = [normalizers.Precompiled(tokens.characters)] if tokens.characters else []
    steps += [normalizers.Replace(Regex(" {2,}"), " "), normalizers.Strip()]
    tokenizer.normalizer = normalizers.Sequence(steps)
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    tokenizer.decoder = decoders.Metaspace(prepend_scheme="always")
    tokenizer.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", _END)])
    names = {"bos": "<s>", "cls": "<s>", "pad": "<pad>", "eos": "</s>", "sep": "</s>", "unk": "<unk>", "mask": "<mask>"}
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        model_max_length=positions,
        additional_special_tokens=tokens.languages,
        **{f"{role}_token": token for role, token in names.items()},
    ).save_pretrained(folder)


def _sentencepiece(path: Path) -> tuple[list[tuple[str, float]], bytes]:
    """The ordinary pieces of a SentencePiece model with their scores, and its character map."""
    try:
        from google.protobuf.message import DecodeError
        from sentencepiece.sentencepiece_model_pb2 import ModelProto
    except ModuleNotFoundError:
        reason = "needs sentencepiece and protobuf, which are not installed"
        raise SubdpError(reason, where=str(path), hint="pip install 'subdp[translate]'") from None
    model = ModelProto()
    try:
        model.ParseFromString(_read(path))
    except DecodeError:
        model.Clear()
    if model.trainer_spec.model_type != model.trainer_spec.UNIGRAM:
        raise SubdpError("is not a unigram model, as mBART's is", where=str(path))
    pieces = [(piece.piece, piece.score) for piece in model.pieces if piece.type == piece.NORMAL]
    if not pieces:
        raise SubdpError("is not a SentencePiece model", where=str(path), hint="download it again")
    return pieces, model.normalizer_spec.precompiled_charsmap
