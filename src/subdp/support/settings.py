"""Every number that a user may set, as frozen dataclasses: the network, its training, the losses; and the presets.

In a TOML file they are the keys of the sections `[network]`, `[train]`, `[adapt]`, `[tune]` and `[losses]`. As flags
they are `--network.lstm`, `--train.lr`, `--adapt.lr`, `--tune.lr` and, for the losses, `--loss.completion`. No torch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Annotated, Any, Literal

from subdp.support.errors import SubdpError
from subdp.support.files import Source, name_of
from subdp.support.values import Bounds, Count, Name, as_toml, check_fields, converted, read_toml

Positive = Annotated[float, Bounds(above=0)]
NotNegative = Annotated[float, Bounds(least=0)]
Share = Annotated[float, Bounds(least=0, below=1)]
Layer = Annotated[int, Bounds(least=0)]
TrainedLayer = Annotated[int, Bounds(least=1)]
LabelWeight = Literal["none", "arc", "best"]
LabelPairs = Literal["all", "aligned"]
SelfLoops = Literal["keep", "drop", "renormalise"]
ManyToOne = Literal["mean", "head"]
Completion = Literal["none", "source", "auto"]
Start = Literal["source", "multilingual"]
PresetName = Literal["small", "paper"]
LossesName = Literal["default", "paper"]
EncoderBits = Literal[8, 32]


@dataclass(frozen=True, slots=True)
class NetworkConfig:
    """The biaffine parser's sizes (the paper's appendix)."""

    layers: tuple[Layer, ...] | None = None
    """Encoder layers in the learned mix, from 0 (embeddings); None is all of them. With 0 alone, embeddings are read
    without positions, and no layer of the encoder runs."""
    features: Count = 400
    """Size of the layer between the encoder's features and the BiLSTM."""
    lstm: Count = 400
    """Size of the BiLSTM in each direction."""
    lstm_layers: Count = 3
    """Number of BiLSTM layers."""
    arc: Count = 500
    """Size of the two vectors that score an arc."""
    label: Count = 100
    """Size of the two vectors that score a label."""
    dropout: Share = 0.33
    """Dropout rate, between all layers."""

    def __post_init__(self) -> None:
        check_fields(self)
        if self.layers == ():
            raise SubdpError("layers cannot be empty", hint="name at least one, such as 3,4,5")


@dataclass(frozen=True, slots=True)
class TrainConfig:
    """How a network is trained."""

    epochs: Count = 100
    """Maximum number of epochs."""
    patience: Count = 10
    """Stop after this many epochs without a better score on held-out data."""
    lr: Positive = 2e-3
    """Adam's initial learning rate."""
    decay_steps: Count = 5000
    """Steps after which the learning rate has been multiplied by 0.75."""
    batch_words: Count = 5000
    """Words in a batch, padding included."""
    least_batches: Count = 1
    """Minimum number of batches in an epoch: with little data, batches are made smaller to reach it."""
    clip: Positive = 5.0
    """Maximum gradient norm."""
    average: Share = 0.0
    """Decay of the moving average of the weights that is kept; 0 keeps the last weights."""
    encoder_layers: tuple[TrainedLayer, ...] = ()
    """Encoder layers to train as well, numbered from 1; by default none, and the encoder is frozen."""
    encoder_lr: Positive = 1e-4
    """Adam's initial learning rate for these layers."""

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True, slots=True)
class LossConfig:
    """What the target parser starts from, and what it is trained to fit."""

    start: Start = "multilingual"
    """Parser that training starts from, and that completion and mixing ask: the source parser (paper), or a mix of its
    weights and those of the multilingual parser that comes with subdp, by how often the heads of each agree with
    projected ones. The latter applies only to subdp's English parser; training from any other starts at that parser."""
    label_weight: LabelWeight = "arc"
    """Weight of a word pair's labels: the same for all (paper), the arc's probability, or the best arc only."""
    label_pairs: LabelPairs = "all"
    """Word pairs whose labels are fitted: all (paper), or only those in which both words are aligned."""
    self_loops: SelfLoops = "keep"
    """Arcs from a word to itself: kept (paper), dropped, or their mass given to the word's other arcs."""
    temperature: Positive = 1.0
    """Applied to the source parser's distributions before projection: above 1 flattens them, below 1 sharpens them."""
    many_to_one: ManyToOne = "head"
    """What a target word linked to several source words stands for: all of them equally (mean: paper), or the one that
    is the head of the others."""
    completion: Completion = "auto"
    """What receives the mass that went to NULL: nothing (paper), the starting parser's own distribution on the target
    sentence (source), or a share of it according to how far it agrees with the projection (auto); the share is larger
    if training starts from a mix with the multilingual parser."""
    mixing: Share = 0.5
    """Share of the projected mass that the starting parser's own distribution replaces where it is fully trusted; less
    where it is trusted less, and for tags this much or more. 0 leaves projections as they are (paper)."""
    own_labels: tuple[Name, ...] = ("compound",)
    """Labels, in full, whose projected mass goes to the starting parser's own label distribution; none in the paper.
    This and mixing have no effect if completion is none."""
    tags_by_form: Share = 0.5
    """Share of the mean over all occurrences of a word's form in its UPOS or XPOS, which also receives NULL mass; 0
    looks at each occurrence by itself (paper). No effect if label_weight is none."""
    prior_pairs: NotNegative = 60.0
    """Pairs that count as much as what the starting parser knew: after n pairs, at most n / (n + this) of what
    adaptation changed in its weights is kept, less where held-out pairs speak for less, and all of it in the scorers of
    labels and tags. 0 keeps all of it (paper)."""

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True, slots=True)
class Preset:
    """Defaults for one kind of machine: the network, the source parser's training, the target parser's on silver, and
    its training on gold trees of its language."""

    network: NetworkConfig = field(default_factory=NetworkConfig)
    train: TrainConfig = field(default_factory=TrainConfig)
    adapt: TrainConfig = field(default_factory=TrainConfig)
    tune: TrainConfig = field(default_factory=TrainConfig)


