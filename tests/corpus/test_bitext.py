"""Bitext: every format and every fault of a file, the filters by hand-made cases, samples that nest."""

from __future__ import annotations

import gzip
import io
import json
import os
import sys
import tracemalloc
from dataclasses import replace
from pathlib import Path
from typing import Literal
from unicodedata import normalize

import pytest
from hypothesis import given
from hypothesis import strategies as st

from subdp.corpus.bitext import SIZES, Bitext, Pair, read_bitext
from subdp.corpus.bitext_report import Report
from subdp.corpus.filters import LANGUAGE_TOKENS, Filters
from subdp.support.errors import SubdpError


def pair(source: str, target: str, key: str | None = None) -> Pair:
    return Pair(tuple(source.split()), tuple(target.split()), key)


def numbered(count: int) -> Bitext:
    return Bitext.of([pair(f"word {n} here", f"Wort {n} da", str(n)) for n in range(count)])


def saved(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def tree(key: str | None, *words: str) -> str:
    rows = [f"{i}\t{word}\t_\t_\t_\t_\t{i - 1}\tdep\t_\t_" for i, word in enumerate(words, 1)]
    return "\n".join(([f"# sent_id = {key}"] if key else []) + rows) + "\n\n"


# Reading


def test_a_table_is_cut_into_words_and_keeps_its_line_numbers(tmp_path: Path) -> None:
    bitext = read_bitext(saved(tmp_path, "en-fr.tsv", "It's late.\tC'est tard.\n\nGo!\tVa !\n"))
    assert [p.source for p in bitext] == [("It", "'s", "late", "."), ("Go", "!")]
    assert [p.target for p in bitext] == [("C'", "est", "tard", "."), ("Va", "!")]
    assert [p.id for p in bitext] == ["1", "3"]
    assert bitext.report.as_dict()["dropped"] == {"empty side": 1}
    assert bitext.where.endswith("en-fr.tsv")
    assert bitext.words == (6, 6)


def test_tokenized_text_is_cut_at_spaces_alone(tmp_path: Path) -> None:
    path = saved(tmp_path, "x.tsv", "don't-go U.S .\tgeh' nicht\n")
    assert read_bitext(path, tokenized=True)[0] == Pair(("don't-go", "U.S", "."), ("geh'", "nicht"), "1")


def test_each_side_can_have_its_own_tokenizer(tmp_path: Path) -> None:
    path = saved(tmp_path, "x.tsv", "a-b\tc-d\n")
    assert read_bitext(path, tokenizer="whitespace")[0] == Pair(("a", "-", "b"), ("c-d",), "1")
    assert read_bitext(path, source_tokenizer=lambda text: text.split("-"))[0] == Pair(("a", "b"), ("c", "-", "d"), "1")


def test_two_files_are_read_line_by_line_also_compressed(tmp_path: Path) -> None:
    source = saved(tmp_path, "x.en", "one\ntwo\tthree\n\n")
    target = saved(tmp_path, "x.de.gz", gzip.compress(b"eins\nzwei drei\n\n"))
    bitext = read_bitext(source, target)
    assert [(p.source, p.target) for p in bitext] == [(("one",), ("eins",)), (("two", "three"), ("zwei", "drei"))]
    assert bitext.report.dropped == {"empty side": 1}


def test_wikimatrix_is_recognised_and_low_scores_are_counted(tmp_path: Path) -> None:
    path = saved(tmp_path, "wiki.tsv", "1.20\tgood one\tgut\n1.03\tpoor\tarm\n1.04\tjust\teben\n")
    bitext = read_bitext(path)
    assert [p.id for p in bitext] == ["1", "3"]
    assert bitext.report.dropped == {"score below 1.04": 1}
    assert read_bitext(path, threshold=1.1).report.dropped == {"score below 1.1": 2}
    assert len(read_bitext(path, format="wikimatrix", threshold=0)) == 3


def test_parallel_treebanks_are_joined_by_sent_id_and_keep_their_words(tmp_path: Path) -> None:
    source = saved(tmp_path, "en.conllu", tree("a", "do", "n't") + tree("b", "only", "here") + tree("c", "end"))
    target = saved(tmp_path, "de.conllu", tree("c", "Ende") + tree("x", "nur") + tree("y", "da") + tree("a", "nicht"))
    bitext = read_bitext(source, target)
    assert bitext.pairs == (pair("do n't", "nicht", "a"), pair("end", "Ende", "c"))
    assert bitext.report.dropped == {"only in the source": 1, "only in the target": 2}
    assert bitext.report.read == 5


PAIRS = ["It rained yesterday.\tHôm qua trời mưa.", "Éamon's café\tquán cà phê của Éamon", "été\tмой йод"]


def test_nfc_and_nfd_files_give_the_same_words_in_every_format(tmp_path: Path) -> None:
    def read(form: Literal["NFC", "NFD"]) -> list[Bitext]:
        lines = [normalize(form, line) for line in PAIRS]
        sides = list(zip(*(line.split("\t") for line in lines), strict=True))
        table = saved(tmp_path, "pairs.tsv", "\n".join(lines) + "\n")
        moses = [saved(tmp_path, name, "\n".join(side)) for name, side in zip(("a.txt", "b.txt"), sides, strict=True)]
        trees = [
            saved(tmp_path, name, "".join(tree(str(n), *text.split()) for n, text in enumerate(side)))
            for name, side in zip(("a.conllu", "b.conllu"), sides, strict=True)
        ]
        return [read_bitext(table), read_bitext(table, tokenized=True), read_bitext(*moses), read_bitext(*trees)]

    for composed, decomposed in zip(read("NFC"), read("NFD"), strict=True):
        assert decomposed.pairs == composed.pairs
        assert decomposed.fingerprint == composed.fingerprint
        assert decomposed.clean().report == composed.clean().report


def test_standard_input_is_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"one\teins\n")))
    assert read_bitext("-").pairs == (pair("one", "eins", "1"),)


