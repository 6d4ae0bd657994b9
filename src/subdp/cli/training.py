"""The verbs that train a parser: `train`, `adapt` and `distill`. Torch is imported when one of them runs."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from subdp.cli.app import Files, Output, Seed, give, say
from subdp.cli.flags import (
    AdaptChanges,
    Bits,
    Config,
    Device,
    EncoderName,
    Half,
    LossChanges,
    LossesFlag,
    MovedEncoder,
    NetworkChanges,
    PresetFlag,
    Resume,
    SmallNetworkChanges,
    SmallTrainChanges,
    SourceParser,
    TextTokenizer,
    TrainChanges,
    TuneChanges,
)
from subdp.corpus.corrected import read_gold, read_trees
from subdp.corpus.draft import AnyFormat
from subdp.corpus.treebank import Sentence, read_conllu
from subdp.pipeline.annotate import read_text
from subdp.support.errors import SubdpError
from subdp.support.files import check_input, open_text_output
from subdp.support.settings import Settings

if TYPE_CHECKING:
    from subdp.parser import Parser


def train(
    *,
    treebank: str,
    output: Output,
    dev: str | None = None,
    test: str | None = None,
    encoder: EncoderName = "bundled",
    encoder_bits: Bits = 32,
    parser: str | None = None,
    predict: str | None = None,
    preset: PresetFlag = "small",
    config: Config = None,
    train: TrainChanges = None,
    network: NetworkChanges = None,
    seed: Seed = 1,
    device: Device = None,
    half: Half = False,
    resume: Resume = False,
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
    parser
        Parser (a model folder, a name on the Hugging Face Hub, or en) to add the layers of --predict to, instead of
        training one; its trees stay as they are.
    predict
        Layers to predict besides trees, separated by commas: upos, xpos, feats:Case, misc:NE …; none for trees alone.
        By default upos, if the treebank has it.
    seed
        Random seed.
    title
        Title of the model card.
    licence
        Licence of the parser for the model card, as the training data requires.
    """
    from subdp.encoder.encoder import Encoder
    from subdp.parser import Parser

    settings = Settings.resolve(preset, file=config, flags={"train": train or {}, "network": network or {}})
    Parser.check_folder(output)
    layers = None if predict is None else [] if predict == "none" else [name.strip() for name in predict.split(",")]
    if parser is None:
        start: Encoder | Parser = Encoder.load(encoder, device, bits=encoder_bits)
    elif network:
        hint = "leave out the settings of the network"
        raise SubdpError("the network of a parser that layers are added to stays as it is", hint=hint)
    elif layers:
        moved = None if encoder == "bundled" else encoder
        start = Parser.load(parser, encoder=moved, device=device, bits=encoder_bits)
    else:
        raise SubdpError("no layer to add is named", hint="name some with --predict, such as upos or misc:NE")
    gold = {name: read_gold(path) for name, path in (("dev", dev), ("test", test)) if path is not None}
    about = {"title": title or f"A parser trained on {Path(treebank).name}", "treebank": Path(treebank).name}
    if licence is not None:
        about["licence"] = licence
    with _checkpoints(output, resume) as checkpoints:
        trees = read_conllu(treebank)
        options: Any = {"dev": gold.get("dev", ()), "settings": settings, "seed": seed, "folder": checkpoints}
        if isinstance(start, Parser):
            wider = start.with_layers(trees, layers or [], **options)
            named = {name: value for name, value in (("title", title), ("licence", licence)) if value is not None}
            trained = replace(wider, about={**wider.about, **named})
            settings = replace(settings, network=wider.config)
        else:
            trained = Parser.train(trees, encoder=start, predict=layers, about=about, **options)
        _finish(trained, output, checkpoints, settings, gold, half=half)


