"""A cluster of virtual kubelets for tests: the embedded API server over HTTPS, no controllers, fast clock.

Pods are bound by hand (`nodeName`), and containers run one tiny program whose arguments say what to do, so that a test
of a kubelet does not depend on what shells and tools print.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import ssl
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

import aiohttp

from winready_sandbox.api.assembly import install_access, new_registry
from winready_sandbox.api.authn import Authenticator
from winready_sandbox.api.client import LocalClient
from winready_sandbox.api.identity import MASTERS, User
from winready_sandbox.api.kubelet_gateway import KubeletGateway
from winready_sandbox.api.rbac import Authorizer
from winready_sandbox.api.server import ApiServer
from winready_sandbox.api.tokens import TokenIssuer
from winready_sandbox.apiclient import Access, ApiClient, Transport
from winready_sandbox.clock import Clock
from winready_sandbox.egress import Egress
from winready_sandbox.machine.errors import FileError, OutOfMemory
from winready_sandbox.machine.machine import Machine, PowerRequest
from winready_sandbox.machine.process import Process
from winready_sandbox.network.endpoint import AddressInUse, NetworkError
from winready_sandbox.network.fabric import Fabric
from winready_sandbox.nodes.configuration import Settings
from winready_sandbox.nodes.fleet import Fleet
from winready_sandbox.nodes.kubelet import Kubelet
from winready_sandbox.nodes.pods import PodWorker
from winready_sandbox.pki import Authority, new_key, server_context
from winready_sandbox.streams import Connection

IMAGE = "registry.k8s.io/e2e-test-images/agnhost:2.63.0"
TOKEN = "admin-token"
Object = dict[str, Any]


class LeapingClock(Clock):
    """A clock that tests can put forward; what sleeps already is not woken."""

    leaped = 0.0

    def now(self) -> float:
        """Cluster seconds, leaps included."""
        return super().now() + self.leaped


async def agnhost(process: Process) -> int:
    """Do what the arguments say, word by word: ``print hello``, ``cat FILE``, ``exit 3``, ``pause`` ..."""
    words = iter(process.argv[1:])
    for word in words:
        try:
            code = await _step(process, word, words)
        except FileError as error:
            process.err(error.text(process.container.os) + "\n")
            return 1
        if code is not None:
            return code
    return 0


async def _step(process: Process, word: str, words: Any) -> int | None:
    who = process.identity
    match word:
        case "print":
            process.out(next(words) + "\n")
        case "complain":
            process.err(next(words) + "\n")
        case "cat":
            process.stdout.write(process.files.read(next(words), process.cwd, who=who))
        case "write":
            process.files.write(next(words), next(words).encode(), process.cwd, who=who)
        case "env":
            process.out(process.env.get(next(words), "<unset>") + "\n")
        case "whoami":
            process.out(f"{process.identity.name if process.identity else ''}\n")
        case "hostname":
            process.out(process.container.hostname + "\n")
        case "cwd":
            process.out(process.cwd + "\n")
        case "upper":
            while line := await process.stdin.readline():
                process.stdout.write(line.upper())
        case "resolve":
            hosts = "/etc/hosts" if process.container.os == "linux" else "C:\\Windows\\System32\\drivers\\etc\\hosts"
            text = process.files.read(hosts).decode()
            assert process.container.endpoint is not None
            process.out(",".join(await process.container.endpoint.resolve(next(words), hosts=text)) + "\n")
        case "serve":
            return await _serve(process, int(next(words)), next(words, ""))
        case "burn":
            process.cpu_demand(float(next(words)))
        case "allocate":
            try:
                process.allocate(int(next(words)))
            except OutOfMemory:
                process.out("refused\n")
        case "reboot":
            process.container.machine.request_power(PowerRequest(True, float(next(words))))
        case "sleep":
            await process.container.clock.sleep(float(next(words)))
        case "await":
            await _appears(process, next(words))
        case "exit":
            return int(next(words))
        case "pause":
            await process.stop_requested.wait()
            return 0
        case "stubborn":
            await process.stop_requested.wait()
            process.out("asked to stop\n")
            await asyncio.Event().wait()
    return None


async def _appears(process: Process, name: str) -> None:
    async with asyncio.timeout(60):
        while True:
            if process.files.exists(name):
                return
            await asyncio.sleep(0.01)


async def _serve(process: Process, port: int, healthy: str) -> int:
    """Answer HTTP: 200 while the file named (if any) exists, else 500."""

    async def answer(connection: Connection) -> None:
        while (await connection.readline()).strip():
            pass
        fine = not healthy or process.files.exists(healthy)
        connection.write(b"HTTP/1.1 200 OK\r\n\r\n" if fine else b"HTTP/1.1 500 Internal Server Error\r\n\r\n")
        connection.close()

    assert process.container.endpoint is not None
    try:
        listener = process.container.endpoint.listen(port, answer)
    except (AddressInUse, NetworkError):
        return 98
    try:
        await process.stop_requested.wait()
    finally:
        listener.close()
    return 0


@dataclass
class Cluster:
    """What tests hold."""

    client: ApiClient
    objects: LocalClient
    fleet: Fleet
    fabric: Fabric
    egress: Egress
    clock: LeapingClock
    url: str
    ca: str
    http: aiohttp.ClientSession
    made: list[str] = field(default_factory=list)

    def node(self, name: str) -> Kubelet:
        """A node by name."""
        return self.fleet.kubelets[name]

    async def run(self, name: str, *words: str, node: str = "linux-1", **spec: Any) -> Object:
        """Create a pod with one container that does what the words say."""
        return await self.create(pod(name, *words, node=node, **spec))

    async def create(self, obj: Object) -> Object:
        """Create a pod."""
        return await self.client.create("pods", obj, "default")

    async def pod(self, name: str) -> Object:
        """A pod as the API has it."""
        return await self.client.get("pods", name, "default")

    def worker(self, obj: Object) -> PodWorker:
        """Who works on a pod."""
        return self.node(obj["spec"]["nodeName"]).workers[obj["metadata"]["uid"]]

    async def until(self, name: str, condition: Callable[[Object], Any], limit: float = 60.0) -> Object:
        """Wait until a pod is as wanted; fails with what it is instead."""
        found: Object = {}
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(limit):
                async for change in self.client.watch("pods", "default", fields=f"metadata.name={name}"):
                    if change.type in ("ADDED", "MODIFIED"):
                        found = change.object
                        if condition(found):
                            return found
        raise AssertionError(f"{name} is not as expected: {found.get('status')}")

    async def ready(self, name: str) -> Object:
        """Wait until a pod is ready."""
        return await self.until(name, is_ready)

    async def phase(self, name: str, wanted: str) -> Object:
        """Wait until a pod is in a phase."""
        return await self.until(name, lambda obj: obj.get("status", {}).get("phase") == wanted)

    async def gone(self, name: str) -> None:
        """Wait until a pod is gone."""
        for _ in range(6000):
            if not [p for p in (await self.client.list("pods", "default"))[0] if p["metadata"]["name"] == name]:
                return
            await asyncio.sleep(0.01)
        raise AssertionError(f"{name} is still there")

    async def becomes(self, condition: Callable[[], Any]) -> None:
        """Wait until something in this process is true."""
        for _ in range(6000):
            if condition():
                return
            await asyncio.sleep(0.01)
        raise AssertionError("it never became true")

    async def event(self, name: str, reason: str, text: str = "") -> Object:
        """Wait for an event about an object."""
        events: list[Object] = []
        for _ in range(3000):
            events, _version = await self.client.list("events", "default")
            for event in events:
                same = event["involvedObject"]["name"] == name and event["reason"] == reason
                if same and text in event["message"]:
                    return event
            await asyncio.sleep(0.02)
        seen = [(e["reason"], e["message"]) for e in events if e["involvedObject"]["name"] == name]
        raise AssertionError(f"no event {reason} {text!r} about {name}, only {seen}")

    async def logs(self, name: str, container: str = "main", **query: str) -> str:
        """The log of a container, through the API server."""
        path = f"/api/v1/namespaces/default/pods/{name}/log"
        headers = {"Authorization": f"Bearer {TOKEN}"}
        query = {"container": container, **query}
        async with self.http.get(self.url + path, params=query, headers=headers) as response:
            return await response.text()

    async def exec(
        self, name: str, *argv: str, container: str = "main", stdin: bytes | None = None
    ) -> tuple[int, str, str]:
        """Run a command through the API server; exit code (-1: not started), output, error output."""
        path = f"/api/v1/namespaces/default/pods/{name}/exec"
        query = [("container", container), ("stdout", "true"), ("stderr", "true")]
        query += [("command", word) for word in argv] + ([("stdin", "true")] if stdin is not None else [])
        headers = {"Authorization": f"Bearer {TOKEN}"}
        streams: dict[int, bytes] = {}
        async with self.http.ws_connect(
            self.url + path, params=query, headers=headers, protocols=["v5.channel.k8s.io"]
        ) as socket:
            if stdin is not None:
                await socket.send_bytes(b"\0" + stdin)
                await socket.send_bytes(b"\xff\0")
            async for message in socket:
                streams[message.data[0]] = streams.get(message.data[0], b"") + message.data[1:]
        status = json.loads(streams[3])
        code = 0 if status["status"] == "Success" else -1
        for cause in status.get("details", {}).get("causes", []):
            code = int(cause["message"]) if cause.get("reason") == "ExitCode" else code
        errors = streams.get(2, b"").decode() if code != -1 else status["message"]
        return code, streams.get(1, b"").decode(), errors


def is_ready(obj: Object) -> bool:
    """Does the pod say that it is ready?"""
    conditions = obj.get("status", {}).get("conditions") or []
    return any(item["type"] == "Ready" and item["status"] == "True" for item in conditions)


def container_state(obj: Object, name: str = "main", kind: str = "containerStatuses") -> Object:
    """The status of one container of a pod."""
    found = [item for item in obj.get("status", {}).get(kind) or [] if item["name"] == name]
    return found[0] if found else {}


def waiting(obj: Object) -> str:
    """Why the main container does not run."""
    return str(container_state(obj).get("state", {}).get("waiting", {}).get("reason", ""))


def pod(name: str, *words: str, node: str = "linux-1", container: Object | None = None, **spec: Any) -> Object:
    """A pod with one container, bound to a node."""
    main = {"name": "main", "image": IMAGE, "args": list(words) or ["pause"], **(container or {})}
    return {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {"name": name, "namespace": "default", "labels": {"app": name}},
        "spec": {
            "nodeName": node,
            "containers": [main],
            "serviceAccountName": "default",
            "terminationGracePeriodSeconds": 5,
            **spec,
        },
    }


@contextlib.asynccontextmanager
async def small_cluster(speed: float = 100.0, settings: Settings | None = None) -> AsyncIterator[Cluster]:
    """One Linux node, two Windows nodes (Server 2022 and 2019), images already pulled."""
    clock, egress, registry, authority = LeapingClock(speed), Egress(), new_registry(), Authority()
    objects = LocalClient(registry)
    issuer = TokenIssuer(new_key(), objects)
    authorizer, authenticator = Authorizer(objects), Authenticator(issuer)
    authenticator.add_token(TOKEN, User("admin", (MASTERS,)))
    install_access(registry, authenticator, authorizer, issuer)
    gateway = KubeletGateway(objects, egress, authority.client("kube-apiserver", [MASTERS]))
    server = ApiServer(registry, authenticator=authenticator, authorizer=authorizer, nodes=gateway)
    tls = server_context(authority.server("kube-apiserver", ["127.0.0.1"]), authority.certificate)
    port = await server.start(tls=tls)
    url, ca = f"https://127.0.0.1:{port}", authority.certificate.decode()
    # Only what kubelets need of a fresh cluster: the many default roles would take longer than most tests.
    for namespace in ("default", "kube-system", "kube-node-lease"):
        objects.create("namespaces", {"metadata": {"name": namespace}})
    spec = {"clusterIP": "10.96.0.1", "ports": [{"name": "https", "port": 443}]}
    objects.create("services", {"metadata": {"name": "kubernetes"}, "spec": spec}, "default")
    objects.create("serviceaccounts", {"metadata": {"name": "default"}}, "default")
    transport = Transport(Access(url, ca))
    fabric = Fabric(clock)
    node_tls = server_context(authority.server("kubelet", ["127.0.0.1"]), authority.certificate)
    fleet = Fleet(transport, clock=clock, fabric=fabric, egress=egress, token=lambda name: TOKEN, tls=node_tls)
    programs = {"agnhost": agnhost}
    for number, (name, build) in enumerate([("linux-1", ""), ("win-1", "20348"), ("win-2", "17763")], start=1):
        machine = Machine(name, "windows" if build else "linux", clock=clock, programs=programs, build=build or "20348")
        kubelet = fleet.add(machine, [f"10.250.0.{number}"], [f"10.244.{number}.0/24"], settings)
        kubelet.images.preload(IMAGE)
    client = ApiClient(transport, token=TOKEN)
    context = ssl.create_default_context(cadata=ca)
    http = aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=context))
    await fleet.start()
    await fleet.registered()
    try:
        yield Cluster(client, objects, fleet, fabric, egress, clock, url, ca, http)
    finally:
        await fleet.stop()
        await http.close()
        await transport.close()
        await gateway.close()
        await server.stop()
        fabric.close()
        await egress.close()
