"""A folder of numbered files, each written once and as a whole: on disk, or where pyarrow can write (`s3://`, `gs://`).

pyarrow is imported when a folder is used.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from subdp.support.errors import SubdpError
from subdp.support.files import open_output, remove_leftovers

_INFO = "made-from.json"


def is_folder(output: str) -> bool:
    """Whether an output is named as a folder: with a slash at its end, or as an address."""
    return output.endswith(("/", os.sep)) or "://" in output


@dataclass(frozen=True, slots=True)
class ShardFolder:
    """Files `00000.conllu`, `00001.conllu` …; an interrupted command leaves those that are complete."""

    address: str

    def begin(self, made_from: Mapping[str, Any]) -> set[str]:
        """Make the folder, or find the files that are there, made from the same; anything else is an error.

        Removes what killed processes left half-written.
        """
        from pyarrow import fs

        info = json.dumps(made_from, ensure_ascii=False, indent=2, sort_keys=True).encode() + b"\n"
        try:
            system, root = self._open()
            system.create_dir(root, recursive=True)
            names = {found.base_name for found in system.get_file_info(fs.FileSelector(root))}
            if _INFO not in names and any(not name.startswith(".") for name in names):
                raise SubdpError("holds other files", where=self.address, hint="name a new folder")
            if _INFO in names and system.open_input_stream(f"{root}/{_INFO}").read() != info:
                reason = "holds the result of another text, parser or set of options"
                raise SubdpError(reason, where=self.address, hint="name another folder, or remove this one")
            if isinstance(system, fs.LocalFileSystem):
                remove_leftovers(Path(root), (_INFO, "[0-9]*.conllu"))
        except OSError as error:
            raise self._failure(error) from error
        if _INFO not in names:
            self.write(_INFO, info)
        return names

    def write(self, name: str, content: bytes) -> None:
        """Write one file, all or nothing; in a bucket, a file appears once it is complete."""
        from pyarrow import fs

        try:
            system, root = self._open()
            if isinstance(system, fs.LocalFileSystem):
                with open_output(f"{root}/{name}") as output:
                    output.write(content)
            else:
                with system.open_output_stream(f"{root}/{name}") as output:
                    output.write(content)
        except OSError as error:
            raise self._failure(error) from error

    def _open(self) -> tuple[Any, str]:
        """The file system, and the folder's path in it."""
        from pyarrow import ArrowInvalid, fs

        if "://" not in self.address:
            return fs.LocalFileSystem(), self.address.rstrip("/") or "/"
        try:
            system, root = fs.FileSystem.from_uri(self.address)
        except ArrowInvalid as error:
            raise SubdpError(f"cannot be written to: {error}", where=self.address, hint="s3:// or gs://") from None
        return system, root.rstrip("/")

    def _failure(self, error: OSError) -> SubdpError:
        reason = error.strerror or (str(error).splitlines() or [type(error).__name__])[0]
        return SubdpError(f"cannot be written: {reason}", where=self.address, hint="finished files are kept")
