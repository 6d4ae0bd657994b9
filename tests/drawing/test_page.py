"""The page to correct trees on, in a real Chromium: what a person clicks, drags, types, reloads and saves."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from io import StringIO
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from subdp.cli.main import app
from subdp.corpus.treebank import Sentence, read_conllu
from subdp.drawing.page import render_page
from subdp.drawing.render import render_svg
from subdp.parser import Parser
from tests.drawing.browser import choice, chromium, drag, saved, shown, tree, word

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, Request

Open = Callable[..., "Page"]

DRAFTS = """\
# newdoc
# sent_id = sure
# text = Dogs bark .
# text_de = Hunde bellen.
# doubt = 0.010
1 Dogs dog NOUN _ Number=Plur 2 nsubj 2:nsubj HeadProb=0.990|LabelProb=0.980|UPOSProb=0.990
2 bark _ VERB _ _ 0 root 0:root HeadProb=0.990|LabelProb=0.980|UPOSProb=0.990
3 . _ PUNCT _ _ 2 punct 2:punct HeadProb=0.990|LabelProb=0.980|UPOSProb=0.990

# sent_id = unsure
# text = Wir gehen zum alten Haus!
# translation = We go to the old house!
# doubt = 0.900
# note = kept
1 Wir _ PRON _ _ 2 nsubj 2:nsubj HeadProb=0.900|LabelProb=0.990|UPOSProb=0.990
2 gehen _ VERB _ _ 0 root 0:root HeadProb=0.930|LabelProb=0.990|UPOSProb=0.990
3-4 zum _ _ _ _ _ _ _ Note=x
3 zu _ ADP _ _ 6 case 6:case HeadProb=0.930|LabelProb=0.990|UPOSProb=0.990
4 dem _ DET _ _ 6 det 6:det HeadProb=0.930|LabelProb=0.990|UPOSProb=0.990
5 alten _ X _ _ 2 advmod 2:advmod HeadProb=0.510|LabelProb=0.600|HeadAlt=6:0.400,1:0.050|\
LabelAlt=amod:0.300,obl:arg:0.060|UPOSProb=0.500|UPOSAlt=ADJ:0.400,NOUN:0.050
6 Haus _ NOUN _ _ 2 obl 2:obl SpaceAfter=No|HeadProb=0.930|LabelProb=0.990|UPOSProb=0.990
6.1 das _ PRON _ _ _ _ 6:dep _
7 ! _ PUNCT _ _ 2 punct 2:punct HeadProb=0.930|LabelProb=0.990|UPOSProb=0.990

