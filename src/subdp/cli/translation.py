"""The verbs of the command line that translate. Torch is imported when a model runs, not before."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from cyclopts import Parameter

from subdp.cli.app import Output, app, say
from subdp.support.errors import counted

# So that - is a file, standard input or output, and not taken for an option.
File: TypeAlias = Annotated[str, Parameter(allow_leading_hyphen=True)]
Pairs: TypeAlias = Annotated[Output, Parameter(allow_leading_hyphen=True)]
From: TypeAlias = Annotated[str, Parameter(name="--from")]


@app.command
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
    """Translate a treebank's sentences, or text, into a bitext; an interrupted translation goes on where it stopped.

    Parameters
    ----------
    file
        CoNLL-U file (.conllu), or text with a sentence on each line.
    output
        File of pairs to write: source TAB translation, a line for each sentence.
    to
        The language to translate into, as de.
    source
        The language of the text.
    translator
        apertium; transformers:NAME for a model by name or folder (mBART, CRISS, M2M100, NLLB, OPUS-MT); command:"…" for
        a shell command that reads and writes lines; or a plug-in's name.
    beams
        How many beams a model searches with; 5 if not given.
    device
        Where a model runs, as cuda; by default a GPU if there is one.
    batch
        Sentences given to the translator at a time; more for a command that is slow to start.
    """
    from subdp.translation.translate import find_translator
    from subdp.translation.translate import translate as run

    found = find_translator(translator, source, to, beams=beams, device=device)
    say(f"translating with {found.name}")
    try:
        result = run(file, output, found, batch=batch)
    except KeyboardInterrupt:
        if output != "-":
            say("stopped; what is finished is kept: the same command goes on from here")
        raise
    say(f"{counted(result.sentences, 'sentence')} in {output}")
    if result.missing:
        say(f"{result.missing:,} of them have no translation: none came back, or they are too long for the model")


@app.command
def convert_criss(checkpoint: str, *, output: Output) -> None:
    """Turn a CRISS checkpoint of fairseq into a model folder, for --translator transformers:DIR and --encoder DIR.

    Parameters
    ----------
    checkpoint
        The .pt file, or the folder with it; beside it dict.txt, lang_dict.txt and sentence.bpe.model.
    output
        The model folder to write.
    """
    from pathlib import Path

    from subdp.translation.criss import convert

    convert(Path(checkpoint), Path(output))
    say(f"model in {output}")
