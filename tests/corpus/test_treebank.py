"""Reading and writing CoNLL-U: nothing is lost, and what is wrong is said with its place."""

from __future__ import annotations

import gzip
import io
import os
import re
import warnings
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from subdp.corpus.treebank import UNKNOWN, Sentence, read_conllu, write_conllu
from subdp.support.errors import SubdpError

PLAIN = """\
# sent_id = a1
# text = Im Haus schläft er.
1-2\tIm\t_\t_\t_\t_\t_\t_\t_\t_
1\tIn\tin\tADP\t_\t_\t3\tcase\t_\t_
2\tdem\tder\tDET\t_\t_\t3\tdet\t_\t_
3\tHaus\tHaus\tNOUN\t_\t_\t4\tobl\t4:obl:in\tSpaceAfter=Yes
4\tschläft\tschlafen\tVERB\t_\t_\t0\troot\t0:root\t_
4.1\tschläft\tschlafen\tVERB\t_\t_\t_\t_\t0:root\tCopy=4
5\ter\ter\tPRON\t_\t_\t4\tnsubj:pass\t4:nsubj\t_
"""


def row(word: int, head: int | str, *, form: str = "w", label: str = "dep") -> str:
    return f"{word}\t{form}\t_\t_\t_\t_\t{head}\t{label}\t_\t_"


def block(*lines: str) -> str:
    return "\n".join(lines) + "\n\n"


def read(text: str | bytes, **options: bool) -> list[Sentence]:
    return list(read_conllu(io.BytesIO(text.encode() if isinstance(text, str) else text), **options))


def test_columns_are_read_and_ranges_and_empty_nodes_are_not_words() -> None:
    (sentence,) = read(PLAIN + "\n")
    assert sentence.words == ("In", "dem", "Haus", "schläft", "er")
    assert sentence.heads == (3, 3, 4, 0, 4)
    assert sentence.labels == ("case", "det", "obl", "root", "nsubj:pass")
    assert sentence.universal_labels == ("case", "det", "obl", "root", "nsubj")
    assert sentence.upos[3] == "VERB"
    assert sentence.sent_id == "a1"
    assert sentence.text == "Im Haus schläft er."


def test_writing_gives_back_the_bytes_that_were_read(tmp_path: Path) -> None:
    text = (PLAIN + "\n" + block("# no words known", row(1, "_", label="_"))) * 3
    for name in ("plain.conllu", "packed.conllu.gz"):
        write_conllu(read(text), tmp_path / name)
        write_conllu(read_conllu(tmp_path / name), tmp_path / "again.conllu")
        assert (tmp_path / "again.conllu").read_bytes() == text.encode()


def test_words_are_composed_and_the_forms_stay_as_they_were_written(tmp_path: Path) -> None:
    decomposed = block("# text = e\u0301te\u0301", row(1, 0, form="e\u0301te\u0301"))
    (sentence,) = read(decomposed)
    assert sentence.words == ("été",)
    write_conllu([sentence.with_tree([0], ["root"])], tmp_path / "out.conllu")
    assert (tmp_path / "out.conllu").read_text(encoding="utf-8") == decomposed.replace("dep", "root")


def test_text_files_and_byte_files_are_read_and_written_alike() -> None:
    output = io.StringIO()
    write_conllu(read_conllu(io.StringIO(PLAIN + "\n")), output)
    assert output.getvalue() == PLAIN + "\n"


def test_a_file_that_came_open_stays_open_and_standard_input_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = io.BytesIO((PLAIN + "\n").encode())
    assert len(list(read_conllu(stream))) == 1
    assert not stream.closed
    stream.seek(0)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(stream))
    assert len(list(read_conllu("-"))) == 1
    assert not stream.closed
    path = tmp_path / "x.conllu"
    path.write_text(PLAIN + "\n")
    with warnings.catch_warnings():
        warnings.simplefilter("error", ResourceWarning)
        assert len(list(read_conllu(path))) == 1


def test_sentences_longer_than_the_read_buffer_arrive_whole() -> None:
    words = 60_000
    text = block(*(row(word, word - 1) for word in range(1, words + 1)))
    assert [len(sentence) for sentence in read(text + text)] == [words, words]


def test_an_interrupted_write_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "x.conllu"
    path.write_text("old")

    def sentences() -> object:
        yield Sentence.of(["a"])
        raise RuntimeError

    with pytest.raises(RuntimeError):
        write_conllu(sentences(), path)  # type: ignore[arg-type]
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


WORDS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1).filter(lambda word: "\n" not in word)


@given(st.lists(WORDS, min_size=1, max_size=8), st.randoms(use_true_random=False))
def test_a_sentence_made_in_code_is_written_and_read_back_equal(words: list[str], random: object) -> None:
    heads = [0] + [random.randint(1, word) for word in range(1, len(words))]  # type: ignore[attr-defined]
    sentence = Sentence.of(words, heads=heads, labels=["x"] * len(words), comments=["made = here"])
    output = io.BytesIO()
    write_conllu([sentence], output)
    assert read(output.getvalue()) == [sentence]


