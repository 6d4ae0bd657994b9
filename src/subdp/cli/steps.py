"""The verbs of the command line that work with parsers. Torch is imported when one of them runs, not before."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

from cyclopts import Parameter

from subdp.alignment.similarity import DEFAULT_METHOD, Method
from subdp.cli.app import Flag, Input, Output, app, give, say
from subdp.network.shipped import SHIPPED
from subdp.support.engine import LocalEngine
from subdp.support.errors import SubdpError, counted
from subdp.support.files import open_text_output
from subdp.support.settings import LossesName, PresetName, Settings

if TYPE_CHECKING:
    from subdp.corpus.bitext import Bitext
    from subdp.corpus.treebank import Sentence
    from subdp.parser import Parser

Files: TypeAlias = Annotated[list[str], Parameter(consume_multiple=True)]
Changes: TypeAlias = dict[str, str] | None
METRICS = "metrics.jsonl"


@app.command
def align(
    *,
    bitext: Files,
    output: Output = "-",
    tokenized: Flag = False,
    method: Method = DEFAULT_METHOD,
    layer: int | None = None,
    one_to_one: Flag = False,
    score: str | None = None,
    encoder: str = "bundled",
    json: Flag = False,
) -> None:
    """Align the words of translated sentences; with --score, say how well that fits gold alignments.

    Parameters
    ----------
    bitext
        One file of pairs (source TAB translation), or two files, line by line or CoNLL-U.
    output
        Where the links go, in Pharaoh's notation, one line a pair.
    tokenized
        The text has spaces between all words already.
    method
        argmax, itermax, match, forward or reverse.
    layer
        The encoder's layer whose vectors are compared.
    one_to_one
        Drop links whose words have other links.
    score
        File of gold links to compare with, instead of writing links.
    encoder
        bundled, a model folder, or a Hugging Face name.
    json
        Print scores as JSON.
    """
    from subdp.alignment.file_links import by_line, line_numbers
    from subdp.alignment.links import read_alignments, score_alignments, write_alignments
    from subdp.alignment.similarity import SimilarityAligner
    from subdp.encoder.encoder import Encoder

    pairs = _read(bitext, tokenized)
    aligner = SimilarityAligner(Encoder.load(encoder), method, layer, one_to_one=one_to_one)
    links = by_line(pairs, aligner.align(pairs))
    if score is None:
        write_alignments(links, output)
        return
    gold = list(read_alignments(score))
    for number, pair in zip(line_numbers(pairs) or range(1, len(pairs) + 1), pairs, strict=True):
        try:
            if number <= len(gold):
                gold[number - 1].check(len(pair.source), len(pair.target))
        except SubdpError as error:
            hint = "sure links beyond a sentence count as missed; is --tokenized missing?"
            say(f"{score}:{number}: {error.reason} ({hint})")
    scores = score_alignments(gold, list(links))
    give(scores.as_dict() if json else str(scores))


@app.command
def train(
    *,
    treebank: str,
    output: Output,
    dev: str | None = None,
    test: str | None = None,
    encoder: str = "bundled",
    predict: str | None = None,
    preset: PresetName = "small",
    config: str | None = None,
    train: Changes = None,
    network: Changes = None,
    seed: int = 1,
    half: Flag = False,
    resume: Flag = False,
    title: str | None = None,
    licence: str | None = None,
) -> None:
    """Train a parser on a treebank.

    Parameters
    ----------
    treebank
        CoNLL-U file to learn from.
    output
        The model folder to write.
    dev
        CoNLL-U file by which the best epoch is chosen.
    test
        CoNLL-U file on which the finished parser is scored.
    encoder
        bundled, a model folder, or a Hugging Face name.
    predict
        What to predict besides trees, separated by commas: upos, xpos, feats:Case, misc:NE …; none for trees alone. By
        default upos, if the treebank has it.
    preset
        small for a laptop, paper for a GPU.
    config
        TOML file with settings.
    train
        Settings of the training, as --train.lr 0.001.
    network
        Settings of the network, as --network.lstm 400.
    seed
        What all chance is drawn from.
    half
        Store the weights in half precision.
    resume
        Go on with a training that was interrupted.
    title
        What the model card calls the parser.
    licence
        The licence that the training data puts on the parser, for the model card.
    """
    from subdp.corpus.treebank import read_conllu
    from subdp.parser import Parser

    settings = Settings.resolve(preset, file=config, flags={"train": train or {}, "network": network or {}})
    checkpoints = _checkpoints(output, resume)
    gold = {name: list(read_conllu(path)) for name, path in (("dev", dev), ("test", test)) if path is not None}
    about = {"title": title or f"A parser trained on {Path(treebank).name}", "treebank": Path(treebank).name}
    if licence is not None:
        about["licence"] = licence
    trees = read_conllu(treebank)
    layers = None if predict is None else [] if predict == "none" else predict.split(",")
    parser = Parser.train(
        trees,
        dev=gold.get("dev", ()),
        encoder=encoder,
        predict=layers,
        settings=settings,
        seed=seed,
        folder=checkpoints,
        about=about,
    )
    _finish(parser, output, checkpoints, settings, gold, half=half)


@app.command
def project(
    *,
    bitext: Files,
    output: Output,
    parser: str = str(SHIPPED),
    alignment: str = "argmax",
    gold_trees: Input | None = None,
    one_to_one: Flag = False,
    tokenized: Flag = False,
    jobs: int = 1,
) -> None:
    """Parse the source side of translated text and align it: the silver that `adapt` learns from.

    Parameters
    ----------
    bitext
        One file of pairs (source TAB translation), or two files, line by line or CoNLL-U.
    output
        The folder for the silver; an interrupted projection goes on there.
    parser
        Model folder of the source parser; by default the English one that comes with subdp.
    alignment
        argmax, itermax, match, or a file of links made elsewhere.
    gold_trees
        CoNLL-U file whose translation the bitext is: its trees are projected, not what the parser says.
    one_to_one
        Drop links whose words have other links.
    tokenized
        The text has spaces between all words already.
    jobs
        Processes that encode, align and project, each with its share of the cores.
    """
    from subdp.alignment.registry import find_aligner
    from subdp.corpus.treebank import read_conllu
    from subdp.parser import Parser

    source = Parser.load(parser)
    pairs = _read(bitext, tokenized).clean()
    say(str(pairs.report))
    aligner = find_aligner(alignment, source.features, one_to_one=one_to_one)
    trees = None if gold_trees is None else read_conllu(gold_trees, any_roots=True)
    silver = source.project(pairs, aligner=aligner, trees=trees, folder=Path(output), engine=LocalEngine(jobs))
    say(f"{counted(len(silver), 'pair')} in {output}")


@app.command
def adapt(
    *,
    silver: str,
    output: Output,
    parser: str = str(SHIPPED),
    losses: LossesName = "default",
    preset: PresetName = "small",
    config: str | None = None,
    adapt: Changes = None,
    loss: Changes = None,
    encoder: str | None = None,
    seed: int = 1,
    resume: Flag = False,
) -> None:
    """Train a parser for the target language on silver, starting from the source parser.

    Parameters
    ----------
    silver
        Folder that `subdp project` made.
    output
        The model folder to write.
    parser
        Model folder of the source parser; by default the English one that comes with subdp.
    losses
        default, or paper for the paper's formulas to the letter.
    preset
        small for a laptop, paper for a GPU.
    config
        TOML file with settings.
    adapt
        Settings of the training, as --adapt.epochs 10.
    loss
        Settings of the losses, as --loss.completion none.
    encoder
        Where the parser's encoder is now, if not where it was when the parser was trained.
    seed
        What all chance is drawn from.
    resume
        Go on with a training that was interrupted.
    """
    from subdp.parser import Parser
    from subdp.projection.silver import SilverStore

    settings = Settings.resolve(preset, losses, config, {"adapt": adapt or {}, "losses": loss or {}})
    source, store = Parser.load(parser, encoder=encoder), SilverStore(Path(silver)).check()
    checkpoints = _checkpoints(output, resume)
    target = source.adapt(store, settings=settings, seed=seed, folder=checkpoints)
    _finish(target, output, checkpoints, settings, {})


def _read(files: list[str], tokenized: bool) -> Bitext:
    from subdp.corpus.bitext import read_bitext

    if len(files) > 2:
        raise SubdpError(f"{len(files)} files make no bitext", hint="give one file of pairs, or one for each language")
    bitext = read_bitext(files[0], files[1] if len(files) == 2 else None, tokenized=tokenized)
    for note in bitext.report.notes:
        say(note)
    return bitext


def _checkpoints(output: str, resume: bool) -> Path:
    """Where a training keeps what it needs to go on; anew unless told to resume."""
    folder = Path(f"{output.rstrip('/')}.training")
    if folder.is_dir() and any(folder.iterdir()) and not resume:
        hint = "go on with --resume, or remove the folder to begin anew"
        raise SubdpError("an interrupted training is here", where=str(folder), hint=hint)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SubdpError(f"cannot be written: {error.strerror}", where=str(folder)) from None
    return folder


def _finish(
    parser: Parser,
    output: str,
    checkpoints: Path,
    settings: Settings,
    gold: dict[str, list[Sentence]],
    *,
    half: bool = False,
) -> None:
    """Score the parser on the gold sets, save it with its metrics and settings, and clear the checkpoints away."""
    folder = Path(output)
    scores = {name: parser.evaluate(trees) for name, trees in gold.items()}
    for name, result in scores.items():
        give(f"{name}: {result}")
    about = {**parser.about, "scores": {name: result.brief for name, result in scores.items()}}
    replace(parser, about=about).save(folder, half=half)
    with open_text_output(folder / "config.toml") as write:
        write(settings.as_toml())
    shutil.copy(checkpoints / METRICS, folder / METRICS)
    shutil.rmtree(checkpoints)
    say(f"parser in {output}")
