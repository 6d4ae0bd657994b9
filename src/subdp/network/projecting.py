"""Projecting a bitext: the pairs that an aligner is given, what their silver is made from, and filling its store."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from subdp.alignment.aligner import Aligner
from subdp.corpus.bitext import Bitext
from subdp.corpus.treebank import Sentence, trees_hash
from subdp.encoder.batch import Words
from subdp.encoder.vectors import Vectors
from subdp.network.biaffine import Biaffine
from subdp.network.units import PairsUnit, ProjectUnit
from subdp.projection.gold_trees import check_trees, with_trees
from subdp.projection.silver import SilverStore
from subdp.support.cache import cache_folder
from subdp.support.engine import Engine
from subdp.support.errors import SubdpError
from subdp.support.progress import progress


@dataclass(frozen=True, slots=True)
class ToProject:
    """A bitext as its aligner takes it and, where they replace the parser's distributions, the source's gold trees."""

    bitext: Bitext
    aligner: Aligner
    gold: Sequence[Sentence] | None

    @classmethod
    def of(
        cls, bitext: Bitext, aligner: Aligner, trees: Iterable[Sentence] | None, label_names: Sequence[str]
    ) -> ToProject:
        """Raise unless the bitext, and a treebank that has its source sentences, can be projected."""
        if not bitext:
            dropped = ", ".join(f"{count:,} {reason}" for reason, count in bitext.report.dropped.items())
            raise SubdpError("no pair can be used", where=bitext.where, hint=f"left out: {dropped or 'none'}")
        gold: Sequence[Sentence] | None = None
        if trees is not None:
            bitext, gold = with_trees(bitext, trees, same_words=aligner.reads_lines)
            check_trees(gold, label_names)
        return cls(aligner.prepared(bitext), aligner, gold)

    def made_from(self, parser: str) -> dict[str, str]:
        """All that the silver depends on; `parser` is the fingerprint of the one that is projected."""
        made_from = {"parser": parser, "bitext": self.bitext.fingerprint, "aligner": self.aligner.fingerprint}
        made_from |= {} if self.gold is None else {"trees": trees_hash(self.gold)}
        return made_from | ({} if self.bitext.tokenizer is None else {"tokenizer": self.bitext.tokenizer})

    def fill(self, silver: SilverStore, network: Biaffine, vectors: Vectors, engine: Engine) -> None:
        """Write the shards that are missing."""
        every = silver.units
        missing = [(number, every[number]) for number in silver.missing()]
        if not missing:
            return
        if self.gold is None or self.aligner.reads_vectors:
            vectors.remember(self._sentences([unit for _, unit in missing]), engine)
        gold = self.gold
        units = (
            PairsUnit(
                number, self.bitext[unit.start : unit.stop], None if gold is None else gold[unit.start : unit.stop]
            )
            for number, unit in missing
        )
        work = ProjectUnit(network, vectors.stored, self.aligner, silver)
        with progress("aligning and projecting", sum(len(unit) for _, unit in missing), "pairs") as advance:
            for done in engine.map(work, units):
                advance(done)

    def _sentences(self, units: Sequence[range]) -> Iterator[Words]:
        for side in ("source", "target"):
            for unit in units:
                for index in unit:
                    yield getattr(self.bitext[index], side)


def folder_in_cache(made_from: Mapping[str, str]) -> Path:
    """Where silver is kept for which no folder was named."""
    key = hashlib.sha256(repr(sorted(made_from.items())).encode()).hexdigest()[:32]
    return cache_folder() / "silver" / key
