"""Parsers by name: those that ship, and those on the Hugging Face Hub, from which and to which folders are copied.

Only the files of a model folder are fetched and nothing in them is executed. No torch; `huggingface_hub` is imported
when a name asks for it.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from subdp.support.errors import SubdpError

_MODELS = Path(__file__).parent / "models"
SHIPPED = _MODELS / "en"
"""The English parser that comes with the package."""
MULTILINGUAL = _MODELS / "multi"
"""The multilingual parser that comes with the package: the English one, adapted to many languages at once."""

FILES = ("config.json", "labels.json", "model.safetensors", "README.md")
"""What a model folder is, on the Hub as on disk."""

_HUB_NAME = re.compile(r"[\w.-]+/[\w.-]+").fullmatch


def find_model(name: str | Path) -> Path:
    """The folder of a parser: `en` and `multi` ship; any other name is a folder or, as org/name, on the Hub.

    A folder of one's own with such a name is `./multi`. Where there is a folder `org`, a missing `org/name` is taken
    for a misspelt path and the Hub is not asked.
    """
    if name in ("en", "multi"):
        return _MODELS / name
    if isinstance(name, Path) or Path(name).is_dir() or not _HUB_NAME(name) or Path(name).parent.is_dir():
        return Path(name)
    try:
        return Path(_hub().snapshot_download(name, allow_patterns=list(FILES)))
    except (OSError, ValueError) as error:  # No network, no such repository, no right to read it.
        reason = f"no such model folder, and the Hub gave no parser of that name: {_first_line(error)}"
        raise SubdpError(reason, where=name, hint="check the name; the first time needs a network") from error


def push(folder: Path, name: str, *, private: bool) -> str:
    """Copy a model folder to the Hub, where its repository is made if need be; gives back its address."""
    if not _HUB_NAME(name):
        raise SubdpError("is not a name on the Hub", where=name, hint="give it as org/name")
    api = _hub().HfApi()
    try:
        api.create_repo(name, private=private, exist_ok=True)
        message = "Upload a parser made with subdp"
        api.upload_folder(repo_id=name, folder_path=folder, allow_patterns=list(FILES), commit_message=message)
    except (OSError, ValueError) as error:
        hint = "log in with `hf auth login` as a user who may write there"
        raise SubdpError(f"cannot be written to the Hub: {_first_line(error)}", where=name, hint=hint) from error
    return f"{api.endpoint}/{name}"


def _hub() -> Any:
    try:
        import huggingface_hub
    except ImportError:
        raise SubdpError("the Hub needs the package huggingface_hub", hint="pip install 'subdp[hf]'") from None
    return huggingface_hub


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
