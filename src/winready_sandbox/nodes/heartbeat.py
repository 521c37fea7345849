"""Signs of life: leases in ``kube-node-lease``, and the node's status every five minutes.

Times are cluster seconds, so at high speed a hundred nodes would flood the API server with leases. The interval is
stretched then, but never to where a node would count as lost.
"""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING, Any

from winready_sandbox.apiclient import ApiFailure, ApiUnreachable, NotFound
from winready_sandbox.clock import Clock
from winready_sandbox.nodes.times import micro

if TYPE_CHECKING:
    from winready_sandbox.nodes.kubelet import Kubelet

Object = dict[str, Any]
NAMESPACE = "kube-node-lease"
LEASE_SECONDS = 40
RENEW = 10.0
STATUS = 300.0
_TOLERATED = 30.0
_LEAST = 0.15
_RENEWALS_PER_SECOND = 50
_LEAST_STATUS = 10.0


class Heartbeat:
    """Keeps the nodes of a sandbox alive."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._nodes = 0

    def interval(self) -> float:
        """Wall seconds between two renewals of one node."""
        wanted = max(self._clock.wall(RENEW), _LEAST, self._nodes / _RENEWALS_PER_SECOND)
        return min(wanted, max(self._clock.wall(_TOLERATED), _LEAST))

    async def keep(self, node: Kubelet) -> None:
        """Renew the lease and report the status for as long as the node lives."""
        self._nodes += 1
        try:
            await asyncio.sleep(self.interval() * random.random())
            reported = asyncio.get_running_loop().time()
            while True:
                await self.renew(node)
                now = asyncio.get_running_loop().time()
                if now - reported > max(self._clock.wall(STATUS), _LEAST_STATUS):
                    reported = now
                    await node.report_node()
                await asyncio.sleep(self.interval() * random.uniform(0.96, 1.04))
        finally:
            self._nodes -= 1

    async def renew(self, node: Kubelet) -> None:
        """Renew the lease once, making it if it is missing."""
        patch = {"spec": {"renewTime": micro()}}
        try:
            await node.client.patch("leases", node.name, patch, NAMESPACE)
        except NotFound:
            await self._create(node)
        except (ApiFailure, ApiUnreachable):
            return

    async def _create(self, node: Kubelet) -> None:
        uid = node.object.get("metadata", {}).get("uid", "")
        owner = {"apiVersion": "v1", "kind": "Node", "name": node.name, "uid": uid}
        lease: Object = {
            "kind": "Lease",
            "apiVersion": "coordination.k8s.io/v1",
            "metadata": {"name": node.name, "namespace": NAMESPACE, "ownerReferences": [owner] if uid else []},
            "spec": {
                "holderIdentity": node.name,
                "leaseDurationSeconds": LEASE_SECONDS,
                "renewTime": micro(),
            },
        }
        try:
            await node.client.create("leases", lease, NAMESPACE)
        except (ApiFailure, ApiUnreachable):
            # The namespace may not exist yet; the next renewal tries again.
            return
