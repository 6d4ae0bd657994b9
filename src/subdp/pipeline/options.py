"""What `subdp run` is asked for, from a TOML file's section `[run]` and from flags, which win. No torch."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from subdp.corpus.bitext_rows import are_conllu, choose_tokenizers, rows_of
from subdp.corpus.tokenizers import AUTO, peeked, tokenizer_key
from subdp.network.hub import SHIPPED, find_model
from subdp.support.errors import SubdpError, counted
from subdp.support.files import Source, name_of
from subdp.support.settings import EncoderBits, LossesName, PresetName
from subdp.support.values import Seed, check_fields, converted, read_toml

# Codes of two letters: the second of a file of pairs (en-de.tsv), and that of a file of its own (news.de, de.txt).
_PAIRS, _FILE = (
    re.compile(rf"{before}([a-z]{{2}})(?:\.(?:tsv|txt|conllu))?").fullmatch
    for before in (r"(?:.*[-._])?[a-z]{2}-", r"(?:.*\.)?")
)


@dataclass(frozen=True, slots=True)
class RunOptions:
    """The data and the choices of a run; the numbers are in `Settings`."""

    bitext: tuple[str, ...]
    """Translated text: one or more files of pairs, or pairs of files joined by a comma."""
    source_parser: tuple[str, ...] = ()
    """Source parser, one for all bitexts or one for each; by default the English parser that comes with subdp."""
    treebank: str | None = None
    """CoNLL-U file to train a source parser on instead."""
    encoder: str | None = None
    """Encoder for training a source parser, or the present location of the given source parser's encoder."""
    encoder_bits: EncoderBits = 32
    """Precision of the encoder's matrix products in bits: 32, or 8, faster on processors with AVX-512 VNNI."""
    gold_trees: tuple[str, ...] = ()
    """Treebanks that the bitexts translate, one for all or one for each: their trees are projected instead of the
    source parser's predictions."""
    trees: tuple[str, ...] = ()
    """Trees of the target language to train on afterwards, such as corrected drafts."""
    dev: str | None = None
    """Gold trees of the target language to tune settings on. Never trained on."""
    test: str | None = None
    """Gold trees of the target language to report scores on."""
    aligner: str = "argmax"
    """A method, a plug-in's name, or a file of links."""
    one_to_one: bool = False
    """Whether to drop links of words that have more than one."""
    tokenized: bool = False
    """Whether the text is tokenised: words separated by spaces."""
    tokenizer: str = AUTO
    """Tokenizer of the target: a name, or auto for the one that its script calls for. The parser keeps it."""
    source_tokenizer: str = AUTO
    """Tokenizer of the source, likewise."""
    preset: PresetName = "small"
    """Network sizes and training lengths."""
    losses: LossesName = "default"
    """The losses to start from."""
    seed: Seed = 1
    """Random seed."""

    def __post_init__(self) -> None:
        check_fields(self)
        if not self.bitext:
            raise SubdpError("no bitext is named", hint="give --bitext FILE, a file of source TAB translation")
        if self.treebank is not None and self.source_parser:
            raise SubdpError("both a treebank and a source parser are named", hint="name one of them")
        bitexts = len(self.bitext)
        for what, named in (("source parsers", self.source_parser), ("treebanks of gold trees", self.gold_trees)):
            if len(named) > 1 and len(named) != bitexts:
                hint = "name one for all bitexts, or one for each, in the same order"
                raise SubdpError(f"{len(named)} {what} for {counted(bitexts, 'bitext')}", hint=hint)
        if bitexts > 1 and Path(self.aligner).is_file():
            raise SubdpError("one file of links for several bitexts", where=self.aligner, hint="name a method")
        if self.tokenized and {self.tokenizer, self.source_tokenizer} != {AUTO}:
            raise SubdpError("a tokenizer is named for tokenised text", hint="leave one of the two options out")
        if "-" in (*self.bitext, *self.gold_trees, *self.trees, self.treebank, self.dev, self.test, self.aligner):
            raise SubdpError(
                "a run cannot read standard input",
                hint="name a file: a run must be able to read it again when it is resumed",
            )

    @classmethod
    def resolve(cls, file: Source | None, flags: Mapping[str, Any]) -> RunOptions:
        """Options from the section `[run]` of a TOML file, if one is given, and from flags, which win."""
        values = {"bitext": ()}
        if file is not None:
            values |= converted(cls, read_toml(file).get("run", {}), name_of(file))
        return cls(**values | converted(cls, flags))

    @property
    def gold(self) -> dict[str, str]:
        """The files of gold trees, by name."""
        return {name: path for name, path in (("test", self.test), ("dev", self.dev)) if path is not None}

    def files(self, number: int) -> tuple[str, str | None]:
        """The one file of a bitext, or its two."""
        name = self.bitext[number]
        source, comma, target = name.partition(",")
        return (source, target) if comma and not Path(name).exists() else (name, None)

    def tokenizer_keys(self, number: int) -> list[str]:
        """What the words of a bitext's two sides depend on; an error where a script needs what is not installed."""
        source, target = self.files(number)
        if self.tokenized or (target is not None and are_conllu((source, target))):
            return []
        try:
            first, _ = peeked(rows_of(source, target, "auto", None, Counter()))
        except SubdpError:
            return []  # The stage that reads all of it stops there, and says more.
        names = choose_tokenizers(first, self.bitext[number], self.source_tokenizer, self.tokenizer)
        return [tokenizer_key(str(name)) for name in names]

    def title(self, number: int) -> str:
        """The names of a bitext's files, without their folders."""
        return " and ".join(Path(file).name for file in self.files(number) if file is not None)

    @property
    def language(self) -> str | None:
        """The code of the target language, where the bitexts are named for it: `en-de.tsv`, or `en.txt,news.de`."""
        files = (self.files(number) for number in range(len(self.bitext)))
        found = [
            (_FILE if target else _PAIRS)(Path(target or pairs).name.removesuffix(".gz")) for pairs, target in files
        ]
        codes = {match[1] if match else None for match in found}
        return codes.pop() if len(codes) == 1 else None

    def parser_folder(self, number: int, output: Path) -> Path:
        """The model folder of a bitext's source parser; one that the run trains is in `output`."""
        if self.treebank is not None:
            return output / "source-parser"
        return find_model(_of_bitext(self.source_parser, number) or SHIPPED)

    def gold_trees_of(self, number: int) -> str | None:
        """The treebank of which a bitext is the translation, if its trees are to be projected."""
        return _of_bitext(self.gold_trees, number)


def _of_bitext(named: tuple[str, ...], number: int) -> str | None:
    """What is named for a bitext: one for each, or one for all, or none."""
    return named[number if len(named) > 1 else 0] if named else None
