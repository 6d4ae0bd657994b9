"""Adam (Kingma and Ba 2015), by the operator that torch's own optimizer calls.

Creating one of torch's optimizers imports its compiler, which takes a second: as long as a few epochs on little silver.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

import torch
from torch import Tensor, nn

Moments: TypeAlias = Mapping[str, tuple[Tensor, Tensor]]
"""The running means of gradients and of their squares, by the names of parameters and in their shapes."""
_BETA, _EPSILON = 0.9, 1e-12  # β₁ = β₂ and ε in the appendix of the SubDP paper.


class Adam:
    """Adam over named parameters, in groups with a learning rate each.

    `steps` is the number of steps taken.
    """

    def __init__(self, groups: Iterable[tuple[dict[str, nn.Parameter], float]]):
        self._groups = [(parameters, rate) for parameters, rate in groups if parameters]
        self.steps = 0
        self.moments: Moments = {
            name: (torch.zeros_like(parameter), torch.zeros_like(parameter))
            for parameters, _ in self._groups
            for name, parameter in parameters.items()
        }

    def resume(self, steps: int, moments: Moments) -> None:
        """Continue from where another one with the same parameters stands."""
        self.steps = steps
        for name, own in self.moments.items():
            for moment, other in zip(own, moments[name], strict=True):
                moment.copy_(other)

    @torch.no_grad()
    def step(self, decay: float) -> None:
        """Move all parameters by their gradients; `decay` is the share of the learning rates that is left."""
        self.steps += 1
        for parameters, rate in self._groups:
            first, second = zip(*(self.moments[name] for name in parameters), strict=True)
            number = torch.tensor(float(self.steps), device=first[0].device)
            torch._fused_adam_(
                list(parameters.values()),
                [parameter.grad for parameter in parameters.values() if parameter.grad is not None],
                first,
                second,
                [],
                [number] * len(parameters),
                lr=rate * decay,
                beta1=_BETA,
                beta2=_BETA,
                weight_decay=0.0,
                eps=_EPSILON,
                amsgrad=False,
                maximize=False,
            )
