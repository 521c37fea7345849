"""What a Windows pod writes to a hostPath volume stays on the node when the pod is gone."""

from winready.checks.context import Context
from winready.checks.core_storage.files import expect_lines, marker, node_folder, write_line
from winready.checks.registry import check
from winready.cluster.failures import CheckFailed
from winready.cluster.inventory import Node
from winready.cluster.pods import host_path, idle_container
from winready.cluster.probes import every

MOUNT = "C:\\hp"


@check("core.storage.hostpath-write", fixtures=("hosts",), expected_s=40, windows_pods_per_node=1)
async def hostpath_write(ctx: Context) -> None:
    """On each judged node: a pod writes, goes away, and the node itself shows what it wrote."""
    await every(*(_judge(ctx, node, number) for number, node in enumerate(ctx.windows_nodes, 1)))


async def _judge(ctx: Context, node: Node, number: int) -> None:
    namespace = await ctx.world.namespace("hpw")
    text = marker()
    async with node_folder(ctx, node, "write") as (folder, host):
        container = idle_container(ctx.settings, volumeMounts=[{"name": "host", "mountPath": MOUNT}])
        volumes = [host_path("host", folder)]
        pod = await ctx.start(namespace, f"writer-{number}", node, [container], volumes=volumes)
        await write_line(ctx, pod, f"{MOUNT}\\w.txt", text, "the hostPath volume")
        if not await namespace.gone_pod(pod):
            raise CheckFailed(
                f"Windows pod {pod.name} on node {node.name} is not gone {ctx.times.pod_delete:g} s after its deletion",
                expected="the pod is gone",
                observed="it is still Terminating",
                next_step=f"look at the kubelet's log on node {node.name}",
            )
        await expect_lines(
            ctx,
            host,
            f"{folder}\\w.txt",
            [text],
            "what the pod wrote to its hostPath volume",
            hint=f"is the volume of such a pod really a folder of node {node.name}?",
        )
