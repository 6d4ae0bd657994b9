"""The README cannot lie: its Python examples run and print what it says."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

README = Path(__file__).parents[1] / "README.md"


def test_the_examples_of_the_readme_print_what_it_says() -> None:
    result = doctest.testfile(str(README), module_relative=False)
    assert result.attempted >= 4
    assert result.failed == 0


def test_the_examples_in_docstrings_print_what_they_say() -> None:
    attempted = 0
    for name in ("align", "config", "confidence", "draft", "progress", "softtree", "treebank", "words"):
        result = doctest.testmod(importlib.import_module(f"subdp.{name}"))
        attempted += result.attempted
        assert result.failed == 0, name
    assert attempted >= 8
