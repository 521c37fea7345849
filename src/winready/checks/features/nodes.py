"""Nodes: what they say of themselves, held against what containers on them say, and what their kubelets serve."""

from __future__ import annotations

from winready.checks.context import Context
from winready.checks.features.looking import ask, require
from winready.checks.registry import Sight, feature_check
from winready.cluster.client import Object
from winready.cluster.errors import ApiError
from winready.cluster.failures import CheckFailed, NotApplicable
from winready.cluster.inventory import WINDOWS_BUILD, Node
from winready.cluster.pods import Pod
from winready.cluster.probes import Try
from winready.cluster.resources import NODES, PODS
from winready.spec.windows import build_number, kernel_build

RELEASES = {
    "ws2019": ("Windows Server 2019", (17763,)),
    "ws2022": ("Windows Server 2022", (20348,)),
    "ws2025": ("Windows Server 2025", (26100,)),
    "ws-sac": ("a release of the semi-annual channel", (18362, 18363, 19041, 19042)),
}
HOSTS, NOWHERE = "C:\\Windows\\System32\\drivers\\etc\\hosts", "C:\\winready-is-not-here.txt"
"""A file that every container has, and one that none has."""
OWN_BUILD_ONLY = (17763, 20348)
"""Hosts that run images of their own build and no others."""


async def _release(ctx: Context, feature: str) -> Sight:
    """Nodes of a release of Windows run containers; where a cluster has none, nothing can be seen."""
    name, builds = RELEASES[feature]
    pods = [pod for pod in await ctx.clients("windows") if build_number(pod.node.build) in builds]
    if not pods:
        found = ", ".join(sorted({node.build for node in ctx.windows_nodes}))
        raise NotApplicable(f"no judged node is {name} (there is {found})")
    for pod in pods:
        seen = f"node {pod.node.build}, container {pod.build}"
        require(ctx, pod, f"a container runs on {name}", bool(pod.build), seen, "a Windows container")
    for node in ctx.windows_nodes:
        if node.name not in {pod.node.name for pod in pods}:
            ctx.leave_out(node, f"it is {node.build}")
    return Sight(True, f"{name} runs Windows containers")


@feature_check("ws2019", fixtures=("clients",))
async def ws2019(ctx: Context) -> Sight:
    """Nodes of Windows Server 2019."""
    return await _release(ctx, "ws2019")


@feature_check("ws2022", fixtures=("clients",))
async def ws2022(ctx: Context) -> Sight:
    """Nodes of Windows Server 2022."""
    return await _release(ctx, "ws2022")


@feature_check("ws2025", fixtures=("clients",))
async def ws2025(ctx: Context) -> Sight:
    """Nodes of Windows Server 2025."""
    return await _release(ctx, "ws2025")


@feature_check("ws-sac", fixtures=("clients",))
async def ws_sac(ctx: Context) -> Sight:
    """Nodes of the semi-annual channel."""
    return await _release(ctx, "ws-sac")


@feature_check("lcow", fixtures=("clients",))
async def lcow(ctx: Context) -> Sight:
    """Whatever is started as a Windows pod says that it is Windows; a Linux container there would be LCOW."""
    pods = await ctx.world.fixtures.clients("windows")
    ctx.evidence.saw(pod.fact() for pod in pods)
    for pod in pods:
        title = f"{pod.name}: what its container says that it is"
        ctx.probe.record(title, Try(bool(pod.build), pod.build or pod.impostor), pod, [], "Windows", pod.node.name)
    linux = [pod.impostor for pod in pods if pod.impostor]
    return Sight(bool(linux), "; ".join(linux) or "every container says that it is Windows")


@feature_check("os-build-match", fixtures=("clients",))
async def os_build_match(ctx: Context) -> Sight:
    """Hosts that need images of their own build run containers of exactly that build."""
    for pod in await ctx.clients("windows"):
        host, own = build_number(pod.node.build) or 0, build_number(pod.build)
        fits = own == host if host in OWN_BUILD_ONLY else bool(own)
        seen = f"host {pod.node.build}, container {pod.build}"
        step = f"compare the label {WINDOWS_BUILD} of node {pod.node.name} with what 'ver' says there"
        known = host in OWN_BUILD_ONLY or host > max(OWN_BUILD_ONLY)
        require(ctx, pod, "its build is one that the host can run", fits and known, seen, "the build of the host",
                next_step=step)  # fmt: skip
    return Sight(True, "containers have the build of their host, or one that a newer host may run")


