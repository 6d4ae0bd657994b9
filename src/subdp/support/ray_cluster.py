"""The connection to a Ray cluster, or to one that is started on this machine; and whether its nodes fit together.

Ray is an extra, imported when it is used. Errors are one sentence each, before any work.
"""

from __future__ import annotations

import hashlib
import logging
import os
import pickle
import socket
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

from subdp.support.cache import cache_folder
from subdp.support.errors import SubdpError, first_line

_ANSWER_SECONDS = 5.0
_LOAD_SECONDS = 300.0  # to load an encoder on a busy node
_START = "start a cluster with `ray start --head`, or leave out --ray-address to start Ray on this machine"


def connect(address: str | None = None) -> None:
    """Join the cluster at an address (`auto` finds the one that runs here), or start Ray on this machine.

    Without an address, the variable RAY_ADDRESS applies, which Ray sets in the jobs that it starts. A process that has
    joined a cluster already stays in it.
    """
    # What Ray says of processes that were killed would go to standard output, among the results.
    os.environ.setdefault("RAY_DEDUP_LOGS_SKIP_REGEX", ".*")
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")
    try:
        import ray
        import ray.data
    except ImportError:
        raise SubdpError("Ray is not installed", hint="pip install 'subdp[ray]'") from None
    logging.getLogger("ray.data").setLevel(logging.CRITICAL)
    if ray.is_initialized():
        _check_joined(address)
        return
    where = address or os.environ.get("RAY_ADDRESS") or "local"
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.CRITICAL}
    if where == "local":
        options["include_dashboard"] = False
    elif where != "auto":
        _check_answers(where)
    try:
        ray.init(where, **options)
    except Exception as error:  # Ray raises errors of all kinds.
        raise SubdpError(f"no connection to a Ray cluster: {first_line(error)}", where=where, hint=_START) from None


def _check_joined(address: str | None) -> None:
    """Raise if this process has joined another cluster than that at the address: it can be in one only."""
    import ray

    joined = ray.get_runtime_context().gcs_address
    if address not in (None, "auto", "local") and _place(address) != _place(joined):
        hint = "call ray.shutdown() first, or leave out the address"
        raise SubdpError(f"Ray is connected to another cluster already, {joined}", where=address, hint=hint)


def _place(address: str) -> tuple[str, str]:
    """The host and port of an address, the same for every name of a host."""
    import ray

    host, _, port = address.rpartition(":")
    with suppress(OSError):
        host = socket.gethostbyname(host)
    return ray.util.get_node_ip_address() if host.startswith("127.") else host, port


def _check_answers(address: str) -> None:
    """Raise unless something listens there: Ray itself would try for a minute."""
    host, colon, port = address.rpartition(":")
    if not colon or not port.isdecimal() or "/" in host:
        raise SubdpError("not the address of a Ray cluster", where=address, hint="give auto, or HOST:PORT")
    try:
        socket.create_connection((host.strip("[]"), int(port)), _ANSWER_SECONDS).close()
    except (OSError, OverflowError) as error:
        raise SubdpError(f"no Ray cluster answers: {first_line(error)}", where=address, hint=_START) from None


def count_of(resource: str) -> int:
    """How many `CPU`s or `GPU`s the cluster has; none is an error."""
    import ray

    count = int(ray.cluster_resources().get(resource, 0))
    if count < 1:
        raise SubdpError(f"the Ray cluster has no {resource}", hint="add a node, or choose another --device")
    return count


def check_nodes(work: bytes, resource: str) -> None:
    """Raise unless every node that is to work has the versions of this one and can load the work.

    The work is loaded on each: what it needs, such as its encoder, must be the same there.
    """
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    wanted, here, reference = installed(), surroundings(), ray.put(work)

    def look() -> Any:  # Nested, and so sent as code: the node may have another subdp, or none.
        try:
            from subdp.support.ray_cluster import enter, installed
        except ImportError:
            return "no subdp, or another version"
        found = installed()
        if found != wanted:
            return ", ".join(f"{name} {number}" for name, number in found.items() if number != wanted[name])
        try:
            enter(here)
            pickle.loads(ray.get(reference))
        except Exception as error:
            return error
        return None

    nodes = [node for node in ray.nodes() if node["Alive"] and node["Resources"].get(resource)]
    share = {"num_cpus": 0, "num_gpus": 0.01 if resource == "GPU" else 0}
    asked = []
    for node in nodes:
        place = NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
        asked.append(ray.remote(look).options(scheduling_strategy=place, **share).remote())
    for node, answer in zip(nodes, asked, strict=True):
        try:
            found = ray.get(answer, timeout=_LOAD_SECONDS)
        except ray.exceptions.RayError as error:
            found = error
        _judge(f"node {node['NodeManagerHostname']} ({node['NodeManagerAddress']})", found, wanted)


def _judge(node: str, found: Any, wanted: dict[str, str]) -> None:
    """Raise unless a node found nothing wrong."""
    if isinstance(found, str):
        ours = ", ".join(f"{name} {number}" for name, number in wanted.items())
        raise SubdpError(f"has {found}; this machine has {ours}", where=node, hint="install the same on all nodes")
    if found is not None:
        hint = "all nodes must see the same folders, encoder and cache, and have enough memory for them"
        raise SubdpError(f"cannot load the work: {first_line(found)}", where=node, hint=hint) from found


def installed() -> dict[str, str]:
    """What results depend on: versions, and for subdp also a hash of its code."""
    root, digest = Path(__file__).parents[1], hashlib.sha256()
    for file in sorted(root.rglob("*.py")):
        digest.update(file.relative_to(root).as_posix().encode() + file.read_bytes())
    return {"subdp": f"{version('subdp')} (code {digest.hexdigest()[:8]})", "torch": version("torch")}


def surroundings() -> dict[str, str]:
    """What a process elsewhere needs to find the same files."""
    return {"folder": str(Path.cwd()), "cache": str(cache_folder().absolute())}


def enter(surroundings: dict[str, str]) -> None:
    """Let this process, on whichever node, find the files that another finds."""
    os.chdir(surroundings["folder"])
    os.environ["SUBDP_CACHE"] = surroundings["cache"]
