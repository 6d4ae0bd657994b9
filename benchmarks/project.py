"""How fast labels are projected, on one core, compared with one three-operand einsum in torch.

    python benchmarks/project.py

Batches of 64 pairs of 25 words with 40 labels; the same arrays for all; in CPU time. "aligned" is as words are in real
text: of the target words 75 % have one link, 12 % two, the others none. "dense" links every word with every other, by
random weights: nothing to gain from sparseness there.
"""

from __future__ import annotations

import time

import numpy as np
import numpy.typing as npt
import torch

from measure import Row, alternate, arguments, compare, give
from subdp.projection.operators import project_labels, target_to_source

Floats = npt.NDArray[np.float32]
WORDS, LABELS, BATCH = 25, 40, 64
AIM = 5.0


def einsum(labels: torch.Tensor, alignment: torch.Tensor) -> torch.Tensor:
    """The formula as it stands, NULL written out."""
    to_source = target_to_source(alignment)
    extended = torch.full((len(labels), WORDS + 2, WORDS + 2, LABELS), 1 / LABELS)
    extended[:, :-1, :-1] = labels
    return torch.einsum("bpi,bijl,bqj->bpql", to_source, extended, to_source)


def aligned(random: np.random.Generator) -> Floats:
    """Links as in real text. *Shape:* [B, S+1, T+1]"""
    alignment = np.zeros((BATCH, WORDS + 1, WORDS + 1), np.float32)
    alignment[:, 0, 0] = 1
    for links in alignment:
        partners, others = (1 + random.permutation(WORDS) for _ in range(2))
        kind = random.random(WORDS)
        words = np.arange(1, WORDS + 1)
        links[partners[kind < 0.87], words[kind < 0.87]] = 1
        links[others[kind < 0.12], words[kind < 0.12]] = 1
    return alignment


def dense(random: np.random.Generator) -> Floats:
    """Every word linked with every other. *Shape:* [B, S+1, T+1]"""
    alignment = np.zeros((BATCH, WORDS + 1, WORDS + 1), np.float32)
    alignment[:, 1:, 1:] = random.random((BATCH, WORDS, WORDS))
    alignment[:, 0, 0] = 1
    return alignment


def one_kind(name: str, labels: Floats, alignment: Floats, repeats: int, aim: float | None) -> list[Row]:
    """Compare on one batch; the results must be the same."""
    tensors = torch.from_numpy(labels), torch.from_numpy(alignment)
    for found in (project_labels(*tensors), project_labels(labels, alignment)):
        np.testing.assert_allclose(found, einsum(*tensors), atol=1e-5)
    ways = {
        "tensors": lambda: project_labels(*tensors),
        "arrays": lambda: project_labels(labels, alignment),
        "torch einsum": lambda: einsum(*tensors),
    }
    times = alternate(ways, repeats, clock=time.process_time, loops=dict.fromkeys(ways, 10))
    rows = []
    for ours in ("tensors", "arrays"):
        both = {name: times[name] for name in (ours, "torch einsum")}
        work = f"project labels, {name}, {ours} of {BATCH} pairs"
        aims = {} if aim is None else {"torch einsum": aim}
        rows += compare(work, both, unit="pairs/s", figure=lambda taken: BATCH / taken, aims=aims, ours=ours)
    return rows


def main() -> None:
    options = arguments(__doc__).parse_args()
    torch.set_num_threads(1)
    random = np.random.default_rng(0)
    labels = random.dirichlet(np.ones(LABELS), (BATCH, WORDS + 1, WORDS + 1)).astype(np.float32)
    rows = one_kind("aligned", labels, aligned(random), options.repeats, AIM)
    give(rows + one_kind("dense", labels, dense(random), options.repeats, None), options.json)


if __name__ == "__main__":
    main()
