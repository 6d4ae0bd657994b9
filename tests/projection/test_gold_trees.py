"""Gold trees found again for the pairs of a translated treebank, and refused where they cannot be."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any
from unicodedata import normalize

import pytest

from subdp.corpus.bitext import Bitext, Pair, read_bitext
from subdp.corpus.treebank import Sentence, read_conllu, write_conllu
from subdp.projection.gold_trees import check_trees, with_trees
from subdp.support.errors import SubdpError
from subdp.translation.translate import Command, translate

DOGS = Sentence.of(
    ["Dogs", "do", "n't", "sing", "."],
    heads=[4, 4, 4, 0, 4],
    labels=["nsubj", "aux", "advmod", "root", "punct"],
    comments=["# sent_id = a", "# text = Dogs don't sing."],
)
OTHER_DOGS = Sentence.of(DOGS.words, heads=[2, 0, 2, 2, 2], labels=["nsubj", "root", "advmod", "xcomp", "punct"])
CATS = Sentence.of(["10 000", "cats"], heads=[2, 0], labels=["nummod", "root"])


@pytest.fixture
def bitext(tmp_path: Path) -> Path:
    """What `subdp translate` makes of a treebank."""
    write_conllu([DOGS, OTHER_DOGS, CATS], tmp_path / "in.conllu")
    translate(str(tmp_path / "in.conllu"), str(tmp_path / "out.tsv"), Command("tr a-z A-Z"))
    return tmp_path / "out.tsv"


@pytest.mark.parametrize("tokenizer", ["unicode", "whitespace"])
def test_trees_are_found_by_line_with_their_own_words_after_filters_too(bitext: Path, tokenizer: str) -> None:
    read = read_bitext(bitext, source_tokenizer=tokenizer, tokenizer="unicode")
    treebank = list(read_conllu(bitext.parent / "in.conllu"))
    assert with_trees(read, treebank)[1] == (DOGS, OTHER_DOGS, CATS)
    pairs, trees = with_trees(read.clean(), treebank)
    assert trees == (DOGS, CATS), "the second pair of dogs is a duplicate"
    assert [pair.source for pair in pairs] == [DOGS.words, CATS.words]
    assert pairs.report == read.clean().report


def test_trees_of_lines_that_were_moved_are_found_by_their_text(bitext: Path) -> None:
    lines = bitext.read_text().splitlines(keepends=True)
    bitext.write_text("".join(reversed(lines)))
    assert with_trees(read_bitext(bitext), [DOGS, OTHER_DOGS, CATS])[1] == (CATS, OTHER_DOGS, DOGS)
    bitext.write_text(lines[2])
    assert with_trees(read_bitext(bitext), [DOGS, OTHER_DOGS, CATS])[1] == (CATS,)


@pytest.mark.parametrize("forms", [("NFC", "NFD"), ("NFD", "NFC"), ("NFD", "NFD")])
def test_trees_are_found_however_accents_are_stored(tmp_path: Path, forms: tuple[Any, Any]) -> None:
    tree = Sentence.of([normalize(forms[0], word) for word in ("Été", "à", "Đà", "Nẵng")], heads=[0, 4, 4, 1])
    (tmp_path / "pairs.tsv").write_text(normalize(forms[1], "Été à Đà Nẵng\tSummer in Da Nang\n"))
    pairs, trees = with_trees(read_bitext(tmp_path / "pairs.tsv"), [tree], same_words=True)
    assert trees == (tree,)
    assert pairs[0].source == ("Été", "à", "Đà", "Nẵng")


def test_pairs_without_lines_have_the_trees_of_their_places() -> None:
    pairs = Bitext.of([Pair(tree.words, ("x",)) for tree in (DOGS, OTHER_DOGS, CATS)])
    assert with_trees(pairs, [DOGS, OTHER_DOGS, CATS])[1] == (DOGS, OTHER_DOGS, CATS)


def test_pairs_of_two_treebanks_have_the_trees_of_the_first(tmp_path: Path) -> None:
    for name in ("en", "xx"):
        named = [
            Sentence.of(tree.words, heads=tree.heads, labels=tree.labels, comments=[f"sent_id = {number}"])
            for number, tree in ((2, DOGS), (7, CATS))
        ]
        write_conllu(named, tmp_path / f"{name}.conllu")
    pairs = read_bitext(tmp_path / "en.conllu", tmp_path / "xx.conllu")
    trees = with_trees(pairs, read_conllu(tmp_path / "en.conllu"), same_words=True)[1]
    assert [tree.heads for tree in trees] == [DOGS.heads, CATS.heads]


def test_pairs_without_a_tree_are_an_error_that_names_the_first(bitext: Path) -> None:
    read = read_bitext(bitext)
    with pytest.raises(SubdpError, match=r"out\.tsv:3: '10 000 cats' has no gold tree \(the treebank must contain"):
        with_trees(read, [DOGS])
    with pytest.raises(SubdpError, match=r"out\.tsv:1: .Dogs do .* has no gold tree, nor has 1 other pair "):
        with_trees(read, [CATS])


def test_links_of_a_file_need_the_words_of_the_trees(bitext: Path) -> None:
    read = read_bitext(bitext, tokenized=True)
    with_trees(Bitext.of(read[:2]), [DOGS, OTHER_DOGS, CATS], same_words=True)
    with pytest.raises(SubdpError, match=r"out\.tsv:3: '10 000 cats' has other words than its gold tree"):
        with_trees(read, [DOGS, OTHER_DOGS, CATS], same_words=True)


def test_labels_may_have_subtypes_but_must_be_known() -> None:
    passive = Sentence.of(["It", "rained"], heads=[2, 0], labels=["nsubj:expl", "root"], comments=["sent_id = w1"])
    check_trees([passive], ["nsubj", "root"])
    check_trees([Sentence.of(["It", "rained"], heads=[2, -1], labels=["nsubj", "_"])], ["nsubj", "root"])
    with pytest.raises(
        SubdpError, match=r"the gold tree of 'w1' has a label that the parser lacks: nsubj \(it knows root"
    ):
        check_trees([passive], ["root"])
    with pytest.raises(SubdpError, match="the gold trees have no heads"):
        check_trees([Sentence.of(["It"])], ["root"])


def test_torch_is_not_needed() -> None:
    code = "import sys, subdp.projection.gold_trees; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
