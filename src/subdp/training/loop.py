"""The one training loop, for gold trees and for soft trees alike.

`train` reads top to bottom: batches, step, held-out score, checkpoint. Every epoch draws its randomness from the seed
and its own number, so a run that was killed and resumed with the same number of threads ends with exactly the weights
of an uninterrupted one. With several ranks this runs on rank 0; the others take part in its steps (`step.py`).
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import safetensors
import torch
from safetensors.torch import save
from torch import Tensor, nn

from subdp.encoder.batch import UNTRAINED_WORDS, batches
from subdp.encoder.threads import in_background, side_by_side
from subdp.network.biaffine import Biaffine
from subdp.support.errors import SubdpError
from subdp.support.files import open_output
from subdp.support.progress import progress
from subdp.support.settings import TrainConfig
from subdp.training.adam import Adam
from subdp.training.examples import Examples
from subdp.training.ranks import current_ranks
from subdp.training.step import Learner

CHECKPOINT = "checkpoint.safetensors"
METRICS = "metrics.jsonl"
_MOMENTS = ("exp_avg", "exp_avg_sq")  # What Adam's moments are called in a checkpoint.


@dataclass(frozen=True, slots=True)
class History:
    """Where training stands: epochs and steps done, the best held-out score with its epoch; and what it is of."""

    data: str = ""
    epoch: int = 0
    step: int = 0
    best: float = -math.inf
    best_epoch: int = 0


def train(
    network: Biaffine,
    examples: Examples,
    config: TrainConfig,
    *,
    seed: int,
    held_out: Callable[[Biaffine], float] | None = None,
    folder: Path | None = None,
    title: str = "training",
    encoder: str = "",
) -> History:
    """Train a network in place; it ends with the weights of the best epoch by `held_out` (more is better), or the last.

    With a `folder`, a checkpoint is written after every epoch, in the background (a full disk is noticed only at the
    end of the next one), and training resumes from a checkpoint that is there. `encoder` is the fingerprint of the one
    whose vectors the network reads: a checkpoint of another is refused.
    """
    network.train()  # For CUDA, whose LSTM has no gradients in eval mode; dropout masks are passed in.
    learner, ranks = Learner(network, examples, config), current_ranks()
    trained, optimizer = learner.trained, learner.optimizer
    average, best = _copy(trained), _copy(trained)
    history = History(data=_data_key(examples, seed, encoder))
    if folder is not None and (folder / CHECKPOINT).exists():
        history = _restore(folder / CHECKPOINT, history.data, trained, optimizer, average, best)
    words = sum(examples.lengths)
    batch_words = max(1, min(config.batch_words, words // config.least_batches))
    bar = progress(title, config.epochs * words, "words", done=history.epoch * words)
    with bar as advance, in_background() as begin, ranks.assisted(learner.assist):
        while history.epoch < config.epochs and history.epoch - history.best_epoch < config.patience:
            epoch = history.epoch + 1
            torch.manual_seed(_seed(seed, epoch))
            total, step = 0.0, history.step
            for indices in batches(examples.lengths, batch_words, _seed(seed, epoch)):
                count = sum(examples.lengths[index] for index in indices)
                total += learner.step(ranks, indices, 0.75 ** (step / config.decay_steps))
                step += 1
                _move(average, trained, min(config.average, step / (step + 10)))  # no long memory of the first steps
                advance(count)
            score = _score(trained, average, lambda: held_out(network)) if held_out else float(epoch)
            history = replace(history, epoch=epoch, step=step)
            if score > history.best:
                history = replace(history, best=score, best_epoch=epoch)
                best = {name: tensor.clone() for name, tensor in average.items()}
            advance(note=f"epoch {epoch}  loss {total / words:.3f}" + (f"  held out {score:.3f}" if held_out else ""))
            if folder is not None:
                metrics = {"epoch": epoch, "step": step, "loss": total / words, "held_out": score}
                begin(partial(_write, folder, metrics, _snapshot(trained, optimizer, average, best), history))
    trained.load_state_dict(best)
    return history


def mean_loss(network: Biaffine, examples: Examples) -> float:
    """The loss per word on examples that are not trained on."""
    parts = list(batches(examples.lengths, UNTRAINED_WORDS, seed=0))
    losses = [0.0] * len(parts)

    @torch.inference_mode()
    def work(number: int) -> None:
        losses[number] = examples.loss(network, parts[number]).item()

    side_by_side(work, range(len(parts)), network.device)
    return sum(losses) / sum(examples.lengths)


def _data_key(examples: Examples, seed: int, encoder: str) -> str:
    """What tells one training from another: seed, encoder, what the examples are, and the number of words of each."""
    facts = json.dumps([seed, encoder, examples.origin, list(examples.lengths)])
    return hashlib.sha256(facts.encode()).hexdigest()[:16]


def _seed(seed: int, epoch: int) -> int:
    return int(np.random.SeedSequence([seed, epoch]).generate_state(1)[0])


def _copy(trained: nn.Module) -> dict[str, Tensor]:
    return {name: tensor.detach().clone() for name, tensor in trained.state_dict().items()}


def _move(average: dict[str, Tensor], trained: nn.Module, memory: float) -> None:
    """Update the moving average of the weights: memory · average + (1 − memory) · weights."""
    for name, tensor in trained.state_dict().items():
        average[name].lerp_(tensor, 1 - memory)


def _score(trained: nn.Module, average: dict[str, Tensor], held_out: Callable[[], float]) -> float:
    """The held-out score of the averaged weights; training continues with its own."""
    own = _copy(trained)
    trained.load_state_dict(average)
    score = held_out()
    trained.load_state_dict(own)
    return score


def _write(folder: Path, metrics: dict[str, float], tensors: dict[str, Tensor], history: History) -> None:
    """Append a line of metrics, dropping lines that a killed run wrote without a checkpoint; write the checkpoint."""
    path = folder / METRICS
    lines = path.read_text().splitlines() if path.exists() else []
    kept = [line for line in lines if json.loads(line)["epoch"] < metrics["epoch"]]
    with open_output(path) as output:
        output.write("".join(f"{line}\n" for line in [*kept, json.dumps(metrics)]).encode())
    with open_output(folder / CHECKPOINT) as output:
        output.write(save(tensors, {"history": json.dumps(asdict(history))}))


def _snapshot(
    trained: nn.Module, optimizer: Adam, average: dict[str, Tensor], best: dict[str, Tensor]
) -> dict[str, Tensor]:
    """Copies in main memory of what resuming needs: weights, Adam's moments, average and best weights."""
    tensors = {f"weights.{name}": tensor for name, tensor in trained.state_dict().items()}
    tensors |= {f"average.{name}": tensor for name, tensor in average.items()}
    tensors |= {f"best.{name}": tensor for name, tensor in best.items()}
    for name, moments in optimizer.moments.items():
        tensors |= {f"adam.{key}.{name}": moment for key, moment in zip(_MOMENTS, moments, strict=True)}
    plain = torch.contiguous_format
    return {name: tensor.to("cpu", copy=True, memory_format=plain) for name, tensor in tensors.items()}


