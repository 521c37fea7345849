"""What faults of volumes look like from several keys, several containers and several pods."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
from collections.abc import AsyncIterator
from functools import partial

from sandbox.faults.bench import IMAGE, NAMESPACE, Bench, Object
from sandbox.faults.case import Case
from sandbox.faults.node_cases import written_read_only
from winready.cluster.resources import CONFIG_MAPS, PODS

LINES = "(for /l %i in (1,1,200) do @echo %i a line of a large file that does not fit into a page)>C:\\vol\\large.txt"


def _n(node: str) -> str:
    return node.rpartition("-")[2]


def _containers(count: int, volume: str) -> Object:
    """Containers c, d, e ... that mount one volume."""
    mounts = [{"name": volume, "mountPath": "/vol"}]
    more = [{"name": name, "image": IMAGE, "args": ["pause"], "volumeMounts": mounts} for name in "defg"[: count - 1]]
    return {"container": {"volumeMounts": mounts}, "more": more}


async def _read(b: Bench, pod: str, name: str, container: str = "c") -> str:
    code, text = await b.run(pod, "cmd", "/c", "type", f"C:\\vol\\{name}", container=container)
    return text if code == 0 else "-"


@contextlib.asynccontextmanager
async def _mapped(
    b: Bench, node: str, data: Object, *, volume: str = "", items: list[Object] | None = None, count: int = 1
) -> AsyncIterator[tuple[str, str]]:
    """A pod of some containers over a config map of its own; the names of both."""
    name, volume = b.name("map"), volume or b.name("v")
    await b.create(CONFIG_MAPS, {"metadata": {"name": name}, **data})
    source = {"name": name, **({"items": items} if items else {})}
    spec = {"volumes": [{"name": volume, "configMap": source}]}
    async with b.pod(node, spec=spec, **_containers(count, volume)) as made:
        yield made["metadata"]["name"], name


async def label_of_a_pod(b: Bench, node: str) -> str:
    """A label of a pod in files of its volumes, minutes after it was changed."""
    item = {"path": "label", "fieldRef": {"fieldPath": "metadata.labels['app']"}}
    volumes: list[Object] = [
        {"name": "own", "downwardAPI": {"items": [item]}},
        {"name": "part", "projected": {"sources": [{"downwardAPI": {"items": [item]}}]}},
    ]
    mounts = [{"name": name, "mountPath": f"/vol/{name}"} for name in ("own", "part")]
    async with b.pod(node, app="old", spec={"volumes": volumes}, container={"volumeMounts": mounts}) as made:
        name = made["metadata"]["name"]
        await b.client.patch(PODS, name, {"metadata": {"labels": {"app": "new"}}}, NAMESPACE)
        await asyncio.sleep(240)
        return f"{await _read(b, name, 'own' + chr(92) + 'label')} {await _read(b, name, 'part' + chr(92) + 'label')}"


async def large_key(b: Bench, node: str) -> str:
    """How much of a key of 6,000 bytes arrives."""
    async with _mapped(b, node, {"data": {"key": "x" * 6000}}) as (pod, _):
        return str(len(await _read(b, pod, "key")))


async def binary_key(b: Bench, node: str) -> str:
    """Whether a binary key arrives byte by byte."""
    content = bytes(range(256))
    encoded = base64.b64encode(content).decode()
    async with _mapped(b, node, {"binaryData": {"key": encoded}}) as (pod, _):
        script = "(Get-FileHash 'C:\\vol\\key').Hash"
        _, text = await b.run(pod, "powershell.exe", "-NoProfile", "-Command", script)
        return "the same" if text == hashlib.sha256(content).hexdigest().upper() else "another"


async def nested_key(b: Bench, node: str) -> str:
    """What is at a path with a folder in it."""
    items = [{"key": "key", "path": "folder/below"}, {"key": "key", "path": "flat"}]
    async with _mapped(b, node, {"data": {"key": "text"}}, items=items) as (pod, _):
        return f"{await _read(b, pod, 'flat')} {await _read(b, pod, 'folder' + chr(92) + 'below')}"


async def followed(b: Bench, node: str) -> str:
    """Four keys in two containers at the moment when the first change of a config map is seen."""
    data: Object = {"a": "old", "b": "old", "goes": "old"}
    async with _mapped(b, node, {"data": data}, count=2) as (pod, name):
        await b.client.patch(
            CONFIG_MAPS, name, {"data": {"a": "new", "b": "new", "goes": None, "comes": "new"}}, NAMESPACE
        )

        async def changed() -> bool:
            return await _read(b, pod, "a") == "new"

        await b.until(changed, 200.0)
        keys = [await _read(b, pod, key) for key in ("a", "b", "goes", "comes")]
        return " ".join([*keys, await _read(b, pod, "a", "d")])


async def seen_in_time(b: Bench, node: str) -> str:
    """Whether a change is seen within the longest time between two syncs of a kubelet that hears of it at once."""
    async with _mapped(b, node, {"data": {"a": "old"}}) as (pod, name):
        await b.client.patch(CONFIG_MAPS, name, {"data": {"a": "new"}}, NAMESPACE)

        async def changed() -> bool:
            return await _read(b, pod, "a") == "new"

        in_time = await b.until(changed, 100.0)
        return "in time" if in_time else "late" if await b.until(changed, 120.0) else "never"


async def second_update(b: Bench, node: str) -> str:
    """Whether two changes are seen, one after the other."""
    async with _mapped(b, node, {"data": {"a": "old"}}) as (pod, name):
        for text in ("new", "newer"):
            await b.client.patch(CONFIG_MAPS, name, {"data": {"a": text}}, NAMESPACE)
            await b.until(partial(_says, b, pod, text), 150.0)
        return await _read(b, pod, "a")


async def _says(b: Bench, pod: str, text: str) -> bool:
    return await _read(b, pod, "a") == text


async def same_volume_name(b: Bench, node: str) -> str:
    """What the second of two pods finds whose volumes have the same name."""
    volume = b.name("v")
    async with (
        _mapped(b, node, {"data": {"key": "first"}}, volume=volume),
        _mapped(b, node, {"data": {"key": "second"}}, volume=volume) as (pod, _),
    ):
        return await _read(b, pod, "key")


async def next_empty_dir(b: Bench, node: str) -> str:
    """What a pod finds in its emptyDir after another one had a volume of that name."""
    volume = b.name("v")
    options = {"spec": {"volumes": [{"name": volume, "emptyDir": {}}]}, **_containers(1, volume)}
    async with b.pod(node, **options) as first:
        await b.run(first["metadata"]["name"], "cmd", "/c", "echo marker>C:\\vol\\f.txt")
    async with b.pod(node, **options) as second:
        return await _read(b, second["metadata"]["name"], "f.txt")


async def third_container(b: Bench, node: str) -> str:
    """What the second and the third container find in a volume after the first wrote to it."""
    options = {"spec": {"volumes": [{"name": "v", "emptyDir": {}}]}, **_containers(3, "v")}
    async with b.pod(node, **options) as made:
        name = made["metadata"]["name"]
        await b.run(name, "cmd", "/c", "echo marker>C:\\vol\\f.txt")
        return f"{await _read(b, name, 'f.txt', 'd')} {await _read(b, name, 'f.txt', 'e')}"


async def shared_later(b: Bench, node: str) -> str:
    """What the second container finds of a file that the first writes after two minutes."""
    options = {"spec": {"volumes": [{"name": "v", "emptyDir": {}}]}, **_containers(2, "v")}
    async with b.pod(node, **options) as made:
        name = made["metadata"]["name"]
        await b.sandbox.clock.sleep(130)
        await b.run(name, "cmd", "/c", "echo marker>C:\\vol\\f.txt")
        return await _read(b, name, "f.txt", "d")


async def appended(b: Bench, node: str) -> str:
    """What is in a file after a line was appended to it."""
    pod = f"wk-{_n(node)}"
    for command in ("echo one>C:\\scratch\\a.txt", "echo two>>C:\\scratch\\a.txt"):
        await b.run(pod, "cmd", "/c", command)
    return " ".join((await b.run(pod, "cmd", "/c", "type", "C:\\scratch\\a.txt"))[1].split())


def _on_host(path: str) -> Object:
    volume = {"name": "v", "hostPath": {"path": path, "type": "DirectoryOrCreate"}}
    return {"spec": {"volumes": [volume]}, **_containers(1, "v")}


async def folder_below(b: Bench, node: str) -> str:
    """What a pod finds in a folder below its hostPath volume."""
    path = f"C:\\bench\\{b.name('dir')}"
    await b.run(f"hp-{_n(node)}", "cmd", "/c", "mkdir", f"{path}\\below")
    await b.run(f"hp-{_n(node)}", "cmd", "/c", f"echo marker>{path}\\below\\f.txt")
    async with b.pod(node, **_on_host(path)) as made:
        return await _read(b, made["metadata"]["name"], "below\\f.txt")


async def large_file_later(b: Bench, node: str) -> str:
    """What of a small and a large file is on the node when the pod that wrote them is gone."""
    path = f"C:\\bench\\{b.name('dir')}"
    async with b.pod(node, **_on_host(path)) as made:
        name = made["metadata"]["name"]
        await b.run(name, "cmd", "/c", "echo marker>C:\\vol\\small.txt")
        await b.run(name, "cmd", "/c", LINES)
        await b.client.delete(PODS, name, NAMESPACE)

        async def gone() -> bool:
            return await b.client.find(PODS, name, NAMESPACE) is None

        await b.until(gone)
    _, listed = await b.run(f"hp-{_n(node)}", "cmd", "/c", "dir", "/b", path)
    return " ".join(listed.split())


VOLUME_CASES = [
    Case("volumes.windows.labels-never-updated", label_of_a_pod, "new new", "old old"),
    Case("volumes.windows.large-files-cut", large_key, "6000", "4096"),
    Case("volumes.windows.line-ends-converted", binary_key, "the same", "another"),
    Case("volumes.windows.nested-paths-missing", nested_key, "text text", "text -"),
    Case("volumes.windows.updates-first-key", followed, "new new - new new", "new old old - new"),
    Case("volumes.windows.updates-one-by-one", followed, "new new - new new", "new old old - new"),
    Case("volumes.windows.removed-keys-stay", followed, "new new - new new", "new new old new new"),
    Case("volumes.windows.added-keys-missing", followed, "new new - new new", "new new - - new"),
    Case("volumes.windows.first-update-only", second_update, "newer", "new"),
    Case("volumes.windows.updates-first-container", followed, "new new - new new", "new new - new old"),
    Case("volumes.windows.updates-slow", seen_in_time, "in time", "late"),
    Case("volumes.windows.found-by-name", same_volume_name, "second", "first"),
    Case("volumes.windows.emptydir-recycled", next_empty_dir, "-", "marker"),
    Case("volumes.windows.read-only-first-container", written_read_only, "refused", "taken"),
    Case("volumes.windows.two-containers-share", third_container, "marker marker", "marker -"),
    Case("volumes.windows.sharing-ends", shared_later, "marker", "-"),
    Case("volumes.windows.appends-lost", appended, "one two", "one"),
    Case("volumes.windows.hostpath-folders-missing", folder_below, "marker", "-"),
    Case("volumes.windows.hostpath-large-files-lost", large_file_later, "large.txt small.txt", "small.txt"),
]
