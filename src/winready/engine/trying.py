"""``--try``: a workload's own pod on every judged Windows node, with its real images, and how far it comes.

Its pods live in namespaces of the run that no rule looks at: what a user's template lacks says nothing about the run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any

import msgspec

from winready.checks.extend_activedirectory.permission import bind
from winready.checks.world import World
from winready.cluster.client import Object
from winready.cluster.errors import ClusterError, Invalid
from winready.cluster.evidence import bounded
from winready.cluster.failures import CheckBlocked
from winready.cluster.inventory import Node
from winready.cluster.namespaces import Namespace, is_ready
from winready.cluster.pods import tolerations
from winready.cluster.resources import EVENTS, PODS, Resource
from winready.cluster.settings import Settings
from winready.cluster.timing import now
from winready.engine.outcomes import Outcome
from winready.engine.workloads import Step, Workload, key

CONTAINERS = ("containers", "initContainers")
LONGEST_GRACE = 30
"""Seconds that a pod gets for its end: the run waits for it when it cleans up."""
LONGEST_HOLD = 60.0
_STARTING = (None, "ContainerCreating", "PodInitializing")
_PULLS = ("ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "ErrImagePullBackOff")
_PROBES = ("startupProbe", "readinessProbe", "livenessProbe")


@dataclass(frozen=True)
class Attempt:
    """What is started of a workload. Nothing of it is ever told: it may hold what nobody should see."""

    workload: Workload
    template: Mapping[str, Any]
    objects: tuple[tuple[Resource, Object], ...] = ()
    """ConfigMaps and Secrets that its pods refer to."""
    missing: tuple[str, ...] = ()
    """What its pods refer to and nobody has given, for people."""
    changed: tuple[str, ...] = ()
    """How the pods differ from those of the workload, for people."""
    secrets: tuple[str, ...] = field(default=(), repr=False)


Tell = Callable[[Workload, Step], object]


async def try_workloads(
    world: World, attempts: Sequence[Attempt], done: Mapping[tuple[str, ...], Sequence[Step]], tell: Tell
) -> None:
    """Start every workload on every judged node once, and tell how far each pod came.

    ``done`` is what an earlier run has tried already. On each node one is tried after the other: none takes the room of
    another.
    """
    turns = {node.name: asyncio.Lock() for node in world.windows_nodes}
    async with AsyncExitStack() as stack, asyncio.TaskGroup() as group:
        for number, attempt in enumerate(attempts):
            left = _nodes(world, done.get(key(attempt.workload), ()))
            if not left:
                continue
            if attempt.missing:
                reason = f"{' and '.join(attempt.missing)} would have to be there, and was not given"
                for node in left:
                    tell(attempt.workload, Step(node=node.name, reached="nothing", outcome="blocked", reason=reason))
                continue
            name = world.settings.namespace(f"try-{number}")
            opened = Namespace.open(world.client, world.settings, name, world.nodes)
            try:
                namespace = await stack.enter_async_context(opened)
                for resource, obj in attempt.objects:
                    await namespace.create(resource, obj)
                account = await _account(namespace, attempt, world.settings)
            except (CheckBlocked, ClusterError) as error:
                for node in left:
                    tell(attempt.workload, _not_begun(node, error))
                continue
            for node in left:
                group.create_task(_try(namespace, attempt, account, node, turns[node.name], tell))


def _nodes(world: World, done: Sequence[Step]) -> list[Node]:
    names = {step.node for step in done}
    return [node for node in world.windows_nodes if node.name not in names]


def _not_begun(node: Node, error: Exception) -> Step:
    return Step(node=node.name, reached="nothing", outcome="blocked", reason=bounded(str(error), 1000))


async def _account(namespace: Namespace, attempt: Attempt, settings: Settings) -> str:
    """The service account of the pods: one without rights, unless they need a credential spec that may be used."""
    given = settings.active_directory
    if given is None or _credential_specs(attempt.template).isdisjoint(given.credential_specs):
        return ""
    return (await bind(namespace, given))[0]


def _credential_specs(template: Mapping[str, Any]) -> set[str]:
    found = [template["spec"], *(each for name in CONTAINERS for each in template["spec"].get(name) or [])]
    options = [(each.get("securityContext") or {}).get("windowsOptions") or {} for each in found]
    return {str(each["gmsaCredentialSpecName"]) for each in options if each.get("gmsaCredentialSpecName")}


async def _try(
    namespace: Namespace, attempt: Attempt, account: str, node: Node, turn: asyncio.Lock, tell: Tell
) -> None:
    name = f"try-{node.name}"[:63].rstrip("-.")
    async with turn:
        start = now()
        try:
            step = await _come(namespace, attempt, account, node, name)
        except Invalid as error:
            step = _ended(node, "nothing", "failed", f"the API server refuses its pod: {error.message}")
        except CheckBlocked as error:
            # Somebody refuses it here; in the namespace of the workload that may be different.
            step = _ended(node, "nothing", "blocked", error.reason)
        except ClusterError as error:
            step = _ended(node, "nothing", "error", error.message)
        step = msgspec.structs.replace(step, seconds=round(now() - start, 3), differs=list(attempt.changed))
        tell(attempt.workload, step)


async def _come(namespace: Namespace, attempt: Attempt, account: str, node: Node, name: str) -> Step:
    settings = namespace.settings
    await namespace.create(PODS, own_pod(attempt, name, node, settings, account))
    patience = settings.timing.table.image_pull + settings.timing.table.windows_pod_start
    if await namespace.seen(lambda: _placed(namespace.pod(name)), settings.timing.table.windows_pod_start):
        await namespace.seen(lambda: _settled(namespace.pod(name)), patience)
    raw = namespace.pod(name) or {}
    if raw and is_ready(raw) is not None and (hold := _hold(attempt.template)):
        # What kills a container that is Ready is its liveness probe; it is given the time for two answers.
        await namespace.seen(lambda: _restarted(namespace.pod(name)), hold)
        raw = namespace.pod(name) or raw
    pulling = await namespace.pulling(patience, [raw]) if raw else ""
    step = judge_pod(raw, node.name, attempt.template, await _warnings(namespace, name))
    await namespace.delete(PODS, name)
    return _ended(node, "scheduled", "blocked", pulling) if pulling else step


def own_pod(attempt: Attempt, name: str, node: Node, settings: Settings, account: str = "") -> Object:
    """The pod of a workload for one node: its own template, and what keeps it in its place."""
    metadata, spec = attempt.template.get("metadata") or {}, dict(attempt.template["spec"])
    hostname = node.labels.get("kubernetes.io/hostname", node.name)
    spec["nodeSelector"] = {**(spec.get("nodeSelector") or {}), "kubernetes.io/hostname": hostname}
    spec["tolerations"] = [*(spec.get("tolerations") or []), *tolerations(settings, [node])]
    grace = spec.get("terminationGracePeriodSeconds", LONGEST_GRACE)
    spec["terminationGracePeriodSeconds"] = min(grace, LONGEST_GRACE) if isinstance(grace, int) else grace
    if account:
        spec["serviceAccountName"] = account
    labels = {**(metadata.get("labels") or {}), **settings.labels()}
    annotations = metadata.get("annotations") or {}
    return {"metadata": {"name": name, "labels": labels, "annotations": annotations}, "spec": spec}


def judge_pod(raw: Mapping[str, Any], node: str, template: Mapping[str, Any], warnings: Sequence[str]) -> Step:
    """How far a pod came, by its status and the events about it."""
    status = raw.get("status") or {}
    if not (raw.get("spec") or {}).get("nodeName"):
        return _at(node, "accepted", "failed", f"it is not scheduled{_last(warnings)}")
    if status.get("phase") == "Succeeded":
        return _at(node, "ready", "passed", "it ran to its end, with exit code 0")
    for name, state, restarts, last in _states(status):
        waiting, ended = state.get("waiting") or {}, state.get("terminated") or last.get("terminated") or {}
        if waiting.get("reason") in _PULLS:
            return _at(node, "scheduled", "failed", _said(f"the image of container {name} cannot be had", waiting))
        if ended and (restarts or "terminated" in state):
            words = f"container {name} ended with exit code {ended.get('exitCode')}"
            if ended.get("reason") in ("StartError", "ContainerCannotRun"):
                return _at(node, "pulled", "failed", _said(f"container {name} does not start", ended))
            return _at(node, "started", "failed", f"{words}{_last(warnings)}")
        if waiting.get("reason") not in _STARTING:
            return _at(node, "pulled", "failed", _said(f"container {name} does not start", waiting))
    if not (status.get("containerStatuses") or []) or status.get("phase") == "Pending":
        return _at(node, "scheduled", "failed", f"it does not start{_last(warnings)}")
    if any(item["type"] == "Ready" and item["status"] == "True" for item in status.get("conditions") or []):
        probes = _probes(template)
        return _at(node, "ready", "passed", f"it is Ready{f', its {probes} answered' if probes else ''}")
    unready = [name for name, state, _, _ in _states(status) if "running" in state]
    words = f"container {', '.join(unready)} runs and does not become Ready"
    return _at(node, "started", "failed", f"{words}{_last(warnings)}")


def _placed(raw: Object | None) -> bool | None:
    return True if raw is not None and raw["spec"].get("nodeName") else None


def _settled(raw: Object | None) -> bool | None:
    """Whether nothing more is to be expected of a pod, for good or ill."""
    if raw is None:
        return None
    status = raw.get("status") or {}
    if is_ready(raw) is not None or status.get("phase") in ("Succeeded", "Failed"):
        return True
    for _, state, restarts, _ in _states(status):
        if (state.get("waiting") or {}).get("reason") in ("CrashLoopBackOff", "ImagePullBackOff", "InvalidImageName"):
            return True
        if restarts >= 2:
            return True
    return None


def _restarted(raw: Object | None) -> bool | None:
    return True if raw is None or any(restarts for _, _, restarts, _ in _states(raw.get("status") or {})) else None


def _states(status: Mapping[str, Any]) -> Iterator[tuple[str, Object, int, Object]]:
    """Every container that matters now: those of an init phase that ended well do not."""
    for item in status.get("initContainerStatuses") or []:
        state = item.get("state") or {}
        if (state.get("terminated") or {}).get("exitCode") != 0:
            yield item["name"], state, item.get("restartCount") or 0, item.get("lastState") or {}
    for item in status.get("containerStatuses") or []:
        yield item["name"], item.get("state") or {}, item.get("restartCount") or 0, item.get("lastState") or {}


def _hold(template: Mapping[str, Any]) -> float:
    """How long a container that is Ready is watched for what its liveness probe does to it."""
    probes = [each.get("livenessProbe") or {} for each in template["spec"].get("containers") or []]
    needed = [(each.get("initialDelaySeconds") or 0) + 2 * (each.get("periodSeconds") or 10) for each in probes if each]
    return min(float(max(needed, default=0)), LONGEST_HOLD)


def _probes(template: Mapping[str, Any]) -> str:
    containers = template["spec"].get("containers") or []
    found = [name.removesuffix("Probe") for name in _PROBES if any(each.get(name) for each in containers)]
    return f"{', '.join(found)} {'probe' if len(found) == 1 else 'probes'}" if found else ""


async def _warnings(namespace: Namespace, pod: str) -> list[str]:
    try:
        events = await namespace.client.list(EVENTS, namespace.name, fields=f"involvedObject.name={pod}")
    except ClusterError:
        return []
    return [
        f"{each.get('reason')}: {bounded(each.get('message') or '', 300)}"
        for each in events
        if each.get("type") == "Warning"
    ]


def _said(words: str, state: Mapping[str, Any]) -> str:
    told = f"{words}: {state.get('reason')}"
    return f"{told}: {bounded(str(state['message']), 500)}" if state.get("message") else told


def _last(warnings: Sequence[str]) -> str:
    return f"; {warnings[-1]}" if warnings else ""


def _at(node: str, reached: str, outcome: Outcome, reason: str) -> Step:
    return Step(node=node, reached=reached, outcome=outcome, reason=reason)


def _ended(node: Node, reached: str, outcome: Outcome, reason: str) -> Step:
    return _at(node.name, reached, outcome, bounded(reason, 1000))
