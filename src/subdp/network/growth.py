"""New networks: with random weights, or with the weights of another network that has fewer values (labels of another
source parser, of trees, of a new tag set), reads other layers or has other sizes.
"""

from __future__ import annotations

import copy

import torch
from torch import Tensor

from subdp.encoder.encoder import Encoder
from subdp.network.biaffine import Biaffine
from subdp.projection.substructures import Inventory
from subdp.support.errors import SubdpError
from subdp.support.settings import NetworkConfig

_NEVER = -10.0  # The score of a value that has not been learnt: possible, but hardly ever chosen.


def new_network(config: NetworkConfig, encoder: Encoder, inventory: Inventory, seed: int) -> Biaffine:
    """A network with random weights, for the vectors of an encoder."""
    torch.manual_seed(seed)
    return Biaffine(config, len(encoder.check_layers(config.layers)), encoder.hidden, inventory)


def with_values(network: Biaffine, known: Inventory, wanted: Inventory, sizes: Biaffine) -> Biaffine:
    """Copy the weights of `network` into `sizes`, a new network for the values `wanted`: the `known` ones and more."""
    for name, values in known.items():
        if wanted.get(name, ())[: len(values)] != values:
            raise SubdpError(f"the {name} do not begin with the parser's own")
    state = sizes.state_dict()
    for name, old in network.state_dict().items():
        state[name] = _grown(name, old, state[name])
    sizes.load_state_dict(state)
    return sizes.to(network.device)


def with_weights(network: Biaffine, other: Biaffine) -> Biaffine:
    """Copy the weights of `network` that fit, by name and shape, into `other`."""
    state, old = other.state_dict(), network.state_dict()
    fitting = {name: old[name] for name, new in state.items() if name in old and old[name].shape == new.shape}
    other.load_state_dict({**state, **fitting})
    return other.to(network.device)


def has_weights(network: Biaffine, other: Biaffine) -> bool:
    """Whether a network has the weights of another, as far as it predicts the same; it may have more values."""
    state, theirs = network.state_dict(), other.state_dict()
    if not state.keys() <= theirs.keys():
        return False
    for name, own in state.items():
        old = theirs[name].to(own.device)
        fits = old.shape[1:] == own.shape[1:] and old.shape[:1] <= own.shape[:1]
        if not fits or not torch.equal(_grown(name, old, own), own):
            return False
    return True


def towards(network: Biaffine, other: Biaffine, share: float) -> Biaffine:
    """A copy of a network, moved this share of the way to the weights of `other`; values that that lacks stay
    improbable.
    """
    found = copy.deepcopy(network)
    state, theirs = found.state_dict(), other.state_dict()
    for name, own in state.items():
        state[name] = own.lerp(_grown(name, theirs[name].to(own.device), own), share)
    found.load_state_dict(state)
    return found


def _grown(name: str, old: Tensor, new: Tensor) -> Tensor:
    """A weight with more rows; those of new values are zero except for the bias."""
    if old.shape == new.shape:
        return old
    grown = torch.zeros(new.shape, device=old.device)
    grown[: len(old)] = old
    if old.dim() == 3:  # [values, d+1, d+1]: the last entry of both vectors is the constant 1, and this is the bias.
        grown[len(old) :, -1, -1] = _NEVER
    elif name.endswith("bias"):
        grown[len(old) :] = _NEVER
    return grown
