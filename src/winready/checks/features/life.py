"""The life of a pod: probes, hooks, users, sidecars, looked at in one pod for each node.

It is never Ready as a whole, since one of its containers must not start. Files in a volume that its containers share
tell each of them what to do, and one that only sits there writes these files.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from winready.checks.context import Context
from winready.checks.features.looking import ask, minor_version, require
from winready.checks.registry import Sight, feature_check
from winready.checks.world import World
from winready.cluster.client import Object
from winready.cluster.commands import lines, read_file, system_version, write_file
from winready.cluster.failures import CheckBlocked, NotApplicable
from winready.cluster.namespaces import Namespace
from winready.cluster.pods import CONTAINER, Pod, idle_container, netexec_container, pinned, pod_object, pod_spec
from winready.cluster.probes import every
from winready.cluster.resources import PODS
from winready.spec.windows import banner_build

NAME = "life"
FOLDER = "C:\\life"
FAREWELL = "farewell"
SIDECARS_SINCE = 29
OFTEN = {"periodSeconds": 2, "timeoutSeconds": 10, "failureThreshold": 1}
SHUTDOWN = 10
"""Seconds that a server takes to end once it is told to."""
GRPC_PORT, GRPC_HTTP = 5000, 8080
"""Where agnhost's gRPC service listens, and where it is told to say that it is not well."""
ADMINISTRATOR, USER = "ContainerAdministrator", "ContainerUser"
_STATUSES = ("initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses")


def _unless(file: str) -> Object:
    """A probe that fails while there is a file."""
    return {"exec": {"command": ["cmd", "/c", f"if exist {FOLDER}\\{file} exit 1"]}, **OFTEN}


def _once(file: str, **more: Any) -> Object:
    """A probe that fails until there is a file."""
    return {"exec": {"command": read_file("windows", f"{FOLDER}\\{file}")}, **OFTEN, **more}


def _says(file: str, text: str) -> Object:
    return {"exec": {"command": write_file("windows", f"{FOLDER}\\{file}", text)}}


def _as_user(user: str) -> Object:
    return {"securityContext": {"runAsNonRoot": True, "windowsOptions": {"runAsUserName": user}}}


def life_spec(world: World, *, sidecars: bool) -> Object:
    """The containers of the pod, each for one feature."""
    settings = world.settings
    server = netexec_container(settings, name="graceful", http=8090)
    for probe in ("startupProbe", "readinessProbe"):
        del server[probe]
    server["args"] = [*server["args"], f"--delay-shutdown={SHUTDOWN}"]
    hooks = {"postStart": _says("post.txt", "started"), "preStop": _says("pre.txt", "stopping")}
    containers = [
        idle_container(settings),
        idle_container(
            settings, name="probed", livenessProbe=_unless("unwell.txt"), readinessProbe=_unless("busy.txt")
        ),
        idle_container(
            settings, name="slow", startupProbe=_once("go.txt", failureThreshold=600), livenessProbe=_once("go.txt")
        ),
        idle_container(settings, name="hooked", lifecycle=hooks, livenessProbe=_unless("unhook.txt")),
        {**server, "livenessProbe": _unless("end.txt")},
        idle_container(
            settings,
            name="grpc",
            args=["grpc-health-checking"],
            startupProbe={"grpc": {"port": GRPC_PORT}, **OFTEN, "failureThreshold": 600},
            livenessProbe={"grpc": {"port": GRPC_PORT}, **OFTEN},
        ),
        idle_container(settings, name="user", **_as_user(USER)),
        idle_container(settings, name="root", **_as_user(ADMINISTRATOR)),
    ]
    farewell = ["cmd", "/c", f"echo {FAREWELL}>C:\\dev\\termination-log"]
    first = [idle_container(settings, name="says", command=farewell, args=[])]
    if sidecars:
        first.append(idle_container(settings, name="side", restartPolicy="Always", livenessProbe=_unless("side.txt")))
    mounts = [{"name": "files", "mountPath": FOLDER}]
    for container in [*first, *containers]:
        container["volumeMounts"] = mounts
    return pod_spec(
        "windows",
        containers,
        settings,
        world.windows_nodes,
        initContainers=first,
        volumes=[{"name": "files", "emptyDir": {}}],
        terminationGracePeriodSeconds=3 * SHUTDOWN,
    )


