"""Drawings hold every word and arc, are well-formed whatever the text, and keep labels clear of lines."""

from __future__ import annotations

import random
import re
import unicodedata
from itertools import pairwise
from typing import NamedTuple
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from subdp.drawing.render import Arc, render_svg, render_text
from subdp.support.errors import SubdpError

BOOK_STORE = ["我", "去", "了", "書店"]
BOOK_STORE_ARCS = [Arc(1, 2, "nsubj"), Arc(2, 0, "root"), Arc(4, 2, "obl", 0.5), Arc(4, 4, "compound", 0.5)]
ARABIC = ["ذهبت", "إلى", "المكتبة", "."]
ARABIC_ARCS = [Arc(1, 0, "root"), Arc(2, 3, "case"), Arc(3, 1, "obl"), Arc(4, 1, "punct")]
SVG = "{http://www.w3.org/2000/svg}"


def projective_heads(generator: random.Random, first: int, last: int, head: int) -> dict[int, int]:
    """Random heads without crossing arcs for the words first..last, below the given head."""
    if first > last:
        return {}
    cut = generator.randint(first, last)  # the words up to here are one subtree, the rest hang on the head as well
    top = generator.randint(first, cut)
    heads = {top: head}
    heads |= projective_heads(generator, first, top - 1, top) | projective_heads(generator, top + 1, cut, top)
    return heads | projective_heads(generator, cut + 1, last, head if head else top)


class Drawn(NamedTuple):
    """One arc as the SVG has it."""

    left: float
    right: float
    top: float
    ground: float
    label: tuple[float, float, float, float]  # left, right, top, bottom


def drawn_arcs(svg: str) -> list[Drawn]:
    """The arcs that are no loops, read back from the picture."""
    result = []
    for group in ElementTree.fromstring(svg).findall(f"{SVG}g"):
        line, box = group.findall(f"{SVG}path")[0].get("d", ""), group.findall(f"{SVG}rect")[0]
        match = re.match(r"M(\S+) (\S+)V\S+Q\S+ (\S+) .*V", line)
        if match:
            start, ground, top = map(float, match.groups())
            end = float(re.findall(r"Q(\S+) ", line)[-1])
            x, y, width, height = (float(box.get(name, "")) for name in ("x", "y", "width", "height"))
            label = (x, x + width, y, y + height)
            result.append(Drawn(min(start, end), max(start, end), top, ground, label))
    return result


def collides(label: tuple[float, float, float, float], arc: Drawn) -> bool:
    left, right, top, bottom = label
    crosses_a_leg = any(left < x < right and bottom > arc.top for x in (arc.left, arc.right))
    return crosses_a_leg or (top < arc.top < bottom and left < arc.right and arc.left < right)


def test_figure_one_as_text() -> None:
    assert render_text(BOOK_STORE, BOOK_STORE_ARCS) == (
        "╭─── 0 ROOT\n"
        "│ ╭▸ 1 我    nsubj ← 去 1.00\n"
        "╰▸┼─ 2 去    root ← ROOT 1.00\n"
        "  │  3 了\n"
        "  ╰▸ 4 書店  obl ← 去 0.50, compound ↺ 0.50\n"
    )


def test_a_certain_tree_is_drawn_without_numbers() -> None:
    arcs = [Arc(1, 2, "det"), Arc(2, 3, "nsubj"), Arc(3, 0, "root"), Arc(4, 3, "punct")]
    assert render_text(["The", "dog", "barks", "."], arcs) == (
        "╭───── 0 ROOT\n"
        "│   ╭▸ 1 The    det ← dog\n"
        "│ ╭▸┴─ 2 dog    nsubj ← barks\n"
        "╰▸┼─── 3 barks  root ← ROOT\n"
        "  ╰▸── 4 .      punct ← barks\n"
    )


def test_a_line_that_only_passes_is_not_touched() -> None:
    lines = ["  ╭▸ 1 p  a ← r", "╭─│─ 2 q", "│ ╰─ 3 r", "╰▸── 4 s  b ← q"]
    assert render_text(["p", "q", "r", "s"], [Arc(1, 3, "a"), Arc(4, 2, "b")]).splitlines() == lines


def test_heads_are_listed_from_the_most_probable() -> None:
    text = render_text(["a", "b"], [Arc(1, 2, "few", 0.001), Arc(1, 0, "many", 0.75), Arc(1, 1, "some", 0.249)])
    assert "many ← ROOT 0.75, some ↺ 0.25, few ← b <0.01" in text


