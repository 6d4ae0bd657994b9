"""A Hugging Face Hub of this machine alone: as much of its interface as pushing and fetching a model folder takes."""

from __future__ import annotations

import base64
import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

_COMMIT = "0123456789abcdef0123456789abcdef01234567"


@contextmanager
def fake_hub(files: dict[str, bytes], asked: list[str]) -> Iterator[str]:
    """The address of a hub whose one repository, `org/toy`, holds and receives `files`; `asked` gets what is asked."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(f"{self.command} {self.path}")
            path = self.path.partition("?")[0]
            if path.startswith("/org/toy/resolve/") and (content := files.get(path.rpartition("/")[2])) is not None:
                self._answer(content, {"ETag": f'"{hashlib.sha1(content).hexdigest()}"', "X-Repo-Commit": _COMMIT})
            elif path.startswith("/api/models/org/toy/tree/"):
                self._json([{"type": "file", "path": name, "size": len(files[name]), "oid": "0"} for name in files])
            elif path.startswith("/api/models/org/toy") and files:
                self._json({"id": "org/toy", "sha": _COMMIT, "siblings": [{"rfilename": name} for name in files]})
            else:
                self._answer(b"", {"X-Error-Code": "RepoNotFound"}, status=404)

        do_HEAD = do_GET

        def do_POST(self) -> None:
            asked.append(f"{self.command} {self.path}")
            body = self.rfile.read(int(self.headers["Content-Length"] or 0))
            path, address = self.path.partition("?")[0], f"http://{self.headers['Host']}/org/toy"
            if path == "/api/repos/create":
                self._json({"url": address})
            elif path == "/api/validate-yaml":
                self._json({"errors": [], "warnings": []})
            elif path.startswith("/api/models/org/toy/preupload/"):
                names = [file["path"] for file in json.loads(body)["files"]]
                self._json({"files": [{"path": n, "uploadMode": "regular", "shouldIgnore": False} for n in names]})
            elif path.startswith("/api/models/org/toy/commit/"):
                for line in (json.loads(line) for line in body.splitlines()):
                    if line["key"] == "file":
                        files[line["value"]["path"]] = base64.b64decode(line["value"]["content"])
                self._json({"success": True, "commitOid": _COMMIT, "commitUrl": f"{address}/commit/{_COMMIT}"})
            else:
                self._answer(b"", {}, status=404)

        def _json(self, value: Any) -> None:
            self._answer(json.dumps(value).encode(), {"Content-Type": "application/json"})

        def _answer(self, content: bytes, headers: dict[str, str], status: int = 200) -> None:
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(content))}.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
