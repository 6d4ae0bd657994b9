"""The verbs for the whole method: `run` and `quickstart`. Torch is imported when one of them needs it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from subdp.cli.app import Flag, Output, Seed, give, say
from subdp.cli.engines import EngineName, Jobs, RayAddress, find_engine
from subdp.cli.flags import AdaptChanges, AlignerName, Bits, LossChanges, NetworkChanges, TrainChanges, TuneChanges
from subdp.pipeline.options import RunOptions
from subdp.support.errors import SubdpError
from subdp.support.settings import LossesName, PresetName, Settings

# None where a flag is not given: the configuration file's value, or else the default, applies then.
Names = Annotated[list[str] | None, Parameter(consume_multiple=True, negative="")]
Choice = Annotated[bool | None, Parameter(negative="")]


def run(
    *,
    output: Output,
    bitext: Names = None,
    treebank: str | None = None,
    source_parser: Names = None,
    gold_trees: Names = None,
    trees: Names = None,
    dev: str | None = None,
    test: str | None = None,
    aligner: AlignerName | None = None,
    one_to_one: Choice = None,
    tokenized: Choice = None,
    tokenizer: str | None = None,
    source_tokenizer: str | None = None,
    preset: PresetName | None = None,
    losses: LossesName | None = None,
    encoder: str | None = None,
    encoder_bits: Bits | None = None,
    config: str | None = None,
    train: TrainChanges = None,
    network: NetworkChanges = None,
    adapt: AdaptChanges = None,
    tune: TuneChanges = None,
    loss: LossChanges = None,
    seed: Seed | None = None,
    jobs: Jobs = None,
    engine: EngineName = "local",
    ray_address: RayAddress = None,
    ranks: int = 1,
    device: str | None = None,
    dry_run: Flag = False,
    json: Flag = False,
) -> None:
    """Make a parser from translated text in one command; if interrupted, the same command resumes.

    Parameters
    ----------
    output
        Folder to write all results to: parser/, report.json, config.toml and, with gold trees, scores.json.
    bitext
        Files of pairs (source TAB translation); join two parallel text or CoNLL-U files by a comma: en.txt,de.txt.
    treebank
        CoNLL-U file to train the source parser on first.
    source_parser
        Source parser, or one for each bitext: a model folder, a name on the Hugging Face Hub, or en, the English one
        that comes with subdp; en by default. Only en is averaged with the multilingual parser before it is adapted.
    gold_trees
        Treebank that the bitext translates, or one for each bitext: its gold trees replace the source parser's.
    trees
        CoNLL-U files with trees of the target language to train on at the end, such as corrected drafts; heads may be
        missing (_).
    dev
        CoNLL-U file with gold trees of the target language to tune settings on; never trained on.
    test
        CoNLL-U file with gold trees of the target language to report scores on.
    aligner
        argmax (the default), itermax, match, a plug-in's name, or a file of links from another aligner.
    one_to_one
        Keep only one-to-one links: drop the links of words that have more than one.
    tokenized
        The text is tokenised already: words are separated by spaces.
    tokenizer
        Tokenizer of the target: unicode, zh, ja, th, vi or a plug-in's name; by default the one that its script calls
        for. The parser keeps it.
    source_tokenizer
        Tokenizer of the source, likewise.
    preset
        Network sizes and training lengths: small for a laptop (the default), paper for a GPU.
    losses
        default, or paper for exactly the paper's losses.
    encoder
        Encoder of the source parser to train: bundled, a model folder, or a Hugging Face name. With a parser that is
        trained already, where its encoder has moved to.
    config
        TOML file with settings and, in its section [run], these options; such as DIR/config.toml of an earlier run.
    seed
        Random seed; 1 by default.
    ranks
        With Ray, processes that train together, each with a core or a GPU.
    device
        Device to run on, such as cpu, cuda or cuda:1; by default a GPU if there is one.
    dry_run
        Only show what would be done, stage by stage.
    json
        Print the scores as JSON.
    """
    from subdp.pipeline.run import Run

    given: dict[str, Any] = {
        "bitext": bitext, "treebank": treebank, "source_parser": source_parser, "gold_trees": gold_trees,
        "trees": trees,
        "dev": dev, "test": test, "aligner": aligner, "one_to_one": one_to_one, "tokenized": tokenized,
        "tokenizer": tokenizer, "source_tokenizer": source_tokenizer,
        "preset": preset, "losses": losses, "encoder": encoder, "encoder_bits": encoder_bits, "seed": seed,
    }  # fmt: skip
    flags = {name: value for name, value in given.items() if value is not None}
    if config is None and bitext is None:
        say("subdp: --bitext is missing: a file of pairs, source TAB translation")
        sys.exit(2)
    options = RunOptions.resolve(config, flags)
    sections = {"train": train, "network": network, "adapt": adapt, "tune": tune, "losses": loss}
    changes = {name: given or {} for name, given in sections.items()}
    settings = Settings.resolve(options.preset, options.losses, config, changes)
    if dry_run:
        give(Run(options, settings, Path(output)).plan())
        return
    if ranks < 1:
        raise SubdpError(f"ranks cannot be {ranks}", hint="give a whole number of at least 1")
    if ranks > 1 and engine == "local":
        hint = "add --engine ray, or start the command with torchrun --nproc-per-node"
        raise SubdpError("--ranks is for a Ray cluster", hint=hint)
    job = Run(options, settings, Path(output), find_engine(engine, ray_address, jobs, device), device, ranks)
    job.perform(say)
    scores, parser = job.scores(), str(job.output / "parser")
    if json:
        give({"parser": parser, "scores": scores})
    else:
        give(parser if scores is None else table(scores))
    say(f"\nthe parser is in {parser}; try: subdp parse text.txt --parser {parser}")


def table(scores: dict[str, Any]) -> str:
    """Scores as a table, with a line for each system on each gold set."""
    sets = {"": {name: row for name, row in scores.items() if "uas" in row}}
    sets |= {f", {name}": rows for name, rows in scores.items() if "uas" not in rows}
    tagged = any("upos" in row for rows in sets.values() for row in rows.values())
    lines = [f"{'':<22}{'UAS':>6}{'LAS':>7}" + (f"{'UPOS':>7}" if tagged else "")]
    for name, rows in sets.items():
        for system, row in rows.items():
            title = {"direct": "direct transfer", "hard": "hard projection", "subdp": "SubDP"}[system] + name
            tags = f"{row['upos']:>7.1f}" if "upos" in row else ""
            lines.append(f"{title:<22}{row['uas']:>6.1f}{row['las']:>7.1f}{tags}")
    return "\n".join(lines)


def quickstart(
    *, language: Literal["de", "tr"] = "de", device: str | None = None, output: Output | None = None
) -> None:
    """See the whole method at work on a small sample: a parser for German or Turkish in about a minute.

    Parameters
    ----------
    language
        de for German, tr for Turkish.
    device
        Device to run on, such as cpu, cuda or cuda:1; by default a GPU if there is one.
    output
        Folder to write the parser and everything else to; by default quickstart-de or quickstart-tr.
    """
    from subdp.pipeline.quickstart import quickstart as show

    show(language, Path(output or f"quickstart-{language}"), say, give, device=device)
