"""One new worker: wait until it is Ready, then judge exactly that node by the requirements that one node can fulfil."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from winready.cluster.client import Client, Object
from winready.cluster.errors import ConfigError
from winready.cluster.inventory import read_node
from winready.cluster.resources import NODES
from winready.cluster.settings import Settings
from winready.engine.options import Options, Unmet
from winready.engine.selection import Selection, select
from winready.engine.terms import SMALL_CLUSTER, Terms
from winready.node.addons import NAMESPACE
from winready.spec.model import Specification

HOSTNAME = "kubernetes.io/hostname"
PAUSE = 1.0


class NotReady(Exception):
    """The time is over and the node is not; the message says what it waits for."""

    def __init__(self, reason: str, raw: Object | None, others: list[str]) -> None:
        super().__init__(reason)
        self.raw = raw
        self.others = others
        """Names of nodes that are there, when none has this name."""


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
            others = [] if raw else sorted(item["metadata"]["name"] for item in await client.list(NODES))
            raise NotReady(reason, raw, others)
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


def unmet(name: str, error: NotReady, timeout: str) -> Unmet:
    """A node that never became Ready, as the failure of everything that it was to be judged by."""
    reason = f"{error} after {timeout}" if error.raw is None else f"{error} (after {timeout})"
    return Unmet(reason, _next_step(name, error.raw), f"node {name} is Ready within {timeout}", _observed(error))


def _observed(error: NotReady) -> str:
    """What the API server knows of the node: its conditions and taints, or who is there instead."""
    if error.raw is None:
        return f"nodes: {', '.join(error.others[:20]) or 'none'}"
    lines = [
        f"{item['type']}={item['status']} ({item.get('reason') or 'no reason'})"
        + (f": {item['message']}" if item.get("message") else "")
        for item in (error.raw.get("status") or {}).get("conditions") or []
    ]
    for taint in error.raw["spec"].get("taints") or []:
        value = f"={taint['value']}" if taint.get("value") else ""
        lines.append(f"taint {taint['key']}{value}:{taint['effect']}")
    return "\n".join(lines) or "the node has no conditions: its kubelet has never reported"


def _next_step(name: str, raw: Object | None) -> str:
    machine = r"'.\node.ps1 status' on the machine, and its log C:\ProgramData\winready\logs\node.log"
    if raw is None:
        return f"{machine}; 'winready node preflight' looks for what keeps machines from joining"
    conditions = {item["type"]: item for item in (raw.get("status") or {}).get("conditions") or []}
    ready: Object = conditions.get("Ready") or {}
    if ready.get("status") == "True":
        return f"see what put the taint there ('kubectl describe node {name}'), and remove it"
    if ready.get("status") == "False":
        pods = f"kubectl -n {NAMESPACE} get pods -o wide --field-selector spec.nodeName={name}"
        return rf"look at the pods of the pod network ('{pods}') and at the kubelet's log in C:\var\log\kubelet"
    return rf"{machine}: the kubelet does not report; its log is in C:\var\log\kubelet"


def failed_options(name: str, settings: Settings, requirements: list[str], why: Unmet) -> Options:
    """A run that starts nothing and records that the node is not there to be judged."""
    return _options(name, name, settings, requirements, unmet=why)


def verify_options(raw: Object, settings: Settings, requirements: list[str], timeout: float | None) -> Options:
    """A run that judges this node and no other one."""
    labels = raw["metadata"].get("labels") or {}
    if HOSTNAME not in labels:
        raise ConfigError(
            f"node {raw['metadata']['name']} has no label {HOSTNAME}, by which pods are put on it",
            "look at its kubelet: it sets the label itself",
        )
    return _options(raw["metadata"]["name"], labels[HOSTNAME], settings, requirements, timeout=timeout)


def _options(name: str, hostname: str, settings: Settings, requirements: list[str], **more: Any) -> Options:
    return Options(
        settings=settings,
        selection=Selection(requirements=requirements),
        nodes=1,
        node_selector={HOSTNAME: hostname},
        # This is about one node; whether the cluster is large enough is not.
        terms=Terms(waived=[SMALL_CLUSTER]),
        record={"node": name},
        **more,
    )
