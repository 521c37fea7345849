"""What faults of things that pods may ask for beyond the standard look like."""

from __future__ import annotations

from typing import Any

from sandbox.faults.bench import IMAGE, NAMESPACE, SHORT, Bench, Object
from sandbox.faults.case import Case
from winready.cluster.resources import CONFIG_MAPS, NODES, PODS, SECRETS

NEVER = {"exec": {"command": ["cmd", "/c", "exit 1"]}, "periodSeconds": 2, "failureThreshold": 1}
SCRATCH = {"volumes": [{"name": "v", "emptyDir": {}}]}
MOUNTS = {"volumeMounts": [{"name": "v", "mountPath": "C:\\v"}]}


def _name(made: Object) -> str:
    return str(made["metadata"]["name"])


def _writes(file: str) -> Object:
    return {"exec": {"command": ["cmd", "/c", f"echo so>C:\\v\\{file}"]}}


def _asks(file: str) -> Object:
    """A liveness probe that fails once there is a file."""
    return {"exec": {"command": ["cmd", "/c", f"if exist C:\\v\\{file} exit 1"]}, "periodSeconds": 2,
            "failureThreshold": 1}  # fmt: skip


async def _status(b: Bench, pod: str, container: str, kind: str = "containerStatuses") -> Object:
    raw = await b.client.get(PODS, pod, NAMESPACE)
    return next((dict(item) for item in raw["status"].get(kind) or [] if item["name"] == container), {})


async def _again(b: Bench, pod: str, container: str, kind: str = "containerStatuses") -> Object | None:
    """The status of a container once it has been started again; None when that does not happen."""

    async def restarted() -> Object | None:
        status = await _status(b, pod, container, kind)
        return status if status.get("restartCount") else None

    found: Object | None = await b.until(restarted, SHORT)
    return found


async def unprobed(b: Bench, node: str) -> str:
    """Whether a container whose readiness probe never succeeds is taken for ready."""
    async with b.pod(node, wait=False, container={"readinessProbe": NEVER}) as made:
        ready = await b.until(lambda: b.if_ready(_name(made), NAMESPACE), SHORT)
        return "ready" if ready else "not ready"


async def _stopped(b: Bench, node: str, **container: Any) -> tuple[str, Object]:
    """What a container leaves behind when its liveness probe ends it: a file of its hook, and how it ended."""
    second = {"name": "second", "image": IMAGE, **MOUNTS, "livenessProbe": _asks("end.txt"), **container}
    spec = {**SCRATCH, "terminationGracePeriodSeconds": 30}
    async with b.pod(node, container=MOUNTS, more=[second], spec=spec) as made:
        await b.run(_name(made), "cmd", "/c", "echo now>C:\\v\\end.txt")
        status = await _again(b, _name(made), "second") or {}
        code, _ = await b.run(_name(made), "cmd", "/c", "if exist C:\\v\\hook.txt exit 7")
        return "hook" if code == 7 else "no hook", (status.get("lastState") or {}).get("terminated") or {}


async def hooks(b: Bench, node: str) -> str:
    """Whether a preStop hook is run."""
    said, _ = await _stopped(b, node, args=["pause"], lifecycle={"preStop": _writes("hook.txt")})
    return said


async def grace(b: Bench, node: str) -> str:
    """How a server ends that takes ten seconds for it."""
    args = ["netexec", "--http-port=8090", "--udp-port=8091", "--delay-shutdown=10"]
    _, ended = await _stopped(b, node, args=args)
    return "by itself" if ended.get("exitCode") == 0 else "killed"


async def added_later(b: Bench, node: str) -> str:
    """Whether a container that is put into a running pod runs."""
    async with b.pod(node) as made:
        patch = {"spec": {"ephemeralContainers": [{"name": "debug", "image": IMAGE, "args": ["pause"]}]}}
        where = {"kind": "strategic", "subresource": "ephemeralcontainers"}
        await b.client.patch(PODS, _name(made), patch, NAMESPACE, **where)  # type: ignore[arg-type]

        async def runs() -> bool:
            status = await _status(b, _name(made), "debug", "ephemeralContainerStatuses")
            return "running" in (status.get("state") or {})

        return "runs" if await b.until(runs, SHORT) else "never"


async def sidecar(b: Bench, node: str) -> str:
    """Whether a sidecar that ends is started again."""
    side: Object = {"name": "side", "image": IMAGE, "args": ["pause"], "restartPolicy": "Always", **MOUNTS}
    side["livenessProbe"] = _asks("end.txt")
    async with b.pod(node, container=MOUNTS, spec={**SCRATCH, "initContainers": [side]}) as made:
        await b.run(_name(made), "cmd", "/c", "echo now>C:\\v\\end.txt")
        return "again" if await _again(b, _name(made), "side", "initContainerStatuses") else "stays down"


async def service_variable(b: Bench, node: str) -> str:
    """Whether a container finds the API server's service in its environment."""
    async with b.pod(node) as made:
        _, text = await b.run(_name(made), "cmd", "/c", "echo %KUBERNETES_SERVICE_HOST%")
        return "missing" if "%" in text else "there"


async def host_address(b: Bench, node: str) -> str:
    """Whether the status of a pod tells the address of its node."""
    async with b.pod(node) as made:
        return "there" if made["status"].get("hostIP") else "missing"


async def huge_pages(b: Bench, node: str) -> str:
    """Huge pages of a node."""
    return str((await b.client.get(NODES, node))["status"]["allocatable"].get("hugepages-2Mi") or "none")


async def runtime_name(b: Bench, node: str) -> str:
    """The runtime that a node names."""
    return str((await b.client.get(NODES, node))["status"]["nodeInfo"]["containerRuntimeVersion"]).partition(":")[0]


