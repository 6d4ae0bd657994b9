"""A web server on this machine that has the files of a folder, answers ranges, and fails where it is told to."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread


@dataclass
class Web:
    """What a server has, what it was asked for, and after how many bytes of a file it breaks off."""

    folder: Path
    url: str = ""
    ranges: bool = True
    cut: dict[str, int] = field(default_factory=dict)
    requests: list[tuple[str, str | None]] = field(default_factory=list)

    def publish(self, path: str, content: bytes) -> None:
        """Put a file on the server."""
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)


class _Handler(SimpleHTTPRequestHandler):
    web: Web

    def do_GET(self) -> None:
        path, asked = self.path.partition("?")[0].lstrip("/"), self.headers.get("Range")
        self.web.requests.append((path, asked))
        file = self.web.folder / path
        if not file.is_file():
            self.send_error(404)
            return
        content, start = file.read_bytes(), 0
        if asked is not None and self.web.ranges and (match := re.fullmatch(r"bytes=(\d+)-", asked)):
            start = int(match[1])
            if start >= len(content):
                self.send_error(416)
                return
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(content) - start))
        self.end_headers()
        self.wfile.write(content[start : self.web.cut.get(path, len(content))])

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@contextmanager
def serving(folder: Path) -> Iterator[Web]:
    """Run a server for the files of a folder."""
    web = Web(folder)
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Serving", (_Handler,), {"web": web}))
    web.url = f"http://127.0.0.1:{server.server_port}"
    thread = Thread(target=partial(server.serve_forever, poll_interval=0.01), daemon=True)
    thread.start()
    yield web
    server.shutdown()
    server.server_close()
    thread.join()
