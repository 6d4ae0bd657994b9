"""The settings as flags, such as `--train.lr`: one for each field in `support/settings.py`, with its docstring as help.

A verb gets those that were given as a dictionary of strings, which `Settings.resolve` converts and checks. No torch.
"""

from __future__ import annotations

import ast
import inspect
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, TypedDict

from cyclopts import Group, Parameter

from subdp.support.settings import LOSSES, PRESETS
from subdp.support.values import described, kinds

if TYPE_CHECKING:
    NetworkChanges: TypeAlias = dict[str, str] | None
    TrainChanges: TypeAlias = dict[str, str] | None
    AdaptChanges: TypeAlias = dict[str, str] | None
    LossChanges: TypeAlias = dict[str, str] | None


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
    _SMALL, _PAPER = PRESETS["small"], PRESETS["paper"]
    NetworkChanges = _flags("Settings of the network", _SMALL.network, _PAPER.network)
    TrainChanges = _flags("Settings of the training on a treebank", _SMALL.train, _PAPER.train)
    AdaptChanges = _flags("Settings of the target parser's training", _SMALL.adapt, _PAPER.adapt)
    LossChanges = _flags("Settings of the losses", LOSSES["default"], LOSSES["paper"])
