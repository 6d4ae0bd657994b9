"""Every number that a user may set, as frozen dataclasses: the network, its training, the losses; and the two presets.

Flags of the command line, keys of a TOML file and keyword arguments bear these names. Imports no torch.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from subdp.support.errors import SubdpError
from subdp.support.files import Source, name_of, open_input

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

LabelWeight = Literal["none", "arc", "best"]
LabelPairs = Literal["all", "aligned"]
SelfLoops = Literal["keep", "drop", "renormalise"]
Completion = Literal["none", "source", "auto"]
PresetName = Literal["small", "paper"]
LossesName = Literal["default", "paper"]


@dataclass(frozen=True, slots=True)
class NetworkConfig:
    """The biaffine parser's sizes (the paper's appendix)."""

    layers: tuple[int, ...] | None = None
    """Encoder layers in the learned mix, from 0 (embeddings); None is all of them."""
    features: int = 400
    """Size of the layer between the encoder's features and the BiLSTM."""
    lstm: int = 400
    """Size of the BiLSTM in each direction."""
    lstm_layers: int = 3
    """How many BiLSTM layers."""
    arc: int = 500
    """Size of the two vectors that score an arc."""
    label: int = 100
    """Size of the two vectors that score a label."""
    dropout: float = 0.33
    """Share of features dropped in training, at every stage."""


@dataclass(frozen=True, slots=True)
class TrainConfig:
    """How a network is trained."""

    epochs: int = 100
    """At most so many passes over the data."""
    patience: int = 10
    """Stop after so many epochs without a better score on the held-out part."""
    lr: float = 2e-3
    """Adam's learning rate at the start."""
    decay_steps: int = 5000
    """The learning rate falls to three quarters every so many steps."""
    batch_words: int = 5000
    """Words in a batch, padding included."""
    least_batches: int = 1
    """Batches are made smaller where there would be fewer of them in an epoch."""
    clip: float = 5.0
    """The longest gradient let through."""
    average: float = 0.0
    """What is kept is a running mean of the weights, in which the past counts so much; 0 keeps the last weights."""


@dataclass(frozen=True, slots=True)
class LossConfig:
    """What the target parser is asked to fit."""

    label_weight: LabelWeight = "arc"
    """How much the labels of a pair of words count: all alike (paper), by the arc's probability, the best arc only."""
    label_pairs: LabelPairs = "all"
    """Which pairs have their labels fitted: all (paper), or those whose two words have links."""
    self_loops: SelfLoops = "keep"
    """Arcs from a word to itself: kept (paper), dropped, or their mass given to the word's other arcs."""
    temperature: float = 1.0
    """Above 1 flattens the source parser's distributions before they are projected, below 1 sharpens them."""
    completion: Completion = "auto"
    """Who receives the mass that went to NULL: nobody (paper), the source parser's own distribution on the target
    sentence, or a share of it according to how far it agrees with the projection."""


@dataclass(frozen=True, slots=True)
class Preset:
    """One way to run the method: the network, the source parser's training and the target parser's."""

    network: NetworkConfig = field(default_factory=NetworkConfig)
    train: TrainConfig = field(default_factory=TrainConfig)
    adapt: TrainConfig = field(default_factory=TrainConfig)


PRESETS: dict[PresetName, Preset] = {
    "paper": Preset(adapt=TrainConfig(epochs=30, lr=5e-4)),
    "small": Preset(
        network=NetworkConfig(layers=tuple(range(9)), features=300, lstm=200, lstm_layers=2, arc=300),
        train=TrainConfig(epochs=22, patience=5, decay_steps=800, batch_words=1000, average=0.997),
        adapt=TrainConfig(epochs=10, patience=3, decay_steps=500, batch_words=1000, least_batches=30, average=0.97),
    ),
}

LOSSES: dict[LossesName, LossConfig] = {
    "default": LossConfig(),
    "paper": LossConfig(label_weight="none", label_pairs="all", self_loops="keep", completion="none"),
}

