"""8-bit products: the linear maps in an encoder's layers, in integers, for processors with AVX-512 VNNI instructions.

    in_eight_bits(encoder.blocks, encoder.name)

y = W x + b becomes y = s_W · s_x · (W₈ x₈) + b, where every row of W and every vector x is divided by a scale of its
own, so that its largest entry is 127, and rounded. No scale depends on the other sentences of a batch. Imports torch.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from subdp.encoder.threads import side_by_side
from subdp.support.errors import SubdpError

_LARGEST = 127
_TINY = 1e-30  # Minimum scale: avoids dividing a row of zeros by 0.


class EightBitLinear(nn.Module):
    """A linear map whose product is computed in 8-bit integers; it cannot be trained.

    *Shape:* weight [out, in] int8, scale [out], bias [out].
    """

    def __init__(self, linear: nn.Linear):
        super().__init__()
        weight, scale = _rounded(linear.weight.detach())
        self.register_buffer("weight", weight)
        self.register_buffer("scale", scale.squeeze(-1))
        bias = torch.zeros_like(scale.squeeze(-1)) if linear.bias is None else linear.bias.detach()
        self.register_buffer("bias", bias)

    def forward(self, x: Tensor) -> Tensor:
        """*Shape:* [..., in] → [..., out]."""
        rows, scale = _rounded(x.flatten(0, -2))
        product = integer_product(rows, self.get_buffer("weight")).float().mul_(scale)
        y = torch.addcmul(self.get_buffer("bias"), product, self.get_buffer("scale"))
        return y.view(*x.shape[:-1], -1)


def integer_product(x: Tensor, weight: Tensor) -> Tensor:
    """x · weightᵀ, exactly. *Shape:* [rows, in] and [out, in] int8 → [rows, out] int32."""
    return torch._int_mm(x, weight.t())


def in_eight_bits(blocks: nn.Module, where: str) -> None:
    """Replace the linear maps in an encoder's layers, in place; an error where this processor is not made for it."""
    check_processor()
    if next(blocks.parameters()).dtype != torch.float32:
        raise SubdpError("8-bit products are for an encoder in float32", where=where)
    parts = [(module, *child) for module in blocks.modules() for child in module.named_children()]
    found = [(module, name, part) for module, name, part in parts if isinstance(part, nn.Linear)]
    if not found:
        raise SubdpError("has no linear layers to run in 8 bits", where=where, hint="leave out --encoder-bits")

    def replace(place: tuple[nn.Module, str, nn.Linear]) -> None:
        setattr(place[0], place[1], EightBitLinear(place[2]))

    # One core for each: on a busy machine, many small operations that all cores share wait for each other.
    side_by_side(replace, found, torch.device("cpu"))


def check_processor() -> None:
    """Raise unless 8-bit products are exact and fast here.

    Without these instructions, the libraries below torch add up 8-bit products in 16 bits, which overflows in silence.
    """
    most = torch.full((32, 64), _LARGEST, dtype=torch.int8)
    if not torch.cpu._is_vnni_supported() or (integer_product(most, most) != 64 * _LARGEST**2).any():
        reason = "8-bit products need a processor with AVX-512 VNNI instructions, which this one lacks"
        raise SubdpError(reason, hint="leave out --encoder-bits (encoder_bits in a file, bits= in Python)")


def _rounded(rows: Tensor) -> tuple[Tensor, Tensor]:
    """Rows as 8-bit integers, each by its own scale. *Shape:* [rows, in] → [rows, in] int8, [rows, 1]."""
    scale = (rows.abs().amax(-1, keepdim=True) / _LARGEST).clamp_(min=_TINY)
    return (rows / scale).round_().to(torch.int8), scale
