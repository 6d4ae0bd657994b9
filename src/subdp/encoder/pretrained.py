"""Pretrained Hugging Face models: found, fingerprinted, and loaded without noise or foreign code.

`encoder.py` gets every encoder but the bundled one from here. Imports torch; transformers, an optional dependency that
is slow to import, only when a model is loaded.
"""

from __future__ import annotations

import hashlib
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch

from subdp.support.errors import SubdpError
from subdp.support.plugins import make, plugins

_GROUP = "subdp.encoders"
_ROOT_FILES = ("*.json", "*.model", "*.spm", "*.txt")  # What a model consists of besides its weights.


def require_transformers(model: str) -> None:
    """Raise an error that says what to install if transformers is missing, before anything is downloaded."""
    if find_spec("transformers") is None or find_spec("huggingface_hub") is None:
        raise SubdpError("needs transformers, which is not installed", where=model, hint="pip install 'subdp[hf]'")


def find_encoder(name: str) -> Path:
    """The model folder of an encoder: that folder, a plug-in's, or the local copy of a Hugging Face model."""
    if Path(name).is_dir() or name not in plugins(_GROUP):
        return find_folder(name)
    folder = make(_GROUP, name)
    if not isinstance(folder, str | Path) or not Path(folder).is_dir():
        hint = "its entry point must name a function without arguments that returns the path of a model folder"
        raise SubdpError(f"the encoder plug-in {name!r} returned {folder!r}, which is not a folder", hint=hint)
    return find_folder(str(folder))


def find_folder(name: str) -> Path:
    """The folder of that path, or the local copy of the Hugging Face model of that name, downloaded if necessary."""
    require_transformers(name)
    if Path(name).is_dir():
        return Path(name)
    from huggingface_hub import snapshot_download

    reason = f"no folder or model named {name} was found"
    hint = "give a model folder or the name of a Hugging Face model, which needs a network the first time"
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
    """A hash of configuration, weights and tokenizer; the folder's name and the files' dates do not matter."""
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
    """The model (only the encoder of an encoder-decoder) and its tokenizer; no weight may be missing."""
    from transformers import AutoModel, AutoTokenizer

    local = {"local_files_only": True, "trust_remote_code": False}
    try:
        with silence():
            tokenizer = AutoTokenizer.from_pretrained(folder, **local)
            model, report = AutoModel.from_pretrained(folder, dtype=dtype, output_loading_info=True, **local)
    except Exception as error:  # Many kinds of errors, which all mean the same to the user.
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise SubdpError(f"this model cannot be loaded: {reason}", where=str(folder)) from error
    missing = sorted(name for name in report["missing_keys"] if "pooler" not in name and "decoder" not in name)
    if missing:
        raise SubdpError(f"{len(missing)} weights are missing, the first is {missing[0]}", where=str(folder))
    return (model.get_encoder() if model.config.is_encoder_decoder else model), tokenizer


@contextmanager
def silence() -> Iterator[None]:
    """Suppress transformers' progress bars, reports and warnings while a model loads: what matters is checked."""
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
