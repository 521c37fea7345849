"""What faults of nodes and volumes look like."""

from __future__ import annotations

import base64
import contextlib
import uuid

from sandbox.faults.bench import IMAGE, NAMESPACE, SHORT, SYSTEM, Bench, Object, refused
from sandbox.faults.case import Case
from winready.cluster.errors import ExecFailed
from winready.cluster.resources import CONFIG_MAPS, NODES, PODS

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


async def labels(b: Bench, node: str) -> str:
    """What the node's label says its system is, and what its kubelet says."""
    found = await b.client.get(NODES, node)
    return f"{found['metadata']['labels']['kubernetes.io/os']}, {found['status']['nodeInfo']['operatingSystem']}"


async def host_build(b: Bench, node: str) -> str:
    """What the node reports, what a container answers, and what the node itself answers, by each of its witnesses."""
    seen = [await build(b, node)]
    for pod in (f"wc-{_n(node)}", f"hp-{_n(node)}"):
        _, text = await b.run(pod, "cmd", "/c", "ver")
        seen.append(text.partition("Version ")[2].rpartition(".")[0])
    script = "(Get-CimInstance Win32_OperatingSystem).BuildNumber; (Get-ItemProperty 'HKLM:\\SOFTWARE\\Microsoft\\"
    script += "Windows NT\\CurrentVersion').CurrentBuild"
    seen += (await _on_host(b, node, script)).split()
    return " ".join(each.rpartition(".")[2] for each in seen)


async def label_and_kernel(b: Bench, node: str) -> str:
    """The build in the node's label, and in its kernel version."""
    found = await b.client.get(NODES, node)
    kernel = found["status"]["nodeInfo"]["kernelVersion"].rpartition(".")[0]
    return f"{found['metadata']['labels']['node.kubernetes.io/windows-build']} {kernel}"


async def taints(b: Bench, node: str) -> str:
    """The taints of the node."""
    found = await b.client.get(NODES, node)
    return " ".join(each["key"] for each in found["spec"].get("taints") or [])


async def images_of_two(b: Bench, node: str) -> str:
    """Which images the two containers of a new pod run."""
    second = {"name": "d", "image": IMAGE, "args": ["pause"]}
    async with b.pod(node, more=[second]) as made:
        return " ".join(each["image"].rpartition(":")[2] for each in made["status"]["containerStatuses"])


async def contents(b: Bench, node: str) -> str:
    """How many different contents an image has in containers of the node."""
    async with b.pod(node) as made:
        old = await b.client.get(PODS, f"wc-{_n(node)}", NAMESPACE)
        found = {each["status"]["containerStatuses"][0]["imageID"] for each in (made, old)}
        return str(len(found))


async def burned(b: Bench, node: str) -> str:
    """What a busy loop gets with a limit of half a core."""
    limits = {"limits": {"cpu": "500m"}, "requests": {"cpu": "50m"}}
    loop = {"command": ["powershell.exe", "-NoProfile", "-Command", "while($true){}"], "args": []}
    async with b.pod(node, container={"resources": limits, **loop}) as made:

        async def cores() -> float:
            pods = (await b.client.node_proxy(node, "stats/summary", key="pods"))["pods"]
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


HCN = (
    "Add-Type -Namespace Hcn -Name Native -MemberDefinition '"
    '[DllImport("computenetwork.dll")] public static extern int HcnCreateNamespace('
    "ref Guid id, string settings, out IntPtr handle, out IntPtr error); "
    '[DllImport("computenetwork.dll")] public static extern int HcnDeleteNamespace(ref Guid id, out IntPtr error);'
    "'; $id=[guid]'{name}'; $h=[IntPtr]0; $e=[IntPtr]0; "
    "$made=[Hcn.Native]::HcnCreateNamespace([ref]$id, '{{}}', [ref]$h, [ref]$e); "
    "$gone=[Hcn.Native]::HcnDeleteNamespace([ref]$id, [ref]$e); "
)


