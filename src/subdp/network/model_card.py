"""The model card: where a parser comes from, what it was trained on and how well it does, in plain sentences.

Above them is the front matter that the Hugging Face Hub reads: language, licence, data and scores.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from subdp.support.errors import counted

_SCORE = re.compile(r"([A-Za-z]\S*) (\d+\.\d+)").findall
_UD_FILE = re.compile(r"([a-z]{2,3})_[a-z0-9]+-ud-").match
_LICENCE = re.compile(r"(cc[ -]by[a-z -]*\d\.\d|mit|apache[ -]2\.0)\b", re.IGNORECASE).match


def card(values: Mapping[str, Sequence[str]], encoder: Mapping[str, Any], about: Mapping[str, Any]) -> str:
    """The text of `README.md` in a model folder; `about` is what `Parser.train` and `Parser.adapt` note down."""
    name = encoder["name"]
    note = " (the encoder that installs with subdp, not the paper's XLM-R)" if name == "bundled" else ""
    bits = f"; trained with {encoder['bits']}-bit products" if "bits" in encoder else ""
    lines = [
        *_front_matter(about),
        f"# {about.get('title', 'A dependency parser')}",
        "",
        "Made with subdp (Substructure Distribution Projection, Shi, Gimpel and Livescu 2022).",
        "",
        *_history(about),
        f"- Encoder: `{name}`{note}, fingerprint `{encoder['fingerprint']}`{bits}.",
        *(f"- {_title(kind)}: {', '.join(items)}." for kind, items in values.items()),
        *(f"- On {split}: {scores}." for split, scores in about.get("scores", {}).items()),
    ]
    if "languages" in about:
        lines.append(f"- Languages: {', '.join(about['languages'])}.")
    if "licence" in about:
        lines.append(f"- Licence: {about['licence']}.")
    use = "Use: `subdp parse text.txt --parser NAME`, or `subdp.Parser.load(NAME)` in Python;"
    return "\n".join([*lines, "", f"{use} NAME is this folder, or its name on the Hub.", ""])


def facts(values: Mapping[str, Sequence[str]], encoder: str, about: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The same in a few words, for a look at a parser: what a fact is called, and the fact."""
    kinds = [f"{len(items)} {name}" for name, items in values.items() if items]
    return [
        ("parser", about.get("title", "a dependency parser")),
        ("predicts", " and ".join(kinds)),
        ("encoder", encoder),
        *(about.get("scores", {}).items()),
    ]


def _front_matter(about: Mapping[str, Any]) -> list[str]:
    """What the Hub reads, in YAML, of which JSON is a part: what is not known is left out."""
    first = about
    while before := first.get("adapted_from", first.get("distilled_from")):
        first = before
    matter: dict[str, Any] = {"library_name": "subdp", "pipeline_tag": "token-classification"}
    if language := about.get("language", _language(about)):
        matter["language"] = language
    if licence := about.get("licence"):
        known = _LICENCE(licence)
        matter["license"] = re.sub(r"\s", "-", known[0].lower()) if known else "other"
        matter |= {} if known else {"license_name": licence}
    matter["tags"] = ["dependency-parsing", "universal-dependencies", "subdp"]
    if _UD_FILE(first.get("treebank", "")):
        matter["datasets"] = ["universal_dependencies"]
    if results := [_result(split, scores) for split, scores in about.get("scores", {}).items()]:
        matter["metrics"] = sorted({metric["type"] for result in results for metric in result["metrics"]})
        matter["model-index"] = [{"name": about.get("title", "A dependency parser"), "results": results}]
    return ["---", *(f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in matter.items()), "---", ""]


def _language(about: Mapping[str, Any]) -> str | None:
    """The language of the treebank that a parser was trained on, by the file's name; one adapted has no such file."""
    if teacher := about.get("distilled_from"):
        language: str | None = teacher.get("language", _language(teacher))
        return language
    found = _UD_FILE(about.get("treebank", ""))
    return found[1] if found else None


def _result(split: str, scores: str) -> dict[str, Any]:
    """One row of the Hub's table: `UAS 91.2, LAS 88.3` on a split, as numbers."""
    return {
        "task": {"type": "token-classification", "name": "dependency parsing"},
        "dataset": {"type": "universal_dependencies", "name": "Universal Dependencies", "split": split},
        "metrics": [{"type": name.lower(), "name": name, "value": float(value)} for name, value in _SCORE(scores)],
    }


def _title(kind: str) -> str:
    return kind.upper() if kind in ("upos", "xpos") else kind.capitalize() if kind == "labels" else kind


def _history(about: Mapping[str, Any]) -> list[str]:
    """How the parser was made, last step first."""
    steps = []
    if trained := about.get("trained_on"):
        treebank = f" of {about['treebank']}" if "treebank" in about else ""
        size = f"{counted(trained['sentences'], 'sentence')}{treebank} ({counted(trained['words'], 'word')})"
        steps.append(f"- Trained on {size}, {_epochs(about)}.")
    for added in about.get("added", []):
        size = counted(added["sentences"], "sentence")
        steps.append(
            f"- {', '.join(added['layers'])} added afterwards, trained on {size}, {counted(added['epochs'], 'epoch')};"
            " the trees stayed as they were."
        )
    if distilled := about.get("distilled_on"):
        size = f"{counted(distilled['sentences'], 'sentence')} of raw text ({counted(distilled['words'], 'word')})"
        if made_up := distilled.get("made_up"):
            size += f" and {counted(made_up, 'sentence')} made up from them"
        steps.append(f"- Trained to predict what a larger parser predicts on {size}, {_epochs(about)}.")
    if adapted := about.get("adapted_on"):
        steps.append(f"- Adapted to {_material(adapted)}, {_epochs(about)}.")
    if about.get("agreement") is not None:
        share = f"{about['agreement']:.0%}"
        steps.append(
            f"- On the target sentences, the parser that it started from and projection agreed on {share} of the heads."
        )
    for key, began in (("adapted_from", "It started from"), ("distilled_from", "The larger parser")):
        if before := about.get(key):
            title = before.get("title", "a source parser" if key == "adapted_from" else "a parser")
            licence = f" (licence: {before['licence']})" if "licence" in before else ""
            steps.append(f"- {began}: {title}{licence}.")
            steps += [f"  {step}" for step in _history(before)]
    return steps


def _material(adapted: Mapping[str, Any]) -> str:
    parts = []
    if "pairs" in adapted:
        languages = f" in {counted(adapted['languages'], 'language')}" if "languages" in adapted else ""
        parts.append(f"distributions projected from {counted(adapted['pairs'], 'sentence pair')}{languages}")
    if adapted.get("sentences"):
        parts.append(f"{counted(adapted['sentences'], 'sentence')} of the source language")
    if "trees" in adapted:
        parts.append(f"{counted(adapted['trees'], 'tree')} with {counted(adapted['known_heads'], 'known head')}")
    return " and ".join(parts)


def _epochs(about: Mapping[str, Any]) -> str:
    kept = f" (epoch {about['best_epoch']} is kept)" if about["best_epoch"] != about["epochs"] else ""
    return f"{counted(about['epochs'], 'epoch')}{kept}, random seed {about['seed']}"
