"""A parser on disk: a folder of `config.json`, `labels.json`, `model.safetensors` and a model card, `README.md`.

Loading reads JSON and tensors; nothing is executed. A frozen encoder is named, not copied; encoder layers that were
trained are stored with the network.
"""

from __future__ import annotations

import hashlib
import json
import platform
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import safetensors
import torch
from safetensors.torch import load, save
from torch import Tensor

from subdp.corpus.tokenizers import AUTO
from subdp.encoder.encoder import Encoder
from subdp.network.biaffine import Biaffine
from subdp.network.model_card import card
from subdp.projection.substructures import ARCS, LABELS, Inventory
from subdp.support.errors import SubdpError
from subdp.support.settings import NetworkConfig
from subdp.support.values import as_dict, converted

_FORMAT = 3
_WITHOUT_LAYERS = 2  # The previous format: labels.json was a list, and the weights had other names.
_ENCODER = "encoder."
# What this package writes into a model folder; the last two when a parser is trained by the command line.
_FILES = ("config.json", "labels.json", "model.safetensors", "README.md", "config.toml", "metrics.jsonl")
_FORMER_NAMES = {"arc_": "scorers.arcs.", "label_": "scorers.labels."}


@dataclass(frozen=True)
class Model:
    """What a model folder holds: the network with its sizes and values, facts about its encoder and its training.

    `encoder_state` has the weights of encoder layers that were trained too; it is empty if the encoder was frozen.
    `tokenizer` is the one for raw text.
    """

    network: Biaffine
    config: NetworkConfig
    inventory: Inventory
    encoder: Mapping[str, Any]
    about: Mapping[str, Any]
    encoder_state: Mapping[str, Tensor] = field(default_factory=dict)
    tokenizer: str = AUTO

    @property
    def fingerprint(self) -> str:
        """A hash of the encoder and the weights."""
        digest = hashlib.sha256(f"{self.encoder['fingerprint']}{self.encoder.get('bits', '')}".encode())
        for name, tensor in sorted(self.tensors.items()):
            digest.update(name.encode() + tensor.detach().cpu().numpy().tobytes())
        return digest.hexdigest()[:32]

    @property
    def tensors(self) -> dict[str, Tensor]:
        """All weights, as they are named on disk."""
        return {**self.network.state_dict(), **{f"{_ENCODER}{k}": v for k, v in self.encoder_state.items()}}

    def check_encoder(self, encoder: Encoder, where: str) -> None:
        """Raise unless the model was trained with this encoder, whatever the bits of its products."""
        if encoder.weights != self.encoder["fingerprint"]:
            hint = f"it was trained with {self.encoder['name']}; name that one with --encoder, or encoder= in Python"
            raise SubdpError("was trained with another encoder", where=where, hint=hint)


def encoder_facts(encoder: Encoder) -> dict[str, Any]:
    """What a model folder says of its encoder."""
    return {
        "name": encoder.name,
        "fingerprint": encoder.weights,
        "layers": encoder.layers,
        "hidden": encoder.hidden,
        **({} if encoder.bits == 32 else {"bits": encoder.bits}),
    }


