"""The verbs for translated text: `align` and `project`. Torch is imported when one of them runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from subdp.alignment.file_links import as_line, by_line, line_numbers
from subdp.alignment.links import Alignment, read_alignments, score_alignments, write_alignments
from subdp.alignment.registry import find_aligner
from subdp.alignment.similarity import DEFAULT_METHOD, Method, SimilarityAligner
from subdp.cli.app import Files, Flag, Input, Output, give, say
from subdp.corpus.bitext import Bitext, read_bitext
from subdp.corpus.tokenizers import AUTO
from subdp.corpus.treebank import read_conllu
from subdp.support.engine import LocalEngine
from subdp.support.errors import SubdpError, counted
from subdp.support.files import open_text_output


def align(
    *,
    bitext: Files,
    output: Output | None = None,
    tokenized: Flag = False,
    tokenizer: str = AUTO,
    source_tokenizer: str = AUTO,
    write_words: Input | None = None,
    method: Method = DEFAULT_METHOD,
    layer: int | None = None,
    one_to_one: Flag = False,
    score: str | None = None,
    encoder: str = "bundled",
    device: str | None = None,
    json: Flag = False,
) -> None:
    """Align the words of translated sentences; with --score, evaluate the alignment against gold links.

    Parameters
    ----------
    bitext
        One file of pairs (source TAB translation), or two parallel files, of text line by line or of CoNLL-U.
    output
        File to write the links to, in Pharaoh format (0-0 1-2), a line for each pair; by default standard output.
    tokenized
        The text is tokenised already: words are separated by spaces.
    tokenizer
        Tokenizer of the target: unicode, zh, ja, th or a plug-in's name; by default the one that its script calls for.
    source_tokenizer
        Tokenizer of the source, likewise.
    write_words
        File to write the words of each pair to, for another aligner: separated by spaces, a tab between source and
        target, in the same lines as the links. Without --output or --score, no links are made.
    method
        argmax, itermax, match, forward or reverse.
    layer
        Encoder layer whose vectors are compared.
    one_to_one
        Keep only one-to-one links: drop the links of words that have more than one.
    score
        File of gold links to score the links against, instead of writing them.
    encoder
        Encoder: bundled, a model folder, or a Hugging Face name.
    device
        Device to run on, such as cpu, cuda or cuda:1; by default a GPU if there is one.
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

    aligner = SimilarityAligner(Encoder.load(encoder, device), method, layer, one_to_one=one_to_one)
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
    bitext: Files,
    output: Output,
    parser: str = "en",
    alignment: str = "argmax",
    gold_trees: Input | None = None,
    one_to_one: Flag = False,
    tokenized: Flag = False,
    tokenizer: str = AUTO,
    source_tokenizer: str = AUTO,
    jobs: int = 1,
    device: str | None = None,
) -> None:
    """Parse the source side of translated text and align it with the target: silver data for `adapt`.

    Parameters
    ----------
    bitext
        One file of pairs (source TAB translation), or two parallel files, of text line by line or of CoNLL-U.
    output
        Folder to write the silver data to; an interrupted projection is resumed there.
    parser
        Source parser: a model folder, a name on the Hugging Face Hub, or en, the English one that comes with subdp.
    alignment
        argmax, itermax, match, a plug-in's name, or a file of links from another aligner.
    gold_trees
        CoNLL-U file that the bitext translates: its gold trees are projected, not parsed ones.
    one_to_one
        Keep only one-to-one links: drop the links of words that have more than one.
    tokenized
        The text is tokenised already: words are separated by spaces.
    tokenizer
        Tokenizer of the target: unicode, zh, ja, th or a plug-in's name; by default the one that its script calls for.
    source_tokenizer
        Tokenizer of the source, likewise.
    jobs
        Processes that encode, align and project in parallel, each with its share of the cores.
    device
        Device to run on, such as cpu, cuda or cuda:1; by default a GPU if there is one.
    """
    from subdp.parser import Parser
    from subdp.pipeline.checks import pair_cautions, size_cautions, text_cautions
    from subdp.projection.quality import pair_qualities, summary

    read = _read(bitext, tokenized, tokenizer, source_tokenizer)
    pairs = read.clean()
    source = Parser.load(parser, device=device)
    say("\n".join([str(pairs.report), *map(str, text_cautions(read))]))
    aligner = find_aligner(alignment, source.features, one_to_one=one_to_one)
    trees = None if gold_trees is None else read_conllu(gold_trees, any_roots=True)
    silver = source.project(pairs, aligner=aligner, trees=trees, folder=Path(output), engine=LocalEngine(jobs))
    cautions = [*pair_cautions(source, silver, pairs.where), *size_cautions(summary(list(pair_qualities(silver))))]
    say("\n".join([*map(str, cautions), f"{counted(len(silver), 'pair')} in {output}"]))


def _read(files: list[str], tokenized: bool, tokenizer: str, source_tokenizer: str) -> Bitext:
    if len(files) > 2:
        raise SubdpError(f"a bitext of {len(files)} files", hint="give one file of pairs, or one for each language")
    options: Any = {"tokenized": tokenized, "tokenizer": tokenizer, "source_tokenizer": source_tokenizer}
    return read_bitext(files[0], files[1] if len(files) == 2 else None, **options)