def adapt(
    *,
    output: Output,
    silver: str | None = None,
    trees: Files | None = None,
    parser: SourceParser = "en",
    losses: LossesFlag = "default",
    preset: PresetFlag = "small",
    config: Config = None,
    adapt: AdaptChanges = None,
    tune: TuneChanges = None,
    loss: LossChanges = None,
    encoder: MovedEncoder = None,
    encoder_bits: Bits = 32,
    seed: Seed = 1,
    device: Device = None,
    resume: Resume = False,
) -> None:
    """Train a parser for the target language on silver data, on gold trees, or on both in that order.

    Parameters
    ----------
    output
        Model folder to write.
    silver
        Folder that `subdp project` wrote.
    trees
        CoNLL-U files with trees of the target language, such as corrected drafts; heads may be missing (_).
    seed
        Random seed.
    """
    from subdp.parser import Parser
    from subdp.projection.silver import SilverStore
    from subdp.projection.substructures import new_values

    changes = {"adapt": adapt or {}, "tune": tune or {}, "losses": loss or {}}
    settings = Settings.resolve(preset, losses, config, changes)
    if silver is None and not trees:
        raise SubdpError("there is nothing to learn from", hint="give --silver DIR, --trees FILE, or both")
    Parser.check_folder(output)
    store = None if silver is None else SilverStore(Path(silver)).check()
    gold = read_trees(trees or [])
    source = Parser.load(parser, encoder=encoder, device=device, bits=encoder_bits)
    with _checkpoints(output, resume) as checkpoints:
        if store is None:
            target = source.adapt_to_trees(gold, settings=settings, seed=seed, folder=checkpoints)
        else:
            target = source.adapt(store, trees=gold, settings=settings, seed=seed, folder=checkpoints)
        for note in new_values(source.inventory, target.inventory):
            say(note)
        _finish(target, output, checkpoints, settings, {})


def distill(
    parser: str,
    *,
    text: Files,
    output: Output,
    format: AnyFormat | None = None,
    tokenizer: TextTokenizer = None,
    test: str | None = None,
    config: str | None = None,
    network: SmallNetworkChanges = None,
    train: SmallTrainChanges = None,
    encoder: MovedEncoder = None,
    encoder_bits: Bits = 32,
    seed: Seed = 1,
    device: Device = None,
    half: Half = False,
    resume: Resume = False,
) -> None:
    """Make a smaller parser, many times as fast: train it on what a larger one predicts on raw text.

    Parameters
    ----------
    parser
        Parser to learn from: a model folder, a name on the Hugging Face Hub, or one that ships: en (English), multi (80
        languages).
    text
        Files with text of its language: raw text, tokenised text, CoNLL-U, or a bitext (source TAB target) whose target
        side is taken. Annotation is not used.
    output
        Model folder to write.
    format
        text, words (one sentence per line, words separated by spaces), conllu or bitext; by default inferred from the
        file name.
    test
        CoNLL-U file to score both parsers on.
    config
        TOML file with settings of the smaller parser: [network] and [train].
    seed
        Random seed.
    """
    for file in text:
        check_input(file)
    from subdp.parser import Parser
    from subdp.training.distilling import check_frozen

    flags = {"train": train or {}, "network": network or {}}
    settings = Settings.resolve("distilled", file=config, flags=flags)
    check_frozen(settings.train)
    Parser.check_folder(output)
    gold = {} if test is None else {"test": read_gold(test)}
    teacher = Parser.load(parser, encoder=encoder, device=device, bits=encoder_bits)
    sentences = (one for file in text for one in read_text(file, format, tokenizer or teacher.tokenizer))
    with _checkpoints(output, resume) as checkpoints:
        small = teacher.distill(sentences, settings=settings, seed=seed, folder=checkpoints)
        for name, trees in gold.items():
            give(f"{name}, {parser}: {teacher.evaluate(trees)}")
        _finish(small, output, checkpoints, settings, gold, half=half)


@contextmanager
def _checkpoints(output: str, resume: bool) -> Iterator[Path]:
    """Where a training keeps its checkpoints; what is there already is used only when asked to resume.

    A folder that is empty in the end is removed.
    """
    folder = Path(f"{output.rstrip('/')}.training")
    if folder.is_dir() and any(folder.iterdir()) and not resume:
        hint = "resume it with --resume, or remove the folder to start over"
        raise SubdpError("holds an interrupted training run", where=str(folder), hint=hint)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SubdpError(f"cannot be written: {error.strerror}", where=str(folder)) from None
    try:
        yield folder
    finally:
        with suppress(OSError):
            folder.rmdir()


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
    from subdp.parser import TREES
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
    shutil.rmtree(checkpoints / TREES, ignore_errors=True)
    say(f"parser in {output}")
