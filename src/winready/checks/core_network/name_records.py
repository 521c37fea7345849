"""What cluster DNS says of a name is what the API says: that address, and no other one beside it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from winready.cluster.commands import Reply
from winready.cluster.failures import CheckFailed
from winready.cluster.pods import Pod
from winready.cluster.probes import describe


def read_records(names: Iterable[str], replies: Iterable[Reply]) -> dict[str, str]:
    """The addresses of each name that was answered; a failure or silence says nothing about them."""
    return {
        name: ", ".join(reply.addresses) or "no address"
        for name, reply in zip(names, replies, strict=False)
        if reply.status in ("NOERROR", "NXDOMAIN")
    }


def wrong_records(wanted: Mapping[str, str], said: Mapping[str, str]) -> dict[str, str]:
    """Those that are not what they must be."""
    return {name: found for name, found in said.items() if found != wanted[name]}


def require_records(client: Pod, wanted: Mapping[str, str], said: Mapping[str, str]) -> None:
    """Nothing else was said."""
    if found := wrong_records(wanted, said):
        told = "; ".join(f"{name}: {addresses}, not {wanted[name]}" for name, addresses in found.items())
        raise CheckFailed(
            f"{describe(client)} is told other addresses than the API has: {told}",
            expected="; ".join(f"{name}: {address}" for name, address in wanted.items()),
            observed="; ".join(f"{name}: {addresses}" for name, addresses in said.items()),
            next_step=f"look at each pod of cluster DNS and at whatever answers in their place on node "
            f"{client.node.name}",
        )
