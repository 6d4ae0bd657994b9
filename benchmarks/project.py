"""How fast labels are projected, on one core, beside the formula as one three-operand einsum in torch: one run.

    python benchmarks/project.py

Pairs of 25 words and 40 labels; half of the words have one link, some two, the rest none.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import torch

from subdp.project import project_labels, target_to_source

WORDS, LABELS, BATCH, REPEATS = 25, 40, 64, 9


def einsum(labels: torch.Tensor, alignment: torch.Tensor) -> torch.Tensor:
    """The formula as it stands, NULL written out."""
    to_source = target_to_source(alignment)
    extended = torch.full((len(labels), WORDS + 2, WORDS + 2, LABELS), 1 / LABELS)
    extended[:, :-1, :-1] = labels
    return torch.einsum("bpi,bijl,bqj->bpql", to_source, extended, to_source)


def pairs_a_second(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return BATCH / (time.perf_counter() - start)


def main() -> None:
    torch.set_num_threads(1)
    random = np.random.default_rng(0)
    labels = random.dirichlet(np.ones(LABELS), (BATCH, WORDS + 1, WORDS + 1)).astype(np.float32)
    alignment = np.zeros((BATCH, WORDS + 1, WORDS + 1), np.float32)
    alignment[:, 1:, 1:] = random.random((BATCH, WORDS, WORDS)) < 1 / WORDS
    alignment[:, 0, 0] = 1
    tensors = torch.from_numpy(labels), torch.from_numpy(alignment)
    np.testing.assert_allclose(project_labels(*tensors), einsum(*tensors), atol=1e-5)
    kinds: dict[str, Callable[[], object]] = {
        "ours, torch, batch of 64": lambda: project_labels(*tensors),
        "ours, numpy, batch of 64": lambda: project_labels(labels, alignment),
        "ours, numpy, one by one": lambda: [project_labels(*pair) for pair in zip(labels, alignment, strict=True)],
        "einsum, torch, batch of 64": lambda: einsum(*tensors),
        "einsum, torch, one by one": lambda: [
            einsum(label[None], links[None]) for label, links in zip(*tensors, strict=True)
        ],
    }
    rates: dict[str, list[float]] = {name: [] for name in kinds}
    for run in kinds.values():
        run()
    for _ in range(REPEATS):
        for name, run in kinds.items():
            rates[name].append(pairs_a_second(run))
    for name, values in rates.items():
        low, middle, high = np.percentile(values, [25, 50, 75])
        print(f"{name:28} {middle:>8,.0f} pairs/s ({low:,.0f}–{high:,.0f})")


if __name__ == "__main__":
    main()
