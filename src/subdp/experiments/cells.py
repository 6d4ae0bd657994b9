"""The work of the experiments: source parsers, alignments and silver, shared by all cells; then cell by cell.

What cells share is made first, with all cores. Then cells are worked on, several at once if asked. Imports torch.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict, replace
from functools import cache, cached_property
from itertools import groupby
from multiprocessing import get_context
from pathlib import Path

import torch

from subdp.alignment.links import Alignment, read_alignments, write_alignments
from subdp.alignment.similarity import FileAligner, SimilarityAligner
from subdp.corpus.treebank import Sentence, trees_hash
from subdp.encoder.encoder import Encoder
from subdp.encoder.feature_store import FeatureStore
from subdp.experiments.corpora import Corpora, Split
from subdp.experiments.grid import Cell, Grid, Links, Result, adapt_settings, as_json, depends_on, read_result
from subdp.network.shipped import SHIPPED
from subdp.parser import Parser
from subdp.pipeline.baselines import hard_trees, own_trees
from subdp.pipeline.stages import write_json
from subdp.projection.silver import Silver
from subdp.projection.silver_views import AveragedSilver, JoinedSilver, SilverPart
from subdp.support.errors import SubdpError, counted
from subdp.support.progress import progress
from subdp.support.settings import as_dict

Say = Callable[[str], None]


def run_grid(grid: Grid, corpora: Corpora, output: Path, say: Say) -> list[Result]:
    """Do all cells of a grid that are not done, and give back the results of all.

    Seed by seed: a grid that is stopped has all languages of the first seeds.
    """
    bench = Bench(grid, corpora, output)
    found: list[Result] = []
    for _, cells in groupby(grid.cells(), lambda cell: cell.seed):
        found += _run_seed(bench, list(cells), say)
    return found


def _run_seed(bench: Bench, cells: Sequence[Cell], say: Say) -> list[Result]:
    name, splits = bench.grid.name, bench.grid.splits
    paths = {cell: bench.path(cell) for cell in cells if bench.possible(cell)}
    missing = [cell for cell, path in paths.items() if read_result(path, cell, splits) is None]
    say(f"seed {cells[0].seed}: {counted(len(paths), 'cell')}, {len(paths) - len(missing)} done before")
    for cell in missing:
        bench.prepare(cell)
    with progress(f"experiment {name}", len(missing), "cells") as advance:
        for result in _results(bench, missing):
            advance(1)
            say(f"{result}  ({result.made['seconds']:.0f} s)")
    found = [read_result(path, cell, splits) for cell, path in paths.items()]
    return [result for result in found if result is not None]


def _results(bench: Bench, cells: Sequence[Cell]) -> Iterator[Result]:
    """The results of cells as they come, from one process or from several."""
    jobs = min(bench.grid.options.jobs, len(cells))
    if jobs <= 1:
        yield from map(bench.work, cells)
        return
    threads = max(1, (os.cpu_count() or 1) // jobs)
    with ProcessPoolExecutor(
        jobs, get_context("spawn"), initializer=_begin, initargs=(bench.grid, bench.corpora, bench.output, threads)
    ) as pool:
        try:
            for future in as_completed([pool.submit(_work, cell) for cell in cells]):
                yield future.result()
        except BrokenProcessPool:
            hint = "finished cells are kept: start it again, with fewer --jobs if memory ran out"
            raise SubdpError("a process that worked on cells was killed", hint=hint) from None
        finally:
            pool.shutdown(cancel_futures=True)


_bench: Bench | None = None  # In a process of the pool: what its cells share.


def _begin(grid: Grid, corpora: Corpora, output: Path, threads: int) -> None:
    global _bench
    torch.set_num_threads(threads)
    os.environ["SUBDP_QUIET"] = "1"
    _bench = Bench(grid, corpora, output)


def _work(cell: Cell) -> Result:
    assert _bench is not None
    return _bench.work(cell)


class Bench:
    """All that the cells of a grid are made from, each thing made once and kept in the output folder."""

    def __init__(self, grid: Grid, corpora: Corpora, output: Path):
        self.grid, self.corpora, self.output = grid, corpora, output
        self.parser, self.bitext, self.gold = cache(self._parser), cache(corpora.bitext), cache(self._gold)
        self.silver, self.links, self._treebank = cache(self._silver), cache(self._links), cache(self._read_treebank)

    @cached_property
    def encoder(self) -> Encoder:
        """One encoder for all parsers and for alignment."""
        name = self.grid.options.encoder
        return self.parser("en", 1).encoder if name is None else Encoder.load(name)

    @cached_property
    def store(self) -> FeatureStore:
        """One store of features for all parsers and for alignment."""
        if self.grid.options.encoder is None:
            return self.parser("en", 1).features
        return FeatureStore(self.encoder, self.grid.settings.network.layers)

    def possible(self, cell: Cell) -> bool:
        """Whether there is bitext enough."""
        return cell.system.pairs is None or cell.system.pairs <= len(self.bitext(cell.language, "en"))

    def path(self, cell: Cell) -> Path:
        """The file of a cell's result."""
        parsers = [self._source(cell, source).fingerprint for source in cell.system.sources]
        bitext = [self.bitext(cell.language, source).fingerprint for source in cell.system.sources]
        gold = trees_hash([tree for split in ("dev", "test") for tree in self.gold(cell.language, split)])
        more = cell.system.sources if "treebanks" in cell.system.method else ()
        facts = depends_on(self.grid, parsers, bitext, gold, [trees_hash(self._treebank(source)) for source in more])
        return self.output / "cells" / f"{cell.key(facts)}.json"

    def prepare(self, cell: Cell) -> None:
        """Make what the cell shares with others, and encode the sentences that it is scored on."""
        for source in cell.system.sources:
            features = self._source(cell, source).features
            if cell.system.method != "direct":
                features.add(self.silver(cell.language, source, self._source_seed(cell)).targets())
                self.links(cell.language, source, cell.system.links)
            for split in self.grid.splits:
                features.add(sentence.words for sentence in self.gold(cell.language, split))

    def work(self, cell: Cell) -> Result:
        """Make the cell's parser, score it, and write the result."""
        start = time.perf_counter()
        parser = self.adapted(cell)
        scores = {split: parser.evaluate(self.gold(cell.language, split)) for split in self.grid.splits}
        made = {name: parser.about.get(name) for name in ("epochs", "best_epoch", "agreement", "adapted_on")}
        made |= {"seconds": time.perf_counter() - start, "encoder": parser.encoder.name}
        result = Result(cell, {split: found.per_sentence for split, found in scores.items()}, made)
        path = self.path(cell)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_json(path, as_json(result))
        return result

    def adapted(self, cell: Cell) -> Parser:
        """The parser of a cell."""
        system, seed = cell.system, cell.seed
        parser = self._source(cell, system.sources[0])
        if system.method == "direct":
            return parser
        settings, silver = adapt_settings(self.grid.settings, system), self._system_silver(cell)
        parser = parser.with_labels(silver.label_names)
        if system.method == "hard":
            return parser.adapt_to_trees(hard_trees(silver), settings=settings, seed=seed)
        if system.method == "self":
            return parser.adapt_to_trees(own_trees(parser, silver), settings=settings, seed=seed)
        if system.method == "random":
            parser = parser.untrained(seed)
        if system.method != "treebanks":
            parser = parser.adapt(silver, settings=settings, seed=seed)
        if "treebanks" in system.method:
            trees = [tree for source in system.sources for tree in self._treebank(source)]
            parser = parser.adapt_to_trees(trees, settings=settings, seed=seed)
        return parser

    def _system_silver(self, cell: Cell) -> Silver:
        """The silver of a cell: its links, its number of pairs, from all its sources."""
        parts: list[Silver] = []
        for source in cell.system.sources:
            bitext = self.bitext(cell.language, source)
            silver = self.silver(cell.language, source, self._source_seed(cell))
            chosen = sorted(bitext.drawn(cell.seed)[: cell.system.pairs])
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
            return Parser.load(SHIPPED)
        settings, trees = self.grid.settings, self._treebank(language)
        dev = self.gold("en", "dev") if language == "en" else []
        made_from = [
            as_dict(settings.network),
            as_dict(settings.train),
            trees_hash(trees),
            trees_hash(dev),
            self.encoder.fingerprint,
        ]
        name = f"{language}-{seed}-{hashlib.sha256(repr(made_from).encode()).hexdigest()[:12]}"
        folder, checkpoints = self.output / "source" / name, self.output / "training" / name
        if not folder.exists():
            checkpoints.mkdir(parents=True, exist_ok=True)
            trained = Parser.train(
                trees, dev=dev, encoder=self.encoder, settings=settings, seed=seed, folder=checkpoints
            )
            trained.save(folder)
        return replace(Parser.load(folder, encoder=self.encoder), store=self.store)

    def _read_treebank(self, language: str) -> list[Sentence]:
        """What a source parser is trained on: a treebank's train part, or its dev part where that is all there is."""
        return self.corpora.gold(language, "train") or self.corpora.gold(language, "dev")

    def _gold(self, language: str, split: Split) -> list[Sentence]:
        return self.corpora.gold(language, split, self.grid.options.dev_sentences if split == "dev" else None)

    def _links_file(self, language: str, source: str, links: Links) -> Path:
        """The file of a bitext's alignments, which is written when it is first asked for."""
        bitext = self.bitext(language, source)
        settings = asdict(links)
        encoder = hashlib.sha256(self.encoder.fingerprint.encode()).hexdigest()[:8]
        name = "-".join([source, language, *map(str, settings.values()), encoder, bitext.fingerprint[:8]])
        path = self.output / "links" / f"{name}.links"
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            aligner = SimilarityAligner(self.encoder, **settings, store=self.store)
            with progress(f"aligning {source}-{language}", len(bitext), "pairs") as advance:
                write_alignments((_counted(found, advance) for found in aligner.align(bitext)), path)
        return path

    def _links(self, language: str, source: str, links: Links) -> list[Alignment]:
        return list(read_alignments(self._links_file(language, source, links)))

    def _silver(self, language: str, source: str, seed: int) -> Silver:
        """What the source parser says of a bitext, with the default links."""
        parser, bitext = self.parser(source, seed), self.bitext(language, source)
        name = f"{source}-{language}-{parser.fingerprint[:8]}-{bitext.fingerprint[:8]}"
        aligner = FileAligner(self._links_file(language, source, Links()))
        return parser.project(bitext, aligner=aligner, folder=self.output / "silver" / name)


def _counted(alignment: Alignment, advance: Callable[..., None]) -> Alignment:
    advance(1)
    return alignment
