"""What faults of policy engines look like beyond who is let in at first: same node, outgoing, later, changed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from sandbox.faults.bench import NAMESPACE, SHORT, Bench, Object
from sandbox.faults.case import Case
from sandbox.faults.network_cases import namespaces_allowed, pods_allowed
from winready.cluster.resources import NETWORK_POLICIES, PODS

SOON = 60.0
"""Seconds in which a policy is in force."""


def _n(node: str) -> str:
    return node.rpartition("-")[2]


@asynccontextmanager
async def policy(b: Bench, node: str, **spec: object) -> AsyncIterator[str]:
    """A policy about the server of a node, gone afterwards."""
    name = b.name("case")
    selector = {"matchLabels": {"app": "ws", "node": node}}
    await b.create(NETWORK_POLICIES, {"metadata": {"name": name}, "spec": {"podSelector": selector, **spec}})
    try:
        yield name
    finally:
        await b.client.delete(NETWORK_POLICIES, name, NAMESPACE)


async def _reached(b: Bench, client: str, server: str) -> bool:
    return await b.fetch(client, b.addresses[server][0], 8080) == server


def only(who: str) -> Object:
    """Ingress from pods with a label."""
    return {"ingress": [{"from": [{"podSelector": {"matchLabels": {"who": who}}}]}]}


async def neighbour(b: Bench, node: str) -> str:
    """Whether a pod that no policy allows reaches the server on its own node."""
    return "let in" if await _reached(b, f"wc-{_n(node)}", f"wp-{_n(node)}") else "kept out"


async def outgoing(b: Bench, node: str) -> str:
    """Whether a policy keeps a Windows pod from others."""
    server = f"ws-{_n(node)}"

    async def kept() -> bool:
        return not await _reached(b, server, "ls-1")

    async with policy(b, node, policyTypes=["Egress"]):
        found = "kept in" if await b.until(kept, SOON) else "let out"
    await b.until(lambda: _reached(b, server, "ls-1"), SHORT)
    return found


async def promptness(b: Bench, node: str) -> str:
    """Whether a policy is in force within a minute."""
    server = f"ws-{_n(node)}"

    async def closed() -> bool:
        return not await _reached(b, "lc-1", server)

    async with policy(b, node, policyTypes=["Ingress"]):
        found = "soon" if await b.until(closed, SOON) else "late"
    await b.until(lambda: _reached(b, "lc-1", server))
    return found


async def removal(b: Bench, node: str) -> str:
    """Whether everybody gets through again within a minute once a policy was deleted."""
    server = f"ws-{_n(node)}"

    async def closed() -> bool:
        return not await _reached(b, "lc-1", server)

    async with policy(b, node, policyTypes=["Ingress"]):
        assert await b.until(closed, SOON)
    found = "soon" if await b.until(lambda: _reached(b, "lc-1", server), SOON) else "late"
    await b.until(lambda: _reached(b, "lc-1", server))
    return found


async def staying(b: Bench, node: str) -> str:
    """Whether a policy still keeps others out when it has for a while."""
    server = f"ws-{_n(node)}"

    async def closed() -> bool:
        return not await _reached(b, "lc-1", server)

    async with policy(b, node, policyTypes=["Ingress"]):
        assert await b.until(closed, SOON)
        found = "lost" if await b.until(lambda: _reached(b, "lc-1", server), SHORT) else "stays"
    await b.until(lambda: _reached(b, "lc-1", server))
    return found


async def later_pod(b: Bench, node: str) -> str:
    """Whether a pod that starts now is covered by a policy that has been there for long."""
    async with b.pod(node, labels={"role": "pods"}) as made:
        name, address = str(made["metadata"]["name"]), str(made["status"]["podIP"])

        async def open_to(client: str) -> bool:
            return await b.fetch(client, address, 8080) == name

        await b.until(lambda: open_to("lc-1"), SHORT)
        return "open" if await open_to("lc-2") else "covered"


async def changed_label(b: Bench, node: str) -> str:
    """Whether a pod is let in once it has the label that a policy asks for."""
    server = f"wp-{_n(node)}"
    async with b.pod("linux-1", labels={"who": "b"}) as made:
        name = made["metadata"]["name"]
        await b.client.patch(PODS, name, {"metadata": {"labels": {"who": "a"}}}, NAMESPACE)
        return "let in" if await b.until(lambda: _reached(b, name, server), SOON) else "kept out"


async def changed_policy(b: Bench, node: str) -> str:
    """Whether a pod is let in once a policy was changed in its favour."""
    server = f"ws-{_n(node)}"

    async def closed() -> bool:
        return not await _reached(b, "lc-2", server)

    async with policy(b, node, **only("a")) as name:
        assert await b.until(closed, SHORT)
        await b.client.patch(NETWORK_POLICIES, name, {"spec": only("b")}, NAMESPACE)
        return "let in" if await b.until(lambda: _reached(b, "lc-2", server), SOON) else "kept out"


POLICY_CASES = [
    Case("policy.windows.same-node-let-in", neighbour, "kept out", "let in"),
    Case("policy.windows.egress-ignored", outgoing, "kept in", "let out"),
    Case("policy.windows.chosen-pods-kept-out", pods_allowed, "a", ""),
    Case("policy.windows.chosen-namespaces-kept-out", namespaces_allowed, "a b", ""),
    Case("policy.windows.late", promptness, "soon", "late"),
    Case("policy.windows.removed-late", removal, "soon", "late"),
    Case("policy.windows.lost-later", staying, "stays", "lost"),
    Case("policy.windows.later-pods-missed", later_pod, "covered", "open"),
    Case("policy.windows.labels-stale", changed_label, "let in", "kept out"),
    Case("policy.windows.updates-missed", changed_policy, "let in", "kept out"),
]
