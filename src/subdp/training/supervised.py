"""Training on a treebank: a whole network, or layers that are added to one. Gives back what a model card says of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from subdp.corpus.treebank import Sentence, trees_hash
from subdp.evaluation.scores import Scores
from subdp.support.settings import TrainConfig
from subdp.training.examples import TreeExamples
from subdp.training.student import Student


def train_on_treebank(
    student: Student,
    sentences: Sequence[Sentence],
    config: TrainConfig,
    *,
    dev_scores: Callable[[], Scores] | None,
    seed: int,
    folder: Path | None,
) -> dict[str, Any]:
    """Train on gold trees; the best epoch by LAS on the dev set is kept, if there is one, otherwise the last."""
    examples = TreeExamples(student.batcher, sentences, student.inventory)
    made = {
        "trained_on": {"sentences": len(sentences), "words": sum(examples.lengths), "sha256": trees_hash(sentences)}
    }
    return made | student.fit(
        examples,
        config,
        seed=seed,
        held_out=None if dev_scores is None else lambda _: dev_scores().las,
        folder=folder,
        title="training the parser",
    )


def train_layers(
    student: Student,
    names: Sequence[str],
    sentences: Sequence[Sentence],
    config: TrainConfig,
    *,
    dev_scores: Callable[[], Scores] | None,
    seed: int,
    folder: Path | None,
) -> dict[str, Any]:
    """Train the scorers of some layers and nothing else; of the epochs, their accuracy on the dev set decides."""
    student.network.requires_grad_(False)
    for name in names:
        student.network.scorers[name].requires_grad_(True)

    def accuracy(scores: Scores) -> float:
        return sum(scores.layers[name].accuracy for name in names if name in scores.layers)

    made = student.fit(
        TreeExamples(student.batcher, sentences, student.inventory),
        config,
        seed=seed,
        held_out=None if dev_scores is None else lambda _: accuracy(dev_scores()),
        folder=folder,
        title=f"training {', '.join(names)}",
    )
    student.network.requires_grad_(True)
    return {"layers": list(names), "sentences": len(sentences), "epochs": made["epochs"], "seed": seed}