def test_unknown_heads_are_kept_apart_from_root() -> None:
    (sentence,) = read(block(row(1, "_"), row(2, 0), row(3, 2)))
    assert sentence.heads == (UNKNOWN, 0, 2)


def test_with_tree_fills_heads_and_keeps_all_else() -> None:
    (sentence,) = read(PLAIN + "\n")
    parsed = sentence.with_tree([2, 0, 2, 2, 2], ["a", "root", "b", "c", "d"], misc=["", "", "P=1", "P=2", ""])
    assert parsed.heads == (2, 0, 2, 2, 2)
    lines = parsed.conllu.split("\n")
    assert lines[:3] == PLAIN.split("\n")[:3]
    assert lines[5].endswith("\t2\tb\t4:obl:in\tSpaceAfter=Yes|P=1")
    assert lines[6].endswith("\tP=2")
    assert lines[7] == PLAIN.split("\n")[7]


def test_with_tree_wants_a_head_and_a_label_for_every_word() -> None:
    sentence = Sentence.of(["a", "b"])
    assert sentence.with_tree([UNKNOWN, 0], ["_", "root"]).heads == (UNKNOWN, 0)
    with pytest.raises(SubdpError, match="2 words but 3 heads"):
        sentence.with_tree([2, 0, 1], ["x", "root"])


def test_any_roots_lets_none_and_two_pass() -> None:
    text = block(row(1, 0), row(2, 0))
    assert read(text, any_roots=True)[0].heads == (0, 0)


