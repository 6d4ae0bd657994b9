"""Files of a GitHub repository at one commit: which there are, and each of them checked by the hash that git has of it.

NTREX-128 and the Tatoeba Challenge are published so. Standard library only.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from subdp.download.web import check_url, download_file, download_json
from subdp.support.errors import SubdpError

_LISTS, _FILES = "https://api.github.com", "https://raw.githubusercontent.com"


@dataclass(frozen=True)
class GitHubFolder:
    """A folder of a repository (`owner/name`) at a commit; `url` is a server that stands in for GitHub's two."""

    repository: str
    commit: str
    path: str
    url: str | None = None

    def __post_init__(self) -> None:
        if self.url is not None:
            check_url(self.url)

    @cached_property
    def hashes(self) -> dict[str, str]:
        """The name of every file, with git's hash of it."""
        place = f"{self._server(_LISTS)}/repos/{self.repository}/contents/{self.path}?ref={self.commit}"
        found = download_json(place)
        try:
            return {file["name"]: file["sha"] for file in found or ()}
        except (TypeError, KeyError):
            raise SubdpError("is not a list of files", where=place, hint="is this the right server?") from None

    def fetch(self, name: str, file: Path) -> None:
        """Download a file of the folder."""
        place = f"{self._server(_FILES)}/{self.repository}/{self.commit}/{self.path}/{name}"
        if not download_file(place, file, git_hash=self.hashes[name]):
            raise SubdpError("is listed, but cannot be found", where=place, hint="try again later")

    def _server(self, usual: str) -> str:
        return usual if self.url is None else check_url(self.url)