Config = TypeVar("Config", NetworkConfig, TrainConfig, LossConfig)


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings of a run, resolved: preset, then the file, then flags, each over what came before."""

    network: NetworkConfig
    train: TrainConfig
    adapt: TrainConfig
    losses: LossConfig

    @classmethod
    def resolve(
        cls,
        preset: PresetName = "small",
        losses: LossesName = "default",
        file: Source | None = None,
        flags: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> Settings:
        """Settings from a preset, a set of losses, a TOML file and flags by section: `{"train": {"lr": 0.001}}`.

        The file's sections `[run]` and `[experiment]`, the data and choices of these verbs, are none of these settings.
        """
        start = PRESETS[preset]
        settings = cls(start.network, start.train, start.adapt, LOSSES[losses])
        if file is not None:
            sections = {name: section for name, section in read_toml(file).items() if name not in ("run", "experiment")}
            settings = settings._changed(sections, name_of(file))
        return settings._changed(flags or {}, None)

    def _changed(self, sections: Mapping[str, Mapping[str, Any]], where: str | None) -> Settings:
        known = {item.name for item in fields(self)}
        if unknown := sorted(set(sections) - known):
            raise SubdpError(f"there is no section {unknown[0]!r}", where=where, hint=f"there are {', '.join(known)}")
        try:
            return replace(self, **{name: with_changes(getattr(self, name), dict(sections[name])) for name in sections})
        except SubdpError as error:
            raise SubdpError(error.reason, where=where, hint=error.hint) from None

    def as_toml(self) -> str:
        """The settings as a TOML file that gives them back."""
        lines = []
        for section in fields(self):
            values = as_dict(getattr(self, section.name))
            lines += [f"[{section.name}]", *(f"{key} = {json.dumps(value)}" for key, value in values.items()), ""]
        return "\n".join(line for line in lines if not line.endswith("= null"))


def read_toml(file: Source) -> dict[str, Any]:
    """The sections of a TOML file."""
    with open_input(file) as stream:
        try:
            found = tomllib.loads(stream.read().decode())
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise SubdpError(f"is not TOML: {error}", where=name_of(file)) from None
    for name, section in found.items():
        if not isinstance(section, dict):
            raise SubdpError(
                f"{name} is not a section", where=name_of(file), hint=f"write [{name}] on a line of its own"
            )
    return found


def with_changes(config: Config, changes: dict[str, Any]) -> Config:
    """The same settings with some changed; a name that does not exist, or a value that cannot be, is an error.

    >>> with_changes(TrainConfig(), {"lr": "0.001"}).lr
    0.001
    """
    kinds = get_type_hints(type(config))
    values = {}
    for name, value in changes.items():
        if name not in kinds:
            raise SubdpError(f"there is no setting {name!r}", hint=f"there are {', '.join(kinds)}")
        values[name] = _fitting(name, value, kinds[name])
    return replace(config, **values)


def _fitting(name: str, value: Any, kind: Any) -> Any:
    """A value from a flag (a string) or a file as the kind of value that the setting has."""
    choices = get_args(kind)
    if get_origin(kind) is Literal:
        if value not in choices:
            raise SubdpError(f"{name} cannot be {value!r}", hint=f"choose {', '.join(choices)}")
        return value
    try:
        if name == "layers":
            items = value.split(",") if isinstance(value, str) else value
            return tuple(int(item) for item in items)
        number = kind(value)
        if number < 0 or (kind is int and number != float(value)):
            raise ValueError
    except (TypeError, ValueError):
        wanted = "a list of layers, as 3,4,5" if name == "layers" else "a whole number" if kind is int else "a number"
        raise SubdpError(f"{name} cannot be {value!r}", hint=f"give {wanted}, not below 0") from None
    return number


def as_dict(config: NetworkConfig | TrainConfig | LossConfig) -> dict[str, Any]:
    """A configuration as plain values, for JSON and TOML."""
    return {key: list(value) if isinstance(value, tuple) else value for key, value in asdict(config).items()}
