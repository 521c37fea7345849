"""What Kubernetes' conformance tests hold a kubelet to, beyond the life of an ordinary pod."""

from __future__ import annotations

from typing import Any

import pytest

from sandbox.nodes.small_cluster import TOKEN, Cluster, container_state, pod, waiting
from winready_sandbox.machine.container import Container
from winready_sandbox.network.endpoint import NetworkError
from winready_sandbox.nodes.runtime import WINDOWS_HOSTS
from winready_sandbox.programs import grpc
from winready_sandbox.programs.agnhost.servers import https
from winready_sandbox.programs.http1 import Request, Response
from winready_sandbox.programs.net import server_tls
from winready_sandbox.streams import Connection

Object = dict[str, Any]
NEVER = {"restartPolicy": "Never"}


def container_of(cluster: Cluster, obj: Object) -> Container:
    """The running container of a pod."""
    instance = cluster.worker(obj).runs["main"].instance
    assert instance is not None
    assert instance.metered is not None
    return instance.metered


async def test_resources_change_while_the_container_runs(cluster: Cluster) -> None:
    small = {"resources": {"requests": {"cpu": "100m"}, "limits": {"cpu": "200m", "memory": "64Mi"}}}
    await cluster.run("a", container=small)
    before = container_of(cluster, await cluster.ready("a"))
    assert before.files.read("/sys/fs/cgroup/cpu.max") == b"20000 100000\n"
    large = {"requests": {"cpu": "1"}, "limits": {"cpu": "2", "memory": "128Mi"}}
    patch = {"spec": {"containers": [{"name": "main", "resources": large}]}}
    await cluster.client.patch("pods", "a", patch, "default", subresource="resize", kind="strategic")
    obj = await cluster.until(
        "a", lambda obj: container_state(obj).get("resources", {}).get("limits") == large["limits"]
    )
    after = container_of(cluster, obj)
    assert after is before, "nothing was started anew"
    assert after.files.read("/sys/fs/cgroup/cpu.max") == b"200000 100000\n"
    assert after.files.read("/sys/fs/cgroup/memory.max") == f"{2**27}\n".encode()
    assert after.files.read("/sys/fs/cgroup/cpu.weight") == b"39\n"
    assert container_state(obj)["restartCount"] == 0


async def test_a_container_that_wants_it_starts_anew_for_other_resources(cluster: Cluster) -> None:
    policy = [{"resourceName": "memory", "restartPolicy": "RestartContainer"}]
    await cluster.run("a", container={"resources": {"limits": {"memory": "64Mi"}}, "resizePolicy": policy})
    await cluster.ready("a")
    patch = {"spec": {"containers": [{"name": "main", "resources": {"limits": {"memory": "96Mi"}}}]}}
    await cluster.client.patch("pods", "a", patch, "default", subresource="resize", kind="strategic")
    await cluster.until("a", lambda obj: container_state(obj).get("restartCount") == 1)


@pytest.mark.parametrize(
    ("node", "value", "words"),
    [
        ("linux-1", "/tmp", "must not be an absolute path"),
        ("linux-1", "..", "must not contain '..'"),
        ("win-1", "C:\\Users", "must not be an absolute path"),
    ],
)
async def test_sub_paths_stay_inside_their_volume(cluster: Cluster, node: str, value: str, words: str) -> None:
    mount = {"name": "v", "mountPath": "/v", "subPathExpr": "$(WHERE)"}
    field = {"fieldRef": {"fieldPath": "metadata.annotations['where']"}}
    main = {"env": [{"name": "WHERE", "valueFrom": field}], "volumeMounts": [mount]}
    obj = pod("a", node=node, container=main, volumes=[{"name": "v", "emptyDir": {}}])
    obj["metadata"]["annotations"] = {"where": value}
    await cluster.create(obj)
    await cluster.until("a", lambda obj: waiting(obj) == "CreateContainerConfigError")
    await cluster.event("a", "Failed", words)
    await cluster.client.patch("pods", "a", {"metadata": {"annotations": {"where": "inside"}}}, "default")
    await cluster.ready("a")


async def test_an_image_is_mounted_as_a_volume(cluster: Cluster) -> None:
    image = {"name": "v", "image": {"reference": "registry.k8s.io/e2e-test-images/kitten:1.8", "pullPolicy": "Always"}}
    main = {"volumeMounts": [{"name": "v", "mountPath": "/volume"}]}
    await cluster.run("a", "cat", "/volume/data.json", container=main, volumes=[image], **NEVER)
    await cluster.phase("a", "Succeeded")
    assert "kitten.jpg" in await cluster.logs("a")
    nowhere = {"name": "v", "image": {"reference": "registry.invalid/x:1"}}
    await cluster.run("b", container=main, volumes=[nowhere])
    await cluster.event("b", "FailedMount", "failed to pull image volume")


async def test_settings_of_the_kernel_are_the_pods_own(cluster: Cluster) -> None:
    security = {"sysctls": [{"name": "kernel.shm_rmid_forced", "value": "1"}]}
    await cluster.run("a", "cat", "/proc/sys/kernel/shm_rmid_forced", securityContext=security, **NEVER)
    await cluster.run("b", "cat", "/proc/sys/kernel/shm_rmid_forced", **NEVER)
    for name, value in (("a", "1\n"), ("b", "0\n")):
        await cluster.phase(name, "Succeeded")
        assert await cluster.logs(name) == value


