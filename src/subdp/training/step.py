"""One step of training: the gradients of a batch, divided among the cores of all ranks; then Adam."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from subdp.encoder.batch import Batcher
from subdp.encoder.threads import cores, side_by_side
from subdp.network.biaffine import Biaffine
from subdp.support.settings import TrainConfig
from subdp.training.adam import Adam, Moments
from subdp.training.examples import Examples
from subdp.training.ranks import Ranks

_LEAST_WORDS = 50  # Per core: fewer are not worth a core's own gradients, which are as large as the network.


@dataclass(frozen=True, slots=True, eq=False)
class _Batch:
    """What rank 0 tells the others of a step; from the same random state, all draw the same dropout."""

    indices: Sequence[int]
    decay: float
    cores: int
    random: Tensor


class Learner:
    """Everything that a step changes, on every rank: all start with the same weights and so end with the same."""

    def __init__(
        self, network: Biaffine, examples: Examples, config: TrainConfig, adam: tuple[int, Moments] | None = None
    ):
        self.network, self.examples, self.config = network, examples, config
        self.trained = trained_parts(network, examples.batcher)
        self.parameters = [parameter for parameter in self.trained.parameters() if parameter.requires_grad]
        self.optimizer = _optimizer(self.trained, config)
        if adam is not None:
            self.optimizer.resume(*adam)

    def __reduce__(self) -> Any:
        """A batcher that is trained is made anew from a pickle: the parameters are then those of the new one."""
        return Learner, (self.network, self.examples, self.config, (self.optimizer.steps, self.optimizer.moments))

    def step(self, ranks: Ranks, indices: Sequence[int], decay: float) -> float:
        """On rank 0: take a step on a batch, together with the others; returns its loss, summed over words.

        `decay` is the share of the initial learning rate that is left.
        """
        device = self.network.device
        return self._step(ranks, ranks.tell(_Batch(indices, decay, cores(device), _random_state(device))))

    def assist(self, ranks: Ranks) -> None:
        """On the other ranks: take the steps that rank 0 takes, until it says that there are no more."""
        while (batch := ranks.tell()) is not None:
            _set_random_state(self.network.device, batch.random)
            self._step(ranks, batch)

    def _step(self, ranks: Ranks, batch: _Batch) -> float:
        loss = self._gradients(ranks, batch)
        _clip(self.trained, self.config.clip)
        self.optimizer.step(batch.decay)
        return loss

    def _gradients(self, ranks: Ranks, batch: _Batch) -> float:
        """Set the gradients of a batch's mean loss per word, and return the loss summed over words.

        The sentences are divided among all cores, since the steps of a BiLSTM are too small to parallelise. Dropout is
        drawn for the whole batch, so that the number of cores and of ranks changes only rounding.
        """
        network, lengths = self.network, [self.examples.lengths[index] for index in batch.indices]
        words = sum(lengths)
        dropout = network.draw_dropout(len(lengths), max(lengths))
        shares = min(len(lengths), ranks.count * batch.cores, max(1, words // _LEAST_WORDS))
        own = range(ranks.rank, shares, ranks.count)
        found: list[tuple[float, tuple[Tensor, ...]]] = [(0.0, ())] * len(own)

        def work(number: int) -> None:
            rows = slice(own[number], None, shares)
            loss = self.examples.loss(network, batch.indices[rows], [mask[rows] for mask in dropout])
            found[number] = loss.item(), torch.autograd.grad(loss / words, self.parameters)

        with ranks.together():
            side_by_side(work, range(len(own)), network.device)
        for parameter, *parts in zip(self.parameters, *(gradients for _, gradients in found), strict=True):
            # A copy: Adam's fused step assumes the parameter's memory layout, and two gradients may share their memory.
            parameter.grad = torch.empty_like(parameter).copy_(parts[0]) if parts else torch.zeros_like(parameter)
            for part in parts[1:]:
                parameter.grad += part
        gradients = [parameter.grad for parameter in self.parameters if parameter.grad is not None]
        return ranks.add(gradients, sum(loss for loss, _ in found))


def trained_parts(network: Biaffine, batcher: Batcher) -> nn.ModuleDict:
    """Everything that is trained: the network, and the batcher if it has parameters."""
    return nn.ModuleDict({"network": network} | ({"batcher": batcher} if isinstance(batcher, nn.Module) else {}))


def _optimizer(trained: nn.ModuleDict, config: TrainConfig) -> Adam:
    """Adam, with a learning rate of its own for layers of the encoder."""
    rates = {"network": config.lr, "batcher": config.encoder_lr}
    named = {name: parameter for name, parameter in trained.named_parameters() if parameter.requires_grad}
    return Adam(
        ({name: parameter for name, parameter in named.items() if name.startswith(f"{part}.")}, rates[part])
        for part in trained
    )


def _clip(network: nn.Module, longest: float) -> None:
    """Scale the gradient down to the maximum norm, if it is larger."""
    gradients = [parameter.grad for parameter in network.parameters() if parameter.grad is not None]
    norm = torch.nn.utils.get_total_norm(gradients)
    if norm > longest:
        torch.nn.utils.clip_grads_with_norm_(network.parameters(), longest, norm)


def _random_state(device: torch.device) -> Tensor:
    return torch.cuda.get_rng_state(device) if device.type == "cuda" else torch.get_rng_state()


def _set_random_state(device: torch.device, state: Tensor) -> None:
    torch.cuda.set_rng_state(state, device) if device.type == "cuda" else torch.set_rng_state(state)
