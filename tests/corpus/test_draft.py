"""What a parser can be given in Python becomes sentences; anything else is named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from subdp.corpus.draft import as_sentences
from subdp.corpus.treebank import Sentence


def test_text_is_split_and_words_are_kept() -> None:
    own = Sentence.of(["as", "it", "is"], comments=["sent_id = own"])
    found = list(as_sentences(["Go! It's late.", ["It's", "late"], own, ""]))
    assert [sentence.words for sentence in found[:3]] == [("Go", "!"), ("It", "'s", "late", "."), ("It's", "late")]
    assert [sentence.sent_id for sentence in found] == ["1", "2", "3", "own"]
    assert found[3] is own
    assert [sentence.words for sentence in as_sentences("Go! Now.")] == [("Go", "!"), ("Now", ".")]
    assert list(as_sentences(own)) == [own]
    assert [len(sentence) for sentence in as_sentences("Don't!", tokenizer="whitespace")] == [1]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (3, "this int, 3"),
        (None, "NoneType"),
        (b"text", "bytes"),
        ({"text": "a"}, "dict"),
        (Path("text.txt"), "PosixPath|WindowsPath"),
        ([3], "this int, 3"),
        ([["a", 3]], r"this list, \['a', 3\]"),
    ],
)
def test_anything_else_is_named(given: Any, said: str) -> None:
    with pytest.raises(TypeError, match=f"lists of words, but was given .*({said})"):
        list(as_sentences(given))
