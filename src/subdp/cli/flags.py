"""Flags that several verbs have, each described once, and the settings as flags, such as `--train.lr`.

There is a setting's flag for each field in `support/settings.py`, with its docstring as help. A verb gets those that
were given as a dictionary of strings, which `Settings.resolve` converts and checks. No torch.
"""

from __future__ import annotations

import ast
import inspect
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, TypedDict

from cyclopts import Group, Parameter

from subdp.alignment.registry import aligner_names
from subdp.cli.app import Files, Flag
from subdp.support.settings import LOSSES, PRESETS, EncoderBits, LossesName, PresetName
from subdp.support.values import described, kinds


def _is_method(_: Any, value: Any) -> None:
    if isinstance(value, str) and value not in aligner_names():
        raise ValueError(f"Choose from: {', '.join(aligner_names())}.")


def _is_aligner(_: Any, value: Any) -> None:
    if isinstance(value, str) and value not in aligner_names() and not Path(value).is_file():
        raise ValueError(f"Choose from: {', '.join(aligner_names())}; or name a file of links.")


def _with(help: str) -> Parameter:
    return Parameter(help=help)


_PARSER = "a model folder, a name on the Hugging Face Hub, or one that ships: en (English), multi (80 languages)."


Method: TypeAlias = Annotated[str, Parameter(validator=_is_method)]
AlignerName: TypeAlias = Annotated[str, Parameter(validator=_is_aligner)]
Bitext: TypeAlias = Annotated[
    Files,
    _with("One file of pairs (source TAB translation), or two parallel files: text, line by line, or CoNLL-U."),
]
Tokenized: TypeAlias = Annotated[Flag, _with("The text is tokenised already: words are separated by spaces.")]
TargetTokenizer: TypeAlias = Annotated[
    str,
    _with(
        "Tokenizer of the target: unicode, zh, ja, th, vi or a plug-in's name; by default the one that its script calls"
        " for."
    ),
]
SourceTokenizer: TypeAlias = Annotated[str, _with("Tokenizer of the source, likewise.")]
OneToOne: TypeAlias = Annotated[
    Flag, _with("Keep only one-to-one links: drop the links of words that have more than one.")
]
ParserName: TypeAlias = Annotated[str, _with(f"Parser: {_PARSER}")]
SourceParser: TypeAlias = Annotated[str, _with(f"Source parser: {_PARSER}")]
TextTokenizer: TypeAlias = Annotated[
    str | None,
    _with(
        "Tokenizer for raw text: unicode, zh, ja, th, vi, a plug-in's name, or auto for the one that the text calls"
        " for; by default the one that the parser was made with."
    ),
]
EncoderName: TypeAlias = Annotated[str, _with("Encoder: bundled, a model folder, or a Hugging Face name.")]
MovedEncoder: TypeAlias = Annotated[
    str | None, _with("Present location of the parser's encoder, if it was moved after training.")
]
Bits: TypeAlias = Annotated[
    EncoderBits,
    _with(
        "Precision of the encoder's matrix products in bits: 32, or 8 (int8), about twice as fast on processors with"
        " AVX-512 VNNI instructions, with nearly the same scores."
    ),
]
Device: TypeAlias = Annotated[
    str | None, _with("Device to run on, such as cpu, cuda or cuda:1; by default a GPU if there is one.")
]
Config: TypeAlias = Annotated[str | None, _with("TOML file with settings.")]
PresetFlag: TypeAlias = Annotated[
    PresetName, _with("Network sizes and training lengths: small for a laptop, paper for a GPU.")
]
LossesFlag: TypeAlias = Annotated[LossesName, _with("default, or paper for exactly the paper's losses.")]
Resume: TypeAlias = Annotated[Flag, _with("Resume interrupted training.")]
Half: TypeAlias = Annotated[Flag, _with("Store the weights in half precision.")]

if TYPE_CHECKING:
    NetworkChanges: TypeAlias = dict[str, str] | None
    TrainChanges: TypeAlias = dict[str, str] | None
    AdaptChanges: TypeAlias = dict[str, str] | None
    TuneChanges: TypeAlias = dict[str, str] | None
    LossChanges: TypeAlias = dict[str, str] | None
    SmallNetworkChanges: TypeAlias = dict[str, str] | None
    SmallTrainChanges: TypeAlias = dict[str, str] | None


def field_docs(config: type) -> dict[str, str]:
    """The docstrings below the fields of a dataclass, by field."""
    (defined,) = ast.parse(inspect.getsource(config)).body
    assert isinstance(defined, ast.ClassDef)
    return {
        ast.unparse(field.target): " ".join(ast.literal_eval(below.value).split())
        for field, below in pairwise(defined.body)
        if isinstance(field, ast.AnnAssign) and isinstance(below, ast.Expr)
    }


def default(usual: Any, paper: Any, name: str) -> str:
    """What a field is by default and, where it differs, in the paper's preset."""
    here, there = (_shown(getattr(config, name)) for config in (usual, paper))
    return here if here == there else f"{here}, paper: {there}"


def _shown(value: Any) -> str:
    return "all" if value is None else ",".join(map(str, value)) or "none" if isinstance(value, tuple) else str(value)


def _flags(title: str, usual: Any, paper: Any) -> Any:
    """A dictionary type with a key, and so a flag, for every field of a dataclass."""
    config, group = type(usual), Group(title, sort_key=1)
    docs, flags = field_docs(config), {}
    for name, kind in kinds(config).items():
        help = f"{docs[name]} [{described(kind)}; default: {default(usual, paper, name)}]"
        flags[name] = Annotated[str, Parameter(help=help, group=group)]
    return TypedDict(config.__name__, flags, total=False) | None  # type: ignore[operator]


if not TYPE_CHECKING:
    _SMALL, _PAPER, _DISTILLED = PRESETS["small"], PRESETS["paper"], PRESETS["distilled"]
    NetworkChanges = _flags("Settings of the network", _SMALL.network, _PAPER.network)
    TrainChanges = _flags("Settings of the training on a treebank", _SMALL.train, _PAPER.train)
    AdaptChanges = _flags("Settings of the target parser's training", _SMALL.adapt, _PAPER.adapt)
    TuneChanges = _flags("Settings of the training on gold trees", _SMALL.tune, _PAPER.tune)
    LossChanges = _flags("Settings of the losses", LOSSES["default"], LOSSES["paper"])
    SmallNetworkChanges = _flags("Settings of the smaller network", _DISTILLED.network, _DISTILLED.network)
    SmallTrainChanges = _flags("Settings of its training", _DISTILLED.train, _DISTILLED.train)
