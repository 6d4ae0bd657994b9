"""The verb `experiment`. Torch is imported when cells are to be worked on."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from subdp.cli.app import Output, app, give, say
from subdp.cli.steps import Changes
from subdp.experiments.corpora import Corpora
from subdp.experiments.grid import ExperimentName, ExperimentOptions, Grid
from subdp.support.settings import LOSSES, LossConfig, LossesName, Settings


@app.command
def experiment(
    name: ExperimentName,
    *,
    data: str,
    output: Output,
    languages: Annotated[list[str] | None, Parameter(consume_multiple=True, negative="")] = None,
    seeds: Annotated[list[int] | None, Parameter(consume_multiple=True, negative="")] = None,
    encoder: str | None = None,
    losses: LossesName = "default",
    config: str | None = None,
    adapt: Changes = None,
    loss: Changes = None,
    tatoeba: int | None = None,
    jobs: int | None = None,
) -> None:
    """Repeat an experiment of the paper: transfer, ablation, alignment, losses, multisource or bitext-size.

    Tables (Markdown, LaTeX, CSV) and a figure are written to the output folder. A grid that was stopped goes on where
    it was; experiments in one folder share what they have in common.

    Parameters
    ----------
    name
        Which one.
    data
        Folder with ud/ and bitext/.
    output
        Folder for all results.
    languages
        Target languages, as --languages de tr; by default all eight of the paper.
    seeds
        As --seeds 1 2 3; by default those of the configuration, or 1.
    encoder
        Train source parsers with this encoder, instead of using the one that comes with subdp.
    losses
        default, or paper for the paper's formulas to the letter.
    config
        TOML file with a section [experiment], and settings; see configs/.
    adapt
        Settings of the target parser's training, as --adapt.epochs 10.
    loss
        Settings of the losses, as --loss.completion none.
    tatoeba
        Pairs of Tatoeba at most; by default what the configuration says, or 1,000. For none of it, leave it out of the
        configuration's `bitext`.
    jobs
        Cells worked on at once, each with its share of the cores.
    """
    from subdp.experiments.cells import run_grid
    from subdp.experiments.tables import markdown, write_report

    given = {"languages": languages, "seeds": seeds, "encoder": encoder, "tatoeba": tatoeba, "jobs": jobs}
    options = ExperimentOptions.resolve(config, {name: value for name, value in given.items() if value is not None})
    settings = Settings.resolve(options.preset, losses, config, {"adapt": adapt or {}, "losses": loss or {}})
    grid = Grid(name, options, settings)
    folder = Path(output)
    results = run_grid(grid, Corpora(Path(data), options.bitext, options.tatoeba), folder, say)
    give(markdown(name, results, grid.splits))
    for path in write_report(name, results, grid.splits, folder, name + _suffix(settings.losses)):
        say(str(path))


def _suffix(losses: LossConfig) -> str:
    """What tells the files of other losses apart: nothing for the default, a name, or a few letters of a hash."""
    names = {LOSSES["default"]: "", LOSSES["paper"]: "-paper"}
    return names.get(losses, f"-{hashlib.sha256(repr(losses).encode()).hexdigest()[:6]}")
