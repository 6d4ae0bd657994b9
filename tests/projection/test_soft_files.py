"""Soft trees in files: nothing of three digits is lost, and what is wrong in a file is said with its sentence."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from subdp.alignment.links import Alignment
from subdp.corpus.treebank import Sentence, read_conllu
from subdp.projection.soft_files import read_soft, write_soft
from subdp.projection.soft_tree import SoftTree, project
from subdp.projection.substructures import SUBSTRUCTURES, Substructure
from subdp.support.errors import SubdpError

ENGLISH = Sentence.of(
    "I went to the book store".split(),
    heads=[2, 0, 6, 6, 6, 2],
    labels=["nsubj", "root", "case", "det", "compound", "obl"],
)
LINKS = Alignment.parse("0-0 1-1 4-3 5-3")


def random_tree(words: int, labels: tuple[str, ...], seed: int) -> SoftTree:
    """A soft tree with mass everywhere, of which a part went to NULL."""
    draw = np.random.default_rng(seed)
    arcs = draw.dirichlet(np.full(words + 2, 0.2), words + 1)[:, :-1]
    arcs[0] = 0
    found = {"arcs": arcs, "labels": draw.dirichlet(np.full(len(labels), 0.2), (words + 1, words + 1))}
    inventory: dict[str, tuple[str, ...]] = {"arcs": (), "labels": labels}
    return SoftTree(tuple("abcdefghij"[:words]), found, inventory, tuple(draw.random(words) < 0.5))


@given(st.integers(1, 10), st.integers(1, 60), st.integers(0, 1000))
def test_what_is_read_is_what_was_written_to_three_digits(words: int, labels: int, seed: int) -> None:
    tree = random_tree(words, tuple(f"label{number}:x,%|=;" for number in range(labels)), seed)
    file = io.StringIO()
    write_soft([tree], file)
    (back,) = read_soft(io.StringIO(file.getvalue()))
    assert (back.words, back.inventory, back.linked) == (tree.words, tree.inventory, tree.linked)
    np.testing.assert_allclose(back.arcs, tree.arcs, atol=5e-4)
    np.testing.assert_allclose(back.labels[1:], tree.labels[1:], atol=5e-4)


def test_a_projected_tree_is_readable_and_partial_where_nothing_was_kept(tmp_path: Path) -> None:
    soft = project(ENGLISH, LINKS, onto=["我", "去", "了", "書店"])
    write_soft([soft, soft], tmp_path / "soft.conllu")
    first, _ = read_conllu(tmp_path / "soft.conllu")
    assert first.heads == (2, 0, -1, 2)
    assert "Soft.arcs=2:0.5,4:0.5|Soft.labels=2:obl:0.58333,nsubj:0.08333," in first.conllu.split("\n")[-1]
    assert [back.unaligned for back in read_soft(tmp_path / "soft.conllu")] == [(3,), (3,)]


def test_layers_of_words_go_along(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SUBSTRUCTURES, "tag", Substructure("tag", "word", lambda sentence: sentence.upos))
    sentence = Sentence.of(["Dogs", ","], heads=[0, 1], labels=["root", "punct"], upos=["N", ","])
    tree = SoftTree.of(sentence, more={"tag": ("N", ",")})
    write_soft([tree], tmp_path / "soft.conllu")
    (back,) = read_soft(tmp_path / "soft.conllu")
    np.testing.assert_array_equal(back.distributions["tag"], tree.distributions["tag"])


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("# soft.labels", "# other", "not a soft tree"),
        ("2:0.5,4:0.5", "2:0.5,9:0.5", "'9' is not among"),
        ("2:0.5,4:0.5", "2:0.5,4:much", "much"),
        ("2:0.5,4:0.5", "2:0.9,4:0.5", "not a distribution or part of one"),
        ("4:compound:0.375", "7:compound:0.375", "out of bounds"),
        ("4:compound:0.375", "4:compound:0.3", "not a distribution"),
    ],
)
def test_a_fault_is_told_with_file_and_sentence(tmp_path: Path, old: str, new: str, said: str) -> None:
    file = tmp_path / "soft.conllu"
    write_soft([project(ENGLISH, LINKS, onto=["我", "去", "了", "書店"])], file)
    file.write_text(file.read_text().replace(old, new))
    with pytest.raises(SubdpError, match=rf"soft\.conllu: sentence 1: .*{said}"):
        list(read_soft(file))