def test_a_table_from_a_spreadsheet_with_byte_order_mark_and_crlf_is_fine(tmp_path: Path) -> None:
    path = saved(tmp_path, "x.tsv", b"\xef\xbb\xbfone\teins\r\ntwo\tzwei\r\n")
    assert read_bitext(path, tokenized=True).pairs == (pair("one", "eins", "1"), pair("two", "zwei", "2"))


@pytest.mark.parametrize(
    ("content", "line", "reason", "hint"),
    [
        ("one\teins\nno tab here\n", 2, "no tab in the line", "source TAB target"),
        ("one\teins\na\tb\tc\n", 2, "3 columns instead of 2", "source TAB target"),
        ("name\tb\tc\n", 1, "3 columns instead of 2", "score TAB source"),
        ("1.1\ta\tb\nhigh\ta\tb\n", 2, "the score 'high' is not a number", "score TAB"),
        ("1.1\ta\tb\nnan\ta\tb\n", 2, "the score 'nan' is not a number", "score TAB"),
        ("1.1\ta\tb\na\tb\n", 2, "2 columns instead of 3", "score TAB"),
        (b"one\teins\ncaf\xe9\tx\n", 2, "byte 0xe9 is not UTF-8", "iconv"),
        (b"one\teins\na\0b\tx\n", 2, "a NUL byte", "not a text file"),
        ("one\teins\n".encode("utf-16"), None, "UTF-16", "UTF-8"),
        ("", None, "no lines", "empty"),
    ],
)
def test_faults_of_a_table_are_located(
    tmp_path: Path, content: str | bytes, line: int | None, reason: str, hint: str
) -> None:
    path = saved(tmp_path, "bad.tsv", content)
    with pytest.raises(SubdpError) as caught:
        read_bitext(path)
    error = caught.value
    assert (error.where, error.line) == (str(path), line)
    assert reason in error.reason
    assert hint in (error.hint or "")


