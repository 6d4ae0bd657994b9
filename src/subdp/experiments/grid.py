"""The paper's experiments as grids of cells: a language, a system and a seed give one parser and its scores.

    grid = Grid("ablation", ExperimentOptions(languages=("de", "tr"), seeds=(1, 2, 3)), settings)
    results = run_grid(grid, corpora, Path("out"), say)

Grids and cells are described here and run by `cells.py`. A finished cell is stored under a hash of all it depends on,
so an interrupted grid resumes and grids in one folder share cells. No torch here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal, get_args

from subdp import __version__
from subdp.corpus.bitext import SIZES
from subdp.evaluation.scores import SentenceCounts
from subdp.experiments.corpora import Split
from subdp.experiments.languages import PAPER_LANGUAGES
from subdp.experiments.orders import RULES, OrderRule
from subdp.support.errors import SubdpError
from subdp.support.files import Source, name_of
from subdp.support.settings import LOSSES, EncoderBits, LossConfig, PresetName, Settings, Start
from subdp.support.values import Count, Seed, as_dict, check_fields, converted, read_toml

ExperimentName = Literal["transfer", "ablation", "alignment", "losses", "multisource", "bitext-size", "trees", "order"]
SCORED: tuple[Split, ...] = ("dev", "test")
TREES = (5, 10, 20, 60, 200)
"""The numbers of gold trees of the target language that the experiment `trees` compares."""
Method = Literal[
    "direct", "multilingual", "self", "hard", "random", "subdp", "treebanks", "subdp then treebanks", "trees"
]


@dataclass(frozen=True, slots=True)
class ExperimentOptions:
    """The section `[experiment]` of a configuration file."""

    languages: tuple[str, ...] = tuple(PAPER_LANGUAGES)
    """Target languages: the paper's, and others that sections `[languages.xx]` describe."""
    seeds: tuple[Seed, ...] = (1,)
    """Random seeds: a parser is trained with each."""
    systems: tuple[str, ...] = ()
    """Rows of the table that are wanted, by name; without any, all."""
    preset: PresetName = "small"
    """Network sizes and training lengths."""
    encoder: str | None = None
    """Train a source parser with this encoder for every seed; without one, all seeds use the parser that ships."""
    encoder_bits: EncoderBits = 32
    """Precision of the encoder's matrix products in bits: 32, or 8, faster on processors with AVX-512 VNNI."""
    bitext: tuple[str, ...] = ("ntrex", "pud", "tatoeba")
    """The folders of bitext to learn from; `pud` stands for the parallel treebanks."""
    tatoeba: Count = 1000
    """Maximum number of pairs from Tatoeba, drawn at random."""
    dev_sentences: Count = 500
    """Maximum number of sentences that dev scores are computed on."""
    jobs: Count = 1
    """Cells to work on in parallel, each with its share of the cores."""

    def __post_init__(self) -> None:
        check_fields(self)
        if "en" in self.languages:
            raise SubdpError("English is the source of every experiment, not a target", hint="leave en out")
        if not self.seeds or not self.languages:
            raise SubdpError("an experiment needs a language and a seed")

    @classmethod
    def resolve(cls, file: Source | None, flags: Mapping[str, Any]) -> ExperimentOptions:
        """Options from the section `[experiment]` of a TOML file, if one is given, and from flags, which win."""
        section = {} if file is None else converted(cls, read_toml(file).get("experiment", {}), name_of(file))
        return cls(**section | converted(cls, flags))


@dataclass(frozen=True, slots=True)
class Links:
    """How words are aligned: the settings of `SimilarityAligner` that the experiments vary."""

    method: str = "argmax"
    one_to_one: bool = False
    weights: str = "binary"
    level: str = "subword"


@dataclass(frozen=True, slots=True)
class System:
    """One way to make a parser for the target language: a row of a table."""

    name: str
    method: Method = "subdp"
    losses: LossConfig = LossConfig()  # noqa: RUF009  # frozen
    links: Links = Links()
    pairs: int | None = None
    sources: tuple[str, ...] = ("en",)
    averaged: bool = False
    trees: int = 0
    """Gold trees of the target language, drawn from its dev set, that are trained on as well."""
    order: OrderRule | None = None
    """Instead of a number of trees, those that a rule chooses."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A system in a language with a seed."""

    language: str
    system: System
    seed: int

    @property
    def name(self) -> str:
        """A readable name for the folder of results."""
        return f"{self.language}-{self.system.method}-{self.seed}"

    def facts(self, depends_on: Mapping[str, Any]) -> dict[str, Any]:
        """All that the cell's result depends on.

        Not the system's name: two experiments may call the same system by different names.
        """
        if self.system.method in ("direct", "multilingual"):  # nothing is trained
            return {"parsers": depends_on["parsers"], "gold": depends_on["gold"]}
        system = asdict(self.system)
        del system["name"]
        return {"system": system, **depends_on}


