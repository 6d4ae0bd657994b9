"""Words and sentences of raw text, looked at in many scripts."""

from __future__ import annotations

import os
import time
import unicodedata
from pathlib import Path
from typing import Any
from unicodedata import is_normalized, normalize

import pytest
import regex  # type: ignore[import-untyped]
from hypothesis import given
from hypothesis import strategies as st

from subdp.corpus.words import sentences_of, words_of


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("नदी के किनारे हिन्दी की क़िताबें हैं।", "नदी के किनारे हिन्दी की क़िताबें हैं ।"),
        ("كَتَبَ الوَلَدُ رِسالةً، أليس كذلك؟", "كَتَبَ الوَلَدُ رِسالةً ، أليس كذلك ؟"),
        ("우리는 '작은' 집에서 살았다.", "우리는 ' 작은 ' 집에서 살았다 ."),
        ("그는 神을 찾았다", "그는 神을 찾았다"),
        ("می‌روم خانه.", "می‌روم خانه ."),
        ("אמר לצה״ל.", "אמר לצה״ל ."),
        ("Ev 1912'de Ankara'nın dışında, C'nin yanında.", "Ev 1912'de Ankara'nın dışında , C'nin yanında ."),
        ("Об’єкт і м'ята", "Об’єкт і м'ята"),
        ("e\u0301te\u0301 et ete\u0301", "été et eté"),
        ("Sông Hồng đẹp lắm!", "Sông Hồng đẹp lắm !"),
        ("ሰላም ነው።", "ሰላም ነው ።"),
        ("書店へ行く。", "書 店 へ 行 く 。"),
        ("コーヒーを二杯", "コーヒー を 二 杯"),
    ],
)
def test_words_stay_whole_in_every_script(text: str, words: str) -> None:
    assert words_of(text) == tuple(words.split(" "))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("I don't think it's John's.", "I do n't think it 's John 's ."),
        ("We’re here; they’ll WON’T", "We ’re here ; they ’ll WO N’T"),
        ("You cannot, he can't.", "You can not , he ca n't ."),
        ("The dogs' bowl, 'quoted' and 'Andes'", "The dogs ' bowl , ' quoted ' and ' Andes '"),
        ("L'homme qu’il voit aujourd'hui, quelqu'un", "L' homme qu’ il voit aujourd'hui , quelqu'un"),
        ("Dell'arte c'è un'altra idea", "Dell' arte c' è un' altra idea"),
        ("well-known A/B", "well - known A / B"),
        ("It cost $3,000.50 (5%) at 10:30 on 24/12/2004.", "It cost $ 3,000.50 ( 5 % ) at 10:30 on 24/12/2004 ."),
        ("Mr. J. Smith of the U.S. Army, No. 5, e.g. here", "Mr. J. Smith of the U.S. Army , No. 5 , e.g. here"),
        ("No. That is all.", "No . That is all ."),
        ("Wait... what?! -- yes :)", "Wait ... what ?! -- yes :)"),
        (
            "See https://example.org/a?b=c. Or (www.example.org)",
            "See https://example.org/a?b=c . Or ( www.example.org )",
        ),
        ("Write to jo.doe+x@mail.example.org, please", "Write to jo.doe+x@mail.example.org , please"),
        ("www.example.com에서", "www.example.com 에서"),
        ("ok👍🏽 👨\u200d👩\u200d👧 🇩🇪", "ok 👍🏽 👨\u200d👩\u200d👧 🇩🇪"),
    ],
)
def test_words_are_near_to_those_of_universal_dependencies(text: str, words: str) -> None:
    assert words_of(text) == tuple(words.split(" "))


def test_no_break_and_zero_width_spaces_separate_and_invisible_characters_are_no_words() -> None:
    assert words_of("Quoi\u202f? 10\u00a0000 a\u200bb") == ("Quoi", "?", "10", "000", "a", "b")
    assert words_of("\ufeffone \u200e \x07 two\n") == ("one", "two")
    assert words_of("") == words_of(" \t\n") == ()


def test_whitespace_leaves_words_as_they_are() -> None:
    assert words_of("do n't well-known  U.S. ", tokenizer="whitespace") == ("do", "n't", "well-known", "U.S.")


def test_any_function_can_be_the_tokenizer() -> None:
    assert words_of("ab c", tokenizer=list) == ("a", "b", "c")


def visible(text: str) -> str:
    found: str = regex.sub(r"[\s\p{Cc}\p{DI}]", "", text)
    return found


@given(st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from("ab'’.-!?@:/ 1नि가神書")))
def test_nothing_visible_is_lost_and_no_word_holds_white_space(text: str) -> None:
    words = words_of(text)
    assert visible("".join(words)) == visible(unicodedata.normalize("NFC", text))
    assert all(words)
    assert not any(regex.search(r"\s", word) for word in words)


@given(st.text(st.sampled_from("abñе́'क़ि한글مُ")))
def test_a_letter_is_never_parted_from_its_marks(text: str) -> None:
    assert not regex.search(r"\p{L}\|\p{M}", "|".join(words_of(text)))