def _restore(
    path: Path,
    data: str,
    trained: nn.Module,
    optimizer: Adam,
    average: dict[str, Tensor],
    best: dict[str, Tensor],
) -> History:
    """Restore everything from a checkpoint."""
    try:
        with safetensors.safe_open(path, "pt") as file:
            history = History(**json.loads(file.metadata()["history"]))
            if history.data != data:
                raise KeyError("its data, encoder or seed was another")
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  # not a dictionary
        trained.load_state_dict({name: tensors[f"weights.{name}"] for name in trained.state_dict()})
        for name in trained.state_dict():
            average[name].copy_(tensors[f"average.{name}"])
            best[name].copy_(tensors[f"best.{name}"])
        mean, square = ({name: tensors[f"adam.{key}.{name}"] for name in optimizer.moments} for key in _MOMENTS)
        optimizer.resume(history.step, {name: (mean[name], square[name]) for name in optimizer.moments})
    except (safetensors.SafetensorError, KeyError, RuntimeError) as error:
        damaged = isinstance(error, safetensors.SafetensorError)
        hint = f"it {'is damaged' if damaged else 'belongs to another training'}; remove it to start over"
        raise SubdpError(f"cannot be resumed from: {error.args[0]}", where=str(path), hint=hint) from None
    return history
