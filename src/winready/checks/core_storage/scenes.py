"""The scene on a node that is to be rebooted: servers of two containers, a service over them, volumes of each kind."""

from __future__ import annotations

from winready.checks.context import Context
from winready.checks.core_storage.after_reboot import (
    BESIDE,
    CONFIG,
    CPU_LIMIT,
    HOST,
    KEYS,
    MEMORY_LIMIT,
    ROOT,
    SCRATCH,
    Scene,
)
from winready.checks.core_storage.files import marker
from winready.checks.fixtures import read_service, service_object
from winready.checks.workloads import pinned_deployment
from winready.cluster.client import Object
from winready.cluster.commands import write_file
from winready.cluster.inventory import Node
from winready.cluster.namespaces import Namespace
from winready.cluster.pods import host_path, idle_container, netexec_container
from winready.cluster.probes import Try
from winready.cluster.resources import CONFIG_MAPS, DEPLOYMENTS, NODES, SERVICES

REPLICAS = 2
STAY: list[Object] = [
    {"key": f"node.kubernetes.io/{why}", "operator": "Exists", "effect": "NoExecute"}
    for why in ("not-ready", "unreachable")
]
"""A long reboot would end in an eviction, and new pods would hide that the node does not start its own again."""


def restarts(raw: Object | None) -> int:
    """How often the containers of a pod were started again."""
    return sum(item["restartCount"] for item in ((raw or {}).get("status") or {}).get("containerStatuses") or [])


async def set_up(ctx: Context, namespace: Namespace, node: Node, number: int) -> Scene:
    """Two servers on the node, and what is written before the reboot to be found after it."""
    name = f"boot-{number}"
    texts = {key: marker() for key in KEYS}
    folder = f"{ctx.world.host_folder}\\{name}"
    await namespace.create(CONFIG_MAPS, {"metadata": {"name": name}, "data": texts})
    service = read_service(await namespace.create(SERVICES, service_object(name, {"app": name})))
    await namespace.create(DEPLOYMENTS, _deployment(ctx, name, node, folder))
    pods = ctx.witnesses(await namespace.ready_pods({"app": name}, REPLICAS))
    raw = await ctx.world.client.get(NODES, node.name)
    earlier = {pod.uid: restarts(namespace.pod(pod.name)) for pod in pods}
    scene = Scene(node, name, service, pods, raw, earlier, texts, folder)
    await _write(scene)
    return scene


def _deployment(ctx: Context, name: str, node: Node, folder: str) -> Object:
    mounts = [{"name": path.removeprefix(f"{ROOT}\\"), "mountPath": path} for path in (CONFIG, SCRATCH, HOST)]
    limits = {"cpu": f"{CPU_LIMIT:g}", "memory": f"{MEMORY_LIMIT}"}
    resources = {"limits": limits, "requests": {"cpu": "10m", "memory": "100Mi"}}
    beside = idle_container(ctx.settings, name=BESIDE, resources=resources, volumeMounts=mounts)
    made = pinned_deployment(
        ctx.world, name, REPLICAS, {**netexec_container(ctx.settings), "volumeMounts": mounts}, node
    )
    spec = made["spec"]["template"]["spec"]
    spec["tolerations"] += STAY
    spec["containers"].append(beside)
    spec["volumes"] = [
        {"name": "config", "configMap": {"name": name}},
        {"name": "scratch", "emptyDir": {}},
        host_path("host", folder),
    ]
    return made


async def _write(scene: Scene) -> None:
    """Leave something on the node's disk, in a folder of the node and in one of the pod."""
    pod = scene.pods[0]
    for folder in (SCRATCH, HOST):
        path, text = f"{folder}\\kept.txt", marker()
        result = await pod.run(write_file(pod.os, path, text))
        if result.exit_code == 0:
            scene.kept[path] = text
    scene.writer = pod.uid


async def send_update(ctx: Context, scene: Scene) -> None:
    """Change every key of the scene's config map."""
    scene.texts = {key: marker() for key in KEYS}
    await ctx.world.client.patch(CONFIG_MAPS, scene.name, {"data": scene.texts}, scene.pods[0].namespace)


async def update_arrives(ctx: Context, scene: Scene, when: str) -> bool:
    """Whether the second container of a pod gets to see the change of every key."""
    pod = scene.pods[0]
    command = ["cmd", "/c", " & ".join(f"type {CONFIG}\\{key}" for key in scene.texts)]

    async def attempt() -> Try:
        result = await pod.run(command, container=BESIDE)
        text = result.stdout.decode(errors="replace")
        return Try(all(mark in text for mark in scene.texts.values()), text.strip() or "nothing", result)

    found = await ctx.probe.until(
        f"{pod.name} sees the change of its config map {when} the reboot",
        attempt,
        window=ctx.times.volume_update,
        pod=pod,
        command=command,
        expected=", ".join(scene.texts.values()),
    )
    return found.ok
