"""The verbs that look at trees: `evaluate` and `show`. No torch."""

from __future__ import annotations

from pathlib import Path

from subdp.cli.app import Flag, Input, Output, app, give, say
from subdp.evaluation.scores import Labels, Punctuation
from subdp.support.errors import SubdpError, counted


@app.command
def evaluate(
    gold: Input,
    system: Input,
    *,
    punctuation: Punctuation = "upos",
    labels: Labels = "universal",
    max_length: int = 150,
    compare: str | None = None,
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
    compare
        Another system's trees: how much SYSTEM gains over it, with a 95 % interval and p-value by paired bootstrap.
    json
        Print all figures as JSON.
    """
    from subdp.corpus.treebank import read_conllu
    from subdp.evaluation.attachment import compare as bootstrap
    from subdp.evaluation.attachment import evaluate as score

    trees = list(read_conllu(gold))
    scores, *others = (
        score(
            trees, read_conllu(file, any_roots=True),
            punctuation=punctuation, labels=labels, max_length=max_length,
        )
        for file in (system, *([] if compare is None else [compare]))
    )  # fmt: skip
    figures, lines = scores.as_dict(), [str(scores)]
    for other in others:
        gain = bootstrap(other, scores)
        figures["compare"] = {"file": compare, "uas": other.uas, "las": other.las, "gain": gain.as_dict()}
        lines += [f"{compare}: {other}", f"gain over {compare}: {gain}"]
    give(figures if json else "\n".join(lines))


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

    from subdp.corpus.treebank import read_conllu
    from subdp.drawing.arcs import tree_arcs
    from subdp.drawing.render import render_html, render_svg, render_text
    from subdp.support.files import open_text_output

    if "." in Path(output).name and not output.endswith((".html", ".svg", ".txt")):
        raise SubdpError("cannot be drawn", where=output, hint="name a file that ends in .html, .svg or .txt")
    items = []
    sentences = read_conllu(file, any_roots=True)
    for sentence in islice(sentences, max(most, 1)):
        items.append((sentence.sent_id, sentence.words, tree_arcs(sentence.heads, sentence.labels)))
    if next(sentences, None) is not None:
        say(f"the first {counted(len(items), 'sentence')}; --most draws more")
    with open_text_output(output) as write:
        if output.endswith(".html"):
            write(render_html(items, title=file))
        elif output.endswith(".svg"):
            write(render_svg(*items[0][1:]))
        else:
            write("\n\n".join(render_text(words, arcs) for _, words, arcs in items) + "\n")
