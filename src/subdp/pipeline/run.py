"""`subdp run`: from translated text to a parser, in one folder.

    run = Run(RunOptions(bitext=("en-de.tsv",)), Settings.resolve(), Path("german"))
    run.perform(print)

The folder gets `parser/`, `report.json`, `config.toml`, with gold trees `scores.json`, and in `stages/` what the stages
keep. Here is what depends on what; the work itself is in `work`, imported when there is some: no torch before.
"""

from __future__ import annotations

import json
import platform
import shutil
from collections.abc import Sequence
from functools import cached_property, partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from subdp.alignment.registry import aligner_key
from subdp.corpus.corrected import read_trees
from subdp.corpus.treebank import read_conllu
from subdp.network.hub import MULTILINGUAL
from subdp.pipeline.options import RunOptions
from subdp.pipeline.stages import TRAINING, Say, Stage, has_stages, perform, plan, stage_name
from subdp.support.engine import Engine, LocalEngine
from subdp.support.errors import SubdpError
from subdp.support.files import file_hash, leftovers, open_text_output
from subdp.support.settings import Settings
from subdp.support.values import as_dict, as_toml

if TYPE_CHECKING:
    from subdp.pipeline.work import Work

_WRITTEN = ("parser", "source-parser", "scores.json", "report.json", "config.toml")


