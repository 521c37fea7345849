"""Exec, attach, port-forward and logs, through the API server as clients use them."""

from __future__ import annotations

import asyncio
import json
import ssl
import zlib

import aiohttp
import pytest

from sandbox.nodes.small_cluster import TOKEN, Cluster, small_cluster
from winready_sandbox.apiclient import ApiFailure
from winready_sandbox.nodes import spdy
from winready_sandbox.nodes.configuration import Settings


@pytest.mark.parametrize("node", ["linux-1", "win-1"])
async def test_exec_keeps_streams_and_codes_apart(cluster: Cluster, node: str) -> None:
    await cluster.run("a", node=node)
    await cluster.ready("a")
    assert await cluster.exec("a", "/agnhost", "print", "x", "complain", "y") == (0, "x\n", "y\n")
    assert (await cluster.exec("a", "/agnhost", "exit", "3"))[0] == 3
    assert await cluster.exec("a", "/agnhost", "upper", stdin=b"one\ntwo") == (0, "ONE\nTWO", "")


async def test_windows_exit_codes_have_32_bits(cluster: Cluster) -> None:
    await cluster.run("a", node="win-1")
    await cluster.ready("a")
    assert (await cluster.exec("a", "/agnhost", "exit", "-1"))[0] == 4294967295, "fact 1.3"


@pytest.mark.parametrize(("node", "words"), [("linux-1", "no such file"), ("win-1", "cannot find the file")])
async def test_a_missing_program_is_an_error_without_a_code(cluster: Cluster, node: str, words: str) -> None:
    await cluster.run("a", node=node)
    await cluster.ready("a")
    code, _, message = await cluster.exec("a", "/nothing")
    assert code == -1, "fact 1.3: a missing executable is an error of the exec, not 127"
    assert "error executing command in container: failed to exec in container" in message
    assert words in message


async def test_a_client_that_leaves_ends_its_command(cluster: Cluster) -> None:
    await cluster.run("a")
    uid = (await cluster.ready("a"))["metadata"]["uid"]
    instance = cluster.node("linux-1").workers[uid].runs["main"].instance
    assert instance is not None
    container = instance.metered
    assert container is not None
    url = f"{cluster.url}/api/v1/namespaces/default/pods/a/exec?stdout=1&command=/agnhost&command=pause"
    headers = {"Authorization": f"Bearer {TOKEN}"}
    async with cluster.http.ws_connect(url, headers=headers, protocols=["v4.channel.k8s.io"]) as socket:
        assert socket.protocol == "v4.channel.k8s.io"
        await cluster.becomes(lambda: len(container.processes) == 2)
    await cluster.becomes(lambda: len(container.processes) == 1)


async def test_the_node_wants_to_know_who_asks(cluster: Cluster) -> None:
    host, port = cluster.egress.resolve("10.250.0.1", 10250)
    async with aiohttp.ClientSession() as http:
        for path, headers, status in [
            ("/healthz", {}, 200),
            ("/pods", {}, 401),
            ("/pods", {"Authorization": "Bearer wrong"}, 401),
            ("/pods", {"Authorization": f"bearer {TOKEN}"}, 200),
        ]:
            async with http.get(f"https://{host}:{port}{path}", headers=headers, ssl=False) as response:
                assert response.status == status, path


async def test_attach_shows_what_comes_and_feeds_stdin(cluster: Cluster) -> None:
    await cluster.run("a", "upper", container={"stdin": True, "stdinOnce": True}, restartPolicy="Never")
    await cluster.ready("a")
    url = f"{cluster.url}/api/v1/namespaces/default/pods/a/attach?stdout=1&stdin=1"
    headers = {"Authorization": f"Bearer {TOKEN}"}
    async with cluster.http.ws_connect(url, headers=headers, protocols=["v5.channel.k8s.io"]) as socket:
        await socket.send_bytes(b"\0hello\n")
        assert (await socket.receive()).data == b"\1HELLO\n"
        await socket.send_bytes(b"\xff\0")
        assert json.loads((await socket.receive()).data[1:])["status"] == "Success"
    await cluster.phase("a", "Succeeded")


