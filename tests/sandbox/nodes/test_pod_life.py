"""The life of pods: admission, start, restarts, hooks, probes, termination."""

from __future__ import annotations

import pytest

from sandbox.nodes.small_cluster import IMAGE, Cluster, container_state, is_ready, pod, waiting


@pytest.mark.parametrize("node", ["linux-1", "win-1"])
async def test_a_pod_runs_and_its_status_is_complete(cluster: Cluster, node: str) -> None:
    await cluster.run("a", "print", "hello", "pause", node=node)
    obj = await cluster.ready("a")
    status = obj["status"]
    kinds = {item["type"]: item["status"] for item in status["conditions"]}
    wanted = {"PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"}
    assert kinds == dict.fromkeys(wanted, "True")
    assert status["phase"] == "Running"
    assert status["podIP"] == status["podIPs"][0]["ip"]
    assert status["podIP"].startswith("10.244.")
    assert status["hostIP"] == cluster.node(node).addresses[0]
    assert status["qosClass"] == "BestEffort"
    state = container_state(obj)
    assert state["ready"] is state["started"] is True
    assert state["imageID"].startswith("registry.k8s.io/e2e-test-images/agnhost@sha256:")
    assert state["containerID"].startswith("containerd://")
    for reason in ("Pulled", "Created", "Started"):
        await cluster.event("a", reason)
    assert await cluster.logs("a") == "hello\n"


async def test_a_pod_for_another_os_is_refused(cluster: Cluster) -> None:
    await cluster.run("a", node="linux-1", os={"name": "windows"})
    obj = await cluster.phase("a", "Failed")
    assert obj["status"]["reason"] == "PodOSNotSupported"


async def test_a_pod_that_does_not_fit_is_refused(cluster: Cluster) -> None:
    big = {"resources": {"requests": {"memory": "100Ti"}}}
    await cluster.run("a", node="win-1", container=big)
    obj = await cluster.phase("a", "Failed")
    assert obj["status"]["reason"] == "OutOfmemory", "fact 1.8: a pod with nodeName becomes Failed/OutOfmemory"


async def test_labels_are_looked_up_before_a_pod_is_refused_for_them(cluster: Cluster) -> None:
    await cluster.client.patch("nodes", "win-1", {"metadata": {"labels": {"disk": "fast"}}})
    await cluster.run("a", node="win-1", nodeSelector={"disk": "fast"})
    await cluster.ready("a")
    await cluster.run("b", node="win-1", nodeSelector={"disk": "slow"})
    obj = await cluster.phase("b", "Failed")
    assert obj["status"]["reason"] == "NodeAffinity"


@pytest.mark.parametrize("node", ["linux-1", "win-1"])
async def test_an_evicted_pod_that_somebody_holds_reaches_its_end(cluster: Cluster, node: str) -> None:
    await cluster.run("a", "pause", node=node, restartPolicy="Never", terminationGracePeriodSeconds=1)
    await cluster.ready("a")
    await cluster.client.patch("pods", "a", {"metadata": {"finalizers": ["example.com/hold"]}}, "default")
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "a"}}
    await cluster.client.create("pods", eviction, "default", subresource="eviction")
    # The program ends by itself, with exit code 0, once it is told to.
    obj = await cluster.phase("a", "Succeeded")
    reasons = {item["type"]: item.get("reason") for item in obj["status"]["conditions"]}
    assert reasons["DisruptionTarget"] == "EvictionByEvictionAPI"
    assert "terminated" in container_state(obj)["state"]
    await cluster.client.patch("pods", "a", {"metadata": {"finalizers": None}}, "default")
    await cluster.gone("a")


async def test_exit_codes_decide_the_phase(cluster: Cluster) -> None:
    await cluster.run("good", "exit", "0", restartPolicy="Never")
    await cluster.run("bad", "print", "oh", "exit", "3", restartPolicy="Never", node="win-1")
    state = container_state(await cluster.phase("good", "Succeeded"))["state"]["terminated"]
    assert (state["exitCode"], state["reason"]) == (0, "Completed")
    state = container_state(await cluster.phase("bad", "Failed"))["state"]["terminated"]
    assert (state["exitCode"], state["reason"]) == (3, "Error")
    assert await cluster.logs("bad") == "oh\n", "logs outlive the container"


@pytest.mark.virtual_time
async def test_crashes_are_held_back(cluster: Cluster) -> None:
    await cluster.run("a", "print", "again", "exit", "1")

    obj = await cluster.until("a", lambda each: waiting(each) == "CrashLoopBackOff")
    state = container_state(obj)
    assert state["restartCount"] >= 1
    assert "back-off 10s restarting failed container=main" in state["state"]["waiting"]["message"]
    assert state["lastState"]["terminated"]["exitCode"] == 1
    assert obj["status"]["phase"] == "Running"
    await cluster.event("a", "BackOff", "Back-off restarting failed container main in pod a_default")
    obj = await cluster.until("a", lambda each: container_state(each).get("restartCount", 0) >= 3)
    assert await cluster.logs("a", previous="true") == "again\n"


