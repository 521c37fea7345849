"""Volumes that the kubelet provides appear in Windows pods and follow their sources."""

from winready.checks.context import Context
from winready.checks.core_storage.files import expect_lines, marker, write_line
from winready.checks.registry import check
from winready.cluster.client import Object
from winready.cluster.commands import lines, read_file, write_file
from winready.cluster.failures import CheckFailed
from winready.cluster.inventory import Node
from winready.cluster.pods import Pod, pause_container
from winready.cluster.probes import Try, describe, every
from winready.cluster.resources import CONFIG_MAPS, SECRETS

ROOT = "C:\\vol"
JWT_PARTS = 3


@check("core.storage.host-volumes", expected_s=150, windows_pods_per_node=1)
async def host_volumes(ctx: Context) -> None:
    """On each judged node: every volume has its content, updates arrive, containers share, read-only refuses."""
    await every(*(_judge(ctx, node, number) for number, node in enumerate(ctx.windows_nodes, 1)))


async def _judge(ctx: Context, node: Node, number: int) -> None:
    namespace = await ctx.world.namespace("vol")
    name, old, new = f"vol-{number}", marker(), marker()
    for resource in (CONFIG_MAPS, SECRETS):
        key = "data" if resource is CONFIG_MAPS else "stringData"
        await namespace.create(resource, {"metadata": {"name": name}, key: {"key": old}})
    mounts = [{"name": kind, "mountPath": f"{ROOT}\\{kind}"} for kind in ("cm", "secret", "projected", "downward")]
    shared = {"name": "empty", "mountPath": f"{ROOT}\\empty"}
    containers = [
        pause_container(ctx.settings, volumeMounts=[*mounts, shared]),
        pause_container(ctx.settings, name="second", volumeMounts=[{**shared, "readOnly": True}]),
    ]
    pod = await ctx.start(namespace, name, node, containers, volumes=_volumes(name))
    sources = {f"{ROOT}\\{kind}\\key": f"the {kind} volume" for kind in ("cm", "secret", "projected")}
    await every(
        *(expect_lines(ctx, pod, path, [old], what) for path, what in sources.items()),
        expect_lines(ctx, pod, f"{ROOT}\\downward\\name", [name], "the downwardAPI volume"),
        _token(ctx, pod, f"{ROOT}\\projected\\token"),
        _shared(ctx, pod, f"{ROOT}\\empty", marker()),
    )
    client = ctx.world.client
    await client.patch(CONFIG_MAPS, name, {"data": {"key": new}}, namespace.name)
    await client.patch(SECRETS, name, {"stringData": {"key": new}}, namespace.name)
    window = ctx.times.volume_update
    await every(
        *(expect_lines(ctx, pod, path, [new], f"the update of {what}", window=window) for path, what in sources.items())
    )


def _volumes(name: str) -> list[Object]:
    sources: list[Object] = [
        {"configMap": {"name": name}},
        {"serviceAccountToken": {"path": "token", "expirationSeconds": 3600}},
    ]
    item = {"path": "name", "fieldRef": {"fieldPath": "metadata.name"}}
    return [
        {"name": "cm", "configMap": {"name": name}},
        {"name": "secret", "secret": {"secretName": name}},
        {"name": "projected", "projected": {"sources": sources}},
        {"name": "downward", "downwardAPI": {"items": [item]}},
        {"name": "empty", "emptyDir": {}},
    ]


async def _token(ctx: Context, pod: Pod, path: str) -> None:
    """The projected token is there; only its shape is looked at, and nothing of it is kept."""
    command = read_file(pod.os, path)
    result = await pod.run(command)
    shape = len("".join(lines(result.stdout)).split("."))
    seen = f"{shape} parts" if result.stdout.strip() else "nothing"
    ctx.probe.record(f"{pod.name} has a projected token", Try(shape == JWT_PARTS, seen), pod, command, "a JWT")
    if shape != JWT_PARTS:
        raise CheckFailed(
            f"{describe(pod)} has no token in its projected volume ({path}): {seen}",
            expected="a JWT",
            observed=seen,
            next_step=f"look at the kubelet's log on node {pod.node.name}",
        )


async def _shared(ctx: Context, pod: Pod, folder: str, text: str) -> None:
    """What one container writes into the emptyDir the other reads; through a read-only mount it cannot write."""
    path = f"{folder}\\shared.txt"
    await write_line(ctx, pod, path, text, "the emptyDir volume")
    await expect_lines(ctx, pod, path, [text], "the emptyDir volume of the other container", container="second")
    command = write_file(pod.os, path, marker())
    result = await pod.run(command, container="second")
    seen = lines(result.stderr) or [f"exit code {result.exit_code}"]
    refused = Try(result.exit_code != 0, seen[0], result)
    ctx.probe.record(f"{pod.name}/second cannot write to a read-only mount", refused, pod, command, "a refusal", path)
    if not refused.ok:
        raise CheckFailed(
            f"{describe(pod)} can write to {path} although the mount is read-only",
            expected="a refusal",
            observed="the file was written",
            next_step=f"look at how the container runtime of node {pod.node.name} mounts volumes",
        )
