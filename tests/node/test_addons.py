"""The add-ons of Windows nodes: what they are told by version, and a sandbox whose nodes run them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
import yaml
from click.testing import CliRunner

from engine.stage import Stage
from node.test_joining import parameters
from winready.cli.lint import lint
from winready.cluster.applying import title
from winready.cluster.client import Client, Object
from winready.cluster.errors import ClusterError, ConfigError
from winready.cluster.resources import CONFIG_MAPS, DAEMON_SETS, NAMESPACES, PODS
from winready.node import applying
from winready.node.addons import LABELS, NAMESPACE, objects, render
from winready.node.parameters import Endpoint, File, Mode, Network, Parameters
from winready_sandbox.network.fabric import CLUSTER_DNS
from winready_sandbox.plan import Plan
from winready_sandbox.up import Sandbox
from winready_sandbox.virtual_time import VirtualTimeLoop

NODES = ("windows-1", "windows-2")
PARTS = ("kube-proxy", "flannel")
RIVALS = ("kube-proxy-windows", "calico-node-windows")


def network(mode: Mode = "overlay", **more: str) -> Network:
    return Network(
        pod_cidrs=["10.244.0.0/16"],
        service_cidrs=["10.96.0.0/16"],
        dns_servers=[CLUSTER_DNS],
        mode=mode,
        name=more.pop("name", "flannel.4096" if mode == "overlay" else "cbr0"),
        **more,  # type: ignore[arg-type]
    )


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    """A cluster whose Windows nodes have neither a service proxy nor a pod network of others."""

    async def enter() -> None:
        await sandbox.__aenter__()
        await sandbox.settled()
        # The service proxies of sandboxes have started by now; without one nothing is programmed any more.
        await asyncio.sleep(120)

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        sandbox = Sandbox(Plan(name="addons"))
        runner.run(enter())
        yield Stage(runner, sandbox)
        runner.run(sandbox.__aexit__(None, None, None))


@pytest.fixture
def bare(stage: Stage) -> Iterator[Stage]:
    """The same without add-ons, before and after a test."""

    async def clear(client: Client) -> None:
        for name in RIVALS:
            await client.delete(DAEMON_SETS, name, "kube-system")
        await applying.delete(client)
        await client.delete(NAMESPACES, NAMESPACE)
        await asyncio.sleep(60)

    stage.do(clear)
    assert not any(stage.sandbox.fabric.nodes[name].proxy.running for name in NODES)
    yield stage
    stage.do(clear)


def told(stage: Stage, mode: Mode = "overlay", **more: object) -> Parameters:
    host, port = stage.sandbox.control_plane.address
    return parameters(endpoint=Endpoint(host=host, port=port), network=network(mode), **more)


def applied(stage: Stage, said: Parameters, *, settle: float = 120) -> dict[str, str]:
    """Apply, and let the cluster act on it; what became of each object."""

    async def story(client: Client) -> dict[str, str]:
        done = await applying.apply(client, objects(said))
        await asyncio.sleep(settle)
        return {item.title: item.change for item in done}

    return stage.do(story)


def versions(stage: Stage) -> dict[str, str]:
    async def story(client: Client) -> dict[str, str]:
        found = await applying.surplus(client, [])
        return {title(item): item["metadata"]["resourceVersion"] for item in found}

    return stage.do(story)


def contents(stage: Stage) -> dict[str, Object]:
    """What is wished for; what becomes of it, controllers write at any time."""

    async def story(client: Client) -> dict[str, Object]:
        found = await applying.surplus(client, [])
        return {
            title(item): {key: value for key, value in item.items() if key not in ("metadata", "status")}
            for item in found
        }

    return stage.do(story)


def pods(stage: Stage) -> list[Object]:
    return stage.do(lambda client: client.list(PODS, NAMESPACE))


def log(stage: Stage, name: str, container: str) -> str:
    pod = next(item for item in pods(stage) if item["metadata"]["name"].startswith(f"{name}-"))
    return stage.do(lambda client: client.logs(NAMESPACE, pod["metadata"]["name"], container))


@pytest.mark.parametrize(("mode", "kind"), [("overlay", "Overlay"), ("l2bridge", "L2Bridge")])
def test_windows_nodes_run_what_is_applied_and_a_second_time_changes_nothing(
    bare: Stage, mode: Mode, kind: str
) -> None:
    said = told(bare, mode)
    assert set(applied(bare, said).values()) == {"created"}
    found = pods(bare)
    assert len(found) == 2 * len(NODES)
    for pod in found:
        for status in pod["status"]["containerStatuses"]:
            assert (status["ready"], status["restartCount"]) == (True, 0), status
    for name in NODES:
        machine = bare.sandbox.fleet.kubelets[name].machine
        (made,) = [item for item in machine.hns_networks if item.name == said.network.name]
        assert made.type == kind
        second = made.subnet.replace(".0/24", ".2")
        assert machine.files.read(f"C:\\var\\lib\\cni\\networks\\{made.name}\\{second}").startswith(b"winready-node")
        conf = json.loads(machine.files.read("C:\\etc\\cni\\net.d\\10-flannel.conf"))
        assert (conf["name"], conf["delegate"]["type"]) == (made.name, f"win-{kind.removeprefix('L2').lower()}")
        assert bare.sandbox.fabric.nodes[name].proxy.running
    assert ("--source-vip=10.244." in log(bare, "kube-proxy", "kube-proxy")) == (mode == "overlay")
    before = versions(bare)
    assert set(applied(bare, said, settle=0).values()) == {"unchanged"}
    assert versions(bare) == before
    differences = bare.do(lambda client: applying.differences(client, objects(said)))
    assert {(item.change, item.lines) for item in differences} == {("unchanged", ())}


def test_a_diff_shows_what_would_change_and_an_apply_changes_just_that(bare: Stage) -> None:
    applied(bare, told(bare))
    before = versions(bare)
    other = told(bare)
    wider = msgspec.structs.replace(other.network, pod_cidrs=["10.244.0.0/15"], cni="flannel")
    other = msgspec.structs.replace(other, network=wider)
    differences = bare.do(lambda client: applying.differences(client, objects(other)))
    changed = {item.title: item for item in differences if item.change == "changed"}
    assert set(changed) == {f"{kind} {NAMESPACE}/{name}" for kind in ("ConfigMap", "DaemonSet") for name in PARTS}
    lines = changed[f"ConfigMap {NAMESPACE}/kube-proxy"].lines
    assert any(line.startswith("+") and "--cluster-cidr=10.244.0.0/15" in line for line in lines)
    assert versions(bare) == before
    assert {name for name, change in applied(bare, other).items() if change == "changed"} == set(changed)
    assert "--cluster-cidr=10.244.0.0/15" in log(bare, "kube-proxy", "kube-proxy")


def running(stage: Stage) -> dict[str, set[str]]:
    """What the pods of each add-on were started with, by the name of the add-on."""
    found: dict[str, set[str]] = {}
    for pod in pods(stage):
        name = pod["metadata"]["labels"]["app.kubernetes.io/name"]
        found.setdefault(name, set()).add(pod["metadata"]["annotations"]["winready.io/program"])
        assert all(status["ready"] for status in pod["status"]["containerStatuses"]), pod["status"]
    return found


def test_a_newer_bundle_replaces_what_runs_and_leaves_nothing_of_the_old_one(bare: Stage) -> None:
    def made(kubernetes: str, digest: str) -> Parameters:
        return told(
            bare,
            kubernetes=kubernetes,
            files=[
                File(name="kube-proxy", url=f"https://x/v{kubernetes}/bin/kube-proxy.exe", sha256=digest * 64),
                File(name="flanneld", url="https://x/download/v0.27.4/flanneld.exe", sha256="f" * 64),
            ],
        )

    old, new = made("1.35.4", "a"), made("1.36.3", "b")
    applied(bare, old)
    flannel = {f"flanneld 0.27.4 sha256:{'f' * 64}"}
    assert running(bare) == {"kube-proxy": {f"kube-proxy 1.35.4 sha256:{'a' * 64}"}, "flannel": flannel}
    before = {pod["metadata"]["uid"] for pod in pods(bare) if pod["metadata"]["name"].startswith("flannel-")}
    differences = bare.do(lambda client: applying.differences(client, objects(new)))
    (changed,) = [item for item in differences if item.change != "unchanged"]
    assert changed.title == f"DaemonSet {NAMESPACE}/kube-proxy"
    shown = [line for line in changed.lines if line.startswith(("+ ", "- "))]
    assert [line.split(": ", 1)[1] for line in shown] == [
        f"kube-proxy 1.35.4 sha256:{'a' * 64}",
        f"kube-proxy 1.36.3 sha256:{'b' * 64}",
    ]
    done = applied(bare, new, settle=600)
    assert {name for name, change in done.items() if change == "changed"} == {changed.title}
    assert running(bare) == {"kube-proxy": {f"kube-proxy 1.36.3 sha256:{'b' * 64}"}, "flannel": flannel}
    assert len(pods(bare)) == 2 * len(NODES)
    # What the new bundle did not change goes on undisturbed.
    assert before == {pod["metadata"]["uid"] for pod in pods(bare) if pod["metadata"]["name"].startswith("flannel-")}
    assert all(bare.sandbox.fabric.nodes[name].proxy.running for name in NODES)
    assert set(applied(bare, new, settle=0).values()) == {"unchanged"}
    # The same release, built by somebody else, is another program.
    assert f"DaemonSet {NAMESPACE}/kube-proxy" in {
        name for name, change in applied(bare, made("1.36.3", "c"), settle=0).items() if change == "changed"
    }


@pytest.mark.parametrize(("release", "gates"), [("v1.26.15", True), ("v1.33.9", True), ("v1.34.0-rc.1", False)])
def test_gates_follow_the_version_of_the_program_on_each_node(bare: Stage, release: str, gates: bool) -> None:
    machines = [bare.sandbox.fleet.kubelets[name].machine for name in NODES]
    own = machines[0].kubernetes
    for machine in machines:
        machine.kubernetes = release
    applied(bare, told(bare))
    for machine in machines:
        machine.kubernetes = own
    assert ("--feature-gates=WinDSR=true,WinOverlay=true" in log(bare, "kube-proxy", "kube-proxy")) == gates


def test_what_is_no_longer_wanted_goes(bare: Stage) -> None:
    applied(bare, told(bare))
    less = msgspec.structs.replace(told(bare), network=network(cni="none", name="Calico"))
    removed = {name for name, change in applied(bare, less).items() if change == "removed"}
    assert removed == {
        f"{kind} {name}"
        for kind, name in (
            ("DaemonSet", f"{NAMESPACE}/flannel"),
            ("ConfigMap", f"{NAMESPACE}/flannel"),
            ("ServiceAccount", f"{NAMESPACE}/flannel"),
            ("ClusterRole", f"{NAMESPACE}:flannel"),
            ("ClusterRoleBinding", f"{NAMESPACE}:flannel"),
        )
    }


def test_exactly_ours_is_deleted(bare: Stage) -> None:
    applied(bare, told(bare), settle=0)
    copied = {"metadata": {"name": "theirs", "labels": LABELS}, "data": {"a": "b"}}
    bare.do(lambda client: client.create(CONFIG_MAPS, copied, NAMESPACE))
    done = bare.do(applying.delete)
    (kept,) = [item for item in done if item.change == "kept"]
    assert (kept.title, kept.lines) == (f"Namespace {NAMESPACE}", (f"ConfigMap {NAMESPACE}/theirs",))
    assert bare.do(lambda client: client.get(CONFIG_MAPS, "theirs", NAMESPACE))["data"] == {"a": "b"}
    bare.do(lambda client: client.delete(CONFIG_MAPS, "theirs", NAMESPACE))
    assert [item.change for item in bare.do(applying.delete)] == ["removed"]
    assert bare.do(applying.delete) == []


def test_fields_of_others_are_taken_over_only_by_force(bare: Stage) -> None:
    applied(bare, told(bare), settle=0)

    async def meddle(client: Client) -> None:
        patch = {"spec": {"template": {"spec": {"priorityClassName": "system-cluster-critical"}}}}
        await client.patch(DAEMON_SETS, "flannel", patch, NAMESPACE, manager="somebody")

    bare.do(meddle)
    before = contents(bare)
    with pytest.raises(ClusterError, match="changed by somebody else") as caught:
        applied(bare, told(bare))
    assert "somebody" in caught.value.message
    assert "--force" in caught.value.remedy
    assert contents(bare) == before
    done = bare.do(lambda client: applying.apply(client, objects(told(bare)), force=True))
    assert [item.title for item in done if item.change == "changed"] == [f"DaemonSet {NAMESPACE}/flannel"]


def test_a_second_service_proxy_or_pod_network_is_refused(bare: Stage) -> None:
    windows = {"nodeSelector": {"kubernetes.io/os": "windows"}, "containers": [{"name": "c", "image": "x/y:1"}]}

    def daemon_set(name: str) -> Object:
        labels = {"app": name}
        template = {"metadata": {"labels": labels}, "spec": windows}
        return {"metadata": {"name": name}, "spec": {"selector": {"matchLabels": labels}, "template": template}}

    for name, words in (("kube-proxy-windows", "brings kube-proxy"), ("antrea-agent-windows", "network .antrea.")):
        bare.do(lambda client, name=name: client.create(DAEMON_SETS, daemon_set(name), "default"))  # type: ignore[misc]
        with pytest.raises(ConfigError, match=words):
            bare.do(lambda client: applying.check_alone(client, objects(told(bare))))
        bare.do(lambda client, name=name: client.delete(DAEMON_SETS, name, "default"))  # type: ignore[misc]
    bare.do(lambda client: applying.check_alone(client, objects(told(bare))))


def test_an_address_that_a_pod_has_already_is_said(bare: Stage) -> None:
    folder = "C:\\var\\lib\\cni\\networks\\flannel.4096"
    for name in NODES:
        machine = bare.sandbox.fleet.kubelets[name].machine
        machine.files.mkdir(folder, parents=True)
        subnet = bare.sandbox.fabric.nodes[name].pools[0].network
        machine.files.write(f"{folder}\\{subnet[2]}", b"0123abcd\r\neth0")
    applied(bare, told(bare))
    assert "belongs to the container 0123abcd already" in log(bare, "flannel", "cni")
    for name in NODES:
        subnet = bare.sandbox.fabric.nodes[name].pools[0].network
        bare.sandbox.fleet.kubelets[name].machine.files.remove(f"{folder}\\{subnet[2]}")


def test_an_api_server_that_is_not_reached_is_said(bare: Stage) -> None:
    nowhere = msgspec.structs.replace(told(bare), endpoint=Endpoint(host="10.250.0.200"))
    applied(bare, nowhere)
    assert 'Get "https://10.250.0.200:6443/api"' in log(bare, "flannel", "flanneld")
    assert not any(
        status["ready"]
        for pod in pods(bare)
        for status in pod["status"]["containerStatuses"]
        if status["name"] == "flanneld"
    )


@pytest.mark.parametrize(("release", "policy"), [("1.29.9", False), ("1.30.0", True), ("1.37.1", True)])
def test_older_api_servers_get_no_policy(release: str, policy: bool) -> None:
    said = parameters(kubernetes=release, server=release)
    assert any(obj["kind"] == "ValidatingAdmissionPolicy" for obj in objects(said)) == policy


@pytest.mark.parametrize(("field", "value", "words"), [
    ("vni", 1, "VNI [1] must be greater than or equal to 4096"), ("vxlan_port", 8472, "Port [8472] is not supported"),
])  # fmt: skip
def test_flannel_itself_refuses_what_windows_cannot_do(bare: Stage, field: str, value: int, words: str) -> None:
    wrong = msgspec.structs.replace(told(bare).network, **{field: value})
    applied(bare, msgspec.structs.replace(told(bare), network=wrong))
    assert words in log(bare, "flannel", "flanneld")


@pytest.mark.parametrize("mode", ["overlay", "l2bridge"])
@pytest.mark.parametrize("release", ["1.30.0", "1.36.3"])
def test_manifests_pass_the_linter_and_are_the_same_every_time(mode: Mode, release: str, tmp_path: Path) -> None:
    said = parameters(kubernetes=release, server=release, network=network(mode))
    files = render(said)
    assert files == render(said)
    for name, text in files.items():
        (tmp_path / name).write_text(text)
        assert "&id" not in text
    read = [obj for name in sorted(files) for obj in yaml.safe_load_all(files[name])]
    assert read == objects(said)
    result = CliRunner().invoke(lint, [str(tmp_path), "--kubernetes", release.rpartition(".")[0]])
    assert result.exit_code == 0, result.output
    assert "0 errors, 0 warnings" in result.output


def test_flannel_is_told_what_windows_can_do() -> None:
    data = next(obj["data"] for obj in objects(parameters()) if obj["kind"] == "ConfigMap" and "cni.ps1" in obj["data"])
    backend = json.loads(data["net-conf.json"])["Backend"]
    assert backend == {"Type": "vxlan", "Name": "flannel.4096", "VNI": 4096, "Port": 4789}
    policies = [item["value"] for item in json.loads(data["cni-conf.json"])["delegate"]["policies"]]
    assert policies[0]["Settings"]["Exceptions"] == ["10.244.0.0/16", "10.96.0.0/16"]
    assert policies[1]["Settings"] == {"DestinationPrefix": "10.96.0.0/16", "NeedEncap": True}


def test_only_the_own_namespace_is_privileged_and_only_the_base_image_is_used() -> None:
    found = objects(parameters())
    labelled = [obj for obj in found if "pod-security.kubernetes.io/enforce" in obj["metadata"]["labels"]]
    assert [title(obj) for obj in labelled] == [f"Namespace {NAMESPACE}"]
    images = {
        container["image"]
        for obj in found
        if obj["kind"] == "DaemonSet"
        for container in obj["spec"]["template"]["spec"]["containers"]
    }
    assert images == {parameters().images.host_process}


def test_without_its_network_kube_proxy_is_not_rendered() -> None:
    assert render(parameters(network=network(cni="none"))) == {}
    assert "30-flannel.yaml" not in render(parameters(network=network(cni="none", name="Calico")))
