"""Layers of words: read from CoNLL-U by name, written back into it, and clear errors for what there is not."""

from __future__ import annotations

from io import StringIO

import pytest

from subdp.corpus.layers import broken_bio, find_layer, is_bio
from subdp.corpus.treebank import Sentence, read_conllu, write_conllu
from subdp.projection.substructures import inventory_of
from subdp.support.errors import SubdpError

TEXT = """\
1-2	im	_	_	_	_	_	_	_	_
1	in	in	ADP	APPR	_	3	case	_	NE=O
2	dem	der	DET	ART	Case=Dat|Number=Sing	3	det	_	NE=O|X=1
3	Harz	Harz	PROPN	NE	Case=Dat	0	root	_	NE=B-LOC|SpaceAfter=No
3.1	x	_	_	_	_	_	_	_	_
4	!	!	PUNCT	$.	_	3	punct	_	_"""


@pytest.fixture
def sentence() -> Sentence:
    return next(read_conllu(StringIO(TEXT + "\n\n")))


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("upos", ["ADP", "DET", "PROPN", "PUNCT"]),
        ("xpos", ["APPR", "ART", "NE", "$."]),
        ("feats:Case", ["none", "Dat", "Dat", "none"]),
        ("misc:NE", ["O", "O", "B-LOC", "none"]),
        ("misc:Z", ["none"] * 4),
    ],
)
def test_a_layer_has_a_value_for_each_word(sentence: Sentence, name: str, values: list[str]) -> None:
    assert list(find_layer(name).read(sentence)) == values


def test_features_of_a_sentence_that_has_none_at_all_are_unannotated() -> None:
    assert list(find_layer("feats:Case").read(Sentence.of(["a", "b"]))) == ["_", "_"]


def test_what_is_written_is_read_back_and_all_else_stays(sentence: Sentence) -> None:
    layers = {
        "upos": ["ADP", "PRON", "PROPN", "SYM"],
        "xpos": ["A", "B", "C", "D"],
        "feats:Case": ["none", "Acc", "none", "Nom"],
        "misc:NE": ["O", "none", "B-LOC", "O"],
    }
    changed = sentence.with_tree(sentence.heads, sentence.labels, layers=layers)
    for name, values in layers.items():
        assert list(find_layer(name).read(changed)) == values
    rows = [line.split("\t") for line in changed.conllu.split("\n")]
    assert rows[0] == TEXT.split("\n")[0].split("\t")
    assert rows[2][5] == "Case=Acc|Number=Sing"
    assert rows[2][9] == "X=1"
    assert rows[3][5] == "_"
    assert rows[3][9] == "SpaceAfter=No|NE=B-LOC"
    assert rows[5][5] == "Case=Nom"
    assert changed.upos == ("ADP", "PRON", "PROPN", "SYM")


@pytest.mark.parametrize("name", ["mood", "feats", "feats:", "misc:a b", "lemma:x", ""])
def test_a_layer_that_there_is_not_is_an_error(name: str) -> None:
    with pytest.raises(SubdpError, match="there is no layer"):
        find_layer(name)


def test_spans_in_bio_are_known_and_their_faults_found() -> None:
    assert is_bio(["O", "B-LOC", "I-LOC", "none"])
    assert not is_bio(["O", "none"])
    assert not is_bio(["B-LOC", "NOUN"])
    assert broken_bio(["O", "B-LOC", "I-LOC", "B-PER"]) is None
    assert broken_bio(["O", "I-LOC"]) == 1
    assert broken_bio(["B-PER", "I-LOC"]) == 1
    assert broken_bio(["none", "I-ne"]) == 1


def entity(*values: str) -> Sentence:
    misc = [f"NE={value}" for value in values]
    comments = ["# sent_id = s7"]
    return Sentence.of([f"w{at}" for at in range(len(values))], misc=misc, comments=comments)


def test_a_treebank_without_the_layer_or_with_broken_spans_is_refused() -> None:
    with pytest.raises(SubdpError, match="the treebank has no upos"):
        inventory_of([Sentence.of(["a"])], ["upos"])
    with pytest.raises(SubdpError, match="the treebank has no feats:Case"):
        inventory_of([Sentence.of(["a"])], ["feats:Case"])
    with pytest.raises(SubdpError, match="the treebank has no misc:NE"):
        inventory_of([Sentence.of(["a"])], ["misc:NE"])
    assert inventory_of([entity("O", "B-LOC", "I-LOC")], ["misc:NE"])["misc:NE"] == ("B-LOC", "I-LOC", "O")
    with pytest.raises(SubdpError, match=r"s7: word 2 \('w1'\) has misc:NE I-LOC, which continues nothing \(.*B-LOC"):
        inventory_of([entity("O", "I-LOC")], ["misc:NE"])


def test_a_sentence_with_layers_survives_a_round_trip(sentence: Sentence) -> None:
    stream = StringIO()
    write_conllu([sentence], stream)
    assert stream.getvalue() == TEXT + "\n\n"