@dataclass(frozen=True, slots=True)
class Result:
    """The scores of one cell: for each split, the counts of every sentence; and how it was made."""

    cell: Cell
    counts: Mapping[Split, Sequence[SentenceCounts]]
    made: Mapping[str, Any]

    def uas(self, split: Split) -> float:
        """Words with the right head, in percent."""
        return self._percent(split, "right_heads")

    def las(self, split: Split) -> float:
        """Words with the right head and label, in percent."""
        return self._percent(split, "right_arcs")

    def upos(self, split: Split) -> float | None:
        """Words with the right UPOS, punctuation included, in percent; None where no tags were predicted."""
        found: float | None = self.made.get("upos", {}).get(split)
        return found

    def __str__(self) -> str:
        scores = []
        for split in self.counts:
            tags = "" if (upos := self.upos(split)) is None else f" UPOS {upos:.1f}"
            scores.append(f"{split} UAS {self.uas(split):.1f} LAS {self.las(split):.1f}{tags}")
        return f"{self.cell.language}  {self.cell.system.name}  seed {self.cell.seed}  {'  '.join(scores)}"

    def _percent(self, split: Split, what: str) -> float:
        counts = self.counts[split]
        right: int = sum(getattr(one, what) for one in counts)
        return 100 * right / max(1, sum(one.words for one in counts))


@dataclass(frozen=True, slots=True)
class Grid:
    """An experiment over the languages and seeds of its options, with its settings."""

    name: ExperimentName
    options: ExperimentOptions
    settings: Settings

    def __post_init__(self) -> None:
        if self.name not in get_args(ExperimentName):
            raise SubdpError(f"there is no experiment {self.name!r}", hint=", ".join(get_args(ExperimentName)))
        known = dict.fromkeys(system.name for language in self.options.languages for system in self.systems(language))
        if unknown := [name for name in self.options.systems if name not in known]:
            hint = ", ".join(map(repr, known))
            raise SubdpError(f"the experiment {self.name} has no row {unknown[0]!r}", hint=hint)

    @property
    def splits(self) -> tuple[Split, ...]:
        """What is scored: the paper's tables are of test sets, its analyses of dev sets."""
        if self.name in ("trees", "order"):
            return ("rest",)
        return SCORED if self.name in ("transfer", "ablation", "multisource") else ("dev",)

    def cells(self) -> list[Cell]:
        """All cells, each once, seed by seed, so that an interrupted grid has the first seed of every language."""
        return [
            Cell(language, system, seed)
            for seed in dict.fromkeys(self.options.seeds)
            for language in dict.fromkeys(self.options.languages)
            for system in self.systems(language)
            if seed == self.options.seeds[0] or system.method not in self._once
            if not self.options.systems or system.name in self.options.systems
        ]

    @property
    def _once(self) -> tuple[Method, ...]:
        """Methods for which one seed is enough; direct transfer too where all seeds share a source parser."""
        once: tuple[Method, ...] = ("multilingual", "self", "random")
        return (*once, "direct") if self.options.encoder is None else once

    def systems(self, language: str) -> list[System]:
        """The systems that the experiment compares."""
        losses = self.settings.losses
        subdp, direct = System("SubDP", losses=losses), System("DT", "direct")
        shipped = self.options.encoder is None  # Only then is there a multilingual parser made from the source parser.
        if self.name == "transfer":
            return [direct, *([System("DT, multilingual", "multilingual")] if shipped else []), subdp]
        if self.name == "ablation":
            # No teacher, nothing known before.
            random = System("RandI", "random", replace(losses, start="source", completion="none", prior_pairs=0.0))
            source = System("SubDP from the source parser", losses=replace(losses, start="source"))
            others = [direct, System("ST", "self"), System("Hard", "hard"), random]
            return [*others, *([source] if shipped and source.losses != losses else []), subdp]
        if self.name == "alignment":
            return [replace(subdp, name=name, links=links) for name, links in _LINKS.items()]
        if self.name == "losses":
            return [direct, *_loss_systems(losses, starts=("source", "multilingual") if shipped else ())]
        if self.name == "trees":
            alone = [System(f"{count} trees", "trees", losses, trees=count) for count in TREES]
            return [
                direct,
                *alone,
                subdp,
                *(replace(subdp, name=f"SubDP, {one.name}", trees=one.trees) for one in alone),
            ]
        if self.name == "order":
            return [subdp, *(replace(subdp, name=rule, order=rule) for rule in RULES)]
        if self.name == "bitext-size":
            return [direct, *(replace(subdp, name=str(size), pairs=size) for size in SIZES)]
        return _multisource_systems(subdp, language)


