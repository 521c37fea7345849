"""runAsUserName sets the user of Windows containers: that of a pod for all of them, that of a container before it.

Both what a container was started as and what commands in it run as are looked at. A user that does not exist must not
run, for the pod and for one container of it; that counts only where pods with users that exist start.
"""

import re
from dataclasses import dataclass

from winready.checks.context import Context
from winready.checks.registry import check
from winready.cluster.client import Object
from winready.cluster.commands import lines, powershell
from winready.cluster.errors import ExecFailed
from winready.cluster.evidence import bounded
from winready.cluster.execution import Execution
from winready.cluster.failures import CheckBlocked, CheckFailed
from winready.cluster.inventory import Node
from winready.cluster.namespaces import Namespace
from winready.cluster.pods import CONTAINER, Pod, handle, idle_container, pause_container, pinned, pod_object, pod_spec
from winready.cluster.probes import Try, describe, every
from winready.cluster.resources import EVENTS, PODS

USER, ADMINISTRATOR, NOBODY = "ContainerUser", "ContainerAdministrator", "winready-nobody"
ASK = ["cmd", "/S", "/C", "echo %USERNAME%&C:\\Windows\\System32\\whoami.exe"]
STARTED = "started as "
NOT_STARTED = ("StartError", "ContainerCannotRun", "RunContainerError", "CreateContainerError", "CrashLoopBackOff")
PULLING = ("ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName")
NO_SANDBOX = "FailedCreatePodSandBox"
BY_USER = re.compile(rf"{NOBODY}|user ?name or password|logon failure|\b0x(8007)?0*(52e|534)\b", re.IGNORECASE)
"""What a node says when it is the user that it does not start: Windows' errors 1326 and 1332."""


@dataclass(frozen=True)
class Asked:
    """A container, the user that it asks for itself, and the one that it must run as."""

    name: str
    own: str = ""
    expected: str = ""
    """Empty: whatever its image says, which is recorded."""
    silent: bool = False
    """From an image that is left to do what it does, and does not tell its user: that of pause is no administrator."""


PODS_OF_A_NODE = {
    "none": ("", (Asked(CONTAINER, silent=True), Asked("own", USER, USER))),
    "user": (
        USER,
        (Asked(CONTAINER, "", USER), Asked("other", ADMINISTRATOR, ADMINISTRATOR), Asked("third", "", USER)),
    ),
    "admin": (
        ADMINISTRATOR,
        (Asked(CONTAINER, USER, USER), Asked("pause", "", ADMINISTRATOR, silent=True)),
    ),
}
"""What the pods of each node ask for, and their containers."""


@check("extend.activedirectory.run-as-user", fixtures=("clients",), expected_s=40, windows_pods_per_node=5)
async def run_as_user(ctx: Context) -> None:
    """On every judged node: nobody named, both users, a container that differs from its pod, and one who is nobody."""
    for client in await ctx.clients("windows"):
        await _runs_as(ctx, client, Asked(CONTAINER, silent=True))
    await every(*(_judge(ctx, node, number) for number, node in enumerate(ctx.windows_nodes, 1)))


async def _judge(ctx: Context, node: Node, number: int) -> None:
    namespace = await ctx.world.namespace("user")
    for what, (user, asked) in PODS_OF_A_NODE.items():
        await namespace.create(PODS, _pod(ctx, node, f"{what}-{number}", user, asked))
    nobodies = {
        f"nobody-{number}": (NOBODY, Asked(CONTAINER)),
        f"nobody-inside-{number}": ("", Asked(CONTAINER, NOBODY)),
    }
    for name, (user, one) in nobodies.items():
        await namespace.create(PODS, _pod(ctx, node, name, user, (one,)))
    found = [ctx.witnesses([await namespace.ready_pod(f"{what}-{number}")])[0] for what in PODS_OF_A_NODE]
    asked_of = [asked for _, asked in PODS_OF_A_NODE.values()]
    running = [_runs_as(ctx, pod, one) for pod, asked in zip(found, asked_of, strict=True) for one in asked]
    await every(*running, *(_does_not_run(ctx, namespace, node, name) for name in nobodies))


def _pod(ctx: Context, node: Node, name: str, user: str, asked: tuple[Asked, ...]) -> Object:
    spec = pod_spec("windows", [_container(ctx, one) for one in asked], ctx.settings, [node], restartPolicy="Never")
    if user:
        spec["securityContext"] = {"windowsOptions": {"runAsUserName": user}}
    return pod_object(name, pinned(spec, node), ctx.settings)


def _container(ctx: Context, asked: Asked) -> Object:
    more: Object = {"securityContext": {"windowsOptions": {"runAsUserName": asked.own}}} if asked.own else {}
    if asked.silent:
        return pause_container(ctx.settings, name=asked.name, **more)
    tell = powershell(f"Write-Output ('{STARTED}' + $env:USERNAME); Start-Sleep -Seconds 86400")
    return idle_container(ctx.settings, name=asked.name, command=tell, args=[], **more)


