"""The results of an experiment as Markdown, LaTeX, CSV and a figure.

A table has a row for each system and a column for each language, one for each metric, mean ± standard
deviation over seeds. matplotlib (the extra `plot`) is imported only to draw. Imports no torch.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from subdp.evaluation.attachment import compare_counts, spread
from subdp.evaluation.scores import Comparison, SentenceCounts, Spread
from subdp.experiments.corpora import Split
from subdp.experiments.grid import TREES, ExperimentName, Result
from subdp.support.files import open_output, open_text_output
from subdp.support.settings import LossConfig

PAPER = {
    "ar": (63.8, 41.3), "hi": (58.3, 38.9), "ko": (54.3, 31.2), "tr": (56.9, 33.5),
    "de": (82.8, 71.7), "es": (83.9, 70.4), "fr": (84.8, 71.0), "it": (88.2, 75.0),
}  # fmt: skip
"""UAS and LAS of the paper's SubDP on the test sets of UD 2.2, with XLM-R and CRISS, five seeds."""
_PAPER_NAME = "SubDP of the paper (XLM-R, CRISS)"
_PAPER_NOTE = "The paper's Arabic and Hindi are PADT and HDTB; where those are missing, ours are one half of PUD."
_METRICS = ("UAS", "LAS", "UPOS")


@dataclass(frozen=True, slots=True)
class Table:
    """Scores by metric, system and language, in the order of the experiment."""

    split: Split
    languages: tuple[str, ...]
    systems: tuple[str, ...]
    scores: dict[tuple[str, str, str], Spread]

    @classmethod
    def of(cls, results: Sequence[Result], split: Split) -> Table:
        """The mean and spread over seeds of every system in every language."""
        values: dict[tuple[str, str, str], list[float]] = {}
        for result in results:
            for metric, value in zip(_METRICS, (result.uas(split), result.las(split), result.upos(split)), strict=True):
                if value is not None:
                    values.setdefault((metric, result.cell.system.name, result.cell.language), []).append(value)
        languages = tuple(dict.fromkeys(result.cell.language for result in results))
        systems = tuple(dict.fromkeys(result.cell.system.name for result in results))
        return cls(split, languages, systems, {key: spread(found) for key, found in values.items()})

    @property
    def metrics(self) -> list[str]:
        """Those that any system has a score in: UPOS only where tags are predicted."""
        return [metric for metric in _METRICS if any(key[0] == metric for key in self.scores)]

    def mean(self, metric: str, system: str) -> float | None:
        """The mean over all languages, if the system has a score in each."""
        found = [self.scores.get((metric, system, language)) for language in self.languages]
        known = [score.mean for score in found if score is not None]
        return fmean(known) if len(known) == len(self.languages) else None

    def rows(self, metric: str) -> list[list[str]]:
        """A row for each system: its name, a score for each language, the mean."""
        rows = []
        for system in self.systems:
            scores = [self.scores.get((metric, system, language)) for language in self.languages]
            mean = self.mean(metric, system)
            cells = ["" if score is None else str(score) for score in scores]
            rows.append([system, *cells, "" if mean is None else f"{mean:.1f}"])
        return rows


def gains(results: Sequence[Result], split: Split) -> list[tuple[str, str, Comparison]]:
    """What SubDP gains over direct transfer and hard projection, by language: paired bootstrap, all seeds pooled."""
    found: list[tuple[str, str, Comparison]] = []
    for language in dict.fromkeys(result.cell.language for result in results):
        runs: dict[str, list[Sequence[SentenceCounts]]] = {}
        for result in results:
            if result.cell.language == language:
                runs.setdefault(result.cell.system.name, []).append(result.counts[split])
        for other in ("DT", "Hard"):
            if other in runs and "SubDP" in runs:
                first, second = _pooled(runs[other], len(runs["SubDP"])), _pooled(runs["SubDP"], len(runs[other]))
                found.append((language, other, compare_counts(first, second)))
    return found


def _pooled(runs: Sequence[Sequence[SentenceCounts]], times: int) -> list[SentenceCounts]:
    """The sums over runs by sentence, multiplied by `times` so that systems with fewer runs have as many words."""
    pooled = []
    for sentences in zip(*runs, strict=True):
        words, heads, arcs = (
            times * sum(getattr(one, name) for one in sentences) for name in ("words", "right_heads", "right_arcs")
        )
        pooled.append(SentenceCounts(sentences[0].length, words, heads, arcs, None))
    return pooled


