"""Volumes that the kubelet provides appear in Windows pods and follow their sources, in every container and pod."""

from __future__ import annotations

import base64
from dataclasses import dataclass

from winready.checks.context import Context
from winready.checks.core_storage.files import (
    LARGE,
    difference,
    expect_files,
    long_marker,
    marker,
    read,
    who,
    within,
    write_large,
)
from winready.checks.core_storage.sources import BINARY, SMALL, Group, Source, State, items
from winready.checks.registry import check
from winready.cluster.client import Object
from winready.cluster.commands import hash_files, lines, list_folder, numbered, read_file, show_files, write_file
from winready.cluster.failures import CheckFailed
from winready.cluster.inventory import Node
from winready.cluster.namespaces import Namespace
from winready.cluster.pods import CONTAINER, Pod, idle_container, pause_container
from winready.cluster.probes import Try, describe, every
from winready.cluster.resources import CONFIG_MAPS, PODS, SECRETS
from winready.cluster.timing import now

ROOT = "C:\\vol"
SECOND = "second"
READ_ONLY = {CONTAINER: "read-only", SECOND: "empty"}
"""Where each container has the emptyDir volume and may not write to it."""
NEW = "every file of a changed source is new, in every container"
JWT_PARTS = 3
LABEL = "told"
LABELLED: Object = {"path": LABEL, "fieldRef": {"fieldPath": f"metadata.labels['{LABEL}']"}}
"""A label of the pod itself, which it does not have at first."""


@dataclass(frozen=True)
class Scene:
    """One pod, and what its volumes are made from."""

    name: str
    map: Source
    secret: Source
    pod: Pod

    @property
    def groups(self) -> list[Group]:
        """The files that change together."""
        return [
            Group("the configMap volume", f"{ROOT}\\cm", self.map),
            Group("the secret volume", f"{ROOT}\\secret", self.secret),
            Group("the config map in the projected volume", f"{ROOT}\\projected\\map", self.map, projected=True),
            Group("the secret in the projected volume", f"{ROOT}\\projected\\hidden", self.secret, projected=True),
        ]

    @property
    def paths(self) -> list[str]:
        """All files that follow a source."""
        return [path for group in self.groups for path in group.files(group.source.new)]


@check("core.storage.host-volumes", expected_s=210, windows_pods_per_node=2)
async def host_volumes(ctx: Context) -> None:
    """On each judged node: two pods, each with contents of its own; updates arrive whole, read-only refuses."""
    await every(*(_judge(ctx, node, number) for number, node in enumerate(ctx.windows_nodes, 1)))


async def _judge(ctx: Context, node: Node, number: int) -> None:
    namespace = await ctx.world.namespace("vol")
    scene = await _start(ctx, namespace, node, f"vol-{number}")
    pod = scene.pod
    await every(
        *(_old(ctx, scene, container) for container in (CONTAINER, SECOND)),
        _binary(ctx, scene, updated=False),
        _token(ctx, pod, f"{ROOT}\\projected\\token"),
        _shared(ctx, pod, f"{ROOT}\\empty"),
    )
    client = ctx.world.client
    await client.patch(CONFIG_MAPS, scene.name, scene.map.data(secret=False, update=True), namespace.name)
    await client.patch(SECRETS, scene.name, scene.secret.data(secret=True, update=True), namespace.name)
    await every(_updates(ctx, scene), _neighbour(ctx, namespace, node, f"vol2-{number}"))
    await _binary(ctx, scene, updated=True)
    await _once_more(ctx, scene)


async def _start(ctx: Context, namespace: Namespace, node: Node, name: str) -> Scene:
    """A pod of two containers that mount every kind of volume."""
    sources = Source(), Source()
    for resource, source in zip((CONFIG_MAPS, SECRETS), sources, strict=True):
        await namespace.create(resource, {"metadata": {"name": name}, **source.data(secret=resource is SECRETS)})
    kept = [{"name": kind, "mountPath": f"{ROOT}\\{kind}"} for kind in ("cm", "secret", "projected", "downward")]
    shared = {"name": "empty", "mountPath": f"{ROOT}\\empty"}
    closed = {"name": "empty", "mountPath": f"{ROOT}\\{READ_ONLY[CONTAINER]}", "readOnly": True}
    containers = [
        idle_container(ctx.settings, volumeMounts=[*kept, shared, closed]),
        pause_container(ctx.settings, name=SECOND, volumeMounts=[*kept, {**shared, "readOnly": True}]),
    ]
    pod = await ctx.start(namespace, name, node, containers, volumes=_volumes(name))
    return Scene(name, *sources, pod)


