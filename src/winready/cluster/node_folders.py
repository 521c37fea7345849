"""What killed runs left on Windows nodes, folders and settings: found and removed by a short-lived pod on each node.

Only what carries the id of a run is touched, and only of runs that are over: whatever else somebody keeps beside it
stays.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass, field

from winready.cluster.cleanup import clean_up
from winready.cluster.client import Client
from winready.cluster.commands import lines, list_folder, powershell, remove_folder
from winready.cluster.errors import ApiError, ClusterError
from winready.cluster.failures import CheckBlocked
from winready.cluster.finishing import to_the_end
from winready.cluster.inventory import Inventory, Node
from winready.cluster.namespaces import Namespace
from winready.cluster.node_objects import find_objects, remove_object
from winready.cluster.pods import Pod, host_path, host_process_spec, idle_container, pinned, pod_object, pod_spec
from winready.cluster.resources import NAMESPACES, PODS
from winready.cluster.settings import HOST_FOLDER, RUN_ID, RUN_LABEL, Settings

MOUNT = "C:\\host"
AT_ONCE = 20
"""Pods at a time: a large cluster is swept, not flooded."""
FORBIDDEN = 403


@dataclass
class Swept:
    """What was found on nodes."""

    removed: list[str] = field(default_factory=list)
    """What is gone, or would be."""
    left: list[str] = field(default_factory=list)
    """What is still there, and nodes that nobody could look at."""


async def sweep_nodes(
    client: Client, settings: Settings, inventory: Inventory, *, run_id: str | None, patience: float, dry_run: bool
) -> Swept:
    """Remove what a run left (``None``: every run that is over) from all Windows nodes.

    ``settings`` carry an id of their own: what this starts can be told from any run, and is removed on every way out.
    """
    swept = Swept()
    nodes = [node for node in inventory.nodes if node.windows]
    swept.left += [f"unknown on node {node.name}: {node.unusable}" for node in nodes if node.unusable]
    usable = [node for node in nodes if not node.unusable]
    if not usable:
        return swept
    name = f"winready-{settings.run_id}-sweep"
    try:
        async with Namespace.open(client, settings, name, {node.name: node for node in nodes}) as namespace:
            sweep = _Sweep(namespace, inventory, run_id, patience, dry_run, swept)
            async with asyncio.TaskGroup() as group:
                for number, node in enumerate(usable, 1):
                    group.create_task(sweep.node(node, f"sweep-{number}"))
    except ClusterError as error:
        names = ", ".join(node.name for node in usable)
        swept.left.append(f"unknown on nodes {names}: {_trouble(error)}")
    finally:
        swept.left += await to_the_end(clean_up(client, run_id=settings.run_id, patience=patience, pause=0.3))
    return swept


@dataclass
class _Sweep:
    namespace: Namespace
    inventory: Inventory
    run_id: str | None
    patience: float
    dry_run: bool
    swept: Swept
    gate: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(AT_ONCE))

    async def node(self, node: Node, name: str) -> None:
        """Look at one node; what goes wrong there is said, and concerns no other."""
        async with self.gate:
            try:
                await self._with_pod(node, name, self._clear)
            except CheckBlocked as blocked:
                self.swept.left.append(f"unknown on node {node.name}: {blocked.reason}")
            except ClusterError as error:
                self.swept.left.append(f"unknown on node {node.name}: {_trouble(error)}")

    async def _with_pod(self, node: Node, name: str, work: Callable[[Pod, str], Awaitable[None]]) -> None:
        """A pod that sees the folder: on the host itself, or, where there is no such thing, as a volume."""
        settings = self.namespace.settings
        on_host = "hostprocess" not in self.inventory.missing
        mounts = [] if on_host else [{"name": "host", "mountPath": MOUNT}]
        sleep = powershell(f"Start-Sleep -Seconds {2 * self.patience:.0f}")
        container = idle_container(settings, command=sleep, args=[], volumeMounts=mounts)
        volumes = [] if on_host else [host_path("host", HOST_FOLDER)]
        spec = pinned(pod_spec("windows", [container], settings, [node], volumes=volumes, restartPolicy="Never"), node)
        await self.namespace.create(PODS, pod_object(name, host_process_spec(spec) if on_host else spec, settings))
        pod = await self.namespace.ready_pod(name, seconds=self.patience)
        if pod.impostor:
            raise CheckBlocked(pod.impostor)
        await work(pod, HOST_FOLDER if on_host else MOUNT)

    async def _clear(self, pod: Pod, root: str) -> None:
        """Remove the folders of runs that are over, and the one above them once it is empty."""
        listed = await pod.run(list_folder(root))
        found = [name for name in lines(listed.stdout) if RUN_ID.fullmatch(name) and self.run_id in (None, name)]
        # What a dry run finds would have lost its namespaces by then.
        going = set() if self.dry_run else await _going_on(self.namespace.client, found)
        for name in found:
            place = f"folder {HOST_FOLDER}\\{name} on node {pod.node.name}"
            if name in going:
                self.swept.left.append(f"{place} (its run is going on)")
            elif self.dry_run:
                self.swept.removed.append(place)
            else:
                await self._remove(pod, f"{root}\\{name}", place)
        if not self.dry_run and root == HOST_FOLDER:
            await pod.run(["cmd", "/c", "rmdir", root])
        if root == HOST_FOLDER:
            await self._clear_objects(pod)

    async def _clear_objects(self, pod: Pod) -> None:
        """Remove what runs that are over made in the configuration of the node; only a pod on the host can."""
        found = [item for item in await find_objects(pod) if self.run_id in (None, item.run_id)]
        going = set() if self.dry_run else await _going_on(self.namespace.client, [item.run_id for item in found])
        for item in found:
            place = f"{item} on node {pod.node.name}"
            if item.run_id in going:
                self.swept.left.append(f"{place} (its run is going on)")
            elif not self.dry_run and (trouble := await remove_object(pod, item)):
                self.swept.left.append(f"{place} ({trouble})")
            else:
                self.swept.removed.append(place)

    async def _remove(self, pod: Pod, path: str, place: str) -> None:
        removal = await pod.run(remove_folder(path))
        still = await pod.run(["cmd", "/c", "if", "exist", path, "exit", "1"])
        if still.exit_code:
            why = "; ".join(lines(removal.stderr or removal.stdout)) or "no reason given"
            self.swept.left.append(f"{place} ({why})")
        else:
            self.swept.removed.append(place)


async def _going_on(client: Client, runs: Collection[str]) -> set[str]:
    """Those of the runs that still have a namespace which is to stay: they may need their folders."""
    if not runs:
        return set()
    found = await client.list(NAMESPACES, labels=RUN_LABEL)
    staying = {item["metadata"]["labels"][RUN_LABEL] for item in found if not item["metadata"].get("deletionTimestamp")}
    return staying & set(runs)


def _trouble(error: ClusterError) -> str:
    if isinstance(error, ApiError) and error.code == FORBIDDEN:
        by_hand = f"look for folders named after runs below {HOST_FOLDER} yourself"
        return f"{error.message}; 'winready rbac --for cleanup' prints the rights for it, or {by_hand}"
    return error.message