async def test_init_containers_run_in_order_and_sidecars_stay(cluster: Cluster) -> None:
    spec = pod("a", "cat", "/shared/first", restartPolicy="Never", volumes=[{"name": "v", "emptyDir": {}}])
    mounts = {"volumeMounts": [{"name": "v", "mountPath": "/shared"}]}
    spec["spec"]["containers"][0] |= mounts
    spec["spec"]["initContainers"] = [
        {"name": "side", "image": IMAGE, "args": ["print", "beside", "pause"], "restartPolicy": "Always"},
        {"name": "first", "image": IMAGE, "args": ["write", "/shared/first", "one"], **mounts},
    ]
    await cluster.create(spec)
    obj = await cluster.phase("a", "Succeeded")
    assert await cluster.logs("a") == "one"
    assert container_state(obj, "first", "initContainerStatuses")["state"]["terminated"]["reason"] == "Completed"
    assert await cluster.logs("a", "side") == "beside\n"
    # Sidecars end with the pod.
    await cluster.until("a", lambda obj: "terminated" in container_state(obj, "side", "initContainerStatuses")["state"])


async def test_a_failing_init_container_fails_the_pod(cluster: Cluster) -> None:
    spec = pod("a", restartPolicy="Never")
    spec["spec"]["initContainers"] = [{"name": "first", "image": IMAGE, "args": ["exit", "5"]}]
    await cluster.create(spec)
    obj = await cluster.phase("a", "Failed")
    assert "waiting" in container_state(obj)["state"]


async def test_readiness_follows_the_probe(cluster: Cluster) -> None:
    probe = {"httpGet": {"path": "/", "port": "web"}, "periodSeconds": 1}
    container = {"readinessProbe": probe, "ports": [{"name": "web", "containerPort": 8080}]}
    await cluster.run("a", "serve", "8080", "C:\\ok", node="win-1", container=container)
    await cluster.event("a", "Unhealthy", "Readiness probe failed: HTTP probe failed with statuscode: 500")
    assert not is_ready(await cluster.pod("a"))
    assert (await cluster.exec("a", "/agnhost", "write", "C:\\ok", "x"))[0] == 0
    await cluster.ready("a")


async def test_liveness_restarts_and_startup_holds_it_back(cluster: Cluster) -> None:
    exec_probe = {"exec": {"command": ["/agnhost", "cat", "/alive"]}, "periodSeconds": 1, "failureThreshold": 1}
    startup = {"tcpSocket": {"port": 80}, "periodSeconds": 1, "failureThreshold": 1000}
    container = {"livenessProbe": exec_probe, "startupProbe": startup}
    await cluster.run("a", "sleep", "20", "serve", "80", container=container, terminationGracePeriodSeconds=1)
    obj = await cluster.until("a", lambda each: container_state(each).get("restartCount", 0) >= 1)
    assert container_state(obj)["lastState"]["terminated"]["exitCode"] == 0, "it was asked to stop, and did"
    await cluster.event("a", "Killing", "Container main failed liveness probe, will be restarted")
    await cluster.event("a", "Unhealthy", "Startup probe failed: dial tcp")


async def test_hooks_run_inside_the_container(cluster: Cluster) -> None:
    share = {"volumeMounts": [{"name": "v", "mountPath": "/host"}]}
    hooks = {
        "postStart": {"exec": {"command": ["/agnhost", "write", "/host/started", "yes"]}},
        "preStop": {"exec": {"command": ["/agnhost", "write", "/host/stopped", "yes"]}},
    }
    volumes = [{"name": "v", "hostPath": {"path": "/data", "type": "DirectoryOrCreate"}}]
    await cluster.run("a", container={**share, "lifecycle": hooks}, volumes=volumes)
    await cluster.ready("a")
    await cluster.client.delete("pods", "a", "default")
    await cluster.gone("a")
    files = cluster.node("linux-1").machine.files
    assert files.read("/data/started") == files.read("/data/stopped") == b"yes"


@pytest.mark.parametrize("node", ["linux-1", "win-1"])
async def test_a_deleted_pod_gets_its_grace_and_is_gone(cluster: Cluster, node: str) -> None:
    await cluster.run("a", "stubborn", node=node, terminationGracePeriodSeconds=30)
    await cluster.ready("a")
    begun = cluster.clock.now()
    await cluster.client.delete("pods", "a", "default")
    await cluster.gone("a")
    assert cluster.clock.now() - begun >= 30, "a program that ignores the request is killed after the grace"
    await cluster.event("a", "Killing", "Stopping container main")


async def test_a_forced_deletion_leaves_nothing_running(cluster: Cluster) -> None:
    await cluster.run("a", "stubborn", terminationGracePeriodSeconds=3600)
    await cluster.ready("a")
    await cluster.client.delete("pods", "a", "default", grace=0)
    await cluster.gone("a")
    node = cluster.node("linux-1")
    await cluster.becomes(lambda: not node.machine.containers and not node.workers)


async def test_a_pod_past_its_deadline_fails(cluster: Cluster) -> None:
    await cluster.run("a", activeDeadlineSeconds=30)
    obj = await cluster.phase("a", "Failed")
    assert obj["status"]["reason"] == "DeadlineExceeded"


async def test_ephemeral_containers_join_a_running_pod(cluster: Cluster) -> None:
    await cluster.run("a")
    await cluster.ready("a")
    debug = {"name": "debug", "image": IMAGE, "args": ["print", "looking around"]}
    patch = {"spec": {"ephemeralContainers": [debug]}}
    await cluster.client.patch("pods", "a", patch, "default", subresource="ephemeralcontainers", kind="strategic")
    await cluster.until(
        "a", lambda each: "terminated" in container_state(each, "debug", "ephemeralContainerStatuses").get("state", {})
    )
    assert await cluster.logs("a", "debug") == "looking around\n"
