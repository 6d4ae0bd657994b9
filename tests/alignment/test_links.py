"""Alignments as values: Pharaoh in and out, one-to-one, scores against gold."""

from __future__ import annotations

import gzip
import io
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from subdp.alignment.links import Alignment, read_alignments, score_alignments, write_alignments
from subdp.support.errors import SubdpError

LINKS = st.sets(st.tuples(st.integers(0, 6), st.integers(0, 6)))


@given(LINKS, LINKS)
def test_pharaoh_is_read_as_it_is_written(links: set[tuple[int, int]], possible: set[tuple[int, int]]) -> None:
    alignment = Alignment.of(links, weights=[1 / (1 + i) for i in range(len(links))], possible=possible)
    again = Alignment.parse(str(alignment))
    assert again.links == alignment.links
    assert again.possible == alignment.possible
    np.testing.assert_allclose(again.weights, alignment.weights, rtol=1e-5)


@given(LINKS)
def test_a_matrix_holds_the_links_and_root(links: set[tuple[int, int]]) -> None:
    matrix = Alignment.of(links).matrix(7, 7)
    assert matrix[0, 0] == 1
    assert matrix[0].sum() == 1
    assert matrix[:, 0].sum() == 1
    assert Alignment.from_matrix(matrix[1:, 1:]) == Alignment.of(links)


@given(LINKS)
def test_one_to_one_keeps_just_the_links_without_rivals(links: set[tuple[int, int]]) -> None:
    kept = Alignment.of(links).one_to_one().links
    for i, j in links:
        alone = sum(a == i for a, _ in links) == 1 and sum(b == j for _, b in links) == 1
        assert ((i, j) in kept) == alone


@given(LINKS)
def test_transposing_twice_gives_the_same(links: set[tuple[int, int]]) -> None:
    alignment = Alignment.of(links)
    assert alignment.transpose().transpose() == alignment
    np.testing.assert_array_equal(alignment.transpose().matrix(7, 7), alignment.matrix(7, 7).T)


def test_files_keep_pairs_without_links(tmp_path: Path) -> None:
    alignments = [Alignment.parse("0-0 1?2"), Alignment.of([]), Alignment.parse("3-1:0.25")]
    write_alignments(alignments, tmp_path / "links.txt")
    assert (tmp_path / "links.txt").read_text() == "0-0 1?2\n\n3-1:0.25\n"
    assert list(read_alignments(tmp_path / "links.txt")) == alignments


def test_a_weight_of_a_possible_link_is_refused_and_not_dropped(tmp_path: Path) -> None:
    (tmp_path / "links.txt").write_text("0-0\n0-0 1?2:0.5\n")
    alignments = read_alignments(tmp_path / "links.txt")
    assert next(alignments) == Alignment.parse("0-0")
    with pytest.raises(
        SubdpError, match=r"links\.txt:2: the possible link '1\?2:0\.5' has a weight \(write 1\?2, or 1-2:"
    ):
        next(alignments)


def test_a_file_that_came_open_stays_open() -> None:
    stream = io.BytesIO(b"0-0\n\n")
    assert len(list(read_alignments(stream))) == 2
    assert not stream.closed


def test_scores_count_sure_and_possible_links_as_och_and_ney_do() -> None:
    gold = [Alignment.parse("0-0 1-1 2?1")]
    scores = score_alignments(gold, [Alignment.parse("0-0 2-1 3-3")])
    assert scores.precision == pytest.approx(2 / 3)
    assert scores.recall == pytest.approx(1 / 2)
    assert scores.aer == pytest.approx(1 - (1 + 2) / (3 + 2))
    assert scores.f1 == pytest.approx(2 * (2 / 3) * (1 / 2) / (2 / 3 + 1 / 2))
    inside = score_alignments(gold, [Alignment.parse("0-0 2-1 3-3")], within_gold_words=True)
    assert inside.precision == 1
    assert str(scores).startswith("precision 0.667  recall 0.500")
    assert scores.as_dict()["links"] == 3


def test_scores_of_nothing_are_zero_and_not_an_error() -> None:
    scores = score_alignments([Alignment.of([])], [Alignment.of([])])
    assert (scores.precision, scores.recall, scores.f1, scores.aer) == (0, 0, 0, 0)


def test_bad_links_are_errors_that_name_them(tmp_path: Path) -> None:
    with pytest.raises(SubdpError, match="'0:0' is not a link"):
        Alignment.parse("0:0")
    with pytest.raises(SubdpError, match="below 0"):
        Alignment.of([(-1, 0)])
    with pytest.raises(SubdpError, match="has weight 0"):
        Alignment.of([(0, 0)], weights=[0])
    with pytest.raises(SubdpError, match="1 link but 2 weights"):
        Alignment.of([(0, 0)], weights=[1, 1])
    with pytest.raises(SubdpError, match="1 link but 0 weights"):
        Alignment(((0, 0),), ())
    with pytest.raises(SubdpError, match="not sorted"):
        Alignment(((1, 0), (0, 0)), (1, 1))
    with pytest.raises(SubdpError, match="2 dimensions"):
        Alignment.from_matrix([1, 0])
    with pytest.raises(SubdpError, match="source word 3 but the source sentence has 2 words"):
        Alignment.parse("3-0").matrix(2, 2)
    with pytest.raises(SubdpError, match="1 gold alignment but 0"):
        score_alignments([Alignment.of([])], [])
    (tmp_path / "bad.txt").write_bytes(b"0-0\n0-\n")
    with pytest.raises(SubdpError, match=r"bad.txt:2: '0-' is not a link"):
        list(read_alignments(tmp_path / "bad.txt"))
    (tmp_path / "cut.gz").write_bytes(gzip.compress(b"0-0\n" * 99)[:-9])
    with pytest.raises(SubdpError, match=r"cut.gz: cannot be unpacked"):
        list(read_alignments(tmp_path / "cut.gz"))
    (tmp_path / "bad.txt").write_bytes(b"0-0\n\xff\n")
    with pytest.raises(SubdpError, match=r"bad.txt:2: byte 0xff is not UTF-8"):
        list(read_alignments(tmp_path / "bad.txt"))
