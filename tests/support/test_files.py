"""Reading what users name: damaged archives and files of other kinds are errors that say what they are."""

from __future__ import annotations

import gzip
import io
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from subdp.alignment.file_links import FileAligner
from subdp.alignment.links import read_alignments
from subdp.corpus.bitext import read_bitext
from subdp.corpus.draft import read_sentences
from subdp.corpus.treebank import read_conllu
from subdp.support.errors import SubdpError
from subdp.support.files import file_hash, read_bytes, read_lines
from subdp.support.values import read_toml

READERS: list[Callable[[Path], Any]] = [
    file_hash,
    read_bytes,
    read_toml,
    lambda path: list(read_lines(path)),
    lambda path: list(read_alignments(path)),
    lambda path: FileAligner(path).fingerprint,
    lambda path: read_bitext(path, path),
    lambda path: list(read_sentences(path, "text")),
    lambda path: list(read_sentences(path, "words")),
    lambda path: list(read_conllu(path)),
]


@pytest.mark.parametrize("read", READERS)
def test_a_gz_that_is_cut_off_is_an_error_whoever_reads_it(tmp_path: Path, read: Callable[[Path], Any]) -> None:
    packed = gzip.compress("".join(f"{number}-{number}\n" for number in range(5000)).encode())
    (tmp_path / "cut.gz").write_bytes(packed[: len(packed) // 2])
    with pytest.raises(SubdpError, match=r"cut.gz: cannot be unpacked.*damaged or cut off"):
        read(tmp_path / "cut.gz")


def word_document() -> bytes:
    document = io.BytesIO()
    with zipfile.ZipFile(document, "w") as archive:
        archive.writestr("word/document.xml", "<w:t>Text</w:t>")
    return document.getvalue()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (word_document(), "a Word document or another zip file.*save it as plain text"),
        (b"%PDF-1.7\n", "a PDF.*pdftotext"),
        (gzip.compress(b"text"), "compressed by gzip.*ends in .gz"),
        ("text\n".encode("utf-16"), "UTF-16"),
        (b"one\ntw\0o\n", "file:2: a NUL byte"),
        (b"one\ncaf\xe9\n", "file:2: byte 0xe9 is not UTF-8"),
    ],
)
@pytest.mark.parametrize("read", [read_sentences, read_lines, read_conllu])
def test_what_is_no_text_in_utf_8_is_called_what_it_is(
    tmp_path: Path, content: bytes, said: str, read: Callable[[Path], Any]
) -> None:
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(SubdpError, match=said):
        list(read(tmp_path / "file"))


def test_lines_are_the_same_from_a_path_and_from_open_files(tmp_path: Path) -> None:
    (tmp_path / "text").write_bytes("\ufefföne\r\n\r\ntwo\u2028three\nlast".encode())
    expected = [(1, "öne"), (2, ""), (3, "two\u2028three"), (4, "last")]
    assert list(read_lines(tmp_path / "text")) == expected
    with (tmp_path / "text").open("rb") as stream:
        assert list(read_lines(stream)) == expected
        assert not stream.closed
    with (tmp_path / "text").open(encoding="utf-8") as text:
        assert list(read_lines(text)) == expected
    (tmp_path / "text").write_bytes(b"caf\xe9\n")
    with (tmp_path / "text").open(encoding="utf-8") as text, pytest.raises(SubdpError, match="text: not UTF-8"):
        list(read_lines(text))


def test_iconv_is_advised_for_text_in_another_encoding_but_not_for_what_is_no_text(tmp_path: Path) -> None:
    file = tmp_path / "file.txt"
    for content, advice in ((b"caf\xe9\tau lait\n", "iconv"), (b"\x02\xe9\x17\xdd\n", "not a text file")):
        file.write_bytes(content)
        with pytest.raises(SubdpError, match=rf"file.txt:1: byte 0xe9 is not UTF-8 \(.*{advice}"):
            list(read_lines(file))
