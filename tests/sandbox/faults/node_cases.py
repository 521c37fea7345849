"""What faults of nodes, volumes and the domain look like."""

from __future__ import annotations

import contextlib
import json

from sandbox.faults.bench import IMAGE, NAMESPACE, SHORT, SYSTEM, Bench, Object, refused
from sandbox.faults.case import Case
from sandbox.faults.network_cases import service_ip
from winready.cluster.errors import ExecFailed
from winready.cluster.resources import CONFIG_MAPS, NODES, PODS

SHARE = "\\\\10.250.0.254\\webapp"
GMSA = {
    "CmsPlugins": ["ActiveDirectory"],
    "DomainJoinConfig": {"DnsName": "sandbox.test", "NetBiosName": "SANDBOX", "MachineAccountName": "webapp"},
}
GROW = "$n=0; try { while ($n -lt 64) { $keep += ,(New-Object byte[] 8MB); $n++ } } catch { 'refused' }; $n"


def _n(node: str) -> str:
    return node.rpartition("-")[2]


def _name(made: Object) -> str:
    return str(made["metadata"]["name"])


async def container_os(b: Bench, node: str) -> str:
    """What the container of a new Windows pod is."""
    async with b.pod(node) as made:
        try:
            _, text = await b.run(_name(made), "cmd", "/c", "ver")
        except ExecFailed:
            return (await b.run(_name(made), "uname", "-s"))[1]
        return "Windows" if "Microsoft Windows [Version 10.0.20348" in text else text


async def four_pods(b: Bench, node: str) -> str:
    """Whether four new pods all start."""
    async with contextlib.AsyncExitStack() as stack:
        names = [_name(await stack.enter_async_context(b.pod(node, wait=False))) for _ in range(4)]

        async def all_ready() -> bool:
            return all([await b.if_ready(name, NAMESPACE) for name in names])

        return "all" if await b.until(all_ready, SHORT) else "some"


async def statistics(b: Bench, node: str) -> str:
    """Whether the kubelet tells its statistics."""
    return ",".join(await b.statuses(f"/api/v1/nodes/{node}/proxy/stats/summary"))


async def commands(b: Bench, node: str) -> str:
    """How many of eight commands in a pod of the node are started."""
    failed = [await refused(b.run(f"wc-{_n(node)}", "cmd", "/c", "ver")) for _ in range(8)]
    return "all" if not any(failed) else "none" if all(failed) else "some"


async def pull(b: Bench, node: str) -> str:
    """What becomes of a pod whose image has to be pulled."""
    async with b.pod(node, wait=False, container={"imagePullPolicy": "Always"}) as made:

        async def seen() -> str:
            pod = await b.client.get(PODS, _name(made), NAMESPACE)
            [state] = pod["status"].get("containerStatuses") or [{}]
            reason = state.get("state", {}).get("waiting", {}).get("reason", "")
            return "pulled" if state.get("ready") else reason if "Image" in reason else ""

        found = str(await b.until(seen))
        return "ErrImagePull" if found == "ImagePullBackOff" else found


async def image(b: Bench, node: str) -> str:
    """Which image the status of a new pod names."""
    async with b.pod(node) as made:
        return str(made["status"]["containerStatuses"][0]["image"]).rpartition(":")[2]


async def user_name(b: Bench, node: str) -> str:
    """Who a pod runs as that asks for ContainerUser; its image says ContainerAdministrator."""
    async with b.pod(node, windows={"runAsUserName": "ContainerUser"}) as made:
        return (await b.run(_name(made), "cmd", "/S", "/C", "echo %USERNAME%"))[1]


async def host_process_address(b: Bench, node: str) -> str:
    """Whose address a HostProcess pod has."""
    async with b.pod(node, windows=SYSTEM) as made:
        return "the node's" if made["status"]["podIP"] == b.addresses[node][0] else "its own"


async def host_process_rights(b: Bench, node: str) -> str:
    """Whether a HostProcess pod that runs as SYSTEM can make a local group."""
    async with b.pod(node, windows=SYSTEM) as made:
        made_it = (await b.run(_name(made), "net", "localgroup", "bench", "/add"))[0] == 0
        await b.run(_name(made), "net", "localgroup", "bench", "/delete")
        return "may" if made_it else "may not"


async def share_without_account(b: Bench, node: str) -> str:
    """Whether a pod without credentials gets into the share of an account."""
    async with b.pod(node or "windows-1") as made:
        return "let in" if (await b.run(_name(made), "cmd", "/c", "dir", SHARE))[0] == 0 else "denied"


