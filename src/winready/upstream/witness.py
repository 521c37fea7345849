"""Proof for pods that ended before they could be asked: the same image on the same node, started to answer.

Many tests read their answer from the log of a container that lives for a second. That its image, with the same
digest and the same runtime class, is a Windows container on that very node is shown by a witness of ours.
"""

from __future__ import annotations

import asyncio
from collections.abc import Container, Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

import msgspec

from winready.cluster.client import Object
from winready.cluster.errors import ClusterError
from winready.cluster.failures import CheckBlocked
from winready.cluster.namespaces import Namespace
from winready.cluster.pods import CONTAINER, pinned, pod_object, pod_spec
from winready.cluster.resources import PODS
from winready.upstream.suite import Result
from winready.upstream.watcher import Witnessed

MOST = 24
"""Witnesses at most; a cluster is not filled for the sake of proof."""


class Sort(NamedTuple):
    """What must be the same for one pod to vouch for another."""

    node: str
    image: str
    image_id: str
    runtime_class: str


def sorts(pod: Witnessed) -> list[Sort]:
    """What a pod vouches for, or needs a voucher for: one per image."""
    return [Sort(pod.fact.node, image, digest, pod.runtime_class) for image, digest in pod.images.items() if digest]


def unproven(results: Iterable[Result], proven: Container[Sort]) -> list[Sort]:
    """The sorts of passed tests' Windows pods that nobody has vouched for."""
    pods = [pod for result in results if result.status == "passed" for pod in result.pods if pod.fact.os == "windows"]
    needed = dict.fromkeys(sort for pod in pods if not pod.fact.build for sort in sorts(pod)[:1])
    return [sort for sort in needed if sort not in proven]


async def call_witnesses(namespace: Namespace, needed: Sequence[Sort]) -> dict[Sort, str]:
    """Start a witness per sort and ask it; the builds of those that proved to be Windows with the same digest."""
    answers = await asyncio.gather(*(_witness(namespace, f"w-{n}", sort) for n, sort in enumerate(needed[:MOST], 1)))
    return {sort: build for sort, build in zip(needed, answers, strict=False) if build}


async def _witness(namespace: Namespace, name: str, sort: Sort) -> str:
    node = namespace.nodes[sort.node]
    spec = pod_spec("windows", [_container(sort.image)], namespace.settings, [node])
    if sort.runtime_class:
        spec["runtimeClassName"] = sort.runtime_class
    try:
        await namespace.create(PODS, pod_object(name, pinned(spec, node), namespace.settings))
        pod = await namespace.ready_pod(name)
    except (CheckBlocked, ClusterError):
        return ""
    return pod.build if not pod.impostor and pod.image_id == sort.image_id else ""


def _container(image: str) -> Object:
    """A container that stays, whatever its image is made to do."""
    container: Object = {"name": CONTAINER, "image": image, "imagePullPolicy": "IfNotPresent"}
    if "/agnhost:" in image:
        return {**container, "args": ["pause"]}
    if "/pause:" in image or image.startswith("pause:"):
        return container
    # With its standard input open, cmd waits for a key that nobody presses; not every base image has ping.
    return {**container, "stdin": True, "command": ["cmd", "/c", "pause >NUL & ping -t 127.0.0.1 >NUL"]}


def vouched(result: Result, builds: dict[Sort, str]) -> Result:
    """The same result, its silent Windows pods proven by others of their sort."""

    def prove(pod: Witnessed) -> Witnessed:
        own = sorts(pod)[:1]
        if pod.fact.os != "windows" or pod.fact.build or pod.impostor or not own or own[0] not in builds:
            return pod
        return replace(pod, fact=msgspec.structs.replace(pod.fact, build=builds[own[0]]))

    return replace(result, pods=tuple(prove(pod) for pod in result.pods))


def vouchers(results: Iterable[Result]) -> dict[Sort, str]:
    """What pods of the tests themselves vouch for."""
    return {
        sort: pod.fact.build
        for result in results
        for pod in result.pods
        if pod.fact.build and len(pod.images) == 1
        for sort in sorts(pod)
    }
