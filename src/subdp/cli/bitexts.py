"""The verbs for translated text: `translate`, `align`, `project` and `convert-criss`. No torch before one needs it."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, TypeAlias

from cyclopts import Parameter

from subdp.alignment.file_links import as_line, by_line, line_numbers
from subdp.alignment.links import Alignment, read_alignments, score_alignments, write_alignments
from subdp.alignment.registry import find_aligner
from subdp.alignment.similarity import DEFAULT_METHOD
from subdp.cli.app import Flag, Input, Output, give, say
from subdp.cli.engines import EngineName, Jobs, RayAddress, find_engine
from subdp.cli.flags import (
    AlignerName,
    Bitext,
    Bits,
    Device,
    EncoderName,
    Method,
    OneToOne,
    SourceParser,
    SourceTokenizer,
    TargetTokenizer,
    Tokenized,
)
from subdp.corpus import bitext as corpus
from subdp.corpus.tokenizers import AUTO
from subdp.corpus.treebank import read_conllu
from subdp.support.errors import SubdpError, counted
from subdp.support.files import open_text_output, write_json
from subdp.support.settings import LOSSES
from subdp.translation.translate import find_translator
from subdp.translation.translate import translate as translate_file

From: TypeAlias = Annotated[str, Parameter(name="--from")]


def translate(
    file: Input,
    *,
    output: Output,
    to: str,
    source: From = "en",
    translator: str,
    beams: int | None = None,
    device: str | None = None,
    batch: int = 200,
) -> None:
    """Translate text, or a treebank's sentences, into a bitext; if interrupted, the same command resumes.

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
        Number of sentences given to the translator at a time; use more for a command that is slow to start.
    """
    found = find_translator(translator, source, to, beams=beams, device=device)
    say(f"translating with {found.name}")
    try:
        result = translate_file(file, output, found, batch=batch)
    except KeyboardInterrupt:
        if output != "-":
            say("stopped; what is finished is kept, and the same command resumes from there")
        raise
    say(f"{counted(result.sentences, 'sentence')} in {output}")
    if result.missing:
        say(f"{result.missing:,} without a translation: none came back, or the sentence is too long for the model")


def align(
    *,
    bitext: Bitext,
    output: Output | None = None,
    tokenized: Tokenized = False,
    tokenizer: TargetTokenizer = AUTO,
    source_tokenizer: SourceTokenizer = AUTO,
    write_words: Input | None = None,
    method: Method = DEFAULT_METHOD,
    layer: int | None = None,
    one_to_one: OneToOne = False,
    score: str | None = None,
    encoder: EncoderName = "bundled",
    encoder_bits: Bits = 32,
    device: Device = None,
    json: Flag = False,
) -> None:
    """Align the words of translated sentences; with --score, evaluate the alignment against gold links.

    Parameters
    ----------
    output
        File to write the links to, in Pharaoh format (0-0 1-2), one line per pair; by default standard output.
    write_words
        File to write the words of each pair to, for another aligner: separated by spaces, a tab between source and
        target, on the same lines as the links. Without --output or --score, no links are made.
    method
        argmax, itermax, match, forward, reverse, or a plug-in's name.
    layer
        Encoder layer whose vectors are compared; not for plug-ins.
    score
        File of gold links to score the links against, instead of writing them.
    json
        Print scores as JSON.
    """
    pairs = _read(bitext, tokenized, tokenizer, source_tokenizer)
    if write_words is not None:
        with open_text_output(write_words) as write:
            for line in by_line(pairs, map(as_line, pairs), ""):
                write(line + "\n")
        if output is None and score is None:
            return
    from subdp.encoder.encoder import Encoder

    model = Encoder.load(encoder, device, bits=encoder_bits)
    aligner = find_aligner(method, model, layer=layer, one_to_one=one_to_one)
    links = by_line(pairs, aligner.align(pairs), Alignment.of([]))
    if score is None:
        write_alignments(links, output or "-")
        return
    gold = list(read_alignments(score))
    for number, pair in zip(line_numbers(pairs) or range(1, len(pairs) + 1), pairs, strict=True):
        try:
            if number <= len(gold):
                gold[number - 1].check(len(pair.source), len(pair.target))
        except SubdpError as error:
            hint = "sure links beyond the end of a sentence count as missed; is --tokenized missing?"
            say(f"{score}:{number}: {error.reason} ({hint})")
    scores = score_alignments(gold, list(links))
    give(scores.as_dict() if json else str(scores))


def project(
    *,
    bitext: Bitext,
    output: Output,
    parser: SourceParser = "en",
    alignment: AlignerName = "argmax",
    gold_trees: Input | None = None,
    one_to_one: OneToOne = False,
    tokenized: Tokenized = False,
    tokenizer: TargetTokenizer = AUTO,
    source_tokenizer: SourceTokenizer = AUTO,
    jobs: Jobs = None,
    engine: EngineName = "local",
    ray_address: RayAddress = None,
    encoder_bits: Bits = 32,
    device: Device = None,
) -> None:
    """Parse the source side of translated text and align it with the target: silver data for `adapt`.

    Parameters
    ----------
    output
        Folder to write the silver data to; an interrupted projection is resumed there.
    alignment
        argmax, itermax, match, a plug-in's name, or a file of links from another aligner.
    gold_trees
        CoNLL-U file that the bitext translates: its gold trees replace the source parser's.
    """
    from subdp.parser import Parser
    from subdp.pipeline.checks import WARNINGS, pair_cautions, size_cautions, text_cautions
    from subdp.projection.quality import measure

    runner = find_engine(engine, ray_address, jobs, device)
    source = Parser.load(parser, device=device, bits=encoder_bits)
    read = _read(bitext, tokenized, tokenizer, source_tokenizer)
    pairs = read.clean()
    cautions = text_cautions(read)
    say("\n".join([str(pairs.report), *map(str, cautions)]))
    aligner = find_aligner(alignment, source.encoder, store=source.features, one_to_one=one_to_one)
    trees = None if gold_trees is None else read_conllu(gold_trees, any_roots=True)
    silver = source.project(pairs, aligner=aligner, trees=trees, folder=Path(output), engine=runner)
    projected = measure(silver, LOSSES["default"].many_to_one, runner).as_dict()
    more = [*pair_cautions(source, silver, pairs.where), *size_cautions(projected)]
    warnings = [asdict(caution) for caution in [*cautions, *more]]
    found = {WARNINGS: warnings, "filters": pairs.report.as_dict(), "projection": projected}
    write_json(Path(output) / "report.json", found)
    say("\n".join([*map(str, more), f"{counted(len(silver), 'pair')} in {output}; see report.json for their quality"]))


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


def _read(files: list[str], tokenized: bool, tokenizer: str, source_tokenizer: str) -> corpus.Bitext:
    if len(files) > 2:
        raise SubdpError(f"a bitext of {len(files)} files", hint="give one file of pairs, or one for each language")
    options: Any = {"tokenized": tokenized, "tokenizer": tokenizer, "source_tokenizer": source_tokenizer}
    return corpus.read_bitext(files[0], files[1] if len(files) == 2 else None, **options)
