"""Volumes: what containers find in them, who sees whose writes, how updates arrive."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from sandbox.nodes.small_cluster import IMAGE, Cluster, container_state, pod, waiting

Object = dict[str, Any]


def mounted(volume: Object, path: str = "/v", **mount: Any) -> Object:
    """What makes a pod of `run` mount a volume."""
    mounts = [{"name": "v", "mountPath": path, **mount}]
    return {"container": {"volumeMounts": mounts}, "volumes": [{"name": "v", **volume}]}


async def text(cluster: Cluster, name: str, path: str) -> str:
    code, out, err = await cluster.exec(name, "/agnhost", "cat", path)
    assert code == 0, err
    return out


async def config_map(cluster: Cluster, **data: str) -> None:
    await cluster.client.create("configmaps", {"metadata": {"name": "cm"}, "data": data}, "default")


@pytest.mark.parametrize("node", ["linux-1", "win-1"])
async def test_config_maps_and_secrets_become_files(cluster: Cluster, node: str) -> None:
    await config_map(cluster, one="1", two="2")
    secret = {"metadata": {"name": "s"}, "data": {"password": base64.b64encode(b"\x00raw\r\n").decode()}}
    await cluster.client.create("secrets", secret, "default")
    spec = pod("a", node=node)
    spec["spec"]["volumes"] = [
        {"name": "cm", "configMap": {"name": "cm", "items": [{"key": "two", "path": "deep/er"}]}},
        {"name": "s", "secret": {"secretName": "s"}},
    ]
    spec["spec"]["containers"][0]["volumeMounts"] = [
        {"name": "cm", "mountPath": "/cm"},
        {"name": "s", "mountPath": "/etc/secret"},
        {"name": "cm", "mountPath": "/one-file", "subPath": "deep/er"},
    ]
    await cluster.create(spec)
    await cluster.ready("a")
    assert await text(cluster, "a", "/cm/deep/er") == "2"
    assert await text(cluster, "a", "/one-file") == "2"
    assert await text(cluster, "a", "/etc/secret/password") == "\x00raw\r\n"
    if node == "win-1":
        assert await text(cluster, "a", "C:\\etc\\SECRET\\password") == "\x00raw\r\n"
    code, _, err = await cluster.exec("a", "/agnhost", "write", "/cm/new", "x")
    assert code == 1
    assert err.strip() == ("Access is denied." if node == "win-1" else "Read-only file system"), "fact 1.7"


async def test_a_missing_config_map_holds_the_pod_until_it_is_there(cluster: Cluster) -> None:
    await cluster.run("a", **mounted({"configMap": {"name": "cm"}}))
    await cluster.event("a", "FailedMount", 'MountVolume.SetUp failed for volume "v" : configmap "cm" not found')
    await cluster.until("a", lambda each: waiting(each) == "ContainerCreating")
    await config_map(cluster, key="late")
    await cluster.ready("a")
    assert await text(cluster, "a", "/v/key") == "late"


async def test_an_optional_one_may_be_missing(cluster: Cluster) -> None:
    await cluster.run("a", **mounted({"configMap": {"name": "cm", "optional": True}}))
    await cluster.ready("a")


async def test_updates_arrive_all_at_once(cluster: Cluster) -> None:
    await config_map(cluster, left="old", right="old")
    await cluster.run("a", **mounted({"configMap": {"name": "cm"}}))
    await cluster.ready("a")
    before = await text(cluster, "a", "/v/left")
    await cluster.client.patch("configmaps", "cm", {"data": {"left": "new", "right": "new", "third": "3"}}, "default")
    seen = set()
    while before != "new":
        before = await text(cluster, "a", "/v/left")
        seen.add((before, await text(cluster, "a", "/v/..data/right")))
    assert await text(cluster, "a", "/v/third") == "3"
    assert seen <= {("old", "old"), ("new", "new"), ("old", "new")}


async def test_a_volume_whose_updates_never_arrive(cluster: Cluster) -> None:
    defects = cluster.node("linux-1").defects.volumes
    defects.updates_never_arrive = True
    await config_map(cluster, key="old")
    await cluster.run("a", **mounted({"configMap": {"name": "cm"}}))
    uid = (await cluster.ready("a"))["metadata"]["uid"]
    await cluster.client.patch("configmaps", "cm", {"data": {"key": "new"}}, "default")
    references = cluster.node("linux-1").references
    await cluster.becomes(lambda: (references.find("configmaps", "cm", "default") or {})["data"] == {"key": "new"})
    await cluster.node("linux-1").workers[uid].sync()
    assert await text(cluster, "a", "/v/key") == "old"
    defects.updates_never_arrive = False
    await cluster.node("linux-1").workers[uid].sync()
    assert await text(cluster, "a", "/v/key") == "new"


@pytest.mark.parametrize("node", ["linux-1", "win-1"])
async def test_containers_of_a_pod_share_an_empty_dir_and_restarts_keep_it(cluster: Cluster, node: str) -> None:
    spec = pod("a", node=node, volumes=[{"name": "v", "emptyDir": {}}])
    mounts = [{"name": "v", "mountPath": "/share"}]
    spec["spec"]["containers"][0]["volumeMounts"] = mounts
    second = {"name": "second", "image": IMAGE, "args": ["sleep", "1", "print", "up", "pause"], "volumeMounts": mounts}
    spec["spec"]["containers"].append(second)
    await cluster.create(spec)
    await cluster.ready("a")
    assert (await cluster.exec("a", "/agnhost", "write", "/share/f", "from main"))[0] == 0
    code, out, _ = await cluster.exec("a", "/agnhost", "cat", "/share/f", container="second")
    assert (code, out) == (0, "from main")


async def test_a_host_path_survives_pods_and_stays_on_its_node(cluster: Cluster) -> None:
    volume = {"hostPath": {"path": "C:\\opready\\x", "type": "DirectoryOrCreate"}}
    await cluster.run("w", "write", "C:\\hp\\f", "kept", "pause", node="win-1", **mounted(volume, "C:\\hp"))
    await cluster.ready("w")
    await cluster.client.delete("pods", "w", "default")
    await cluster.gone("w")
    await cluster.run("r", node="win-1", **mounted(volume, "C:\\hp"))
    await cluster.run("elsewhere", node="win-2", **mounted(volume, "C:\\hp"))
    await cluster.ready("r")
    await cluster.ready("elsewhere")
    assert await text(cluster, "r", "C:\\hp\\f") == "kept"
    assert (await cluster.exec("elsewhere", "/agnhost", "cat", "C:\\hp\\f"))[0] == 1
    assert cluster.node("win-1").machine.files.read("C:\\opready\\x\\f") == b"kept"


async def test_host_path_types_are_checked(cluster: Cluster) -> None:
    await cluster.run("a", **mounted({"hostPath": {"path": "/nowhere", "type": "Directory"}}))
    await cluster.event("a", "FailedMount", "hostPath type check failed: /nowhere is not a directory")


async def test_a_fault_makes_host_paths_forget(cluster: Cluster) -> None:
    cluster.node("win-1").defects.volumes.host_path_not_persistent = True
    volume = {"hostPath": {"path": "C:\\opready", "type": "DirectoryOrCreate"}}
    await cluster.run("w", "write", "C:\\hp\\f", "kept", "pause", node="win-1", **mounted(volume, "C:\\hp"))
    await cluster.run("r", node="win-1", **mounted(volume, "C:\\hp"))
    await cluster.ready("w")
    await cluster.ready("r")
    assert (await cluster.exec("r", "/agnhost", "cat", "C:\\hp\\f"))[0] == 1
    assert await text(cluster, "w", "C:\\hp\\f") == "kept", "the pod itself sees nothing unusual"


async def test_faults_of_writing(cluster: Cluster) -> None:
    defects = cluster.node("linux-1").defects.volumes
    defects.read_only = True
    await cluster.run("a", **mounted({"emptyDir": {}}))
    await cluster.ready("a")
    assert (await cluster.exec("a", "/agnhost", "write", "/v/f", "x"))[0] == 1
    defects.read_only = False
    defects.writable_read_only = True
    await cluster.run("b", **mounted({"emptyDir": {}}, readOnly=True))
    await cluster.ready("b")
    assert (await cluster.exec("b", "/agnhost", "write", "/v/f", "x"))[0] == 0


async def test_torn_writes(cluster: Cluster) -> None:
    cluster.node("win-1").defects.volumes.torn_writes = True
    await cluster.run("a", node="win-1", **mounted({"emptyDir": {}}))
    await cluster.ready("a")
    assert (await cluster.exec("a", "/agnhost", "write", "C:\\v\\f", "12345678"))[0] == 0
    assert await text(cluster, "a", "C:\\v\\f") == "1234"
    cluster.node("win-1").defects.volumes.torn_writes = False
    assert (await cluster.exec("a", "/agnhost", "write", "C:\\v\\f", "12345678"))[0] == 0
    assert await text(cluster, "a", "C:\\v\\f") == "12345678"


async def test_downward_api_files(cluster: Cluster) -> None:
    items = [
        {"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}},
        {"path": "cpu", "resourceFieldRef": {"containerName": "main", "resource": "limits.cpu", "divisor": "1m"}},
    ]
    spec = mounted({"downwardAPI": {"items": items}})
    spec["container"]["resources"] = {"limits": {"cpu": "500m"}}
    await cluster.run("a", **spec)
    await cluster.ready("a")
    assert await text(cluster, "a", "/v/labels") == 'app="a"'
    assert await text(cluster, "a", "/v/cpu") == "500"


def claims(token: str) -> Object:
    part = token.split(".")[1]
    decoded: Object = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    return decoded


async def test_service_account_tokens_are_bound_to_the_pod_and_rotate(cluster: Cluster) -> None:
    source = {"serviceAccountToken": {"path": "token", "expirationSeconds": 600}}
    await cluster.run("a", node="win-1", **mounted({"projected": {"sources": [source]}}, "C:\\t"))
    worker = cluster.worker(await cluster.ready("a"))
    first = await text(cluster, "a", "C:\\t\\token")
    assert claims(first)["kubernetes.io"]["pod"]["uid"] == worker.uid
    cluster.clock.leaped += 200
    await worker.sync()
    assert await text(cluster, "a", "C:\\t\\token") == first
    cluster.clock.leaped += 280
    defects = cluster.node("win-1").defects.volumes
    defects.token_not_rotated = True
    await worker.sync()
    assert await text(cluster, "a", "C:\\t\\token") == first
    defects.token_not_rotated = False
    await worker.sync()
    assert await text(cluster, "a", "C:\\t\\token") != first, "fact S5: renewed at 80 % of life, seen at the next sync"


async def test_a_bound_claim_mounts_its_volume(cluster: Cluster) -> None:
    volume = {
        "metadata": {"name": "pv"},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "hostPath": {"path": "/pv"},
            "claimRef": {"namespace": "default", "name": "claim"},
        },
    }
    await cluster.client.create("persistentvolumes", volume)
    claim = {
        "metadata": {"name": "claim"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "volumeName": "pv",
            "resources": {"requests": {"storage": "1Gi"}},
            "storageClassName": "",
        },
    }
    await cluster.client.create("persistentvolumeclaims", claim, "default")
    await cluster.run(
        "a", "write", "/v/f", "stored", "pause", **mounted({"persistentVolumeClaim": {"claimName": "claim"}})
    )
    await cluster.event("a", "FailedMount", 'PVC "default/claim" is not bound')
    bound = {"status": {"phase": "Bound"}}
    await cluster.client.patch("persistentvolumeclaims", "claim", bound, "default", subresource="status")
    await cluster.ready("a")
    await cluster.becomes(lambda: cluster.node("linux-1").machine.files.exists("/pv/f"))


async def test_a_last_word_reaches_the_status(cluster: Cluster) -> None:
    await cluster.run("a", "write", "/dev/termination-log", "out of ideas", "exit", "2", restartPolicy="Never")
    state = container_state(await cluster.phase("a", "Failed"))["state"]["terminated"]
    assert state["message"] == "out of ideas"
    policy = {"terminationMessagePolicy": "FallbackToLogsOnError"}
    await cluster.run("b", "print", "last line", "exit", "2", restartPolicy="Never", container=policy)
    state = container_state(await cluster.phase("b", "Failed"))["state"]["terminated"]
    assert state["message"] == "last line\n"