def status_of(raw: Object | None, name: str) -> Object:
    """What the API says of a container of a pod, of whatever kind."""
    status = (raw or {}).get("status") or {}
    return next((item for kind in _STATUSES for item in status.get(kind) or [] if item["name"] == name), {})


def state_of(raw: Object | None, name: str) -> str:
    """Its state as people say it."""
    status = status_of(raw, name)
    state: Object = status.get("state") or {}
    for kind, more in state.items():
        reason = more.get("reason")
        return f"{kind} ({reason})" if reason else f"{kind}, {status.get('restartCount', 0)} restarts"
    return "not there"


async def _make(world: World) -> list[Pod]:
    namespace = await world.namespace(NAME)
    spec = life_spec(world, sidecars=True)
    names = []
    for number, node in enumerate(world.windows_nodes, 1):
        names.append(f"life-{number}")
        await namespace.create(PODS, pod_object(names[-1], pinned(spec, node), world.settings))
    table = world.settings.timing.table
    pods = []
    for name in names:
        # Once the image is there, the pod has yet to start.
        patience = table.image_pull + table.windows_pod_start
        raw = await namespace.seen(lambda name=name: _runs(namespace, name), patience)  # type: ignore[misc]
        if raw is None:
            raise CheckBlocked(f"{namespace.why_not_ready(name)} (waited {patience:g} s)")
        pods.append(await namespace.prove(raw))
    return pods


def _runs(namespace: Namespace, name: str, container: str = CONTAINER) -> Object | None:
    raw = namespace.pod(name)
    return raw if "running" in (status_of(raw, container).get("state") or {}) else None


async def _each(ctx: Context, look: Callable[[Context, Namespace, Pod], Awaitable[None]]) -> None:
    """Look at the pod of every judged node."""
    if minor_version(ctx) < SIDECARS_SINCE:
        raise NotApplicable(f"it is looked at from Kubernetes 1.{SIDECARS_SINCE} on")
    pods = ctx.witnesses(await ctx.world.fixtures.once(NAME, _make))
    namespace = await ctx.world.namespace(NAME)
    await every(*(look(ctx, namespace, pod) for pod in pods))


async def _until(
    ctx: Context, namespace: Namespace, pod: Pod, container: str, what: str, holds: Callable[[Object], bool], wish: str
) -> None:
    """Wait until a container's status is what it should be, and require it."""
    found = await namespace.seen(
        lambda: holds(status_of(namespace.pod(pod.name), container)) or None, ctx.times.endpoints_ready
    )
    seen = state_of(namespace.pod(pod.name), container)
    require(ctx, pod, what, bool(found), seen, wish, next_step=f"look at the kubelet of node {pod.node.name}")


async def _write(pod: Pod, file: str) -> None:
    await pod.run(write_file("windows", f"{FOLDER}\\{file}", "now"))


async def _erase(pod: Pod, file: str) -> None:
    await pod.run(["cmd", "/c", "del", "/q", f"{FOLDER}\\{file}"])


@feature_check("probes", expected_s=60, windows_pods_per_node=1)
async def probes(ctx: Context) -> Sight:
    """A container that is busy is taken for not ready, one that is unwell is started again."""
    await _each(ctx, _probed)
    return Sight(True, "readiness follows its probe, and what fails its liveness probe is started again")


async def _probed(ctx: Context, namespace: Namespace, pod: Pod) -> None:
    def ready(wish: bool) -> Callable[[Object], bool]:
        return lambda status: "running" in (status.get("state") or {}) and status.get("ready") is wish

    await _until(ctx, namespace, pod, "probed", "a container whose probe succeeds", ready(True), "ready")
    await _write(pod, "busy.txt")
    await _until(ctx, namespace, pod, "probed", "once its readiness probe fails", ready(False), "not ready")
    await _erase(pod, "busy.txt")
    await _until(ctx, namespace, pod, "probed", "once it succeeds again", ready(True), "ready")
    await _write(pod, "unwell.txt")
    await _until(
        ctx, namespace, pod, "probed", "once its liveness probe fails",
        lambda status: status.get("restartCount", 0) > 0, "started again",
    )  # fmt: skip
    await _erase(pod, "unwell.txt")


