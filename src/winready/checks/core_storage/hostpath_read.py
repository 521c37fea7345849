"""A Windows pod reads from a hostPath volume what was on the node before it."""

from winready.checks.context import Context
from winready.checks.core_storage.files import (
    LARGE,
    expect_files,
    long_marker,
    marker,
    node_folder,
    write_large,
    write_line,
)
from winready.checks.registry import check
from winready.cluster.commands import make_folder, numbered
from winready.cluster.failures import CheckBlocked, CheckFailed
from winready.cluster.inventory import Node
from winready.cluster.pods import CONTAINER, host_path, idle_container, pause_container
from winready.cluster.probes import every

MOUNT = "C:\\hp"
SECOND = "second"


@check("core.storage.hostpath-read", fixtures=("hosts",), expected_s=30, windows_pods_per_node=1)
async def hostpath_read(ctx: Context) -> None:
    """On each judged node: files are put on the node, and both containers of a pod that starts later read them."""
    await every(*(_judge(ctx, node, number) for number, node in enumerate(ctx.windows_nodes, 1)))


async def _judge(ctx: Context, node: Node, number: int) -> None:
    namespace = await ctx.world.namespace("hpr")
    text, large = marker(), long_marker()
    async with node_folder(ctx, node, "read") as (folder, host):
        await host.run(make_folder(f"{folder}\\below"))
        try:
            await write_line(ctx, host, f"{folder}\\r.txt", text, "a file on the node")
            await write_large(ctx, host, f"{folder}\\below\\large.txt", large, "a large file in a folder on the node")
        except CheckFailed as failure:
            raise CheckBlocked(f"no file can be put on node {node.name}: {failure.observed}") from None
        mounts = [{"name": "host", "mountPath": MOUNT}]
        containers = [
            idle_container(ctx.settings, volumeMounts=mounts),
            pause_container(ctx.settings, name=SECOND, volumeMounts=mounts),
        ]
        volumes = [host_path("host", folder)]
        pod = await ctx.start(namespace, f"reader-{number}", node, containers, volumes=volumes)
        wanted = {f"{MOUNT}\\r.txt": [text], f"{MOUNT}\\below\\large.txt": numbered(large, LARGE)}
        what, hint = "the files that were there before it", f"is the volume really a folder of node {node.name}?"
        await every(*(expect_files(ctx, pod, wanted, what, container=name, hint=hint) for name in (CONTAINER, SECOND)))
        await namespace.gone_pod(pod)
