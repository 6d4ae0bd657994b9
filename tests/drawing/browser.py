"""A real Chromium for the tests of the page, and what they do with it again and again.

The screenshot in the documentation is made with it: python -m tests.drawing.browser drafts.html docs/annotate.png
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from subdp.corpus.treebank import Sentence, read_conllu

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator, Page

FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync"]  # fmt: skip


@contextmanager
def chromium() -> Iterator[Browser]:
    """The browser; where there is none, the test is skipped, or fails if SUBDP_NEEDS_BROWSER is set."""
    path = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        path = None
    if path is None:
        absent = "no Chromium with playwright is installed"
        if os.environ.get("SUBDP_NEEDS_BROWSER"):
            pytest.fail(absent)
        pytest.skip(absent)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        browser.close()


def word(page: Page, sentence: int, number: int) -> Locator:
    """The button of a word; sentences are numbered from 0 as in the file, words from 1."""
    return page.locator(f'[data-sentence="{sentence}"] .word').nth(number - 1)


def shown(page: Page, selector: str, texts: list[str]) -> None:
    """Wait until the elements hold these texts; cards are drawn as they come near the screen, not at once."""
    from playwright.sync_api import expect

    expect(page.locator(selector)).to_have_text(texts)


def choice(page: Page, column: str, value: str) -> Locator:
    """What the open panel offers for a column (head, label or tag)."""
    number = {"tag": 3, "head": 6, "label": 7}[column]
    return page.locator(f'.choice[data-column="{number}"][data-value="{value}"]')


def drag(page: Page, dependent: Locator, head: Callable[[], Locator]) -> None:
    """Drag a word onto its head, which may appear only while dragging."""
    dependent.scroll_into_view_if_needed()
    box = dependent.bounding_box()
    assert box
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 10)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] / 2 + 12, box["y"] + 4)
    to = head().bounding_box()
    assert to
    page.mouse.move(to["x"] + to["width"] / 2, to["y"] + to["height"] / 2, steps=3)
    page.mouse.up()


def tree(page: Page, sentence: int) -> list[str]:
    """The words of a sentence as a screen reader hears them."""
    word(page, sentence, 1).wait_for()
    words = page.locator(f'[data-sentence="{sentence}"] .word').all()
    return [str(one.get_attribute("aria-label")) for one in words]


def saved(page: Page, button: str, folder: Path) -> list[Sentence]:
    """What a Save button downloads, after `udvalidate` has passed it."""
    with page.expect_download() as download:
        page.click(button)
    file = folder / download.value.suggested_filename
    download.value.save_as(file)
    call = [str(Path(sys.executable).with_name("udvalidate")), "--lang", "ud", "--level", "2", str(file)]
    checked = subprocess.run(call, check=False, capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    return list(read_conllu(file))


def screenshot(drafts: Path, picture: Path) -> None:
    """A page as `subdp annotate` wrote it, with one word corrected and the next unsure one open."""
    with chromium() as browser:
        page = browser.new_page(viewport={"width": 1000, "height": 760})
        page.goto(drafts.resolve().as_uri())
        page.locator(".word").first.wait_for()
        page.keyboard.press("n")
        page.locator(".choice[aria-pressed=false]").first.click()
        page.keyboard.press("n")
        page.evaluate("scrollTo(0, 0)")
        page.screenshot(path=picture)


if __name__ == "__main__":
    screenshot(Path(sys.argv[1]), Path(sys.argv[2]))