async def test_port_forward_reaches_a_server_in_the_pod(cluster: Cluster) -> None:
    await cluster.run("a", "serve", "8080", node="win-1")
    await cluster.ready("a")
    url = f"{cluster.url}/api/v1/namespaces/default/pods/a/portforward?ports=8080,8081"
    headers = {"Authorization": f"Bearer {TOKEN}"}
    frames: dict[int, bytes] = {}
    async with cluster.http.ws_connect(url, headers=headers, protocols=["v4.channel.k8s.io"]) as socket:
        await socket.send_bytes(b"\0GET / HTTP/1.1\r\n\r\n")
        while b"200 OK" not in frames.get(0, b"") or len(frames.get(3, b"")) < 3:
            data = (await socket.receive()).data
            frames[data[0]] = frames.get(data[0], b"") + data[1:]
    assert frames[0].startswith((8080).to_bytes(2, "little"))
    assert b"dial tcp 127.0.0.1:8081: connect: connection refused" in frames[3]


class SpdyClient:
    """Builds the frames of a SPDY client."""

    def __init__(self) -> None:
        self._deflate = zlib.compressobj(zdict=spdy.DICTIONARY)

    def opening(self, number: int, **headers: str) -> bytes:
        raw = len(headers).to_bytes(4, "big")
        raw += b"".join(self._text(key) + self._text(value) for key, value in headers.items())
        block = self._deflate.compress(raw) + self._deflate.flush(zlib.Z_SYNC_FLUSH)
        payload = number.to_bytes(4, "big") + bytes(6) + block
        return b"\x80\x03\x00\x01\x00" + len(payload).to_bytes(3, "big") + payload

    @staticmethod
    def _text(value: str) -> bytes:
        return len(value).to_bytes(4, "big") + value.encode()

    @staticmethod
    def data(number: int, data: bytes, fin: int = 0) -> bytes:
        return number.to_bytes(4, "big") + bytes([fin]) + len(data).to_bytes(3, "big") + data


async def test_port_forward_as_kubectl_does_it(cluster: Cluster) -> None:
    await cluster.run("a", "serve", "8080")
    await cluster.ready("a")
    url = f"{cluster.url}/api/v1/namespaces/default/pods/a/portforward"
    headers = {"Authorization": f"Bearer {TOKEN}"}
    client = SpdyClient()
    ping = b"\x80\x03\x00\x06\x00\x00\x00\x04\x00\x00\x00\x07"
    whole = client.opening(1, streamtype="error", port="8080", requestid="0")
    whole += client.opening(3, streamtype="data", port="8080", requestid="0")
    whole += client.data(3, b"GET / HTTP/1.1\r\n\r\n") + ping
    received = b""
    async with cluster.http.ws_connect(url, headers=headers, protocols=[spdy.SUBPROTOCOL]) as socket:
        assert socket.protocol == spdy.SUBPROTOCOL
        await socket.send_bytes(whole[:20])
        await socket.send_bytes(whole[20:])
        while client.data(1, b"", fin=1) not in received:
            received += (await socket.receive()).data
    assert b"HTTP/1.1 200 OK" in received
    assert ping in received


