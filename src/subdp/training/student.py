"""A network in training, with what it reads and predicts, and what a model card says of the training."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from subdp.encoder.batch import Batcher
from subdp.network.biaffine import Biaffine
from subdp.projection.substructures import Inventory
from subdp.support.settings import TrainConfig
from subdp.support.values import as_dict
from subdp.training.examples import Examples
from subdp.training.loop import train


@dataclass(frozen=True, slots=True)
class Student:
    """A network to train, with the vectors that it reads and the values that it predicts.

    `encoder` is the fingerprint of the one whose vectors they are.
    """

    network: Biaffine
    batcher: Batcher
    inventory: Inventory
    encoder: str

    def fit(
        self,
        examples: Examples,
        config: TrainConfig,
        *,
        seed: int,
        held_out: Callable[[Biaffine], float] | None,
        folder: Path | None,
        title: str,
    ) -> dict[str, Any]:
        """Train in place, as `train` does; gives back what a model card says of it."""
        options: Any = {"seed": seed, "held_out": held_out, "folder": folder, "title": title, "encoder": self.encoder}
        history = train(self.network, examples, config, **options)
        return {
            "seed": seed,
            "training": as_dict(config),
            "epochs": history.epoch,
            "best_epoch": history.best_epoch,
        }