async def share_with_account(b: Bench, node: str) -> str:
    """Whether a pod with a gMSA gets into the share of that account."""
    async with b.pod("windows-1", windows={"gmsaCredentialSpec": json.dumps(GMSA)}) as made:
        code, _ = await b.run(_name(made), "cmd", "/c", f"echo mark>{SHARE}\\f.txt")
        return "let in" if code == 0 else "kept out"


async def membership(b: Bench, node: str) -> str:
    """Whether the node is part of the cluster and takes pods."""
    found = await b.client.find(NODES, node)
    if found is None:
        return "gone"
    conditions = {each["type"]: each["status"] for each in found["status"]["conditions"]}
    return "ready" if conditions.get("Ready") == "True" else "not ready"


async def build(b: Bench, node: str) -> str:
    """The Windows build that the node reports."""
    found = await b.client.get(NODES, node)
    label = found["metadata"]["labels"]["node.kubernetes.io/windows-build"]
    assert found["status"]["nodeInfo"]["kernelVersion"].startswith(label)
    return str(label)


async def burned(b: Bench, node: str) -> str:
    """What a busy loop gets with a limit of half a core."""
    limits = {"limits": {"cpu": "500m"}, "requests": {"cpu": "50m"}}
    loop = {"command": ["powershell.exe", "-NoProfile", "-Command", "while($true){}"], "args": []}
    async with b.pod(node, container={"resources": limits, **loop}) as made:

        async def cores() -> float:
            pods = (await b.client.node_proxy(node, "stats/summary"))["pods"]
            own = [each["cpu"] for each in pods if each["podRef"]["name"] == _name(made)]
            return own[0].get("usageNanoCores", 0) / 1e9 if own else 0.0

        return "more than its limit" if (await b.until(cores) or 0) > 0.75 else "about its limit"


async def grown(b: Bench, node: str) -> str:
    """What a script gets that wants 512 MB with a limit of 384."""
    limits = {"limits": {"memory": "384Mi"}, "requests": {"memory": "50Mi"}}
    async with b.pod(node, container={"resources": limits}) as made:
        _, text = await b.run(_name(made), "powershell.exe", "-NoProfile", "-Command", GROW)
        return "less" if "refused" in text else "everything" if text == "64" else text


async def host_networks(b: Bench, node: str) -> str:
    """Whether the Host Networking Service lists its networks."""
    code, text = await b.run(f"hp-{_n(node)}", "hnsdiag.exe", "list", "networks")
    return "listed" if code == 0 and "Calico" in text else "no answer"


async def defender(b: Bench, node: str) -> str:
    """Whether Defender leaves the container runtime alone."""
    script = "(Get-MpPreference).ExclusionProcess"
    _, text = await b.run(f"hp-{_n(node)}", "powershell.exe", "-NoProfile", "-Command", script)
    return "excluded" if "containerd.exe" in text else "scanned"


async def node_ping(b: Bench, node: str) -> str:
    """Whether the node answers another node's ping, and still takes connections."""
    code, _ = await b.run("lh-1", "ping", "-c", "1", "-W", "2", b.addresses[node][0])
    return f"{'answered' if code == 0 else 'silent'}, {await b.connects('lh-1', f'{b.addresses[node][0]}:10250')}"


async def remote_access(b: Bench, node: str) -> str:
    """Whether SSH and RDP are open."""
    ways = [await b.connects("lc-1", f"{b.addresses[node][0]}:{port}") for port in (22, 3389)]
    return " ".join(ways)


def _with_volume(volume: Object, *, read_only: bool = False) -> Object:
    mounts = [{"name": "v", "mountPath": "/vol"}]
    second = {"name": "d", "image": IMAGE, "args": ["pause"], "volumeMounts": [{**mounts[0], "readOnly": read_only}]}
    return {"spec": {"volumes": [{"name": "v", **volume}]}, "container": {"volumeMounts": mounts}, "more": [second]}


async def _write(b: Bench, pod: str, container: str = "c") -> bool:
    return (await b.run(pod, "cmd", "/c", "echo marker>C:\\vol\\f.txt", container=container))[0] == 0


async def _read(b: Bench, pod: str, container: str = "c") -> str:
    code, text = await b.run(pod, "cmd", "/c", "type", "C:\\vol\\f.txt", container=container)
    return text if code == 0 else "nothing"


async def written(b: Bench, node: str) -> str:
    """Whether a volume takes a write."""
    async with b.pod(node, **_with_volume({"emptyDir": {}})) as made:
        return "taken" if await _write(b, _name(made)) else "refused"


async def written_read_only(b: Bench, node: str) -> str:
    """Whether a read-only mount takes a write."""
    async with b.pod(node, **_with_volume({"emptyDir": {}}, read_only=True)) as made:
        return "taken" if await _write(b, _name(made), "d") else "refused"


