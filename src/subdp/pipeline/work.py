"""What the stages of `subdp run` do. Each method resumes from what it finds and returns a short account of the result.

`run` and `quickstart` call this. Imports torch.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from subdp.alignment.registry import find_aligner
from subdp.corpus.bitext import Bitext, pair_as_line, pair_of_line, read_bitext
from subdp.corpus.bitext_report import Report
from subdp.corpus.bitext_rows import NoTabError
from subdp.corpus.corrected import read_trees
from subdp.corpus.treebank import read_conllu
from subdp.encoder.encoder import Encoder
from subdp.evaluation.scores import Scores
from subdp.parser import Parser
from subdp.pipeline.checks import WARNINGS, Caution, pair_cautions, score_cautions, size_cautions, text_cautions
from subdp.pipeline.options import RunOptions
from subdp.pipeline.stages import TRAINING, stage_name
from subdp.projection.quality import Summary, measure
from subdp.projection.silver import SilverStore
from subdp.projection.silver_views import JoinedSilver
from subdp.projection.substructures import new_values
from subdp.support.engine import Engine
from subdp.support.errors import SubdpError, counted
from subdp.support.files import open_output, open_text_output, write_json
from subdp.support.on_disk import Lines
from subdp.support.settings import Settings
from subdp.training.loop import METRICS


class Work:
    """The work of one run, with the parsers that its stages share."""

    def __init__(
        self, options: RunOptions, settings: Settings, output: Path, engine: Engine, device: str | None = None
    ):
        self.options, self.settings, self.output, self.engine = options, settings, output, engine
        self.device = device
        self._parsers: dict[Path, Parser] = {}

    def train_source(self, folder: Path) -> str:
        """Train the source parser on a treebank."""
        treebank = str(self.options.treebank)
        parser = Parser.train(
            read_conllu(treebank),
            encoder=Encoder.load(self.options.encoder or "bundled", self.device, bits=self.options.encoder_bits),
            settings=self.settings,
            seed=self.options.seed,
            folder=_training(folder),
            about={"title": f"A parser trained on {Path(treebank).name}", "treebank": Path(treebank).name},
        )
        target = self.output / "source-parser"
        self._save(parser, target, _training(folder))
        # As later stages find it when they are resumed, but for the encoder, which takes a second to load.
        self._parsers[target] = Parser.load(target, encoder=parser.encoder)
        sentences, epochs = parser.about["trained_on"]["sentences"], parser.about["epochs"]
        return f"{counted(sentences, 'sentence')}, {counted(epochs, 'epoch')}"

    def clean(self, folder: Path, number: int) -> str:
        """Read a bitext and keep what the filters let through."""
        read = self._read(number)
        bitext, cautions = read.clean(), text_cautions(read)
        report = bitext.report
        dropped = ", ".join(f"{count:,} {reason}" for reason, count in report.dropped.items())
        said = f"{counted(report.read, 'pair')} read, {report.kept:,} kept"
        said += f"; left out: {dropped}" if dropped else ""
        if not bitext:
            hint = "a line is a sentence and its translation; a copy is a translation that repeats its source"
            raise SubdpError(f"no pair can be used: {said}", where=bitext.where, hint=hint)
        with open_output(folder / "pairs.jsonl") as output:
            output.writelines(pair_as_line(pair) + b"\n" for pair in bitext)
        facts = {"tokenizer": bitext.tokenizer, WARNINGS: [asdict(caution) for caution in cautions]}
        write_json(folder / "report.json", {**report.as_dict(), **facts})
        said += "" if bitext.tokenizer is None else f"; target words by the tokenizer {bitext.tokenizer}"
        return "\n".join([*map(str, cautions), said])

    def encode(self, number: int) -> str:
        """Fill the cache with the encoder's vectors of both sides; where there are gold trees, of the target alone."""
        bitext = self.bitext(number)
        gold = self.options.gold_trees_of(number) is not None
        new = 0 if gold else self.parser(number).vectors.remember((pair.source for pair in bitext), self.engine)
        new += self.parser(0).vectors.remember((pair.target for pair in bitext), self.engine)
        return f"{counted(sum(bitext.words[gold:]), 'word')}, {counted(new, 'sentence')} new to the cache"

    def project(self, folder: Path, number: int) -> str:
        """Parse and align a bitext; where there are gold trees, only align it."""
        parser, bitext = self.parser(number), self.bitext(number)
        aligner = find_aligner(
            self.options.aligner, parser.encoder, store=parser.features, one_to_one=self.options.one_to_one
        )
        gold = self.options.gold_trees_of(number)
        trees = None if gold is None else read_conllu(gold, any_roots=True)
        silver = parser.project(bitext, aligner=aligner, trees=trees, folder=folder / "silver", engine=self.engine)
        return counted(len(silver), "pair")

    def report(self) -> str:
        """Write what the filters left out and how well projection went: for all bitexts together, and for each."""
        filters, every, each = Report(0), Summary(), list[dict[str, Any]]()
        before, cautions = list[dict[str, Any]](), list[Caution]()
        for number, name in enumerate(self.options.bitext):
            report = self._report(number)
            own = measure(self.silver(number), self.settings.losses.many_to_one, self.engine)
            every.join(own)
            before += self._cleaned(number).get(WARNINGS, [])
            cautions += pair_cautions(self.parser(number), self.silver(number), name)
            filters = filters + report
            each.append({"bitext": name, "filters": report.as_dict(), "projection": own.as_dict()})
        found = every.as_dict()
        cautions += size_cautions(found)
        scores = self.output / "scores.json"  # of the parser that is there, if only the report was lost
        after = score_cautions(_read_json(scores)) if scores.exists() else []
        whole = {
            WARNINGS: [*before, *map(asdict, [*cautions, *after])],
            "filters": filters.as_dict(),
            "projection": found,
        }
        write_json(self.output / "report.json", {**whole, "bitexts": each})
        said = (
            f"{found['linked']:.0%} of the words have a link; {found['coverage']:.0%} of the mass is kept,"
            f" {found['self_loop_mass']:.0%} on self-loops"
        )
        return "\n".join([*map(str, cautions), said])

    def adapt(self, folder: Path) -> str:
        """Train the target parser."""
        silvers = [self.silver(number) for number in range(len(self.options.bitext))]
        silver = silvers[0] if len(silvers) == 1 else JoinedSilver(silvers)
        names = ", ".join(map(self.options.title, range(len(silvers))))
        source, language = self.parser(0), self.options.language
        parser = source.with_values(silver.inventory).adapt(
            silver,
            settings=self.settings,
            seed=self.options.seed,
            folder=_training(folder),
            about={"title": f"A parser made from {names}", **({"language": language} if language else {})},
        )
        self._save(parser, folder / "parser", _training(folder))
        began = parser.about["adapted_from"]
        said = f"{counted(parser.about['epochs'], 'epoch')}, epoch {parser.about['best_epoch']} is kept"
        return said if began == source.about else f"{said}; it started from {began['title']}"

    def finish(self, folder: Path) -> str:
        """Write the target parser to parser/: as it is, or trained further on trees of its language."""
        place, trees = self._stage("adapt", 0) / "parser", read_trees(self.options.trees)
        parser, said = Parser.load(place, encoder=self.parser(0).encoder), list[str]()
        if trees:
            start, place = parser, _training(folder)
            about = {name: start.about[name] for name in ("title", "language") if name in start.about}
            options: Any = {"settings": self.settings, "seed": self.options.seed, "folder": place, "about": about}
            parser = start.adapt_to_trees(trees, **options)
            said = [*new_values(start.inventory, parser.inventory), f"{counted(len(trees), 'tree')} learnt from"]
        (self.output / "scores.json").unlink(missing_ok=True)  # of the parser that is replaced now
        self._save(parser, self.output / "parser", place)
        return "\n".join([*said, f"in {self.output / 'parser'}"])

    def evaluate(self) -> str:
        """Score the target parser, and the source parser as it is, on the gold sets."""
        source = self.parser(0)
        systems = {"direct": source, "subdp": Parser.load(self.output / "parser", encoder=source.encoder)}
        found: dict[str, Any] = {}
        for name, path in self.options.gold.items():
            gold = list(read_conllu(path))
            scores = {system: as_values(parser.evaluate(gold)) for system, parser in systems.items()}
            found |= scores if name == "test" else {name: scores}
        write_json(self.output / "scores.json", found)
        own = (found if self.options.test is not None else found["dev"])["subdp"]
        tags = f", UPOS {own['upos']:.1f}" if "upos" in own else ""
        said = f"UAS {own['uas']:.1f}, LAS {own['las']:.1f}{tags}, with the encoder {source.encoder.name}"
        cautions = score_cautions(found)
        report = _read_json(self.output / "report.json")
        others = [caution for caution in report.get(WARNINGS, []) if caution["kind"] != "direct"]
        write_json(self.output / "report.json", {**report, WARNINGS: [*others, *map(asdict, cautions)]})
        return "\n".join([*map(str, cautions), said])

    def bitext(self, number: int) -> Bitext:
        """The pairs that were kept, with the report of those that were not."""
        pairs = Lines.read(self._stage("clean", number) / "pairs.jsonl", pair_of_line)
        tokenizer = self._cleaned(number).get("tokenizer")
        return Bitext(pairs, self.options.bitext[number], self._report(number), tokenizer)

    def silver(self, number: int) -> SilverStore:
        """What was projected from a bitext."""
        return SilverStore(self._stage("project", number) / "silver")

    def parser(self, number: int) -> Parser:
        """The source parser of a bitext, loaded once; parsers with the same encoder share it."""
        folder = self.options.parser_folder(number, self.output)
        if folder not in self._parsers:
            bits = self.options.encoder_bits
            parser = Parser.load(folder, encoder=self.options.encoder, device=self.device, bits=bits)
            for other in self._parsers.values():
                if other.encoder.fingerprint == parser.encoder.fingerprint:
                    parser = replace(parser, encoder=other.encoder)
            self._parsers[folder] = parser
        return self._parsers[folder]

    def _stage(self, name: str, number: int) -> Path:
        """The folder of a bitext's stage."""
        return self.output / "stages" / stage_name(name, number)

    def _cleaned(self, number: int) -> dict[str, Any]:
        """What was found when a bitext was cleaned."""
        return _read_json(self._stage("clean", number) / "report.json")

    def _report(self, number: int) -> Report:
        """How many pairs of a bitext were kept and left out."""
        found = self._cleaned(number)
        return Report(found["read"], found["dropped"], found["changed"])

    def _read(self, number: int) -> Bitext:
        source, target = self.options.files(number)
        options: Any = {name: getattr(self.options, name) for name in ("tokenized", "tokenizer", "source_tokenizer")}
        try:
            return read_bitext(source, target, **options)
        except NoTabError as error:
            if len(self.options.bitext) == 1:
                raise
            hint = "join two files that belong together by a comma: --bitext en.txt,de.txt"
            raise SubdpError(error.reason, where=error.where, line=error.line, hint=hint) from None

    def _save(self, parser: Parser, target: Path, training: Path) -> None:
        """Save a parser with its settings and the metrics of its training."""
        parser.save(target)
        with open_text_output(target / "config.toml") as write:
            write(self.settings.as_toml())
        shutil.copy(training / METRICS, target / METRICS)


def as_values(scores: Scores) -> dict[str, Any]:
    """What `scores.json` says of a parser on a gold set."""
    layers = {name: found.accuracy for name, found in scores.layers.items() if name != "upos"}
    return {
        "uas": scores.uas,
        "las": scores.las,
        **({} if scores.upos is None else {"upos": scores.upos}),
        **({"layers": layers} if layers else {}),
        "label_accuracy": scores.label_accuracy,
        "words": scores.words,
        "sentences": scores.sentences,
    }


def _read_json(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def _training(folder: Path) -> Path:
    """Where a stage keeps its checkpoints."""
    path = folder / TRAINING
    path.mkdir(exist_ok=True)
    return path
