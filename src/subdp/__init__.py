"""A dependency parser for a language without a treebank, by Substructure Distribution Projection.

A name is imported when it is first used, so that `import subdp` takes no time and what needs no torch never loads it.
`operators` is the module with the paper's operators as pure functions on arrays.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from subdp.alignment.aligner import Aligner
    from subdp.alignment.links import Alignment, read_alignments, write_alignments
    from subdp.corpus.bitext import Bitext, Pair, read_bitext
    from subdp.corpus.draft import as_sentences
    from subdp.corpus.treebank import Sentence, read_conllu, write_conllu
    from subdp.corpus.words import words_of
    from subdp.decoding.decode import decode
    from subdp.encoder.encoder import Encoder
    from subdp.evaluation.attachment import Scores, compare, evaluate, summarize
    from subdp.parser import Parser
    from subdp.projection import operators
    from subdp.projection.operators import project_tags
    from subdp.projection.silver import Silver, SilverPair
    from subdp.projection.soft_files import read_soft, write_soft
    from subdp.projection.soft_tree import Head, SoftTree, project, project_tree
    from subdp.support.errors import SubdpError
    from subdp.support.settings import Settings

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
    "as_sentences",
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

_MODULES = {
    "Aligner": "subdp.alignment.aligner",
    "Alignment": "subdp.alignment.links",
    "Bitext": "subdp.corpus.bitext",
    "Encoder": "subdp.encoder.encoder",
    "Head": "subdp.projection.soft_tree",
    "Pair": "subdp.corpus.bitext",
    "Parser": "subdp.parser",
    "Scores": "subdp.evaluation.attachment",
    "Sentence": "subdp.corpus.treebank",
    "Settings": "subdp.support.settings",
    "Silver": "subdp.projection.silver",
    "SilverPair": "subdp.projection.silver",
    "SoftTree": "subdp.projection.soft_tree",
    "SubdpError": "subdp.support.errors",
    "as_sentences": "subdp.corpus.draft",
    "compare": "subdp.evaluation.attachment",
    "decode": "subdp.decoding.decode",
    "evaluate": "subdp.evaluation.attachment",
    "operators": "subdp.projection.operators",
    "project": "subdp.projection.soft_tree",
    "project_tags": "subdp.projection.operators",
    "project_tree": "subdp.projection.soft_tree",
    "read_alignments": "subdp.alignment.links",
    "read_bitext": "subdp.corpus.bitext",
    "read_conllu": "subdp.corpus.treebank",
    "read_soft": "subdp.projection.soft_files",
    "summarize": "subdp.evaluation.attachment",
    "words_of": "subdp.corpus.words",
    "write_alignments": "subdp.alignment.links",
    "write_conllu": "subdp.corpus.treebank",
    "write_soft": "subdp.projection.soft_files",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'subdp' has no attribute {name!r}")
    module = import_module(_MODULES[name])
    globals()[name] = module if name == "operators" else getattr(module, name)
    return globals()[name]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
