"""The command line: `subdp VERB …`. Each verb is the Python verb of the same name; results go to standard output.

Nothing heavy is imported until a verb that needs it runs. Exit 1: something is wrong with the data; 2: with the call.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Annotated, Any, NoReturn, TypeAlias

from cyclopts import App, CycloptsError, Parameter

from subdp import __version__
from subdp.errors import SubdpError, counted
from subdp.scores import Labels, Punctuation


def _no_option(_: Any, value: Any) -> None:
    """Of all that begins with a hyphen only `-`, standard input or output, is the name of a file."""
    if isinstance(value, str) and value.startswith("-") and value != "-":
        raise ValueError(f"there is no option {value}")


Flag: TypeAlias = Annotated[bool, Parameter(negative="")]
Input: TypeAlias = Annotated[str, Parameter(allow_leading_hyphen=True, validator=_no_option)]
Output: TypeAlias = Annotated[str, Parameter(name=["--output", "-o"], allow_leading_hyphen=True, validator=_no_option)]

app = App(
    name="subdp",
    help="A dependency parser for a language without a treebank, from translated text.",
    version=f"subdp {__version__}",
    version_flags=["--version"],
    suppress_keyboard_interrupt=False,  # `run` below sees to it.
)


@app.meta.default
def run(
    *tokens: Annotated[str, Parameter(show=False, allow_leading_hyphen=True)],
    quiet: Flag = False,
    debug: Flag = False,
) -> Any:
    """Run one verb, and turn errors into one line and an exit code.

    Parameters
    ----------
    quiet
        No progress bars.
    debug
        Show the whole traceback of an error.
    """
    if quiet:
        os.environ["SUBDP_QUIET"] = "1"
    try:
        return app(tokens, exit_on_error=False, print_error=False)
    except CycloptsError as error:
        _misused(error)
    except SubdpError as error:
        if debug:
            raise
        say(f"subdp: {error}")
        sys.exit(1)
    except BrokenPipeError:
        # The reader of a pipe has gone, as `| head` does: not an error, and nothing more can be said on it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except OSError as error:
        if debug:
            raise
        say(f"subdp: {error.filename or 'a file'}: {error.strerror or error}")
        sys.exit(1)
    except KeyboardInterrupt:
        say("subdp: interrupted")
        sys.exit(130)


def _misused(error: CycloptsError) -> NoReturn:
    """What is wrong with a call, on one line."""
    say(f"subdp: {' '.join(str(error).split())}")
    sys.exit(2)


def say(text: str) -> None:
    """Talk to the person: standard error."""
    print(text, file=sys.stderr)


def give(result: dict[str, Any] | str) -> None:
    """A result: standard output, JSON for a dictionary."""
    print(result if isinstance(result, str) else json.dumps(result, ensure_ascii=False, indent=2))


@app.command
def evaluate(
    gold: Input,
    system: Input,
    *,
    punctuation: Punctuation = "upos",
    labels: Labels = "universal",
    max_length: int = 150,
    json: Flag = False,
) -> None:
    """Score SYSTEM's trees against GOLD's, two CoNLL-U files over the same words.

    Parameters
    ----------
    gold
        CoNLL-U file with the right trees.
    system
        CoNLL-U file with a parser's trees.
    punctuation
        Which words are left out: upos (PUNCT and SYM), deprel (punct), form (only punctuation signs), none.
    labels
        Compare labels without their subtypes (universal) or whole (full).
    max_length
        Leave out sentences with more words.
    json
        Print all figures as JSON.
    """
    from subdp.evaluate import evaluate as score
    from subdp.treebank import read_conllu

    scores = score(
        read_conllu(gold), read_conllu(system, any_roots=True),
        punctuation=punctuation, labels=labels, max_length=max_length,
    )  # fmt: skip
    give(scores.as_dict() if json else str(scores))


@app.command
def cache(*, clear: Flag = False, json: Flag = False) -> None:
    """Show what subdp keeps between runs, and how large it is.

    Parameters
    ----------
    clear
        Delete it: everything is made anew when it is needed.
    json
        Print sizes in bytes as JSON.
    """
    import shutil

    from subdp.bundled import cache_folder
    from subdp.features import store_sizes

    kept = [
        (str(store.folder), store.bytes, f"features of {store.encoder}, layers {store.layers}")
        for store in store_sizes()
    ]
    for name, what in (("silver", "projected pairs"), ("encoders", "the bundled encoder, converted")):
        folder = cache_folder() / name
        if folder.exists():
            size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
            kept.append((str(folder), size, what))
    total = sum(size for _, size, _ in kept)
    if clear:
        for name, _, _ in kept:
            shutil.rmtree(name)
    if json:
        entries = [{"folder": name, "bytes": size, "what": what} for name, size, what in kept]
        give({"cleared": clear, "bytes": total, "entries": entries})
        return
    for name, size, what in kept:
        give(f"{size / 1e6:>8,.0f} MB  {what}  {name}")
    give(f"{total / 1e6:>8,.0f} MB  {'freed' if clear else 'in all'}")


@app.command
def plugins(*, json: Flag = False) -> None:
    """List what other installed packages add: encoders, aligners, translators, tokenizers.

    Parameters
    ----------
    json
        Print it as JSON.
    """
    from subdp.plugins import GROUPS
    from subdp.plugins import plugins as offered

    found = {group.removeprefix("subdp."): {name: e.value for name, e in offered(group).items()} for group in GROUPS}
    if json:
        give(found)
        return
    for kind, entries in found.items():
        give(f"{kind}: {', '.join(f'{name} ({value})' for name, value in entries.items()) or 'none'}")


@app.command
def show(file: Input, *, output: Output = "-", most: int = 20) -> None:
    """Draw the trees of a CoNLL-U file: in the terminal, or as .html or .svg.

    Parameters
    ----------
    file
        CoNLL-U file.
    output
        File to write: .html for a page, .svg for one picture; text otherwise.
    most
        Draw the first so many sentences.
    """
    from itertools import islice

    from subdp.files import open_text_output
    from subdp.render import Arc, render_html, render_svg, render_text
    from subdp.treebank import read_conllu

    if "." in Path(output).name and not output.endswith((".html", ".svg", ".txt")):
        raise SubdpError("cannot be drawn", where=output, hint="name a file that ends in .html, .svg or .txt")
    items = []
    sentences = read_conllu(file, any_roots=True)
    for sentence in islice(sentences, max(most, 1)):
        relations = enumerate(zip(sentence.heads, sentence.labels, strict=True), 1)
        arcs = [Arc(word, head, label) for word, (head, label) in relations if head >= 0]
        items.append((sentence.sent_id, sentence.words, arcs))
    if next(sentences, None) is not None:
        say(f"the first {counted(len(items), 'sentence')}; --most draws more")
    with open_text_output(output) as write:
        if output.endswith(".html"):
            write(render_html(items, title=file))
        elif output.endswith(".svg"):
            write(render_svg(*items[0][1:]))
        else:
            write("\n\n".join(render_text(words, arcs) for _, words, arcs in items) + "\n")


def main() -> None:
    """The entry point of the `subdp` command."""
    import subdp.commands
    import subdp.data_commands
    import subdp.experiment_commands
    import subdp.run_commands
    import subdp.translate_commands  # noqa: F401  # they add their verbs to the app

    try:
        app.meta(exit_on_error=False, print_error=False)
    except CycloptsError as error:
        _misused(error)