async def root(b: Bench, node: str) -> str:
    """Whether ContainerAdministrator starts although it must not be root."""
    options = {"runAsNonRoot": True, "windowsOptions": {"runAsUserName": "ContainerAdministrator"}}
    async with b.pod(node, wait=False, container={"securityContext": options}) as made:

        async def state() -> str:
            found = (await _status(b, _name(made), "c")).get("state") or {}
            return "runs" if "running" in found else str((found.get("waiting") or {}).get("reason") or "")

        async def settled() -> str:
            return said if (said := await state()) in ("runs", "CreateContainerConfigError") else ""

        return str(await b.until(settled))


async def on_host_network(b: Bench, node: str) -> str:
    """Whose address an ordinary pod has that asks for the network of its node."""
    async with b.pod(node, spec={"hostNetwork": True}, container={"args": ["pause"]}) as made:
        return "the node's" if made["status"]["podIP"] in b.addresses[node] else "its own"


async def last_words(b: Bench, node: str) -> str:
    """What a container says at its end."""
    command = ["cmd", "/c", "echo farewell>C:\\dev\\termination-log"]
    first = {"name": "says", "image": IMAGE, "command": command, "args": []}
    async with b.pod(node, spec={"initContainers": [first]}) as made:
        ended = (await _status(b, _name(made), "says", "initContainerStatuses"))["state"]["terminated"]
        return str(ended.get("message") or "nothing").strip()


async def part_of_a_volume(b: Bench, node: str) -> str:
    """What a mount of one key of a ConfigMap shows."""
    config = await b.create(CONFIG_MAPS, {"metadata": {"name": b.name("parts")}, "data": {"a": "one", "b": "two"}})
    spec = {"volumes": [{"name": "v", "configMap": {"name": _name(config)}}]}
    mounts = {"volumeMounts": [{"name": "v", "mountPath": "C:\\only\\a.txt", "subPath": "a"}]}
    async with b.pod(node, spec=spec, container=mounts) as made:
        code, text = await b.run(_name(made), "cmd", "/c", "type", "C:\\only\\a.txt")
        return text if code == 0 else "no file"


async def closed_file(b: Bench, node: str) -> str:
    """Whether an ordinary user reads a file whose mode lets nobody."""
    made_secret = await b.create(SECRETS, {"metadata": {"name": b.name("modes")}, "stringData": {"k": "text"}})
    spec = {"volumes": [{"name": "v", "secret": {"secretName": _name(made_secret), "defaultMode": 0}}]}
    async with b.pod(node, spec=spec, container=MOUNTS, windows={"runAsUserName": "ContainerUser"}) as made:
        code, _ = await b.run(_name(made), "cmd", "/c", "type", "C:\\v\\k")
        return "read" if code == 0 else "denied"


def _other(node: str) -> str:
    return node.replace("windows-", "ws-")


async def near_only(b: Bench, node: str) -> str:
    """Who answers a client at a service for pods of its own node."""
    async with b.service("ws", internalTrafficPolicy="Local") as made:
        return await _answers(b, f"wc-{node[-1]}", made["spec"]["clusterIP"], 80, node)


async def here_only(b: Bench, node: str) -> str:
    """Who answers at the NodePort of a node for pods of that node."""
    async with b.service("ws", type="NodePort", externalTrafficPolicy="Local") as made:
        return await _answers(b, "lc-1", b.addresses[node][0], made["spec"]["ports"][0]["nodePort"], node)


async def sticky(b: Bench, node: str) -> str:
    """How many pods answer one client of a service with affinity."""
    async with b.service("ws", sessionAffinity="ClientIP") as made:
        names = await _reached(b, f"wc-{node[-1]}", made["spec"]["clusterIP"], 80)
        return str(len(names))


async def _answers(b: Bench, client: str, address: str, port: int, node: str) -> str:
    names = await _reached(b, client, address, port)
    return "its own" if names == {_other(node)} else "others, too" if names else "nobody"


async def _reached(b: Bench, client: str, address: str, port: int) -> set[str]:
    """Who answers, once somebody does."""

    async def somebody() -> set[str]:
        names, lost = await b.dial(client, address, port, 10)
        return set() if lost else names

    return set(await b.until(somebody, SHORT) or ())


WORKLOAD_CASES = [
    Case("kubelet.windows.probes-ignored", unprobed, "not ready", "ready"),
    Case("kubelet.windows.grace-ignored", grace, "by itself", "killed"),
    Case("kubelet.windows.hooks-ignored", hooks, "hook", "no hook"),
    Case("kubelet.windows.ephemeral-ignored", added_later, "runs", "never"),
    Case("kubelet.windows.sidecars-stay-down", sidecar, "again", "stays down"),
    Case("kubelet.windows.no-service-variables", service_variable, "there", "missing"),
    Case("kubelet.windows.host-address-missing", host_address, "there", "missing"),
    Case("node.windows.offers-huge-pages", huge_pages, "none", "64Mi"),
    Case("node.windows.names-docker", runtime_name, "containerd", "docker"),
    Case("runtime.windows.root-let-in", root, "CreateContainerConfigError", "runs"),
    Case("runtime.windows.host-network-for-all", on_host_network, "its own", "the node's"),
    Case("runtime.windows.last-words-lost", last_words, "farewell", "nothing"),
    Case("volumes.windows.subpath-ignored", part_of_a_volume, "one", "no file"),
    Case("volumes.windows.modes-kept", closed_file, "read", "denied"),
    Case("service-proxy.windows.external-policy-ignored", here_only, "its own", "others, too"),
    Case("service-proxy.windows.internal-policy-ignored", near_only, "its own", "others, too"),
    Case("service-proxy.windows.affinity-ignored", sticky, "1", "2"),
]
