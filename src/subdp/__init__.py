"""A dependency parser for a language without a treebank, by Substructure Distribution Projection.

What needs no torch is imported here, once and before any submodule of the same name (`subdp.project` is the function);
what needs torch is loaded when first used, so that `import subdp` stays quick.
"""

from __future__ import annotations

from subdp.align import Alignment, read_alignments, write_alignments
from subdp.decode import decode
from subdp.errors import SubdpError
from subdp.evaluate import evaluate
from subdp.softtree import Head, SoftTree, project, project_tree
from subdp.treebank import Sentence, read_conllu, write_conllu

__version__ = "0.1.0"

__all__ = [
    "Alignment",
    "Head",
    "Sentence",
    "SoftTree",
    "SubdpError",
    "decode",
    "evaluate",
    "project",
    "project_tree",
    "read_alignments",
    "read_conllu",
    "write_alignments",
    "write_conllu",
]
