"""A Windows pod that asks for more than there is stays Pending, with the scheduler's own reason.

Some ask for more than any machine has; others for all of one node, where other pods of the run have a part already.
"""

from __future__ import annotations

from dataclasses import dataclass

from winready.checks.context import Context
from winready.checks.registry import check
from winready.checks.workloads import on_judged_nodes
from winready.cluster.client import Object
from winready.cluster.failures import CheckBlocked, CheckFailed
from winready.cluster.inventory import Node
from winready.cluster.namespaces import Namespace
from winready.cluster.pods import pause_container, pinned, pod_object, pod_spec
from winready.cluster.probes import Try, every
from winready.cluster.resources import EVENTS, NODES, PODS

TOO_MUCH = {"cpu": "10k", "memory": "100Ti"}
"""Beyond any machine that an autoscaler could add."""


@dataclass(frozen=True)
class Wish:
    """A pod that cannot be had: what it asks for, and of which node."""

    name: str
    resource: str
    amount: str
    node: Node | None = None

    def __str__(self) -> str:
        whole = f", which is all that node {self.node.name} has for pods" if self.node else ""
        return f"pod {self.name}, which asks for {self.amount} of {self.resource}{whole},"


@check("core.scheduling.unschedulable-stays-pending", fixtures=("clients",), expected_s=140, windows_pods=1)
async def unschedulable_stays_pending(ctx: Context) -> None:
    """Pods too large for any node, and for each judged node, stay Pending; a small one with their selector runs."""
    namespace = await ctx.world.namespace("big")
    # Each has a place on its node already, so that a pod that asks for all of the node is one too many.
    await ctx.clients("windows")
    await namespace.create(PODS, _pod(ctx, "small", {}, judged=True))
    wishes = [Wish(f"big-{resource}", resource, amount) for resource, amount in TOO_MUCH.items()]
    for number, node in enumerate(ctx.windows_nodes, 1):
        wishes += await _all_of(ctx, node, number)
    for wish in wishes:
        made = await namespace.create(PODS, _pod(ctx, wish.name, {wish.resource: wish.amount}, wish.node))
        stored = made["spec"]["containers"][0]["resources"]["requests"].get(wish.resource)
        if stored != wish.amount:
            raise CheckBlocked(
                f"something changed the {wish.resource} request of pod {wish.name} to {stored}",
                next_step="look for webhooks and limit ranges that change requests",
            )
    ctx.witnesses([await namespace.ready_pod("small")])
    await every(*(_stays(ctx, namespace, wish) for wish in wishes))


async def _all_of(ctx: Context, node: Node, number: int) -> list[Wish]:
    """One pod that asks for all processors that a node has for pods, and one for all of its memory."""
    raw = await ctx.world.client.get(NODES, node.name)
    there = (raw.get("status") or {}).get("allocatable") or {}
    return [Wish(f"all-{name}-{number}", name, str(there[name]), node) for name in TOO_MUCH if name in there]


def _pod(ctx: Context, name: str, more: dict[str, str], node: Node | None = None, *, judged: bool = False) -> Object:
    # Without a limit of its own it would get that of a limit range, and ask for more than it may have.
    resources = {"requests": {"cpu": "10m", "memory": "50Mi", **more}, **({"limits": more} if more else {})}
    container = pause_container(ctx.settings, resources=resources)
    place = {"affinity": on_judged_nodes(ctx.world)} if judged else {}
    spec = pod_spec("windows", [container], ctx.settings, ctx.windows_nodes, **place)
    return pod_object(name, pinned(spec, node) if node else spec, ctx.settings)


async def _stays(ctx: Context, namespace: Namespace, wish: Wish) -> None:
    name, resource = wish.name, wish.resource
    await namespace.seen(
        lambda: _refusal(namespace.pod(name)) or _placed(namespace.pod(name)), ctx.times.scheduler_event
    )
    reason = _refusal(namespace.pod(name))
    expected = f"Pending, because of insufficient {resource}, for {ctx.times.pending_hold:g} s"
    _require_arithmetic(name, resource, reason)
    placed = await namespace.seen(lambda: _placed(namespace.pod(name)), ctx.times.pending_hold)
    # A node that went away meanwhile keeps its pods Pending, too.
    _require_arithmetic(name, resource, _refusal(namespace.pod(name)))
    seen = placed or reason or "Pending, without a word from the scheduler"
    ok = reason is not None and placed is None
    ctx.evidence.fact(f"{name}: scheduler's reason", reason)
    pod = (await ctx.clients("windows"))[0]
    ctx.probe.record(f"{name} stays Pending", Try(ok, seen), pod, [], expected, f"pod {namespace.name}/{name}")
    if not ok:
        raise CheckFailed(
            f"{wish} {seen}",
            expected=expected,
            observed=seen,
            next_step="look at the scheduler: is NodeResourcesFit switched off, or does something else bind pods?",
        )
    await _announced(ctx, namespace, name)


def _require_arithmetic(name: str, resource: str, reason: str | None) -> None:
    if reason is not None and f"Insufficient {resource}" not in reason:
        raise CheckBlocked(
            f"pod {name} is Pending for another reason: {reason}",
            next_step="repair that first; only then can the scheduler's arithmetic be judged",
        )


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
