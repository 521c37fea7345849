"""What killed runs left on Windows nodes, folders and settings: found and removed by a short-lived pod on each node.

Only what carries the id of a run is touched, and only of runs that are over: whatever else somebody keeps beside it
stays.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, field

import msgspec

from winready.cluster.absence import REMOVED
from winready.cluster.cleanup import clean_up, objects_of
from winready.cluster.client import Client
from winready.cluster.commands import lines, list_folder, powershell, remove_folder
from winready.cluster.errors import ApiError, ClusterError, ExecFailed, Forbidden
from winready.cluster.failures import CheckBlocked
from winready.cluster.finishing import to_the_end
from winready.cluster.inventory import Inventory, Node, read_node, take_inventory
from winready.cluster.namespaces import Namespace
from winready.cluster.node_objects import find_objects, remove_object
from winready.cluster.pods import Pod, host_path, host_process_spec, idle_container, pinned, pod_object, pod_spec
from winready.cluster.prepared import KINDS, empty, objects_in
from winready.cluster.resources import NAMESPACES, NODES, PODS
from winready.cluster.settings import HOST_FOLDER, RUN_ID, RUN_LABEL, Settings

MOUNT = "C:\\host"
AT_ONCE = 20
"""Pods at a time: a large cluster is swept, not flooded."""
FORBIDDEN = 403
LOOK_SECONDS = 5.0
SILENT_SECONDS = 120.0
"""Until the cluster says of any node that it went down; wall seconds, as the others."""
REBOOT_SHARE = 1.5
"""How long a node that is away is waited for, by the patience with everything else."""


@dataclass
class Swept:
    """What was found on nodes."""

    removed: list[str] = field(default_factory=list)
    """What is gone, or would be."""
    left: list[str] = field(default_factory=list)
    """What is still there, and nodes that nobody could look at."""


async def sweep(
    client: Client,
    settings: Settings,
    *,
    run_id: str | None,
    patience: float,
    dry_run: bool,
    objects_only: bool,
    prepared: Sequence[str] = (),
) -> Swept:
    """Remove whatever a run left (``None``: any run that is over): objects first, then what is on Windows nodes.

    ``prepared``: the namespaces of such runs that were made by somebody else, and stay.
    """
    swept = Swept()
    if prepared and dry_run:
        swept.removed = await objects_in(client, prepared, run_id)
    elif prepared:
        kinds = dict.fromkeys(prepared, KINDS)
        swept.left = await empty(client, kinds, run_id=run_id, patience=patience, pause=0.3)
    elif dry_run:
        swept.removed = await objects_of(client, run_id)
    else:
        swept.left = await clean_up(client, run_id=run_id, patience=patience, pause=0.3)
    if not objects_only and not any(item.startswith("unknown") for item in swept.left):
        inventory = await take_inventory(client)
        on_disk = await sweep_nodes(client, settings, inventory, run_id=run_id, patience=patience, dry_run=dry_run)
        swept.removed += on_disk.removed
        swept.left += on_disk.left
    return swept


async def sweep_nodes(
    client: Client, settings: Settings, inventory: Inventory, *, run_id: str | None, patience: float, dry_run: bool
) -> Swept:
    """Remove what a run left (``None``: every run that is over) from all Windows nodes.

    ``settings`` carry an id of their own: what this starts can be told from any run, and is removed on every way out.
    """
    swept = Swept()
    nodes = [node for node in inventory.nodes if node.windows]
    # A killed run may have rebooted a node; that passes.
    usable = [node for node in nodes if not node.unusable or (node.away and not dry_run)]
    swept.left += [f"unknown on node {node.name}: {node.unusable}" for node in nodes if node not in usable]
    if not usable:
        return swept
    prepared = bool(settings.namespace_prefix)
    name = settings.namespace("host" if prepared else "sweep")
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
        own = settings.run_id
        going = (
            empty(client, {name: (PODS,)}, run_id=own, patience=patience, pause=0.3)
            if prepared
            else clean_up(client, run_id=own, patience=patience, pause=0.3)
        )
        swept.left += await to_the_end(going)
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
            trouble = await self._try(node, name)
            if trouble and not self.dry_run and await self._fell(node, trouble):
                trouble = await self._try(node, f"{name}-again")
            if isinstance(trouble, CheckBlocked):
                self.swept.left.append(f"unknown on node {node.name}: {trouble.reason}")
            elif trouble:
                self.swept.left.append(f"unknown on node {node.name}: {_trouble(trouble)}")

    async def _try(self, node: Node, name: str) -> CheckBlocked | ClusterError | None:
        """Look at a node as soon as it is there; what went wrong."""
        try:
            await self._until_back(node)
            await self._with_pod(node, name, self._clear)
        except (CheckBlocked, ClusterError) as trouble:
            return trouble
        return None

    async def _until_back(self, node: Node) -> None:
        """Wait for a node that is away, as long as it may take Windows to start again."""
        loop = asyncio.get_running_loop()
        end = loop.time() + REBOOT_SHARE * self.patience
        while True:
            seen = await self._seen(node)
            if not seen.unusable:
                return
            if not seen.away or self.dry_run or loop.time() > end:
                raise CheckBlocked(seen.unusable)
            await asyncio.sleep(LOOK_SECONDS)

    async def _fell(self, node: Node, trouble: CheckBlocked | ClusterError) -> bool:
        """Whether a node went down meanwhile: one whose pods answer no more is silent long before it is said to be."""
        loop = asyncio.get_running_loop()
        end = loop.time() + (min(SILENT_SECONDS, self.patience) if isinstance(trouble, ExecFailed) else 0.0)
        while True:
            seen = await self._seen(node)
            if seen.away or seen.boot_id != node.boot_id:
                return not node.away
            if loop.time() >= end:
                return False
            await asyncio.sleep(LOOK_SECONDS)

    async def _seen(self, node: Node) -> Node:
        raw = await self.namespace.client.find(NODES, node.name)
        return read_node(raw) if raw else msgspec.structs.replace(node, unusable=REMOVED)

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
    try:
        found = await client.list(NAMESPACES, labels=RUN_LABEL)
    except Forbidden:
        # Beside prepared namespaces only one run is looked for, and it has lost what it had there.
        return set()
    staying = {item["metadata"]["labels"][RUN_LABEL] for item in found if not item["metadata"].get("deletionTimestamp")}
    return staying & set(runs)


def _trouble(error: ClusterError) -> str:
    if isinstance(error, ApiError) and error.code == FORBIDDEN:
        by_hand = f"look for folders named after runs below {HOST_FOLDER} yourself"
        return f"{error.message}; 'winready rbac --for cleanup' prints the rights for it, or {by_hand}"
    return error.message
