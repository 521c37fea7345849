"""A host node runs real processes: what they see, what they may do, and what the cluster is told about them."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest

from host.pods import HOST, Pods, becomes, pod
from winready.cluster.errors import NotStarted
from winready.cluster.resources import CONFIG_MAPS, NODES, PODS, SECRETS, Resource

CLAIMS = Resource("v1", "PersistentVolumeClaim", "persistentvolumeclaims")
READ_ONLY = {"securityContext": {"readOnlyRootFilesystem": True}}


def mounted(name: str, place: str, **more: Any) -> dict[str, Any]:
    return {"volumeMounts": [{"name": name, "mountPath": place, **more}]}


async def test_it_is_apart_from_the_simulated_nodes(pods: Pods) -> None:
    nodes = {node["metadata"]["name"]: node for node in await pods.client.list(NODES)}
    assert nodes["host-1"]["metadata"]["labels"][HOST] == "true"
    assert "sandbox.winready.io/simulated" not in nodes["host-1"]["metadata"]["labels"]
    assert nodes["host-1"]["spec"]["taints"] == [{"key": HOST, "value": "true", "effect": "NoSchedule"}]
    assert nodes["host-1"]["status"]["images"][0]["names"] == ["busybox:1"]
    assert all(HOST not in nodes[name]["metadata"]["labels"] for name in nodes if name != "host-1")
    everyone = await pods.client.list(PODS)
    assert [each["metadata"]["name"] for each in everyone if each["spec"].get("nodeName") == "host-1"] == []


async def test_exit_code_last_word_and_both_streams(pods: Pods) -> None:
    code, log = await pods.run(pod("a", "sh", "-c", "echo out; echo err >&2; echo why > /dev/termination-log; exit 3"))
    assert (code, sorted(log.splitlines())) == (3, ["err", "out"])
    ended = await pods.phase("a", "Failed")
    (status,) = ended["status"]["containerStatuses"]
    assert status["state"]["terminated"]["message"] == "why\n"
    assert status["state"]["terminated"]["reason"] == "Error"
    assert status["containerID"].startswith("bubblewrap://")


async def test_a_killed_process_counts_as_its_signal(pods: Pods) -> None:
    await pods.create(
        pod(
            "a",
            "sh",
            "-c",
            "trap '' TERM; while :; do sleep 1; done",
            terminationGracePeriodSeconds=1,
            activeDeadlineSeconds=1,
        )
    )
    ended = await pods.until("a", lambda status: status.get("reason") == "DeadlineExceeded")
    assert ended["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 137


async def test_init_containers_come_first_and_share_volumes(pods: Pods) -> None:
    first = {
        "name": "first",
        "image": "busybox:1",
        "command": ["sh", "-c", "echo made > /work/x"],
        **mounted("w", "/work"),
    }
    main = mounted("w", "/deep/down/work", readOnly=True)
    told = pod(
        "a", "cat", "/deep/down/work/x", container=main, initContainers=[first], volumes=[{"name": "w", "emptyDir": {}}]
    )
    assert await pods.run(told) == (0, "made\n")


async def test_a_failed_init_container_fails_the_pod(pods: Pods) -> None:
    first = {"name": "first", "image": "busybox:1", "command": ["sh", "-c", "exit 4"]}
    await pods.create(pod("a", "echo", "never", initContainers=[first]))
    ended = await pods.phase("a", "Failed")
    assert ended["status"]["initContainerStatuses"][0]["state"]["terminated"]["exitCode"] == 4
    assert "running" not in ended["status"]["containerStatuses"][0]["state"]


async def test_restart_policy_starts_again_and_the_previous_log_stays(pods: Pods) -> None:
    script = "echo once >> /w/x; cat /w/x; test $(cat /w/x | busybox wc -l) = 2"
    again = pod(
        "a",
        "sh",
        "-c",
        script,
        container=mounted("w", "/w"),
        volumes=[{"name": "w", "emptyDir": {}}],
        restartPolicy="OnFailure",
    )
    assert await pods.run(again) == (0, "once\nonce\n")
    ended = await pods.phase("a", "Succeeded")
    assert ended["status"]["containerStatuses"][0]["restartCount"] == 1
    assert await pods.client.logs(pods.namespace, "a", "main", previous=True) == "once\n"


async def test_users_groups_and_a_root_that_cannot_be_written(pods: Pods, sandbox: dict[str, Any]) -> None:
    script = "id -u; id -g; touch /x || echo refused; touch /v/y && echo wrote; "
    script += "busybox grep -E 'CapEff|NoNewPrivs' /proc/self/status"
    context = {"runAsUser": 1000, "runAsGroup": 3000, "fsGroup": 2000, "runAsNonRoot": True}
    told = pod(
        "a",
        "sh",
        "-c",
        script,
        container=READ_ONLY | mounted("v", "/v"),
        volumes=[{"name": "v", "emptyDir": {}}],
        securityContext=context,
    )
    code, log = await pods.run(told)
    lines = [line for line in log.splitlines() if "touch" not in line]
    assert (code, lines) == (0, ["1000", "3000", "refused", "wrote", "CapEff:\t0000000000000000", "NoNewPrivs:\t1"])


async def test_another_user_may_not_change_the_image_where_root_made_it(pods: Pods, sandbox: dict[str, Any]) -> None:
    told = pod("a", "sh", "-c", "touch /bin/x && echo wrote", securityContext={"runAsUser": 1000})
    _, log = await pods.run(told)
    # Without root outside there is one user only, whoever it seems to be; the image itself is never touched.
    assert ("wrote" in log) is not sandbox["as_root"]


async def test_what_the_image_needs_is_never_changed(pods: Pods, busybox: Path) -> None:
    assert (
        await pods.run(pod("a", "sh", "-c", "echo gone > /bin/busybox.txt; touch /etc/passwd; echo x >> /etc/passwd"))
    )[0] == 0
    assert not (busybox / "bin" / "busybox.txt").exists()
    assert "x\n" not in (busybox / "etc" / "passwd").read_text().splitlines(keepends=True)


async def test_root_by_image_is_refused_to_those_who_must_not_be_root(pods: Pods) -> None:
    await pods.create(pod("a", "id", securityContext={"runAsNonRoot": True}))
    found = await pods.until("a", lambda status: "CreateContainerConfigError" in str(status.get("containerStatuses")))
    waiting = found["status"]["containerStatuses"][0]["state"]["waiting"]
    assert "container has runAsNonRoot and image will run as root" in waiting["message"]


async def test_environment_from_everywhere(pods: Pods) -> None:
    await pods.client.create(
        CONFIG_MAPS, {"metadata": {"name": "c", "namespace": pods.namespace}, "data": {"KEY": "of-map"}}
    )
    await pods.client.create(
        SECRETS,
        {"metadata": {"name": "s", "namespace": pods.namespace}, "data": {"word": base64.b64encode(b"hush").decode()}},
    )
    container = {
        "env": [
            {"name": "PLAIN", "value": "p"},
            {"name": "BOTH", "value": "$(PLAIN)-$(KEY)"},
            {"name": "SECRET", "valueFrom": {"secretKeyRef": {"name": "s", "key": "word"}}},
            {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
            {"name": "EMPTY", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['nothing']"}}},
            {"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
        ],
        "envFrom": [{"configMapRef": {"name": "c"}}],
    }
    code, log = await pods.run(pod("a", "env", container=container))
    found = await pods.phase("a", "Succeeded")
    assert code == 0
    wanted = {"BOTH=p-of-map", "SECRET=hush", "NODE=host-1", "EMPTY=", "KUBERNETES_SERVICE_HOST=10.96.0.1"}
    assert wanted <= set(log.splitlines())
    assert found["status"]["hostIP"] == "10.250.0.253"
    assert any(line.startswith("IP=10.244.253.") for line in log.splitlines())


async def test_volumes_from_objects_follow_them_and_a_token_is_there(pods: Pods) -> None:
    config = {"metadata": {"name": "c", "namespace": pods.namespace}, "data": {"key": "one"}}
    await pods.client.create(CONFIG_MAPS, config)
    sources = [
        {"configMap": {"name": "c"}},
        {"downwardAPI": {"items": [{"path": "who", "fieldRef": {"fieldPath": "metadata.name"}}]}},
    ]
    volumes = [{"name": "v", "projected": {"sources": sources}}]
    await pods.create(pod("a", "sleep", "1000", container=READ_ONLY | mounted("v", "/conf"), volumes=volumes))
    await pods.phase("a", "Running")
    assert (await pods.exec("a", "cat", "/conf/key", "/conf/who")).stdout == b"onea"
    token = (await pods.exec("a", "cat", "/var/run/secrets/kubernetes.io/serviceaccount/token")).stdout
    assert token.count(b".") == 2
    await pods.client.patch(CONFIG_MAPS, "c", {"data": {"key": "two", "more": "m"}}, pods.namespace)

    async def followed() -> bool:
        return (await pods.exec("a", "cat", "/conf/key")).stdout == b"two"

    await becomes(followed)
    assert (await pods.exec("a", "cat", "/conf/more")).stdout == b"m"


async def test_a_claim_outlives_the_pod(pods: Pods) -> None:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    await pods.client.create(CLAIMS, {"metadata": {"name": "data", "namespace": pods.namespace}, "spec": spec})
    volumes = [{"name": "d", "persistentVolumeClaim": {"claimName": "data"}}]
    writer = pod("w", "sh", "-c", "echo kept > /data/x", container=mounted("d", "/data"), volumes=volumes)
    assert (await pods.run(writer))[0] == 0
    await pods.client.delete(PODS, "w", pods.namespace)
    reader = pod("r", "cat", "/sub/x", container=mounted("d", "/sub"), volumes=volumes)
    assert await pods.run(reader) == (0, "kept\n")


@pytest.mark.parametrize("path", ["/etc", "/", "/proc/1/root/tmp"])
async def test_host_paths_outside_of_the_sandbox_are_refused(pods: Pods, path: str) -> None:
    volumes = [{"name": "h", "hostPath": {"path": path}}]
    await pods.create(pod("a", "ls", "/h", container=mounted("h", "/h"), volumes=volumes))

    async def refused() -> bool:
        return any(f"hostPath {path} is refused" in event for event in await pods.events())

    await becomes(refused)
    assert (await pods.client.get(PODS, "a", pods.namespace))["status"]["phase"] == "Pending"


async def test_a_link_in_a_volume_does_not_lead_out_of_it(pods: Pods) -> None:
    link = {
        "name": "first",
        "image": "busybox:1",
        "command": ["busybox", "ln", "-s", "/etc", "/v/out"],
        **mounted("v", "/v"),
    }
    main = mounted("v", "/here", subPath="out")
    told = pod("a", "ls", "/here", container=main, initContainers=[link], volumes=[{"name": "v", "emptyDir": {}}])
    code, log = await pods.run(told)
    assert (code, log) == (0, "")


async def test_exec_is_in_the_container_with_its_user_and_stdin(pods: Pods) -> None:
    await pods.create(pod("a", "sleep", "1000", securityContext={"runAsUser": 1000}, container=READ_ONLY))
    await pods.phase("a", "Running")
    echoed = await pods.exec("a", "sh", "-c", "cat; id -u; echo no >&2; exit 7", stdin=b"given\n")
    assert (echoed.exit_code, echoed.stdout, echoed.stderr) == (7, b"given\n1000\n", b"no\n")
    assert b"1 worker   sleep 1000" in (await pods.exec("a", "ps")).stdout
    assert b"CapEff:\t0000000000000000" in (await pods.exec("a", "cat", "/proc/self/status")).stdout
    with pytest.raises(NotStarted, match="executable file not found in"):
        await pods.exec("a", "no-such-program")


async def test_pods_have_networks_of_their_own_and_reach_each_other(pods: Pods) -> None:
    serve = ("httpd", "-f", "-p", "8099", "-h", "/etc")
    for name in ("a", "b"):
        await pods.create(pod(name, *serve))
    addresses = [(await pods.phase(name, "Running"))["status"]["podIP"] for name in ("a", "b")]
    assert len(set(addresses)) == 2
    for address in addresses:
        asked = await pods.exec("a", "wget", "-q", "-O", "-", f"http://{address}:8099/passwd")
        assert b"worker" in asked.stdout, asked.stderr
    # The API server finds them, too.
    path = f"/api/v1/namespaces/{pods.namespace}/pods/a:8099/proxy/passwd"
    answer = await pods.client.transport.call("GET", path, media="application/octet-stream")
    assert b"worker" in answer.body


async def test_the_api_server_is_where_every_pod_looks_for_it(pods: Pods) -> None:
    script = "nc -w 5 $KUBERNETES_SERVICE_HOST $KUBERNETES_SERVICE_PORT < /dev/null && "
    script += "nc -w 5 kubernetes.default.svc 443 < /dev/null && echo there"
    assert (await pods.run(pod("a", "sh", "-c", script)))[1] == "there\n"


async def test_the_gateway_stays_the_same_while_pods_come_and_go(pods: Pods) -> None:
    ask = "nc -w 5 $KUBERNETES_SERVICE_HOST $KUBERNETES_SERVICE_PORT < /dev/null; cat /proc/net/arp"
    seen = set()
    for name in ("a", "b", "c", "d"):
        _, log = await pods.run(pod(name, "sh", "-c", ask))
        gateway = log.splitlines()[1].split()
        assert gateway[0].endswith(".1")
        seen.add(gateway[3])
    # Who has a connection open would otherwise send to an address that nobody has any more.
    assert len(seen) == 1


async def test_nothing_of_this_computer_is_in_sight(pods: Pods) -> None:
    script = "nc -w 1 127.0.0.1 22; ls /; busybox ls /root /home /work 2>&1; busybox ip addr; ps"
    _, log = await pods.run(pod("a", "sh", "-c", script))
    assert "winready" not in log
    assert log.count("inet 127.0.0.1/8") == 1
    assert len([line for line in log.splitlines() if " sh -c" in line or "busybox" in line]) < 5


async def test_readiness_follows_the_probe(pods: Pods) -> None:
    probe = {"readinessProbe": {"exec": {"command": ["cat", "/tmp/ready"]}, "periodSeconds": 1}}
    await pods.create(pod("a", "sleep", "1000", container=probe))
    await pods.phase("a", "Running")
    ready = await pods.until("a", lambda status: status["phase"] == "Running")
    assert not ready["status"]["containerStatuses"][0]["ready"]
    assert (await pods.exec("a", "touch", "/tmp/ready")).exit_code == 0
    await pods.until("a", lambda status: status["containerStatuses"][0]["ready"])


async def test_a_deleted_pod_is_asked_to_end(pods: Pods) -> None:
    script = "trap 'echo asked; exit 0' TERM; echo up; while :; do sleep 0.1; done"
    await pods.create(pod("a", "sh", "-c", script))
    await pods.phase("a", "Running")

    async def listens() -> bool:
        return "up" in await pods.client.logs(pods.namespace, "a", "main")

    await becomes(listens)
    await pods.client.delete(PODS, "a", pods.namespace)
    await pods.gone("a")


async def test_whoever_does_not_listen_is_ended(pods: Pods) -> None:
    await pods.create(pod("a", "sh", "-c", "trap '' TERM; while :; do sleep 1; done", terminationGracePeriodSeconds=1))
    await pods.phase("a", "Running")
    await pods.client.delete(PODS, "a", pods.namespace)
    await pods.gone("a")


async def test_an_image_that_was_not_given_is_named(pods: Pods) -> None:
    await pods.create(pod("a", "id", container={"image": "nobody/has:this"}))
    found = await pods.until("a", lambda status: "ImagePull" in str(status.get("containerStatuses")))
    message = found["status"]["containerStatuses"][0]["state"]["waiting"]["message"]
    assert "this node has only the images that it was started with (busybox:1)" in message


async def test_a_command_that_the_image_does_not_have_is_named(pods: Pods) -> None:
    await pods.create(pod("a", "/no/such"))
    ended = await pods.phase("a", "Failed")
    terminated = ended["status"]["containerStatuses"][0]["state"]["terminated"]
    assert (terminated["exitCode"], terminated["reason"]) == (128, "StartError")
    assert 'exec: "/no/such": stat /no/such: no such file or directory' in terminated["message"]
