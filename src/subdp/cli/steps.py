"""The verbs for the single steps: `align`, `train`, `project`, `adapt`. Torch is imported when one of them runs."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from cyclopts import Parameter

from subdp.alignment.file_links import by_line, line_numbers
from subdp.alignment.links import read_alignments, score_alignments, write_alignments
from subdp.alignment.registry import find_aligner
from subdp.alignment.similarity import DEFAULT_METHOD, Method, SimilarityAligner
from subdp.cli.app import Flag, Input, Output, Seed, app, give, say
from subdp.corpus.bitext import Bitext, read_bitext
from subdp.corpus.corrected import read_trees
from subdp.corpus.treebank import Sentence, read_conllu
from subdp.network.shipped import SHIPPED
from subdp.support.engine import LocalEngine
from subdp.support.errors import SubdpError, counted
from subdp.support.files import open_text_output
from subdp.support.settings import LossesName, PresetName, Settings

if TYPE_CHECKING:
    from subdp.parser import Parser

Files: TypeAlias = Annotated[list[str], Parameter(consume_multiple=True)]
Changes: TypeAlias = dict[str, str] | None


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
    device: str | None = None,
    json: Flag = False,
) -> None:
    """Align the words of translated sentences; with --score, evaluate the alignment against gold links.

    Parameters
    ----------
    bitext
        One file of pairs (source TAB translation), or two parallel files, of text line by line or of CoNLL-U.
    output
        File to write the links to, in Pharaoh format (0-0 1-2), a line for each pair.
    tokenized
        The text is tokenised already: words are separated by spaces.
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
    from subdp.encoder.encoder import Encoder

    pairs = _read(bitext, tokenized)
    aligner = SimilarityAligner(Encoder.load(encoder, device), method, layer, one_to_one=one_to_one)
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
            hint = "sure links beyond the end of a sentence count as missed; is --tokenized missing?"
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
    parser: str | None = None,
    predict: str | None = None,
    preset: PresetName = "small",
    config: str | None = None,
    train: Changes = None,
    network: Changes = None,
    seed: Seed = 1,
    device: str | None = None,
    half: Flag = False,
    resume: Flag = False,
    title: str | None = None,
    licence: str | None = None,
) -> None:
    """Train a parser on a treebank.

    Parameters
    ----------
    treebank
        CoNLL-U file to train on.
    output
        Model folder to write.
    dev
        CoNLL-U file to choose the best epoch on.
    test
        CoNLL-U file to score the finished parser on.
    encoder
        Encoder: bundled, a model folder, or a Hugging Face name.
    parser
        Model folder of a parser to add the layers of --predict to, instead of training one; its trees stay as they are.
    predict
        Layers to predict besides trees, by commas: upos, xpos, feats:Case, misc:NE …; none for trees alone. By
        default upos, if the treebank has it.
    preset
        Network sizes and training lengths: small for a laptop, paper for a GPU.
    config
        TOML file with settings.
    train
        Settings of the training, such as --train.lr 0.001.
    network
        Settings of the network, such as --network.lstm 400.
    seed
        Random seed.
    device
        Device to run on, such as cpu, cuda or cuda:1; by default a GPU if there is one.
    half
        Store the weights in half precision.
    resume
        Resume a training that was interrupted.
    title
        Title of the model card.
    licence
        Licence of the parser, as the training data requires it, for the model card.
    """
    from subdp.encoder.encoder import Encoder
    from subdp.parser import Parser

    settings = Settings.resolve(preset, file=config, flags={"train": train or {}, "network": network or {}})
    Parser.check_folder(output)
    model = Encoder.load(encoder, device)
    checkpoints = _checkpoints(output, resume)
    gold = {name: list(read_conllu(path)) for name, path in (("dev", dev), ("test", test)) if path is not None}
    about = {"title": title or f"A parser trained on {Path(treebank).name}", "treebank": Path(treebank).name}
    if licence is not None:
        about["licence"] = licence
    trees = read_conllu(treebank)
    layers = None if predict is None else [] if predict == "none" else [name.strip() for name in predict.split(",")]
    if parser is not None:
        if not layers:
            raise SubdpError("no layer to add is named", hint="name some with --predict, such as upos or misc:NE")
        start = Parser.load(parser, encoder=None if encoder == "bundled" else encoder, device=device)
        options: Any = {"dev": gold.get("dev", ()), "settings": settings, "seed": seed, "folder": checkpoints}
        wider = start.with_layers(trees, layers, **options)
        named = {name: value for name, value in (("title", title), ("licence", licence)) if value is not None}
        settings = replace(settings, network=wider.config)
        _finish(replace(wider, about={**wider.about, **named}), output, checkpoints, settings, gold, half=half)
        return
    trained = Parser.train(
        trees,
        dev=gold.get("dev", ()),
        encoder=model,
        predict=layers,
        settings=settings,
        seed=seed,
        folder=checkpoints,
        about=about,
    )
    _finish(trained, output, checkpoints, settings, gold, half=half)


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
        Model folder of the source parser; by default the English one that comes with subdp.
    alignment
        argmax, itermax, match, a plug-in's name, or a file of links from another aligner.
    gold_trees
        CoNLL-U file that the bitext translates: its gold trees are projected, not parsed ones.
    one_to_one
        Keep only one-to-one links: drop the links of words that have more than one.
    tokenized
        The text is tokenised already: words are separated by spaces.
    jobs
        Processes that encode, align and project in parallel, each with its share of the cores.
    device
        Device to run on, such as cpu, cuda or cuda:1; by default a GPU if there is one.
    """
    from subdp.parser import Parser

    source = Parser.load(parser, device=device)
    pairs = _read(bitext, tokenized).clean()
    say(str(pairs.report))
    aligner = find_aligner(alignment, source.features, one_to_one=one_to_one)
    trees = None if gold_trees is None else read_conllu(gold_trees, any_roots=True)
    silver = source.project(pairs, aligner=aligner, trees=trees, folder=Path(output), engine=LocalEngine(jobs))
    say(f"{counted(len(silver), 'pair')} in {output}")


@app.command
def adapt(
    *,
    output: Output,
    silver: str | None = None,
    trees: Files | None = None,
    parser: str = str(SHIPPED),
    losses: LossesName = "default",
    preset: PresetName = "small",
    config: str | None = None,
    adapt: Changes = None,
    loss: Changes = None,
    encoder: str | None = None,
    seed: Seed = 1,
    device: str | None = None,
    resume: Flag = False,
) -> None:
    """Train a parser for the target language on silver data, gold trees or both, starting from the source parser.

    Parameters
    ----------
    output
        Model folder to write.
    silver
        Folder that `subdp project` wrote.
    trees
        CoNLL-U files with trees of the target language, such as corrected drafts; heads may be missing (_).
    parser
        Model folder of the source parser; by default the English one that comes with subdp.
    losses
        default, or paper for exactly the paper's losses.
    preset
        Network sizes and training lengths: small for a laptop, paper for a GPU.
    config
        TOML file with settings.
    adapt
        Settings of the training, such as --adapt.epochs 10.
    loss
        Settings of the losses, such as --loss.completion none.
    encoder
        Present location of the parser's encoder, if it was moved after training.
    seed
        Random seed.
    device
        Device to run on, such as cpu, cuda or cuda:1; by default a GPU if there is one.
    resume
        Resume a training that was interrupted.
    """
    from subdp.parser import Parser
    from subdp.projection.silver import SilverStore
    from subdp.projection.substructures import new_values

    settings = Settings.resolve(preset, losses, config, {"adapt": adapt or {}, "losses": loss or {}})
    if silver is None and not trees:
        raise SubdpError("there is nothing to learn from", hint="give --silver DIR, --trees FILE, or both")
    Parser.check_folder(output)
    store = None if silver is None else SilverStore(Path(silver)).check()
    gold = read_trees(trees or [])
    source = Parser.load(parser, encoder=encoder, device=device)
    checkpoints = _checkpoints(output, resume)
    if store is None:
        target = source.adapt_to_trees(gold, settings=settings, seed=seed, folder=checkpoints)
    else:
        target = source.adapt(store, trees=gold, settings=settings, seed=seed, folder=checkpoints)
    for note in new_values(source.inventory, target.inventory):
        say(note)
    _finish(target, output, checkpoints, settings, {})


def _read(files: list[str], tokenized: bool) -> Bitext:
    if len(files) > 2:
        raise SubdpError(f"a bitext of {len(files)} files", hint="give one file of pairs, or one for each language")
    bitext = read_bitext(files[0], files[1] if len(files) == 2 else None, tokenized=tokenized)
    for note in bitext.report.notes:
        say(note)
    return bitext


def _checkpoints(output: str, resume: bool) -> Path:
    """Where a training keeps its checkpoints; what is there already is used only when asked to resume."""
    folder = Path(f"{output.rstrip('/')}.training")
    if folder.is_dir() and any(folder.iterdir()) and not resume:
        hint = "continue it with --resume, or remove the folder to start over"
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
    """Score the parser on the gold sets, save it with its metrics and settings, and remove the checkpoints."""
    from subdp.training.loop import CHECKPOINT, METRICS

    folder = Path(output)
    scores = {name: parser.evaluate(trees) for name, trees in gold.items()}
    for name, result in scores.items():
        give(f"{name}: {result}")
    about = {**parser.about, "scores": {**parser.about.get("scores", {}), **{n: s.brief for n, s in scores.items()}}}
    replace(parser, about=about).save(folder, half=half)
    with open_text_output(folder / "config.toml") as write:
        write(settings.as_toml())
    shutil.copy(checkpoints / METRICS, folder / METRICS)
    for name in (CHECKPOINT, METRICS):  # and nothing else that may be there
        (checkpoints / name).unlink(missing_ok=True)
    if not any(checkpoints.iterdir()):
        checkpoints.rmdir()
    say(f"parser in {output}")
