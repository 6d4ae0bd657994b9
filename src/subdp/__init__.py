"""A dependency parser for a language without a treebank, by Substructure Distribution Projection.

What needs no torch is imported here; what needs torch or Arrow is loaded when first used, so that `import subdp` stays
quick. `operators` is the module with the paper's operators as pure functions on arrays.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from subdp.alignment.aligner import Aligner
from subdp.alignment.links import Alignment, read_alignments, write_alignments
from subdp.corpus.bitext import Bitext, Pair, read_bitext
from subdp.corpus.treebank import Sentence, read_conllu, write_conllu
from subdp.corpus.words import words_of
from subdp.decoding.decode import decode
from subdp.evaluation.attachment import Scores, compare, evaluate, summarize
from subdp.projection import operators
from subdp.projection.operators import project_tags
from subdp.projection.soft_files import read_soft, write_soft
from subdp.projection.soft_tree import Head, SoftTree, project, project_tree
from subdp.support.errors import SubdpError
from subdp.support.settings import Settings

if TYPE_CHECKING:
    from subdp.encoder.encoder import Encoder
    from subdp.parser import Parser
    from subdp.projection.silver import Silver, SilverPair

__version__ = "0.1.0"

__all__ = [
    "Aligner",
    "Alignment",
    "Bitext",
    "Encoder",
    "Head",
    "Pair",
    "Parser",
    "Scores",
    "Sentence",
    "Settings",
    "Silver",
    "SilverPair",
    "SoftTree",
    "SubdpError",
    "compare",
    "decode",
    "evaluate",
    "operators",
    "project",
    "project_tags",
    "project_tree",
    "read_alignments",
    "read_bitext",
    "read_conllu",
    "read_soft",
    "summarize",
    "words_of",
    "write_alignments",
    "write_conllu",
    "write_soft",
]


_LATER = {
    "Encoder": "subdp.encoder.encoder",
    "Parser": "subdp.parser",
    "Silver": "subdp.projection.silver",
    "SilverPair": "subdp.projection.silver",
}


def __getattr__(name: str) -> Any:
    if name in _LATER:
        return getattr(import_module(_LATER[name]), name)
    raise AttributeError(f"module 'subdp' has no attribute {name!r}")
