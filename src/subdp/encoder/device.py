"""Where torch computes: the processor, or a GPU by name."""

from __future__ import annotations

import torch

from subdp.support.errors import SubdpError


def find_device(name: str | torch.device | None = None) -> torch.device:
    """The device of that name, tried out; by default a GPU if there is one."""
    if name is None:
        name = "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
    try:
        device = torch.device(name)
        torch.zeros(1, device=device).item()
        return device
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = f"the device {str(name)!r} cannot be used: {(str(error).strip() or 'it is not there').splitlines()[0]}"
        raise SubdpError(reason, hint="name cpu, cuda, cuda:1 or mps, or leave it out") from None
