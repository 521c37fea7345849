"""What faults look like that show after a reboot: well before, well until then, and not after it.

Everything is asked of one pod of two containers on the node, which has volumes of each kind, and of a Linux pod.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from sandbox.faults.bench import IMAGE, NAMESPACE, SHORT, Bench, Object, Probe, pod
from sandbox.faults.node_cases import GROW, membership
from winready.cluster.errors import ExecFailed
from winready.cluster.resources import CONFIG_MAPS, NODES, PODS

TOLERATIONS = {"tolerations": [{"operator": "Exists"}]}


@dataclass(frozen=True)
class RebootCase:
    """A fault, what shows it, and what that looks like on both sides of a reboot."""

    fault: str
    probe: Probe
    healthy: str
    broken: str
    again: bool = False
    """Whether it takes one more reboot to be rid of it."""


def witness(node: str) -> Object:
    """The pod that probes ask: `wb-5` on `windows-5`."""
    mounts = [{"name": name, "mountPath": f"/{name}"} for name in ("config", "scratch", "host")]
    limited = {
        "name": "d",
        "image": IMAGE,
        "args": ["pause"],
        "resources": {"limits": {"cpu": "500m", "memory": "384Mi"}, "requests": {"cpu": "50m", "memory": "50Mi"}},
        "volumeMounts": mounts,
    }
    volumes = [
        {"name": "config", "configMap": {"name": _name(node)}},
        {"name": "scratch", "emptyDir": {}},
        {"name": "host", "hostPath": {"path": f"C:\\bench\\{node}", "type": "DirectoryOrCreate"}},
    ]
    spec = {"volumes": volumes, **TOLERATIONS}
    return pod(_name(node), node, app=_name(node), spec=spec, container={"volumeMounts": mounts}, more=[limited])


def _name(node: str) -> str:
    return f"wb-{node.rpartition('-')[2]}"


async def _address(b: Bench, node: str) -> str:
    return str((await b.client.get(PODS, _name(node), NAMESPACE))["status"]["podIP"])


async def services(b: Bench, node: str) -> str:
    """Who answers several connections to the cluster IP of two Linux pods."""
    answers, failed = await b.dial(_name(node), b.services["ls"]["spec"]["clusterIP"], 80, 6)
    return "nobody" if failed else " ".join(sorted(answers))


async def node_port(b: Bench, node: str) -> str:
    """Whether the node forwards a NodePort."""
    port = b.services["ls"]["spec"]["ports"][0]["nodePort"]
    return await b.connects("lc-1", f"{b.addresses[node][0]}:{port}")


async def datagram(b: Bench, node: str) -> str:
    """Whether a service gets a datagram."""
    vip = b.services["ls"]["spec"]["clusterIP"]
    return await b.connects(_name(node), f"{vip}:{b.services['ls']['spec']['ports'][1]['port']}", "--protocol=udp")


async def forwarded(b: Bench, node: str) -> str:
    """Whether the node forwards connections and datagrams to NodePorts."""
    port = b.services["ls"]["spec"]["ports"][1]["nodePort"]
    datagrams = await b.connects("lc-1", f"{b.addresses[node][0]}:{port}", "--protocol=udp")
    return f"{await node_port(b, node)}, {datagrams}"


async def large_request(b: Bench, node: str) -> str:
    """Whether a service answers a small and a large request."""
    vip, sizes = b.services["ls"]["spec"]["clusterIP"], (1, 3000)
    answers = [await b.fetch(_name(node), vip, 80, f"hostname?pad={'x' * size}") for size in sizes]
    return ", ".join("answered" if answer.startswith("ls-") else answer for answer in answers)


async def name_of_service(b: Bench, node: str) -> str:
    """Whether a full and a short name lead to a service."""
    full = await b.connects(_name(node), "ls.default.svc.cluster.local:80")
    return f"{full}, {await b.connects(_name(node), 'ls:80')}"


async def outside(b: Bench, node: str) -> str:
    """Whether a name outside the cluster is resolved."""
    return "no name" if await b.connects(_name(node), "registry.k8s.io:443") == "no name" else "resolved"


async def running(b: Bench, node: str) -> str:
    """Whether the pod of before runs, and whether a new one would."""
    old = "ready" if await b.until(lambda: b.if_ready(_name(node), NAMESPACE), SHORT) else "down"
    async with b.pod(node, wait=False, spec=TOLERATIONS) as made:
        name = made["metadata"]["name"]
        return f"{old}, {'ready' if await b.until(lambda: b.if_ready(name, NAMESPACE), SHORT) else 'stuck'}"


async def services_of_both(b: Bench, node: str) -> str:
    """Whether the pod of before and a new one reach a service."""
    vip = f"{b.services['ls']['spec']['clusterIP']}:80"
    async with b.pod(node, spec=TOLERATIONS) as made:
        return ", ".join([await b.connects(name, vip) for name in (_name(node), made["metadata"]["name"])])


async def own_address(b: Bench, node: str) -> str:
    """Whether two pods have two addresses."""
    async with b.pod(node, spec=TOLERATIONS) as made:
        return "its own" if made["status"]["podIP"] != await _address(b, node) else "shared"


async def reached(b: Bench, node: str) -> str:
    """Whether a Linux and a Windows pod of other nodes reach the pod."""
    await b.ready(_name(node))
    address = await _address(b, node)
    ways = [await b.connects(client, f"{address}:8080") for client in ("lc-1", "wc-1")]
    return ", ".join(ways)


async def command(b: Bench, node: str) -> str:
    """Whether a command can be run."""
    try:
        return "run" if (await b.run(_name(node), "cmd", "/c", "ver"))[0] == 0 else "not run"
    except ExecFailed:
        return "refused"


async def config(b: Bench, node: str) -> str:
    """What a file from a config map has in it."""
    return "text" if (await b.run(_name(node), "cmd", "/c", "type", "C:\\config\\value", container="d"))[1] else ""


async def update(b: Bench, node: str) -> str:
    """Whether a change of the config map arrives."""
    value = b.name("value")
    await b.client.patch(CONFIG_MAPS, _name(node), {"data": {"value": value}}, NAMESPACE)

    async def arrived() -> bool:
        return (await b.run(_name(node), "cmd", "/c", "type", "C:\\config\\value"))[1] == value

    return "arrives" if await b.until(arrived, 200.0) else "never"


async def files(b: Bench, node: str) -> str:
    """What is there of what was written before; it is written anew where it is missing."""
    found = []
    for folder in ("scratch", "host"):
        code, text = await b.run(_name(node), "cmd", "/c", "type", f"C:\\{folder}\\f.txt")
        found.append(text if code == 0 else "nothing")
    return " ".join(found)


async def limit(b: Bench, node: str) -> str:
    """What a script gets that wants 512 MB with a limit of 384."""
    _, text = await b.run(_name(node), "powershell.exe", "-NoProfile", "-Command", GROW, container="d")
    return "less" if "refused" in text else "everything"


async def cores(b: Bench, node: str) -> str:
    """What a script gets that wants a whole core with a limit of half a core."""
    stop = f"C:\\{b.name('stop')}"
    burn = ["powershell.exe", "-NoProfile", "-Command", f"while (!(Test-Path '{stop}')) {{}}"]

    async def used() -> float:
        pods = (await b.client.node_proxy(node, "stats/summary", key="pods"))["pods"]
        [own] = [each for each in pods if each["podRef"]["name"] == _name(node)]
        return float(next(c["cpu"]["usageCoreNanoSeconds"] for c in own["containers"] if c["name"] == "d"))

    async with asyncio.TaskGroup() as group:
        group.create_task(b.run(_name(node), *burn, container="d"))
        await asyncio.sleep(5)
        before = await used()
        await asyncio.sleep(30)
        found = (await used() - before) / 30e9
        await b.run(_name(node), "cmd", "/c", f"echo stop>{stop}", container="d")
    return "half a core" if 0.4 < found < 0.65 else "more" if found > 0.65 else "less"


async def memory(b: Bench, node: str) -> str:
    """How much memory the node reports."""
    return str((await b.client.get(NODES, node))["status"]["capacity"]["memory"])


async def taint(b: Bench, node: str) -> str:
    """Which hard taints the node has once it is back."""
    taints = (await b.client.get(NODES, node))["spec"].get("taints") or []
    return " ".join(each["key"].rpartition("/")[2] for each in taints if each["effect"] == "NoSchedule")


REBOOT_CASES = [
    RebootCase("reboot.windows.service-proxy-dead", services, "ls-1 ls-2", "nobody"),
    RebootCase("reboot.windows.nodeports-dead", node_port, "reached", "not reached"),
    RebootCase("reboot.windows.backends-missing", services, "ls-1 ls-2", "ls-1"),
    RebootCase("reboot.windows.second-ports-missing", datagram, "reached", "not reached"),
    RebootCase("reboot.windows.nodeport-datagrams-dead", forwarded, "reached, reached", "reached, not reached"),
    RebootCase("reboot.windows.large-lost", large_request, "answered, answered", "answered, time-out"),
    RebootCase("reboot.windows.dns-dead", name_of_service, "reached, reached", "no name, no name"),
    RebootCase("reboot.windows.search-path-lost", name_of_service, "reached, reached", "reached, no name"),
    RebootCase("reboot.windows.outside-names-lost", outside, "resolved", "no name"),
    RebootCase("reboot.windows.network-lost", running, "ready, ready", "down, stuck"),
    RebootCase("reboot.windows.new-pods-stuck", running, "ready, ready", "ready, stuck"),
    RebootCase(
        "reboot.windows.new-pods-without-services", services_of_both, "reached, reached", "reached, not reached"
    ),
    RebootCase("reboot.windows.same-address-twice", own_address, "its own", "shared"),
    RebootCase("reboot.windows.routes-stale", reached, "reached, reached", "not reached, not reached"),
    RebootCase("reboot.windows.routes-stale-on-windows", reached, "reached, reached", "reached, not reached"),
    RebootCase("reboot.windows.exec-dead", command, "run", "refused"),
    RebootCase("reboot.windows.files-empty", config, "text", ""),
    RebootCase("reboot.windows.updates-stop", update, "arrives", "never"),
    RebootCase("reboot.windows.disk-wiped", files, "kept kept", "nothing nothing"),
    RebootCase("reboot.windows.memory-limit-lost", limit, "less", "everything", again=True),
    RebootCase("reboot.windows.cpu-limit-lost", cores, "half a core", "more", again=True),
    RebootCase("reboot.windows.memory-missing", memory, "16Gi", "8Gi"),
    RebootCase("reboot.windows.taint-stays", taint, "", "shutdown"),
    RebootCase("reboot.windows.falls-again", membership, "ready", "not ready"),
    RebootCase("reboot.windows.slow", membership, "ready", "ready"),
]
