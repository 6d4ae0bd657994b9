"""The verbs that look at trees: `evaluate` and `show`. No torch."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

from subdp.cli.app import Flag, Input, Output, give, say
from subdp.corpus.treebank import read_conllu
from subdp.drawing.arcs import tree_arcs
from subdp.drawing.page import render_page
from subdp.drawing.render import render_svg, render_text
from subdp.evaluation.attachment import compare as bootstrap
from subdp.evaluation.attachment import evaluate as score
from subdp.evaluation.scores import Labels, Punctuation
from subdp.support.errors import SubdpError, counted
from subdp.support.files import open_text_output


def evaluate(
    gold: Input,
    system: Input,
    *,
    punctuation: Punctuation = "upos",
    labels: Labels = "universal",
    max_length: int = 150,
    layers: str = "upos",
    compare: str | None = None,
    json: Flag = False,
) -> None:
    """Score SYSTEM's trees against GOLD's: two CoNLL-U files with the same words.

    Parameters
    ----------
    gold
        CoNLL-U file with gold trees.
    system
        CoNLL-U file with a parser's trees.
    punctuation
        Words to leave out: upos (PUNCT and SYM), deprel (punct), form (punctuation characters only), or none.
    labels
        Compare labels without their subtypes (universal) or in full (full).
    max_length
        Leave out sentences with more words than this.
    layers
        Tags to score besides trees, separated by commas, where both files have them: upos, xpos, feats:Case, misc:NE …
    compare
        Another system's trees: how much SYSTEM gains over it, with a 95 % interval and p-value by paired bootstrap.
    json
        Print all scores as JSON.
    """
    trees = list(read_conllu(gold))
    scores, *others = (
        score(
            trees, read_conllu(file, any_roots=True),
            punctuation=punctuation, labels=labels, max_length=max_length, layers=layers.split(","),
        )
        for file in (system, *([] if compare is None else [compare]))
    )  # fmt: skip
    figures, lines = scores.as_dict(), [str(scores)]
    for other in others:
        gain = bootstrap(other, scores)
        figures["compare"] = {"file": compare, "uas": other.uas, "las": other.las, "gain": gain.as_dict()}
        lines += [f"{compare}: {other}", f"gain over {compare}: {gain}"]
    give(figures if json else "\n".join(lines))


def show(file: Input, *, output: Output = "-", most: int | None = None) -> None:
    """Draw the trees of a CoNLL-U file: in the terminal, or as .html or .svg.

    Parameters
    ----------
    file
        CoNLL-U file.
    output
        File to write: .html for a page to look through, .svg for a picture of the first sentence; text otherwise.
    most
        At most this many sentences; by default 20, or all of them on a page.
    """
    if "." in Path(output).name and not output.endswith((".html", ".svg", ".txt")):
        raise SubdpError("cannot be drawn", where=output, hint="name a file that ends in .html, .svg or .txt")
    if most is None and not output.endswith(".html"):
        most = 20
    sentences = read_conllu(file, any_roots=True)
    picture = output.endswith(".svg")
    drawn = list(islice(sentences, 1 if picture else most if most is None else max(most, 1)))
    if next(sentences, None) is not None:
        more = "an .html file shows more" if picture else "--most shows more"
        say(f"drawing the first {counted(len(drawn), 'sentence') if len(drawn) > 1 else 'sentence'}; {more}")
    pictures = []
    for sentence in drawn:
        tags = sentence.upos if any(tag != "_" for tag in sentence.upos) else ()
        pictures.append((sentence.words, tree_arcs(sentence.heads, sentence.labels), tags))
    with open_text_output(output) as write:
        if output.endswith(".html"):
            write(render_page((sentence.conllu for sentence in drawn), title=Path(file).name))
        elif picture:
            write(render_svg(*pictures[0]))
        else:
            write("\n\n".join(render_text(*picture) for picture in pictures) + "\n")
