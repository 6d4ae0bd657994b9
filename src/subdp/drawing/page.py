"""Trees on one HTML page to read or to correct, with everything it needs inside: no server, no network.

The page's markup, style and scripts are in `assets`. The sentences are embedded as data; the scripts put text into the
page as text only, and the page's content security policy lets no script run but its own. Standard library only.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable
from html import escape
from importlib.resources import files
from pathlib import PurePath
from string import Template

from subdp.drawing.arcs import clean, runs_right_to_left

_SCRIPTS = ("document.js", "layout.js", "tree.js", "page.js")


def render_page(sentences: Iterable[str], *, title: str, edit: bool = False) -> str:
    """Sentences in CoNLL-U on a page, least sure first; with `edit`, one to correct the trees on and to save them.

    What is done on the page is kept by the browser under the hash of its sentences.
    """
    items, digest = [], hashlib.sha256()
    for conllu in sentences:
        items.append({"conllu": conllu, "rtl": runs_right_to_left("".join(_forms(conllu)))})
        digest.update(f"{conllu}\n\n".encode())
    data = {"name": PurePath(title).stem, "key": digest.hexdigest(), "edit": edit, "sentences": items}
    script = "\n".join(_asset(name) for name in _SCRIPTS)
    style = _asset("page.css")
    return Template(_asset("page.html")).substitute(
        title=escape(clean(title)), style=style, style_hash=_hash(style), script=script, script_hash=_hash(script),
        data=_inert(json.dumps(data, ensure_ascii=False)),
    )  # fmt: skip


def _forms(conllu: str) -> list[str]:
    rows = [line.split("\t") for line in conllu.split("\n") if not line.startswith("#")]
    return [row[1] for row in rows if row[0].isdecimal()]


def _asset(name: str) -> str:
    return files("subdp.drawing").joinpath("assets", name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _inert(text: str) -> str:
    """JSON that no HTML parser can take for markup, whatever words it holds."""
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
