"""A namespace of a run: its pods are followed by one watch, and everything in it goes when it goes."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TypeVar

from winready.cluster.client import Client, Object
from winready.cluster.commands import system_version
from winready.cluster.errors import ApiError, ClusterError, ExecFailed, Refused
from winready.cluster.evidence import bounded
from winready.cluster.failures import CheckBlocked
from winready.cluster.images import Used, used_images
from winready.cluster.inventory import Node, read_node
from winready.cluster.obstacles import open_to_traffic, passes_soon, refusal_of, refused_workloads, still_pulling
from winready.cluster.pods import Answer, Pod, handle
from winready.cluster.refusals import Refusal
from winready.cluster.resources import EVENTS, NAMESPACES, NODES, PODS, Resource
from winready.cluster.settings import Settings
from winready.spec.windows import banner_build

T = TypeVar("T")
PULL_STEP = "bring the image to that node beforehand, or take it from a nearer registry with --image-registry"


class Namespace:
    """One namespace and what happens to its pods."""

    def __init__(self, client: Client, settings: Settings, name: str, nodes: dict[str, Node]) -> None:
        self.client = client
        self.settings = settings
        self.name = name
        self.nodes = nodes
        self.windows_pods: set[str] = set()
        """Uids of every Windows pod that was ever seen here."""
        self.misplaced: dict[str, str] = {}
        """Pods that lost their OS field or selector on the way, and how."""
        self.impostors: dict[str, str] = {}
        """Pods that are not containers of their node's system, and what gave them away."""
        self.impostor_nodes: dict[str, str] = {}
        """The same by node; of several the last."""
        self.answers: set[Answer] = set()
        """What containers said of themselves when they were asked."""
        self.images: set[Used] = set()
        """What containers of Windows pods ran, as their runtime says."""
        self.policies: str | None = None
        """Policies that others wrote into this namespace; None before anybody looked."""
        self._opening = asyncio.Lock()
        self._made: set[Resource] = set()
        self._refused: dict[str, Refusal] = {}
        """Workloads that somebody refused pods to when we last looked."""
        self._pods: dict[str, Object] = {}
        self._changed = asyncio.Condition()
        self._broken: ClusterError | None = None

    @classmethod
    @asynccontextmanager
    async def open(
        cls, client: Client, settings: Settings, name: str, nodes: dict[str, Node]
    ) -> AsyncIterator[Namespace]:
        """Create the namespace and follow its pods; removal is the run's business, at its end."""
        labels = settings.labels(**{"pod-security.kubernetes.io/enforce": "privileged"})
        await client.create(NAMESPACES, {"metadata": {"name": name, "labels": labels}})
        namespace = cls(client, settings, name, nodes)
        follower = asyncio.create_task(namespace._follow(), name=f"pods of {name}")
        try:
            yield namespace
        finally:
            follower.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await follower

    async def create(self, resource: Resource, obj: Object) -> Object:
        """Create an object here, with the run's labels; who refuses it is named."""
        metadata = obj["metadata"]
        labels = {**self.settings.labels(), **(metadata.get("labels") or {})}
        labelled = {**obj, "metadata": {**metadata, "labels": labels}}
        self._made.add(resource)
        try:
            return await self._create(resource, labelled)
        except Refused as error:
            what = f"{resource.kind} {metadata['name']}"
            raise await refusal_of(self.client, self.name, what, error.refusal) from None

    async def admitted(self, resource: Resource, obj: Object) -> Object:
        """What would become of an object on its way in, without creating it; raises `Refused`."""
        return await self._create(resource, obj, dry_run=True)

    async def _create(self, resource: Resource, obj: Object, *, dry_run: bool = False) -> Object:
        """Create an object as soon as a sound cluster takes it."""
        timing = self.settings.timing
        async for _ in timing.attempts(timing.table.admission):
            try:
                return await self.client.create(resource, obj, self.name, dry_run=dry_run)
            except ApiError as error:
                if not passes_soon(error):
                    raise
        return await self.client.create(resource, obj, self.name, dry_run=dry_run)

    async def delete(self, resource: Resource, name: str) -> None:
        """Ask for the deletion of an object here."""
        await self.client.delete(resource, name, self.name)

    async def ready_pod(self, name: str, *, other_than: str = "", seconds: float | None = None) -> Pod:
        """Wait until a pod of that name is Ready (and is not the one with uid ``other_than``)."""
        found = await self._until(
            lambda: is_ready(self._pods.get(name), other_than),
            seconds,
            lambda: self.why_not_ready(name),
            # That of a StatefulSet is called after it.
            workload=name.rpartition("-")[0],
            pods=lambda: [raw for raw in [self._pods.get(name)] if raw],
        )
        return await self.prove(found)

    async def ready_pods(self, labels: dict[str, str], count: int, *, seconds: float | None = None) -> list[Pod]:
        """Wait until exactly ``count`` pods with these labels exist and all are Ready."""
        found = await self._until(
            lambda: self._all_ready(labels, count),
            seconds,
            lambda: self._why_not_all(labels, count),
            workload=labels.get("app", ""),
            pods=lambda: self.pods(labels),
        )
        return list(await asyncio.gather(*(self.prove(raw) for raw in found)))

    async def gone_pod(self, pod: Pod) -> bool:
        """Delete a pod and wait until nothing is left of it."""
        await self.client.delete(PODS, pod.name, self.name, uid=pod.uid)
        return await self.seen(lambda: self._gone(pod) or None, self.settings.timing.table.pod_delete) is not None

    def _gone(self, pod: Pod) -> bool:
        raw = self._pods.get(pod.name)
        return raw is None or raw["metadata"]["uid"] != pod.uid

    def pod(self, name: str) -> Object | None:
        """A pod as it was last seen."""
        return self._pods.get(name)

    def pods(self, labels: dict[str, str]) -> list[Object]:
        """The pods with these labels as they were last seen."""
        return [raw for raw in self._pods.values() if labels.items() <= (raw["metadata"].get("labels") or {}).items()]

    async def prove(self, raw: Object) -> Pod:
        """Make the pod's container say what it is; one of the other system does not get past this."""
        await self.open_to_traffic()
        if (place := raw["spec"]["nodeName"]) not in self.nodes:
            # It joined after the inventory was taken; what runs there can be seen all the same.
            self.nodes[place] = read_node(await self.client.get(NODES, place))
        pod = handle(self.client, self.settings, raw, self.nodes)
        timing = self.settings.timing
        end = asyncio.get_running_loop().time() + timing.deadline(timing.table.exec_ready)
        while True:
            try:
                result = await pod.run(system_version(pod.os), again=False)
                break
            except ExecFailed as error:
                if pod.os == "windows" and (answer := await _answers_as_linux(pod)):
                    return self._exposed(pod, answer)
                if asyncio.get_running_loop().time() > end:
                    raise ExecFailed(
                        f"pod {pod.namespace}/{pod.name} on node {pod.node.name} does not answer exec: {error.message}",
                        f"try 'kubectl exec -n {pod.namespace} {pod.name} -- {' '.join(system_version(pod.os))}'",
                    ) from None
            await timing.pause(timing.table.poll)
        answer = result.stdout.decode(errors="replace").strip()
        build = banner_build(answer) if pod.os == "windows" else answer
        self.answers.add(Answer(pod.node.name, pod.os, build or bounded(answer, 100), pod.on_host))
        genuine = bool(build) if pod.os == "windows" else build == "Linux"
        return replace(pod, build=build) if genuine else self._exposed(pod, answer or "nothing")

    def _exposed(self, pod: Pod, answer: str) -> Pod:
        self.impostors[pod.name] = (
            f"pod {pod.namespace}/{pod.name} on {pod.os.capitalize()} node {pod.node.name} is not a "
            f"{pod.os.capitalize()} container: "
            f"asked what it is, it answers {answer!r}"
        )
        self.impostor_nodes[pod.node.name] = self.impostors[pod.name]
        return replace(pod, impostor=self.impostors[pod.name])

    async def _follow(self) -> None:
        try:
            async for event in self.client.watch(PODS, self.name):
                async with self._changed:
                    name = event.object["metadata"]["name"]
                    if event.type == "DELETED":
                        self._pods.pop(name, None)
                    else:
                        self._pods[name] = event.object
                        self._note(event.object)
                    self._changed.notify_all()
        except ClusterError as error:
            async with self._changed:
                self._broken = error
                self._changed.notify_all()

    def _note(self, raw: Object) -> None:
        name, spec = raw["metadata"]["name"], raw["spec"]
        os = (spec.get("os") or {}).get("name")
        selector = (spec.get("nodeSelector") or {}).get("kubernetes.io/os")
        if os is None or selector != os:
            self.misplaced[name] = f"spec.os is {os or 'missing'}, its selector says {selector or 'nothing'}"
        node = self.nodes.get(spec.get("nodeName") or "")
        if node is not None and node.windows:
            self.windows_pods.add(raw["metadata"]["uid"])
            self.images.update(used_images(raw))

    async def open_to_traffic(self) -> None:
        """See to it that policies of others in this namespace do not speak for the cluster's network."""
        async with self._opening:
            if self.policies is None:
                self.policies = await open_to_traffic(self.client, self.settings, self.name)

    async def seen(self, found: Callable[[], T | None], seconds: float, *, workload: str | None = None) -> T | None:
        """Wait until a change of pods makes ``found`` answer, or ``seconds`` cluster seconds have passed: then None.

        Workloads whose pods somebody refuses (that of this name, if given) are not waited for.
        """
        timing, loop = self.settings.timing, asyncio.get_running_loop()
        end = loop.time() + timing.deadline(seconds)
        while True:
            look = loop.time() + timing.deadline(timing.table.refusal_look)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout_at(min(end, look)), self._changed:
                    while True:
                        if self._broken:
                            raise self._broken
                        if (result := found()) is not None:
                            return result
                        await self._changed.wait()
            if look >= end:
                return None
            await self._require_no_refusal(workload)

    async def _require_no_refusal(self, workload: str | None) -> None:
        before, self._refused = self._refused, await refused_workloads(self.client, self.name, self._made)
        for what, refusal in self._refused.items():
            if what in before and workload in (None, what.rpartition(" ")[2]):
                raise await refusal_of(self.client, self.name, what, refusal)

    async def _until(
        self,
        found: Callable[[], T | None],
        seconds: float | None,
        why: Callable[[], str],
        *,
        workload: str,
        pods: Callable[[], list[Object]],
    ) -> T:
        table = self.settings.timing.table
        # Once the image is there, the pod has yet to start.
        patience = seconds or table.image_pull + table.windows_pod_start
        result = await self.seen(found, patience, workload=workload)
        if result is not None:
            return result
        if words := await self.pulling(patience, pods()):
            raise CheckBlocked(words, next_step=PULL_STEP)
        raise CheckBlocked(
            f"{why()} (waited {patience:g} s){await self.last_warning()}",
            next_step=f"'kubectl describe pods -n {self.name}' while the run is going on shows more",
        )

    async def pulling(self, waited: float, pods: list[Object]) -> str:
        """Which of these pods is not Ready because its image is still on its way; empty when none is."""
        late = [raw for raw in pods if raw["spec"].get("nodeName") and not is_ready(raw)]
        with contextlib.suppress(ClusterError):
            return await still_pulling(self.client, self.name, late, waited / 60)
        return ""

    def _all_ready(self, labels: dict[str, str], count: int) -> list[Object] | None:
        mine = self.pods(labels)
        ready = [raw for raw in mine if is_ready(raw)]
        return ready if len(ready) == len(mine) == count else None

    def _why_not_all(self, labels: dict[str, str], count: int) -> str:
        mine = self.pods(labels)
        waiting = [raw["metadata"]["name"] for raw in mine if not is_ready(raw)]
        if waiting:
            return self.why_not_ready(waiting[0])
        return f"{len(mine)} of {count} pods with {labels} exist in {self.name}"

    def why_not_ready(self, name: str) -> str:
        """What keeps a pod from being Ready, for people."""
        raw = self._pods.get(name)
        if raw is None:
            return f"pod {self.name}/{name} does not exist"
        status = raw.get("status") or {}
        where = f"pod {self.name}/{name} on node {raw['spec'].get('nodeName') or '(none)'}"
        for condition in status.get("conditions") or []:
            if condition["type"] == "PodScheduled" and condition["status"] == "False":
                return f"{where} is not scheduled: {condition.get('message')}"
        for item in status.get("containerStatuses") or []:
            waiting = (item.get("state") or {}).get("waiting") or {}
            if waiting.get("reason") not in (None, "ContainerCreating", "PodInitializing"):
                return f"{where} does not start: {waiting['reason']}: {waiting.get('message') or ''}".rstrip(": ")
        reason = status.get("reason") or status.get("phase") or "no status"
        return f"{where} does not become Ready ({reason})"

    async def last_warning(self) -> str:
        """The last warning of the namespace, as the end of a sentence."""
        with contextlib.suppress(ClusterError):
            events = await self.client.list(EVENTS, self.name, fields="type=Warning")
            texts = dict.fromkeys(f"{item.get('reason')}: {bounded(item.get('message') or '', 300)}" for item in events)
            if texts:
                return "; last warning: " + list(texts)[-1]
        return ""


def is_ready(raw: Object | None, other_than: str = "") -> Object | None:
    """The pod, if it is Ready, is to stay, and has another uid than the one given."""
    if raw is None or raw["metadata"]["uid"] == other_than or raw["metadata"].get("deletionTimestamp"):
        return None
    status = raw.get("status") or {}
    ready = any(item["type"] == "Ready" and item["status"] == "True" for item in status.get("conditions") or [])
    return raw if ready and status.get("podIPs") else None


async def _answers_as_linux(pod: Pod) -> str:
    try:
        result = await pod.run(system_version("linux"), again=False)
    except ExecFailed:
        return ""
    answer = result.stdout.decode(errors="replace").strip()
    # The tools in Windows test images know uname, too, and say Windows_NT.
    return answer if result.exit_code == 0 and answer == "Linux" else ""