def _volumes(name: str) -> list[Object]:
    sources: list[Object] = [
        {"configMap": {"name": name, "items": items("map")}},
        {"secret": {"name": name, "items": items("hidden")}},
        {"serviceAccountToken": {"path": "token", "expirationSeconds": 3600}},
        {"downwardAPI": {"items": [LABELLED]}},
    ]
    named = [
        {"path": "name", "fieldRef": {"fieldPath": "metadata.name"}},
        {"path": "folder/namespace", "fieldRef": {"fieldPath": "metadata.namespace"}},
        LABELLED,
    ]
    return [
        {"name": "cm", "configMap": {"name": name}},
        {"name": "secret", "secret": {"secretName": name}},
        {"name": "projected", "projected": {"sources": sources}},
        {"name": "downward", "downwardAPI": {"items": named}},
        {"name": "empty", "emptyDir": {}},
    ]


async def _old(ctx: Context, scene: Scene, container: str) -> None:
    """Everything is there from the start."""
    files: dict[str, list[str]] = {}
    for group in scene.groups:
        files |= group.files(group.source.old)
    files[f"{ROOT}\\downward\\name"] = [scene.name]
    files[f"{ROOT}\\downward\\folder\\namespace"] = [scene.pod.namespace]
    await expect_files(ctx, scene.pod, files, "the files of its volumes", container=container)


async def _updates(ctx: Context, scene: Scene) -> None:
    """Every container gets to see the new version of every source, and none of them a mixture that stays."""
    start = now()
    missing: dict[str, list[State]] = {CONTAINER: [], SECOND: []}
    async for _ in ctx.timing.attempts(ctx.times.volume_update, every=ctx.times.volume_look):
        for container in list(missing):
            states = await _states(scene, container)
            if any(state.mixed for state in states):
                # Half of the command may have been before the swap: only a mixture that is still there is one.
                await ctx.timing.pause(ctx.times.poll)
                states = await _states(scene, container)
            missing[container] = [state for state in states if not state.new or state.mixed]
            if torn := [state for state in states if state.mixed]:
                raise _failure(ctx, scene, container, torn, "sees a mixture of old and new files")
            if not missing[container]:
                del missing[container]
        if not missing:
            break
    for container, states in missing.items():
        raise _failure(ctx, scene, container, states, f"does not see an update after {ctx.times.volume_update:g} s")
    title, command = f"{scene.name} follows its sources", show_files(scene.paths)
    ctx.probe.record(title, Try(True, "all files are new"), scene.pod, command, NEW, start=start)


async def _once_more(ctx: Context, scene: Scene) -> None:
    """A second change arrives like the first one, in each volume, and so does one of the pod; one container tells."""
    start, text, pod = now(), marker(), scene.pod
    client, encoded = ctx.world.client, base64.b64encode(f"{text}\n".encode()).decode()
    await client.patch(CONFIG_MAPS, scene.name, {"data": {SMALL: f"{text}\n"}}, pod.namespace)
    await client.patch(SECRETS, scene.name, {"data": {SMALL: encoded}}, pod.namespace)
    await client.patch(PODS, pod.name, {"metadata": {"labels": {LABEL: text}}}, pod.namespace)
    paths = [f"{group.folder}\\{SMALL}" for group in scene.groups]
    paths += [f"{ROOT}\\{volume}\\{LABEL}" for volume in ("downward", "projected")]
    old, attempts = paths, 0
    async for number in ctx.timing.attempts(ctx.times.volume_update, every=ctx.times.volume_look):
        found, _ = await read(pod, paths, SECOND)
        old, attempts = [path for path in paths if found.get(path) != [text]], number
        if not old:
            break
    title, seen = f"{who(pod, SECOND)} sees a second update", f"not there: {', '.join(old)}" if old else "all are new"
    expected, command = "every file is new once more", show_files(paths)
    ctx.probe.record(title, Try(not old, seen), pod, command, expected, attempts=attempts, start=start)
    if old:
        raise CheckFailed(
            f"{within(pod, SECOND)} saw updates of its volumes and does not see the next one after "
            f"{ctx.times.volume_update:g} s: {', '.join(old)}",
            expected=expected,
            observed=seen,
            next_step=f"look at the kubelet's log on node {pod.node.name}: does it still follow sources?",
        )