@feature_check("windows-build-label", fixtures=("clients",))
async def windows_build_label(ctx: Context) -> Sight:
    """The label of each node says which Windows its kubelet reports."""
    for pod in await ctx.clients("windows"):
        raw = await ctx.world.client.get(NODES, pod.node.name)
        kernel = kernel_build(str(raw["status"]["nodeInfo"].get("kernelVersion") or ""))
        label = (raw["metadata"].get("labels") or {}).get(WINDOWS_BUILD) or "missing"
        step = f"label node {pod.node.name} anew, or delete its Node object and let the kubelet register again"
        require(ctx, pod, f"the label {WINDOWS_BUILD} of its node", label == kernel, label, kernel, next_step=step)
    return Sight(True, "the label says the build of the kernel")


async def _runtimes(ctx: Context) -> dict[str, tuple[str, str]]:
    """Which runtime each node names, and how the ids of a container there begin."""
    found = {}
    for pod in await ctx.clients("windows"):
        container = ((await _status(ctx, pod)).get("containerStatuses") or [{}])[0]
        scheme = str(container.get("containerID") or "").partition("//")[0]
        found[pod.node.name] = pod.node.runtime, f"{scheme}//"
        seen = f"{pod.node.runtime}, container {scheme}//"
        ctx.probe.record(f"{pod.name}: the runtime of its node", Try(True, seen), pod, [], "", pod.node.name)
    return found


@feature_check("dockershim", fixtures=("clients",))
async def dockershim(ctx: Context) -> Sight:
    """No node runs its containers by Docker."""
    runtimes = await _runtimes(ctx)
    docker = [
        f"node {name} runs {runtime}"
        for name, (runtime, scheme) in runtimes.items()
        if "docker://" in (scheme, runtime[: len("docker://")])
    ]
    return Sight(bool(docker), "; ".join(docker) or "no node runs Docker")


@feature_check("containerd", fixtures=("clients",))
async def containerd(ctx: Context) -> Sight:
    """Every node runs its containers by containerd."""
    runtimes = await _runtimes(ctx)
    others = {name: runtime for name, (runtime, scheme) in runtimes.items() if not runtime.startswith("containerd://")}
    if others:
        seen = "; ".join(f"node {name} runs {runtime}" for name, runtime in others.items())
        raise CheckFailed(f"not every node runs containerd: {seen}", expected="containerd", observed=seen)
    return Sight(True, ", ".join(sorted({runtime for runtime, _ in runtimes.values()})))


async def _status(ctx: Context, pod: Pod) -> Object:
    raw = await ctx.world.client.get(PODS, pod.name, pod.namespace)
    status: Object = raw.get("status") or {}
    return status


@feature_check("pod-status", fixtures=("clients",))
async def pod_status(ctx: Context) -> Sight:
    """The status of a Windows pod has all that one of a Linux pod has."""
    for pod in await ctx.clients("windows"):
        status = await _status(ctx, pod)
        container = (status.get("containerStatuses") or [{}])[0]
        conditions = {item["type"]: item["status"] for item in status.get("conditions") or []}
        wanted = {
            "phase": status.get("phase") == "Running",
            "podIPs": bool(status.get("podIPs")),
            "hostIP": status.get("hostIP") in pod.node.addresses,
            "startTime": bool(status.get("startTime")),
            "qosClass": bool(status.get("qosClass")),
            "condition Ready": conditions.get("Ready") == "True",
            "condition ContainersReady": conditions.get("ContainersReady") == "True",
            "container running": "running" in (container.get("state") or {}),
            "container imageID": bool(container.get("imageID")),
            "container started": container.get("started") is True,
        }
        lacking = [name for name, there in wanted.items() if not there]
        seen = f"without {', '.join(lacking)}" if lacking else "all of them"
        require(ctx, pod, "fields of its status", not lacking, seen, ", ".join(wanted))
    return Sight(True, "phase, addresses, conditions and containers are told as of Linux pods")


