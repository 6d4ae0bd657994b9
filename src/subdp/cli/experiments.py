"""The verb `experiment`. Torch is imported when cells are to be worked on."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from subdp.cli.app import Output, give, say
from subdp.cli.flags import AdaptChanges, Bits, Device, LossChanges, LossesFlag, TuneChanges
from subdp.experiments.corpora import Corpora
from subdp.experiments.grid import ExperimentName, ExperimentOptions, Grid
from subdp.experiments.languages import read_languages
from subdp.support.settings import LOSSES, LossConfig, Settings


def experiment(
    name: ExperimentName,
    *,
    data: str,
    output: Output,
    languages: Annotated[list[str] | None, Parameter(consume_multiple=True, negative="")] = None,
    seeds: Annotated[list[int] | None, Parameter(consume_multiple=True, negative="")] = None,
    systems: Annotated[list[str] | None, Parameter(consume_multiple=True, negative="")] = None,
    encoder: str | None = None,
    encoder_bits: Bits | None = None,
    losses: LossesFlag = "default",
    config: str | None = None,
    adapt: AdaptChanges = None,
    tune: TuneChanges = None,
    loss: LossChanges = None,
    tatoeba: int | None = None,
    jobs: int | None = None,
    device: Device = None,
) -> None:
    """Run an experiment: one of the paper's, or one on gold trees of the target language (trees, order).

    Writes tables (Markdown, LaTeX, CSV) and a figure to the output folder. An interrupted experiment is resumed by the
    same command; experiments in one folder share what they have in common.

    Parameters
    ----------
    name
        The paper's transfer, ablation, alignment, losses, multisource and bitext-size; trees: what gold trees add;
        order: which drafts to correct first.
    data
        Folder with ud/ and bitext/.
    output
        Folder to write all results to.
    languages
        Target languages, such as --languages de tr; by default those of the configuration file, or the paper's eight. A
        section [languages.xx] of that file describes any other.
    seeds
        Random seeds, such as --seeds 1 2 3; by default those of the configuration file, or 1.
    systems
        Rows of the table to compute, such as --systems DT SubDP; by default all.
    encoder
        Train source parsers with this encoder, instead of using the parser that comes with subdp.
    config
        TOML file with a section [experiment] and settings; see configs/.
    tatoeba
        Maximum number of pairs from Tatoeba; by default what the configuration file says, or 1,000. To use none, leave
        tatoeba out of the configuration's `bitext`.
    jobs
        Cells to work on in parallel, each with its share of the cores.
    """
    from subdp.experiments.cells import run_grid
    from subdp.experiments.tables import markdown, write_report

    given = {
        "languages": languages,
        "seeds": seeds,
        "systems": systems,
        "encoder": encoder,
        "encoder_bits": encoder_bits,
        "tatoeba": tatoeba,
        "jobs": jobs,
    }
    options = ExperimentOptions.resolve(config, {name: value for name, value in given.items() if value is not None})
    changes = {"adapt": adapt or {}, "tune": tune or {}, "losses": loss or {}}
    settings = Settings.resolve(options.preset, losses, config, changes)
    grid = Grid(name, options, settings)
    folder = Path(output)
    corpora = Corpora(Path(data), options.bitext, options.tatoeba, read_languages(config))
    results = run_grid(grid, corpora, folder, say, device=device)
    give(markdown(name, results, grid.splits))
    bits = "" if options.encoder_bits == 32 else f"-{options.encoder_bits}bits"
    for path in write_report(name, results, grid.splits, folder, name + _suffix(settings.losses) + bits):
        say(str(path))


def _suffix(losses: LossConfig) -> str:
    """What tells the files of other losses apart: nothing for the default, a name, or a few letters of a hash."""
    names = {LOSSES["default"]: "", LOSSES["paper"]: "-paper"}
    return names.get(losses, f"-{hashlib.sha256(repr(losses).encode()).hexdigest()[:6]}")
