"""Three running Windows containers on one node read and write the same files at the same time.

Windows locks files: two containers that append to one file at once get a sharing violation, and that is no defect.
So there is one writer at a time, and everybody reads.
"""

from __future__ import annotations

from dataclasses import dataclass

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
from winready.cluster.commands import numbered
from winready.cluster.inventory import Node
from winready.cluster.pods import CONTAINER, Pod, host_path, pause_container
from winready.cluster.probes import every

SHARE, MOUNT = "C:\\share", "C:\\hp"
ROUNDS = 5
INSIDE = (CONTAINER, "second", "third")


@dataclass(frozen=True)
class Member:
    """One of the three containers, and the letter of its file."""

    letter: str
    pod: Pod
    container: str = CONTAINER


@check("core.storage.shared-files", fixtures=("hosts",), expected_s=160, windows_pods_per_node=3)
async def shared_files(ctx: Context) -> None:
    """On each judged node: three containers of one pod over an emptyDir, and of three pods over a hostPath."""
    await every(*(_judge(ctx, node, number) for number, node in enumerate(ctx.windows_nodes, 1)))


async def _judge(ctx: Context, node: Node, number: int) -> None:
    namespace = await ctx.world.namespace("share")
    async with node_folder(ctx, node, "share") as (folder, _):
        on_node = {"name": "host", "mountPath": MOUNT}
        within = {"name": "share", "mountPath": SHARE}
        volumes = [host_path("host", folder), {"name": "share", "emptyDir": {}}]
        trio = [pause_container(ctx.settings, name=name, volumeMounts=[within, on_node]) for name in INSIDE]
        alone = [pause_container(ctx.settings, volumeMounts=[on_node])]
        pods = await every(
            ctx.start(namespace, f"three-{number}", node, trio, volumes=volumes),
            *(ctx.start(namespace, f"{n}-{number}", node, alone, volumes=volumes[:1]) for n in ("one", "two")),
        )
        inside = [Member(letter, pods[0], name) for letter, name in zip("abc", INSIDE, strict=True)]
        across = [Member(letter, pod) for letter, pod in zip("abc", pods, strict=True)]
        await every(_share(ctx, inside, SHARE, "emptyDir"), _share(ctx, across, MOUNT, "hostPath"))
        await every(*(namespace.gone_pod(pod) for pod in pods))


async def _share(ctx: Context, members: list[Member], folder: str, kind: str) -> None:
    """Each writes a large file and reads the others'; then, for minutes, the writer of a common file goes round."""
    files = {member.letter: f"{folder}\\{member.letter}.txt" for member in members}
    own = {member.letter: long_marker() for member in members}
    what = f"its file in the {kind}"
    await every(
        *(write_large(ctx, m.pod, files[m.letter], own[m.letter], what, container=m.container) for m in members)
    )
    whole = {letter: numbered(text, LARGE) for letter, text in own.items()}
    others = {mine: {files[each]: whole[each] for each in files if each != mine} for mine in files}
    what = f"what the other containers wrote to the {kind}"
    await every(*(_reads(ctx, m, others[m.letter], what) for m in members))
    common, written = f"{folder}\\common.txt", list[str]()
    for number in range(ROUNDS):
        if number:
            await ctx.timing.pause(ctx.times.sharing_pause)
        writer = members[number % len(members)]
        written.append(marker())
        what = f"round {number + 1} of a common file in the {kind}"
        await write_line(ctx, writer.pod, common, written[-1], what, append=True, container=writer.container)
        what, wanted = f"what container {writer.letter} wrote to the {kind}", {common: written}
        await every(*(_reads(ctx, m, wanted, what) for m in members if m is not writer))


async def _reads(ctx: Context, reader: Member, wanted: dict[str, list[str]], what: str) -> None:
    window = ctx.times.sharing_retry
    await expect_files(ctx, reader.pod, wanted, what, window=window, container=reader.container)