""".replace(" ", "\t")
DRAFTS = "\n".join(line.replace("\t", " ") if line.startswith("#") else line for line in DRAFTS.split("\n"))


def drafts(text: str = DRAFTS) -> list[Sentence]:
    return list(read_conllu(StringIO(text), any_roots=True))


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture
def opened(browser: Browser, tmp_path: Path) -> Iterator[Open]:
    """Opens sentences on a page, in a browser without network; what the page throws fails the test."""
    context, faults = browser.new_context(offline=True), list[str]()

    def asked(request: Request) -> None:
        if not request.url.startswith(("file:", "blob:")):
            faults.append(request.url)

    def open_page(
        sentences: list[Sentence] | None = None, *, edit: bool = True, before: str = "", **media: Any
    ) -> Page:
        file = tmp_path / "drafts.html"
        file.write_text(
            render_page((one.conllu for one in sentences or drafts()), title=file.name, edit=edit), encoding="utf-8"
        )
        page = context.new_page()
        page.set_default_timeout(60_000)  # a busy machine is no fault of the page
        page.set_viewport_size({"width": media.pop("width", 1100), "height": 900})
        page.emulate_media(**media)
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("console", lambda message: faults.append(message.text))
        page.on("request", asked)
        page.add_init_script(before)
        page.goto(file.as_uri())
        page.locator(".word").first.wait_for()
        return page

    yield open_page
    context.close()
    assert faults == []


def test_sentences_come_least_sure_first_with_translation_tree_and_tags(opened: Open) -> None:
    page = opened()
    shown(page, ".id", ["unsure", "sure"])
    shown(page, ".translation", ["We go to the old house!", "Hunde bellen."])
    assert tree(page, 0) == [
        "Dogs, word 1, NOUN, nsubj of bark",
        "bark, word 2, VERB, root of ROOT",
        "., word 3, PUNCT, punct of bark",
    ]
    assert page.locator('[data-sentence="1"] .range').inner_text() == "zum"
    assert page.locator("#progress").inner_text() == "0 of 2 sentences done"
    page.select_option("#order", "file")
    shown(page, ".id", ["sure", "unsure"])


def test_weak_arcs_differ_in_colour_and_dash(opened: Open) -> None:
    page = opened()
    tree(page, 0)
    look = "arc => [getComputedStyle(arc).stroke, getComputedStyle(arc).strokeDasharray]"
    weak = page.locator("main .arc.weak")
    assert weak.count() == 1
    colour, dash = weak.evaluate(look)
    other_colour, other_dash = page.locator("main .arc:not(.weak)").first.evaluate(look)
    assert colour != other_colour
    assert dash != other_dash == "none"
    assert "unsure" in tree(page, 1)[4]


def test_a_click_takes_a_rival_head_label_or_tag(opened: Open) -> None:
    page = opened()
    word(page, 1, 5).click()
    shown(page, ".choice .share", ["0.51", "0.40", "0.05", "0.60", "0.30", "0.06", "0.50", "0.40", "0.05"])
    choice(page, "head", "6").click()
    choice(page, "label", "obl:arg").click()
    choice(page, "tag", "ADJ").click()
    assert tree(page, 1)[4] == "alten, word 5, ADJ, obl:arg of Haus"
    assert choice(page, "head", "6").get_attribute("aria-pressed") == "true"
    assert choice(page, "head", "2").get_attribute("aria-pressed") == "false"


def test_dragging_gives_any_head_and_what_is_no_tree_is_shown(opened: Open) -> None:
    page = opened()
    drag(page, word(page, 1, 5), lambda: word(page, 1, 1))
    assert "advmod of Wir" in tree(page, 1)[4]
    assert page.locator(".problem").count() == 0
    drag(page, word(page, 1, 1), lambda: word(page, 1, 5))
    assert "cycle: Wir (1), alten (5)" in page.locator(".problem").inner_text()
    assert page.locator("main .arc.wrong").count() == 2
    drag(page, word(page, 1, 1), lambda: page.locator(".card.open .rootdrop"))
    assert "root of ROOT" in tree(page, 1)[0]
    assert "2 roots: Wir (1), gehen (2)" in page.locator(".problem").inner_text()
    drag(page, word(page, 1, 2), lambda: word(page, 1, 1))
    assert "only the word below ROOT is labelled root: gehen (2)" in page.locator(".problem").inner_text()
    drag(page, word(page, 1, 2), lambda: word(page, 1, 2))  # a word is not its own head
    assert "root of Wir" in tree(page, 1)[1]


def test_picking_gives_a_head_without_dragging(opened: Open) -> None:
    page = opened()
    word(page, 1, 5).click()
    page.click(".pick")
    word(page, 1, 7).click()
    assert "advmod of !" in tree(page, 1)[4]


def test_everything_is_undone_and_redone(opened: Open) -> None:
    page = opened()
    start = tree(page, 1)
    assert page.locator("#undo").is_disabled()
    word(page, 1, 5).click()
    choice(page, "head", "6").click()
    drag(page, word(page, 1, 1), lambda: page.locator(".card.open .rootdrop"))
    page.locator('[data-sentence="1"] .tick').click()
    changed = tree(page, 1)
    for _ in range(3):
        page.click("#undo")
    assert tree(page, 1) == start
    assert page.locator("#progress").inner_text() == "0 of 2 sentences done"
    assert page.locator("#undo").is_disabled()
    for _ in range(3):
        page.keyboard.press("Control+Shift+Z")
    assert tree(page, 1) == changed
    assert page.locator("#progress").inner_text() == "1 of 2 sentences done"


def test_a_reload_loses_nothing(opened: Open) -> None:
    page = opened()
    word(page, 1, 5).click()
    choice(page, "head", "6").click()
    choice(page, "label", "amod").click()
    page.click("#undo")
    page.locator('[data-sentence="0"] .tick').click()
    word(page, 1, 5).click()
    page.select_option("#filter", "todo")
    page.reload()
    shown(page, ".id", ["unsure"])
    assert "advmod of Haus" in tree(page, 1)[4]
    assert page.locator(".panel b").inner_text() == "alten"
    assert page.locator("#progress").inner_text() == "1 of 2 sentences done"
    for _ in range(2):
        page.click("#undo")
    assert "advmod of gehen" in tree(page, 1)[4]
    page.click("#redo")
    assert "advmod of Haus" in tree(page, 1)[4]


def test_another_document_starts_afresh(opened: Open) -> None:
    opened().locator('[data-sentence="0"] .tick').click()
    page = opened(drafts()[:1])
    assert page.locator("#progress").inner_text() == "0 of 1 sentence done"


def test_save_gives_valid_conllu_without_probabilities(opened: Open, tmp_path: Path) -> None:
    page = opened()
    assert page.locator("#save").is_disabled()
    word(page, 1, 5).click()
    for column, value in (("head", "6"), ("label", "amod"), ("tag", "ADJ")):
        choice(page, column, value).click()
    page.locator('[data-sentence="1"] .tick').click()
    assert page.locator("#save").inner_text() == "Save done (1)"
    (sentence,) = saved(page, "#save", tmp_path)
    assert sentence.conllu.replace("\t", " ").split("\n") == [
        "# sent_id = unsure",
        "# text = Wir gehen zum alten Haus!",
        "# translation = We go to the old house!",
        "# note = kept",
        "1 Wir _ PRON _ _ 2 nsubj 2:nsubj _",
        "2 gehen _ VERB _ _ 0 root 0:root _",
        "3-4 zum _ _ _ _ _ _ _ Note=x",
        "3 zu _ ADP _ _ 6 case 6:case _",
        "4 dem _ DET _ _ 6 det 6:det _",
        "5 alten _ ADJ _ _ 6 amod 6:amod _",
        "6 Haus _ NOUN _ _ 2 obl 2:obl SpaceAfter=No",
        "6.1 das _ PRON _ _ _ _ 6:dep _",
        "7 ! _ PUNCT _ _ 2 punct 2:punct _",
    ]
    assert "Saved 1 sentence in drafts-corrected.conllu" in page.locator("#notice").inner_text()
    assert [one.sent_id for one in saved(page, "#save-all", tmp_path)] == ["sure", "unsure"]


@pytest.mark.trains
def test_the_saved_file_is_what_adapt_learns_from(opened: Open, tmp_path: Path) -> None:
    page = opened()
    for sentence in (0, 1):
        page.locator(f'[data-sentence="{sentence}"] .tick').click()
    assert len(saved(page, "#save", tmp_path)) == 2
    (file,) = tmp_path.glob("*.conllu")
    call = ["adapt", "--trees", str(file), "-o", str(tmp_path / "parser"), "--tune.epochs", "1"]
    app(call, result_action="return_value")
    assert Parser.load(tmp_path / "parser").about["adapted_on"] == {"trees": 2, "known_heads": 10}


def test_what_is_no_tree_is_left_out_of_the_saved_file_and_named(opened: Open, tmp_path: Path) -> None:
    page = opened()
    drag(page, word(page, 1, 1), lambda: page.locator('[data-sentence="1"] .rootdrop'))
    for sentence in (0, 1):
        page.locator(f'[data-sentence="{sentence}"] .tick').click()
    assert [one.sent_id for one in saved(page, "#save", tmp_path)] == ["sure"]
    assert "Left out, because the tree is not valid: unsure." in page.locator("#notice").inner_text()
    page.select_option("#filter", "wrong")
    shown(page, ".id", ["unsure"])


def test_filters_and_search(opened: Open) -> None:
    page = opened()
    page.locator('[data-sentence="0"] .tick').click()
    word(page, 0, 1).click()
    page.keyboard.press("t")
    page.keyboard.type("PROPN\n")
    names = {"all": ["unsure", "sure"], "todo": ["unsure"], "done": ["sure"], "unsure": ["unsure"], "changed": ["sure"]}
    for name, expected in names.items():
        page.select_option("#filter", name)
        shown(page, ".id", expected)
    page.select_option("#filter", "wrong")
    assert page.locator("main").inner_text() == "No sentences to show."
    page.select_option("#filter", "all")
    page.fill("#search", "old HOUSE")
    shown(page, ".id", ["unsure"])


def test_the_keyboard_alone_is_enough(opened: Open, tmp_path: Path) -> None:
    page = opened()
    press = page.keyboard.press
    press("n")  # the one unsure word
    assert page.locator(".panel b").inner_text() == "alten"
    press("2")
    assert "advmod of Haus" in tree(page, 1)[4]
    press("h")
    page.keyboard.type("3\n")
    assert "advmod of zu" in tree(page, 1)[4]
    press("h")
    page.keyboard.type("9\n")
    assert "no word 9" in page.locator("#notice").inner_text()
    press("Escape")
    press("z")
    assert "advmod of Haus" in tree(page, 1)[4]
    press("Shift+Z")
    press("Control+z")
    press("l")
    page.keyboard.type("amod:x\n")
    press("t")
    page.keyboard.type("ADJ\n")
    assert tree(page, 1)[4] == "alten, word 5, ADJ, amod:x of Haus"
    press("ArrowRight")
    assert page.locator(".panel b").inner_text() == "Haus"
    press("d")  # done, and on to the next
    assert page.locator(".panel b").inner_text() == "Dogs"
    press("ArrowUp")
    assert page.locator(".panel b").inner_text() == "Wir"
    press("Escape")
    assert page.locator(".panel").count() == 0
    press("ArrowRight")
    assert page.locator(".panel b").inner_text() == "gehen"
    with page.expect_download() as download:
        press("Control+s")
    assert "amod:x" in download.value.path().read_text(encoding="utf-8")


def test_labels_and_tags_that_udvalidate_refuses_are_shown_as_wrong(opened: Open) -> None:
    page = opened()
    word(page, 0, 1).click()
    for key, value in (("l", "Subject"), ("t", "Noun")):
        page.keyboard.press(key)
        page.keyboard.type(f"{value}\n")
    problem = page.locator(".problem").inner_text()
    assert "not a label of Universal Dependencies: Dogs (1)" in problem
    assert "not a tag of Universal Dependencies: Dogs (1)" in problem


def test_what_is_typed_is_taken_when_another_word_is_clicked(opened: Open) -> None:
    page = opened()
    word(page, 0, 1).click()
    page.keyboard.press("l")
    page.keyboard.type("obj")
    word(page, 0, 3).click()
    assert "obj of bark" in tree(page, 0)[0]
    assert page.locator(".panel b").inner_text() == "."


@pytest.mark.parametrize(
    "storage",
    [
        "Object.defineProperty(window, 'localStorage', { get() { throw new DOMException('denied') } })",
        "Storage.prototype.setItem = () => { throw new DOMException('full', 'QuotaExceededError') }",
    ],
    ids=["unavailable", "full"],
)
def test_without_storage_the_page_works_and_says_so(opened: Open, tmp_path: Path, storage: str) -> None:
    page = opened(before=storage)
    word(page, 1, 5).click()
    choice(page, "head", "6").click()
    assert "advmod of Haus" in tree(page, 1)[4]
    assert "save before you close" in page.locator("#notice").inner_text()
    assert len(saved(page, "#save-all", tmp_path)) == 2


MARKUP = [
    "</script><script>window.ran=1</script>",
    "<img src=x onerror=window.ran=1>",
    "<!--<script>",
    "&lt;b&gt;${window.ran=1}$data",
    "\u2028</textarea>'\"",
]


@pytest.mark.parametrize("edit", [True, False])
def test_markup_in_words_labels_and_comments_is_shown_and_never_runs(opened: Open, edit: bool) -> None:
    evil = Sentence.of(
        MARKUP, heads=[0, 1, 1, 1, 1], labels=MARKUP, upos=MARKUP, any_roots=True,
        misc=[f"HeadProb=0.5|HeadAlt=1:0.4|LabelProb=0.3|LabelAlt={one}:0.1|Note={one}" for one in MARKUP],
        comments=[f"# {key} = {MARKUP[at]}" for at, key in enumerate(("sent_id", "text", "text_en", "note"))],
    )  # fmt: skip
    page = opened([evil], edit=edit)
    assert page.locator(".form").all_text_contents() == MARKUP
    assert sorted(page.locator("main .label").all_text_contents()) == sorted(MARKUP)
    assert [page.locator(at).text_content() for at in (".id", ".text", ".translation")] == MARKUP[:3]
    assert page.locator(".comments pre").text_content() == f"# note = {MARKUP[3]}"
    for number in range(1, 6):
        word(page, 0, number).click()
        assert page.locator(".panel b").text_content() == MARKUP[number - 1]
    assert page.evaluate("window.ran") is None
    assert page.locator("img").count() == 0
    assert page.locator("script").count() == 2


def test_a_title_is_text_too() -> None:
    page = render_page((one.conllu for one in drafts()), title="</title><script>a & b")
    assert "<title>&lt;/title&gt;&lt;script&gt;a &amp; b</title>" in page


SCRIPTS = {
    "Tamil": "அவன் நேற்று புத்தகக்கடைக்குச் சென்று ஒரு புதிய புத்தகத்தை வாங்கினான்",
    "Hindi": "उसने कल किताबों की दुकान से एक नई किताब खरीदी ।",
    "Thai": "เมื่อวาน เขา ไป ร้านหนังสือ และ ซื้อ หนังสือ ใหม่",
    "Chinese": "他 昨天 去 了 書店 買 了 新 書",
    "Arabic": "ذهب الولد إلى المكتبة القريبة من البيت واشترى كتابا",
}


EXTENTS = """elements => elements.map(element => {
    const range = document.createRange();
    range.selectNodeContents(element);
    const { left, right, top } = range.getBoundingClientRect();
    return [Math.round(top), left, right];
})"""


def apart(extents: list[tuple[int, float, float]]) -> bool:
    """Whether no two texts at one height overlap."""
    return all(left < right for _, left, right in extents) and all(
        one[0] != other[0] or one[2] < other[1] for one, other in pairwise(sorted(extents))
    )


def test_words_and_labels_of_every_script_stay_apart(opened: Open) -> None:
    sentences = []
    for words in map(str.split, SCRIPTS.values()):
        labels = ["root"] + ["compound:prt"] * (len(words) - 1)
        sentences.append(Sentence.of(words, heads=range(len(words)), labels=labels, upos=["PROPN"] * len(words)))
    page = opened(sentences)
    for index, name in enumerate(SCRIPTS):
        tree(page, index)
        words = page.locator(f'[data-sentence="{index}"] .form').evaluate_all(EXTENTS)
        assert apart(words), name
        assert (words[0][1] > words[-1][1]) == (name == "Arabic")
        assert apart(page.locator(f'[data-sentence="{index}"] .label').evaluate_all(EXTENTS)), name


def test_words_of_every_script_stay_apart_in_the_svg_too(browser: Browser) -> None:
    page = browser.new_page()
    for name, text in SCRIPTS.items():
        page.set_content(render_svg(text.split(), []))
        words = page.locator("svg > text").evaluate_all(EXTENTS)
        assert apart(words), name
        drawn = sum(right - left for _, left, right in words)
        assert page.evaluate("document.querySelector('svg').clientWidth") < 1.6 * drawn + 18 * len(words) + 24, name
    page.close()


def test_a_sentence_from_right_to_left_is_walked_in_the_direction_of_the_arrow(opened: Open) -> None:
    words = SCRIPTS["Arabic"].split()
    page = opened([Sentence.of(words, heads=range(len(words)), labels=["root"] + ["dep"] * (len(words) - 1))])
    word(page, 0, 1).click()
    page.keyboard.press("ArrowLeft")
    assert page.locator(".panel b").inner_text() == words[1]


def test_it_fits_a_narrow_screen(opened: Open) -> None:
    long = Sentence.of(["Donaudampfschifffahrt"] * 30, heads=range(30), labels=["root"] + ["flat"] * 29)
    page = opened([*drafts(), long], width=400)
    word(page, 2, 30).click()
    page.keyboard.press("h")
    page.keyboard.type("1\n")
    assert "flat of Donaudampfschifffahrt" in tree(page, 2)[29]
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    box, panel = word(page, 2, 30).bounding_box(), page.locator(".panel input").first.bounding_box()
    assert box
    assert panel
    assert 0 <= box["x"] < box["x"] + box["width"] <= 400
    assert 0 <= panel["x"] < panel["x"] + panel["width"] <= 400


def test_dark_mode_is_dark(opened: Open) -> None:
    brightness = "(style => style.match(/\\d+/g).reduce((sum, part) => sum + +part, 0))(getComputedStyle(%s).%s)"
    for scheme in ("light", "dark"):
        page = opened(color_scheme=scheme)
        ground = page.evaluate(brightness % ("document.body", "backgroundColor"))
        ink = page.evaluate(brightness % ("document.querySelector('.form')", "color"))
        assert (ground > ink) == (scheme == "light")


def test_of_two_thousand_sentences_only_those_near_the_screen_are_drawn(opened: Open) -> None:
    sentence = drafts()[1]
    page = opened([sentence] * 2000)
    assert page.locator("article").count() == 2000
    assert 0 < page.locator(".stage").count() < 40
    page.evaluate("scrollTo(0, document.body.scrollHeight / 2)")
    page.evaluate("scrollTo(0, document.body.scrollHeight)")
    word(page, 1999, 5).click()
    choice(page, "head", "6").click()
    assert "advmod of Haus" in tree(page, 1999)[4]
    assert page.locator(".stage").count() < 80


def test_a_page_to_read_shows_the_same_and_changes_nothing(opened: Open) -> None:
    page = opened(edit=False)
    shown(page, ".id", ["unsure", "sure"])
    word(page, 1, 5).click()
    assert choice(page, "head", "6").is_disabled()
    before = tree(page, 1)
    drag(page, word(page, 1, 5), lambda: word(page, 1, 1))
    for key in ("2", "d", "h", "l", "z"):
        page.keyboard.press(key)
    assert tree(page, 1) == before
    assert page.locator("#save:visible, #undo:visible, .tick, main input").count() == 0
    assert page.evaluate("localStorage.length") == 0


def test_a_page_to_read_takes_any_scheme_of_labels_and_partial_trees(opened: Open) -> None:
    page = opened([Sentence.of(["Dogs", "bark", "."], heads=[2, 0, -1], labels=["subj", "root", "_"])], edit=False)
    assert page.locator("main .arc").count() == 2
    assert page.locator(".problem, main .wrong").count() == 0


def test_a_change_in_one_tab_is_seen_in_another(opened: Open) -> None:
    first, second = opened(), opened()
    word(first, 1, 5).click()
    choice(first, "head", "6").click()
    second.locator('[aria-label*="advmod of Haus"]').wait_for()
