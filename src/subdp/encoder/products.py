"""Matrix products in float32 on a CPU by oneDNN, which comes with torch.

torch itself computes them by MKL, which uses at most AVX2 on processors that are not Intel's: on one with AVX-512,
oneDNN takes less than half the time (benchmarks/PROFILE.md; not measured on Intel's). The two differ in rounding alone.
oneDNN compiles a kernel for every new number of rows, so rows are padded to one of a few numbers. Imports torch.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional

_STEPS = 8  # Numbers of rows between one power of two and the next: of many rows, at most an eighth is padding.
_LEAST = 16  # Numbers of rows are multiples of this.


class Linear(nn.Linear):
    """torch's, with other products."""

    def forward(self, input: Tensor) -> Tensor:
        """*Shape:* [..., in] → [..., out]."""
        return linear(input, self.weight, self.bias)


def use_onednn(blocks: nn.Module) -> None:
    """Have the linear maps in a module computed by oneDNN, where that is possible."""
    for module in blocks.modules():
        if type(module) is nn.Linear:
            module.__class__ = Linear  # It has no more state than torch's.


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x Wᵀ + b. *Shape:* x [..., in], weight [out, in], bias [out] → [..., out]."""
    types = {x.dtype, weight.dtype}
    if x.device.type != "cpu" or types != {torch.float32} or not x.numel() or not _available():
        return functional.linear(x, weight, bias)
    found: Tensor = _Linear.apply(_padded(x), weight, bias)  # type: ignore[no-untyped-call]
    return found[: x.shape[:-1].numel()].view(*x.shape[:-1], -1)


class _Linear(torch.autograd.Function):
    """x Wᵀ + b with its gradients, which are products too."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """*Shape:* as `_product`."""
        ctx.save_for_backward(x, weight)
        return _product(x, weight, bias)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        """*Shape:* [rows, out] → [rows, in], [out, in], [out]."""
        (x, weight), needed = ctx.saved_tensors, ctx.needs_input_grad
        return (
            _product(gradient, weight.t()) if needed[0] else None,
            _product(x.t(), gradient.t()).t() if needed[1] else None,
            gradient.sum(0) if needed[2] else None,
        )


def _product(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """*Shape:* x [rows, in], weight [out, in], bias [out] → [rows, out]."""
    found: Tensor = torch.ops.mkldnn._linear_pointwise(x, weight, bias, "none", [], "")
    return found


def _padded(x: Tensor) -> Tensor:
    """Rows, with as many of zeros at the end as make their number one of a few. *Shape:* [..., d] → [rows, d]."""
    rows = x.reshape(-1, x.shape[-1])
    step = max(_LEAST, 1 << max(0, len(rows).bit_length() - _STEPS.bit_length()))
    missing = -len(rows) % step
    return torch.cat((rows, rows.new_zeros(missing, rows.shape[1]))) if missing else rows


@cache
def _available() -> bool:
    """Whether this build of torch has oneDNN."""
    built: bool = torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
    return built and hasattr(torch.ops.mkldnn, "_linear_pointwise")