@feature_check("startup-probes", expected_s=40)
async def startup_probes(ctx: Context) -> Sight:
    """A container counts as started once its startup probe succeeds, and no other probe acts before."""
    await _each(ctx, _started)
    return Sight(True, "a container is started when its probe says so, and left alone before")


async def _started(ctx: Context, namespace: Namespace, pod: Pod) -> None:
    def waits(status: Object) -> bool:
        return "running" in (status.get("state") or {}) and not status.get("started") and not status.get("restartCount")

    await _until(ctx, namespace, pod, "slow", "a container whose startup probe fails", waits, "running, not started")
    await ctx.timing.pause(ctx.times.hold)
    await _until(ctx, namespace, pod, "slow", f"{ctx.times.hold:g} s later", waits, "running, not started")
    await _write(pod, "go.txt")
    await _until(
        ctx, namespace, pod, "slow", "once its startup probe succeeds",
        lambda status: status.get("started") is True and not status.get("restartCount"), "started, at the first try",
    )  # fmt: skip


@feature_check("grpc-probes", expected_s=60)
async def grpc_probes(ctx: Context) -> Sight:
    """A container whose gRPC service says that it is well is left alone, and started again once it says otherwise."""
    await _each(ctx, _called)
    return Sight(True, "a gRPC service that is well is left alone, and one that says otherwise is started again")


async def _called(ctx: Context, namespace: Namespace, pod: Pod) -> None:
    def well(status: Object) -> bool:
        return status.get("started") is True and not status.get("restartCount")

    await _until(ctx, namespace, pod, "grpc", "a container whose gRPC service is well", well, "started")
    await ctx.timing.pause(ctx.times.hold)
    await _until(ctx, namespace, pod, "grpc", f"{ctx.times.hold:g} s later", well, "started, at the first try")
    told = await pod.run(["curl.exe", "-sS", "-f", f"http://127.0.0.1:{GRPC_HTTP}/make-not-serving"])
    if told.exit_code:
        why = "; ".join(lines(told.stderr)) or f"exit code {told.exit_code}"
        raise CheckBlocked(
            f"Windows pod {pod.name} on node {pod.node.name} cannot tell its gRPC service anything: {why}"
        )
    await _until(
        ctx, namespace, pod, "grpc", "once its service says that it is not well",
        lambda status: status.get("restartCount", 0) > 0, "started again",
    )  # fmt: skip


@feature_check("lifecycle-hooks", expected_s=40)
async def lifecycle_hooks(ctx: Context) -> Sight:
    """postStart ran when the container started, and preStop before it is stopped."""
    await _each(ctx, _hooked)
    return Sight(True, "postStart and preStop run their commands")


async def _hooked(ctx: Context, namespace: Namespace, pod: Pod) -> None:
    await _until(
        ctx, namespace, pod, "hooked", "a container with hooks",
        lambda status: "running" in (status.get("state") or {}) and bool(status.get("started")), "running",
    )  # fmt: skip
    post, pre = (read_file("windows", f"{FOLDER}\\{name}.txt") for name in ("post", "pre"))
    await ask(ctx, pod, post, "what its postStart hook wrote", lambda said: "started" in said, "started")
    await _write(pod, "unhook.txt")
    await _until(
        ctx, namespace, pod, "hooked", "once it is to be started again",
        lambda status: status.get("restartCount", 0) > 0, "started again",
    )  # fmt: skip
    await _erase(pod, "unhook.txt")
    await ask(ctx, pod, pre, "what its preStop hook wrote", lambda said: "stopping" in said, "stopping")


@feature_check("termination-grace-period", expected_s=40)
async def termination_grace_period(ctx: Context) -> Sight:
    """A server that takes its time to end gets it."""
    await _each(ctx, _graceful)
    return Sight(True, f"a server that needs {SHUTDOWN} s to end may end by itself")


