"""Joining a Ray cluster: what is wrong is said in one sentence, before any work."""

from __future__ import annotations

import socket
import sys
from types import SimpleNamespace

import pytest

from subdp.support.errors import SubdpError
from subdp.support.ray_cluster import connect, installed
from tests.cli.test_cli import run


def test_ray_that_is_not_installed_is_named_with_the_command_that_installs_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    assert run("parse", "-", "--engine", "ray") == 1
    assert capsys.readouterr().err == "subdp: Ray is not installed (pip install 'subdp[ray]')\n"


def test_an_address_where_nothing_listens_is_an_error_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    ray = pytest.importorskip("ray", reason="Ray is not installed: pip install 'subdp[ray]'")
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    with pytest.raises(SubdpError, match=rf"^{address}: no Ray cluster answers: .*refused \(start a cluster with"):
        connect(address)
    with pytest.raises(SubdpError, match=r"^head: not the address of a Ray cluster \(give auto, or HOST:PORT\)"):
        connect("head")


def test_a_process_that_is_in_another_cluster_is_told_of_both(monkeypatch: pytest.MonkeyPatch) -> None:
    ray = pytest.importorskip("ray", reason="Ray is not installed: pip install 'subdp[ray]'")
    monkeypatch.setattr(ray, "is_initialized", lambda: True)
    monkeypatch.setattr(ray, "get_runtime_context", lambda: SimpleNamespace(gcs_address="10.0.0.5:6379"))
    monkeypatch.setattr(ray.util, "get_node_ip_address", lambda: "10.0.0.5")
    for address in (None, "auto", "10.0.0.5:6379", "localhost:6379"):
        connect(address)
    for address in ("10.0.0.6:6379", "10.0.0.5:6380"):
        with pytest.raises(SubdpError, match=rf"^{address}: Ray is connected to another .*, 10\.0\.0\.5:6379 \("):
            connect(address)


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--ray-address", "auto"], "--ray-address is given for the local engine (add --engine ray"),
        (["--ranks", "2"], "--ranks is for a Ray cluster (add --engine ray"),
    ],
)
def test_flags_of_a_cluster_need_its_engine(flags: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("run", "--bitext", "pairs.tsv", "-o", "out", *flags) == 1
    assert said in capsys.readouterr().err


def test_what_is_installed_is_known_by_its_code() -> None:
    assert set(installed()) == {"subdp", "torch"}
    assert "(code " in installed()["subdp"]
