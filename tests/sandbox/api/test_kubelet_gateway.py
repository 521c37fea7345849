"""Requests carried on to nodes, pods and services: real sockets, real TLS, a stand-in for the node."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request

from sandbox.api.stored import Stored
from winready_sandbox.api.errors import ApiError
from winready_sandbox.api.identity import ADMIN, User
from winready_sandbox.api.kubelet_gateway import KubeletGateway
from winready_sandbox.api.paths import target
from winready_sandbox.api.rbac import Authorizer
from winready_sandbox.egress import Egress
from winready_sandbox.pki import Authority, server_context
from winready_sandbox.streams import Connection, Pipe

NODE_IP = "10.250.0.3"
Get = Callable[..., Awaitable[tuple[int, str]]]


def pod(name: str, *containers: str, node: str = "win-1", **extra: Any) -> dict[str, Any]:
    spec = {"containers": [{"name": each} for each in containers], "nodeName": node, **extra}
    return {"metadata": {"name": name}, "spec": spec, "status": {"podIP": "10.244.3.7"}}


@pytest.fixture
def stored() -> Stored:
    stored = Stored()
    for name, address in (("win-1", NODE_IP), ("dead", "10.250.0.9")):
        status = {
            "addresses": [{"type": "InternalIP", "address": address}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
        }
        stored.create("nodes", {"metadata": {"name": name}, "status": status})
    stored.create("pods", pod("web", "iis"), "team")
    stored.create("pods", pod("two", "a", "b", initContainers=[{"name": "i"}]), "team")
    stored.create("pods", pod("unscheduled", "a", node=""), "team")
    stored.create("pods", pod("lost", "a", node="dead"), "team")
    stored.create("services", {"metadata": {"name": "web"}, "spec": {"ports": [{"name": "http", "port": 80}]}}, "team")
    return stored


async def kubelet(request: web.Request) -> web.StreamResponse:
    """The node's port: echoes what it was asked, and WebSocket messages."""
    if request.query.get("tailLines") == "7":
        return web.Response(status=400, text='container "iis" in pod "web" is waiting to start: ContainerCreating')
    if request.headers.get("Upgrade", "").lower() != "websocket":
        return web.Response(text=f"{request.method} {request.path_qs} {await request.text()}".strip())
    if "refuse" in request.query.getall("command", []):
        return web.Response(status=404, text="container not found")
    socket = web.WebSocketResponse(protocols=("v5.channel.k8s.io",))
    await socket.prepare(request)
    await socket.send_str(request.path_qs)
    async for message in socket:
        await socket.send_bytes(message.data)
    return socket


async def serve(
    handler: Callable[[web.Request], Awaitable[web.StreamResponse]], **site: Any
) -> tuple[web.AppRunner, int]:
    app = web.Application(client_max_size=2**26)
    app.router.add_route("*", "/{tail:.*}", handler)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, **site).start()
    return runner, runner.addresses[0][1]


@pytest.fixture
async def front(stored: Stored) -> AsyncIterator[str]:
    """An API server that does nothing but pass on; its base address."""
    authority = Authority()
    node, node_port = await serve(kubelet, ssl_context=server_context(authority.server("win-1", [NODE_IP])))
    egress = Egress()
    egress.register(NODE_IP, 10250, "127.0.0.1", node_port)
    egress.dial = dial_pod
    gateway = KubeletGateway(stored, egress, authority.client("kube-apiserver-kubelet-client", ["system:masters"]))

    async def pass_on(request: web.Request) -> web.StreamResponse:
        found = target(request.path)
        assert found is not None
        try:
            return await gateway.connect(request, found, ADMIN)
        except ApiError as error:
            return web.json_response(error.status(), status=error.code)

    runner, port = await serve(pass_on)
    yield f"http://127.0.0.1:{port}/api/v1"
    await gateway.close()
    await runner.cleanup()
    await node.cleanup()
    await egress.close()


async def dial_pod(ip: str, port: int) -> Connection:
    """A pod that answers any HTTP request with the address it was reached at."""
    if ip != "10.244.3.7":
        raise ConnectionRefusedError(f"dial tcp {ip}:{port}: connect: connection refused")
    body = f"pod {ip}:{port}"
    answer = f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n{body}"
    inbound, outbound = Pipe(), Pipe()
    inbound.write(answer.encode())
    inbound.close()
    return Connection(inbound, outbound, ("10.250.0.1", 1), (ip, port))


