"""agnhost's webhooks and small applications, and the gRPC that health checks speak."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from sandbox.helpers.containers import container, run
from sandbox.network.helpers import endpoint_slice, publish, service
from sandbox.programs.networked import address, network_of, on_node, start
from winready_sandbox.machine.container import Container
from winready_sandbox.network.fabric import Fabric
from winready_sandbox.programs import grpc, http1
from winready_sandbox.programs.agnhost import conversion
from winready_sandbox.programs.agnhost.inclusterclient import DIRECTORY
from winready_sandbox.programs.net import TlsStream, client_tls

Object = dict[str, Any]
PAIR = ("--tls-cert-file=/localhost.crt", "--tls-private-key-file=/localhost.key")
PODS = {"group": "", "version": "v1", "resource": "pods"}


async def ask(client: Container, server: Container, path: str, body: bytes, port: int = 443) -> http1.Answer:
    """POST JSON over TLS."""
    connection = await network_of(client).connect(address(server), port, timeout=60)
    stream = TlsStream(connection, client_tls(verify=False))
    await stream.handshake()
    headers = [("Host", "hook"), ("Content-Type", "application/json"), ("Content-Length", str(len(body)))]
    stream.write(http1.request_bytes("POST", path, headers, body))
    answer = await http1.read_answer(stream, "POST")
    stream.close()
    assert answer is not None
    return answer


async def review(client: Container, server: Container, path: str, **request: Any) -> Object:
    """What an admission webhook says to a request."""
    asked = {"uid": "u", "name": "n", "operation": "CREATE", "resource": PODS, **request}
    document = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": asked}
    answer = await ask(client, server, path, json.dumps(document).encode())
    told: Object = json.loads(answer.body)
    assert (told["kind"], told["response"].pop("uid")) == ("AdmissionReview", "u")
    response: Object = told["response"]
    if "patch" in response:
        response["patch"] = json.loads(base64.b64decode(response["patch"]))
    return response


def pod(name: str = "p", labels: Object | None = None, container: str = "c") -> Object:
    """A pod as a webhook gets it."""
    return {"metadata": {"name": name, "labels": labels or {}}, "spec": {"containers": [{"name": container}]}}


@pytest.mark.parametrize("node", ["l1", "w1"])
async def test_webhook_denies_and_changes_by_path(fabric: Fabric, node: str) -> None:
    hook, client = on_node(fabric, node, "hook"), on_node(fabric, "l2", "client")
    await start(hook, "/agnhost", "webhook", *PAIR, port=443)
    assert (await ask(client, hook, "/readyz", b"")).body == b"ok"
    denied = await review(client, hook, "/always-deny", object=pod())
    assert denied == {"allowed": False, "status": {"metadata": {}, "message": "this webhook denies all requests"}}
    assert (await review(client, hook, "/add-label", object=pod()))["patch"] == [
        {"op": "add", "path": "/metadata/labels", "value": {"added-label": "yes"}}
    ]
    assert (await review(client, hook, "/add-label", object=pod(labels={"added-label": "no"})))["patch"][0]["op"] == (
        "replace"
    )
    unwanted = await review(client, hook, "/pods", object=pod(labels={"webhook-e2e-test": "webhook-disallow"}))
    assert unwanted["status"]["message"] == "the pod contains unwanted label;"
    assert (await review(client, hook, "/pods", object=pod()))["allowed"]
    mutated = await review(client, hook, "/mutating-pods", object=pod("webhook-to-be-mutated"))
    assert mutated["patch"][0]["value"][0]["name"] == "webhook-added-init-container"
    kept = {"data": {"webhook-e2e-test": "webhook-nondeletable"}}
    refused = await review(client, hook, "/configmaps", operation="DELETE", oldObject=kept, object=None)
    assert "cannot be deleted" in refused["status"]["reason"]
    staged = await review(client, hook, "/mutating-configmaps", object={"data": {"mutation-start": "yes"}})
    assert staged["patch"][0]["path"] == "/data/mutation-stage-1"
    assert (await ask(client, hook, "/configmaps", b"{")).status == 400
    assert (await ask(client, hook, "/nowhere", b"")).status == 404


async def test_webhook_without_a_certificate_does_not_start() -> None:
    result = await run(
        container(os="linux"), "/agnhost", "webhook", "--tls-cert-file=/no", "--tls-private-key-file=/no"
    )
    assert result.code == 255
    assert "open /no: no such file or directory" in result.err


async def test_conversion_webhook(fabric: Fabric) -> None:
    hook, client = on_node(fabric, "l1", "hook"), on_node(fabric, "l2", "client")
    await start(hook, "/agnhost", "crd-conversion-webhook", *PAIR, "--port=9443", port=9443)
    old = {"apiVersion": conversion.V1, "kind": "Thing", "hostPort": "localhost:8080"}
    request = {"uid": "u", "desiredAPIVersion": conversion.V2, "objects": [old]}
    document = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "request": request}
    answer = json.loads((await ask(client, hook, "/crdconvert", json.dumps(document).encode(), 9443)).body)
    new = {"apiVersion": conversion.V2, "kind": "Thing", "host": "localhost", "port": "8080"}
    assert answer["response"]["convertedObjects"] == [new]
    assert conversion.converted(new, conversion.V1) == old
    request["objects"] = [{**old, "hostPort": "a:b:c"}]
    answer = json.loads((await ask(client, hook, "/crdconvert", json.dumps(document).encode(), 9443)).body)
    assert answer["response"]["result"]["message"] == "invalid hostPort value `a:b:c`"


async def test_guestbook_hands_values_on_to_its_replicas(fabric: Fabric) -> None:
    primary, replica, front = (on_node(fabric, node, name) for node, name in (("l1", "p"), ("w1", "r"), ("l2", "f")))
    await start(primary, "/agnhost", "guestbook", "--http-port=6379", port=6379)
    await start(replica, "/agnhost", "guestbook", f"--replicaof={address(primary)}", "--http-port=6379", port=6379)
    await start(front, "/agnhost", "guestbook", "--backend-port=6379", port=80)
    hosts = f"{address(primary)} agnhost-primary\n{address(replica)} agnhost-replica\n"
    front.files.write("/etc/hosts", hosts.encode())

    async def asked(query: str) -> str:
        result = await run(front, "curl", "-s", f"http://127.0.0.1/guestbook?{query}")
        return result.out

    assert await asked("cmd=set&key=messages&value=hello") == '{"message":"Updated"}'
    assert await asked("cmd=get&key=messages") == '{"data":"hello"}'
    assert await asked("cmd=set") == "cannot set with empty key.\n"
    assert await asked("cmd=drop") == "unsupported cmd: 'drop'\n"


async def test_nettest_tells_whom_it_heard_of(fabric: Fabric) -> None:
    server, client = on_node(fabric, "l1", "server"), on_node(fabric, "l2", "client", "busybox")
    assert "Unable to create config" in (await run(server, "/agnhost", "nettest")).err
    for name in ("token", "ca.crt"):
        server.files.mkdir(DIRECTORY, parents=True)
        server.files.write(f"{DIRECTORY}/{name}", b"x")
    await start(server, "/agnhost", "nettest", port=8080)
    written = await run(
        client, "wget", "-O-", '--post-data={"Source": "prestop"}', f"http://{address(server)}:8080/write"
    )
    assert json.loads(written.out) == {"Hostname": "server"}
    read = await run(client, "wget", "-q", "-O-", f"http://{address(server)}:8080/read")
    assert json.loads(read.out)["Received"] == {"prestop": 1}
    assert (await run(client, "wget", "-q", "-O-", f"http://{address(server)}:8080/status")).out == "running"


async def test_porter_serves_tls_and_json(fabric: Fabric) -> None:
    ports = {"SERVE_TLS_PORT_443": "over tls", "SERVE_PORT_80": "plain"}
    server, client = on_node(fabric, "l1", "server", env=ports), on_node(fabric, "l2", "client")
    await start(server, "/agnhost", "porter", "--json-response", port=80)
    assert json.loads((await ask(client, server, "/", b"{}")).body) == {"Method": "POST", "Body": "over tls"}
    plain = await run(client, "curl", "-s", f"http://{address(server)}/")
    assert plain.out == '{"Method":"GET","Body":"plain"}'


@pytest.mark.virtual_time
async def test_liveness_is_well_for_ten_seconds(fabric: Fabric) -> None:
    server, client = on_node(fabric, "l1", "server"), on_node(fabric, "l2", "client")
    await start(server, "/agnhost", "liveness", port=8080)
    url = f"http://{address(server)}:8080/healthz"
    assert (await run(client, "curl", "-s", url)).out == "ok"
    await fabric.clock.sleep(11)
    assert (await run(client, "curl", "-s", url)).out.startswith("error: 1")


async def test_small_programs_say_what_they_were_told() -> None:
    where = container(os="linux")
    told = await run(where, "/agnhost-2", "entrypoint-tester", "override", "arguments")
    assert told.out == "[/agnhost-2 entrypoint-tester override arguments]\n"
    logs = await run(where, "/agnhost", "logs-generator", "--log-lines-total", "3", "--run-duration", "1s")
    assert [line.split("] ")[1].split()[0] for line in logs.err.splitlines()] == ["0", "1", "2"]
    assert (await run(where, "/agnhost", "logs-generator")).code == 255


async def healthy(client: Container, server: Container, port: int, name: str = "") -> grpc.Health:
    """Ask a gRPC service how it is."""
    connection = await network_of(client).connect(address(server), port, timeout=60)
    try:
        return await grpc.check(connection, f"{address(server)}:{port}", name)
    finally:
        connection.close()


async def test_grpc_health_changes_when_told(fabric: Fabric) -> None:
    server, client = on_node(fabric, "w1", "server"), on_node(fabric, "l2", "client")
    await start(server, "/agnhost", "grpc-health-checking", port=5000)
    assert await healthy(client, server, 5000) is grpc.Health.SERVING
    with pytest.raises(grpc.CallFailed, match="unknown service") as unknown:
        await healthy(client, server, 5000, "other")
    assert unknown.value.code == grpc.NOT_FOUND
    await run(client, "curl", "-s", f"http://{address(server)}:8080/make-not-serving")
    assert await healthy(client, server, 5000) is grpc.Health.NOT_SERVING


async def test_etcd_says_how_it_is_over_grpc_and_http(fabric: Fabric) -> None:
    image = "registry.k8s.io/etcd:3.6.8-0"
    server, client = on_node(fabric, "l1", "server", image), on_node(fabric, "l2", "client")
    await start(server, "/usr/local/bin/etcd", "--listen-client-urls", "http://0.0.0.0:2380", port=2380)
    assert await healthy(client, server, 2380) is grpc.Health.SERVING
    assert (
        json.loads((await run(client, "curl", "-s", f"http://{address(server)}:2380/health")).out)["health"] == "true"
    )


async def test_a_grpc_call_to_somebody_else_fails_with_words(fabric: Fabric) -> None:
    server, client = on_node(fabric, "l1", "server"), on_node(fabric, "l2", "client")
    await start(server, "/agnhost", "netexec", port=8080)
    with pytest.raises(grpc.CallFailed, match="server preface"):
        await healthy(client, server, 8080)


async def test_names_of_the_hosts_file_and_of_services_are_found_by_getent(fabric: Fabric) -> None:
    where = on_node(fabric, "l1", "client", "registry.k8s.io/e2e-test-images/glibc-dns-testing:2.0.0")
    publish(fabric, service("s", "10.96.7.7"), endpoint_slice("s", []))
    where.files.write("/etc/hosts", b"1.2.3.4 known\n")
    assert (await run(where, "getent", "hosts", "known")).out == "1.2.3.4         known\n"
    assert (await run(where, "getent", "hosts", "nobody.invalid")).code == 2


async def test_the_sample_api_server_keeps_flunders(fabric: Fabric) -> None:
    image = "registry.k8s.io/e2e-test-images/sample-apiserver:1.29.2"
    server, client = on_node(fabric, "l1", "server", image), on_node(fabric, "l2", "client")
    for name in ("localhost.crt", "localhost.key"):
        server.files.write(f"/{name}", client.files.read(f"/{name}"))
    await start(server, "/sample-apiserver", *PAIR, port=443)

    async def call(method: str, path: str, body: Object | None = None) -> tuple[int, Object]:
        connection = await network_of(client).connect(address(server), 443, timeout=60)
        stream = TlsStream(connection, client_tls(verify=False))
        await stream.handshake()
        data = json.dumps(body).encode() if body else b""
        headers = [("Host", "api"), ("Content-Length", str(len(data)))]
        stream.write(http1.request_bytes(method, f"/apis{path}", headers, data))
        answer = await http1.read_answer(stream, method)
        stream.close()
        assert answer is not None
        return answer.status, json.loads(answer.body)

    flunders = "/wardle.example.com/v1alpha1/namespaces/n/flunders"
    assert (await call("GET", ""))[1]["groups"][0]["name"] == "wardle.example.com"
    assert (await call("GET", "/wardle.example.com/v1alpha1"))[1]["resources"][0]["name"] == "flunders"
    assert (await call("POST", flunders, {"metadata": {"name": "f"}}))[0] == 201
    assert (await call("POST", flunders, {"metadata": {"name": "f"}}))[0] == 409
    assert (await call("POST", flunders, {"spec": {}}))[0] == 400
    assert [each["metadata"]["name"] for each in (await call("GET", flunders))[1]["items"]] == ["f"]
    assert (await call("DELETE", f"{flunders}/f"))[0] == 200
    assert (await call("GET", f"{flunders}/f"))[0] == 404
    assert (await call("GET", "/wardle.example.com/v9/flunders"))[0] == 404
