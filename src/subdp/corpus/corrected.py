"""Gold trees of the target language, such as drafts that an annotator has corrected. No torch."""

from __future__ import annotations

from collections.abc import Sequence

from subdp.corpus.treebank import UNKNOWN, Sentence, read_conllu
from subdp.support.errors import SubdpError, counted
from subdp.support.files import Source, name_of


def read_trees(files: Sequence[Source], held_out: Sequence[Source] = ()) -> list[Sentence]:
    """The trees of several CoNLL-U files to train on; heads may be missing (`_`), and such words add no loss.

    A sentence that is also in a file that parsers are scored on, `held_out`, is an error: the scores would be worth
    nothing.
    """
    scored = {sentence.words: name_of(file) for file in held_out for sentence in read_conllu(file)}
    trees: list[Sentence] = []
    for file in files:
        for number, tree in enumerate(read_conllu(file, any_roots=True), 1):
            if tree.words in scored:
                name = tree.sent_id or f"sentence {number}"
                hint = "take it out of one of the two: a parser is not scored on what it was trained on"
                raise SubdpError(f"{name} is also in {scored[tree.words]}", where=name_of(file), hint=hint)
            trees.append(tree)
    if files and not any(head != UNKNOWN for tree in trees for head in tree.heads):
        reason = f"no word of {counted(len(trees), 'tree')} has a head"
        raise SubdpError(reason, where=name_of(files[0]), hint="give trees that are annotated, at least in part")
    return trees