async def _states(scene: Scene, container: str) -> list[State]:
    found, _ = await read(scene.pod, scene.paths, container)
    return [group.state(found) for group in scene.groups]


def _failure(ctx: Context, scene: Scene, container: str, states: list[State], what: str) -> CheckFailed:
    title, seen = f"{who(scene.pod, container)} {what}", "; ".join(map(str, states))
    ctx.probe.record(title, Try(False, seen), scene.pod, show_files(scene.paths), NEW)
    return CheckFailed(
        f"{within(scene.pod, container)} {what}: {seen}",
        expected=NEW,
        observed=seen,
        next_step=f"look at the kubelet's log on node {scene.pod.node.name}: how does it write the pod's volumes?",
    )


async def _neighbour(ctx: Context, namespace: Namespace, node: Node, name: str) -> None:
    """A second pod on the node with volumes of the same names has its own contents, and its emptyDir is empty."""
    scene = await _start(ctx, namespace, node, name)
    await _old(ctx, scene, CONTAINER)
    command = list_folder(f"{ROOT}\\empty")
    result = await scene.pod.run(command)
    names = lines(result.stdout)
    empty = Try(not names, ", ".join(names) or "nothing", result)
    ctx.probe.record(f"{name} has an empty emptyDir", empty, scene.pod, command, "nothing")
    if names:
        raise CheckFailed(
            f"{describe(scene.pod)} finds files in its emptyDir volume at its start: {empty.seen}",
            expected="an empty folder",
            observed=empty.seen,
            next_step=f"look at the kubelet's log on node {node.name}: does it clean up the folders of pods?",
        )


async def _binary(ctx: Context, scene: Scene, *, updated: bool) -> None:
    """What is no text arrives byte by byte."""
    pod, sources = scene.pod, {f"{ROOT}\\cm\\{BINARY}": scene.map, f"{ROOT}\\secret\\{BINARY}": scene.secret}
    wanted = [(source.new if updated else source.old).digest for source in sources.values()]
    command = hash_files(list(sources))
    result = await pod.run(command, seconds=ctx.times.powershell)
    found = lines(result.stdout)
    seen = "the same bytes" if found == wanted else difference("the list of their SHA-256", found, wanted)
    title = f"{pod.name} has binary files{' of the new version' if updated else ''}"
    ctx.probe.record(title, Try(found == wanted, seen, result), pod, command, "the same bytes")
    if found != wanted:
        raise CheckFailed(
            f"{describe(pod)} does not see the bytes of a binary key in {', '.join(sources)}: {seen}",
            expected=", ".join(wanted),
            observed=", ".join(found) or "nothing",
            next_step=f"compare the files below the kubelet's folder of the pod on node {pod.node.name}",
        )


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


async def _shared(ctx: Context, pod: Pod, folder: str) -> None:
    """What one container writes into the emptyDir the other reads; through a read-only mount neither can write."""
    text = long_marker()
    await write_large(ctx, pod, f"{folder}\\shared.txt", text, "the emptyDir volume")
    for container, place in READ_ONLY.items():
        path = f"{ROOT}\\{place}\\shared.txt"
        wanted = {path: numbered(text, LARGE)}
        await expect_files(ctx, pod, wanted, "what was written to the emptyDir volume", container=container)
        command = write_file(pod.os, path, marker())
        result = await pod.run(command, container=container)
        seen = lines(result.stderr) or [f"exit code {result.exit_code}"]
        refused = Try(result.exit_code != 0, seen[0], result)
        title = f"{who(pod, container)} cannot write to a read-only mount"
        ctx.probe.record(title, refused, pod, command, "a refusal", path)
        if not refused.ok:
            raise CheckFailed(
                f"{within(pod, container)} can write to {path} although the mount is read-only",
                expected="a refusal",
                observed="the file was written",
                next_step=f"look at how the container runtime of node {pod.node.name} mounts volumes",
            )
