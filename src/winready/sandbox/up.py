"""The assembly: certificates, the embedded control plane, its controllers and the nodes, all in one process."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import errno
import os
from types import TracebackType
from typing import Any, Self

from winready.sandbox.api.assembly import install_access, new_registry
from winready.sandbox.api.authn import Authenticator
from winready.sandbox.api.bootstrap import fill
from winready.sandbox.api.client import LocalClient
from winready.sandbox.api.identity import ADMIN, MASTERS
from winready.sandbox.api.kubelet import KubeletGateway
from winready.sandbox.api.rbac import Authorizer
from winready.sandbox.api.server import ApiServer
from winready.sandbox.api.tokens import TokenIssuer
from winready.sandbox.clock import Clock
from winready.sandbox.control import ControlServer
from winready.sandbox.controllers.controller import Context
from winready.sandbox.controllers.manager import Manager
from winready.sandbox.egress import Egress
from winready.sandbox.pki import Authority, KeyPair, new_key, server_context
from winready.sandbox.plain_nodes import plain_node
from winready.sandbox.plan import Plan
from winready.sandbox.state import Place, StateError

HOST = "127.0.0.1"
SERVICE_IP = "10.96.0.1"
SERVER_NAMES = (
    HOST,
    "::1",
    "localhost",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
    SERVICE_IP,
)


class Sandbox:
    """One simulated cluster; entering it starts everything, leaving it stops everything."""

    def __init__(self, plan: Plan, place: Place, stopping: asyncio.Event | None = None) -> None:
        self.plan = plan
        self.place = place
        self.clock = Clock(plan.speed)
        self.egress = Egress()
        self.registry = new_registry(plan.minor)
        self.client = LocalClient(self.registry)
        self.authority = Authority()
        issuer = TokenIssuer(new_key(), self.client)
        authorizer = Authorizer(self.client)
        self.authenticator = Authenticator(issuer)
        install_access(self.registry, self.authenticator, authorizer, issuer)
        kubelet_client = self.authority.client("kube-apiserver-kubelet-client", [MASTERS])
        self.gateway = KubeletGateway(self.client, self.egress, kubelet_client)
        self.server = ApiServer(
            self.registry, authenticator=self.authenticator, authorizer=authorizer, nodes=self.gateway
        )
        self.server.pages["/openid/v1/jwks"] = lambda request: issuer.jwks()
        self.server.pages["/.well-known/openid-configuration"] = lambda request: issuer.openid_configuration(self.url)
        self.control = ControlServer({"status": self._status, "stop": self._stop})
        self.stopping = stopping or asyncio.Event()
        self.port = 0
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Self:
        try:
            await self._start()
        except BaseException:
            await self._close()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._close()

    @property
    def url(self) -> str:
        """Where the API is served."""
        return f"https://{HOST}:{self.port}"

    async def wait(self) -> None:
        """Until somebody asks to stop; a part that fails ends the sandbox with its error."""
        asked = asyncio.create_task(self.stopping.wait())
        try:
            await asyncio.wait([asked, *self._tasks], return_when=asyncio.FIRST_COMPLETED)
            for task in self._tasks:
                if task.done():
                    task.result()
        finally:
            asked.cancel()

    def document(self) -> dict[str, Any]:
        """What there is to know about this sandbox from outside."""
        nodes = []
        for node in self.client.list("nodes")[0]:
            info = node["status"]["nodeInfo"]
            conditions = {each["type"]: each["status"] for each in node["status"].get("conditions") or []}
            nodes.append(
                {
                    "name": node["metadata"]["name"],
                    "os": info["operatingSystem"],
                    "version": info["kubeletVersion"],
                    "build": info["kernelVersion"],
                    "ready": conditions.get("Ready") == "True",
                }
            )
        return {
            "name": self.plan.name,
            "server": self.url,
            "kubeconfig": str(self.place.kubeconfig),
            "pid": os.getpid(),
            "kubernetes": f"v1.{self.plan.minor}.0",
            "speed": self.plan.speed,
            "nodes": nodes,
        }

    async def _start(self) -> None:
        serving = self.authority.server("kube-apiserver", SERVER_NAMES)
        try:
            self.port = await self.server.start(self.plan.port, server_context(serving, self.authority.certificate))
        except OSError as error:
            if error.errno not in (errno.EADDRINUSE, errno.EACCES):
                raise
            why = "is taken by another program" if error.errno == errno.EADDRINUSE else "needs more rights"
            text = f"port {self.plan.port} on {HOST} {why}; choose another --port, or leave it out for a free one"
            raise StateError(text) from None
        fill(
            self.client,
            service_ip=SERVICE_IP,
            server_ip=HOST,
            server_port=self.port,
            ca=self.authority.certificate,
        )
        context = Context(self.client, self.registry.resources, self.clock, self.authority.certificate.decode())
        manager = Manager(context)
        self._run("controllers", manager.run())
        for node in self.plan.nodes:
            self.client.create("nodes", plain_node(node, self.plan.minor))
        self._write_kubeconfig(self.authority.client(ADMIN.name, [MASTERS]))
        await self.control.start(self.place.control)

    def _run(self, name: str, work: Any) -> None:
        self._tasks.append(asyncio.create_task(work, name=name))

    async def _close(self) -> None:
        await self.control.stop()
        for task in self._tasks:
            task.cancel()
        for task in self._tasks:
            with contextlib.suppress(asyncio.CancelledError):
                await task
        await self.gateway.close()
        await self.server.stop()
        await self.egress.close()

    def _write_kubeconfig(self, admin: KeyPair) -> None:
        text = KUBECONFIG.format(
            name=f"winready-{self.plan.name}",
            server=self.url,
            ca=_base64(self.authority.certificate),
            certificate=_base64(admin.certificate),
            key=_base64(admin.key),
        )
        descriptor = os.open(self.place.kubeconfig, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)

    async def _status(self, request: dict[str, Any]) -> dict[str, Any]:
        return self.document()

    async def _stop(self, request: dict[str, Any]) -> None:
        asyncio.get_running_loop().call_soon(self.stopping.set)


KUBECONFIG = """\
apiVersion: v1
kind: Config
clusters:
- name: {name}
  cluster:
    server: {server}
    certificate-authority-data: {ca}
users:
- name: {name}
  user:
    client-certificate-data: {certificate}
    client-key-data: {key}
contexts:
- name: {name}
  context:
    cluster: {name}
    user: {name}
current-context: {name}
"""


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()
