"""`subdp quickstart`: the whole method on the sample that comes with the package, with a line about every step.

It is an ordinary run with one more stage, hard projection, for comparison; so it too can be interrupted and resumed.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from subdp.corpus.treebank import read_conllu
from subdp.corpus.words import words_of
from subdp.drawing.render import Arc, render_text
from subdp.network.hub import SHIPPED
from subdp.pipeline.options import RunOptions
from subdp.pipeline.run import Run
from subdp.pipeline.stages import TRAINING, Say, Stage
from subdp.support.errors import counted
from subdp.support.files import write_json
from subdp.support.settings import Settings

if TYPE_CHECKING:
    from subdp.projection.silver import Silver

Language = Literal["de", "tr"]
SAMPLE = Path(__file__).parent / "sample"


class _Texts(NamedTuple):
    """Of a language: its name, the source of the sentence that is drawn, and a sentence to try the parser on."""

    name: str
    drawn: str
    example: str


_TEXTS: dict[Language, _Texts] = {
    "de": _Texts("German", "Bread stays fresh longer in a wooden box.", "Gestern hat es den ganzen Tag geregnet."),
    "tr": _Texts(
        "Turkish", "The farmers hope that prices will rise again in the autumn.", "Dün bütün gün yağmur yağdı."
    ),
}
_SHOWN = 0.05  # Arcs less probable than this would only clutter the picture.


def quickstart(
    language: Language,
    output: Path,
    say: Say,
    give: Callable[[str], None],
    *,
    source_parser: Path = SHIPPED,
    settings: Settings | None = None,
    device: str | None = None,
) -> None:
    """Run the method on the sample and show the results: messages go to `say`, results to `give`."""
    options = RunOptions(
        bitext=(str(SAMPLE / f"en-{language}.tsv"),),
        source_parser=(str(source_parser),),
        test=str(SAMPLE / f"{language}-test.conllu"),
    )
    run = Run(options, Settings.resolve() if settings is None else settings, output, device=device)
    name, drawn, example = _TEXTS[language]
    say(f"A {name} parser from 120 English sentences and their translations, without a {name} treebank.\n")
    hard = _hard_stage(run)
    run.perform(say, extra=[hard])
    scores = run.scores() or {}
    rows = {
        "direct transfer": scores["direct"],
        "hard projection": json.loads((run.root / hard.name / "scores.json").read_text()),
        "SubDP": scores["subdp"],
    }
    give(f"\n{_table(rows, name)}")
    give(f"\n{_picture(run.work.silver(0), drawn, name)}")
    give(f"\n{_what_next(output / 'parser', example)}")


def _hard_stage(run: Run) -> Stage:
    """Hard projection on the same pairs, scored on the same trees."""

    def work(folder: Path) -> str:
        from subdp.pipeline.baselines import as_silver, hard_trees
        from subdp.pipeline.work import as_values

        training = folder / TRAINING
        training.mkdir(exist_ok=True)
        source, silver = run.work.parser(0), run.work.silver(0)
        seed = run.options.seed
        parser = source.adapt_to_trees(hard_trees(silver), settings=as_silver(run.settings), seed=seed, folder=training)
        scores = parser.evaluate(read_conllu(str(run.options.test)))
        write_json(folder / "scores.json", as_values(scores))
        made = parser.about["adapted_on"]
        return f"{counted(made['known_heads'], 'word')} with a head from projection"

    purpose = "for comparison, train on trees projected through one-to-one links"
    return Stage("hard", purpose, {stage.name: stage.key for stage in run.stages}, work)


def _table(rows: dict[str, dict[str, Any]], language: str) -> str:
    sentences, words = rows["SubDP"]["sentences"], rows["SubDP"]["words"]
    lines = [f"{'On ' + language + ' gold trees':<26}{'UAS':>6}{'LAS':>7}", "─" * 39]
    lines += [f"{title:<26}{row['uas']:>6.1f}{row['las']:>7.1f}" for title, row in rows.items()]
    notes = [
        f"{sentences} sentences, {words} words: an illustration, not a measurement.",
        "The encoder is the one that comes with subdp, not the paper's XLM-R.",
    ]
    return "\n".join([*lines, "", *notes])


def _picture(silver: Silver, drawn: str, language: str) -> str:
    """The soft tree that was projected onto the translation of one sentence."""
    from subdp.projection.soft_tree import project

    wanted = words_of(drawn)
    pair = next(pair for pair in silver if pair.source == wanted)
    tree = project(pair.tree(silver.inventory), pair.alignment, onto=pair.target)
    arcs = [
        Arc(word, head.head, head.label, min(head.probability, 1.0))
        for word in range(1, len(tree) + 1)
        for head in tree.heads_of(word)
        if head.probability >= _SHOWN
    ]
    lines = render_text(tree.words, arcs).rstrip("\n").split("\n")
    return "\n".join(
        [
            f"What the {language} parser learnt from: not a tree, but probabilities of heads.",
            "",
            f"    {drawn}",
            "",
            *(f"    {line}" for line in lines),
        ]
    )


def _what_next(parser: Path, example: str) -> str:
    command = _command()
    return f"""The parser is in {parser}. Try it on text of your own:

    echo '{example}' | {command} parse - --parser {parser}

Then make one for your language. All it needs is a file of English sentences and
their translations, one pair per line, separated by a tab:

    {command} run --bitext en-xx.tsv -o xx"""


def _command() -> str:
    """What to type for this program: its name if the shell finds it, else its path."""
    found, own = shutil.which("subdp"), Path(sys.argv[0])
    same = found is not None and own.exists() and Path(found).resolve() == own.resolve()
    return "subdp" if same or own.name != "subdp" else os.path.relpath(own)
