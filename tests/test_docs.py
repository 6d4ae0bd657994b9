"""The worked example of docs/layers.md, as it stands there: names are learnt from English and found in German."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from subdp.corpus.layers import find_layer

ROOT = Path(__file__).parents[1]


@pytest.mark.trains
def test_named_entities_are_projected_onto_german(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "layers.md").read_text(encoding="utf-8"), re.DOTALL)
    monkeypatch.chdir(ROOT)
    names: dict[str, Any] = {}
    exec(code, names)  # our own documentation
    printed = capsys.readouterr().out
    assert "NE=B-PER" in printed
    german, english = names["german"], names["english"]
    assert german.layers == english.layers == ("upos", "misc:NE")
    (sentence,) = german("Peter kommt aus Wien.")
    found = find_layer("misc:NE").read(sentence)
    assert found[0] == "B-PER"
    assert found[3] == "B-LOC"
