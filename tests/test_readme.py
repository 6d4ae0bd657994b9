"""The README cannot lie: its Python examples run and print what it says, and so do those in docstrings."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest

import subdp

README = Path(__file__).parents[1] / "README.md"
SOURCE = Path(subdp.__file__).parent
WITH_EXAMPLES = sorted(file for file in SOURCE.rglob("*.py") if ">>>" in file.read_text(encoding="utf-8"))


def test_the_examples_of_the_readme_print_what_it_says() -> None:
    result = doctest.testfile(str(README), module_relative=False)
    assert result.attempted >= 4
    assert result.failed == 0


@pytest.mark.parametrize("file", WITH_EXAMPLES, ids=lambda file: file.stem)
def test_the_examples_in_docstrings_print_what_they_say(file: Path) -> None:
    name = ".".join(["subdp", *file.relative_to(SOURCE).with_suffix("").parts])
    result = doctest.testmod(importlib.import_module(name))
    assert result.attempted > 0
    assert result.failed == 0