async def _runs_as(ctx: Context, pod: Pod, asked: Asked) -> None:
    """Who the container was started as is in its log; who commands run as they say themselves."""
    seen: dict[str, str] = {}

    async def attempt() -> Try:
        result = await pod.run(ASK, container=asked.name)
        seen.update(read_names(result))
        if not asked.silent:
            log = lines((await pod.client.logs(pod.namespace, pod.name, asked.name)).encode())
            seen["its own process"] = next((line.removeprefix(STARTED) for line in log if line.startswith(STARTED)), "")
        wrong = [what for what, name in seen.items() if asked.expected and name.lower() != asked.expected.lower()]
        return Try(not wrong, ", ".join(f"{what}: {name or 'nobody'}" for what, name in seen.items()), result)

    if not asked.expected:
        found = await attempt()
        ctx.evidence.fact(f"user of container {asked.name} of {pod.name}, by its image", found.seen)
        return
    title = f"container {asked.name} of {pod.name} runs as {asked.expected}"
    window = ctx.times.exec_ready
    found = await ctx.probe.until(title, attempt, window=window, pod=pod, command=ASK, expected=asked.expected)
    if not found.ok:
        says = f"asks for {asked.own}" if asked.own else "asks for nobody itself"
        raise CheckFailed(
            f"container {asked.name} of {describe(pod)} {says} and must run as {asked.expected}; {found.seen}",
            expected=asked.expected,
            observed=found.seen,
            next_step=f"look at the container runtime of node {pod.node.name}: does it know runAsUserName?",
        )


def read_names(result: Execution) -> dict[str, str]:
    """Who answered `ASK`: by its environment, and by its token."""
    told = lines(result.stdout)
    seen = {"a command in it": told[0] if told else ""}
    if len(told) > 1 and "\\" in told[1]:
        # Without the program there is only one line.
        seen["the token of a command in it"] = told[1].rpartition("\\")[2]
    return seen


async def _does_not_run(ctx: Context, namespace: Namespace, node: Node, name: str) -> None:
    """Somebody who does not exist: the node must say that it cannot start the pod, and never start it."""
    expected = f"{NO_SANDBOX}, or a container that cannot be started, because of the user"
    why_not: list[tuple[str, str]] = []
    async for _ in ctx.timing.attempts(ctx.times.windows_pod_start, every=ctx.times.reboot_look):
        raw = namespace.pod(name) or {}
        state = _state(raw)
        if state in PULLING:
            raise CheckBlocked(f"pod {name} on node {node.name} has no image: {state}", next_step="see its events")
        if state == "Running":
            who = await _who(ctx, namespace, raw)
            raise CheckFailed(
                f"Windows pod {name} on node {node.name} runs although there is no user {NOBODY}: {who}",
                expected=expected,
                observed=who,
                next_step=f"look at the container runtime of node {node.name}: does it know runAsUserName?",
            )
        why_not = await _why_not(namespace, raw, state)
        if by_user := [what for what, message in why_not if BY_USER.search(message)]:
            _record_refusal(ctx, node, name, by_user[0])
            return
    if why_not and await _another_runs(ctx, namespace, node, name):
        # A node in another language tells it in other words.
        _record_refusal(ctx, node, name, f"{why_not[-1][0]}, while pods of a user who exists start")
        return
    told = f": {why_not[-1][0]}: {bounded(why_not[-1][1], 300)}" if why_not else ""
    raise CheckBlocked(
        f"pod {name} on node {node.name} neither runs nor is refused because of its user: "
        f"{namespace.why_not_ready(name)}{told}",
        next_step=f"'kubectl describe pod -n {namespace.name} {name}' while the run is going on shows more",
    )


def _record_refusal(ctx: Context, node: Node, name: str, how: str) -> None:
    ctx.evidence.fact(f"{name} on {node.name}, which asks for a user that is not there", how)


async def _why_not(namespace: Namespace, raw: Object, state: str) -> list[tuple[str, str]]:
    """What the node says about why a pod does not run: each time what happened, and its words."""
    found = []
    for item in (raw.get("status") or {}).get("containerStatuses") or [] if state in NOT_STARTED else []:
        for each in (item.get("lastState") or {}, item.get("state") or {}):
            ended = each.get("terminated") or each.get("waiting") or {}
            found.append((state, str(ended.get("message") or "")))
    if raw:
        fields = f"involvedObject.name={raw['metadata']['name']},reason={NO_SANDBOX}"
        events = await namespace.client.list(EVENTS, namespace.name, fields=fields)
        found += [(NO_SANDBOX, str(event.get("message") or "")) for event in events]
    return found


async def _another_runs(ctx: Context, namespace: Namespace, node: Node, name: str) -> bool:
    """Whether a pod that differs in its user alone starts there now, where this one still does not."""
    control = f"{name}-control"
    await namespace.create(PODS, _pod(ctx, node, control, USER, (Asked(CONTAINER, USER),)))
    try:
        await namespace.ready_pod(control)
    except CheckBlocked:
        return False
    return _state(namespace.pod(name) or {}) != "Running"


def _state(raw: Object) -> str:
    """What became of the only container of a pod; empty when nothing has yet."""
    for item in (raw.get("status") or {}).get("containerStatuses") or []:
        state = item.get("state") or {}
        if "running" in state:
            return "Running"
        reason = (state.get("terminated") or state.get("waiting") or {}).get("reason") or ""
        # It ran: whatever the end of it was called.
        return "Running" if state.get("terminated") and reason in ("Completed", "Error") else str(reason)
    return ""


async def _who(ctx: Context, namespace: Namespace, raw: Object) -> str:
    try:
        result = await handle(namespace.client, ctx.settings, raw, namespace.nodes).run(ASK)
    except ExecFailed:
        return "it does not say as whom"
    return f"as {', '.join(lines(result.stdout)) or 'nobody that it would name'}"
