"""A Windows pod reads from a hostPath volume what was on the node before it."""

from winready.checks.context import Context
from winready.checks.core_storage.files import expect_lines, marker, node_folder, write_line
from winready.checks.registry import check
from winready.cluster.commands import make_folder
from winready.cluster.failures import CheckBlocked, CheckFailed
from winready.cluster.inventory import Node
from winready.cluster.pods import host_path, idle_container
from winready.cluster.probes import every

MOUNT = "C:\\hp"


@check("core.storage.hostpath-read", fixtures=("hosts",), expected_s=30, windows_pods_per_node=1)
async def hostpath_read(ctx: Context) -> None:
    """On each judged node: a file is put on the node, and a pod that starts later reads it."""
    await every(*(_judge(ctx, node, number) for number, node in enumerate(ctx.windows_nodes, 1)))


async def _judge(ctx: Context, node: Node, number: int) -> None:
    namespace = await ctx.world.namespace("hpr")
    text = marker()
    async with node_folder(ctx, node, "read") as (folder, host):
        await host.run(make_folder(folder))
        try:
            await write_line(ctx, host, f"{folder}\\r.txt", text, "a file on the node")
        except CheckFailed as failure:
            raise CheckBlocked(f"no file can be put on node {node.name}: {failure.observed}") from None
        container = idle_container(ctx.settings, volumeMounts=[{"name": "host", "mountPath": MOUNT}])
        volumes = [host_path("host", folder)]
        pod = await ctx.start(namespace, f"reader-{number}", node, [container], volumes=volumes)
        await expect_lines(
            ctx,
            pod,
            f"{MOUNT}\\r.txt",
            [text],
            "the file that was there before it",
            hint=f"is the volume of such a pod really a folder of node {node.name}?",
        )
        await namespace.gone_pod(pod)