BROKEN: dict[str, tuple[str | bytes, int | None, str]] = {
    "no columns": (block(row(1, 0), "just text"), 2, "1 column instead of 10"),
    "raw text": ("just text\n\n", 1, "this is not CoNLL-U"),
    "raw text without an empty line": ("# title\nSome text.\nThat goes on.\n", 2, "this is not CoNLL-U"),
    "raw text without a line end": ("Some text of ten words or more, all in one long line", 1, "this is not CoNLL-U"),
    "too few columns": (block("1\tw\t_"), 1, "3 columns instead of 10"),
    "too many columns": (block(row(1, 0) + "\t_"), 1, "11 columns instead of 10"),
    "one column too many, then one too few": (block(row(1, 0) + "\t2", row(2, 1)[:-2]), 1, "11 columns"),
    "two columns too many, then two too few": (block(row(1, 0) + "\t2\tX", row(2, 1)[:-4]), 1, "12 columns"),
    "two roots beside an unknown head": (block(row(1, 0), row(2, 0), row(3, "_")), 2, "both have head 0"),
    "spaces for tabs": (block(row(1, 0).replace("\t", " ")), 1, "separated by spaces"),
    "empty form": (block(row(1, 0, form="")), 1, "column FORM is empty"),
    "empty misc": (block(row(1, 0)[:-1]), 1, "column MISC is empty"),
    "an id that is none": (block("one" + row(1, 0)[1:]), 1, "'one' is not an id"),
    "ids out of order": (block(row(1, 0), row(3, 1)), 2, "word id 3 is out of order"),
    "an id twice": (block(row(1, 0), row(1, 1)), 2, "this should be 2"),
    "an id with a leading zero": (block("01" + row(1, 0)[1:]), 1, "word id 01 is out of order"),
    "head out of range": (block(row(1, 31), row(2, 0)), 1, "word 1 has head 31 but the sentence has 2 words"),
    "head not a number": (block(row(1, "x")), 1, "word 1 has head 'x', not a number"),
    "negative head": (block(row(1, -1)), 1, "word 1 has head '-1', not a number"),
    "a head that only Python reads as a number": (block(row(1, "+1"), row(2, 0)), 1, "head '+1'"),
    "own head": (block(row(1, 0), row(2, 2)), 2, "word 2 is its own head"),
    "no root": (block(row(1, 2), row(2, 1)), 1, "the sentence has no root"),
    "two roots": (block(row(1, 0), row(2, 0)), 2, "words 1 and 2 both have head 0"),
    "a cycle": (block(row(1, 0), row(2, 3), row(3, 2)), 2, "cycle: 2 → 3 → 2"),
    "a cycle beside an unknown head": (block(row(1, "_"), row(2, 3), row(3, 2)), 2, "cycle"),
    "a comment between words": (block(row(1, 0), "# late", row(2, 1)), 2, "a comment between words"),
    "comments alone": (block("# sent_id = 1"), 1, "comments without a sentence"),
    "ranges alone": (block("0.1" + row(1, "_", label="_")[1:]), 1, "a sentence without words"),
    "range too long": (block("1-3" + row(1, "_", label="_")[1:], row(1, 0)), 1, "ends at word 3"),
    "range going down": (block("1-1" + row(1, "_", label="_")[1:], row(1, 0)), 1, "is not ascending"),
    "range in the wrong place": (
        block(row(1, 0), "1-2" + row(1, "_", label="_")[1:], row(2, 1)),
        2,
        "not right before",
    ),
    "ranges overlapping": (
        block(*(f"{r}{row(1, '_', label='_')[1:]}" for r in ("1-2", "1-2")), row(1, 0), row(2, 1)),
        2,
        "overlaps",
    ),
    "range with a head": (block("1-2" + row(1, 0)[1:], row(1, 0), row(2, 1)), 1, "range 1-2 has a head"),
    "empty node out of order": (block(row(1, 0), "1.2" + row(1, "_", label="_")[1:]), 2, "here it would be 1.1"),
    "empty node with a head": (block(row(1, 0), "1.1" + row(1, 0)[1:]), 2, "empty node 1.1 has a head"),
    "empty node before its word": (block("1.1" + row(1, "_", label="_")[1:], row(1, 0)), 1, "here it would be 0.1"),
    "two empty lines": (block(row(1, 0)) + "\n" + block(row(1, 0)), 3, "an empty line where a sentence should begin"),
    "an empty line at the start": ("\n" + block(row(1, 0)), 1, "an empty line where a sentence should begin"),
    "a line of spaces": (block(row(1, 0), "  "), 2, "a line of white space"),
    "no empty line at the end": (row(1, 0) + "\n", 2, "no empty line after the last sentence"),
    "cut off in a line": (block(row(1, 0)) + "1\tw\t_", 3, "the last line does not end"),
    "CR LF": (block(row(1, 0)).replace("\n", "\r\n"), 1, "lines end in CR LF"),
    "CR LF in one line": (block(row(1, 0) + "\r", row(2, 1)), 1, "lines end in CR LF"),
    "a carriage return in a word": (block(row(1, 0, form="a\rb")), 1, "a carriage return inside a line"),
    "Latin-1": (
        block(row(1, 0)).encode() + row(1, 0, form="é").encode("latin-1") + b"\n\n",
        3,
        "byte 0xe9 is not UTF-8",
    ),
    "a byte order mark": (b"\xef\xbb\xbf" + block(row(1, 0)).encode(), 1, "byte order mark"),
    "nothing": ("", None, "the file is empty"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_broken_input_is_an_error_with_place_and_reason(case: str) -> None:
    text, line, message = BROKEN[case]
    with pytest.raises(SubdpError, match=re.escape(message)) as caught:
        read(text)
    assert caught.value.line == line


def test_every_fault_has_its_own_message() -> None:
    assert len({message for _, _, message in BROKEN.values()}) >= 30


def test_files_that_cannot_be_opened_say_why(tmp_path: Path) -> None:
    with pytest.raises(SubdpError, match="no such file"):
        read_conllu(tmp_path / "absent.conllu")
    with pytest.raises(SubdpError, match="this is a folder"):
        read_conllu(tmp_path)
    packed = gzip.compress(PLAIN.encode() * 50)
    (tmp_path / "cut.gz").write_bytes(packed[: len(packed) // 2])
    (tmp_path / "false.gz").write_bytes(PLAIN.encode())
    for name in ("cut.gz", "false.gz"):
        with pytest.raises(SubdpError, match="cannot be unpacked"):
            list(read_conllu(tmp_path / name))
    with pytest.raises(SubdpError, match="this is a folder, not a file"):
        write_conllu([Sentence.of(["a"])], tmp_path)
    with pytest.raises(SubdpError, match="check that the folder exists"):
        write_conllu([Sentence.of(["a"])], tmp_path / "absent" / "x.conllu")


def test_impossible_sentences_cannot_be_made() -> None:
    with pytest.raises(SubdpError, match="2 words but 1 heads"):
        Sentence.of(["a", "b"], heads=[0])
    with pytest.raises(SubdpError, match="<sentence>: a sentence without words"):
        Sentence.of([])
    with pytest.raises(SubdpError, match="cannot be a column"):
        Sentence.of(["a\tb"])
    with pytest.raises(SubdpError, match="no root"):
        Sentence.of(["a", "b"], heads=[2, 1])
    with pytest.raises(TypeError, match="list of words"):
        Sentence.of("a b")


@pytest.mark.skipif("SUBDP_DATA" not in os.environ, reason="SUBDP_DATA does not name a folder with real treebanks")
def test_real_treebanks_survive_the_round_trip() -> None:
    paths = sorted(Path(os.environ["SUBDP_DATA"]).glob("ud/*/*.conllu"))
    assert paths
    for path in paths:
        output = io.BytesIO()
        write_conllu(read_conllu(path), output)
        assert output.getvalue() == path.read_bytes(), path