def markdown(name: ExperimentName, results: Sequence[Result], splits: Sequence[Split]) -> str:
    """All tables of an experiment as Markdown."""
    parts = [f"# {name}\n\n{_about(results)}"]
    for split in splits:
        table = Table.of(results, split)
        for metric in table.metrics:
            rows = [*table.rows(metric), *_paper_rows(name, split, metric, table.languages)]
            lines = [["", *table.languages, "mean"], ["---"] * (len(table.languages) + 2), *rows]
            parts.append("\n".join([f"## {metric}, {split}\n", *(f"| {' | '.join(line)} |" for line in lines)]))
        if _paper_rows(name, split, "LAS", table.languages):
            parts.append(_PAPER_NOTE)
        if compared := gains(results, split):
            lines = [["", "SubDP over", "UAS", "LAS"], ["---"] * 4]
            lines += [[language, other, str(found.uas), str(found.las)] for language, other, found in compared]
            title = f"## What SubDP gains, {split} (paired bootstrap over sentences, not over seeds; 95 % interval)\n"
            parts.append("\n".join([title, *(f"| {' | '.join(line)} |" for line in lines)]))
    return "\n\n".join(parts) + "\n"


def latex(name: ExperimentName, results: Sequence[Result], splits: Sequence[Split]) -> str:
    """All tables of an experiment as LaTeX, for the package booktabs."""
    parts = [f"% {name}. {_about(results)}"]
    for split in splits:
        table = Table.of(results, split)
        columns = len(table.languages) + 1
        for metric in table.metrics:
            rows = [*table.rows(metric), *_paper_rows(name, split, metric, table.languages)]
            head = " & ".join([f"{metric} ({split})", *table.languages, "mean"])
            body = [
                " & ".join(cell.replace("±", r"$\pm$").replace("_", r"\_") for cell in row) + r" \\" for row in rows
            ]
            begin, end = rf"\begin{{tabular}}{{l{'r' * columns}}}", r"\end{tabular}"
            parts.append("\n".join([begin, r"\toprule", head + r" \\", r"\midrule", *body, r"\bottomrule", end]))
    return "\n\n".join(parts) + "\n"


