"""The verbs that translate: `translate` and `convert-criss`. Torch is imported when a model runs, not before."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

from cyclopts import Parameter

from subdp.cli.app import Output, say
from subdp.support.errors import counted
from subdp.translation.translate import find_translator
from subdp.translation.translate import translate as run

# So that - is read as standard input or output, not as an option.
File: TypeAlias = Annotated[str, Parameter(allow_leading_hyphen=True)]
Pairs: TypeAlias = Annotated[Output, Parameter(allow_leading_hyphen=True)]
From: TypeAlias = Annotated[str, Parameter(name="--from")]


def translate(
    file: File,
    *,
    output: Pairs,
    to: str,
    source: From = "en",
    translator: str,
    beams: int | None = None,
    device: str | None = None,
    batch: int = 200,
) -> None:
    """Translate a treebank's sentences, or text, into a bitext; interrupted, it is resumed by the same command.

    Parameters
    ----------
    file
        CoNLL-U file (.conllu), or text with one sentence per line.
    output
        File of pairs to write: source TAB translation, one line per sentence.
    to
        Language to translate into, such as de.
    source
        Language of the text.
    translator
        apertium; transformers:NAME for a model by name or folder (mBART, CRISS, M2M100, NLLB, OPUS-MT); command:"…" for
        a shell command that reads and writes lines; or a plug-in's name.
    beams
        Beam size of a model; 5 by default.
    device
        Device that a model runs on, such as cpu, cuda or cuda:1; by default a GPU if there is one.
    batch
        Number of sentences given to the translator at a time; larger for a command that is slow to start.
    """
    found = find_translator(translator, source, to, beams=beams, device=device)
    say(f"translating with {found.name}")
    try:
        result = run(file, output, found, batch=batch)
    except KeyboardInterrupt:
        if output != "-":
            say("stopped; what is finished is kept, and the same command resumes from there")
        raise
    say(f"{counted(result.sentences, 'sentence')} in {output}")
    if result.missing:
        say(f"{result.missing:,} without a translation: none came back, or the sentence is too long for the model")


def convert_criss(checkpoint: str, *, output: Output) -> None:
    """Convert a fairseq checkpoint of CRISS to a model folder, for --translator transformers:DIR and --encoder DIR.

    Parameters
    ----------
    checkpoint
        The .pt file or its folder, which also holds dict.txt, lang_dict.txt and sentence.bpe.model.
    output
        Model folder to write; it must not exist yet.
    """
    from subdp.translation.criss import convert

    convert(Path(checkpoint), Path(output))
    say(f"model in {output}")
