"""A mirror of the releases on loopback: every program is a few bytes, and has a digest."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

from winready.node.parameters import Paths
from winready.node.sources import sources


def archive(members: dict[str, bytes]) -> bytes:
    """A small .tar.gz that is the same every time."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for name, content in members.items():
            info = tarfile.TarInfo(f"./{name}")
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return gzip.compress(packed.getvalue(), mtime=0)


class Mirror:
    """What it holds may be changed by a test; what was asked for is remembered."""

    def __init__(self) -> None:
        self.url = ""
        self.held: dict[str, bytes] = {}
        self.asked: list[str] = []

    def release(self, kubernetes: str, containerd: str = "2.1.5", programs: Mapping[str, bytes] | None = None) -> None:
        """Publish everything of one Kubernetes release; programs by their name, where a few bytes will not do."""
        given = programs or {}
        for source in sources(kubernetes, containerd, "flannel", Paths()):
            content = given.get(f"{source.name}.exe", f"{source.file.url}\n".encode())
            if source.file.members:
                inside = [member.path for member in source.file.members]
                content = archive({path: given.get(path.rpartition("/")[2], path.encode()) for path in inside})
            self.put(source.file.url, content)
            digest = hashlib.sha256(content).hexdigest()
            name = source.file.url.rpartition("/")[2]
            if "/repos/" in source.digest_url:
                self.put(
                    source.digest_url, json.dumps({"assets": [{"name": name, "digest": f"sha256:{digest}"}]}).encode()
                )
            elif source.digest_url.endswith(".sha256sum"):
                self.put(source.digest_url, f"{digest}  {name}\n".encode())
            else:
                self.put(source.digest_url, digest.encode())

    def put(self, url: str, content: bytes) -> None:
        """Hold a copy of what is at a URL."""
        parts = urlsplit(url)
        self.held[f"/{parts.netloc}{parts.path}"] = content


@contextmanager
def running(given: Mirror | None = None, address: str = "127.0.0.1") -> Iterator[Mirror]:
    """A mirror that answers until the end of the block."""
    mirror = given or Mirror()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            mirror.asked.append(self.path)
            content = mirror.held.get(self.path)
            self.send_response(200 if content is not None else 404)
            self.send_header("Content-Length", str(len(content or b"")))
            self.end_headers()
            self.wfile.write(content or b"")

        def log_message(self, format: str, *args: object) -> None:
            """Quiet."""

    class Server(ThreadingHTTPServer):
        def handle_error(self, request: object, client_address: object) -> None:
            """A client that went away is none of the test's business."""

    server = Server((address, 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    mirror.url = f"http://{address}:{server.server_address[1]}"
    try:
        yield mirror
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
