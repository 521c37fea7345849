"""A registry on loopback that speaks the distribution API, and everything that can be wrong with one."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

INDEX = "application/vnd.oci.image.index.v1+json"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
TOKEN = "t0ken-of-nobody-that-nobody-may-see"


def platform(build: str = "", os: str = "windows", architecture: str = "amd64") -> dict[str, str]:
    return {"architecture": architecture, "os": os, **({"os.version": f"10.0.{build}.1234"} if build else {})}


class Registry:
    """What it holds and how it behaves may be changed by a test; what was asked for is remembered."""

    def __init__(self) -> None:
        self.host = ""
        self.held: dict[str, tuple[str, bytes]] = {}
        """Content type and content by path."""
        self.behaviour = ""
        """Empty: sound; else token, account, silence, wrong-digest, closed, or a status code."""
        self.asked: list[tuple[str, dict[str, str]]] = []
        self.over = threading.Event()

    def index(self, name: str, tag: str, *platforms: dict[str, str]) -> str:
        """Put a list of manifests there; its digest."""
        entries = [{"mediaType": MANIFEST, "digest": f"sha256:{'0' * 64}", "size": 1, "platform": p} for p in platforms]
        return self._put(name, tag, {"schemaVersion": 2, "mediaType": INDEX, "manifests": entries}, INDEX)

    def single(self, name: str, tag: str, stated: dict[str, str]) -> str:
        """Put one image there whose configuration says what it is for."""
        config = json.dumps(stated).encode()
        digest = f"sha256:{hashlib.sha256(config).hexdigest()}"
        self.held[f"/v2/{name}/blobs/{digest}"] = ("application/octet-stream", config)
        return self._put(name, tag, {"schemaVersion": 2, "config": {"digest": digest}, "layers": []}, MANIFEST)

    def _put(self, name: str, tag: str, document: dict[str, Any], kind: str) -> str:
        body = json.dumps(document).encode()
        digest = f"sha256:{hashlib.sha256(body).hexdigest()}"
        for wanted in (tag, digest):
            self.held[f"/v2/{name}/manifests/{wanted}"] = (kind, body)
        return digest


@contextmanager
def serving(registry: Registry | None = None) -> Iterator[Registry]:
    """A registry that answers until the end of the block; also as a proxy, for whatever is asked of it."""
    held = registry or Registry()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            held.asked.append((self.path, dict(self.headers)))
            parts = urlsplit(self.path)
            if held.behaviour == "silence":
                held.over.wait()
                return None
            if held.behaviour == "closed":
                self.close_connection = True
                return None
            if parts.path == "/token":
                return self._token(parse_qs(parts.query))
            if held.behaviour.isdigit():
                return self._answer(int(held.behaviour), b"\x1b[31mcome and see")
            if held.behaviour in ("token", "no-token", "bad-token") and "Authorization" not in self.headers:
                where = f'Bearer realm="http://{held.host}/token",service="s",scope="repository:x:pull"'
                return self._answer(401, b"{}", {"WWW-Authenticate": where})
            if held.behaviour == "account":
                return self._answer(401, b"{}", {"WWW-Authenticate": 'Basic realm="me:secret@inside"'})
            if held.behaviour == "token" and self.headers["Authorization"] != f"Bearer {TOKEN}":
                return self._answer(401, b"{}")
            kind, body = held.held.get(parts.path, ("", b""))
            if not kind:
                return self._answer(404, b'{"errors":[{"code":"MANIFEST_UNKNOWN"}]}')
            digest = hashlib.sha256(b"other" if held.behaviour == "wrong-digest" else body).hexdigest()
            return self._answer(200, body, {"Content-Type": kind, "Docker-Content-Digest": f"sha256:{digest}"})

        def _token(self, query: dict[str, list[str]]) -> None:
            if held.behaviour == "no-token":
                return self._answer(403, b"{}")
            if held.behaviour == "bad-token":
                return self._answer(200, b'{"token": "a\\r\\nX-Evil: 1"}')
            assert query == {"service": ["s"], "scope": ["repository:x:pull"]}
            return self._answer(200, json.dumps({"token": TOKEN}).encode())

        def _answer(self, code: int, body: bytes, headers: dict[str, str] | None = None) -> None:
            self.send_response(code)
            for key, value in (headers or {}).items():
                self.send_header(key, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Quiet."""

    class Server(ThreadingHTTPServer):
        def handle_error(self, request: object, client_address: object) -> None:
            """A client that went away is none of the test's business."""

    server = Server(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    held.host = f"127.0.0.1:{server.server_address[1]}"
    try:
        yield held
    finally:
        held.over.set()
        server.shutdown()
        server.server_close()
        thread.join()
