"""A check of an installation, from outside the repository: `python tests/smoke.py` with the Python that has subdp.

Parses two sentences with the command that was installed, scores the result against itself and draws it. `make smoke`
runs it on the wheel and on the source distribution.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

import subdp

TEXT = "The little dog slept under the table. Nobody saw it."


def main() -> None:
    """Raise unless the installed command parses, evaluates and draws."""
    command = Path(sysconfig.get_path("scripts")) / ("subdp.exe" if os.name == "nt" else "subdp")
    installed = Path(sysconfig.get_path("purelib"))
    assert installed in Path(subdp.__file__).parents, f"{subdp.__file__} is not what was installed"
    with tempfile.TemporaryDirectory() as folder:

        def run(*words: str) -> str:
            done = subprocess.run([command, *words], cwd=folder, check=True, stdout=subprocess.PIPE, encoding="utf-8")
            return done.stdout

        (Path(folder) / "text.txt").write_text(TEXT, encoding="utf-8")
        run("parse", "text.txt", "-o", "text.conllu")
        assert "nsubj" in (Path(folder) / "text.conllu").read_text(encoding="utf-8")
        scores = json.loads(run("evaluate", "text.conllu", "text.conllu", "--json"))
        assert scores["las"] == 100, scores
        assert "dog" in run("show", "text.conllu")
    assert subdp.Parser.load("multi")(TEXT)
    first, second = subdp.Parser.load("en")(TEXT)
    assert (len(first), len(second)) == (8, 4)
    print(f"subdp {subdp.__version__} works with Python {sys.version.split()[0]}")


if __name__ == "__main__":
    main()
