"""What names are asked for: of fixtures that are there anyway, and of a few headless services that cost no pod.

A headless service without a selector is a name and a list of addresses, both ours to change, and no service proxy has
to do anything about it: what becomes of its name is cluster DNS and the pod's resolver alone.
"""

from __future__ import annotations

from dataclasses import dataclass

from winready.checks.cluster_names import SERVICE_LABEL
from winready.checks.context import Context
from winready.checks.core_network.names import HTTPS, Target
from winready.checks.fixtures import PEERS, service_object
from winready.cluster.client import Object
from winready.cluster.commands import NETEXEC_HTTP, Reply, read_replies
from winready.cluster.pods import Pod
from winready.cluster.resources import ENDPOINT_SLICES, SERVICES

MOVED, LATE, WIDE = "moved", "late", "wide"
MANY = [f"203.0.113.{number}" for number in range(1, 61)]
"""More addresses than a datagram holds; nobody has them."""


@dataclass
class Names:
    """Names and where they must lead."""

    suffix: str
    steady: list[Target]
    """What stays as it is."""
    before: list[Target]
    after: list[Target]
    """Where names must lead once `change` was called and the time to live is over."""
    records: dict[str, str]
    """Addresses by name, as the API has them."""
    second: Pod
    ttl: float = 30

    @property
    def wide(self) -> str:
        """The name whose answer is large, with a port."""
        return f"{WIDE}.{self.suffix}:{NETEXEC_HTTP}"

    def read(self, output: bytes) -> list[Reply]:
        """Replies to questions for the records; how long they may be believed is kept."""
        replies = read_replies(output)
        self.ttl = max([self.ttl, *(float(reply.ttl) for reply in replies)])
        return replies

    async def change(self, ctx: Context) -> None:
        """One name gets another address, and another one comes into being after it was asked for in vain."""
        namespace = await ctx.shared_namespace()
        ends = {"endpoints": _slice(MOVED, [self.second.address])["endpoints"]}
        await ctx.world.client.patch(ENDPOINT_SLICES, MOVED, ends, namespace.name, kind="merge")
        await _make(ctx, LATE, [self.second.address])


async def prepare(ctx: Context) -> Names:
    """Make what names need, and tell where they must lead."""
    domain = await ctx.world.cluster_domain()
    namespace = (await ctx.shared_namespace()).name
    servers = await ctx.servers("linux")
    linux, windows = await ctx.service("linux"), await ctx.service("windows")
    api = await ctx.world.client.get(SERVICES, "kubernetes", "default")
    first, second = servers[0], servers[1]
    await _make(ctx, MOVED, [first.address])
    await _make(ctx, WIDE, MANY)
    suffix = f"{namespace}.svc.{domain}"
    everyone = tuple(pod.name for pod in servers)
    peer, own = f"{first.name}.{PEERS}.{suffix}", f"kubernetes.default.svc.{domain}"
    # A name with a dot is complete to Windows: half-qualified names are not part of what it promises.
    steady = [
        Target(f"ls.{suffix}", linux.port, everyone, address=linux.cluster_ip),
        Target("ls", linux.port, everyone),
        Target(peer, NETEXEC_HTTP, (first.name,), address=first.address, headless=True),
        Target(own, HTTPS, api=True, address=api["spec"]["clusterIP"]),
    ]
    moved, late = f"{MOVED}.{suffix}", f"{LATE}.{suffix}"
    missing = Target(f"none-{ctx.settings.run_id}.{suffix}", linux.port, absent=True)
    records = {
        f"ls.{suffix}": linux.cluster_ip,
        f"ws.{suffix}": windows.cluster_ip,
        peer: first.address,
        own: api["spec"]["clusterIP"],
    }
    return Names(
        suffix=suffix,
        steady=steady,
        before=[
            *steady,
            Target(moved, NETEXEC_HTTP, (first.name,), address=first.address, headless=True),
            Target(late, NETEXEC_HTTP, absent=True),
        ],
        after=[
            Target(moved, NETEXEC_HTTP, (second.name,), address=second.address, headless=True),
            Target(late, NETEXEC_HTTP, (second.name,), address=second.address, headless=True),
            missing,
        ],
        records=records,
        second=second,
    )


async def _make(ctx: Context, name: str, addresses: list[str]) -> None:
    namespace = await ctx.shared_namespace()
    await namespace.create(SERVICES, service_object(name, None, type="ClusterIP", clusterIP="None"))
    await namespace.create(ENDPOINT_SLICES, _slice(name, addresses))


def _slice(name: str, addresses: list[str]) -> Object:
    return {
        "metadata": {"name": name, "labels": {SERVICE_LABEL: name}},
        "addressType": "IPv4",
        "ports": [{"name": "http", "port": NETEXEC_HTTP, "protocol": "TCP"}],
        "endpoints": [{"addresses": [address], "conditions": {"ready": True}} for address in addresses],
    }
