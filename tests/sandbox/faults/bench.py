"""One sandbox for all faults, with pods that stay, and everything a probe needs: the API and exec, nothing else.

Nodes 1 and 2 of each OS carry the pods that probes share. Faults that take a node away have nodes of their own.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import aiohttp

from winready.cluster.client import Client
from winready.cluster.errors import ExecFailed
from winready.cluster.kubeconfig import Target
from winready.cluster.resources import (
    CONFIG_MAPS,
    NAMESPACES,
    NETWORK_POLICIES,
    NODES,
    PODS,
    ROLE_BINDINGS,
    SERVICES,
    Resource,
)
from winready_sandbox import directory
from winready_sandbox.api.identity import ADMIN
from winready_sandbox.plan import Plan
from winready_sandbox.up import Sandbox
from winready_sandbox.wire import WireConnector

IMAGE = "registry.k8s.io/e2e-test-images/agnhost:2.63.0"
NAMESPACE, OTHER = "default", "other"
PATIENCE = 1500.0
"""Seconds after which something that must be seen counts as not seen."""
SHORT = 150.0
"""Seconds in which something comes if it comes at all."""
PAUSE = 3.0
SYSTEM = {"hostProcess": True, "runAsUserName": "NT AUTHORITY\\SYSTEM"}
Object = dict[str, Any]
Probe = Callable[["Bench", str], Awaitable[str]]


@dataclass
class Bench:
    """What probes hold."""

    sandbox: Sandbox
    client: Client
    addresses: dict[str, list[str]] = field(default_factory=dict)
    """Of the shared pods and of the nodes, by name."""
    services: dict[str, Object] = field(default_factory=dict)
    numbers: itertools.count[int] = field(default_factory=lambda: itertools.count(1))

    def name(self, what: str) -> str:
        """A name that nobody had before."""
        return f"{what}-x{next(self.numbers)}"

    async def sees(self, probe: Probe, node: str, wanted: str) -> None:
        """Repeat a probe until it shows what is wanted; fails with what it shows instead."""
        seen = ""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE):
                while True:
                    seen = await probe(self, node)
                    if seen == wanted:
                        return
                    await asyncio.sleep(PAUSE)
        raise AssertionError(f"{probe.__name__} on {node or 'the cluster'} shows {seen!r}, not {wanted!r}")

    async def until(
        self, condition: Callable[[], Awaitable[Any]], limit: float = PATIENCE, *, pause: float = PAUSE
    ) -> Any:
        """Wait for something true and return it; None when it does not come."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(limit):
                while True:
                    if found := await condition():
                        return found
                    await asyncio.sleep(pause)
        return None

    async def run(self, pod: str, *argv: str, container: str = "c", namespace: str = NAMESPACE) -> tuple[int, str]:
        """Exit code and output of a command in a container."""
        done = await self.client.exec(namespace, pod, container, list(argv), deadline=PATIENCE)
        return done.exit_code, (done.stdout + done.stderr).decode(errors="replace").strip()

    async def fetch(self, pod: str, address: str, port: int, path: str = "hostname", **where: str) -> str:
        """What a server answers to a pod, or how the attempt ended."""
        host = f"[{address}]" if ":" in address else address
        url = f"http://{host}:{port}/{path}"
        curl = "curl.exe" if pod.startswith(("w", "hp")) else "curl"
        code, text = await self.run(pod, curl, "-g", "-s", "--connect-timeout", "4", "--max-time", "9", url, **where)
        return text if code == 0 else {28: "time-out", 6: "no name"}.get(code, f"exit {code}")

    async def dial(self, pod: str, address: str, port: int, tries: int) -> tuple[set[str], int]:
        """Who answers several connections of a pod, and how many of them failed."""
        path = f"dial?host={address}&port={port}&protocol=http&request=hostname&tries={tries}"
        curl = "curl.exe" if pod.startswith("w") else "curl"
        _, text = await self.run(pod, curl, "-g", "-s", "--max-time", "99", f"http://127.0.0.1:8080/{path}")
        answer = json.loads(text or "{}")
        return set(answer.get("responses") or []), len(answer.get("errors") or [])

    async def connects(self, pod: str, address: str, *options: str) -> str:
        """How a pod's attempt to connect ends."""
        code, text = await self.run(pod, "/agnhost", "connect", "--timeout=4s", *options, address)
        return "reached" if code == 0 else "no name" if "DNS:" in text else "not reached"

    async def create(self, resource: Resource, obj: Object, namespace: str = NAMESPACE) -> Object:
        """Create an object."""
        return await self.client.create(resource, obj, namespace)

    async def ready(self, name: str, namespace: str = NAMESPACE) -> Object:
        """A pod once it is ready."""
        pod = await self.until(lambda: self.if_ready(name, namespace))
        assert pod, f"{name} does not become ready"
        return dict(pod)

    async def if_ready(self, name: str, namespace: str) -> Object | None:
        """A pod if it is ready now."""
        pod = await self.client.get(PODS, name, namespace)
        conditions = pod.get("status", {}).get("conditions") or []
        return pod if any(c["type"] == "Ready" and c["status"] == "True" for c in conditions) else None

    @contextlib.asynccontextmanager
    async def pod(self, node: str, *, wait: bool = True, **options: Any) -> AsyncIterator[Object]:
        """A pod of its own on a node, gone afterwards."""
        made = await self.create(PODS, pod(self.name("w" if node.startswith("w") else "l"), node, **options))
        name = made["metadata"]["name"]
        try:
            yield await self.ready(name) if wait else made
        finally:
            await self.client.delete(PODS, name, NAMESPACE, grace=0)

    @contextlib.asynccontextmanager
    async def service(self, selector: str = "ls", **spec: Any) -> AsyncIterator[Object]:
        """A service of its own over the pods of an app, gone afterwards."""
        made = await self.create(SERVICES, service(self.name("s"), selector, **spec))
        try:
            yield made
        finally:
            await self.client.delete(SERVICES, made["metadata"]["name"], NAMESPACE)

    async def statuses(self, path: str, calls: int = 1, *, token: str = "", body: Object | None = None) -> set[str]:
        """Every HTTP status that an API path was answered with; nothing is tried again."""
        transport = self.client.transport
        options = await transport.options()
        if token:
            options = {**options, "headers": {"Authorization": f"Bearer {token}"}}
        seen: set[str] = set()
        method, url = "GET" if body is None else "POST", transport.target.server + path
        async with aiohttp.ClientSession(connector=WireConnector(self.sandbox.embedded.inside)) as http:
            for _ in range(calls):
                try:
                    async with http.request(method, url, json=body, **options) as answer:
                        seen.add(str(answer.status))
                except aiohttp.ClientConnectionError:
                    seen.add("reset")
        return seen


