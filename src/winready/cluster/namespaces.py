"""A namespace of a run: its pods are followed by one watch, and everything in it goes when it goes."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TypeVar

from winready.cluster.absence import BRING_BACK, Absences, NodeAway, went_away
from winready.cluster.activity import doing
from winready.cluster.client import Client, Object
from winready.cluster.commands import system_version
from winready.cluster.errors import ApiError, ClusterError, ExecFailed, Refused
from winready.cluster.evidence import bounded
from winready.cluster.failures import CheckBlocked
from winready.cluster.images import Used, used_images
from winready.cluster.inventory import Node, read_node
from winready.cluster.obstacles import open_to_traffic, passes_soon, refusal_of, refused_workloads, still_pulling
from winready.cluster.pods import Answer, Pod, handle, pinned_to
from winready.cluster.prepared import claim
from winready.cluster.refusals import Refusal
from winready.cluster.resources import EVENTS, NAMESPACES, NODES, PODS, Resource
from winready.cluster.settings import Settings
from winready.cluster.timing import LEAST_ATTEMPTS
from winready.cluster.watch import number_of
from winready.spec.windows import banner_build

T = TypeVar("T")
ANY = ""
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
        self.made: set[Resource] = set()
        """Kinds of objects that were asked for here."""
        self._refused: dict[str, Refusal] = {}
        """Workloads that somebody refused pods to when we last looked."""
        self._pods: dict[str, Object] = {}
        self._waiting: dict[str, set[asyncio.Event]] = {}
        """Who waits for a change of a pod, by its name, or of any: waking all for each would cost their square."""
        self._looking = asyncio.Lock()
        self._looked = float("-inf")
        self._refused_before: dict[str, Refusal] = {}
        self._absences = Absences(client, settings.timing, nodes)
        self._placed: dict[str, str] = {}
        """The node that each pod is for, also of those that are gone."""
        self._broken: ClusterError | None = None

    @classmethod
    @asynccontextmanager
    async def open(
        cls, client: Client, settings: Settings, name: str, nodes: dict[str, Node]
    ) -> AsyncIterator[Namespace]:
        """Create the namespace, or take one that was prepared, and follow its pods.

        Removal is the run's business, at its end.
        """
        if settings.namespace_prefix:
            await claim(client, settings, name)
        else:
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
        self.made.add(resource)
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
        doing(f"waits for pod {name}")
        found = await self._until(
            lambda: is_ready(self._pods.get(name), other_than),
            seconds,
            lambda: self.why_not_ready(name),
            # That of a StatefulSet is called after it.
            workload=name.rpartition("-")[0],
            pods=lambda: [raw for raw in [self._pods.get(name)] if raw],
            pod=name,
        )
        return await self.prove(found)

    async def ready_pods(self, labels: dict[str, str], count: int, *, seconds: float | None = None) -> list[Pod]:
        """Wait until exactly ``count`` pods with these labels exist and all are Ready."""
        doing(f"waits for {count} pods")
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
        doing(f"removes pod {pod.name} from {pod.node.name}")
        await self.client.delete(PODS, pod.name, self.name, uid=pod.uid)
        patience = self.settings.timing.table.pod_delete
        return await self.seen(lambda: self._gone(pod) or None, patience, pod=pod.name) is not None

    def _gone(self, pod: Pod) -> bool:
        raw = self._pods.get(pod.name)
        return raw is None or raw["metadata"]["uid"] != pod.uid

    def pod(self, name: str) -> Object | None:
        """A pod as it was last seen."""
        return self._pods.get(name)

    def pods(self, labels: dict[str, str]) -> list[Object]:
        """The pods with these labels as they were last seen."""
        return [raw for raw in self._pods.values() if labels.items() <= (raw["metadata"].get("labels") or {}).items()]

    def running_on(self, node: Node) -> list[Pod]:
        """The pods of a node that ran when they were last seen."""
        found = [raw for raw in self._pods.values() if raw["spec"].get("nodeName") == node.name]
        running = [raw for raw in found if (raw.get("status") or {}).get("phase") == "Running"]
        return [handle(self.client, self.settings, raw, self.nodes) for raw in running]

    async def prove(self, raw: Object) -> Pod:
        """Make the pod's container say what it is; one of the other system does not get past this."""
        await self.open_to_traffic()
        if (place := raw["spec"]["nodeName"]) not in self.nodes:
            # It joined after the inventory was taken; what runs there can be seen all the same.
            self.nodes[place] = read_node(await self.client.get(NODES, place))
        pod = handle(self.client, self.settings, raw, self.nodes)
        timing = self.settings.timing
        end = asyncio.get_running_loop().time() + timing.deadline(timing.table.exec_ready)
        asked = 0
        while True:
            asked += 1
            try:
                result = await pod.run(system_version(pod.os), again=False)
                break
            except ExecFailed as error:
                if pod.os == "windows" and (answer := await _answers_as_linux(pod)):
                    return self._exposed(pod, answer)
                if asked >= LEAST_ATTEMPTS and asyncio.get_running_loop().time() > end:
                    _, away = await pod.as_it_is()
                    if not away:
                        raise ExecFailed(
                            f"pod {pod.namespace}/{pod.name} on node {pod.node.name} does not answer exec: "
                            f"{error.message}",
                            f"try 'kubectl exec -n {pod.namespace} {pod.name} -- {' '.join(system_version(pod.os))}'",
                        ) from None
                    asked, end = 0, asyncio.get_running_loop().time() + timing.deadline(timing.table.exec_ready)
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
                name = event.object["metadata"]["name"]
                if event.type == "DELETED":
                    self._pods.pop(name, None)
                else:
                    # Half of an object says who wrote which field; of thousands of pods nobody keeps that.
                    event.object["metadata"].pop("managedFields", None)
                    self._pods[name] = event.object
                    self._note(event.object)
                self._wake(name, ANY)
        except ClusterError as error:
            self._broken = error
            self._wake(*self._waiting)

    def _wake(self, *names: str) -> None:
        for name in names:
            for waiting in self._waiting.get(name, ()):
                waiting.set()

    def _note(self, raw: Object) -> None:
        name, spec = raw["metadata"]["name"], raw["spec"]
        os = (spec.get("os") or {}).get("name")
        selector = (spec.get("nodeSelector") or {}).get("kubernetes.io/os")
        if os is None or selector != os:
            self.misplaced[name] = f"spec.os is {os or 'missing'}, its selector says {selector or 'nothing'}"
        node = self.nodes.get(spec.get("nodeName") or "")
        if meant := node or next((each for each in self.nodes.values() if pinned_to(spec, each)), None):
            self._placed[name] = meant.name
        if node is not None and node.windows:
            self.windows_pods.add(raw["metadata"]["uid"])
            self.images.update(used_images(raw))

    async def open_to_traffic(self) -> None:
        """See to it that policies of others in this namespace do not speak for the cluster's network."""
        async with self._opening:
            if self.policies is None:
                self.policies = await open_to_traffic(self.client, self.settings, self.name)

    async def seen(
        self,
        found: Callable[[], T | None],
        seconds: float,
        *,
        workload: str | None = None,
        pod: str = ANY,
        places: Callable[[], set[str]] = set,
    ) -> T | None:
        """Wait until a change of pods (of this name, if given) makes ``found`` answer, at most ``seconds``: then None.

        Workloads whose pods somebody refuses (that of this name, if given) are not waited for, nor nodes (of these
        ``places``) that went away.
        """
        waiting = asyncio.Event()
        self._waiting.setdefault(pod, set()).add(waiting)
        try:
            return await self._seen(found, seconds, workload, waiting, places)
        finally:
            self._waiting[pod].discard(waiting)

    async def _seen(
        self,
        found: Callable[[], T | None],
        seconds: float,
        workload: str | None,
        waiting: asyncio.Event,
        places: Callable[[], set[str]],
    ) -> T | None:
        timing, loop = self.settings.timing, asyncio.get_running_loop()
        end = loop.time() + timing.deadline(seconds)
        silence = loop.time() + timing.deadline(timing.table.node_silent)
        away: dict[str, str] = {}
        while True:
            look = loop.time() + timing.deadline(timing.table.refusal_look)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout_at(min(end, look)):
                    while True:
                        if self._broken:
                            raise self._broken
                        if (result := found()) is not None:
                            return result
                        waiting.clear()
                        await waiting.wait()
            if look >= end:
                # What a watch did not tell, a list may.
                await self._look_again()
                return found()
            await self._require_no_refusal(workload)
            if loop.time() > silence:
                # As with refusals, what is so at two looks stays so.
                before, away = away, await self._absences.among(places())
                if lost := {name: how for name, how in away.items() if name in before}:
                    raise NodeAway(went_away(lost), next_step=BRING_BACK)

    async def _look_again(self) -> None:
        """Learn of every pod as it is now, whatever the watch has missed."""
        listed, version = await self.client.list_versioned(PODS, self.name)
        later = {name: raw for name, raw in self._pods.items() if _version(raw) > number_of(version)}
        self._pods = {raw["metadata"]["name"]: raw for raw in listed} | later
        for raw in listed:
            self._note(raw)
        self._wake(*self._waiting)

    async def _require_no_refusal(self, workload: str | None) -> None:
        timing, loop = self.settings.timing, asyncio.get_running_loop()
        async with self._looking:
            # One look is for everybody who waits here.
            if loop.time() >= self._looked + timing.deadline(timing.table.refusal_look) * 0.9:
                found = await refused_workloads(self.client, self.name, self.made)
                self._refused_before, self._refused = self._refused, found
                self._looked = loop.time()
        for what, refusal in self._refused.items():
            if what in self._refused_before and workload in (None, what.rpartition(" ")[2]):
                raise await refusal_of(self.client, self.name, what, refusal)

    async def _until(
        self,
        found: Callable[[], T | None],
        seconds: float | None,
        why: Callable[[], str],
        *,
        workload: str,
        pods: Callable[[], list[Object]],
        pod: str = ANY,
    ) -> T:
        table = self.settings.timing.table
        # Once the image is there, the pod has yet to start.
        patience = seconds or table.image_pull + table.windows_pod_start

        def places() -> set[str]:
            # Who says how long to wait knows what he waits for, such as a node that reboots.
            names = [] if seconds else [raw["metadata"]["name"] for raw in pods()] or [pod]
            return {self._placed[name] for name in names if name in self._placed}

        result = await self.seen(found, patience, workload=workload, pod=pod, places=places)
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


def _version(raw: Object) -> int:
    return number_of(raw["metadata"].get("resourceVersion"))


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