async def _graceful(ctx: Context, namespace: Namespace, pod: Pod) -> None:
    await _until(
        ctx, namespace, pod, "graceful", "a server",
        lambda status: "running" in (status.get("state") or {}), "running",
    )  # fmt: skip
    await _write(pod, "end.txt")
    await _until(
        ctx, namespace, pod, "graceful", "once it is to be started again",
        lambda status: status.get("restartCount", 0) > 0, "started again",
    )  # fmt: skip
    await _erase(pod, "end.txt")
    last = (status_of(namespace.pod(pod.name), "graceful").get("lastState") or {}).get("terminated") or {}
    code = last.get("exitCode")
    step = f"look whether the kubelet of node {pod.node.name} kills containers without their grace period"
    require(ctx, pod, "how it ended", code == 0, f"exit code {code}", "by itself, exit code 0", next_step=step)


@feature_check("single-file-mounts", expected_s=20)
async def single_file_mounts(ctx: Context) -> Sight:
    """What a container writes to the file for its last words, a mount of its own, arrives in its status."""
    await _each(ctx, _spoken)
    return Sight(True, "the termination message, a mount of a single file, arrives")


async def _spoken(ctx: Context, namespace: Namespace, pod: Pod) -> None:
    ended = (status_of(namespace.pod(pod.name), "says").get("state") or {}).get("terminated") or {}
    seen = str(ended.get("message") or "").strip() or "no message"
    require(ctx, pod, "the last words of its first container", seen == FAREWELL, seen, FAREWELL)


@feature_check("sidecars", expected_s=40)
async def sidecars(ctx: Context) -> Sight:
    """A native sidecar runs beside the others from before their start, and is started again when it ends."""
    await _each(ctx, _beside)
    return Sight(True, "native sidecars run beside the others, and are started again")


async def _beside(ctx: Context, namespace: Namespace, pod: Pod) -> None:
    await _until(
        ctx, namespace, pod, "side", "its sidecar",
        lambda status: "running" in (status.get("state") or {}) and status.get("started") is True, "running",
    )  # fmt: skip
    await _write(pod, "side.txt")
    await _until(
        ctx, namespace, pod, "side", "once its sidecar has ended",
        lambda status: status.get("restartCount", 0) > 0 and "running" in (status.get("state") or {}), "started again",
    )  # fmt: skip
    await _erase(pod, "side.txt")


@feature_check("run-as-non-root", expected_s=20)
async def run_as_non_root(ctx: Context) -> Sight:
    """With runAsNonRoot the administrator of a container does not start, and its ordinary user does."""
    await _each(ctx, _not_root)
    return Sight(True, f"{ADMINISTRATOR} is kept out, {USER} is not")


async def _not_root(ctx: Context, namespace: Namespace, pod: Pod) -> None:
    await _until(
        ctx, namespace, pod, "root", f"a container that must not be root and is {ADMINISTRATOR}",
        lambda status: ((status.get("state") or {}).get("waiting") or {}).get("reason") == "CreateContainerConfigError",
        "waiting (CreateContainerConfigError)",
    )  # fmt: skip
    await _until(
        ctx, namespace, pod, "user", f"the same as {USER}",
        lambda status: "running" in (status.get("state") or {}), "running",
    )  # fmt: skip
    wish = USER.lower()
    await ask(
        ctx,
        pod,
        ["C:\\Windows\\System32\\whoami.exe"],
        "who that is",
        lambda said: wish in said.lower(),
        wish,
        container="user",
    )


@feature_check("ephemeral-containers", expected_s=40)
async def ephemeral_containers(ctx: Context) -> Sight:
    """A container that is put into a running pod runs there, as Windows."""
    await _each(ctx, _debugged)
    return Sight(True, "a container was added to a running pod, and is Windows")


async def _debugged(ctx: Context, namespace: Namespace, pod: Pod) -> None:
    container = {key: value for key, value in idle_container(ctx.settings, name="debug").items() if key != "resources"}
    patch = {"spec": {"ephemeralContainers": [container]}}
    await ctx.world.client.patch(
        PODS, pod.name, patch, namespace.name, kind="strategic", subresource="ephemeralcontainers"
    )
    await _until(
        ctx, namespace, pod, "debug", "a container that was added later",
        lambda status: "running" in (status.get("state") or {}), "running",
    )  # fmt: skip
    version = system_version("windows")
    await ask(
        ctx, pod, version, "what that says that it is", lambda said: bool(banner_build(said)), "Windows",
        container="debug",
    )  # fmt: skip
