"""`subdp parse` and `annotate` to a folder: CoNLL-U in numbered files, each written by whoever parses it.

Imports torch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from subdp.corpus.treebank import Sentence
from subdp.encoder.batch import chunks
from subdp.network.prediction import chunk_words
from subdp.network.units import ParseToFile, ParseUnit, SentencesUnit
from subdp.parser import Parser
from subdp.support.engine import Engine
from subdp.support.progress import progress
from subdp.support.shard_folder import ShardFolder


def parse_to_folder(
    parser: Parser,
    sentences: Iterable[Sentence],
    folder: str,
    made_from: Mapping[str, Any],
    engine: Engine,
    *,
    confidence: bool = False,
    retag: bool = False,
    finish: Callable[[Sentence], Sentence] | None = None,
) -> int:
    """Parse to a folder on disk, or at `s3://` or `gs://`; returns how many sentences were parsed now.

    An interrupted call resumes; `made_from` says which sentences these are, and what `finish` makes of each tree.
    """
    parse = ParseUnit(parser.network, parser.vectors.fresh, parser.inventory, confidence, retag)
    work, count = ParseToFile(parse, ShardFolder(folder), finish), 0
    words = chunk_words(parser.network.device)  # of a file
    options = {"parser": parser.fingerprint, "confidence": confidence, "retag": retag, "words": words}
    done = work.folder.begin({**options, **made_from})
    parts = enumerate(chunks(sentences, words))
    units = (SentencesUnit(number, part) for number, part in parts)
    with progress("parsing", None, "sentences") as advance:
        for parsed in engine.map(work, (unit for unit in units if unit.name not in done)):
            count += parsed
            advance(parsed)
    return count