@pytest.fixture
async def get(front: str) -> AsyncIterator[Get]:
    async with aiohttp.ClientSession() as session:

        async def get(path: str, method: str = "GET", **options: Any) -> tuple[int, str]:
            async with session.request(method, front + path, **options) as answer:
                if "json" in answer.content_type:
                    return answer.status, (await answer.json())["message"]
                return answer.status, await answer.text()

        yield get


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/namespaces/team/pods/web/log", (200, "GET /containerLogs/team/web/iis")),
        (
            "/namespaces/team/pods/two/log?container=b&follow=true&tailLines=5&timestamps=True&previous=false",
            (200, "GET /containerLogs/team/two/b?follow=true&timestamps=true&tailLines=5"),
        ),
        ("/namespaces/team/pods/two/log?container=i", (200, "GET /containerLogs/team/two/i")),
        (
            "/namespaces/team/pods/two/log",
            (
                400,
                "a container name must be specified for pod two, choose one of: [a b] "
                "or one of the init containers: [i]",
            ),
        ),
        ("/namespaces/team/pods/web/log?container=x", (400, "container x is not valid for pod web")),
        (
            "/namespaces/team/pods/web/log?tailLines=-1",
            (422, 'PodLogOptions "web" is invalid: tailLines: Invalid value: -1: must be greater than or equal to 0'),
        ),
        (
            "/namespaces/team/pods/web/log?tailLines=7",
            (400, 'container "iis" in pod "web" is waiting to start: ContainerCreating'),
        ),
        ("/namespaces/team/pods/gone/log", (404, 'pods "gone" not found')),
        ("/namespaces/team/pods/unscheduled/log", (204, "")),
        (
            "/namespaces/team/pods/unscheduled/exec?command=ver&stdout=true",
            (400, "pod unscheduled does not have a host assigned"),
        ),
        ("/namespaces/team/pods/web/exec?command=ver&stdout=true", (400, "Upgrade request required")),
        ("/namespaces/team/pods/web/exec?stdout=true", (400, "you must specify at least 1 command for the container")),
        ("/namespaces/team/pods/web/exec?command=ver", (400, "you must specify at least 1 of stdin, stdout, stderr")),
        ("/nodes/win-1/proxy/stats/summary?only_cpu=1", (200, "GET /stats/summary?only_cpu=1")),
        ("/nodes/https:win-1:10250/proxy/healthz", (200, "GET /healthz")),
        ("/namespaces/team/pods/web:8080/proxy/", (200, "pod 10.244.3.7:8080")),
        ("/namespaces/team/services/web/proxy/", (503, 'no endpoints available for service "web"')),
        ("/namespaces/team/services/web:nope/proxy/", (503, 'no service port "nope" found for service "web"')),
    ],
)
async def test_where_a_request_arrives(get: Get, path: str, expected: tuple[int, str]) -> None:
    assert await get(path) == expected


async def test_request_body_is_carried_to_the_node(get: Get) -> None:
    assert await get("/nodes/win-1/proxy/run", "POST", data=b"hello") == (200, "POST /run hello")


async def test_service_leads_to_a_ready_endpoint(get: Get, stored: Stored) -> None:
    slice_ = {
        "metadata": {"name": "web-1", "labels": {"kubernetes.io/service-name": "web"}},
        "ports": [{"name": "http", "port": 8080}],
        "endpoints": [
            {"addresses": ["10.244.9.9"], "conditions": {"ready": False}},
            {"addresses": ["10.244.3.7"], "conditions": {"ready": True}},
        ],
    }
    stored.create("endpointslices", slice_, "team")
    assert await get("/namespaces/team/services/http:web:http/proxy/x") == (200, "pod 10.244.3.7:8080")


@pytest.mark.parametrize(
    ("path", "code", "beginning"),
    [
        ("/nodes/dead/proxy/metrics", 503, "error trying to reach service: dial tcp 10.250.0.9:10250: "),
        (
            "/namespaces/team/pods/lost/log",
            500,
            'Get "https://10.250.0.9:10250/containerLogs/team/lost/a": dial tcp 10.250.0.9:10250: ',
        ),
    ],
)
async def test_node_that_does_not_answer(get: Get, path: str, code: int, beginning: str) -> None:
    status, message = await get(path)
    assert status == code
    assert message.startswith(beginning)


async def test_exec_passes_messages_both_ways(front: str) -> None:
    path = "/namespaces/team/pods/web/exec?command=cmd&command=/c&command=ver&stdout=true&stdin=1&tty=false"
    async with (
        aiohttp.ClientSession() as session,
        session.ws_connect(
            front + path, protocols=("v5.channel.k8s.io", "v4.channel.k8s.io"), max_msg_size=0
        ) as socket,
    ):
        assert socket.protocol == "v5.channel.k8s.io"
        expected = "/exec/team/web/iis?input=1&output=1&command=cmd&command=/c&command=ver"
        assert await socket.receive_str() == expected
        large = bytes(range(256)) * 8192
        await socket.send_bytes(large)
        assert await socket.receive_bytes() == large
        await socket.close()
        assert socket.close_code == 1000


async def test_port_forward_names_the_ports(front: str) -> None:
    async with (
        aiohttp.ClientSession() as session,
        session.ws_connect(f"{front}/namespaces/team/pods/web/portforward?ports=80&ports=443") as socket,
    ):
        assert await socket.receive_str() == "/portForward/team/web?port=80&port=443"


async def test_refusal_of_the_node_reaches_the_client(front: str) -> None:
    headers = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13"}
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"{front}/namespaces/team/pods/web/exec?command=refuse&stdout=true", headers=headers) as answer,
    ):
        assert (answer.status, await answer.text()) == (404, "container not found")


async def test_exec_to_a_dead_node(get: Get) -> None:
    headers = {"Connection": "Upgrade", "Upgrade": "websocket"}
    status, message = await get("/namespaces/team/pods/lost/exec?command=ver&stdout=true", headers=headers)
    assert status == 500
    assert message.startswith("error dialing backend: dial tcp 10.250.0.9:10250: ")


@pytest.mark.parametrize(("minor", "refused"), [(34, False), (35, True)])
async def test_exec_by_websocket_needs_the_right_to_create(stored: Stored, minor: int, refused: bool) -> None:
    gateway = KubeletGateway(stored, Egress(), authorizer=Authorizer(stored), minor=minor)
    found = target("/api/v1/namespaces/team/pods/web/exec")
    assert found is not None
    request = make_mocked_request("GET", "/?command=ver&stdout=true")
    with pytest.raises(ApiError) as caught:
        await gateway.connect(request, found, User("jane"))
    assert caught.value.code == (403 if refused else 400)
    assert ('cannot create resource "pods/exec"' in caught.value.message) is refused
