"""What all tests share: a cache of their own, and a tiny real encoder."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import torch
from hypothesis import settings

from tests.tiny import tiny_encoder

if TYPE_CHECKING:
    from subdp.encoder.encoder import Encoder


settings.register_profile("subdp", deadline=None)  # A busy machine is no fault of the code.
settings.load_profile("subdp")


@pytest.fixture(scope="session", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """No test reads or fills the user's cache."""
    folder = tmp_path_factory.mktemp("cache")
    torch.set_num_threads(1)  # Tiny tensors: threads would wait for each other.
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(os.environ, "SUBDP_CACHE", str(folder))
        yield folder


@pytest.fixture(scope="session")
def tiny_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model folder of the tiny encoder."""
    return tiny_encoder(tmp_path_factory.mktemp("encoder") / "tiny")


@pytest.fixture(scope="session")
def tiny(tiny_folder: Path) -> Encoder:
    """The tiny encoder, loaded."""
    from subdp.encoder.encoder import Encoder

    return Encoder.load(tiny_folder)


@pytest.fixture(scope="session")
def cluster() -> Iterator[Any]:
    """A Ray cluster of two nodes on this machine, with a core each."""
    os.environ.setdefault("RAY_raylet_start_wait_time_s", "180")  # on a busy machine
    ray = pytest.importorskip("ray", reason="Ray is not installed: pip install 'subdp[ray]'")
    from ray.cluster_utils import Cluster

    two = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    two.add_node(num_cpus=1)
    yield two
    ray.shutdown()
    two.shutdown()