def test_two_files_of_different_length_are_told_with_both_counts(tmp_path: Path) -> None:
    source, target = saved(tmp_path, "x.en", "a\nb\nc\n"), saved(tmp_path, "x.de", "a\nb\nc\nd\ne\n")
    with pytest.raises(SubdpError, match=r"x\.en: 3 lines, but .*x\.de has 5"):
        read_bitext(source, target)
    with pytest.raises(SubdpError, match=r"x\.de: 5 lines, but .*x\.en has 3"):
        read_bitext(target, source)


def test_faults_of_parallel_treebanks_are_told(tmp_path: Path) -> None:
    good = saved(tmp_path, "good.conllu", tree("a", "one"))
    twice = saved(tmp_path, "twice.conllu", tree("a", "one") + tree("a", "two"))
    without = saved(tmp_path, "without.conllu", tree("a", "one") + tree(None, "two"))
    other = saved(tmp_path, "other.conllu", tree("z", "one"))
    with pytest.raises(SubdpError, match=r"twice\.conllu: sentence 2 repeats the sent_id a"):
        read_bitext(good, twice)
    with pytest.raises(SubdpError, match=r"without\.conllu: sentence 2 has no sent_id"):
        read_bitext(without, good)
    with pytest.raises(SubdpError, match=r"no sent_id in common with .*other"):
        read_bitext(good, other)


def test_requests_that_make_no_sense_are_refused(tmp_path: Path) -> None:
    table, treebank = saved(tmp_path, "x.tsv", "a\tb\n"), saved(tmp_path, "x.conllu", tree("a", "b"))
    with pytest.raises(SubdpError, match="moses is read from two files"):
        read_bitext(table, format="moses")
    with pytest.raises(SubdpError, match="conllu is read from two files"):
        read_bitext(treebank)
    with pytest.raises(SubdpError, match="tsv is read from one file"):
        read_bitext(table, table, format="tsv")
    with pytest.raises(SubdpError, match="has no scores"):
        read_bitext(table, table, threshold=1.1)
    with pytest.raises(SubdpError, match=r"x\.tsv:1: a threshold is given"):
        read_bitext(table, threshold=1.1)
    with pytest.raises(SubdpError, match="standard input"):
        read_bitext("-", "-")
    with pytest.raises(SubdpError, match="no such file"):
        read_bitext(tmp_path / "missing.tsv")


