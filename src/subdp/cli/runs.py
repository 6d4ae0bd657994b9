"""The verbs that do all at once: `run`, `quickstart`, `annotate`. Torch is imported when one of them needs it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from subdp.cli.app import Flag, Output, app, give, say
from subdp.cli.steps import Changes
from subdp.support.engine import LocalEngine
from subdp.support.settings import LossesName, PresetName, Settings

# None where nothing is said: what a file says, or else the default, holds then.
Names = Annotated[list[str] | None, Parameter(consume_multiple=True, negative="")]
Choice = Annotated[bool | None, Parameter(negative="")]


@app.command
def run(
    *,
    output: Output,
    bitext: Names = None,
    treebank: str | None = None,
    source_parser: Names = None,
    gold_trees: Names = None,
    dev: str | None = None,
    test: str | None = None,
    aligner: str | None = None,
    one_to_one: Choice = None,
    tokenized: Choice = None,
    preset: PresetName | None = None,
    losses: LossesName | None = None,
    encoder: str | None = None,
    config: str | None = None,
    train: Changes = None,
    network: Changes = None,
    adapt: Changes = None,
    loss: Changes = None,
    seed: int | None = None,
    jobs: int = 1,
    dry_run: Flag = False,
    json: Flag = False,
) -> None:
    """Make a parser from translated text: all steps, each resumed where it stopped and none done twice.

    Parameters
    ----------
    output
        The folder for all results: parser/, report.json, config.toml and, with gold trees, scores.json.
    bitext
        Files of pairs (source TAB translation); two files of lines or CoNLL-U are joined by a comma: en.txt,de.txt.
    treebank
        CoNLL-U file to train a source parser on first.
    source_parser
        Model folder of the source parser, or one for each bitext; by default the English one that comes with subdp.
    gold_trees
        Treebank whose translation the bitext is, or one for each: its trees are projected, not what the parser says.
    dev
        CoNLL-U file with gold trees of the target language, scored to choose settings by; never trained on.
    test
        CoNLL-U file with gold trees of the target language, scored in the end.
    aligner
        argmax (the default), itermax, match, or a file of links made elsewhere.
    one_to_one
        Drop links whose words have other links.
    tokenized
        The text has spaces between all words already.
    preset
        small for a laptop (the default), paper for a GPU.
    losses
        default, or paper for the paper's formulas to the letter.
    encoder
        For a source parser to be trained: bundled, a model folder, or a Hugging Face name.
    config
        TOML file with settings; its section [run] has the other options here, as DIR/config.toml of an earlier run.
    train
        Settings of the source parser's training, as --train.lr 0.001.
    network
        Settings of the source parser's network, as --network.lstm 400.
    adapt
        Settings of the target parser's training, as --adapt.epochs 10.
    loss
        Settings of the losses, as --loss.completion none.
    seed
        What all chance is drawn from; 1 by default.
    jobs
        Processes that encode, align and project, each with its share of the cores.
    dry_run
        Only show what would be done.
    json
        Print the scores as JSON.
    """
    from subdp.pipeline.options import RunOptions
    from subdp.pipeline.run import Run

    given: dict[str, Any] = {
        "bitext": bitext, "treebank": treebank, "source_parser": source_parser, "gold_trees": gold_trees,
        "dev": dev, "test": test, "aligner": aligner, "one_to_one": one_to_one, "tokenized": tokenized,
        "preset": preset, "losses": losses, "encoder": encoder, "seed": seed,
    }  # fmt: skip
    flags = {name: value for name, value in given.items() if value is not None}
    if config is None and bitext is None:
        say("subdp: --bitext is missing: a file of pairs, source TAB translation")
        sys.exit(2)
    options = RunOptions.resolve(config, flags)
    changes = {"train": train or {}, "network": network or {}, "adapt": adapt or {}, "losses": loss or {}}
    settings = Settings.resolve(options.preset, options.losses, config, changes)
    job = Run(options, settings, Path(output), LocalEngine(jobs))
    if dry_run:
        give(job.plan())
        return
    job.perform(say)
    scores, parser = job.scores(), str(job.output / "parser")
    if json:
        give({"parser": parser, "scores": scores})
    else:
        give(parser if scores is None else table(scores))
    say(f"\nthe parser is in {parser}; try: subdp parse text.txt --parser {parser}")


def table(scores: dict[str, Any]) -> str:
    """Scores as a table: one line for each system, on each gold set."""
    sets = {"": {name: row for name, row in scores.items() if "uas" in row}}
    sets |= {f", {name}": rows for name, rows in scores.items() if "uas" not in rows}
    lines = [f"{'':<22}{'UAS':>6}{'LAS':>7}"]
    for name, rows in sets.items():
        for system, row in rows.items():
            title = {"direct": "direct transfer", "hard": "hard projection", "subdp": "SubDP"}[system] + name
            lines.append(f"{title:<22}{row['uas']:>6.1f}{row['las']:>7.1f}")
    return "\n".join(lines)


@app.command
def quickstart(*, language: Literal["de", "tr"] = "de", output: Output | None = None) -> None:
    """See the whole method at work on a sample that comes with subdp: a parser for German or Turkish in a minute.

    Parameters
    ----------
    language
        de for German, tr for Turkish.
    output
        The folder for the parser and all else; quickstart-de or quickstart-tr by default.
    """
    from subdp.pipeline.quickstart import quickstart as show

    show(language, Path(output or f"quickstart-{language}"), say, give)
