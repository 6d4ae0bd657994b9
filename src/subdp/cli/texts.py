"""The verbs that give text its trees: `parse` and `annotate`. Torch is imported when one of them runs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from subdp.cli.app import Address, Flag, Input, say
from subdp.cli.engines import EngineName, Jobs, RayAddress, find_engine
from subdp.cli.flags import Bits, Device, MovedEncoder, ParserName, TextTokenizer
from subdp.corpus.draft import AnyFormat, TextFormat, format_of, read_sentences
from subdp.corpus.tokenizers import peeked
from subdp.corpus.treebank import Sentence, write_conllu
from subdp.drawing.page import render_page
from subdp.pipeline.annotate import Order, read_drafts, with_doubt
from subdp.pipeline.annotate import annotate as drafts
from subdp.support.errors import SubdpError, counted
from subdp.support.files import check_input, file_hash, open_text_output
from subdp.support.shard_folder import is_folder

if TYPE_CHECKING:
    from subdp.parser import Parser


def parse(
    file: Input,
    *,
    parser: ParserName = "en",
    format: TextFormat | None = None,
    tokenizer: TextTokenizer = None,
    confidence: Flag = False,
    retag: Flag = False,
    encoder: MovedEncoder = None,
    encoder_bits: Bits = 32,
    jobs: Jobs = None,
    engine: EngineName = "local",
    ray_address: RayAddress = None,
    device: Device = None,
    output: Address = "-",
) -> None:
    """Parse text, or fill in the trees and tags of a CoNLL-U file.

    Parameters
    ----------
    file
        Raw text, tokenised text or CoNLL-U; - is standard input.
    format
        text, words (one sentence per line, words separated by spaces) or conllu; by default inferred from the file
        name.
    confidence
        Add the probabilities of heads, labels and tags, and their rivals, to MISC.
    retag
        Predict tags even for words that already have them.
    output
        CoNLL-U file to write; or a folder, if it ends in a slash or is an address such as s3://bucket/folder: then the
        result is in numbered files, and if interrupted, the same command resumes.
    """
    check_input(file)
    _check_folder(file, output)
    from subdp.parser import Parser

    runner = find_engine(engine, ray_address, jobs, device)
    model = Parser.load(parser, encoder=encoder, device=device, bits=encoder_bits)
    reading: Any = (file, format, tokenizer or model.tokenizer)
    options: Any = {"confidence": confidence, "retag": retag, "engine": runner}
    if not is_folder(output):
        write_conllu(model.parse(read_sentences(*reading), **options), output)
        return
    made_from = {"text": file_hash(file), "format": format_of(file, format), "tokenizer": reading[2]}
    _to_folder(model, read_sentences(*reading), output, made_from, options)


def annotate(
    file: Input,
    *,
    parser: ParserName = "en",
    format: AnyFormat | None = None,
    tokenizer: TextTokenizer = None,
    order: Order = "document",
    source_language: str = "en",
    retag: Flag = False,
    encoder: MovedEncoder = None,
    encoder_bits: Bits = 32,
    jobs: Jobs = None,
    engine: EngineName = "local",
    ray_address: RayAddress = None,
    device: Device = None,
    output: Address = "-",
) -> None:
    """Draft trees for an annotator to correct: on a page, or as CoNLL-U with probabilities and rivals in MISC.

    Parameters
    ----------
    file
        Raw text, tokenised text, CoNLL-U, or a bitext (source TAB target) whose target side is annotated.
    format
        text, words (one sentence per line, words separated by spaces), conllu or bitext; by default inferred from the
        file name.
    order
        document, or doubt for the sentences that the parser is least sure of first.
    source_language
        Code of a bitext's source language: the source sentence becomes the comment # text_en.
    retag
        Predict tags even for words that already have them.
    output
        File to write: .html for a page to correct the trees on, which opens in any browser; CoNLL-U otherwise, or a
        folder of numbered files, as for parse.
    """
    check_input(file)
    _check_folder(file, output)
    if is_folder(output) and order != "document":
        hint = "name a file, or leave out --order; each sentence has its doubt as a comment"
        raise SubdpError(f"numbered files cannot be in the order of {order}", where=output, hint=hint)
    from subdp.parser import Parser

    runner = find_engine(engine, ray_address, jobs, device)
    model = Parser.load(parser, encoder=encoder, device=device, bits=encoder_bits)
    reading: Any = {
        "format": format_of(file, format),
        "tokenizer": tokenizer or model.tokenizer,
        "source_language": source_language,
    }
    options: Any = {"retag": retag, "engine": runner}
    if is_folder(output):
        options |= {"confidence": True, "finish": with_doubt}
        made_from = {"drafts of": file_hash(file), **reading}
        _to_folder(model, read_drafts(file, model, **reading), output, made_from, options)
        return
    sentences = drafts(file, model, order=order, **reading, **options)
    if output.endswith(".html"):
        with open_text_output(output) as write:
            write(render_page((sentence.conllu for sentence in sentences), title=Path(output).name, edit=True))
        say(f"drafts in {output}: open it in a browser")
    else:
        write_conllu(sentences, output)


def _check_folder(file: str, output: str) -> None:
    if file == "-" and is_folder(output):
        raise SubdpError("standard input cannot be parsed to a folder", hint="name a file, which can be read again")


def _to_folder(
    model: Parser, sentences: Iterator[Sentence], output: str, made_from: dict[str, Any], options: Any
) -> None:
    """Parse sentences to numbered files. The first are read before, so that what is no text leaves no folder."""
    from subdp.pipeline.parsing import parse_to_folder

    _, read = peeked(sentences)
    parsed = parse_to_folder(model, read, output, made_from, **options)
    say(f"{counted(parsed, 'sentence')} parsed now, in {output}")