class Run:
    """The stages of one run, each with all that its result depends on, and the folder that they write to."""

    def __init__(
        self,
        options: RunOptions,
        settings: Settings,
        output: Path,
        engine: Engine | None = None,
        device: str | None = None,
        ranks: int = 1,
    ):
        self.options, self.settings, self.output = options, settings, output
        self.engine, self.device, self.ranks = engine or LocalEngine(), device, ranks
        self.root = output / "stages"

    def plan(self) -> str:
        """What would be done now, a line for each stage."""
        return plan(self.stages, self.root)

    def perform(self, say: Say, extra: Sequence[Stage] = ()) -> int:
        """Do all stages that are not done, then the extra ones; returns how many were done now."""
        stages, config = [*self.stages, *extra], self.output / "config.toml"
        # It is written last, and may be what a killed process was about to write.
        if config.exists() and not self._left() and all(stage.state(self.root)[0] == "done" for stage in stages):
            say(f"{self.output}: already finished with the same data and options; there is nothing to do")
            return 0
        self._check_bits()
        self._prepare()
        # An error in them is better found now than after hours of training.
        read_trees(self.options.trees, list(self.options.gold.values()))
        for path in self.options.gold_trees:
            list(read_conllu(path, any_roots=True))
        performed = perform(stages, self.root, say)
        with open_text_output(config) as write:
            write(self.config())
        return performed

    def _check_bits(self) -> None:
        """Raise where 8-bit products are not to be had, before hours of work."""
        if self.options.encoder_bits == 32:
            return
        from subdp.encoder.eight_bits import check_processor

        check_processor()
        if any(section.encoder_layers for section in (self.settings.train, self.settings.adapt, self.settings.tune)):
            hint = "leave out --encoder-bits, or the settings encoder-layers"
            raise SubdpError("8-bit products cannot be used with trained encoder layers", hint=hint)

    @cached_property
    def work(self) -> Work:
        """What the stages do."""
        from subdp.pipeline.work import Work

        return Work(self.options, self.settings, self.output, self.engine, self.device)

    def scores(self) -> dict[str, Any] | None:
        """What the stage `evaluate` wrote, if it is part of the run."""
        if not self.options.gold:
            return None
        scores: dict[str, Any] = json.loads((self.output / "scores.json").read_text(encoding="utf-8"))
        return scores

    def config(self) -> str:
        """All that the run was asked for, as a file that asks for it again."""
        versions = ", ".join(f"{name} {version(name)}" for name in ("subdp", "torch", "numpy"))
        head = f"# Made with {versions}, Python {platform.python_version()}; inputs by hash: stages/*/manifest.json\n"
        return head + "\n" + as_toml({"run": self.options, **self.settings.sections})

    def _prepare(self) -> None:
        """Make the folder, unless it holds anything that no run wrote, and remove what a killed process was writing."""
        from subdp.network.model_folder import check_replaceable

        try:
            self.output.mkdir(parents=True, exist_ok=True)
            files = (path for path in self.output.rglob("*") if path.is_file() and not path.name.startswith("."))
            if not has_stages(self.root) and any(files):
                raise SubdpError("holds other files", where=str(self.output), hint="name a new folder with -o")
            for name in ("parser", "source-parser"):
                check_replaceable(self.output / name)
            for left in self._left():
                shutil.rmtree(left) if left.is_dir() else left.unlink()
            self.root.mkdir(exist_ok=True)
            (self.root / "writable").touch()
            (self.root / "writable").unlink()
        except OSError as error:
            hint = "name another folder with -o"
            raise SubdpError(f"cannot be written: {error.strerror}", where=str(self.output), hint=hint) from None

    @property
    def _bits(self) -> dict[str, int]:
        """What stages depend on where the encoder's products are not the usual ones."""
        return {} if self.options.encoder_bits == 32 else {"encoder_bits": self.options.encoder_bits}

    def _left(self) -> list[Path]:
        """What a killed process was writing."""
        return leftovers(self.output, _WRITTEN)

    @cached_property
    def stages(self) -> list[Stage]:
        """All stages in order."""
        options, settings = self.options, self.settings
        numbers = range(len(options.bitext))
        source = [self._source()] if options.treebank is not None else []
        parsers = [source[0].key if source else _hash_model(options.parser_folder(n, self.output)) for n in numbers]
        clean = [self._clean(number) for number in numbers]
        encode = [self._encode(number, clean[number], parsers) for number in numbers]
        project = [self._project(number, clean[number], parsers[number]) for number in numbers]
        keys = [stage.key for stage in project]
        report = Stage(
            "report",
            "measure the quality of the projection",
            {"clean": [stage.key for stage in clean], "project": keys, "many_to_one": settings.losses.many_to_one},
            lambda _: self.work.report(),
            (self.output / "report.json",),
        )
        training = {"adapt": as_dict(settings.adapt), "losses": as_dict(settings.losses), "seed": options.seed}
        adapt = Stage(
            "adapt",
            "train the target parser on what was projected",
            {"parser": parsers[0], **self._start, "project": keys, **training},
            lambda folder: self._train("adapt", folder),
            (self.root / "adapt" / "parser",),
        )
        finish = self._finish(adapt)
        return [*source, *clean, *encode, *project, report, adapt, finish, *self._evaluate(finish, parsers[0])]

    @property
    def _start(self) -> dict[str, str]:
        """What adaptation depends on where it may start from the multilingual parser."""
        may = self.settings.losses.start == "multilingual" and self.options.treebank is None
        return {"start": _hash_model(MULTILINGUAL)} if may else {}

    def _train(self, stage: str, folder: Path) -> str:
        """Do a stage that trains: here, or on several ranks of a Ray cluster."""
        if self.ranks == 1:
            said: str = getattr(self.work, stage)(folder)
            return said
        from subdp.pipeline.ray_train import on_ray

        there = Run(self.options, self.settings, self.output, device=self.device)
        return on_ray(partial(there._train, stage, folder), self.ranks, folder / TRAINING, self.device)

    def _finish(self, adapt: Stage) -> Stage:
        trees = [file_hash(path) for path in self.options.trees]
        return Stage(
            "finish",
            "train it further on trees of its language" if trees else "copy it to parser/",
            {"adapt": adapt.key, "trees": trees, **({"tune": as_dict(self.settings.tune)} if trees else {})},
            lambda folder: self._train("finish", folder) if trees else self.work.finish(folder),
            (self.output / "parser",),
        )

    def _source(self) -> Stage:
        options, settings = self.options, self.settings
        return Stage(
            "source",
            f"train a parser on {options.treebank}",
            {
                "treebank": file_hash(str(options.treebank)),
                "encoder": options.encoder,
                **self._bits,
                "network": as_dict(settings.network),
                "train": as_dict(settings.train),
                "seed": options.seed,
            },
            lambda folder: self._train("train_source", folder),
            (self.output / "source-parser",),
        )

    def _clean(self, number: int) -> Stage:
        files = [file_hash(file) for file in self.options.files(number) if file is not None]
        keys = self.options.tokenizer_keys(number)
        tokenizers = {"tokenizers": keys} if {*keys} - {"unicode"} else {}
        return Stage(
            stage_name("clean", number),
            f"read {self.options.title(number)}, leave out what is not a translation",
            {"bitext": files, "tokenized": self.options.tokenized, **tokenizers},
            lambda folder: self.work.clean(folder, number),
        )

    def _encode(self, number: int, clean: Stage, parsers: Sequence[str]) -> Stage:
        gold = self.options.gold_trees_of(number) is not None
        return Stage(
            stage_name("encode", number),
            f"run the words of {'the target' if gold else 'both sides'} through the encoder",
            {
                "clean": clean.key,
                "parsers": sorted({parsers[0], *([] if gold else [parsers[number]])}),
                **({"side": "target"} if gold else {}),
                **self._bits,
            },
            lambda _: self.work.encode(number),
        )

    def _project(self, number: int, clean: Stage, parser: str) -> Stage:
        aligner, gold = aligner_key(self.options.aligner), self.options.gold_trees_of(number)
        inputs = {"clean": clean.key, "parser": parser, "aligner": aligner, "one_to_one": self.options.one_to_one}
        return Stage(
            stage_name("project", number),
            f"{'parse the source side' if gold is None else 'read the gold trees'}, align the words, project",
            inputs | ({} if gold is None else {"gold_trees": file_hash(gold)}) | self._bits,
            lambda folder: self.work.project(folder, number),
        )

    def _evaluate(self, finish: Stage, parser: str) -> list[Stage]:
        """With gold trees one stage, without them none."""
        if not self.options.gold:
            return []
        gold = {name: file_hash(path) for name, path in self.options.gold.items()}
        return [
            Stage(
                "evaluate",
                "score it on gold trees, and the source parser for comparison",
                {"finish": finish.key, "parser": parser, **gold},
                lambda _: self.work.evaluate(),
                (self.output / "scores.json",),
            )
        ]


def _hash_model(folder: Path) -> str:
    """The hash of a model folder: labels and weights, and what they are made with."""
    if not folder.is_dir():
        raise SubdpError("no such model folder", where=str(folder), hint="`subdp train` and `subdp run` make them")
    return "".join(file_hash(folder / name)[:16] for name in ("config.json", "labels.json", "model.safetensors"))
