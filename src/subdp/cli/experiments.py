"""The verb `experiment`. Torch is imported when cells are to be worked on."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Annotated, Any, get_type_hints

from cyclopts import Parameter

from subdp.cli.app import Output, app, give, say
from subdp.cli.steps import Changes
from subdp.experiments.corpora import LANGUAGES, Corpora
from subdp.experiments.grid import ExperimentName, ExperimentOptions, Grid
from subdp.support.errors import SubdpError
from subdp.support.settings import LOSSES, PRESETS, LossConfig, LossesName, Settings, read_toml


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

    section = _section(config)
    chosen_seeds, chosen_languages = seeds or section.pop("seeds"), languages or section.pop("languages")
    given = {"encoder": encoder, "tatoeba": tatoeba, "jobs": jobs}
    options = _options(section | {key: value for key, value in given.items() if value is not None}, config)
    settings = Settings.resolve(options.preset, losses, config, {"adapt": adapt or {}, "losses": loss or {}})
    grid = Grid(name, tuple(chosen_languages), tuple(chosen_seeds), options, settings)
    folder = Path(output)
    results = run_grid(grid, Corpora(Path(data), options.bitext, options.tatoeba), folder, say)
    give(markdown(name, results, grid.splits))
    for path in write_report(name, results, grid.splits, folder, name + _suffix(settings.losses)):
        say(str(path))


def _suffix(losses: LossConfig) -> str:
    """What tells the files of other losses apart: nothing for the default, a name, or a few letters of a hash."""
    names = {LOSSES["default"]: "", LOSSES["paper"]: "-paper"}
    return names.get(losses, f"-{hashlib.sha256(repr(losses).encode()).hexdigest()[:6]}")


def _section(config: str | None) -> dict[str, Any]:
    """The section [experiment] of a file, with seeds and languages, checked, in any case."""
    section: dict[str, Any] = {"seeds": [1], "languages": list(LANGUAGES)}
    if config is not None:
        section |= read_toml(config).get("experiment", {})
    for name, kind in (("seeds", int), ("languages", str)):
        if not isinstance(section[name], list) or not all(type(item) is kind for item in section[name]):
            raise SubdpError(f"{name} cannot be {section[name]!r}", where=config, hint="give a list, as in configs/")
    return section


def _options(section: dict[str, Any], config: str | None) -> ExperimentOptions:
    kinds = get_type_hints(ExperimentOptions)
    values = {name: value for name, value in section.items() if name not in ("seeds", "languages")}
    for name, value in values.items():
        if name not in kinds:
            hint = f"there are {', '.join(kinds)}, seeds, languages"
            raise SubdpError(f"there is no setting {name!r} in [experiment]", where=config, hint=hint)
        fits = {
            "preset": value in PRESETS if isinstance(value, str) else False,
            "encoder": isinstance(value, str),
            "bitext": isinstance(value, list) and all(isinstance(item, str) for item in value),
        }.get(name, type(value) is int and value > 0)
        if not fits:
            raise SubdpError(f"{name} cannot be {value!r}", where=config, hint="numbers are above 0; see configs/")
    return ExperimentOptions(**{**values, **({"bitext": tuple(values["bitext"])} if "bitext" in values else {})})