PRESETS: dict[PresetName | Literal["distilled"], Preset] = {
    "paper": Preset(
        adapt=TrainConfig(epochs=30, lr=5e-4),
        tune=TrainConfig(epochs=20, lr=5e-4, least_batches=10, average=0.9),
    ),
    "small": Preset(
        network=NetworkConfig(layers=tuple(range(9)), features=300, lstm=200, lstm_layers=2, arc=300),
        train=TrainConfig(epochs=22, patience=5, decay_steps=800, batch_words=1000, average=0.997),
        adapt=TrainConfig(epochs=3, patience=3, decay_steps=500, batch_words=1000, least_batches=30, average=0.97),
        tune=TrainConfig(
            epochs=20, patience=5, lr=1e-3, decay_steps=500, batch_words=1000, least_batches=10, average=0.9
        ),
    ),
    "distilled": Preset(
        network=NetworkConfig(layers=(0,), features=300, lstm=160, lstm_layers=2, arc=200, label=60, dropout=0.05),
        train=TrainConfig(epochs=8, patience=5, decay_steps=1000, batch_words=1000, least_batches=30, average=0.997),
    ),
}

LOSSES: dict[LossesName, LossConfig] = {
    "default": LossConfig(),
    "paper": LossConfig(
        start="source",
        label_weight="none",
        label_pairs="all",
        self_loops="keep",
        many_to_one="mean",
        completion="none",
        mixing=0.0,
        own_labels=(),
        tags_by_form=0.0,
        prior_pairs=0.0,
    ),
}


_OTHERS = ("run", "experiment", "languages")  # sections of other settings than these


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings of a run, resolved: preset, then the file, then flags, each over what came before."""

    network: NetworkConfig
    train: TrainConfig
    adapt: TrainConfig
    tune: TrainConfig
    losses: LossConfig

    @classmethod
    def resolve(
        cls,
        preset: PresetName | Literal["distilled"] = "small",
        losses: LossesName = "default",
        file: Source | None = None,
        flags: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> Settings:
        """Settings from a preset, a set of losses, a TOML file and flags by section: `{"train": {"lr": 0.001}}`.

        The file's sections `[run]`, `[experiment]` and `[languages.…]` are left to those who read them.
        """
        start = PRESETS[preset]
        settings = cls(start.network, start.train, start.adapt, start.tune, LOSSES[losses])
        if file is not None:
            sections = {name: section for name, section in read_toml(file).items() if name not in _OTHERS}
            settings = settings._changed(sections, name_of(file))
        return settings._changed(flags or {}, None)

    @property
    def sections(self) -> dict[str, Any]:
        """The dataclasses by the names of their sections in a TOML file."""
        return {item.name: getattr(self, item.name) for item in fields(self)}

    def _changed(self, sections: Mapping[str, Mapping[str, Any]], where: str | None) -> Settings:
        known = self.sections
        if unknown := sorted(set(sections) - set(known)):
            hint = f"the sections are {', '.join((*known, *_OTHERS))}"
            raise SubdpError(f"there is no section {unknown[0]!r}", where=where, hint=hint)
        return replace(
            self,
            **{
                name: replace(known[name], **converted(type(known[name]), changes, where))
                for name, changes in sections.items()
            },
        )

    def as_toml(self) -> str:
        """The settings as a TOML file that gives them back."""
        return as_toml(self.sections)
