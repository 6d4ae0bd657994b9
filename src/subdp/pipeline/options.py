"""What `subdp run` is asked for, from a TOML file's section `[run]` and from flags, which win. No torch."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

from subdp.network.hub import find_model
from subdp.network.shipped import SHIPPED
from subdp.support.errors import SubdpError
from subdp.support.files import Source, name_of
from subdp.support.settings import LossesName, PresetName, read_toml


@dataclass(frozen=True, slots=True)
class RunOptions:
    """The data and the choices of a run; the numbers are in `Settings`."""

    bitext: tuple[str, ...]
    """Translated text: a file of pairs, or two files joined by a comma; one or several of these."""
    source_parser: tuple[str, ...] = ()
    """Model folders: one for all bitexts or one for each; none is the English parser that comes with subdp."""
    treebank: str | None = None
    """CoNLL-U file to train the source parser on, instead."""
    encoder: str | None = None
    """The encoder of a parser that is to be trained, or where the source parser's is, if not where it was."""
    gold_trees: tuple[str, ...] = ()
    """Treebanks whose translations the bitexts are, one for all or one for each: their trees are projected then, not
    what the source parser says."""
    dev: str | None = None
    """Gold trees of the target language, to look at while settings are chosen. Never trained on."""
    test: str | None = None
    """Gold trees of the target language, to report."""
    aligner: str = "argmax"
    """A method, a plug-in's name, or a file of links."""
    one_to_one: bool = False
    """Whether links whose words have other links are left out."""
    tokenized: bool = False
    """Whether the text has spaces between all words already."""
    preset: PresetName = "small"
    losses: LossesName = "default"
    seed: int = 1

    def __post_init__(self) -> None:
        if not self.bitext:
            raise SubdpError("no bitext is named", hint="give --bitext FILE, a file of source TAB translation")
        if self.treebank is not None and self.source_parser:
            raise SubdpError("both a treebank and a source parser are named", hint="name one of them")
        bitexts = len(self.bitext)
        for what, named in (("source parsers", self.source_parser), ("treebanks of gold trees", self.gold_trees)):
            if len(named) > 1 and len(named) != bitexts:
                hint = "name one for all bitexts, or one for each, in the same order"
                raise SubdpError(f"{len(named)} {what} for {bitexts} bitexts", hint=hint)
        if bitexts > 1 and Path(self.aligner).is_file():
            raise SubdpError("one file of links for several bitexts", where=self.aligner, hint="name a method")
        if "-" in (*self.bitext, *self.gold_trees, self.treebank, self.dev, self.test, self.aligner):
            raise SubdpError("a run does not read standard input", hint="name a file: a run may have to go on later")

    @classmethod
    def resolve(cls, file: Source | None, flags: Mapping[str, Any]) -> RunOptions:
        """Options from the section `[run]` of a TOML file, if one is given, and from flags, which win."""
        section = {} if file is None else read_toml(file).get("run", {})
        where = None if file is None else name_of(file)
        kinds, values = get_type_hints(cls), {**section, **flags}
        for name, value in values.items():
            if name not in kinds:
                raise SubdpError(f"there is no option {name!r}", where=where, hint=f"there are {', '.join(kinds)}")
            if wanted := _misfit(value, kinds[name]):
                raise SubdpError(f"{name} cannot be {value!r}", where=where, hint=f"give {wanted}")
        made: dict[str, Any] = {name: tuple(v) if isinstance(v, list) else v for name, v in values.items()}
        return cls(**{"bitext": (), **made})

    @property
    def gold(self) -> dict[str, str]:
        """The files of gold trees, by name."""
        return {name: path for name, path in (("test", self.test), ("dev", self.dev)) if path is not None}

    def files(self, number: int) -> tuple[str, str | None]:
        """The one file of a bitext, or its two."""
        name = self.bitext[number]
        source, comma, target = name.partition(",")
        return (source, target) if comma and not Path(name).exists() else (name, None)

    def title(self, number: int) -> str:
        """The names of a bitext's files, without their folders."""
        return " and ".join(Path(file).name for file in self.files(number) if file is not None)

    def parser_folder(self, number: int, output: Path) -> Path:
        """The model folder of a bitext's source parser; one that the run trains is in `output`."""
        if self.treebank is not None:
            return output / "source-parser"
        return find_model(_of_bitext(self.source_parser, number) or SHIPPED)

    def gold_trees_of(self, number: int) -> str | None:
        """The treebank of which a bitext is the translation, if its trees are to be projected."""
        return _of_bitext(self.gold_trees, number)

    def as_toml(self) -> str:
        """The section `[run]` that gives these options back."""
        values = {key: value for key, value in asdict(self).items() if value is not None}
        return "\n".join(["[run]", *(f"{key} = {json.dumps(value)}" for key, value in values.items()), ""])


def _of_bitext(named: tuple[str, ...], number: int) -> str | None:
    """What is named for a bitext: one for each, or one for all, or none."""
    return named[number if len(named) > 1 else 0] if named else None


def _misfit(value: Any, kind: Any) -> str | None:
    """What kind of value is wanted, if this is none."""
    if get_origin(kind) is Literal:
        return None if value in get_args(kind) else " or ".join(get_args(kind))
    if get_origin(kind) is tuple:
        fits = isinstance(value, list | tuple) and all(isinstance(item, str) for item in value)
        return None if fits else "a list of names"
    if kind in (bool, int):
        return None if type(value) is kind else "true or false" if kind is bool else "a whole number"
    return None if isinstance(value, str) else "a name"
