"""Volumes in ways that no requirement asks for: parts of them, modes, and a quota over the pods that have them."""

from __future__ import annotations

from winready.checks.context import Context
from winready.checks.features.looking import ask, require
from winready.checks.registry import Sight, feature_check
from winready.checks.world import World
from winready.cluster.client import Object
from winready.cluster.commands import list_folder, read_file, write_file
from winready.cluster.errors import Refused
from winready.cluster.failures import CheckBlocked
from winready.cluster.pods import Pod, idle_container, pause_container, pinned, pod_object, pod_spec
from winready.cluster.probes import Try, every
from winready.cluster.resources import CONFIG_MAPS, PODS, RESOURCE_QUOTAS, SECRETS

NAME = "files"
SHOWN, HIDDEN, KEY = "shown to the pod", "not shown to it", "a key"
PLACE, WHOLE, BELOW = "C:\\single", "C:\\whole", "C:\\below"
CLOSED, OPEN = "C:\\closed", "C:\\open"
USER = "user"


def files_spec(world: World) -> Object:
    """The pod: one container with all mounts, one of an ordinary user, and the cheapest there is."""
    mounts = [
        {"name": "config", "mountPath": f"{PLACE}\\a.txt", "subPath": "a.txt"},
        {"name": "key", "mountPath": f"{PLACE}\\k.txt", "subPath": "k.txt"},
        {"name": "scratch", "mountPath": BELOW, "subPath": "below"},
        {"name": "scratch", "mountPath": WHOLE},
    ]
    modes = [{"name": "closed", "mountPath": CLOSED}, {"name": "key", "mountPath": OPEN}]
    options = {"windowsOptions": {"runAsUserName": "ContainerUser"}}
    containers = [
        idle_container(world.settings, volumeMounts=mounts),
        idle_container(world.settings, name=USER, volumeMounts=modes, securityContext=options),
        pause_container(world.settings, name="pause"),
    ]
    volumes = [
        {"name": "config", "configMap": {"name": NAME}},
        {"name": "key", "secret": {"secretName": NAME}},
        {"name": "closed", "secret": {"secretName": NAME, "defaultMode": 0}},
        {"name": "scratch", "emptyDir": {}},
    ]
    return pod_spec("windows", containers, world.settings, world.windows_nodes, volumes=volumes)


async def _make(world: World) -> list[Pod]:
    namespace = await world.namespace(NAME)
    config = {"a.txt": SHOWN, "b.txt": HIDDEN}
    await namespace.create(CONFIG_MAPS, {"metadata": {"name": NAME}, "data": config})
    await namespace.create(SECRETS, {"metadata": {"name": NAME}, "stringData": {"k.txt": KEY}})
    names = []
    for number, node in enumerate(world.windows_nodes, 1):
        names.append(f"files-{number}")
        await namespace.create(PODS, pod_object(names[-1], pinned(files_spec(world), node), world.settings))
    return [await namespace.ready_pod(name) for name in names]


async def _pods(ctx: Context) -> list[Pod]:
    return ctx.witnesses(await ctx.world.fixtures.once(NAME, _make))


@feature_check("subpath", expected_s=20, windows_pods_per_node=1)
async def subpath(ctx: Context) -> Sight:
    """A folder of a volume, and a single file of one, mounted by themselves."""

    async def look(pod: Pod) -> None:
        await pod.run(write_file("windows", f"{BELOW}\\x.txt", SHOWN))
        whole = read_file("windows", f"{WHOLE}\\below\\x.txt")
        await ask(ctx, pod, whole, "a file in a mounted folder of a volume", lambda said: said == SHOWN, SHOWN)
        only = read_file("windows", f"{PLACE}\\a.txt")
        await ask(ctx, pod, only, "a mounted key of a ConfigMap", lambda said: said == SHOWN, SHOWN)
        listing = list_folder(PLACE)
        await ask(ctx, pod, listing, "what else is there", lambda said: "b.txt" not in said, "no other key")

    await every(*(look(pod) for pod in await _pods(ctx)))
    return Sight(True, "parts of volumes are mounted by themselves")


@feature_check("subpath-secret", expected_s=20)
async def subpath_secret(ctx: Context) -> Sight:
    """A single key of a Secret, mounted by itself."""
    command = read_file("windows", f"{PLACE}\\k.txt")

    async def look(pod: Pod) -> None:
        await ask(ctx, pod, command, "a mounted key of a Secret", lambda said: said == KEY, KEY)

    await every(*(look(pod) for pod in await _pods(ctx)))
    return Sight(True, "a single key of a Secret is mounted by itself")


@feature_check("default-mode", expected_s=20)
async def default_mode(ctx: Context) -> Sight:
    """A file that nobody may read by its mode is read by an ordinary user all the same."""
    enforced = []
    for pod in await _pods(ctx):
        said = {}
        for place in (OPEN, CLOSED):
            result = await pod.run(command := read_file("windows", f"{place}\\k.txt"), container=USER)
            said[place] = result.stdout.decode(errors="replace").strip()
            title = f"{pod.name}: an ordinary user reads {place}\\k.txt"
            ctx.probe.record(title, Try(True, said[place] or "nothing", result), pod, command, "", pod.node.name)
        if said[OPEN] != KEY:
            raise CheckBlocked(f"an ordinary user of pod {pod.name} on node {pod.node.name} reads no Secret at all")
        if said[CLOSED] != KEY:
            enforced.append(f"on node {pod.node.name} a file with mode 0 cannot be read")
    return Sight(bool(enforced), "; ".join(enforced) or "modes are ignored: a file with mode 0 is read")


@feature_check("pause-image", expected_s=20)
async def pause_image(ctx: Context) -> Sight:
    """The pause image has a part for Windows that runs."""
    namespace = await ctx.world.namespace(NAME)
    for pod in await _pods(ctx):
        statuses = ((namespace.pod(pod.name) or {}).get("status") or {}).get("containerStatuses") or []
        status: Object = next((item for item in statuses if item["name"] == "pause"), {})
        seen = f"{status.get('image')}: {', '.join(status.get('state') or {'nothing': 0})}"
        require(ctx, pod, "a container of the pause image", "running" in (status.get("state") or {}), seen, "running")
    return Sight(True, "the pause image runs")


@feature_check("resource-quota", expected_s=30)
async def resource_quota(ctx: Context) -> Sight:
    """A quota counts the Windows pods that are there, and lets no more in."""
    pods = await _pods(ctx)
    namespace = await ctx.world.namespace(NAME)
    hard = {"pods": str(len(pods))}
    await namespace.create(RESOURCE_QUOTAS, {"metadata": {"name": "full"}, "spec": {"hard": hard}})
    used = ""
    async for _ in ctx.timing.attempts(ctx.times.endpoints_ready):
        raw = await ctx.world.client.get(RESOURCE_QUOTAS, "full", namespace.name)
        used = str(((raw.get("status") or {}).get("used") or {}).get("pods") or "nothing")
        if used == hard["pods"]:
            break
    spec = pod_spec("windows", [pause_container(ctx.settings)], ctx.settings, ctx.windows_nodes)
    try:
        await namespace.admitted(PODS, pod_object("one-more", spec, ctx.settings))
        answer = "taken"
    except Refused as error:
        answer = error.message
    for pod in pods:
        require(ctx, pod, "the pods that its quota counts", used == hard["pods"], used, hard["pods"])
        refused = "exceeded quota" in answer
        require(ctx, pod, "one more pod beside it", refused, answer, "refused by the quota")
    return Sight(True, "Windows pods count, and one more than the quota is refused")
