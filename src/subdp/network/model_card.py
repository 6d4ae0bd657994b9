"""The model card: where a parser comes from, what it was trained on and how well it does, in plain sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from subdp.support.errors import counted


def card(values: Mapping[str, Sequence[str]], encoder: Mapping[str, Any], about: Mapping[str, Any]) -> str:
    """The text of `README.md` in a model folder; `about` is what `Parser.train` and `Parser.adapt` note down."""
    name = encoder["name"]
    note = "the encoder that installs with subdp, not the paper's XLM-R" if name == "bundled" else "frozen"
    lines = [
        f"# {about.get('title', 'A dependency parser')}",
        "",
        "Made with subdp (Substructure Distribution Projection, Shi, Gimpel and Livescu 2022).",
        "",
        *_history(about),
        f"- Encoder: `{name}` ({note}), fingerprint `{encoder['fingerprint']}`.",
        *(f"- {_title(kind)}: {', '.join(items)}." for kind, items in values.items()),
        *(f"- On {split}: {scores}." for split, scores in about.get("scores", {}).items()),
    ]
    if "licence" in about:
        lines.append(f"- Licence: {about['licence']}.")
    return "\n".join([*lines, "", "Use: `subdp parse text.txt --parser THIS_FOLDER`", ""])


def _title(kind: str) -> str:
    return kind.upper() if kind in ("upos", "xpos") else kind.capitalize() if kind == "labels" else kind


def _history(about: Mapping[str, Any]) -> list[str]:
    """How the parser was made, last step first."""
    steps = []
    if trained := about.get("trained_on"):
        treebank = f" of {about['treebank']}" if "treebank" in about else ""
        size = f"{counted(trained['sentences'], 'sentence')}{treebank} ({counted(trained['words'], 'word')})"
        steps.append(f"- Trained on {size}, {_epochs(about)}.")
    if adapted := about.get("adapted_on"):
        steps.append(f"- Adapted to {_material(adapted)}, {_epochs(about)}.")
    if about.get("agreement") is not None:
        share = f"{about['agreement']:.0%}"
        steps.append(f"- On the target sentences, the source parser and projection agreed on {share} of the heads.")
    if before := about.get("adapted_from"):
        title = before.get("title", "a source parser")
        steps.append(f"- It started from: {title}.")
        steps += [f"  {step}" for step in _history(before)]
    return steps


def _material(adapted: Mapping[str, Any]) -> str:
    parts = []
    if "pairs" in adapted:
        parts.append(f"distributions projected from {counted(adapted['pairs'], 'sentence pair')}")
    if "trees" in adapted:
        parts.append(f"{counted(adapted['trees'], 'tree')} with {counted(adapted['known_heads'], 'known head')}")
    return " and ".join(parts)


def _epochs(about: Mapping[str, Any]) -> str:
    kept = f" (epoch {about['best_epoch']} is kept)" if about["best_epoch"] != about["epochs"] else ""
    return f"{counted(about['epochs'], 'epoch')}{kept}, random seed {about['seed']}"
