"""The right tokenizer for a script, or a refusal that says what to install; the real ones, where they are installed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from subdp.corpus import tokenizers
from subdp.corpus.bitext import read_bitext
from subdp.corpus.draft import as_sentences, read_sentences
from subdp.corpus.tokenizers import DICTIONARIES, Dictionary, choose_tokenizer, tokenizer_key, unspaced_script
from subdp.corpus.words import words_of
from subdp.support.errors import SubdpError
from tests.support.test_plugins import install

THAI = "ฉันไปตลาด"
CHINESE = "我昨天去了书店"
GERMAN = "Das Wort 漢字 heißt auf Japanisch かんじ und auf Thai อักษรจีน."


@pytest.mark.parametrize(
    ("text", "script"),
    [
        ("ภาษาไทยไม่มีช่องว่าง", "Thai"),
        ("我去了書店", "Han"),
        ("今日は本を読む", "Japanese"),
        (CHINESE * 10 + "の", "Han"),
        ("ភាសាខ្មែរ", "Khmer"),
        ("ພາສາລາວ", "Lao"),
        ("မြန်မာစာ", "Myanmar"),
        ("བོད་སྐད", "Tibetan"),
        ("Plain English with 漢字 in it", None),
        (GERMAN, None),
        ("그는 神을 찾았다", None),
        ("나는 어제 서점에 갔다.", None),
        ("हिन्दी में", None),
        ("Trường đại học bách khoa là một trường lớn ở Hà Nội.", "Vietnamese"),
        ("Tru\u031bo\u031b\u0300ng đa\u0323i ho\u0323c lo\u031b\u0301n, mo\u0323\u0302t", "Vietnamese"),
        ("Été à Đà Nẵng", None),
        ("Mo fẹ́ràn ọmọ náà, ó sì dára púpọ̀.", None),
        ("Ụlọ akwụkwọ ahụ dị na Naịjirịa.", None),
        ("President Võ Văn Thưởng resigned on Wednesday.", None),
        ("I ate bún chả and phở today.", None),
        ("Mr. Nguyễn Văn Tưởng said no.", None),
        ("Ơi Adai hrih pơjing adai rơngit hăng lŏn tơnah.", None),
        ("123 !?", None),
        ("", None),
    ],
)
def test_scripts_without_spaces_are_named(text: str, script: str | None) -> None:
    assert unspaced_script(text) == script


@pytest.fixture
def pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """A Thai tokenizer that gives pieces of three letters; no other is installed."""

    def make() -> Callable[[str], list[str]]:
        return lambda text: [text[at : at + 3] for at in range(0, len(text), 3)]

    here = {"th": Dictionary("Thai", ("pytest",), make)}
    gone = {name: Dictionary(one.script, ("no_such_package",), one.make) for name, one in DICTIONARIES.items()}
    monkeypatch.setattr(tokenizers, "DICTIONARIES", gone | here)
    tokenizers._dictionary.cache_clear()


@pytest.mark.usefixtures("pieces")
def test_a_script_calls_for_its_tokenizer(tmp_path: Path) -> None:
    words = ("ฉัน", "ไปต", "ลาด")
    path = tmp_path / "en-th.tsv"
    path.write_text(f"I go to market\t{THAI}\n", encoding="utf-8")
    (pair,) = bitext = read_bitext(path)
    assert (pair.source, pair.target) == (("I", "go", "to", "market"), words)
    assert bitext.tokenizer == bitext.clean().tokenizer == bitext.sample(1, 1).tokenizer == "th"
    path = tmp_path / "th.txt"
    path.write_text(THAI, encoding="utf-8")
    assert [sentence.words for sentence in read_sentences(path)] == [words]
    assert [sentence.words for sentence in as_sentences([["one", "two"], THAI])] == [("one", "two"), words]


@pytest.mark.usefixtures("pieces")
def test_what_is_not_installed_is_refused_with_the_command_that_installs_it(tmp_path: Path) -> None:
    path = tmp_path / "en-zh.tsv"
    path.write_text(f"I went\t{CHINESE}\n", encoding="utf-8")
    said = r"en-zh\.tsv: the target is written in Han script, without spaces.*pip install 'subdp\[zh\]'"
    with pytest.raises(SubdpError, match=said):
        read_bitext(path)
    with pytest.raises(SubdpError, match=r"the text is written in Japanese script.*'subdp\[ja\]'"):
        list(as_sentences("今日は本を読む。"))
    with pytest.raises(SubdpError, match=r"the tokenizer 'zh' needs no_such_package \(pip install 'subdp\[zh\]'\)"):
        words_of(CHINESE, "zh")
    with pytest.raises(SubdpError, match=r"looks Vietnamese, where spaces separate.*'subdp\[vi\]'.*unicode"):
        list(as_sentences("Một trường đại học lớn."))
    with pytest.raises(SubdpError, match=r"written in Khmer script.*--tokenizer.*--tokenized"):
        choose_tokenizer("auto", ["ភាសាខ្មែរ"])


@pytest.mark.usefixtures("pieces")
def test_words_and_what_was_asked_for_are_never_refused(tmp_path: Path) -> None:
    path = tmp_path / "en-zh.tsv"
    path.write_text("I went\t我 去 了\n", encoding="utf-8")
    assert read_bitext(path, tokenized=True)[0].target == ("我", "去", "了")
    assert read_bitext(path, tokenized=True).tokenizer is None
    asked = read_bitext(path, tokenizer="unicode")
    assert (asked[0].target, asked.tokenizer) == (("我", "去", "了"), "unicode")
    assert [sentence.words for sentence in read_sentences(path, "words")] == [("I", "went", "我", "去", "了")]
    assert [sentence.words for sentence in as_sentences([["我", "去"]])] == [("我", "去")]


@pytest.mark.usefixtures("pieces")
def test_a_few_foreign_words_call_for_nothing(tmp_path: Path) -> None:
    path = tmp_path / "en-de.tsv"
    path.write_text(f"The sign\t漢字\n{'It means a sign' * 3}\t{GERMAN}\n", encoding="utf-8")
    assert read_bitext(path).tokenizer is None


def test_a_key_changes_with_the_version_of_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    install(tmp_path, "versioned", "[subdp.tokenizers]\nversioned = versioned:words\n", "words = str.split\n")
    assert tokenizer_key("unicode") == "unicode"
    assert tokenizer_key("versioned") == "versioned of versioned 1.2"
    with pytest.raises(SubdpError, match="no tokenizer is called 'dish'"):
        tokenizer_key("dish")


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("zh", "他昨天去了图书馆。", "他 昨天 去 了 图书馆 。"),
        ("ja", "私は本を読みました。", "私 は 本 を 読み まし た 。"),
        ("th", "ฉันไปตลาดกับเพื่อน", "ฉัน ไป ตลาด กับ เพื่อน"),
    ],
)
def test_the_real_ones_find_words(name: str, text: str, words: str) -> None:
    for package in DICTIONARIES[name].packages:
        pytest.importorskip(package, reason=f"pip install 'subdp[{name}]'")
    assert choose_tokenizer("auto", [text]) == name
    assert words_of(text, name) == tuple(words.split())


def test_vietnamese_words_are_of_one_or_more_syllables() -> None:
    pytest.importorskip("pyvi", reason="pip install 'subdp[vi]'")
    text = "Trường đại học này rất lớn, a_b."
    assert choose_tokenizer("auto", [text]) == "vi"
    assert words_of(text, "vi") == ("Trường", "đại học", "này", "rất", "lớn", ",", "a_b", ".")
    assert words_of("  \u200b", "vi") == ()
    assert words_of("đại_học và đại học, Hà Nội_Việt Nam", "vi")[:3] == ("đại_học", "và", "đại học")
    assert "".join(words_of("Hà Nội_Việt  Nam", "vi")).replace(" ", "") == "HàNội_ViệtNam"
    (sentence,) = as_sentences(text)
    assert sentence.words[1] == "đại học"
    assert f"# text = {text}" in sentence.conllu