_LINKS = {
    "argmax": Links(),
    "argmax 1:1": Links(one_to_one=True),
    "itermax": Links("itermax"),
    "match": Links("match"),
    "count": Links(weights="count"),
    "similarity": Links(weights="similarity"),
    "words": Links(level="word"),
}


def _loss_systems(losses: LossConfig, starts: Sequence[Start]) -> list[System]:
    """The default, the paper's, and the default with one setting changed at a time."""
    changes: list[dict[str, Any]] = [
        *({"start": value} for value in starts),
        *({"label_weight": value} for value in ("none", "arc", "best")),
        *({"label_pairs": value} for value in ("all", "aligned")),
        *({"self_loops": value} for value in ("keep", "drop", "renormalise")),
        *({"temperature": value} for value in (0.5, 2.0)),
        {"many_to_one": "mean"},
        {"mixing": 0.0},
        {"own_labels": ()},
        {"tags_by_form": 0.0},
        {"prior_pairs": 0.0},
        *({"completion": value} for value in ("none", "source", "auto")),
    ]
    systems = {losses: System("default", losses=losses), LOSSES["paper"]: System("paper", losses=LOSSES["paper"])}
    for change in changes:
        ((name, value),) = change.items()
        changed = replace(losses, **change)
        systems.setdefault(changed, System(f"{name} {value}", losses=changed))
    return list(systems.values())


def _multisource_systems(subdp: System, language: str) -> list[System]:
    """English alone, each near language alone, and all of them together; a language is never its own source.

    Two continue on the sources' treebanks: `DT all` from the English parser, the last from the one SubDP made.
    """
    sources = ("en", *(other for other in ("es", "fr") if other != language))
    alone = [(source,) for source in sources]
    return [
        *(System(f"DT {chosen[0]}", "direct", sources=chosen) for chosen in alone),
        *(replace(subdp, name=f"SubDP {chosen[0]}", sources=chosen) for chosen in alone),
        System("DT all", "treebanks", sources=sources),
        replace(subdp, name="SubDP all", sources=sources),
        replace(subdp, name="SubDP all, averaged", sources=sources, averaged=True),
        replace(subdp, name="DT all, SubDP init.", method="subdp then treebanks", sources=sources),
    ]


def read_result(path: Path, cell: Cell) -> Result | None:
    """The result in a cell's file, or None if it is missing or damaged."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        counts = {split: [SentenceCounts(*one) for one in rows] for split, rows in found.pop("counts").items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return Result(cell, counts, found)


def as_json(result: Result) -> dict[str, Any]:
    """A result as stored in its file."""
    named = {"language": result.cell.language, "seed": result.cell.seed, "system": asdict(result.cell.system)}
    scores = {split: {"uas": result.uas(split), "las": result.las(split)} for split in result.counts}
    counts = {split: [list(one) for one in rows] for split, rows in result.counts.items()}
    return {**named, "scores": scores, **result.made, "counts": counts}


def adapt_settings(settings: Settings, system: System) -> Settings:
    """The settings of a system's training. From random weights: twice the epochs, at the source's learning rate."""
    if system.method != "random":
        return replace(settings, losses=system.losses)
    longer = replace(settings.adapt, lr=settings.train.lr, epochs=2 * settings.adapt.epochs)
    return replace(settings, losses=system.losses, adapt=longer)


def depends_on(
    grid: Grid, parsers: Sequence[str], bitext: Sequence[str], gold: str, treebanks: Sequence[str]
) -> dict[str, Any]:
    """What a cell's result depends on besides the cell: parsers and data by fingerprint, the training, this package."""
    training = {"adapt": as_dict(grid.settings.adapt), "train": as_dict(grid.settings.train)}
    data = {"parsers": list(parsers), "bitext": list(bitext), "gold": gold, "treebanks": list(treebanks)}
    return {**data, **training, "subdp": __version__}