async def _on_host(b: Bench, node: str, script: str) -> str:
    """What a PowerShell script on the node prints; encoded, since HostProcess commands go through cmd."""
    encoded = base64.b64encode(script.encode("utf-16-le")).decode()
    return (await b.run(f"hp-{_n(node)}", "powershell.exe", "-NoProfile", "-EncodedCommand", encoded))[1]


async def namespace_deleted(b: Bench, node: str) -> str:
    """What is left of a host networking object whose deletion succeeds."""
    script = HCN.format(name=uuid.uuid4()) + '"$made $gone $(@(Get-HnsNamespace -Id $id).Count)"'
    return {"0 0 0": "gone", "0 0 1": "still there"}.get(await _on_host(b, node, script), "no answer")


async def networks_after_deletion(b: Bench, node: str) -> str:
    """Which networks there are when an object that is none of theirs was deleted."""
    return await _on_host(b, node, HCN.format(name=uuid.uuid4()) + '"$((Get-HnsNetwork).Name)"')


async def operating_system(b: Bench, node: str) -> str:
    """What WMI says of the node, and the registry beside it."""
    key = "'HKLM:\\SOFTWARE\\Microsoft\\Windows NT\\CurrentVersion'"
    script = "(Get-CimInstance Win32_OperatingSystem -ErrorAction SilentlyContinue).BuildNumber; "
    return " ".join((await _on_host(b, node, f"{script}(Get-ItemProperty {key}).CurrentBuild")).split())


async def host_port(b: Bench, node: str) -> str:
    """Whether a port of the node that was let in is reached from another node; RDP, with its own rule taken away."""
    target = f"{b.addresses[node][0]}:3389"
    rule = "-Name {0} -DisplayName {0} -Direction Inbound -Action {1} -Protocol TCP -LocalPort 3389 | Out-Null; "
    script = "Remove-NetFirewallRule -Name RemoteDesktop-UserMode-In-TCP; "
    await _on_host(b, node, script + "New-NetFirewallRule " + rule.format("bench", "Allow"))
    return await b.connects("lc-1", target)


async def exclusions(b: Bench, node: str) -> str:
    """Which programs Defender leaves out."""
    text = await _on_host(b, node, "(Get-MpPreference).ExclusionProcess")
    return "containerd" if "containerd.exe" in text else "docker" if "dockerd.exe" in text else text


async def remote_access_answers(b: Bench, node: str) -> str:
    """What SSH and RDP say to whoever connects."""
    address = b.addresses[node][0]
    ssh = (await b.run("lc-1", "nc", "-w", "5", address, "22"))[1]
    request = "\\003\\000\\000\\013\\006\\340\\000\\000\\000\\000\\000"
    rdp = await b.client.exec(
        NAMESPACE, "lc-1", "c", ["sh", "-c", f"printf '{request}' | nc -w 5 {address} 3389"], deadline=60.0
    )
    return f"{ssh.partition('_')[0] or 'silence'}, {rdp.stdout[:6].hex() or 'silence'}"


async def host_process_user(b: Bench, node: str) -> str:
    """Who a HostProcess pod is that asks to be Network Service."""
    options = {**SYSTEM, "runAsUserName": "NT AUTHORITY\\NetworkService"}
    async with b.pod(node, windows=options) as made:
        return (await b.run(_name(made), "whoami.exe", "/user", "/fo", "csv", "/nh"))[1].rpartition(",")[2].strip('"')


async def host_process_token(b: Bench, node: str) -> str:
    """Whether a HostProcess pod finds its token."""
    async with b.pod(node, windows=SYSTEM) as made:
        path = "C:\\var\\run\\secrets\\kubernetes.io\\serviceaccount\\token"
        code, _ = await b.run(_name(made), "cmd", "/c", "if", "exist", path, "exit", "7")
        return "found" if code == 7 else "missing"


async def reported_address(b: Bench, node: str) -> str:
    """Which address a HostProcess pod is said to have."""
    async with b.pod(node, windows=SYSTEM) as made:
        return "the node's" if made["status"]["podIP"] in b.addresses[node] else made["status"]["podIP"][:7]


