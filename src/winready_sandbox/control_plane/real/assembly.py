"""A real control plane on loopback: etcd, kube-apiserver, kube-controller-manager and kube-scheduler.

Its clocks are its own: the speed of a sandbox makes nodes faster, never these programs.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import socket
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

from winready_sandbox.api.identity import NODE_PREFIX, NODES, User
from winready_sandbox.apiclient import Access, ApiClient, ApiFailure, ApiUnreachable, Conflict, Transport
from winready_sandbox.control_plane.protocol import HOST, MACHINE_IP, SANDBOX, port_trouble, server_names
from winready_sandbox.control_plane.real.files import Files
from winready_sandbox.control_plane.real.processes import Component, Components
from winready_sandbox.control_plane.real.programs import API_SERVER, CONTROLLER_MANAGER, ETCD, SCHEDULER, Programs, find
from winready_sandbox.egress import Egress
from winready_sandbox.faults.breaker import CannotBreak
from winready_sandbox.pki import Authority
from winready_sandbox.plan import Plan
from winready_sandbox.state import StateError

START_TIMEOUT = 50.0
"""Wall seconds, a little less than a detached sandbox is given in all; a start takes 5 to 10."""
_POLL = 0.1
_ASK_TIMEOUT = 5.0


class RealControlPlane:
    """The programs of a folder, as processes of their own."""

    def __init__(self, plan: Plan, egress: Egress, authority: Authority, folder: Path) -> None:
        self._plan = plan
        self._egress = egress
        self._authority = authority
        self._folder = folder
        self._components = Components(folder)
        self._programs: Programs | None = None
        self._tokens = {
            secrets.token_urlsafe(24): user for user in (SANDBOX, *(_node(name) for name in _kubelets(plan)))
        }
        self.port = 0
        self.work: asyncio.Task[None] | None = None

    @property
    def version(self) -> str:
        """What the API server says it is."""
        if self._programs is None:
            raise RuntimeError("the control plane has not been started")
        return self._programs.version

    @property
    def url(self) -> str:
        """Where the API is served."""
        return f"https://{HOST}:{self.port}"

    @property
    def inside(self) -> None:
        """It has processes of its own."""

    @property
    def address(self) -> tuple[str, int]:
        """The API server publishes its real port under the address that it advertises."""
        return MACHINE_IP, self.port

    def token(self, user: User) -> str:
        """The token of the sandbox itself or of a node: the API server knew them before it started."""
        return next(token for token, known in self._tokens.items() if known == user)

    def node_token(self, name: str) -> str:
        """The credential of a node's kubelet."""
        return self.token(_node(name))

    def defects(self, part: str, node: str) -> Any:
        """Real programs cannot be given defects."""
        raise CannotBreak("this fault is one of the embedded control plane; here a real one runs")

    async def start(self, port: int) -> None:
        """Start everything and wait until it answers; raises `StateError` with the words of whatever does not."""
        self._programs = programs = await find(Path(self._plan.control_plane))
        if self._plan.kubernetes and self._plan.minor > programs.minor:
            raise StateError(
                f"--kubernetes {self._plan.kubernetes} is newer than the control plane ({programs.version}); "
                "nodes may be older than their API server, never newer"
            )
        self._folder.mkdir(mode=0o700)
        self.port = _free_port(port)
        files = Files(self._folder)
        await self._egress.serve_connect(self._folder / "egress.sock")
        etcd_url = f"https://{HOST}:{_free_port()}"
        etcd = await self._components.start(programs[ETCD], self._etcd(files, etcd_url))
        server = await self._components.start(programs[API_SERVER], self._api_server(files, etcd_url))
        transport = Transport(Access(self.url, self._authority.certificate.decode()))
        api = ApiClient(transport, token=self.token(SANDBOX))
        deadline = asyncio.get_running_loop().time() + START_TIMEOUT
        try:
            await self._until(_ready(api), deadline, server, etcd)
            await _admit_nodes(api)
            manager = await self._components.start(programs[CONTROLLER_MANAGER], self._manager(files))
            await self._components.start(programs[SCHEDULER], self._scheduler(files))
            await self._until(_has_service_accounts(api), deadline, manager)
        finally:
            await transport.close()
        self.work = asyncio.create_task(self._components.failure(), name="control plane")

    async def stop(self) -> None:
        """Kill the processes; their files go with the sandbox's folder."""
        if self.work is not None:
            self.work.cancel()
            await asyncio.gather(self.work, return_exceptions=True)
        await self._components.stop()

    async def _until(self, condition: Coroutine[Any, Any, None], deadline: float, *waited_for: Component) -> None:
        """Wait for a condition while every process lives; after the deadline those that were waited for are quoted."""
        met, failure = asyncio.create_task(condition), asyncio.create_task(self._components.failure())
        try:
            left = deadline - asyncio.get_running_loop().time()
            done, _ = await asyncio.wait({met, failure}, timeout=left, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
            if not done:
                words = [
                    f"{component.name} was not ready in time; {component.last_words()}" for component in waited_for
                ]
                raise StateError("\n".join(words))
        finally:
            for task in (met, failure):
                task.cancel()
            await asyncio.gather(met, failure, return_exceptions=True)

    def _etcd(self, files: Files, url: str) -> list[str]:
        ca, _ = files.authority(self._authority)
        certificate, key = files.pair("etcd", self._authority.server(ETCD, [HOST]))
        return [
            f"--data-dir={files / 'etcd'}",
            f"--listen-client-urls={url}",
            f"--advertise-client-urls={url}",
            f"--listen-peer-urls=http://{HOST}:0",
            f"--cert-file={certificate}",
            f"--key-file={key}",
            f"--trusted-ca-file={ca}",
            "--client-cert-auth",
            "--unsafe-no-fsync",
            "--log-level=warn",
        ]

    def _api_server(self, files: Files, etcd_url: str) -> list[str]:
        authority = self._authority
        ca = files / "ca.crt"
        serving = files.pair("apiserver", authority.server(API_SERVER, server_names(self._plan.cluster_domain)))
        etcd = files.pair("etcd-client", authority.client(API_SERVER))
        kubelet = files.pair("kubelet-client", authority.client("kube-apiserver-kubelet-client", ["system:masters"]))
        front = files.pair("front-proxy-client", authority.client("front-proxy-client"))
        private, public = files.signing_key()
        return [
            f"--bind-address={HOST}",
            f"--secure-port={self.port}",
            f"--advertise-address={MACHINE_IP}",
            f"--tls-cert-file={serving[0]}",
            f"--tls-private-key-file={serving[1]}",
            f"--client-ca-file={ca}",
            f"--token-auth-file={files.tokens(self._tokens)}",
            "--authorization-mode=RBAC",
            "--allow-privileged=true",
            f"--etcd-servers={etcd_url}",
            f"--etcd-cafile={ca}",
            f"--etcd-certfile={etcd[0]}",
            f"--etcd-keyfile={etcd[1]}",
            "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
            f"--service-account-signing-key-file={private}",
            f"--service-account-key-file={public}",
            f"--service-cluster-ip-range={','.join(self._plan.service_networks)}",
            f"--egress-selector-config-file={files.egress(self._folder / 'egress.sock')}",
            f"--kubelet-certificate-authority={ca}",
            f"--kubelet-client-certificate={kubelet[0]}",
            f"--kubelet-client-key={kubelet[1]}",
            "--kubelet-preferred-address-types=InternalIP",
            # No service proxy runs beside it: it looks for the pods behind webhooks and aggregated APIs itself.
            "--enable-aggregator-routing=true",
            f"--proxy-client-cert-file={front[0]}",
            f"--proxy-client-key-file={front[1]}",
            f"--requestheader-client-ca-file={ca}",
            "--requestheader-allowed-names=front-proxy-client",
            "--requestheader-username-headers=X-Remote-User",
            "--requestheader-group-headers=X-Remote-Group",
            "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        ]

    def _manager(self, files: Files) -> list[str]:
        ca, ca_key = files / "ca.crt", files / "ca.key"
        config = files.kubeconfig("system:kube-controller-manager", self.url, self._authority)
        return [
            f"--kubeconfig={config}",
            f"--service-account-private-key-file={files / 'tokens.key'}",
            f"--root-ca-file={ca}",
            f"--cluster-signing-cert-file={ca}",
            f"--cluster-signing-key-file={ca_key}",
            "--use-service-account-credentials=true",
            "--leader-elect=false",
            "--secure-port=0",
            "--kube-api-qps=200",
            "--kube-api-burst=400",
        ]

    def _scheduler(self, files: Files) -> list[str]:
        config = files.kubeconfig("system:kube-scheduler", self.url, self._authority)
        return [f"--kubeconfig={config}", "--leader-elect=false", "--secure-port=0"]


def _kubelets(plan: Plan) -> list[str]:
    return [node.name for node in (*plan.nodes, plan.host) if node is not None]


def _node(name: str) -> User:
    return User(f"{NODE_PREFIX}{name}", (NODES,))


def _free_port(wanted: int = 0) -> int:
    """A port that nobody listens on now, or the wanted one if that is so."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, wanted))
        except OSError as error:
            raise port_trouble(error, wanted) from None
        return int(probe.getsockname()[1])


async def _ready(api: ApiClient) -> None:
    while True:
        with contextlib.suppress(ApiFailure, ApiUnreachable):
            await api.request("GET", "/readyz", timeout=_ASK_TIMEOUT)
            return
        await asyncio.sleep(_POLL)


async def _admit_nodes(api: ApiClient) -> None:
    """Let nodes do what nodes do; all nodes share their watches, which a node authorizer would not allow."""
    metadata = {"name": "winready:nodes"}
    group = "rbac.authorization.k8s.io"
    binding = {
        "metadata": metadata,
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "system:node"},
        "subjects": [{"apiGroup": group, "kind": "Group", "name": NODES}],
    }
    with contextlib.suppress(Conflict):
        await api.create("clusterrolebindings", binding)


async def _has_service_accounts(api: ApiClient) -> None:
    """Until then no pod could be created; the controller manager makes them first of all."""
    for namespace in ("kube-system", "default"):
        while True:
            with contextlib.suppress(ApiFailure, ApiUnreachable):
                await api.get("serviceaccounts", "default", namespace)
                break
            await asyncio.sleep(_POLL)
