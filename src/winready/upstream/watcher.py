"""What the tests really ran: every pod in the namespaces of our e2e.test processes, where it was and what it answered.

Upstream's word that a test passed says nothing about the operating system it passed on. The watcher follows the
namespaces that carry ``e2e-run``, marks those of our own processes for clean-up, and makes containers on Windows nodes
say what they are while they live.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

import msgspec

from winready.cluster.client import Client, Object
from winready.cluster.commands import system_version
from winready.cluster.errors import ClusterError
from winready.cluster.evidence import PodFact
from winready.cluster.inventory import Node
from winready.cluster.resources import NAMESPACES, PODS, Resource
from winready.cluster.settings import RUN_LABEL, Settings
from winready.cluster.watch import Event
from winready.spec.windows import banner_build

E2E_RUN = "e2e-run"
ASK_SECONDS = 20.0
RETRY_SECONDS = 2.0
LAST_NEWS_SECONDS = 10.0


@dataclass
class Witnessed:
    """One pod that a test made."""

    fact: PodFact
    host_network: bool
    runtime_class: str
    images: dict[str, str]
    """Image to image id, per container."""
    impostor: str = ""


@dataclass
class Watcher:
    """Follows namespaces and pods until left; ``ours`` says whether a run id belongs to one of our processes."""

    client: Client
    settings: Settings
    nodes: dict[str, Node]
    ours: Callable[[str], bool]
    pods: dict[str, Witnessed] = field(default_factory=dict)
    """By uid."""
    _tasks: dict[str, asyncio.Task[None]] = field(default_factory=dict)
    _asked: set[str] = field(default_factory=set)
    _questions: set[asyncio.Task[None]] = field(default_factory=set)

    async def __aenter__(self) -> Self:
        self._tasks[""] = asyncio.create_task(self._follow_namespaces(), name="e2e namespaces")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with contextlib.suppress(ClusterError, TimeoutError):
            async with asyncio.timeout(ASK_SECONDS):
                await self._mark_the_rest()
        tasks = [*self._tasks.values(), *self._questions]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def in_namespaces(self, names: set[str]) -> list[Witnessed]:
        """The pods of these namespaces."""
        return [pod for pod in self.pods.values() if pod.fact.namespace in names]

    async def _follow_namespaces(self) -> None:
        async for event in self._follow(NAMESPACES, labels=E2E_RUN):
            metadata = event.object["metadata"]
            name, run = metadata["name"], metadata["labels"].get(E2E_RUN, "")
            if event.type == "DELETED" and name in self._tasks:
                # The last news of its pods may still be on the way.
                asyncio.get_running_loop().call_later(LAST_NEWS_SECONDS, self._tasks[name].cancel)
            if event.type == "DELETED" or not self.ours(run):
                continue
            if name not in self._tasks:
                self._tasks[name] = asyncio.create_task(self._follow_pods(name), name=f"pods of {name}")
            if RUN_LABEL not in metadata["labels"] and not metadata.get("deletionTimestamp"):
                await self._mark(name)

    async def _follow(self, resource: Resource, namespace: str | None = None, labels: str = "") -> AsyncIterator[Event]:
        """Watch for as long as tests run; an API server that is away for long is only waited for."""
        while True:
            try:
                async for event in self.client.watch(resource, namespace, labels=labels):
                    yield event
            except ClusterError:
                await asyncio.sleep(RETRY_SECONDS)

    async def _mark_the_rest(self) -> None:
        """A process that was killed may have left a namespace that was not heard of yet."""
        for item in await self.client.list(NAMESPACES, labels=E2E_RUN):
            metadata = item["metadata"]
            labels = metadata["labels"]
            if self.ours(labels[E2E_RUN]) and RUN_LABEL not in labels and not metadata.get("deletionTimestamp"):
                await self._mark(metadata["name"])

    async def _mark(self, namespace: str) -> None:
        """Make the namespace one of the run, so that clean-up finds it whatever becomes of e2e.test."""
        with contextlib.suppress(ClusterError):
            labels = {RUN_LABEL: self.settings.run_id}
            await self.client.patch(NAMESPACES, namespace, {"metadata": {"labels": labels}})

    async def _follow_pods(self, namespace: str) -> None:
        async for event in self._follow(PODS, namespace):
            self._note(event.object)

    def _note(self, raw: Object) -> None:
        metadata, spec, status = raw["metadata"], raw["spec"], raw.get("status") or {}
        node = self.nodes.get(spec.get("nodeName") or "")
        if node is None:
            return
        uid = metadata["uid"]
        known = self.pods.get(uid)
        states = status.get("containerStatuses") or []
        images = {item["image"]: item.get("imageID") or "" for item in states}
        fact = PodFact(
            namespace=metadata["namespace"],
            name=metadata["name"],
            uid=uid,
            node=node.name,
            os="windows" if node.windows else "linux",
            build=known.fact.build if known else "",
            node_build=node.build,
            image=", ".join(dict.fromkeys(item["image"] for item in spec["containers"])),
            image_id=", ".join(dict.fromkeys(filter(None, images.values()))),
            addresses=[item["ip"] for item in status.get("podIPs") or []],
        )
        self.pods[uid] = Witnessed(
            fact,
            bool(spec.get("hostNetwork")),
            spec.get("runtimeClassName") or "",
            {**(known.images if known else {}), **images},
            known.impostor if known else "",
        )
        running = [item["name"] for item in states if "running" in (item.get("state") or {})]
        if node.windows and running and uid not in self._asked:
            self._asked.add(uid)
            question = asyncio.create_task(self._ask(uid, metadata["namespace"], metadata["name"], running[0]))
            self._questions.add(question)
            question.add_done_callback(self._questions.discard)

    async def _ask(self, uid: str, namespace: str, name: str, container: str) -> None:
        """Ask a container what it is. One that ended meanwhile stays unproven, which is no accusation."""
        answers: dict[str, str] = {}
        for os in ("windows", "linux"):
            with contextlib.suppress(ClusterError):
                result = await self.client.exec(namespace, name, container, system_version(os), deadline=ASK_SECONDS)
                answers[os] = result.stdout.decode(errors="replace").strip() if result.exit_code == 0 else ""
            if build := banner_build(answers.get("windows", "")):
                pod = self.pods[uid]
                pod.fact = msgspec.structs.replace(pod.fact, build=build)
                return
        # The tools in Windows test images know uname, too, and say Windows_NT.
        if answers.get("linux") == "Linux":
            pod = self.pods[uid]
            pod.impostor = (
                f"pod {namespace}/{name} on Windows node {pod.fact.node} is not a Windows container: "
                f"asked what it is, it answers 'Linux'"
            )