NODE_CASES = [
    Case("lcow.windows-pods-run-linux", container_os, "Windows", "Linux"),
    Case("kubelet.windows.loses-pods", four_pods, "all", "some"),
    Case("kubelet.windows.stats-unavailable", statistics, "200", "500"),
    Case("kubelet.windows.exec-broken", commands, "all", "none"),
    Case("kubelet.windows.exec-flaky", commands, "all", "some"),
    Case("runtime.windows.pulls-fail", pull, "pulled", "ErrImagePull"),
    Case("runtime.windows.wrong-image", image, "2.63.0", "2.56"),
    Case("runtime.windows.hostprocess-own-address", host_process_address, "the node's", "its own"),
    Case("runtime.windows.hostprocess-unprivileged", host_process_rights, "may", "may not"),
    Case("node.windows.does-not-join", membership, "ready", "gone", number=3),
    Case("node.linux.does-not-join", membership, "ready", "gone", number=3),
    Case("node.windows.wrong-build", build, "10.0.20348", "10.0.14393"),
    Case("node.windows.labelled-linux", labels, "windows, windows", "linux, windows", number=3),
    Case("node.linux.labelled-windows", labels, "linux, linux", "windows, linux", number=3),
    Case("node.windows.build-lies", host_build, "20348 20348 20348 20348 20348", "20348 20348 25398 25398 25398"),
    Case("node.windows.build-label-lies", label_and_kernel, "10.0.20348 10.0.20348", "10.0.17763 10.0.20348"),
    Case("node.windows.shutdown-taint", taints, "", "node.cloudprovider.kubernetes.io/shutdown", number=3),
    Case("runtime.windows.wrong-image-beside", images_of_two, "2.63.0 2.63.0", "2.63.0 2.56"),
    Case("runtime.windows.tag-moved", contents, "1", "2"),
    Case("machine.windows.cpu-limit-ignored", burned, "about its limit", "more than its limit"),
    Case("machine.windows.memory-limit-ignored", grown, "less", "everything"),
    Case("machine.windows.hns-down", host_networks, "listed", "no answer"),
    Case("machine.windows.defender-scans-runtime", defender, "excluded", "scanned"),
    Case("machine.windows.pings-dropped", node_ping, "answered, reached", "silent, reached"),
    Case("machine.windows.remote-access-closed", remote_access, "reached reached", "not reached not reached"),
    Case(
        "machine.windows.remote-access-mute", remote_access_answers, "SSH-2.0-OpenSSH, 030000130ed0", "silence, silence"
    ),
    Case("machine.windows.hns-keeps-deleted", namespace_deleted, "gone", "still there"),
    Case("machine.windows.hns-removes-others", networks_after_deletion, "External Calico", "Calico"),
    Case("machine.windows.wmi-broken", operating_system, "20348 20348", "20348"),
    Case("machine.windows.firewall-ignores-local-rules", host_port, "reached", "not reached"),
    Case("machine.windows.defender-excludes-docker", exclusions, "containerd", "docker"),
    Case("runtime.windows.hostprocess-always-system", host_process_user, "S-1-5-20", "S-1-5-18"),
    Case("runtime.windows.hostprocess-no-volumes", host_process_token, "found", "missing"),
    Case("kubelet.windows.hostprocess-misreported", reported_address, "the node's", "10.244."),
    Case("volumes.windows.read-only", written, "taken", "refused"),
    Case("volumes.windows.read-only-ignored", written_read_only, "refused", "taken"),
    Case("volumes.windows.empty-files", file_content, "a certificate", ""),
    Case("volumes.windows.updates-never-arrive", update, "arrives", "never"),
    Case("volumes.linux.updates-never-arrive", update, "arrives", "never"),
    Case("volumes.windows.hostpath-not-persistent", host_path, "marker", "nothing"),
    Case("volumes.windows.not-shared", second_container, "marker", "nothing"),
    Case("volumes.windows.torn-writes", scratch, "marker", "mark"),
]
