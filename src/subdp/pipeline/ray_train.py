"""Training on a Ray cluster: Ray Train's TorchTrainer starts the ranks, which then train as under torchrun.

All nodes must see the folders that are read and written, and the cache. Ray, an extra, is imported when this is used.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

from subdp.support.errors import SubdpError, first_line
from subdp.support.ray_cluster import check_nodes, enter, surroundings


def on_ray(work: Callable[[], str], ranks: int, folder: Path, device: str | None = None) -> str:
    """Call `work`, which is pickled, on rank 0 of as many ranks, each with a core or a GPU; returns what it returns.

    Ray Train keeps its notes in `folder`. A rank that fails ends all of them.
    """
    import ray
    from ray.train import RunConfig, ScalingConfig, TrainingFailedError
    from ray.train.torch import TorchConfig, TorchTrainer

    from subdp.training.ranks import STEP_SECONDS, on_ranks

    class OwnGpu(TorchConfig):  # type: ignore[misc]  # Ray has no types.
        """Every rank sees one GPU, its own, as `training/ranks.py` expects."""

        @property
        def backend_cls(self) -> Any:
            return type("Backend", (super().backend_cls,), {"share_cuda_visible_devices": False})

    here = surroundings()

    def rank() -> str | None:
        enter(here)
        os.environ["SUBDP_QUIET"] = "1"
        return on_ranks(work)

    units, unit = ray.cluster_resources(), "GPU" if _on_gpus(device, ranks) else "CPU"
    if units.get(unit, 0) < ranks:
        reason = f"{ranks} ranks need a {unit} each, but the cluster has {int(units.get(unit, 0))}"
        raise SubdpError(reason, hint="use fewer --ranks")
    check_nodes(pickle.dumps(work), unit)
    trainer = TorchTrainer(
        rank,
        torch_config=OwnGpu(timeout_s=STEP_SECONDS),
        scaling_config=ScalingConfig(num_workers=ranks, use_gpu=unit == "GPU"),
        run_config=RunConfig(storage_path=str(folder.absolute())),
    )
    try:
        said: str = trainer.fit().return_value
    except TrainingFailedError as error:
        raise _cause(error) from error
    return said


def _on_gpus(device: str | None, ranks: int) -> bool:
    """Whether ranks train on GPUs: if so asked, or by default if there are enough."""
    import ray

    if device is not None:
        return device.startswith("cuda")
    return bool(ray.cluster_resources().get("GPU", 0) >= ranks)


def _cause(error: Any) -> SubdpError:
    """What went wrong on the first rank that can tell."""
    failures = getattr(error, "worker_failures", {})
    for rank in sorted(failures):
        if isinstance(failure := failures[rank], SubdpError):
            return failure
    hint = "what is done is kept, and the same command resumes from there"
    return SubdpError(f"Ray stopped: {first_line(next(iter(failures.values()), error))}", hint=hint)
