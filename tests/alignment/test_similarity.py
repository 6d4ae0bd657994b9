"""SimAlign's family on matrices made by hand, and the aligners that users name, with a tiny encoder."""

from __future__ import annotations

import pickle
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from subdp.alignment.aligner import Aligner
from subdp.alignment.file_links import FileAligner
from subdp.alignment.links import Alignment, Link
from subdp.alignment.similarity import (
    DEFAULT_LAYER,
    METHODS,
    Floats,
    Links,
    Method,
    SimilarityAligner,
    argmax,
    cosine,
    default_layer,
    forward,
    itermax,
    match,
    reverse,
)
from subdp.corpus.bitext import Pair
from subdp.encoder.encoder import Encoded, Encoder
from subdp.encoder.feature_store import FeatureStore
from subdp.support.errors import SubdpError

PAIRS = [
    Pair(("the", "garden"), ("der", "Garten", "hier")),
    Pair(("a",), ("ein",)),
    Pair(tuple("the cats are singing in the verschwundenen garden of 1984 .".split()), ("шаги", "?")),
    Pair(("to", "be", "or", "not"), ("sein", "oder", "nicht")),
]


def pairs_of(links: Links) -> set[Link]:
    rows, columns = np.nonzero(links)
    return set(zip(rows.tolist(), columns.tolist(), strict=True))


def random_matrix(seed: int, rows: int, columns: int) -> Floats:
    """Similarities that do not tie, nor do their sums."""
    result: Floats = np.random.default_rng(seed).random((rows, columns))
    return result


MATRICES = st.builds(random_matrix, st.integers(0, 2**32 - 1), st.integers(1, 5), st.integers(1, 5))


class TestMethods:
    # Row 1 and column 1 are best for each other only once column 0 is taken and counts less.
    similarity = np.array([[0.95, 0.10, 0.30], [0.85, 0.80, 0.20], [0.60, 0.20, 0.10]])

    def test_forward_takes_the_best_of_each_row_and_reverse_of_each_column(self) -> None:
        assert pairs_of(forward(self.similarity)) == {(0, 0), (1, 0), (2, 0)}
        assert pairs_of(reverse(self.similarity)) == {(0, 0), (1, 1), (0, 2)}

    def test_argmax_takes_what_is_best_both_ways(self) -> None:
        assert pairs_of(argmax(self.similarity)) == {(0, 0)}

    def test_itermax_counts_free_pairs_in_full_and_half_free_ones_at_a_discount(self) -> None:
        assert pairs_of(itermax(self.similarity)) == {(0, 0), (1, 1), (0, 2)}
        stronger = self.similarity.copy()
        stronger[1, 0] = 0.9  # even at nine tenths this is more than 0.80
        assert pairs_of(itermax(stronger)) == {(0, 0), (1, 0), (0, 2)}

    def test_itermax_has_no_second_round_for_two_units_or_without_free_ones_on_both_sides(self) -> None:
        assert pairs_of(itermax(self.similarity[:2])) == {(0, 0)}
        full = np.array([[0.9, 0.1, 0.1, 0.8], [0.1, 0.9, 0.1, 0.1], [0.1, 0.1, 0.9, 0.1]])
        assert pairs_of(itermax(full)) == {(0, 0), (1, 1), (2, 2)}

    def test_match_takes_the_best_sum_and_not_the_best_links(self) -> None:
        assert pairs_of(match(np.array([[0.9, 0.8], [0.8, 0.1]]))) == {(0, 1), (1, 0)}

    @given(MATRICES)
    def test_match_is_the_best_of_all_matchings_of_full_size(self, similarity: Floats) -> None:
        links = match(similarity)
        assert links.sum() == min(similarity.shape)
        assert links.sum(axis=0).max() == links.sum(axis=1).max() == 1
        short = similarity if similarity.shape[0] <= similarity.shape[1] else similarity.T
        rows = range(short.shape[0])
        best = max(short[rows, list(choice)].sum() for choice in permutations(range(short.shape[1]), len(rows)))
        assert similarity[links].sum() == pytest.approx(best)

    @given(MATRICES)
    def test_argmax_is_where_forward_and_reverse_agree_and_itermax_adds_to_it(self, similarity: Floats) -> None:
        links = argmax(similarity)
        np.testing.assert_array_equal(links, forward(similarity) & reverse(similarity))
        assert not (links & ~itermax(similarity)).any()
        assert links.any()
        assert forward(similarity).sum(axis=1).tolist() == [1] * similarity.shape[0]

    @given(MATRICES)
    def test_exchanging_the_sides_exchanges_the_links(self, similarity: Floats) -> None:
        for method in (argmax, itermax, match):
            np.testing.assert_array_equal(method(similarity.T), method(similarity).T)
        np.testing.assert_array_equal(reverse(similarity), forward(similarity.T).T)

    def test_cosine_runs_from_0_to_1_and_does_not_see_length(self) -> None:
        source = np.array([[2.0, 0.0], [0.0, 0.5], [0.0, 0.0]])
        np.testing.assert_allclose(
            cosine(source, np.array([[1.0, 0.0], [0.0, -3.0]])), [[1, 0.5], [0.5, 0], [0.5, 0.5]]
        )