async def test_exec_over_spdy_as_older_clients_do_it(cluster: Cluster) -> None:
    await cluster.run("a", node="win-1")
    await cluster.ready("a")
    port = int(cluster.url.rpartition(":")[2])
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=ssl.create_default_context(cadata=cluster.ca))
    query = "command=/agnhost&command=upper&command=exit&command=4&stdin=true&stdout=true"
    head = [
        f"POST /api/v1/namespaces/default/pods/a/exec?{query} HTTP/1.1",
        "Host: 127.0.0.1",
        f"Authorization: Bearer {TOKEN}",
        "Connection: Upgrade",
        "Upgrade: SPDY/3.1",
        "X-Stream-Protocol-Version: v4.channel.k8s.io",
        "X-Stream-Protocol-Version: v3.channel.k8s.io",
        "Content-Length: 0",
    ]
    writer.write(("\r\n".join(head) + "\r\n\r\n").encode())
    answer = await reader.readuntil(b"\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 101 ")
    assert b"X-Stream-Protocol-Version: v4.channel.k8s.io" in answer
    client = SpdyClient()
    for number, kind in ((1, "error"), (3, "stdin"), (5, "stdout")):
        writer.write(client.opening(number, streamtype=kind))
    writer.write(client.data(3, b"one", fin=1))
    received = await reader.read()
    writer.close()
    assert client.data(5, b"ONE") in received
    assert b'"causes":[{"reason":"ExitCode","message":"4"}]' in received


async def test_log_options(cluster: Cluster) -> None:
    await cluster.run("a", "print", "one", "complain", "two", "print", "three", "pause")
    await cluster.ready("a")
    assert await cluster.logs("a") == "one\ntwo\nthree\n"
    assert await cluster.logs("a", tailLines="1") == "three\n"
    assert await cluster.logs("a", limitBytes="5") == "one\nt"
    first = (await cluster.logs("a", timestamps="true")).splitlines()[0]
    assert first.endswith("Z one")
    assert await cluster.logs("a", stream="Stderr") == "two\n"
    assert "previous terminated container" in await cluster.logs("a", previous="true")


async def test_logs_are_followed_to_the_end(cluster: Cluster) -> None:
    await cluster.run("a", "print", "now", "await", "/go", "print", "later", restartPolicy="Never")
    await cluster.ready("a")
    url = f"{cluster.url}/api/v1/namespaces/default/pods/a/log?follow=true"
    async with cluster.http.get(url, headers={"Authorization": f"Bearer {TOKEN}"}) as response:
        async with asyncio.timeout(60):
            assert await response.content.readline() == b"now\n"
            assert (await cluster.exec("a", "/agnhost", "write", "/go", "x"))[0] == 0
            assert await response.content.read() == b"later\n"


@pytest.mark.virtual_time
async def test_statistics_show_what_containers_use(cluster: Cluster) -> None:
    limits = {"resources": {"limits": {"cpu": "500m", "memory": "512Mi"}}}
    await cluster.run("a", "burn", "4", "pause", node="win-1", container=limits)
    await cluster.ready("a")
    path = "/api/v1/nodes/win-1/proxy"
    first = await cluster.client.request("GET", f"{path}/stats/summary")
    assert first["pods"][0]["podRef"]["name"] == "a"
    assert first["pods"][0]["containers"][0]["cpu"]["usageNanoCores"] == 0, "fact 1.8: 0 on the first read"
    await cluster.clock.sleep(10)
    second = await cluster.client.request("GET", f"{path}/stats/summary")
    used = second["pods"][0]["containers"][0]["cpu"]["usageNanoCores"] / 1e9
    assert 0.5 <= used <= 0.84, "fact 1.8: overshoot is normal on Windows, 8 cores are not"
    config = await cluster.client.request("GET", f"{path}/configz")
    assert config["kubeletconfig"]["clusterDomain"] == "cluster.local"
    assert "container_cpu_usage_seconds_total" in await cluster.client.request("GET", f"{path}/metrics/resource")
    assert 'kubelet_node_name{node="win-1"} 1' in await cluster.client.request("GET", f"{path}/metrics")
    assert [item["metadata"]["name"] for item in (await cluster.client.request("GET", f"{path}/pods"))["items"]] == [
        "a"
    ]


async def test_a_kubelet_can_keep_its_configuration_to_itself() -> None:
    async with small_cluster(settings=Settings(hides_configuration=True)) as cluster:
        path = "/api/v1/nodes/win-1/proxy"
        with pytest.raises(ApiFailure, match="Forbidden"):
            await cluster.client.request("GET", f"{path}/configz")
        assert (await cluster.client.request("GET", f"{path}/stats/summary"))["node"]["nodeName"] == "win-1"
