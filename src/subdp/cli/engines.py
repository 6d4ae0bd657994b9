"""What runs units of work, this machine or a Ray cluster: flags of several verbs, and the engine they ask for."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from cyclopts import Parameter

from subdp.support.engine import Engine, LocalEngine
from subdp.support.errors import SubdpError

Jobs: TypeAlias = Annotated[
    int | None,
    Parameter(
        help="Processes that work in parallel, each with its share of the cores; by default 1, or with Ray one for each"
        " core or GPU of the cluster."
    ),
]
EngineName: TypeAlias = Annotated[
    Literal["local", "ray"],
    Parameter(
        help="local for processes on this machine, ray for a Ray cluster that shares the output folder and cache."
    ),
]
RayAddress: TypeAlias = Annotated[
    str | None,
    Parameter(help="Ray cluster: HOST:PORT, or auto for the one that runs here. By default Ray is started here."),
]


def find_engine(name: EngineName, ray_address: str | None, jobs: int | None, device: str | None) -> Engine:
    """The engine that flags ask for; that of a cluster is connected, or an error says why not."""
    if name == "local":
        if ray_address is not None:
            raise SubdpError("--ray-address is given for the local engine", hint="add --engine ray, or leave it out")
        return LocalEngine(1 if jobs is None else jobs)
    from subdp.encoder.device import find_device
    from subdp.support.ray_engine import RayEngine

    return RayEngine(ray_address, jobs, gpu=find_device(device).type == "cuda")