@feature_check("metrics", fixtures=("clients",))
async def metrics(ctx: Context) -> Sight:
    """The kubelet of each node measures processor, memory and network of a pod, and the node."""
    for pod in await ctx.clients("windows"):
        step = f"'kubectl get --raw /api/v1/nodes/{pod.node.name}/proxy/stats/summary' should list the pod"
        try:
            summary = await ctx.world.client.node_proxy(pod.node.name, "stats/summary", key="node")
        except ApiError as error:
            require(ctx, pod, "statistics of its kubelet", False, error.message, "an answer", next_step=step)
            raise
        mine: Object = next((each for each in summary.get("pods") or [] if each["podRef"]["uid"] == pod.uid), {})
        container: Object = (mine.get("containers") or [{}])[0]
        figures = {
            "processor": (container.get("cpu") or {}).get("usageCoreNanoSeconds"),
            "memory": (container.get("memory") or {}).get("workingSetBytes"),
            "network": (mine.get("network") or {}).get("rxBytes"),
            "the node's memory": ((summary.get("node") or {}).get("memory") or {}).get("workingSetBytes"),
        }
        lacking = [name for name, value in figures.items() if value is None]
        seen = ", ".join(f"{name} {value}" for name, value in figures.items())
        require(ctx, pod, "statistics of its kubelet", not lacking, seen, "a figure for each", next_step=step)
    return Sight(True, "kubelets measure processor, memory and network of pods")


@feature_check("kubectl-exec", fixtures=("clients",))
async def kubectl_exec(ctx: Context) -> Sight:
    """A command in a Windows container: both streams arrive, each by itself, and so does the exit code."""
    command = ["cmd", "/c", f"type {HOSTS} & type {NOWHERE}"]
    for pod in await ctx.clients("windows"):
        result = await pod.run(command)
        out, err = result.stdout.decode(errors="replace").strip(), result.stderr.decode(errors="replace").strip()
        ok = bool(out) and bool(err) and result.exit_code == 1
        seen = f"{len(out)} characters of standard output, standard error {err!r}, exit code {result.exit_code}"
        require(ctx, pod, "a command in it", ok, seen, "a file, a complaint about another, and 1", command=command)
    return Sight(True, "both streams and the exit code arrive")


@feature_check("svc-headless-env", fixtures=("clients",))
async def service_variables(ctx: Context) -> Sight:
    """Containers find the API server's service in their environment."""
    name = "KUBERNETES_SERVICE_HOST"
    command = ["cmd", "/c", f"echo %{name}%"]
    for pod in await ctx.clients("windows"):
        step = f"look at the kubelet of node {pod.node.name}"
        # cmd leaves a variable that is not there as it was written.
        await ask(
            ctx, pod, command, f"variable {name}", lambda said: "%" not in said, "the address of a service",
            next_step=step,
        )  # fmt: skip
    return Sight(True, "services are in the environment of containers")


@feature_check("hugepages", fixtures=("clients",))
async def hugepages(ctx: Context) -> Sight:
    """No Windows node offers huge pages."""
    offered = []
    for pod in await ctx.clients("windows"):
        found = await _offered(ctx, pod.node, "hugepages-")
        title = f"{pod.name}: what its node has for pods"
        ctx.probe.record(title, Try(True, ", ".join(found) or "no huge pages"), pod, [], "", pod.node.name)
        offered += [f"node {pod.node.name} offers {name}" for name in found]
    return Sight(bool(offered), "; ".join(offered) or "no node offers any")


async def _offered(ctx: Context, node: Node, prefix: str) -> list[str]:
    raw = await ctx.world.client.get(NODES, node.name)
    allocatable = (raw.get("status") or {}).get("allocatable") or {}
    return [name for name, amount in allocatable.items() if name.startswith(prefix) and amount not in ("0", 0)]