@given(st.text(st.sampled_from("aB.!?。…\"')» 1\n।")))
def test_sentences_lose_nothing_but_white_space(text: str) -> None:
    assert "".join("".join(sentences_of(text)).split()) == "".join(text.split())


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("He came. She left! Did they? Yes… No.", ["He came.", "She left!", "Did they?", "Yes…", "No."]),
        ("Mr. J. Doe paid 3.50 in the U.S. army. Fine.", ["Mr. J. Doe paid 3.50 in the U.S. army.", "Fine."]),
        ("It is No. 5 of 7. No. Really?", ["It is No. 5 of 7. No.", "Really?"]),
        ("Am 3. Mai kam er. „Ja!“ rief sie. Gut.", ["Am 3. Mai kam er.", "„Ja!“ rief sie.", "Gut."]),
        ('"Go." He went. (It rained.) Then', ['"Go."', "He went.", "(It rained.)", "Then"]),
        ("« Quoi ? » Il rit. Oui.", ["« Quoi ? »", "Il rit.", "Oui."]),
        ("¿Qué? ¡Nada!", ["¿Qué?", "¡Nada!"]),
        ("我走了。你呢？「好！」他說。", ["我走了。", "你呢？", "「好！」", "他說。"]),
        ("मैं गया। वह आई।", ["मैं गया।", "वह आई।"]),
        ("هل ذهبت؟ نعم.", ["هل ذهبت؟", "نعم."]),
        ("one line\nanother. Line\n\n", ["one line", "another.", "Line"]),
        ("wait... what? e.g. this", ["wait... what? e.g. this"]),
        ("", []),
    ],
)
def test_sentences_are_split_with_caution(text: str, sentences: list[str]) -> None:
    assert list(sentences_of(text)) == sentences


@pytest.mark.parametrize("piece", ["-a", ")", "'", "書", "_-", "a.", "1:", "n't", ". "])
def test_no_text_takes_more_than_linear_time(piece: str) -> None:
    start = time.process_time()
    words_of(piece * 20_000)
    sentences_of(piece * 20_000)
    assert time.process_time() - start < 2


@pytest.mark.parametrize(
    ("treebank", "least"),
    [
        ("UD_English-EWT/en_ewt-ud-test", 0.97),
        ("UD_French-GSD/fr_gsd-ud-test", 0.96),
        ("UD_German-GSD/de_gsd-ud-test", 0.97),
        ("UD_Hindi-PUD/hi_pud-ud-test", 0.99),
        ("UD_Italian-ISDT/it_isdt-ud-test", 0.98),
        ("UD_Korean-GSD/ko_gsd-ud-test", 0.97),
        ("UD_Spanish-AnCora/es_ancora-ud-test", 0.97),
        ("UD_Turkish-IMST/tr_imst-ud-test", 0.97),
    ],
)
def test_words_of_real_text_agree_with_its_treebank(treebank: str, least: float) -> None:
    folder = os.environ.get("SUBDP_DATA")
    if folder is None:
        pytest.skip("SUBDP_DATA does not name the folder with the treebanks")
    right = total = 0
    for block in (Path(folder) / "ud" / f"{treebank}.conllu").read_text("utf-8").strip().split("\n\n"):
        text = next(line[9:] for line in block.split("\n") if line.startswith("# text = "))
        found, expected = spans(words_of(text)), spans(surface_words(block))
        right += 2 * len(found & expected)
        total += len(found) + len(expected)
    assert right / total >= least


def surface_words(block: str) -> list[str]:
    """The words as written: a range stands for the words that it spans."""
    words, last = [], 0
    for number, word, *_ in (line.split("\t") for line in block.split("\n") if not line.startswith("#")):
        if "-" in number:
            last = int(number.split("-")[1])
            words.append(word)
        elif number.isdecimal() and int(number) > last:
            words.append(word)
    return words


def spans(words: list[str] | tuple[str, ...]) -> set[tuple[int, int]]:
    """From where to where each word goes, white space not counted."""
    places, start = set(), 0
    for word in words:
        length = len("".join(word.split()))
        places.add((start, start + length))
        start += length
    return places


VIETNAMESE = "Tôi đã đọc cuốn sách ấy. Ông ấy nói tiếng Việt rất giỏi! L'été, c'est déjà fini… Über Ägypten (한국어)."


@pytest.mark.parametrize("tokenizer", ["unicode", "whitespace", str.split, lambda text: list(text)])
def test_nfc_and_nfd_give_the_same_words(tokenizer: Any) -> None:
    composed, decomposed = normalize("NFC", VIETNAMESE), normalize("NFD", VIETNAMESE)
    assert composed != decomposed
    assert words_of(decomposed, tokenizer) == words_of(composed, tokenizer)
    assert sentences_of(decomposed) == sentences_of(composed)
    assert all(is_normalized("NFC", word) for word in words_of(decomposed, tokenizer))
