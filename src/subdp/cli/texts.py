"""The verbs that give text its trees: `parse` and `annotate`. Torch is imported when one of them runs."""

from __future__ import annotations

from pathlib import Path

from subdp.cli.app import Flag, Input, Output, app
from subdp.corpus.draft import TextFormat
from subdp.network.shipped import SHIPPED
from subdp.pipeline.annotate import AnnotateFormat, Order
from subdp.support.engine import LocalEngine


@app.command
def parse(
    file: Input,
    *,
    parser: str = str(SHIPPED),
    format: TextFormat | None = None,
    tokenizer: str = "unicode",
    confidence: Flag = False,
    retag: Flag = False,
    encoder: str | None = None,
    jobs: int = 1,
    output: Output = "-",
) -> None:
    """Parse text, or fill in the trees and tags of a CoNLL-U file.

    Parameters
    ----------
    file
        Raw text, tokenised text or CoNLL-U; - is standard input.
    parser
        Model folder; by default the English parser that comes with subdp.
    format
        text, words (a sentence a line, spaces between words) or conllu; by default what the file's ending says.
    tokenizer
        How raw text is cut into words: unicode, or a plug-in's name.
    confidence
        Add the probabilities of heads, labels and tags, and their rivals, to MISC.
    retag
        Predict UPOS also for words that have one already.
    encoder
        Where the parser's encoder is now, if not where it was when the parser was trained.
    jobs
        Processes that parse, each with its share of the cores.
    output
        CoNLL-U file to write.
    """
    from subdp.corpus.draft import read_sentences
    from subdp.corpus.treebank import write_conllu
    from subdp.parser import Parser

    sentences = read_sentences(file, format, tokenizer)
    model = Parser.load(parser, encoder=encoder)
    write_conllu(model.parse(sentences, confidence=confidence, retag=retag, engine=LocalEngine(jobs)), output)


@app.command
def annotate(
    file: Input,
    *,
    parser: str = str(SHIPPED),
    format: AnnotateFormat | None = None,
    tokenizer: str = "unicode",
    order: Order = "document",
    source_language: str = "en",
    retag: Flag = False,
    encoder: str | None = None,
    jobs: int = 1,
    output: Output = "-",
) -> None:
    """Draft trees for an annotator to correct: on a page, or as CoNLL-U with probabilities and rivals in MISC.

    Parameters
    ----------
    file
        Raw text, tokenised text, CoNLL-U, or a bitext (source TAB target), of which the target is annotated.
    parser
        Model folder; by default the English parser that comes with subdp.
    format
        text, words (a sentence a line, spaces between words), conllu or bitext; by default what the file's ending says.
    tokenizer
        How raw text is cut into words: unicode, or a plug-in's name.
    order
        document, or doubt: the sentences of which the parser is least sure first.
    source_language
        Code of the language that a bitext was translated from: its sentence becomes the comment # text_en.
    retag
        Predict UPOS also for words that have one already.
    encoder
        Where the parser's encoder is now, if not where it was when the parser was trained.
    jobs
        Processes that parse, each with its share of the cores.
    output
        File to write: .html for a page to correct the trees on, which opens in any browser; CoNLL-U otherwise.
    """
    from subdp.corpus.treebank import write_conllu
    from subdp.drawing.page import render_page
    from subdp.parser import Parser
    from subdp.pipeline.annotate import annotate as drafts
    from subdp.support.files import open_text_output

    model, engine = Parser.load(parser, encoder=encoder), LocalEngine(jobs)
    sentences = drafts(
        file,
        model,
        format=format,
        tokenizer=tokenizer,
        order=order,
        source_language=source_language,
        retag=retag,
        engine=engine,
    )
    if output.endswith(".html"):
        with open_text_output(output) as write:
            write(render_page(sentences, title=Path(output).name, edit=True))
    else:
        write_conllu(sentences, output)
