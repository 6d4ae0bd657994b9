"""Running an experiment: first what its cells share (source parsers, alignments, silver), then cell by cell.

What they share is made with all cores; cells run several at once if asked. Imports torch.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from functools import cache, cached_property
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from subdp.alignment.file_links import FileAligner
from subdp.alignment.links import Alignment, read_alignments, write_alignments
from subdp.alignment.similarity import SimilarityAligner
from subdp.corpus.treebank import Sentence, trees_hash
from subdp.encoder.encoder import Encoder
from subdp.encoder.feature_store import FeatureStore
from subdp.experiments.corpora import Corpora, Split
from subdp.experiments.grid import SCORED, Cell, Grid, Links, Result, adapt_settings, as_json, depends_on, read_result
from subdp.experiments.orders import first_to_correct
from subdp.network.hub import MULTILINGUAL, SHIPPED
from subdp.parser import Parser
from subdp.pipeline.annotate import doubt
from subdp.pipeline.baselines import as_silver, hard_trees, own_trees
from subdp.pipeline.stages import TRAINING, Stage, ensure
from subdp.projection.silver import Silver, SilverStore
from subdp.projection.silver_views import AveragedSilver, JoinedSilver, SilverPart
from subdp.support.engine import LocalEngine
from subdp.support.errors import counted
from subdp.support.files import file_hash, write_json
from subdp.support.progress import progress
from subdp.support.values import as_dict

Say = Callable[[str], None]
RESULT, LINKS, DOUBTS = "result.json", "links.txt", "doubts.json"


def run_grid(grid: Grid, corpora: Corpora, output: Path, say: Say, *, device: str | None = None) -> list[Result]:
    """Run all cells of a grid that are not done, and return the results of all.

    Seed by seed, so that an interrupted grid has all languages of the first seeds.
    """
    bench = Bench(grid, corpora, output, device)
    sources = dict.fromkeys(source for cell in grid.cells() for source in cell.system.sources)
    for note in corpora.survey(grid.options.languages, sources):
        say(note)
    found: list[Result] = []
    for _, cells in groupby(grid.cells(), lambda cell: cell.seed):
        found += _run_seed(bench, list(cells), say)
    return found


def _run_seed(bench: Bench, cells: Sequence[Cell], say: Say) -> list[Result]:
    possible = [cell for cell in cells if bench.possible(cell)]
    missing = [cell for cell in possible if bench.result(cell) is None]
    say(f"seed {cells[0].seed}: {counted(len(possible), 'cell')}, {len(possible) - len(missing)} already done")
    for cell in missing:
        bench.prepare(cell)
    engine = LocalEngine(max(1, min(bench.grid.options.jobs, len(missing))))
    with progress(f"experiment {bench.grid.name}", len(missing), "cells") as advance:
        for result in engine.map(bench.work, missing):
            advance(1)
            say(f"{result}  ({result.made['seconds']:.0f} s)")
    found = [bench.result(cell) for cell in possible]
    return [result for result in found if result is not None]


class Bench:
    """All that the cells of a grid are made from; each thing is a stage, made once and kept in the output folder."""

    def __init__(self, grid: Grid, corpora: Corpora, output: Path, device: str | None = None):
        self.grid, self.corpora, self.output, self.device = grid, corpora, output, device
        self.parser, self.bitext, self.gold = cache(self._parser), cache(corpora.bitext), cache(self._gold)
        self.silver, self.links, self._treebank = cache(self._silver), cache(self._links), cache(self._read_treebank)

    def __reduce__(self) -> Any:
        return Bench, (self.grid, self.corpora, self.output, self.device)

    @cached_property
    def encoder(self) -> Encoder:
        """One encoder for all parsers and for alignment."""
        name, bits = self.grid.options.encoder, self.grid.options.encoder_bits
        return self.parser("en", 1).encoder if name is None else Encoder.load(name, self.device, bits=bits)

    @cached_property
    def store(self) -> FeatureStore:
        """One store of features for all parsers and for alignment."""
        if self.grid.options.encoder is None:
            return self.parser("en", 1).features
        return FeatureStore(self.encoder, self.grid.settings.network.layers)

    def possible(self, cell: Cell) -> bool:
        """Whether there are enough pairs and trees."""
        enough = cell.system.pairs is None or cell.system.pairs <= len(self.bitext(cell.language, "en"))
        return enough and cell.system.trees <= len(self.gold(cell.language, "pool") if cell.system.trees else [])

    def result(self, cell: Cell) -> Result | None:
        """The result of a cell, if it has been scored on the grid's splits or, by another grid, on dev and test."""
        more = [SCORED] if set(self.grid.splits) < set(SCORED) else []
        for splits in (self.grid.splits, *more):
            stage = self._stage(cell, splits)
            if stage.state(self.output)[0] == "done":
                return read_result(self.output / stage.name / RESULT, cell)
        return None

    def _stage(self, cell: Cell, splits: tuple[Split, ...]) -> Stage:
        """A cell as a stage, named by a hash of all it depends on, so that grids in one folder share it."""
        parsers = [self._source(cell, source).fingerprint for source in cell.system.sources]
        bitext = [self.bitext(cell.language, source).fingerprint for source in cell.system.sources]
        scored = dict.fromkeys((*SCORED, *splits, *(["pool"] if cell.system.trees or cell.system.order else [])))
        gold = trees_hash([tree for split in scored for tree in self.gold(cell.language, split)])
        more = cell.system.sources if "treebanks" in cell.system.method else ()
        data = depends_on(self.grid, parsers, bitext, gold, [trees_hash(self._treebank(source)) for source in more])
        facts = {**cell.facts(data), "splits": list(splits)}
        starts = "subdp" in cell.system.method and cell.system.losses.start == "multilingual"
        if cell.system.method == "multilingual" or (starts and self.grid.options.encoder is None):
            facts["start"] = file_hash(MULTILINGUAL / "model.safetensors")
        if _has_trees(cell):
            facts["tune"] = as_dict(self.grid.settings.tune)
        return _named(Stage(f"cells/{cell.name}", "train and score", facts, lambda folder: self._score(cell, folder)))

    def prepare(self, cell: Cell) -> None:
        """Make what the cell shares with others, and encode the sentences that it is scored on."""
        for source in cell.system.sources:
            features = self._source(cell, source).features
            if cell.system.method not in ("direct", "multilingual", "trees"):
                features.add(self.silver(cell.language, source, self._source_seed(cell)).targets())
                self.links(cell.language, source, cell.system.links)
                if _has_trees(cell):
                    self._without_trees(cell)
            for split in self.grid.splits:
                features.add(sentence.words for sentence in self.gold(cell.language, split))
            features.add(tree.words for tree in self.drawn(cell))

    def work(self, cell: Cell) -> Result:
        """Make the cell's parser, score it, and keep the result."""
        stage = self._stage(cell, self.grid.splits)
        if self.result(cell) is None:  # If the stage is done nevertheless, its file is damaged.
            shutil.rmtree(self.output / stage.name, ignore_errors=True)
        ensure(stage, self.output)
        result = self.result(cell)
        assert result is not None
        return result

    def _score(self, cell: Cell, folder: Path) -> str:
        start = time.perf_counter()
        parser = self.adapted(cell)
        scores = {split: parser.evaluate(self.gold(cell.language, split)) for split in self.grid.splits}
        made = {name: parser.about.get(name) for name in ("epochs", "best_epoch", "agreement", "adapted_on")}
        made["upos"] = {split: found.upos for split, found in scores.items()}
        made |= {"seconds": time.perf_counter() - start, "encoder": parser.encoder.title}
        result = Result(cell, {split: found.per_sentence for split, found in scores.items()}, made)
        write_json(folder / RESULT, as_json(result))
        return str(result)

    def adapted(self, cell: Cell) -> Parser:
        """The parser of a cell."""
        if _has_trees(cell):
            start = self._source(cell, "en") if cell.system.method == "trees" else self._without_trees(cell)
            return start.adapt_to_trees(self.drawn(cell), settings=self.grid.settings, seed=cell.seed)
        if cell.system.method == "subdp" and self.grid.name in ("trees", "order"):
            return self._without_trees(cell)
        return self._trained(cell)

    def _trained(self, cell: Cell) -> Parser:
        """The parser of a cell without gold trees of the target language."""
        system, seed = cell.system, cell.seed
        parser = self._source(cell, system.sources[0])
        if system.method == "direct":
            return parser
        if system.method == "multilingual":
            return replace(Parser.load(MULTILINGUAL, encoder=self.encoder), store=self.store)
        settings, silver = adapt_settings(self.grid.settings, system), self._system_silver(cell)
        parser = parser.with_values(silver.inventory)
        if system.method == "hard":
            return parser.adapt_to_trees(hard_trees(silver), settings=as_silver(settings), seed=seed)
        if system.method == "self":
            return parser.adapt_to_trees(own_trees(parser, silver), settings=as_silver(settings), seed=seed)
        if system.method == "random":
            parser = parser.untrained(seed)
        if system.method != "treebanks":
            parser = parser.adapt(silver, settings=settings, seed=seed)
        if "treebanks" in system.method:
            trees = [tree for source in system.sources for tree in self._treebank(source)]
            parser = parser.adapt_to_trees(trees, settings=as_silver(settings), seed=seed)
        return parser

    def _without_trees(self, cell: Cell) -> Parser:
        """The parser that SubDP makes for a cell with gold trees, before it sees them; cells share it."""
        plain = replace(cell, system=replace(cell.system, name="SubDP", trees=0, order=None))

        def work(folder: Path) -> str:
            self._trained(plain).save(folder / "parser")
            return "saved"

        facts = {"cell": self._stage(plain, self.grid.splits).key}
        folder = self._kept(f"adapted/{plain.name}", "adapt", facts, work)
        return replace(Parser.load(folder / "parser", encoder=self.encoder), store=self.store)

    def drawn(self, cell: Cell) -> list[Sentence]:
        """The gold trees of the target language that a cell trains on; with one seed, fewer are some of the more."""
        pool = self.gold(cell.language, "pool")
        if cell.system.order is not None:
            words, doubts = [tree.words for tree in pool], self._doubts(cell)
            return [pool[number] for number in first_to_correct(words, doubts, cell.system.order, cell.seed)]
        order = np.random.default_rng(cell.seed).permutation(len(pool))
        return [pool[index] for index in order[: cell.system.trees]]

    def _doubts(self, cell: Cell) -> list[float]:
        """The doubts that SubDP's parser has in the drafts of the pool, before any of them is corrected."""
        pool, parser = self.gold(cell.language, "pool"), self._without_trees(cell)

        def work(folder: Path) -> str:
            drafts = parser.parse(pool, confidence=True, retag=True, remember=True)
            write_json(folder / DOUBTS, [doubt(draft) for draft in drafts])
            return counted(len(pool), "draft")

        facts = {"parser": parser.fingerprint, "pool": trees_hash(pool)}
        folder = self._kept(f"doubts/{cell.language}-{cell.seed}", "doubts in drafts", facts, work)
        found: list[float] = json.loads((folder / DOUBTS).read_text(encoding="utf-8"))
        return found

    def _system_silver(self, cell: Cell) -> Silver:
        """The silver of a cell: its links, its number of pairs, from all its sources."""
        parts: list[Silver] = []
        for source in cell.system.sources:
            bitext = self.bitext(cell.language, source)
            silver = self.silver(cell.language, source, self._source_seed(cell))
            chosen = sorted(bitext.drawn(cell.seed)[: cell.system.pairs].tolist())
            parts.append(SilverPart(silver, chosen, self.links(cell.language, source, cell.system.links)))
        if len(parts) == 1:
            return parts[0]
        return AveragedSilver(parts) if cell.system.averaged else JoinedSilver(parts)

    def _source(self, cell: Cell, language: str) -> Parser:
        return self.parser(language, self._source_seed(cell))

    def _source_seed(self, cell: Cell) -> int:
        return 1 if self.grid.options.encoder is None else cell.seed

    def _parser(self, language: str, seed: int) -> Parser:
        """The source parser of a language: the English one that comes with the package, or one trained here."""
        if language == "en" and self.grid.options.encoder is None:
            return Parser.load(SHIPPED, device=self.device, bits=self.grid.options.encoder_bits)
        settings, trees = self.grid.settings, self._treebank(language)
        dev = self.gold("en", "dev") if language == "en" else []
        made_from = [
            as_dict(settings.network),
            as_dict(settings.train),
            trees_hash(trees),
            trees_hash(dev),
            self.encoder.fingerprint,
        ]

        def work(folder: Path) -> str:
            checkpoints = folder / TRAINING
            checkpoints.mkdir(exist_ok=True)
            trained = Parser.train(
                trees, dev=dev, encoder=self.encoder, settings=settings, seed=seed, folder=checkpoints
            )
            trained.save(folder / "parser")
            return counted(len(trees), "sentence")

        folder = self._kept(f"source/{language}-{seed}", "train a source parser", {"made_from": made_from}, work)
        return replace(Parser.load(folder / "parser", encoder=self.encoder), store=self.store)

    def _read_treebank(self, language: str) -> list[Sentence]:
        """What a source parser is trained on: a treebank's train part, or its dev part where that is all there is."""
        return self.corpora.gold(language, "train") or self.corpora.gold(language, "dev")

    def _gold(self, language: str, split: Split) -> list[Sentence]:
        return self.corpora.gold(language, split, self.grid.options.dev_sentences if split in ("dev", "rest") else None)

    def _links_file(self, language: str, source: str, links: Links) -> Path:
        """The file of a bitext's alignments, which is written when it is first asked for."""
        bitext, settings = self.bitext(language, source), asdict(links)

        def work(folder: Path) -> str:
            aligner = SimilarityAligner(self.encoder, **settings, store=self.store)
            with progress(f"aligning {source}-{language}", len(bitext), "pairs") as advance:
                write_alignments((_counted(found, advance) for found in aligner.align(bitext)), folder / LINKS)
            return counted(len(bitext), "pair")

        facts = {"links": settings, "encoder": self.encoder.fingerprint, "bitext": bitext.fingerprint}
        name = "-".join([f"links/{source}", language, *map(str, settings.values())])
        return self._kept(name, "align words", facts, work) / LINKS

    def _links(self, language: str, source: str, links: Links) -> list[Alignment]:
        return list(read_alignments(self._links_file(language, source, links)))

    def _silver(self, language: str, source: str, seed: int) -> SilverStore:
        """The silver of a bitext, with the default links."""
        parser, bitext = self.parser(source, seed), self.bitext(language, source)

        def work(folder: Path) -> str:
            aligner = FileAligner(self._links_file(language, source, Links()))
            return counted(len(parser.project(bitext, aligner=aligner, folder=folder / "silver")), "pair")

        facts = {"parser": parser.fingerprint, "bitext": bitext.fingerprint}
        return SilverStore(self._kept(f"silver/{source}-{language}", "project", facts, work) / "silver")

    def _kept(self, name: str, purpose: str, facts: dict[str, Any], work: Callable[[Path], str]) -> Path:
        """The folder of something that cells share, made unless it is there; its name ends in a hash of the facts."""
        return ensure(_named(Stage(name, purpose, facts, work)), self.output)


def _has_trees(cell: Cell) -> bool:
    """Whether a cell trains on gold trees of the target language."""
    return cell.system.trees > 0 or cell.system.order is not None


def _named(stage: Stage) -> Stage:
    """The stage under a name that ends in a hash of its inputs: with other inputs it is another stage."""
    return replace(stage, name=f"{stage.name}-{stage.key[:12]}")


def _counted(alignment: Alignment, advance: Callable[..., None]) -> Alignment:
    advance(1)
    return alignment