def table_csv(results: Sequence[Result]) -> str:
    """A line for each cell and split."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["language", "system", "seed", "split", "uas", "las", "upos", "epochs", "seconds", "encoder"])
    for result in results:
        cell, made = result.cell, result.made
        for split in result.counts:
            upos = result.upos(split)
            scores = [f"{result.uas(split):.3f}", f"{result.las(split):.3f}", "" if upos is None else f"{upos:.3f}"]
            how = [made.get("epochs"), round(made.get("seconds", 0)), made.get("encoder")]
            writer.writerow([cell.language, cell.system.name, cell.seed, split, *scores, *how])
    return text.getvalue()


def _paper_rows(name: ExperimentName, split: Split, metric: str, languages: Sequence[str]) -> list[list[str]]:
    known = [language for language in languages if language in PAPER]
    if name != "transfer" or split != "test" or metric == "UPOS" or not known:
        return []
    values = {language: PAPER[language][_METRICS.index(metric)] for language in known}
    mean = f"{fmean(values.values()):.1f}" if len(known) == len(languages) else ""
    return [[_PAPER_NAME, *(f"{values[one]:.1f}" if one in values else "" for one in languages), mean]]


def _about(results: Sequence[Result]) -> str:
    """What belongs with every number: the encoder, the seeds, and losses other than the default."""
    encoders = ", ".join(sorted({str(result.made.get("encoder")) for result in results}))
    seeds = ", ".join(str(seed) for seed in sorted({result.cell.seed for result in results}))
    note = " (multilingual-e5-small in 4 bits, not the paper's XLM-R)" if "bundled" in encoders else ""
    losses = {result.cell.system.losses for result in results if result.cell.system.method == "subdp"}
    changes = asdict(losses.pop()).items() - asdict(LossConfig()).items() if len(losses) == 1 else set()
    changed = "".join(f" {name} = {value}." for name, value in sorted(changes))
    return f"Encoder: {encoders}{note}. Seeds: {seeds}.{changed}"


def write_report(
    name: ExperimentName, results: Sequence[Result], splits: Sequence[Split], folder: Path, stem: str
) -> list[Path]:
    """Write all four as `stem` with their extensions; return the files. Without matplotlib there is no figure."""
    texts = {"md": markdown(name, results, splits), "tex": latex(name, results, splits), "csv": table_csv(results)}
    written = []
    for ending, text in texts.items():
        written.append(folder / f"{stem}.{ending}")
        with open_text_output(written[-1]) as write:
            write(text)
    with suppress(ModuleNotFoundError):
        picture = draw(name, Table.of(results, splits[-1]), _about(results))
        written.append(folder / f"{stem}.png")
        with open_output(written[-1]) as output:
            output.write(picture)
    return written


def draw(name: ExperimentName, table: Table, about: str) -> bytes:
    """A PNG: curves over the number of pairs or trees for `bitext-size` and `trees`, bars by language for all else."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 3.5 * len(table.metrics)), layout="constrained")
    figure.suptitle(about, fontsize=9)
    for axes, metric in zip(figure.subplots(len(table.metrics), 1), table.metrics, strict=True):
        axes.set_ylabel(f"{metric}, {table.split}")
        axes.grid(axis="y", alpha=0.3)
        if name == "bitext-size":
            sizes = {int(system): system for system in table.systems if system.isdecimal()}
            _curves(axes, table, metric, sizes, dotted=dict.fromkeys(sizes, "DT"))
            axes.set_xlabel("sentence pairs (dotted: direct transfer)")
        elif name == "trees":
            _curves(
                axes,
                table,
                metric,
                {0: "SubDP"} | {count: f"SubDP, {count} trees" for count in TREES},
                dotted={0: "DT"} | {count: f"{count} trees" for count in TREES},
            )
            axes.set_xlabel("gold trees (dotted: without SubDP)")
        else:
            _bars(axes, table, metric)
    figure.axes[0].legend(loc="upper left", bbox_to_anchor=(1, 1))
    stream = io.BytesIO()
    figure.savefig(stream, format="png", dpi=150)
    return stream.getvalue()


def _bars(axes: Any, table: Table, metric: str) -> None:
    width = 0.8 / len(table.systems)
    for number, system in enumerate(table.systems):
        found = [table.scores.get((metric, system, language)) for language in table.languages]
        places = [index + (number - (len(table.systems) - 1) / 2) * width for index in range(len(found))]
        heights = [0.0 if score is None else score.mean for score in found]
        errors = [0.0 if score is None or score.std is None else score.std for score in found]
        hatch = "///" * (number // 10)  # There are ten colours.
        axes.bar(places, heights, width, yerr=errors, label=system, hatch=hatch, error_kw={"lw": 0.8})
    axes.set_xticks(range(len(table.languages)), table.languages)
    axes.set_ylim(bottom=0)


def _curves(axes: Any, table: Table, metric: str, systems: dict[int, str], dotted: dict[int, str]) -> None:
    """A line for each language over the sizes, with a band of one standard deviation, and its dotted line."""
    places = list(range(len(systems)))
    for number, language in enumerate(table.languages):
        found = [table.scores.get((metric, system, language)) for system in systems.values()]
        known = [(place, score) for place, score in zip(places, found, strict=True) if score is not None]
        at, means = [place for place, _ in known], [score.mean for _, score in known]
        spreads = [score.std or 0.0 for _, score in known]
        low = [mean - std for mean, std in zip(means, spreads, strict=True)]
        high = [mean + std for mean, std in zip(means, spreads, strict=True)]
        axes.plot(at, means, marker="os^"[number // 10 % 3], color=f"C{number}", label=language)  # Ten colours.
        axes.fill_between(at, low, high, color=f"C{number}", alpha=0.2)
        others = [table.scores.get((metric, system, language)) for system in dotted.values()]
        heights = [float("nan") if score is None else score.mean for score in others]
        axes.plot(places, heights, color=f"C{number}", ls=":", lw=1)
    axes.set_xticks(places, [f"{size:,}" for size in systems])
