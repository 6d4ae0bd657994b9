"""A parser on disk: a folder of `config.json`, `labels.json`, `model.safetensors` and a model card, `README.md`.

Loading reads JSON and tensors and runs nothing. The frozen encoder is named, not copied.
"""

from __future__ import annotations

import json
import platform
import shutil
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

import safetensors
import torch
from safetensors.torch import load, save

from subdp.network.biaffine import Biaffine
from subdp.support.errors import SubdpError
from subdp.support.settings import NetworkConfig, as_dict

_FORMAT = 2


def save_folder(
    folder: Path,
    network: Biaffine,
    config: NetworkConfig,
    label_names: tuple[str, ...],
    encoder: dict[str, Any],
    about: dict[str, Any],
    *,
    half: bool,
) -> None:
    """Write a model folder, all or nothing: it appears under its name only when complete."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    try:
        versions = {name: version(name) for name in ("subdp", "torch", "transformers", "numpy")}
        facts = {
            "format": _FORMAT,
            "encoder": encoder,
            "network": as_dict(config),
            "about": about,
            "versions": {**versions, "python": platform.python_version()},
        }
        (temporary / "config.json").write_text(json.dumps(facts, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
        (temporary / "labels.json").write_text(json.dumps(label_names, ensure_ascii=False) + "\n", encoding="utf-8")
        (temporary / "README.md").write_text(_card(label_names, encoder, about), encoding="utf-8")
        dtype = torch.float16 if half else torch.float32
        tensors = {name: tensor.to(dtype).contiguous() for name, tensor in network.state_dict().items()}
        (temporary / "model.safetensors").write_bytes(save(tensors))
        temporary.chmod(0o755)
        if folder.exists():
            if not (folder / "config.json").exists() and any(folder.iterdir()):
                raise SubdpError("is a folder of something else", where=str(folder), hint="name a new one")
            shutil.rmtree(folder)
        temporary.replace(folder)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


def load_folder(folder: Path) -> tuple[Biaffine, NetworkConfig, tuple[str, ...], dict[str, Any], dict[str, Any]]:
    """The network, its configuration, the labels, what is said of the encoder, and what is said of the training."""
    if not folder.is_dir():
        raise SubdpError("no such model folder", where=str(folder), hint="`subdp train` and `subdp run` make them")
    facts, labels = _json(folder / "config.json"), _json(folder / "labels.json")
    try:
        if facts["format"] != _FORMAT:
            hint = "another version of subdp made it: train it again, or install that version"
            raise SubdpError(f"has format {facts['format']}, not {_FORMAT}", where=str(folder), hint=hint)
        sizes = dict(facts["network"])
        sizes["layers"] = None if sizes["layers"] is None else tuple(sizes["layers"])
        config, encoder, about = NetworkConfig(**sizes), dict(facts["encoder"]), dict(facts["about"])
        layers = encoder["layers"] + 1 if config.layers is None else len(config.layers)
        names = tuple(str(name) for name in labels)
        network = Biaffine(config, layers, encoder["hidden"], len(names))
        path = folder / "model.safetensors"
        weights = load(path.read_bytes())
        network.load_state_dict({name: tensor.float() for name, tensor in weights.items()})
    except FileNotFoundError as error:
        raise SubdpError("is missing", where=str(error.filename), hint=_DAMAGED) from None
    except (KeyError, TypeError, ValueError, RuntimeError, safetensors.SafetensorError) as error:
        raise SubdpError(f"does not fit together: {error}", where=str(folder), hint=_DAMAGED) from None
    return network, config, names, encoder, about


_DAMAGED = "the model folder is damaged; fetch or make it again"


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise SubdpError("is missing", where=str(path), hint=_DAMAGED) from None
    except ValueError as error:
        raise SubdpError(f"is not JSON: {error}", where=str(path), hint=_DAMAGED) from None


def _card(label_names: tuple[str, ...], encoder: dict[str, Any], about: dict[str, Any]) -> str:
    """The model card: where the parser comes from, what it was trained on and how well it does."""
    name = encoder["name"]
    note = "the encoder that installs with subdp; not the paper's XLM-R" if name == "bundled" else "frozen"
    lines = [
        f"# {about.get('title', 'A dependency parser')}",
        "",
        "Made with subdp (Substructure Distribution Projection, Shi, Gimpel and Livescu 2022).",
        "",
        f"- Encoder: `{name}` ({note}); fingerprint `{encoder['fingerprint']}`.",
        f"- Labels: {', '.join(label_names)}.",
    ]
    lines += [
        f"- {key.replace('_', ' ').capitalize()}: {_plain(value)}" for key, value in about.items() if key != "title"
    ]
    return "\n".join([*lines, "", "Use: `subdp parse text.txt --parser THIS_FOLDER`", ""])


def _plain(value: Any) -> str:
    if isinstance(value, dict):
        return "; ".join(f"{key.replace('_', ' ')} {_plain(item)}" for key, item in value.items())
    if isinstance(value, list):
        return ", ".join(map(_plain, value))
    return str(value)