@pytest.mark.parametrize(("node", "path"), [("linux-1", "/etc/hosts"), ("win-1", WINDOWS_HOSTS)])
async def test_the_hosts_file_of_the_nodes_network_begins_with_the_nodes(
    cluster: Cluster, node: str, path: str
) -> None:
    await cluster.run("a", "cat", path, hostNetwork=True, node=node, **NEVER)
    await cluster.run("b", "cat", path, node=node, **NEVER)
    await cluster.phase("a", "Succeeded")
    await cluster.phase("b", "Succeeded")
    assert (await cluster.logs("a")).startswith("# Kubernetes-managed hosts file (host network).\n")
    assert (await cluster.logs("b")).startswith("# Kubernetes-managed hosts file.\n")


async def test_a_container_keeps_the_hosts_file_that_it_mounts(cluster: Cluster) -> None:
    cluster.node("linux-1").machine.files.write("/etc/hosts", b"of the node\n")
    main = {"volumeMounts": [{"name": "v", "mountPath": "/etc/hosts"}]}
    volume = {"name": "v", "hostPath": {"path": "/etc/hosts", "type": "File"}}
    await cluster.run("a", "cat", "/etc/hosts", container=main, volumes=[volume], **NEVER)
    await cluster.phase("a", "Succeeded")
    assert await cluster.logs("a") == "of the node\n"


async def test_every_change_of_the_specification_is_observed(cluster: Cluster) -> None:
    await cluster.run("a")
    await cluster.ready("a")
    more = [{"key": "k", "operator": "Exists"}]
    changed = await cluster.client.patch("pods", "a", {"spec": {"tolerations": more}}, "default")
    wanted = changed["metadata"]["generation"]
    assert wanted > 1
    await cluster.until("a", lambda obj: obj["status"].get("observedGeneration") == wanted)


async def test_a_deadline_can_come_later(cluster: Cluster) -> None:
    await cluster.run("a")
    await cluster.ready("a")
    await cluster.client.patch("pods", "a", {"spec": {"activeDeadlineSeconds": 1}}, "default")
    obj = await cluster.phase("a", "Failed")
    assert obj["status"]["reason"] == "DeadlineExceeded"


async def test_ports_of_the_node_lead_to_one_pod_each(cluster: Cluster) -> None:
    ports: list[Object] = [{"containerPort": 80, "hostPort": 5000, "hostIP": "127.0.0.1"}]
    await cluster.run("a", "serve", "80", container={"ports": ports})
    await cluster.ready("a")
    await cluster.run("b", container={"ports": ports})
    obj = await cluster.phase("b", "Failed")
    assert obj["status"]["reason"] == "NodePorts"
    await cluster.run("c", container={"ports": [{**ports[0], "hostIP": "10.250.0.1"}]})
    await cluster.ready("c")
    host = cluster.fabric.host("linux-1")
    (await host.connect("127.0.0.1", 5000, timeout=60)).close()
    with pytest.raises(NetworkError):
        await host.connect("10.250.0.1", 5000, timeout=1)
    await cluster.client.delete("pods", "a", "default", grace=0)
    await cluster.becomes(lambda: ("TCP", "127.0.0.1", 5000) not in cluster.fabric.nodes["linux-1"].host_ports)
    with pytest.raises(NetworkError):
        await host.connect("127.0.0.1", 5000, timeout=1)


async def test_probes_speak_tls_and_grpc(cluster: Cluster) -> None:
    fine = {"now": True}

    async def page(_request: Request) -> Response:
        return Response("ok", 200 if fine["now"] else 500)

    async def calls(connection: Connection) -> None:
        state = grpc.Health.SERVING if fine["now"] else grpc.Health.NOT_SERVING
        await grpc.serve(connection, lambda service: state if service == "mine" else None)

    probes: dict[str, Object] = {
        "tls": {"httpGet": {"scheme": "HTTPS", "port": 8443}},
        "grpc": {"grpc": {"port": 5000, "service": "mine"}},
        "other": {"grpc": {"port": 5000, "service": "other"}},
    }
    for name, probe in probes.items():
        await cluster.run(name, container={"readinessProbe": {**probe, "periodSeconds": 1, "failureThreshold": 1}})
        started = await cluster.until(name, lambda obj: container_state(obj).get("started"))
        endpoint = container_of(cluster, started).endpoint
        assert endpoint is not None
        files = container_of(cluster, started).files
        context = server_tls(files.read("/localhost.crt"), files.read("/localhost.key"))
        endpoint.listen(8443, https(page, context))
        endpoint.listen(5000, calls)
    await cluster.ready("tls")
    await cluster.ready("grpc")
    await cluster.event("other", "Unhealthy", "unknown service")
    fine["now"] = False
    await cluster.event("grpc", "Unhealthy", 'service unhealthy (responded with "NOT_SERVING")')
    await cluster.event("tls", "Unhealthy", "statuscode: 500")


async def test_old_clients_are_told_of_a_failure_in_words_and_of_success_not_at_all(cluster: Cluster) -> None:
    await cluster.run("a")
    await cluster.ready("a")
    for command, last in ((["print", "hi"], b"\x01hi\n"), (["exit", "3"], b"\x03command terminated with")):
        words = "&".join(f"command={word}" for word in ["/agnhost", *command])
        url = f"{cluster.url}/api/v1/namespaces/default/pods/a/exec?stdout=1&stderr=1&{words}"
        headers = {"Authorization": f"Bearer {TOKEN}"}
        async with cluster.http.ws_connect(url, headers=headers, protocols=["channel.k8s.io"]) as socket:
            frames = [message.data async for message in socket]
        assert frames[-1].startswith(last)