def pod(name: str, node: str, **options: Any) -> Object:
    """An agnhost pod on a node; options: app, labels, windows (options), container, spec, more (containers)."""
    os = node.partition("-")[0]
    container = {"name": "c", "image": IMAGE, "args": ["netexec", "--udp-port=8081"], **options.get("container", {})}
    spec: Object = {
        "os": {"name": os},
        "nodeSelector": {"kubernetes.io/os": os, "kubernetes.io/hostname": node},
        "terminationGracePeriodSeconds": 1,
        "containers": [container, *options.get("more", [])],
        **options.get("spec", {}),
    }
    if "windows" in options:
        spec["securityContext"] = {"windowsOptions": options["windows"]}
    if options.get("windows", {}).get("hostProcess"):
        spec["hostNetwork"] = True
        container |= {"command": ["powershell.exe", "-Command", "Start-Sleep 86400"], "args": []}
    labels = {"app": options.get("app", name), "node": node, **options.get("labels", {})}
    return {"metadata": {"name": name, "labels": labels}, "spec": spec}


def service(name: str, selector: str, **spec: Any) -> Object:
    """A service with a TCP and a UDP port."""
    ports = [
        {"name": "http", "port": 80, "targetPort": 8080},
        {"name": "udp", "port": 90, "targetPort": 8081, "protocol": "UDP"},
    ]
    return {"metadata": {"name": name}, "spec": {"selector": {"app": selector}, "ports": ports, **spec}}


def _policy(name: str, role: str, peer: Object) -> Object:
    spec = {"podSelector": {"matchLabels": {"role": role}}, "policyTypes": ["Ingress"], "ingress": [{"from": [peer]}]}
    return {"metadata": {"name": name}, "spec": spec}


