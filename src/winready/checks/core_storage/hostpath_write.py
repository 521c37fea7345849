"""What a Windows pod writes to a hostPath volume stays on the node when the pod is gone."""

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
from winready.cluster.failures import CheckFailed
from winready.cluster.inventory import Node
from winready.cluster.pods import Pod, host_path, idle_container
from winready.cluster.probes import every

MOUNT = "C:\\hp"


@check("core.storage.hostpath-write", fixtures=("hosts",), expected_s=40, windows_pods_per_node=1)
async def hostpath_write(ctx: Context) -> None:
    """On each judged node: a pod writes, and the node itself shows all of it, at once and when the pod is gone."""
    await every(*(_judge(ctx, node, number) for number, node in enumerate(ctx.windows_nodes, 1)))


async def _judge(ctx: Context, node: Node, number: int) -> None:
    namespace = await ctx.world.namespace("hpw")
    async with node_folder(ctx, node, "write") as (folder, host):
        container = idle_container(ctx.settings, volumeMounts=[{"name": "host", "mountPath": MOUNT}])
        volumes = [host_path("host", folder)]
        pod = await ctx.start(namespace, f"writer-{number}", node, [container], volumes=volumes)
        written = {f"{folder}\\{name}": lines for name, lines in (await _write(ctx, pod)).items()}
        what, hint = "what the pod wrote to its hostPath volume", f"is the volume really a folder of node {node.name}?"
        await expect_files(ctx, host, written, what, hint=hint)
        if not await namespace.gone_pod(pod):
            raise CheckFailed(
                f"Windows pod {pod.name} on node {node.name} is not gone {ctx.times.pod_delete:g} s after its deletion",
                expected="the pod is gone",
                observed="it is still Terminating",
                next_step=f"look at the kubelet's log on node {node.name}",
            )
        await expect_files(ctx, host, written, f"{what}, now that the pod is gone", hint=hint)


async def _write(ctx: Context, pod: Pod) -> dict[str, list[str]]:
    """A file that is written twice, one that grows, and a large one in a folder below; what is in them then."""
    first, last, large = marker(), marker(), long_marker()
    await write_line(ctx, pod, f"{MOUNT}\\twice.txt", first, "the hostPath volume")
    await write_line(ctx, pod, f"{MOUNT}\\twice.txt", last, "a file of the hostPath volume once more")
    await write_line(ctx, pod, f"{MOUNT}\\grows.txt", first, "the hostPath volume")
    await write_line(ctx, pod, f"{MOUNT}\\grows.txt", last, "more to a file of the hostPath volume", append=True)
    await pod.run(make_folder(f"{MOUNT}\\below"))
    await write_large(ctx, pod, f"{MOUNT}\\below\\large.txt", large, "a folder below the hostPath volume")
    return {"twice.txt": [last], "grows.txt": [first, last], "below\\large.txt": numbered(large, LARGE)}
