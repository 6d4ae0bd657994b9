"""The verbs that give text its trees: `parse` and `annotate`. Torch is imported when one of them runs."""

from __future__ import annotations

from pathlib import Path

from subdp.cli.app import Flag, Input, Output
from subdp.corpus.draft import TextFormat, read_sentences
from subdp.corpus.treebank import write_conllu
from subdp.drawing.page import render_page
from subdp.pipeline.annotate import AnnotateFormat, Order
from subdp.pipeline.annotate import annotate as drafts
from subdp.support.engine import LocalEngine
from subdp.support.files import open_text_output


def parse(
    file: Input,
    *,
    parser: str = "en",
    format: TextFormat | None = None,
    tokenizer: str | None = None,
    confidence: Flag = False,
    retag: Flag = False,
    encoder: str | None = None,
    jobs: int = 1,
    device: str | None = None,
    output: Output = "-",
) -> None:
    """Parse text, or fill in the trees and tags of a CoNLL-U file.

    Parameters
    ----------
    file
        Raw text, tokenised text or CoNLL-U; - is standard input.
    parser
        Parser: a model folder, a name on the Hugging Face Hub, or en, the English one that comes with subdp.
    format
        text, words (one sentence per line, words separated by spaces) or conllu; by default told by the file's ending.
    tokenizer
        Tokenizer for raw text: unicode, zh, ja, th, a plug-in's name, or auto for the one that the script calls for; by
        default the one that the parser was made with, or else auto.
    confidence
        Add the probabilities of heads, labels and tags, and their rivals, to MISC.
    retag
        Predict tags also for words that have them already.
    encoder
        Present location of the parser's encoder, if it was moved after training.
    jobs
        Processes that parse in parallel, each with its share of the cores.
    device
        Device to run on, such as cpu, cuda or cuda:1; by default a GPU if there is one.
    output
        CoNLL-U file to write.
    """
    from subdp.parser import Parser

    model = Parser.load(parser, encoder=encoder, device=device)
    sentences = read_sentences(file, format, tokenizer or model.tokenizer)
    write_conllu(model.parse(sentences, confidence=confidence, retag=retag, engine=LocalEngine(jobs)), output)


def annotate(
    file: Input,
    *,
    parser: str = "en",
    format: AnnotateFormat | None = None,
    tokenizer: str | None = None,
    order: Order = "document",
    source_language: str = "en",
    retag: Flag = False,
    encoder: str | None = None,
    jobs: int = 1,
    device: str | None = None,
    output: Output = "-",
) -> None:
    """Draft trees for an annotator to correct: on a page, or as CoNLL-U with probabilities and rivals in MISC.

    Parameters
    ----------
    file
        Raw text, tokenised text, CoNLL-U, or a bitext (source TAB target) whose target side is annotated.
    parser
        Parser: a model folder, a name on the Hugging Face Hub, or en, the English one that comes with subdp.
    format
        text, words (one sentence per line, words separated by spaces), conllu or bitext; by default told by the file's
        ending.
    tokenizer
        Tokenizer for raw text: unicode, zh, ja, th, a plug-in's name, or auto for the one that the script calls for; by
        default the one that the parser was made with, or else auto.
    order
        document, or doubt for the sentences that the parser is least sure of first.
    source_language
        Code of the language that a bitext was translated from: its sentence becomes the comment # text_en.
    retag
        Predict UPOS also for words that have one already.
    encoder
        Present location of the parser's encoder, if it was moved after training.
    jobs
        Processes that parse in parallel, each with its share of the cores.
    device
        Device to run on, such as cpu, cuda or cuda:1; by default a GPU if there is one.
    output
        File to write: .html for a page to correct the trees on, which opens in any browser; CoNLL-U otherwise.
    """
    from subdp.parser import Parser

    model, engine = Parser.load(parser, encoder=encoder, device=device), LocalEngine(jobs)
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
            write(render_page((sentence.conllu for sentence in sentences), title=Path(output).name, edit=True))
    else:
        write_conllu(sentences, output)