@pytest.mark.parametrize(
    ("word", "columns"),
    [
        ("書店", 4),
        ("한국어", 6),
        ("e\u0301te\u0301", 3),
        ("สวัสดี", 4),
        ("ﾊﾝ", 2),
        ("ab\u200dc", 3),
        ("\u1112\u1161\u11ab", 2),
    ],
)
def test_text_lines_up_whatever_the_width_of_the_words(word: str, columns: int) -> None:
    _, line, other = render_text([word, "longest"], [Arc(1, 0, "root"), Arc(2, 1, "dep")]).splitlines()
    assert f"1 {word}{' ' * (7 - columns)}  root" in line
    assert "2 longest  dep" in other


def test_right_to_left_words_are_isolated_in_text_and_the_sentence_mirrored_in_svg() -> None:
    assert "1 \u2068ذهبت\u2069" in render_text(ARABIC, ARABIC_ARCS)
    words = ElementTree.fromstring(render_svg(ARABIC, ARABIC_ARCS)).findall(f"{SVG}text")
    places = [float(word.get("x", "")) for word in words]
    assert places == sorted(places, reverse=True)
    assert {word.get("direction") for word in words} == {"rtl"}


def test_svg_has_words_in_order_and_an_arrow_at_each_dependent() -> None:
    root = ElementTree.fromstring(render_svg(BOOK_STORE, BOOK_STORE_ARCS))
    words = root.findall(f"{SVG}text")
    assert [word.text for word in words] == ["ROOT", *BOOK_STORE]
    places = [float(word.get("x", "")) for word in words]
    assert places == sorted(places)
    groups = root.findall(f"{SVG}g")
    assert sorted(str(group.findtext(f"{SVG}title")) for group in groups) == [
        "去 ← ROOT: root 1.00",
        "我 ← 去: nsubj 1.00",
        "書店 ← 去: obl 0.50",
        "書店 ← 書店: compound 0.50",
    ]
    for group in groups:
        dependent = BOOK_STORE.index(str(group.findtext(f"{SVG}title")).split(" ← ")[0]) + 1
        arrow = float(group.findall(f"{SVG}path")[1].get("d", "M0 ")[1:].split()[0]) + 3.5
        assert min(range(5), key=lambda word: abs(places[word] - arrow)) == dependent


def test_less_probable_arcs_are_fainter_and_thinner() -> None:
    arcs = [Arc(1, 2, "a", 0.1), Arc(1, 2, "b", 0.9)]
    lines = {
        str(group.findtext(f"{SVG}text"))[0]: group.findall(f"{SVG}path")[0]
        for group in ElementTree.fromstring(render_svg(["x", "y"], arcs)).findall(f"{SVG}g")
    }
    for attribute in ("opacity", "stroke-width"):
        assert float(lines["a"].get(attribute, "")) < float(lines["b"].get(attribute, ""))


def test_a_self_loop_starts_and_ends_at_its_word() -> None:
    root = ElementTree.fromstring(render_svg(["word"], [Arc(1, 1, "dep")]))
    place = float(root.findall(f"{SVG}text")[0].get("x", ""))
    path = root.findall(f"{SVG}g/{SVG}path")[0].get("d", "")
    numbers = [float(number) for number in re.findall(r"-?\d+\.?\d*", path)]
    assert "C" in path
    assert abs(numbers[0] - place) < 10
    assert abs(numbers[-2] - place) < 10


@pytest.mark.parametrize("length", [2, 8, 25, 60])
def test_no_label_meets_another_arc_in_a_projective_tree(length: int) -> None:
    generator = random.Random(length)
    for _ in range(10):
        heads = projective_heads(generator, 1, length, 0)
        labels = generator.choices(["obj", "compound:prt", "nsubj:pass", "root"], k=length)
        words = generator.choices(["a", "word", "internationalisation", "."], k=length)
        arcs = drawn_arcs(render_svg(words, [Arc(d, h, labels[d - 1]) for d, h in heads.items()]))
        assert len(arcs) == length
        for one in arcs:
            assert one.left < one.label[0] < one.label[1] < one.right
            assert not any(collides(one.label, other) for other in arcs if other is not one)


