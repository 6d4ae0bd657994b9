"""Adam (Kingma and Ba 2015), by the operator that torch's own optimizer calls.

Making an optimizer of torch's imports its compiler, which takes a second: as long as some epochs with few pairs.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor, nn

_BETA, _EPSILON = 0.9, 1e-12  # β₁ = β₂ and ε of the paper's appendix.


class Adam:
    """Adam over named parameters, in groups with a learning rate each.

    `moments` has the running means of the gradients and of their squares, by name and in the shapes of the parameters;
    `steps` is the number of steps taken.
    """

    def __init__(self, groups: Iterable[tuple[dict[str, nn.Parameter], float]]):
        self._groups = [(parameters, rate) for parameters, rate in groups if parameters]
        self.steps = 0
        self.moments: dict[str, tuple[Tensor, Tensor]] = {
            name: (torch.zeros_like(parameter), torch.zeros_like(parameter))
            for parameters, _ in self._groups
            for name, parameter in parameters.items()
        }

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
