"""One new worker: wait until it is Ready, then judge exactly that node by the requirements that one node can fulfil."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from winready.cluster.client import Client, Object
from winready.cluster.errors import ConfigError
from winready.cluster.inventory import read_node
from winready.cluster.resources import NODES
from winready.cluster.settings import Settings
from winready.engine.options import Options
from winready.engine.selection import Selection, select
from winready.engine.terms import SMALL_CLUSTER, Terms
from winready.spec.model import Specification

HOSTNAME = "kubernetes.io/hostname"
PAUSE = 1.0


class NotReady(Exception):
    """The time is over and the node is not; the message says what it waits for."""


def concerning_one_node(standard: Specification, selection: Selection) -> list[str]:
    """What can be judged on a single Windows node, and does not disturb it."""
    chosen = select(standard, selection)
    return [item.id for item in chosen if item.needs.windows <= 1 and not item.disruptive]


async def wait_until_ready(client: Client, name: str, *, timeout: float, say: Callable[[str], None]) -> Object:
    """The Node, once pods can be put on it; raises `NotReady`, or `ConfigError` where waiting cannot help."""
    loop = asyncio.get_running_loop()
    end, told = loop.time() + timeout, ""
    while True:
        raw = await client.find(NODES, name)
        reason = f"no node {name} has joined yet" if raw is None else _reason(raw)
        if raw is not None and not reason:
            return raw
        if reason != told:
            say(f"waiting: {reason}")
            told = reason
        if loop.time() >= end:
            raise NotReady(reason)
        await asyncio.sleep(min(PAUSE, max(end - loop.time(), 0)))


def _reason(raw: Object) -> str:
    """Why a node cannot be judged yet; raises where only a person can change that."""
    node = read_node(raw)
    if not node.windows:
        raise ConfigError(f"node {node.name} is a {node.os} node", "name a Windows node")
    if raw["spec"].get("unschedulable"):
        raise ConfigError(f"node {node.name} is cordoned", f"'kubectl uncordon {node.name}' lets pods in again")
    if not node.unusable:
        return ""
    conditions = (raw.get("status") or {}).get("conditions") or []
    ready: Object = next((item for item in conditions if item["type"] == "Ready"), {})
    detail = f": {ready['message']}" if ready.get("status") != "True" and ready.get("message") else ""
    return f"node {node.name}: {node.unusable}{detail}"


def verify_options(raw: Object, settings: Settings, requirements: list[str], timeout: float | None) -> Options:
    """A run that judges this node and no other one."""
    labels = raw["metadata"].get("labels") or {}
    if HOSTNAME not in labels:
        raise ConfigError(
            f"node {raw['metadata']['name']} has no label {HOSTNAME}, by which pods are put on it",
            "look at its kubelet: it sets the label itself",
        )
    return Options(
        settings=settings,
        selection=Selection(requirements=requirements),
        nodes=1,
        node_selector={HOSTNAME: labels[HOSTNAME]},
        # This is about one node; whether the cluster is large enough is not.
        terms=Terms(waived=[SMALL_CLUSTER]),
        timeout=timeout,
        record={"node": raw["metadata"]["name"]},
    )
