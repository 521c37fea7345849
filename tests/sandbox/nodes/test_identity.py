"""Who containers run as, where they run, and what they find around them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sandbox.nodes.small_cluster import IMAGE, Cluster, container_state, pod, waiting
from winready_sandbox.machine.process import Process

Object = dict[str, Any]


def windows(**options: Any) -> Object:
    return {"securityContext": {"windowsOptions": options}}


async def says(cluster: Cluster, name: str, *words: str, container: str = "main") -> str:
    code, out, err = await cluster.exec(name, "/agnhost", *words, container=container)
    assert code == 0, err
    return out.strip()


async def test_run_as_user_name(cluster: Cluster) -> None:
    spec = pod("a", node="win-1", **windows(runAsUserName="ContainerUser"))
    spec["spec"]["containers"].append(
        {"name": "b", "image": IMAGE, "args": ["pause"], **windows(runAsUserName="ContainerAdministrator")}
    )
    await cluster.create(spec)
    await cluster.run("default", node="win-1")
    await cluster.ready("a")
    await cluster.ready("default")
    assert await says(cluster, "a", "whoami") == "ContainerUser"
    assert await says(cluster, "a", "whoami", container="b") == "ContainerAdministrator", "fact A4 (d)"
    assert await says(cluster, "default", "whoami") == "ContainerAdministrator", "fact A4 (a): agnhost's own user"


async def test_an_unknown_user_never_runs(cluster: Cluster) -> None:
    await cluster.run("a", node="win-1", **windows(runAsUserName="opr-nobody"))
    await cluster.event("a", "FailedCreatePodSandBox", "The user name or password is incorrect.")
    assert (await cluster.pod("a"))["status"]["phase"] == "Pending"
    await cluster.run("b", node="win-1", container=windows(runAsUserName="opr-nobody"), restartPolicy="Never")
    state = container_state(await cluster.phase("b", "Failed"))["state"]["terminated"]
    assert state["reason"] == "StartError", "fact A4 (e)"


async def test_an_older_runtime_runs_no_hostprocess_pods(cluster: Cluster) -> None:
    cluster.node("win-1").machine.containerd = "1.5.18"
    on_host = windows(hostProcess=True, runAsUserName="NT AUTHORITY\\SYSTEM")
    await cluster.run("a", node="win-1", hostNetwork=True, **on_host)
    await cluster.event("a", "FailedCreatePodSandBox", "HostProcess containers are not supported by this runtime")
    assert (await cluster.pod("a"))["status"]["phase"] == "Pending", "fact 1.4: since containerd 1.6"


async def test_a_runtime_that_ignores_user_names(cluster: Cluster) -> None:
    cluster.node("win-1").defects.runtime.ignores_user_name = True
    await cluster.run("a", node="win-1", **windows(runAsUserName="ContainerUser"))
    await cluster.ready("a")
    assert await says(cluster, "a", "whoami") == "ContainerAdministrator"


async def test_non_root_policies(cluster: Cluster) -> None:
    await cluster.run("l", securityContext={"runAsNonRoot": True})
    await cluster.event("l", "Failed", "container has runAsNonRoot and image will run as root")
    await cluster.until("l", lambda each: waiting(each) == "CreateContainerConfigError")
    await cluster.run("w", node="win-1", securityContext={"runAsNonRoot": True})
    await cluster.event("w", "Failed", "container's runAsUser (ContainerAdministrator) which will be regarded as root")
    shouting = {"runAsNonRoot": True, "windowsOptions": {"runAsUserName": "CONTAINERADMINISTRATOR"}}
    await cluster.run("s", node="win-1", securityContext=shouting)
    await cluster.event("s", "Failed", "container's runAsUserName (CONTAINERADMINISTRATOR) which will be regarded")
    await cluster.run("ok", securityContext={"runAsNonRoot": True, "runAsUser": 1000})
    await cluster.ready("ok")


async def test_credential_specs_give_a_container_its_account(cluster: Cluster) -> None:
    credentials = {
        "CmsPlugins": ["ActiveDirectory"],
        "DomainJoinConfig": {"DnsName": "acme.com", "NetBiosName": "ACME", "MachineAccountName": "webapp01"},
    }
    await cluster.run("a", node="win-1", **windows(gmsaCredentialSpec=json.dumps(credentials)))
    instance = cluster.worker(await cluster.ready("a")).runs["main"].instance
    assert instance is not None
    assert instance.metered is not None
    assert instance.metered.credential_spec is not None
    assert instance.metered.credential_spec.domain == "acme.com"
    assert await says(cluster, "a", "hostname") == "webapp01", "fact 1.2: a gMSA pod answers with the gMSA name"
    await cluster.run("broken", node="win-1", **windows(gmsaCredentialSpec="{}"))
    await cluster.event("broken", "Failed", "invalid GMSA credential spec")


def host_process(user: str = "NT AUTHORITY\\SYSTEM") -> Object:
    return {"hostNetwork": True, "node": "win-1", **windows(hostProcess=True, runAsUserName=user)}


async def test_host_process_pods_are_on_the_node_itself(cluster: Cluster) -> None:
    copy = ["cmd", "/c", "ver", "&", "ping", "-n", "1000", "127.0.0.1"]
    await cluster.run("hp", container={"command": copy, "args": []}, **host_process())
    cluster.node("win-1").machine.programs = {"cmd": _patient_cmd}
    obj = await cluster.ready("hp")
    assert obj["status"]["podIP"] == "10.250.0.2", "fact 1.4: the node's address"
    instance = cluster.worker(obj).runs["main"].instance
    assert instance is not None
    container = instance.metered
    assert container is not None
    assert container.hostname == "win-1"
    assert container.identity.name == "SYSTEM"
    assert container.files.exists("C:\\hpc\\agnhost"), "fact 1.4: image files are at C:\\hpc"
    container.files.write("C:\\made-by-hp", b"x")
    assert cluster.node("win-1").machine.files.exists("C:\\made-by-hp")
    assert isinstance(instance.process, Process)
    assert instance.process.command_line.startswith("cmd /c "), "fact 1.4: commands are wrapped on containerd 1.7+"


async def _patient_cmd(process: Any) -> int:
    await process.stop_requested.wait()
    return 0


async def test_broken_host_process_pods(cluster: Cluster) -> None:
    node = cluster.node("win-1")
    node.machine.programs = {"cmd": _patient_cmd}
    node.defects.runtime.host_process_own_address = True
    node.defects.runtime.host_process_unprivileged = True
    await cluster.run("hp", **host_process())
    obj = await cluster.ready("hp")
    assert obj["status"]["podIP"].startswith("10.244.")
    instance = cluster.worker(obj).runs["main"].instance
    assert instance is not None
    assert instance.metered is not None
    assert not instance.metered.identity.administrator


async def test_lcow_and_the_wrong_image(cluster: Cluster) -> None:
    runtime = cluster.node("win-1").defects.runtime
    runtime.linux_for_windows = True
    await cluster.run("a", node="win-1", os={"name": "windows"})
    instance = cluster.worker(await cluster.ready("a")).runs["main"].instance
    assert instance is not None
    assert instance.metered is not None
    assert instance.metered.os == "linux"
    runtime.linux_for_windows = False
    runtime.stale_tag = "2.56"
    await cluster.run("b", node="win-1")
    state = container_state(await cluster.ready("b"))
    assert state["image"].endswith(":2.56")


@pytest.mark.parametrize("node", ["linux-1", "win-1"])
async def test_variables(cluster: Cluster, node: str) -> None:
    await cluster.client.create("configmaps", {"metadata": {"name": "cm"}, "data": {"k": "v", "n": "1"}}, "default")
    service = {"metadata": {"name": "my-svc"}, "spec": {"ports": [{"port": 80}], "clusterIP": "10.96.7.7"}}
    await cluster.client.create("services", service, "default")
    env = [
        {"name": "NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        {"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
        {"name": "GREETING", "value": "hello $(NAME) $$(NAME) $(NOBODY)"},
        {"name": "KEY", "valueFrom": {"configMapKeyRef": {"name": "cm", "key": "k"}}},
        {"name": "MEM", "valueFrom": {"resourceFieldRef": {"resource": "limits.memory", "divisor": "1Mi"}}},
    ]
    container = {
        "env": env,
        "envFrom": [{"prefix": "CM_", "configMapRef": {"name": "cm"}}],
        "resources": {"limits": {"memory": "512Mi"}},
        "workingDir": "/",
        "args": ["print", "$(GREETING)", "pause"],
    }
    await cluster.run("a", node=node, container=container)
    obj = await cluster.ready("a")
    assert await cluster.logs("a") == "hello a $(NAME) $(NOBODY)\n"
    for name, value in {
        "KEY": "v",
        "CM_n": "1",
        "MEM": "512",
        "IP": obj["status"]["podIP"],
        "MY_SVC_SERVICE_HOST": "10.96.7.7",
        "MY_SVC_PORT_80_TCP": "tcp://10.96.7.7:80",
        "KUBERNETES_SERVICE_HOST": "10.96.0.1",
    }.items():
        assert await says(cluster, "a", "env", name) == value


async def test_a_missing_secret_key_holds_the_container(cluster: Cluster) -> None:
    env = [{"name": "S", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}]
    await cluster.run("a", container={"env": env})
    obj = await cluster.until("a", lambda each: waiting(each) == "CreateContainerConfigError")
    assert container_state(obj)["state"]["waiting"]["message"] == 'secret "s" not found'
    await cluster.client.create("secrets", {"metadata": {"name": "s"}, "stringData": {"k": "v"}}, "default")
    await cluster.ready("a")


@pytest.mark.parametrize("node", ["linux-1", "win-1"])
async def test_host_aliases_reach_the_hosts_file(cluster: Cluster, node: str) -> None:
    await cluster.run("a", node=node, hostAliases=[{"ip": "203.0.113.7", "hostnames": ["alias.opready.test"]}])
    await cluster.ready("a")
    assert await says(cluster, "a", "resolve", "alias.opready.test") == "203.0.113.7"
    assert await says(cluster, "a", "hostname") == "a"


async def test_dns_settings_follow_the_policy(cluster: Cluster) -> None:
    settings = {"nameservers": ["10.96.0.10", "203.0.113.9"], "searches": ["fx.svc.cluster.local"]}
    await cluster.run("own", dnsPolicy="None", dnsConfig=settings)
    await cluster.run("cluster")
    await cluster.ready("own")
    await cluster.ready("cluster")
    text = await says(cluster, "own", "cat", "/etc/resolv.conf")
    assert text == "search fx.svc.cluster.local\nnameserver 10.96.0.10\nnameserver 203.0.113.9"
    text = await says(cluster, "cluster", "cat", "/etc/resolv.conf")
    assert text.startswith("search default.svc.cluster.local svc.cluster.local cluster.local\n")
    assert text.endswith("options ndots:5")


async def test_windows_refuses_memory_at_the_limit_and_linux_kills(cluster: Cluster) -> None:
    limit = {"resources": {"limits": {"memory": "256Mi"}}}
    words = ["allocate", str(10**9), "print", "still here"]
    await cluster.run("w", *words, "pause", node="win-1", container=limit)
    await cluster.ready("w")
    assert await cluster.logs("w") == "refused\nstill here\n", "fact 1.8: no OOM killer on Windows"
    await cluster.run("l", *words, "pause", container=limit, restartPolicy="Never")
    state = container_state(await cluster.phase("l", "Failed"))["state"]["terminated"]
    assert (state["reason"], state["exitCode"]) == ("OOMKilled", 137)


async def test_runtime_classes_choose_a_handler_that_the_node_must_have(cluster: Cluster) -> None:
    machine = cluster.node("win-1").machine
    for name in ("runhcs-wcow-hypervisor", "runhcs-wcow-process"):
        await cluster.client.create("runtimeclasses", {"metadata": {"name": name}, "handler": name})
    await cluster.run("plain", node="win-1", runtimeClassName="runhcs-wcow-process")
    await cluster.ready("plain")
    await cluster.run("early", node="win-1", runtimeClassName="runhcs-wcow-hypervisor")
    await cluster.event("early", "FailedCreatePodSandBox", 'no runtime for "runhcs-wcow-hypervisor" is configured')
    assert not machine.virtual_machines
    machine.hyper_v = True
    await cluster.ready("early")
    assert len(machine.virtual_machines) == 1
    await cluster.client.delete("pods", "early", "default")
    await cluster.gone("early")
    assert not machine.virtual_machines, "its virtual machine goes with the pod"
