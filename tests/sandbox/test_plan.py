"""The addresses of a sandbox: each node has its own, in its range, however many there are."""

from __future__ import annotations

import itertools
from ipaddress import ip_address, ip_network

import pytest

from winready_sandbox.plan import FEW_NODES, MOST_NODES, Plan, PlanError
from winready_sandbox.up import FILE_SERVER_ADDRESS


@pytest.mark.parametrize("windows", [2, FEW_NODES - 2, FEW_NODES - 1, 1000, MOST_NODES - 2])
def test_no_two_addresses_or_ranges_of_nodes_overlap(windows: int) -> None:
    plan = Plan(windows=windows, dual_stack=True, host_node=windows < FEW_NODES)
    nodes = [*plan.nodes, *([plan.host] if plan.host else [])]
    addresses = [ip_address(text) for node in nodes for text in node.addresses]
    assert len({*addresses, ip_address(FILE_SERVER_ADDRESS)}) == len(addresses) + 1
    families = [ip_network(text) for text in plan.pod_networks]
    services = [ip_network(text) for text in plan.service_networks]
    for family in families:
        own = [
            net
            for node in plan.nodes
            for text in node.pod_networks
            if (net := ip_network(text)).version == family.version
        ]
        assert len(own) == windows + 2
        # In order, a range that begins after the one before it has ended overlaps with none.
        own.sort(key=lambda net: int(net.network_address))
        assert all(int(a.broadcast_address) < int(b.network_address) for a, b in itertools.pairwise(own))
        assert int(family.network_address) <= int(own[0].network_address)
        assert int(own[-1].broadcast_address) <= int(family.broadcast_address)
        assert not any(family.version == net.version and family.overlaps(net) for net in services)
    assert not any(address in net for address in addresses for net in [*families, *services])


def test_more_nodes_than_there_are_addresses_for_are_refused() -> None:
    with pytest.raises(PlanError, match=f"1 to {MOST_NODES} nodes in all"):
        Plan(windows=MOST_NODES - 1)


def test_few_nodes_keep_the_addresses_that_they_always_had() -> None:
    first = Plan(windows=FEW_NODES - 2).nodes[0]
    assert (first.addresses, first.pod_networks) == (["10.250.0.2"], ["10.244.2.0/24"])
