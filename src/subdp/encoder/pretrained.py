"""Pretrained encoders of the Hugging Face kind: found, fingerprinted, and loaded without noise or foreign code.

`encode.py` has all but the bundled one from here. Imports torch, and the slow transformers only when it loads one.
"""

from __future__ import annotations

import hashlib
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from subdp.support.errors import SubdpError

_ROOT_FILES = ("*.json", "*.model", "*.spm", "*.txt")  # What an encoder is, besides its weights.


def find_folder(name: str) -> Path:
    """The folder of that path, or the local copy of the model of that name, fetched if needed and possible."""
    if Path(name).is_dir():
        return Path(name)
    from huggingface_hub import snapshot_download

    reason = f"no folder or model named {name} was found"
    hint = "name a model folder, a Hugging Face model (the first time with a network), or bundled"
    try:
        patterns = [*_ROOT_FILES, "*.safetensors"]
        folder = Path(snapshot_download(name, allow_patterns=patterns, ignore_patterns=["*/*"]))
        if _weights(folder) == "*.bin":
            folder = Path(snapshot_download(name, allow_patterns=["*.bin"], ignore_patterns=["*/*"]))
    except (OSError, ValueError) as error:
        raise SubdpError(reason, hint=hint) from error
    return folder


def _weights(folder: Path) -> str:
    return "*.safetensors" if any(folder.glob("*.safetensors")) else "*.bin"


def hash_folder(folder: Path) -> str:
    """A hash of configuration, weights and tokenizer, whatever the folder's name and the files' dates."""
    files = [file for pattern in (*_ROOT_FILES, _weights(folder)) for file in folder.glob(pattern)]
    digest = hashlib.sha256()
    for file in sorted(files):
        content = hashlib.sha256()
        with file.open("rb") as stream:
            while block := stream.read(1 << 22):
                content.update(block)
        digest.update(file.name.encode() + b"\0" + content.digest())
    return digest.hexdigest()[:32]


def load_folder(folder: Path, dtype: torch.dtype) -> tuple[Any, Any]:
    """The model (of an encoder-decoder, the encoder) and the tokenizer; every weight must be in the folder."""
    from transformers import AutoModel, AutoTokenizer

    local = {"local_files_only": True, "trust_remote_code": False}
    try:
        with silence():
            tokenizer = AutoTokenizer.from_pretrained(folder, **local)
            model, report = AutoModel.from_pretrained(folder, dtype=dtype, output_loading_info=True, **local)
    except Exception as error:  # Loading code is vast, and whatever it raises means the same to the user.
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise SubdpError(f"this model cannot be loaded: {reason}", where=str(folder)) from error
    missing = sorted(name for name in report["missing_keys"] if "pooler" not in name and "decoder" not in name)
    if missing:
        raise SubdpError(f"{len(missing)} weights are missing, the first is {missing[0]}", where=str(folder))
    return (model.get_encoder() if model.config.is_encoder_decoder else model), tokenizer


@contextmanager
def silence() -> Iterator[None]:
    """No progress bars, reports and warnings while a model loads: what matters of them is checked."""
    from transformers.utils import logging as chatter

    level, bars = chatter.get_verbosity(), chatter.is_progress_bar_enabled()
    chatter.set_verbosity(logging.CRITICAL)
    chatter.disable_progress_bar()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        chatter.set_verbosity(level)
        if bars:
            chatter.enable_progress_bar()