def encoded(vectors: list[list[float]], subwords: list[int]) -> Encoded:
    """A sentence of words with so many subwords each."""
    ends = np.cumsum(subwords, dtype=np.int32)
    return Encoded(np.array([vectors], dtype=np.float32), ends - np.array(subwords, np.int32), ends - 1)


X, Y, Z = [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]


class TestLink:
    source = encoded([X, Y, Z], [2, 1])  # two words: xy, z
    target = encoded([Z, X, Y], [2, 1])  # two words: zx, y

    def link(self, tiny: Encoder, **options: Any) -> Alignment:
        return SimilarityAligner(tiny, **options).link(self.source, self.target)

    def test_subword_links_become_word_links(self, tiny: Encoder) -> None:
        assert self.link(tiny) == Alignment.parse("0-0 0-1 1-0")

    def test_a_link_weighs_one_or_its_subword_links_or_their_similarities(self, tiny: Encoder) -> None:
        twice = encoded([X, [0.6, 0.8, 0.0], Z], [2, 1])
        weights = {
            kind: SimilarityAligner(tiny, weights=kind).link(twice, encoded([X, Y, Z], [2, 1])).weights
            for kind in ("binary", "count", "similarity")
        }
        assert weights["binary"] == (1, 1)
        assert weights["count"] == (2, 1)
        assert weights["similarity"] == pytest.approx((1.9, 1))  # a cosine of 0.8 is a similarity of 0.9

    def test_links_below_the_null_threshold_are_left_out(self, tiny: Encoder) -> None:
        source, target = encoded([X, [0.0, 1.0, 1.0]], [1, 1]), encoded([X, Y], [1, 1])
        assert SimilarityAligner(tiny, null=0.8).link(source, target) == Alignment.parse("0-0 1-1")
        assert SimilarityAligner(tiny, null=0.9).link(source, target) == Alignment.parse("0-0")
        assert SimilarityAligner(tiny, null=1.0).link(source, encoded([Y, Z], [1, 1])) == Alignment.of([])

    def test_at_word_level_the_mean_of_the_subwords_is_linked(self, tiny: Encoder) -> None:
        # xy is as near to zx as to y by its best subword, but its mean is nearer to y's; z's nearest is zx.
        assert self.link(tiny, level="word") == Alignment.parse("0-1 1-0")

    def test_one_to_one_leaves_out_words_with_two_links(self, tiny: Encoder) -> None:
        assert self.link(tiny, one_to_one=True) == Alignment.of([])
        assert self.link(tiny, one_to_one=True, level="word") == Alignment.parse("0-1 1-0")


