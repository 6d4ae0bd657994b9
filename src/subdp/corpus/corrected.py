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
    scored = {sentence.words: name_of(file) for file in held_out for sentence in read_gold(file)}
    trees: list[Sentence] = []
    for file in files:
        found = list(read_conllu(file, any_roots=True))
        both = [number for number, tree in enumerate(found) if tree.words in scored]
        if both:
            name = found[both[0]].sent_id or f"sentence {both[0] + 1}"
            others = f" and {counted(len(both) - 1, 'other')} are" if len(both) > 1 else " is"
            hint = "remove them from one of the two: a parser must not be scored on what it was trained on"
            raise SubdpError(f"{name}{others} also in {scored[found[both[0]].words]}", where=name_of(file), hint=hint)
        trees += found
    if files:
        _check(trees, files[0])
    return trees


def read_gold(file: Source) -> list[Sentence]:
    """The trees of a CoNLL-U file to score on, some of whose heads may be missing."""
    trees = list(read_conllu(file))
    _check(trees, file)
    return trees


def _check(trees: Sequence[Sentence], file: Source) -> None:
    if not any(head != UNKNOWN for tree in trees for head in tree.heads):
        reason = f"no word of {counted(len(trees), 'tree')} has a head"
        raise SubdpError(reason, where=name_of(file), hint="give trees that are annotated, at least in part")
