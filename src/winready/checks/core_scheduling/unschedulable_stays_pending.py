"""A Windows pod that asks for more than there is stays Pending, with the scheduler's own reason."""

from winready.checks.context import Context
from winready.checks.registry import check
from winready.cluster.client import Object
from winready.cluster.failures import CheckBlocked, CheckFailed
from winready.cluster.namespaces import Namespace
from winready.cluster.pods import pause_container, pod_object, pod_spec
from winready.cluster.probes import Try, every
from winready.cluster.resources import EVENTS, PODS

TOO_MUCH = {"cpu": "10k", "memory": "100Ti"}
"""Beyond any machine that an autoscaler could add."""


@check("core.scheduling.unschedulable-stays-pending", fixtures=("clients",), expected_s=75, windows_pods=1)
async def unschedulable_stays_pending(ctx: Context) -> None:
    """Two pods too large, one for CPU and one for memory, stay Pending, while a small one with their selector runs."""
    namespace = await ctx.world.namespace("big")
    await ctx.clients("windows")
    await namespace.create(PODS, _pod(ctx, "small", {}))
    for resource, amount in TOO_MUCH.items():
        made = await namespace.create(PODS, _pod(ctx, f"big-{resource}", {resource: amount}))
        stored = made["spec"]["containers"][0]["resources"]["requests"].get(resource)
        if stored != amount:
            raise CheckBlocked(
                f"something changed the {resource} request of pod big-{resource} to {stored}",
                next_step="look for webhooks and limit ranges that change requests",
            )
    ctx.witnesses([await namespace.ready_pod("small")])
    await every(*(_stays(ctx, namespace, f"big-{resource}", resource) for resource in TOO_MUCH))


def _pod(ctx: Context, name: str, more: dict[str, str]) -> Object:
    container = pause_container(ctx.settings, resources={"requests": {"cpu": "10m", "memory": "50Mi", **more}})
    return pod_object(name, pod_spec("windows", [container], ctx.settings, ctx.windows_nodes), ctx.settings)


async def _stays(ctx: Context, namespace: Namespace, name: str, resource: str) -> None:
    await namespace.seen(
        lambda: _refusal(namespace.pod(name)) or _placed(namespace.pod(name)), ctx.times.scheduler_event
    )
    reason = _refusal(namespace.pod(name))
    expected = f"Pending, because of insufficient {resource}, for {ctx.times.pending_hold:g} s"
    if reason is not None and f"Insufficient {resource}" not in reason:
        raise CheckBlocked(
            f"pod {name} is Pending for another reason: {reason}",
            next_step="repair that first; only then can the scheduler's arithmetic be judged",
        )
    placed = await namespace.seen(lambda: _placed(namespace.pod(name)), ctx.times.pending_hold)
    seen = placed or reason or "Pending, without a word from the scheduler"
    ok = reason is not None and placed is None
    ctx.evidence.fact(f"{name}: scheduler's reason", reason)
    pod = (await ctx.clients("windows"))[0]
    ctx.probe.record(f"{name} stays Pending", Try(ok, seen), pod, [], expected, f"pod {namespace.name}/{name}")
    if not ok:
        raise CheckFailed(
            f"pod {name}, which asks for {TOO_MUCH[resource]} of {resource}, {seen}",
            expected=expected,
            observed=seen,
            next_step="look at the scheduler: is NodeResourcesFit switched off, or does something else bind pods?",
        )
    await _announced(ctx, namespace, name)


def _refusal(raw: Object | None) -> str | None:
    """The scheduler's words on a pod that it does not place."""
    conditions = ((raw or {}).get("status") or {}).get("conditions") or []
    for item in conditions:
        if item["type"] == "PodScheduled" and item["status"] == "False" and item.get("reason") == "Unschedulable":
            return str(item.get("message") or "no message")
    return None


def _placed(raw: Object | None) -> str | None:
    if raw is None:
        return "disappeared"
    if node := raw["spec"].get("nodeName"):
        return f"was placed on node {node}"
    phase = (raw.get("status") or {}).get("phase")
    return None if phase == "Pending" else f"is {phase}"


async def _announced(ctx: Context, namespace: Namespace, name: str) -> None:
    async for _ in ctx.timing.attempts(ctx.times.scheduler_event):
        fields = f"involvedObject.name={name},reason=FailedScheduling"
        if await ctx.world.client.list(EVENTS, namespace.name, fields=fields):
            return
    raise CheckFailed(
        f"the scheduler wrote no FailedScheduling event for pod {name} within {ctx.times.scheduler_event:g} s",
        expected="an event FailedScheduling",
        observed="none",
        next_step="look at the scheduler's log and its right to create events",
    )