class TestSimilarityAligner:
    def test_pairs_come_out_in_order_and_as_if_each_were_alone(self, tiny: Encoder) -> None:
        aligner: Aligner = SimilarityAligner(tiny, "itermax", 2, weights="count")
        together = list(aligner.align(pair for pair in PAIRS))
        assert together == [next(aligner.align([pair])) for pair in PAIRS]
        for pair, alignment in zip(PAIRS, together, strict=True):
            alignment.check(len(pair.source), len(pair.target))
        assert list(aligner.align([])) == []

    @pytest.mark.parametrize("method", METHODS)
    def test_a_sentence_is_linked_to_itself_word_by_word(self, tiny: Encoder, method: Method) -> None:
        words = PAIRS[2].source
        (alignment,) = SimilarityAligner(tiny, method).align([Pair(words, words)])
        assert alignment.links == tuple((word, word) for word in range(len(words)))

    def test_the_layer_asked_for_is_the_one_that_is_read(self, tiny: Encoder) -> None:
        pair = PAIRS[2]
        for layer in range(tiny.layers + 1):
            source, target = tiny.encode([pair.source, pair.target], layers=[layer])
            links = match(cosine(source.vectors[0], target.vectors[0]))
            expected = {(int(source.owners[i]), int(target.owners[j])) for i, j in pairs_of(links)}
            assert set(next(SimilarityAligner(tiny, "match", layer).align([pair])).links) == expected

    def test_without_a_layer_it_is_as_deep_a_one_as_in_the_bundled_encoder(self, tiny: Encoder) -> None:
        assert default_layer(12) == DEFAULT_LAYER
        assert default_layer(24) == 2 * DEFAULT_LAYER
        named = SimilarityAligner(tiny, layer=default_layer(tiny.layers))
        assert list(SimilarityAligner(tiny).align(PAIRS)) == list(named.align(PAIRS))

    def test_a_store_gives_the_links_that_the_encoder_gives(self, tiny: Encoder, tmp_path: Path) -> None:
        layer = default_layer(tiny.layers)
        pairs = [PAIRS[0], PAIRS[1], PAIRS[3]]  # In the other one half precision changes as much as a link hangs on.
        for layers in ([layer], [0]):  # with the layer in the store, and without
            store = FeatureStore(tiny, layers, tmp_path)
            found = list(SimilarityAligner(tiny, store=store).align(pairs))
            assert found == list(SimilarityAligner(tiny).align(pairs))
            assert len(store) == (2 * len(pairs) if layer in layers else 0)

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"method": "best"}, r"no alignment method 'best' \(choose argmax, itermax, match, forward, reverse\)"),
            ({"level": "letter"}, r"no alignment level 'letter' \(choose subword, word\)"),
            ({"weights": "both"}, r"no alignment weights 'both' \(choose binary, count, similarity\)"),
            ({"null": 1.5}, "between 0 and 1, not 1.5"),
            ({"null": float("nan")}, "between 0 and 1, not nan"),
            ({"layer": 4}, r"layers \[4\] asked for, but this encoder has layers 0 to 3"),
        ],
    )
    def test_what_does_not_exist_is_an_error_at_once(
        self, tiny: Encoder, options: dict[str, Any], message: str
    ) -> None:
        with pytest.raises(SubdpError, match=message):
            SimilarityAligner(tiny, **options)


class TestFileAligner:
    lines = ("0-0 1-1 1-2", "0-0", "", "3-2:0.5 0?0")

    def file(self, folder: Path, *lines: str) -> Path:
        path = folder / "links.txt"
        path.write_text("".join(f"{line}\n" for line in lines))
        return path

    def test_gives_the_lines_of_the_file(self, tmp_path: Path) -> None:
        aligner: Aligner = FileAligner(self.file(tmp_path, *self.lines))
        assert list(aligner.align(PAIRS)) == [Alignment.parse(line) for line in self.lines]

    def test_one_to_one(self, tmp_path: Path) -> None:
        aligner = FileAligner(self.file(tmp_path, *self.lines), one_to_one=True)
        assert [str(alignment) for alignment in aligner.align(PAIRS)] == ["0-0", "0-0", "", "3-2:0.5"]

    @pytest.mark.parametrize(
        ("lines", "message"),
        [
            (lines[:3], r"links.txt: has 3 lines for 4 pairs \(.*one line for each pair"),
            ((*lines, ""), r"links.txt: has 5 lines for 4 pairs"),
            (("2-0", *lines[1:]), r"links.txt:1: link 2-0 names source word 2 but the source sentence has 2 words"),
            ((*lines[:3], "0?3"), r"links.txt:4: link 0-3 names target word 3 but the target sentence has 3 words"),
            (("0-0", "0-0:x"), r"links.txt:2: '0-0:x' is not a link"),
        ],
    )
    def test_what_does_not_fit_the_pairs_is_an_error_with_the_line(
        self, tmp_path: Path, lines: tuple[str, ...], message: str
    ) -> None:
        with pytest.raises(SubdpError, match=message):
            list(FileAligner(self.file(tmp_path, *lines)).align(PAIRS))

    def test_pairs_find_their_line_after_others_were_filtered_out(self, tmp_path: Path) -> None:
        aligner = FileAligner(self.file(tmp_path, *self.lines))
        kept = [replace(PAIRS[line], line=line + 1) for line in (0, 3)]
        assert [str(alignment) for alignment in aligner.align(kept)] == ["0-0 1-1 1-2", "3-2:0.5 0?0"]
        beyond = [Pair(("a",), ("b",), line=9)]
        with pytest.raises(SubdpError, match="ends before line 9 of the bitext"):
            list(aligner.align(beyond))

    def test_its_fingerprint_changes_with_the_files_content(self, tmp_path: Path) -> None:
        path = self.file(tmp_path, "0-0")
        before = FileAligner(path).fingerprint
        self.file(tmp_path, "0-1")
        after = FileAligner(path)
        assert after.fingerprint != before
        assert pickle.loads(pickle.dumps(after)).fingerprint == after.fingerprint

    def test_a_missing_file_is_an_error(self, tmp_path: Path) -> None:
        with pytest.raises(SubdpError, match="no such file"):
            list(FileAligner(tmp_path / "none.txt").align(PAIRS))
