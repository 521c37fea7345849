"""The real gMSA admission webhook in front of a real API server: as a process that only loopback reaches.

It listens on all interfaces, so it runs in a network namespace of its own (``gmsa_inside.py``). A port on loopback
leads in, and the API server is the only thing it can reach. Objects have the names of upstream's own deployment; the
configurations name a URL instead of a service, since no pod runs the program.
"""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import shutil
import ssl
import subprocess
import sys
import tempfile
import threading
import time
from base64 import b64encode
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

from real.api import Api, Call
from real.gmsa_cases import HOOK
from real.gmsa_inside import relay_to
from winready_sandbox.pki import Authority, client_context

NAME = "gmsa-webhook"
ACCOUNT_PATH = f"/api/v1/namespaces/{NAME}/serviceaccounts"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
REGISTRATION = "/apis/admissionregistration.k8s.io/v1"
_ISOLATED = ("unshare", "--user", "--map-root-user", "--net", "--mount", "--pid", "--fork", "--kill-child=KILL")
_INSIDE = Path(__file__).with_name("gmsa_inside.py")
_PATIENCE = 30.0


class Refused(AssertionError):
    """The API server did not take an object that the webhook needs."""


def create(api: Api, path: str, body: dict[str, Any], *, exists: bool = False) -> dict[str, Any]:
    """Create an object, which may be there already only if that is said."""
    code, answer = api.ask(Call("POST", path, body))
    if code not in (200, 201, *((409,) if exists else ())):
        raise Refused(f"POST {path}: {code} {answer}")
    assert isinstance(answer, dict)
    return answer


class GmsaWebhook:
    """One webhook process with its relays; it can be stopped and started again on the same port."""

    def __init__(self, program: Path, api: Api, authority_of_api: str) -> None:
        self._program = program
        self._api = api
        self._ca = authority_of_api
        self._authority = Authority("gmsa-webhook-ca")
        self._folder = Path(tempfile.mkdtemp(prefix="wr-gmsa-"))
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="gmsa relays", daemon=True)
        self._thread.start()
        self._relays: list[asyncio.AbstractServer] = []
        self._process: subprocess.Popen[bytes] | None = None
        self.port = 0

    def install(self) -> None:
        """What the deployment creates beside the program; `start` must have given it a port."""
        bundle = b64encode(self._authority.certificate).decode()
        outside = {"matchExpressions": [{"key": NAME, "operator": "NotIn", "values": ["disabled"]}]}
        for kind, path, operations in (
            ("mutating", "mutate", ["CREATE"]),
            ("validating", "validate", ["CREATE", "UPDATE"]),
        ):
            hook = {
                "name": HOOK,
                "clientConfig": {"url": f"https://127.0.0.1:{self.port}/{path}", "caBundle": bundle},
                "rules": [{"operations": operations, "apiGroups": [""], "apiVersions": ["*"], "resources": ["pods"]}],
                "failurePolicy": "Fail",
                "admissionReviewVersions": ["v1", "v1beta1"],
                "sideEffects": "None",
                "namespaceSelector": outside,
            }
            body = {"metadata": {"name": NAME}, "webhooks": [hook]}
            create(self._api, f"{REGISTRATION}/{kind}webhookconfigurations", body)

    def admit(self) -> None:
        """The webhook's own account, with the rights of upstream's deployment."""
        role = f"{NAME}-{NAME}-rbac-role"
        rules = [
            {"apiGroups": ["windows.k8s.io"], "resources": ["gmsacredentialspecs"], "verbs": ["get"]},
            {"apiGroups": ["authorization.k8s.io"], "resources": ["localsubjectaccessreviews"], "verbs": ["create"]},
        ]
        create(self._api, "/api/v1/namespaces", {"metadata": {"name": NAME, "labels": {NAME: "disabled"}}})
        create(self._api, ACCOUNT_PATH, {"metadata": {"name": NAME}})
        create(self._api, f"{RBAC}/clusterroles", {"metadata": {"name": role}, "rules": rules})
        binding = {
            "metadata": {"name": f"{NAME}-{NAME}-binding-to-{role}"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
            "subjects": [{"kind": "ServiceAccount", "name": NAME, "namespace": NAME}],
        }
        create(self._api, f"{RBAC}/clusterrolebindings", binding)

    def start(self) -> None:
        """Run the program with a token of its account, and wait until it answers on loopback."""
        token = create(self._api, f"{ACCOUNT_PATH}/{NAME}/token", {"spec": {"expirationSeconds": 3600}})
        pair = self._authority.server(NAME, ["127.0.0.1"])
        given = {
            "token": token["status"]["token"],
            "ca.crt": self._ca,
            "namespace": NAME,
            "crt": pair.certificate.decode(),
            "key": pair.key.decode(),
        }
        host, port = self._api.host.rsplit(":", 1)
        self._call(self._open(host, int(port)))
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [*_ISOLATED, sys.executable, "-I", str(_INSIDE), str(self._program), str(self._folder)],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
            )
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(given).encode() + b"\n")
        self._process.stdin.flush()
        self._wait()

    def network(self) -> str:
        """The interfaces that the process sees, as the kernel lists them."""
        assert self._process is not None
        (inside,) = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children").read_text().split()
        return Path(f"/proc/{inside}/net/dev").read_text()

    def stop(self) -> None:
        """End the process and close its port; what it left in the cluster stays, as after a crash."""
        if self._process is not None:
            assert self._process.stdin is not None
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.close()
            self._process.wait(_PATIENCE)
            self._process = None
        self._call(self._close())

    def remove(self) -> None:
        """Stop, and leave nothing on this machine."""
        self.stop()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_PATIENCE)
        self._loop.close()
        shutil.rmtree(self._folder)

    def _wait(self) -> None:
        """Until it says that it is healthy."""
        context = client_context(self._authority.certificate)
        deadline = time.monotonic() + _PATIENCE
        while time.monotonic() < deadline:
            assert self._process is not None
            if self._process.poll() is not None:
                break
            with contextlib.suppress(OSError):
                if _health(self.port, context) == 204:
                    return
            time.sleep(0.05)
        words = (self._folder / "log").read_text(errors="replace")[-2000:]
        raise AssertionError(f"the gMSA webhook does not answer; it said: {words or 'nothing'}")

    def _call(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(_PATIENCE)

    async def _open(self, host: str, port: int) -> None:
        api = await asyncio.start_unix_server(relay_to(host, port), str(self._folder / "api.sock"))
        hook = await asyncio.start_server(relay_to(str(self._folder / "hook.sock")), "127.0.0.1", self.port)
        self.port = hook.sockets[0].getsockname()[1]
        self._relays = [api, hook]

    async def _close(self) -> None:
        for relay in self._relays:
            relay.close()
        self._relays = []
        current = asyncio.current_task()
        rest = [task for task in asyncio.all_tasks() if task is not current]
        for task in rest:
            task.cancel()
        await asyncio.gather(*rest, return_exceptions=True)


def _health(port: int, context: ssl.SSLContext) -> int:
    connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=5, context=context)
    try:
        connection.request("GET", "/health")
        return connection.getresponse().status
    finally:
        connection.close()
