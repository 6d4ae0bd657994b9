"""Pages of the documentation that are made from the code, so that they cannot go stale: mkdocs calls `on_files`.

The command line and the settings are read from the command line's own parameters; the Python page lists the public
names, which mkdocstrings then describes.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import Any

import griffe
from cyclopts import App
from mkdocs.structure.files import File, Files

import subdp
from subdp.cli.flags import default, field_docs
from subdp.cli.main import app
from subdp.pipeline.options import RunOptions
from subdp.support.settings import LOSSES, PRESETS
from subdp.support.values import described, kinds


def on_files(files: Files, config: Any) -> Files:
    """Add the pages."""
    pages = {"python": python_page, "command-line": command_page, "settings": settings_page}
    for name, page in pages.items():
        files.append(File.generated(config, f"reference/{name}.md", content="\n".join(page())))
    return files


class Examples(griffe.Extension):
    """Shows the examples in docstrings as code."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Fence what begins with a prompt, up to the next empty line."""
        if obj.docstring is not None:
            text = obj.docstring.value
            obj.docstring.value = re.sub(r"^>>> .*?(?=\n\n|\Z)", r"```pycon\n\g<0>\n```", text, flags=re.M | re.S)


def python_page() -> Iterator[str]:
    """Every public name, each with what mkdocstrings says of it."""
    yield "# Python\n\nEverything here is a name of the package: `import subdp`, then `subdp.Parser` and so on.\n"
    for name in subdp.__all__:
        found = getattr(subdp, name)
        where = found.__name__ if inspect.ismodule(found) else f"{found.__module__}.{found.__qualname__}"
        yield f"::: {where}\n"


def verbs(command: App, words: str) -> Iterator[tuple[str, App]]:
    """Every verb with the words that call it; those of a group such as `data` too."""
    inner = [name for name in command if not name.startswith("-")]
    if not inner:
        yield words, command
    for name in inner:
        yield from verbs(command[name], f"{words} {name}")


def command_page() -> Iterator[str]:
    """Every verb with its flags."""
    yield (
        "# Command line\n\n`subdp VERB --help` says the same. With every verb, `--quiet` shows no progress bars"
        " and `--debug` a full traceback.\n"
    )
    for words, command in verbs(app, "subdp"):
        about = inspect.cleandoc(command.help).split("\nParameters\n")[0]
        yield f"## {words}\n\n{about}\n\n| flag | what it is | default |\n|---|---|---|"
        flags = [flag for flag in command.assemble_argument_collection(parse_docstring=True) if flag.show]
        for flag in flags:
            if "." not in flag.name:
                names = [flag.name.strip("-").upper()] if flag.index is not None else flag.names
                named = ", ".join(f"`{name}`" for name in names)
                yield f"| {named} | {_cell(flag.parameter.help)} | {_default(flag)} |"
        sections = dict.fromkeys(flag.name[2:].split(".")[0] for flag in flags if "." in flag.name)
        if sections:
            listed = ", ".join(f"[`--{name}.…`](settings.md#{name})" for name in sections)
            yield f"\nSettings: {listed}."
        yield ""


def settings_page() -> Iterator[str]:
    """Every setting with its two presets, and the options of a run that a file may hold."""
    yield (
        "# Settings\n\nEach is a flag, such as `--train.lr 0.001`, and a key of a TOML file that `--config` names, such"
        " as `lr` in `[train]`; for the losses, `--loss.completion` and `[losses]`. Flags win over the file, and the"
        " file over `--preset small|paper` and `--losses default|paper`. `subdp distill` has defaults of its own, which"
        " its `--help` shows.\n"
    )
    small, paper = PRESETS["small"], PRESETS["paper"]
    sections = {
        "network": (small.network, paper.network),
        "train": (small.train, paper.train),
        "adapt": (small.adapt, paper.adapt),
        "tune": (small.tune, paper.tune),
        "loss": (LOSSES["default"], LOSSES["paper"]),
    }
    for name, (usual, other) in sections.items():
        config = type(usual)
        yield f"## {name}\n\n{inspect.getdoc(config)}\n\n| flag | what it is | value | default |\n|---|---|---|---|"
        docs = field_docs(config)
        for field, kind in kinds(config).items():
            yield f"| `--{name}.{field}` | {_cell(docs[field])} | {described(kind)} | {default(usual, other, field)} |"
        yield ""
    yield "## run\n\nThe section `[run]` of a file for `subdp run --config`; the flags have the same names.\n"
    yield "| key | what it is |\n|---|---|"
    for field, text in field_docs(RunOptions).items():
        yield f"| `{field}` | {_cell(text)} |"


def _cell(text: str | None) -> str:
    return " ".join((text or "").split()).replace("|", "\\|")


def _default(flag: Any) -> str:
    value = flag.field_info.default
    if flag.required:
        return "required"
    return "" if value in (inspect.Parameter.empty, None, False) else f"`{value}`"
