"""Pods that a policy is about, those around them, and the policies themselves: in namespaces of their own."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from winready.checks.context import Context
from winready.cluster.client import Object
from winready.cluster.commands import NETEXEC_HTTP, Os
from winready.cluster.errors import Forbidden
from winready.cluster.failures import CheckBlocked
from winready.cluster.inventory import Node
from winready.cluster.namespaces import Namespace
from winready.cluster.pods import Pod, netexec_container, pinned, pod_object, pod_spec
from winready.cluster.resources import NETWORK_POLICIES, PODS
from winready.cluster.settings import RUN_LABEL

POLICY = "only-chosen-ones"
SUBJECT = {"policy": "subject"}
"""The label of pods that the policy is about."""


class Policed:
    """A namespace for one policy."""

    def __init__(self, ctx: Context, namespace: Namespace) -> None:
        self.ctx = ctx
        self.namespace = namespace

    @classmethod
    async def open(cls, ctx: Context, suffix: str) -> Policed:
        """The namespace, made on first use."""
        return cls(ctx, await ctx.world.namespace(suffix))

    async def require_alone(self) -> None:
        """There must be no policies of others: they would decide, too, and so would what answers them."""
        try:
            policies = await self.ctx.world.client.list(NETWORK_POLICIES, self.namespace.name)
        except Forbidden as refusal:
            raise _no_right(refusal) from None
        labels = {item["metadata"]["name"]: item["metadata"].get("labels") or {} for item in policies}
        if foreign := [name for name, own in labels.items() if RUN_LABEL not in own]:
            raise CheckBlocked(
                f"namespace {self.namespace.name} has network policies that were put there by others: "
                f"{', '.join(foreign)}",
                next_step=f"keep whatever writes policies into new namespaces from those with the label {RUN_LABEL}",
            )

    async def create(self, name: str, os: Os, node: Node, **labels: str) -> None:
        """Ask for a server that is a client, too. It has no probes: a policy may keep the kubelet out."""
        settings = self.ctx.settings
        container = {key: value for key, value in netexec_container(settings).items() if not key.endswith("Probe")}
        spec = pinned(pod_spec(os, [container], settings, [node]), node)
        await self.namespace.create(PODS, pod_object(name, spec, settings, **labels))

    async def ready(self, names: Sequence[str]) -> list[Pod]:
        """Those pods, once they run and are proven."""
        return self.ctx.witnesses(list(await asyncio.gather(*(self.namespace.ready_pod(name) for name in names))))

    async def allow(self, peer: Object) -> None:
        """Let the subjects exchange TCP with these peers and with nobody else."""
        policy = {"metadata": {"name": POLICY}, "spec": _spec(peer)}
        try:
            await self.namespace.create(NETWORK_POLICIES, policy)
        except Forbidden as refusal:
            raise _no_right(refusal) from None

    async def allow_others(self, peer: Object) -> None:
        """Change the policy: others than before."""
        await self.ctx.world.client.patch(NETWORK_POLICIES, POLICY, {"spec": _spec(peer)}, self.namespace.name)

    async def remove(self) -> None:
        """Take the policy away."""
        await self.namespace.delete(NETWORK_POLICIES, POLICY)

    async def label(self, pod: Pod, **labels: str) -> None:
        """Change labels of a running pod."""
        await self.ctx.world.client.patch(PODS, pod.name, {"metadata": {"labels": labels}}, self.namespace.name)


def _spec(peer: Object) -> dict[str, Any]:
    ports = [{"protocol": "TCP", "port": NETEXEC_HTTP}]
    return {
        "podSelector": {"matchLabels": SUBJECT},
        "policyTypes": ["Ingress", "Egress"],
        "ingress": [{"from": [peer], "ports": ports}],
        "egress": [{"to": [peer], "ports": ports}],
    }


def _no_right(refusal: Forbidden) -> CheckBlocked:
    return CheckBlocked(f"network policies may not be used here: {refusal.message}", next_step=refusal.remedy)