def test_arcs_share_no_level_where_they_overlap() -> None:
    generator = random.Random(5)
    arcs = [Arc(generator.randint(1, 12), generator.randint(0, 12), "x", 0.5) for _ in range(40)]
    drawn = drawn_arcs(render_svg(["w"] * 12, arcs))
    for at, one in enumerate(drawn):
        for other in drawn[:at]:
            assert one.top != other.top or one.right <= other.left or other.right <= one.left


def test_everything_stays_inside_the_picture() -> None:
    long = ["antidisestablishmentarianism", "x"]
    root = ElementTree.fromstring(render_svg(long, [Arc(1, 2, "a"), Arc(2, 2, "a-label-that-is-rather-long")]))
    width = float(root.get("width", ""))
    for box in root.findall(f"{SVG}g/{SVG}rect"):
        assert 0 <= float(box.get("x", "")) <= float(box.get("x", "")) + float(box.get("width", "")) <= width
    assert all(0 < float(word.get("x", "")) < width for word in root.findall(f"{SVG}text"))


@settings(deadline=None, max_examples=60)
@given(st.lists(st.text(min_size=1, max_size=8), min_size=1, max_size=6), st.data())
def test_any_text_gives_well_formed_xml_and_one_line_a_word(words: list[str], data: st.DataObject) -> None:
    ends = st.integers(0, len(words))
    weights = st.floats(0, 1)
    arcs = data.draw(
        st.lists(st.builds(Arc, ends.filter(bool), ends, st.text(max_size=6), weights), max_size=8), label="arcs"
    )
    svg = ElementTree.fromstring(render_svg(words, arcs))
    assert len(svg.findall(f"{SVG}g")) == len(arcs)
    rooted = any(arc.head == 0 for arc in arcs)
    assert len(svg.findall(f"{SVG}text")) == len(words) + rooted
    text = render_text(words, arcs)
    assert text.count("\n") == len(text.splitlines()) == len(words) + rooted
    assert not any(unicodedata.category(sign) == "Cc" for sign in text.replace("\n", ""))


def test_markup_in_words_and_labels_is_escaped() -> None:
    picture = render_svg(["<script>", '"&'], [Arc(1, 2, "<i>"), Arc(2, 0, "]]>")])
    assert "<script" not in picture
    assert "<i>" not in picture
    assert "&lt;script&gt;" in picture
    assert " id=" not in picture, "many fit on one page"


def test_a_single_word_and_words_without_arcs_are_drawn() -> None:
    assert render_text(["x"], [Arc(1, 0, "root")]) == "╭─ 0 ROOT\n╰▸ 1 x     root ← ROOT\n"
    assert render_text(["x", "y"], []) == " 1 x\n 2 y\n"
    assert ElementTree.fromstring(render_svg(["x", "y"], [])).findall(f"{SVG}g") == []


@pytest.mark.parametrize("draw", [render_text, render_svg])
def test_arcs_beyond_the_words_and_empty_sentences_are_refused(draw: object) -> None:
    assert callable(draw)
    with pytest.raises(SubdpError, match="from 2 to 3, but the sentence has 2 words"):
        draw(["a", "b"], [Arc(3, 2, "x")])
    with pytest.raises(SubdpError, match="no words"):
        draw([], [])


def test_impossible_arcs_are_refused() -> None:
    with pytest.raises(SubdpError, match="numbered from 1"):
        Arc(0, 1, "x")
    with pytest.raises(SubdpError, match="from -1 to 1"):
        Arc(1, -1, "x")
    for probability in (-0.1, 1.1, float("nan")):
        with pytest.raises(SubdpError, match="between 0 and 1"):
            Arc(1, 2, "x", probability)


def test_a_tag_that_is_wider_than_its_word_has_room() -> None:
    arcs = [Arc(2, 0, "root"), Arc(1, 2, "x"), Arc(3, 2, "x")]
    picture = render_svg(["a", "b", "."], arcs, ["PUNCTUATION"] * 3)
    width = float(re.findall(r'<svg [^>]* width="(\d+)"', picture)[0])
    centres = [float(x) for x in re.findall(r'<text x="([\d.]+)" [^>]*>PUNCTUATION<', picture)]
    assert len(centres) == 3
    room = 0.6 * 11 * len("PUNCTUATION")
    assert all(after - before > room for before, after in pairwise(centres))
    assert width - centres[-1] > room / 2
