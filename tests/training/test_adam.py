"""Adam: the same steps as torch's own."""

from __future__ import annotations

import subprocess
import sys

import torch
from torch import nn

from subdp.training.adam import Adam


def test_steps_are_those_of_torch() -> None:
    torch.manual_seed(1)
    ours = {"square": nn.Parameter(torch.randn(5, 3)), "turned": nn.Parameter(torch.randn(4, 6).t())}
    one = {"single": nn.Parameter(torch.tensor(0.5))}
    theirs = [nn.Parameter(parameter.detach().clone()) for parameter in (*ours.values(), *one.values())]
    groups = [{"params": theirs[:2], "lr": 0.01}, {"params": theirs[2:], "lr": 0.003}]
    reference = torch.optim.Adam(groups, betas=(0.9, 0.9), eps=1e-12)
    adam = Adam([(ours, 0.02), (one, 0.006), ({}, 1.0)])
    for _ in range(20):
        for parameter, other in zip((*ours.values(), *one.values()), theirs, strict=True):
            gradient = torch.randn(parameter.shape)
            parameter.grad, other.grad = torch.empty_like(parameter).copy_(gradient), gradient
        adam.step(decay=0.5)
        reference.step()
    assert adam.steps == 20
    for parameter, other in zip((*ours.values(), *one.values()), theirs, strict=True):
        torch.testing.assert_close(parameter, other, atol=1e-6, rtol=1e-5)


def test_torchs_compiler_is_not_imported() -> None:
    code = (
        "import sys, torch; from torch import nn; from subdp.training.adam import Adam; import subdp.training.loop\n"
        "weight = nn.Parameter(torch.ones(2)); adam = Adam([({'weight': weight}, 0.1)])\n"
        "weight.grad = torch.ones(2); adam.step(1.0)\n"
        "assert 'torch._dynamo' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