def test_a_damaged_gz_is_told(tmp_path: Path) -> None:
    packed = gzip.compress(b"one\teins\n" * 1000)
    with pytest.raises(SubdpError, match="cannot be unpacked"):
        read_bitext(saved(tmp_path, "cut.tsv.gz", packed[: len(packed) // 2]))
    with pytest.raises(SubdpError, match="cannot be unpacked"):
        read_bitext(saved(tmp_path, "plain.tsv.gz", "one\teins\n"))


# Cleaning


@pytest.mark.parametrize(
    ("source", "target", "reason"),
    [
        ("a b c d e", "a b c d X", "copy"),
        ("a b c d e", "a b c X Y", None),
        ("Tom , no !", "Tom , nein !", None),
        ("Tom !", "Tom !", "copy"),
        ("? !", "? !", "copy"),
        ("one word", "Eins one word", None),
        ("a b c d e", "x x y y z", "repetition"),
        ("a b c d e", "x x y z w", None),
        ("a b c d e", "x , y , z , w ,", None),
        ("he he", "ho ho", "repetition"),
        ("a b c", "q r s [es_XX]", "language token"),
        ("a b c", "q r s [de_DE] [es_XX]", "language token"),
        ("a b c", "es_XX q r s", "language token"),
        ("a b c", "q r s [ es_XX ]", "language token"),
        ("a", "[de_DE]", "empty side"),
        ("a", "q r s", None),
        ("a", "q r s t", "length ratio"),
        ("a b c d", "q", "length ratio"),
        ("a " * 150, "b c " * 75 + "d", "too long"),
    ],
)
def test_each_filter_by_hand(source: str, target: str, reason: str | None) -> None:
    cleaned = Bitext.of([pair(source, target)]).clean("de")
    assert cleaned.report.dropped == ({} if reason is None else {reason: 1})
    assert len(cleaned) == (reason is None)


@pytest.mark.parametrize("token", ["[de_DE]", "de_DE", "[ de_DE ]"])
def test_the_token_of_the_right_language_is_taken_out_and_counted(token: str) -> None:
    bitext = Bitext.of([pair("a b", f"q r {token}", "7"), pair("c", "s")])
    for language in ("de", "de_DE"):
        cleaned = bitext.clean(language)
        assert cleaned.pairs == (pair("a b", "q r", "7"), pair("c", "s"))
        assert cleaned.report.changed == {"language token taken out": 1}
    assert bitext.clean().report.dropped == {"language token": 1}


def test_the_languages_of_the_paper_have_their_tokens() -> None:
    codes = {token[:2] for token in LANGUAGE_TOKENS}
    assert {"en", "ar", "hi", "ko", "tr", "de", "es", "fr", "it"} <= codes
    assert len(LANGUAGE_TOKENS) == len(codes) == 52


def test_only_equal_pairs_are_duplicates_and_the_first_is_kept() -> None:
    bitext = Bitext.of([pair("a", "b", "1"), pair("a", "c", "2"), pair("a", "b", "3"), pair("d", "b", "4")])
    cleaned = bitext.clean()
    assert [p.id for p in cleaned] == ["1", "2", "4"]
    assert cleaned.report.dropped == {"duplicate": 1}


def test_limits_can_be_moved_and_must_make_sense() -> None:
    bitext = Bitext.of([pair("a", "q r s t"), pair("a b", "a b"), pair("c", "x x")])
    assert len(bitext.clean(filters=Filters(ratio=4, copies=1.1, repetitions=1.1))) == 3
    assert bitext.clean(filters=Filters(longest=1)).report.dropped == {"too long": 3}
    for wrong in ({"copies": 0.0}, {"repetitions": -1.0}, {"longest": 0}, {"ratio": 0.5}):
        with pytest.raises(ValueError, match="must be"):
            Filters(**wrong)


words = st.lists(st.sampled_from(["a", "b", "c", ".", "de_DE", "[es_XX]", "1"]), min_size=1, max_size=6).map(tuple)


@given(st.lists(st.builds(Pair, words, words), max_size=30), st.sampled_from([None, "de"]))
def test_cleaning_accounts_for_every_pair_and_is_done_once(pairs: list[Pair], language: str | None) -> None:
    cleaned = Bitext.of(pairs).clean(language)
    assert len(cleaned) + sum(cleaned.report.dropped.values()) == len(pairs)
    assert cleaned.clean(language).pairs == cleaned.pairs


@given(st.lists(st.builds(Pair, words, words), max_size=30), st.sampled_from([None, "de"]))
def test_cleaning_on_disk_is_the_same_as_in_memory(pairs: list[Pair], language: str | None) -> None:
    kept: dict[tuple[tuple[str, ...], tuple[str, ...]], Pair] = {}
    for one in pairs:
        verdict = Filters().judge(one.source, one.target, language)
        if not isinstance(verdict, str):
            kept.setdefault((one.source, verdict), replace(one, target=verdict))
    assert Bitext.of(pairs).clean(language).pairs == tuple(kept.values())


def test_a_bitext_is_not_held_in_memory(tmp_path: Path) -> None:
    def peak(count: int) -> int:
        sides = ([" ".join(f"{word}{n + k}" for k in range(25)) for word in ("word", "Wort")] for n in range(count))
        path = saved(tmp_path, f"{count}.tsv", "".join(f"{source}\t{target}\n" for source, target in sides))
        tracemalloc.start()
        read_bitext(path, tokenized=True).clean().sample(count // 2, seed=1)
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most

    numbered(3).clean().sample(2, seed=1)  # What is imported on the way does not count.
    assert peak(2000) - peak(500) < 1500 * 100, "the words of a pair alone take more than that"


# Bitext as a value


def test_a_pair_has_words_on_both_sides() -> None:
    assert Pair(["a"], ["b"]).source == ("a",)  # type: ignore[arg-type]
    for bad in ((), ("a", "")):
        with pytest.raises(SubdpError, match="target of a pair"):
            Pair(("a",), bad)
    with pytest.raises(TypeError, match="one string"):
        Pair("a b", ("c",))  # type: ignore[arg-type]


def test_a_report_that_does_not_match_its_pairs_is_refused() -> None:
    with pytest.raises(ValueError, match="the report says that"):
        Bitext((pair("a", "b"),), "x", Report(5, {"copy": 1}))


@given(st.integers(0, 60), st.integers(0, 60), st.integers(0, 5))
def test_samples_nest_keep_the_order_and_are_the_same_every_time(first: int, second: int, seed: int) -> None:
    bitext = numbered(60)
    small, large = sorted((first, second))
    inner, outer = bitext.sample(small, seed), bitext.sample(large, seed)
    assert set(inner) <= set(outer)
    assert (len(inner), len(outer)) == (small, large)
    assert [p.id for p in outer] == sorted((p.id or "" for p in outer), key=int)
    assert outer == bitext.sample(large, seed)


def test_a_sample_is_the_same_on_every_machine() -> None:
    assert [p.id for p in numbered(20).sample(5, seed=1)] == ["0", "8", "9", "13", "19"]


def test_a_sample_larger_than_the_bitext_is_an_error() -> None:
    with pytest.raises(SubdpError, match="a sample of 100 from 60 pairs"):
        numbered(60).sample(100, seed=1)


def test_sizes_double_from_fifty() -> None:
    assert SIZES == (50, 100, 200, 400, 800, 1600, 3200, 6400, 12800, 25600)


def test_concatenation_adds_pairs_and_reports() -> None:
    first = Bitext((pair("a", "b"),), "one", Report(3, {"copy": 2}))
    second = Bitext((pair("c", "d"),), "two", Report(3, {"copy": 1, "too long": 1}, {"token": 1}))
    both = first + second
    assert both.pairs == (*first, *second)
    assert both.where == "one + two"
    assert both.report == Report(6, {"copy": 3, "too long": 1}, {"token": 1})


def test_it_is_a_sequence() -> None:
    bitext = numbered(5)
    assert bitext[1].id == "1"
    assert bitext[-2:] == bitext.pairs[3:]
    assert bitext[3] in bitext
    assert bitext.index(bitext[3]) == 3


def test_the_fingerprint_is_of_the_words_alone() -> None:
    one, other = Bitext.of([pair("a b", "c", "1")], "x"), Bitext.of([pair("a b", "c", "2")], "y")
    assert one.fingerprint == other.fingerprint
    assert len(one.fingerprint) == 64
    assert one.fingerprint != Bitext.of([pair("a", "b c")]).fingerprint
    assert one.fingerprint != Bitext.of([Pair(("a b",), ("c",))]).fingerprint


def test_the_report_is_a_table_and_json() -> None:
    report = Report(20_000, {"copy": 300, "empty side": 12}, {"language token taken out": 5})
    assert str(report) == (
        "read                          20,000  100.0%\n"
        "- copy                           300    1.5%\n"
        "- empty side                      12    0.1%\n"
        "kept                          19,688   98.4%\n"
        "* language token taken out         5    0.0%"
    )
    assert json.loads(json.dumps(report.as_dict()))["kept"] == 19_688
    assert str(Report(0)).startswith("read")


@pytest.mark.parametrize("language", ["ar", "de", "hi", "ko", "tr"])
def test_filters_leave_real_translations_alone(language: str) -> None:
    folder = os.environ.get("SUBDP_DATA")
    if folder is None:
        pytest.skip("SUBDP_DATA does not name the folder with the bitext")
    ntrex = Path(folder) / "bitext" / "ntrex"
    cleaned = read_bitext(ntrex / "en.txt", ntrex / f"{language}.txt").clean(language)
    assert cleaned.report.read == 1997
    assert cleaned.report.kept >= 0.985 * 1997