async def file_content(b: Bench, node: str) -> str:
    """What a file from a config map has in it."""
    async with b.pod(node, **_with_volume({"configMap": {"name": "kube-root-ca.crt"}})) as made:
        _, text = await b.run(_name(made), "cmd", "/c", "type", "C:\\vol\\ca.crt")
        return "a certificate" if "BEGIN CERTIFICATE" in text else text


async def host_path(b: Bench, node: str) -> str:
    """What a second pod finds in a hostPath volume after the first wrote to it."""
    volume = _with_volume({"hostPath": {"path": f"C:\\bench\\{b.name('dir')}", "type": "DirectoryOrCreate"}})
    async with b.pod(node, **volume) as first, b.pod(node, **volume) as second:
        await _write(b, _name(first))
        return await _read(b, _name(second))


async def second_container(b: Bench, node: str) -> str:
    """What the second container of a pod finds in a volume after the first wrote to it."""
    async with b.pod(node, **_with_volume({"emptyDir": {}})) as made:
        await _write(b, _name(made))
        return await _read(b, _name(made), "d")


async def scratch(b: Bench, node: str) -> str:
    """What arrives of a write to a volume."""
    await b.run(f"wk-{_n(node)}", "cmd", "/c", "echo marker>C:\\scratch\\f.txt")
    return (await b.run(f"wk-{_n(node)}", "cmd", "/c", "type", "C:\\scratch\\f.txt"))[1]


async def update(b: Bench, node: str) -> str:
    """Whether a running pod gets to see a change of a config map."""
    value, pod = b.name("value"), f"{node[0]}k-{_n(node)}"
    await b.client.patch(CONFIG_MAPS, pod, {"data": {"value": value}}, NAMESPACE)
    read = ("cat", "/kept/value") if node.startswith("linux") else ("cmd", "/c", "type", "C:\\kept\\value")

    async def arrived() -> bool:
        return (await b.run(pod, *read))[1] == value

    return "arrives" if await b.until(arrived, 200.0) else "never"


NODE_CASES = [
    Case("lcow.windows-pods-run-linux", container_os, "Windows", "Linux"),
    Case("kubelet.windows.loses-pods", four_pods, "all", "some"),
    Case("kubelet.windows.stats-unavailable", statistics, "200", "500"),
    Case("kubelet.windows.exec-broken", commands, "all", "none"),
    Case("kubelet.windows.exec-flaky", commands, "all", "some"),
    Case("runtime.windows.pulls-fail", pull, "pulled", "ErrImagePull"),
    Case("runtime.windows.wrong-image", image, "2.63.0", "2.56"),
    Case("runtime.windows.user-name-ignored", user_name, "ContainerUser", "ContainerAdministrator"),
    Case("runtime.windows.hostprocess-own-address", host_process_address, "the node's", "its own"),
    Case("runtime.windows.hostprocess-unprivileged", host_process_rights, "may", "may not"),
    Case("runtime.windows.gmsa-for-everyone", share_without_account, "denied", "let in"),
    Case("node.windows.does-not-join", membership, "ready", "gone", number=3),
    Case("node.linux.does-not-join", membership, "ready", "gone", number=3),
    Case("node.windows.wrong-build", build, "10.0.20348", "10.0.14393"),
    Case("machine.windows.cpu-limit-ignored", burned, "about its limit", "more than its limit"),
    Case("machine.windows.memory-limit-ignored", grown, "less", "everything"),
    Case("machine.windows.hns-down", host_networks, "listed", "no answer"),
    Case("machine.windows.defender-scans-runtime", defender, "excluded", "scanned"),
    Case("machine.windows.pings-dropped", node_ping, "answered, reached", "silent, reached"),
    Case("machine.windows.remote-access-closed", remote_access, "reached reached", "not reached not reached"),
    Case(
        "domain.lets-everybody-in",
        share_without_account,
        "denied",
        "let in",
        beside=(share_with_account, "let in"),
    ),
    Case("domain.controller-down", share_with_account, "let in", "kept out", beside=(service_ip, "ls")),
    Case("volumes.windows.read-only", written, "taken", "refused"),
    Case("volumes.windows.read-only-ignored", written_read_only, "refused", "taken"),
    Case("volumes.windows.empty-files", file_content, "a certificate", ""),
    Case("volumes.windows.updates-never-arrive", update, "arrives", "never"),
    Case("volumes.linux.updates-never-arrive", update, "arrives", "never"),
    Case("volumes.windows.hostpath-not-persistent", host_path, "marker", "nothing"),
    Case("volumes.windows.not-shared", second_container, "marker", "nothing"),
    Case("volumes.windows.torn-writes", scratch, "marker", "mark"),
]