def save_folder(folder: Path, model: Model, *, half: bool) -> None:
    """Write a model folder, all or nothing: it appears under its name only when complete."""
    folder = folder.resolve()  # A link to a folder stays one.
    check_replaceable(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    try:
        values = {name: values for name, values in model.inventory.items() if name != ARCS.name}
        _write_json(temporary / "config.json", _facts(model))
        _write_json(temporary / "labels.json", values)
        (temporary / "README.md").write_text(card(values, model.encoder, model.about), encoding="utf-8")
        dtype = torch.float16 if half else torch.float32
        stored = {name: tensor.to(dtype).contiguous() for name, tensor in model.tensors.items()}
        (temporary / "model.safetensors").write_bytes(save(stored))
        temporary.chmod(0o755)
        _put(temporary, folder)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


def _put(new: Path, folder: Path) -> None:
    """Move a folder to its place; one that is there is moved aside first, so that at every moment one is whole."""
    if not folder.exists():
        new.replace(folder)
        return
    aside = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    folder.replace(aside)
    try:
        new.replace(folder)
    except BaseException:
        aside.replace(folder)
        raise
    shutil.rmtree(aside)


def check_replaceable(folder: Path) -> None:
    """Raise unless a model folder may be written here: the path is free, an empty folder, or a parser of subdp's.

    Any other folder, a Hugging Face model for example, is never overwritten, nor a parser's that has other files in it.
    Also called before training, so that a bad path is reported early.
    """
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return
    hint = "name a new folder; only a parser that subdp made is overwritten"
    try:
        facts = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        ours = {"format", "network", "about"} <= set(facts) and "subdp" in facts["versions"]
    except (OSError, ValueError, KeyError, TypeError):
        ours = False
    if not ours:
        raise SubdpError("holds something other than a parser", where=str(folder), hint=hint)
    # A killed process may have left a file that it was writing: .config.toml.12345678
    names = {path.name for path in folder.iterdir() if not path.name.startswith(".config.toml.")}
    if others := sorted(names - {*_FILES}):
        raise SubdpError(f"holds something else besides a parser: {others[0]}", where=str(folder), hint=hint)


def _facts(model: Model) -> dict[str, Any]:
    versions = {name: version(name) for name in ("subdp", "torch", "numpy")}
    return {
        "format": _FORMAT,
        "encoder": dict(model.encoder),
        "network": as_dict(model.config),
        "tokenizer": model.tokenizer,
        "about": dict(model.about),
        "versions": {**versions, "python": platform.python_version()},
    }


def load_folder(folder: Path) -> Model:
    """Read a model folder, in this format or the previous one."""
    if not folder.is_dir():
        raise SubdpError("no such model folder", where=str(folder), hint="`subdp train` and `subdp run` make them")
    facts, values = _json(folder / "config.json"), _json(folder / "labels.json")
    try:
        if facts["format"] not in (_FORMAT, _WITHOUT_LAYERS):
            hint = "another version of subdp made it: train it again, or install that version"
            raise SubdpError(f"has format {facts['format']}, not {_FORMAT}", where=str(folder), hint=hint)
        sizes = converted(NetworkConfig, facts["network"], where=str(folder / "config.json"))
        config, encoder = NetworkConfig(**sizes), dict(facts["encoder"])
        layers = encoder["layers"] + 1 if config.layers is None else len(config.layers)
        named = values if facts["format"] == _FORMAT else {LABELS.name: values}
        inventory = {ARCS.name: (), **{name: tuple(map(str, items)) for name, items in named.items()}}
        with torch.device("meta"):  # No random weights: these are replaced.
            network = Biaffine(config, layers, encoder["hidden"], inventory)
        stored = load((folder / "model.safetensors").read_bytes())
        tensors = {_present_name(name): tensor.float() for name, tensor in stored.items()}
        state = {name.removeprefix(_ENCODER): tensors.pop(name) for name in list(tensors) if name.startswith(_ENCODER)}
        network.load_state_dict(tensors, assign=True)
    except FileNotFoundError as error:
        raise SubdpError("is missing", where=str(error.filename), hint=_DAMAGED) from None
    except (KeyError, TypeError, ValueError, AttributeError, RuntimeError, safetensors.SafetensorError) as error:
        raise SubdpError(f"does not fit together: {error}", where=str(folder), hint=_DAMAGED) from None
    return Model(network, config, inventory, encoder, dict(facts["about"]), state, str(facts.get("tokenizer", AUTO)))


_DAMAGED = "the model folder is damaged; download or train it again"


def _present_name(name: str) -> str:
    """The present name of a weight that may be stored under its former name."""
    for former, present in _FORMER_NAMES.items():
        if name.startswith(former):
            return present + name.removeprefix(former)
    return name


def _write_json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise SubdpError("is missing", where=str(path), hint=_DAMAGED) from None
    except ValueError as error:
        raise SubdpError(f"is not JSON: {error}", where=str(path), hint=_DAMAGED) from None