def _kept(prefix: str, os: str) -> list[Object]:
    """Pods with files that change while they run."""
    token = {"serviceAccountToken": {"path": "token", "expirationSeconds": 600}}
    mounts = [{"name": "v", "mountPath": "/kept"}, {"name": "e", "mountPath": "/scratch"}]
    pods = []
    for n in (1, 2):
        sources = [token, {"configMap": {"name": f"{prefix}-{n}"}}]
        spec = {"volumes": [{"name": "v", "projected": {"sources": sources}}, {"name": "e", "emptyDir": {}}]}
        pods.append(pod(f"{prefix}-{n}", f"{os}-{n}", spec=spec, container={"volumeMounts": mounts}))
    return pods


def _shared() -> list[Object]:
    pods = [*_kept("wk", "windows"), *_kept("lk", "linux")]
    for n in (1, 2):
        windows, linux = f"windows-{n}", f"linux-{n}"
        pods += [
            pod(f"wc-{n}", windows, app="wc"),
            pod(f"ws-{n}", windows, app="ws"),
            pod(f"ls-{n}", linux, app="ls"),
            pod(f"lc-{n}", linux, app="lc", labels={"who": "ab"[n - 1]}),
            pod(f"lh-{n}", linux, container={"args": ["pause"]}, spec={"hostNetwork": True}),
            pod(f"hp-{n}", windows, windows=SYSTEM),
            pod(f"wp-{n}", windows, labels={"role": "pods"}),
            pod(f"wn-{n}", windows, labels={"role": "namespaces"}),
        ]
    return pods


@contextlib.asynccontextmanager
async def new_bench() -> AsyncIterator[Bench]:
    """Start the sandbox and the pods that probes share."""
    async with Sandbox(Plan(linux=3, windows=6, dual_stack=True, active_directory=True)) as sandbox:
        plane = sandbox.embedded
        target = Target(plane.url, token=plane.token(ADMIN))
        async with Client.connect(target, WireConnector(plane.inside)) as client:
            bench = Bench(sandbox, client)
            await _furnish(bench)
            yield bench


async def _furnish(bench: Bench) -> None:
    for name in ("wk-1", "wk-2", "lk-1", "lk-2"):
        await bench.create(CONFIG_MAPS, {"metadata": {"name": name}, "data": {"value": "first"}})
    await bench.client.create(NAMESPACES, {"metadata": {"name": OTHER}})
    role = {"apiGroup": ROLE_BINDINGS.group, "kind": "ClusterRole", "name": directory.ROLE}
    subject = {"kind": "ServiceAccount", "name": "default", "namespace": NAMESPACE}
    await bench.create(ROLE_BINDINGS, {"metadata": {"name": "webapp"}, "roleRef": role, "subjects": [subject]})
    await bench.create(NETWORK_POLICIES, _policy("pods", "pods", {"podSelector": {"matchLabels": {"who": "a"}}}))
    own = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": NAMESPACE}}}
    await bench.create(NETWORK_POLICIES, _policy("namespaces", "namespaces", own))
    for name in ("ls", "ws"):
        both = {"type": "NodePort", "ipFamilyPolicy": "RequireDualStack"}
        bench.services[name] = await bench.create(SERVICES, service(name, name, **both))
    await bench.create(PODS, pod("ly", "linux-1"), OTHER)
    for each in _shared():
        await bench.create(PODS, each)
    for node in await bench.client.list(NODES):
        bench.addresses[node["metadata"]["name"]] = [each["address"] for each in node["status"]["addresses"]]
    for each in _shared():
        name = each["metadata"]["name"]
        bench.addresses[name] = [ip["ip"] for ip in (await bench.ready(name))["status"]["podIPs"]]
    await bench.ready("ly", OTHER)
    await bench.until(_dns_ready(bench))
    aliases = [{"ip": bench.addresses["ls-1"][0], "hostnames": ["alias.bench.test"]}]
    dns = {"nameservers": ["10.96.0.10"], "searches": ["bench.test"]}
    for n in (1, 2):
        spec = {"hostAliases": aliases, "dnsPolicy": "None", "dnsConfig": dns}
        await bench.create(PODS, pod(f"wd-{n}", f"windows-{n}", spec=spec))
    for n in (1, 2):
        await bench.ready(f"wd-{n}")


def _dns_ready(bench: Bench) -> Callable[[], Awaitable[bool]]:
    async def ready() -> bool:
        pods = await bench.client.list(PODS, "kube-system")
        return all((p.get("status") or {}).get("phase") == "Running" for p in pods)

    return ready


async def refused(attempt: Awaitable[Any]) -> bool:
    """Whether a command could not even be started."""
    try:
        await attempt
    except ExecFailed:
        return True
    return False
