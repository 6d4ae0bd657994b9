"""The `subdp` command: what its verbs are, and where. A verb's module is imported when the verb is called."""

from __future__ import annotations

import os
import signal
import sys
import traceback

from cyclopts import CycloptsError

from subdp.cli.app import app, misused, say
from subdp.support.errors import SubdpError

__all__ = ["app", "main"]

# Each verb's module and description, so that `subdp --help` imports none of the modules.
VERBS = {
    "quickstart": (
        "runs",
        "See the whole method at work on a small sample: a parser for German or Turkish in about a minute.",
    ),
    "run": (
        "runs",
        "Make a parser from translated text in one command; if interrupted, the same command resumes.",
    ),
    "train": ("training", "Train a parser on a treebank."),
    "translate": (
        "bitexts",
        "Translate text, or a treebank's sentences, into a bitext; if interrupted, the same command resumes.",
    ),
    "align": (
        "bitexts",
        "Align the words of translated sentences; with --score, evaluate the alignment against gold links.",
    ),
    "project": (
        "bitexts",
        "Parse the source side of translated text and align it with the target: silver data for `adapt`.",
    ),
    "adapt": (
        "training",
        "Train a parser for the target language on silver data, on gold trees, or on both in that order.",
    ),
    "distill": (
        "training",
        "Make a smaller parser, many times as fast: train it on what a larger one predicts on raw text.",
    ),
    "parse": ("texts", "Parse text, or fill in the trees and tags of a CoNLL-U file."),
    "annotate": (
        "texts",
        "Draft trees for an annotator to correct: on a page, or as CoNLL-U with probabilities and rivals in MISC.",
    ),
    "evaluate": ("trees", "Score SYSTEM's trees against GOLD's: two CoNLL-U files with the same words."),
    "show": ("trees", "Draw the trees of a CoNLL-U file: in the terminal, or as .html or .svg."),
    "experiment": (
        "experiments",
        """Run an experiment: one of the paper's, or one on gold trees of the target language (trees, order).

        Writes tables (Markdown, LaTeX, CSV) and a figure to the output folder. An interrupted experiment is resumed by
        the same command; experiments in one folder share what they have in common.""",
    ),
    "data": ("data", "Download published treebanks and bitext."),
    "cache": (
        "upkeep",
        """Show what subdp keeps in its cache, how large it is, and its limit.

        SUBDP_CACHE names another folder for it; SUBDP_CACHE_GB sets a limit: what was used least recently is
        removed first.""",
    ),
    "encoder": ("upkeep", "Manage the encoder that subdp uses by default."),
    "plugins": ("upkeep", "List the encoders, aligners, translators and tokenizers that other installed packages add."),
    "convert": ("convert", "Convert a parser for use in another tool."),
    "convert-criss": (
        "bitexts",
        "Convert a fairseq checkpoint of CRISS to a model folder, for --translator transformers:DIR and --encoder DIR.",
    ),
}

for _name, (_module, _help) in VERBS.items():
    app.command(f"subdp.cli.{_module}:{_name.replace('-', '_')}", name=_name, help=_help)


def main() -> None:
    """The entry point of the `subdp` command, and of each process that torchrun starts."""
    if os.environ.keys() >= {"RANK", "MASTER_ADDR"} and int(os.environ.get("WORLD_SIZE", "1")) > 1:
        _on_ranks(int(os.environ["RANK"]))
    else:
        _command()


def _command() -> None:
    try:
        app.meta(exit_on_error=False, print_error=False)
    except CycloptsError as error:
        misused(error)


def _on_ranks(rank: int) -> None:
    """Run the command on rank 0; the other ranks say nothing, whatever happens."""
    from subdp.training.ranks import leave, on_ranks

    def command() -> None:
        try:
            _command()
        except SystemExit as end:
            if end.code:
                leave(int(end.code))

    if rank > 0:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all of them; when rank 0 ends, so do the others.
    try:
        on_ranks(command)
    except SubdpError as error:
        if rank == 0:
            traceback.print_exc() if "--debug" in sys.argv else say(f"subdp: {error}")
        leave(1)
    leave(0)
