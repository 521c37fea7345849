"""An API server of a stranger: every name, message and version that it tells would like to steer a terminal."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

STEERING = "\x1b]0;stolen\x07\x1b[2J\x9b31m\u202e"
"""A title, a cleared screen, a colour by one character, and words turned round."""
RUN = "261101-101500-ab12"


def node(os: str) -> dict[str, Any]:
    """A node that is as odd as text can make it."""
    labels = {"kubernetes.io/os": os, "kubernetes.io/hostname": f"host{STEERING}"}
    condition = {"type": "Ready", "status": "False", "reason": f"R{STEERING}", "message": f"not now{STEERING}"}
    info = {
        "operatingSystem": os,
        "osImage": f"image{STEERING}",
        "kernelVersion": "10.0.20348.1" if os == "windows" else f"6.1{STEERING}",
        "kubeletVersion": f"v1.36.0{STEERING}",
        "containerRuntimeVersion": f"containerd://{'9' * 5000}.0{STEERING}",
    }
    metadata = {"name": f"{os}{STEERING}", "uid": os, "resourceVersion": "1", "labels": labels}
    taints = [{"key": f"key{STEERING}", "value": f"v{STEERING}", "effect": "NoSchedule"}]
    status = {"conditions": [condition], "nodeInfo": info, "addresses": [{"type": "InternalIP", "address": "10.0.0.9"}]}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": {"taints": taints}, "status": status}


def namespace() -> dict[str, Any]:
    """What a run left behind, and cannot be removed."""
    labels = {"winready.io/run": RUN}
    held = f"Some content remains{STEERING}: {STEERING}.example.com/f in 1 resource instances"
    condition = {"type": "NamespaceFinalizersRemaining", "status": "True", "reason": "x", "message": held}
    metadata = {"name": f"left{STEERING}", "uid": "n", "resourceVersion": "1", "labels": labels}
    status = {"phase": "Terminating", "conditions": [condition]}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata, "spec": {}, "status": status}


def workload() -> dict[str, Any]:
    """A Deployment for Windows with a mistake, so that somebody speaks of it."""
    container = {"name": f"c{STEERING}", "image": f"image{STEERING}", "securityContext": {"privileged": True}}
    spec = {"nodeSelector": {"kubernetes.io/os": "windows"}, "containers": [container], "hostIPC": True}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": f"web{STEERING}", "namespace": f"ns{STEERING}", "uid": "d", "resourceVersion": "1"},
        "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {}, "spec": spec}},
    }


OBJECTS: dict[str, list[dict[str, Any]]] = {
    "/api/v1/nodes": [node("windows"), node("linux")],
    "/api/v1/namespaces": [namespace()],
    "/apis/apps/v1/deployments": [workload()],
}


class _Handler(BaseHTTPRequestHandler):
    version: Any = {"gitVersion": "v1.36.0"}
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing is said."""

    def _answer(self, code: int, document: Any) -> None:
        data = document if isinstance(document, bytes) else json.dumps(document).encode()
        self.send_response(code)
        self.send_header("Content-Type", "text/html" if isinstance(document, bytes) else "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        # Whoever was ended, or lost patience, does not wait for it.
        with suppress(ConnectionError):
            self.wfile.write(data)

    def _refuse(self, code: int, reason: str) -> None:
        status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "code": code}
        self._answer(code, {**status, "message": f"no{STEERING}: {self.path.partition('?')[0]}"})

    def do_GET(self) -> None:
        """Lists have something where something is known; single objects are not to be had."""
        path, _, query = self.path.partition("?")
        if path == "/version":
            self._answer(200, self.version)
        elif "watch=true" in query:
            self._refuse(410, "Expired")
        elif path in OBJECTS:
            kind = f"{OBJECTS[path][0]['kind']}List"
            metadata = {"resourceVersion": "5"}
            self._answer(200, {"kind": kind, "apiVersion": "v1", "metadata": metadata, "items": OBJECTS[path]})
        elif path == "/api/v1/nodes/windows":
            told = node("windows")
            self._answer(200, {**told, "metadata": {**told["metadata"], "name": "windows"}})
        else:
            self._refuse(403, "Forbidden")

    def do_POST(self) -> None:
        """Nothing can be changed."""
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self._refuse(403, "Forbidden")

    def do_PUT(self) -> None:
        """As for all others."""
        self.do_POST()

    def do_PATCH(self) -> None:
        """As for all others."""
        self.do_POST()

    def do_DELETE(self) -> None:
        """As for all others."""
        self.do_POST()


@contextmanager
def hostile_cluster(folder: Path, version: Any = _Handler.version) -> Iterator[str]:
    """Start it; the kubeconfig for it."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"version": version}))
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    path = folder / "kubeconfig"
    path.write_text(
        json.dumps(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "current-context": "one",
                "clusters": [{"name": "one", "cluster": {"server": f"http://127.0.0.1:{server.server_port}"}}],
                "contexts": [{"name": "one", "context": {"cluster": "one", "user": "u"}}],
                "users": [{"name": "u", "user": {"token": "t"}}],
            }
        )
    )
    try:
        yield str(path)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
