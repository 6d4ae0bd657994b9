"""Stages of a run: each knows by hash what it was made from, resumes where it stopped, and is never done twice.

A stage has a folder of its own with a `manifest.json`: its inputs, and whether it is done. When its inputs change it is
redone, so a change affects only what depends on it. No torch: a plan is shown at once.
"""

from __future__ import annotations

import errno
import hashlib
import json
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from subdp.support.errors import SubdpError
from subdp.support.files import write_json

Say = Callable[[str], None]
State = Literal["done", "begun", "changed", "new"]
MANIFEST = "manifest.json"
TRAINING = "training"
"""The folder in a stage's own where a training keeps its checkpoints."""
_WORDS: dict[State, str] = {"done": "done", "begun": "resume", "changed": "redo", "new": "to do"}


@dataclass(frozen=True, eq=False)
class Stage:
    """One step: `work` is given the stage's folder, resumes from what it finds there, and returns a short account.

    `inputs` is all that the result depends on, as plain values: settings, hashes of files, keys of earlier stages.
    `outputs` are files elsewhere that must be there for the stage to be done.
    """

    name: str
    purpose: str
    inputs: Mapping[str, Any]
    work: Callable[[Path], str]
    outputs: tuple[Path, ...] = ()

    @cached_property
    def key(self) -> str:
        """The hash of the inputs, by which later stages name this one."""
        return hashlib.sha256(json.dumps(self.inputs, sort_keys=True).encode()).hexdigest()[:32]

    def state(self, root: Path) -> tuple[State, list[str]]:
        """The stage's state, and the names of the inputs that have changed since."""
        manifest = _read(root / self.name / MANIFEST)
        if manifest is None:
            return "new", []
        if manifest["key"] != self.key:
            before, now = manifest["inputs"], json.loads(json.dumps(self.inputs))
            return "changed", [name for name in sorted({**before, **now}) if before.get(name) != now.get(name)]
        done = manifest["done"] and all(path.exists() for path in self.outputs)
        return ("done" if done else "begun"), []


def stage_name(stage: str, number: int) -> str:
    """Stages of the first bitext have plain names, so that a second one leaves them as they are."""
    return stage if number == 0 else f"{stage}-{number + 1}"


def plan(stages: Sequence[Stage], root: Path) -> str:
    """What would be done now, a line for each stage."""
    width = max(len(stage.name) for stage in stages)
    lines = []
    for stage in stages:
        state, changed = stage.state(root)
        why = f": {', '.join(changed)} changed" if changed else ""
        lines.append(f"{stage.name:<{width}}  {_WORDS[state]}{why}")
    return "\n".join(lines)


def perform(stages: Sequence[Stage], root: Path, say: Say) -> int:
    """Do the stages that are not done, in order; returns how many were. Interrupted anywhere, a second call resumes."""
    performed = 0
    for number, stage in enumerate(stages, 1):
        head = f"[{number}/{len(stages)}] {stage.name}"
        state, changed = stage.state(root)
        folder = root / stage.name
        if state == "done":
            say(f"{head}: already done: {(_read(folder / MANIFEST) or {}).get('said')}")
            continue
        note = f" (redoing: {', '.join(changed)} changed)" if changed else " (resuming)" if state == "begun" else ""
        say(f"{head}: {stage.purpose}{note}")
        start = time.perf_counter()
        try:
            said = _do(stage, folder, resume=state == "begun")
        except (SubdpError, OSError, KeyboardInterrupt) as error:
            say(f"stopped in stage {stage.name}; what is done is kept, and the same command resumes from there")
            if not isinstance(error, OSError):
                raise
            hint = "make room" if error.errno == errno.ENOSPC else None
            where = str(error.filename or folder)
            raise SubdpError(error.strerror or str(error), where=where, hint=hint) from error
        indent = " " * (len(head) - len(stage.name))
        seconds = time.perf_counter() - start
        say(indent + f"{said} ({seconds:.1f} s)".replace("\n", f"\n{indent}"))
        performed += 1
    return performed


def ensure(stage: Stage, root: Path) -> Path:
    """Do a stage, unless it is done, and give its folder."""
    state, _ = stage.state(root)
    folder = root / stage.name
    if state != "done":
        _do(stage, folder, resume=state == "begun")
    return folder


def has_stages(root: Path) -> bool:
    """Whether stages were done or begun in this folder."""
    return any(_read(path) is not None for path in root.glob(f"*/{MANIFEST}"))


def _do(stage: Stage, folder: Path, *, resume: bool) -> str:
    """Do one stage, its manifest written before and, once all is on disk, after."""
    if not resume and folder.exists():
        shutil.rmtree(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for left in list(folder.rglob(".*")):  # what a killed process was writing
        shutil.rmtree(left) if left.is_dir() else left.unlink(missing_ok=True)
    manifest = {"key": stage.key, "inputs": dict(stage.inputs), "done": False}
    write_json(folder / MANIFEST, manifest)
    said = stage.work(folder)
    write_json(folder / MANIFEST, {**manifest, "done": True, "said": said})
    shutil.rmtree(folder / TRAINING, ignore_errors=True)  # Checkpoints are no longer needed.
    return said


def _read(path: Path) -> dict[str, Any] | None:
    """A manifest, or None where none can be read: the stage then starts over."""
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
        return manifest if manifest.keys() >= {"key", "inputs", "done"} else None
    except (OSError, ValueError, AttributeError):
        return None
