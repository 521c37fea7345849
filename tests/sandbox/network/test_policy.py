"""Network policies as the policy engines of both OSes enforce them."""

from __future__ import annotations

from typing import Any

import pytest

from sandbox.network.helpers import ask, endpoint_slice, pod, publish, serve_name, service, sync, until
from winready_sandbox.network.endpoint import TimedOut
from winready_sandbox.network.fabric import Fabric
from winready_sandbox.network.pod_endpoint import NetworkEndpoint
from winready_sandbox.streams import Connection


def policy(fabric: Fabric, selector: dict[str, str], *, namespace: str = "x", name: str = "p", **spec: Any) -> None:
    """Put a policy in force."""
    types = [kind.capitalize() for kind in ("ingress", "egress") if kind in spec]
    fabric.view.put("namespaces", {"metadata": {"name": namespace, "labels": {"team": namespace}}})
    fabric.view.put(
        "networkpolicies",
        {
            "metadata": {"name": name, "namespace": namespace},
            "spec": {"podSelector": {"matchLabels": selector}, "policyTypes": types, **spec},
        },
    )
    sync(fabric)


async def reaches(client: NetworkEndpoint, address: str, port: int = 8080) -> bool:
    """Whether a connection is made."""
    try:
        await ask(client, address, port, timeout=1)
    except TimedOut:
        return False
    return True


@pytest.fixture
def pods(fabric: Fabric) -> dict[str, NetworkEndpoint]:
    """x/srv and clients x/a, x/b, y/a; the server listens on 8080 and 8081."""
    for namespace in ("x", "y"):
        fabric.view.put("namespaces", {"metadata": {"name": namespace, "labels": {"team": namespace}}})
    made = {
        "srv": pod(fabric, "w1", "srv", "x", {"pod": "srv"}),
        "x/a": pod(fabric, "w2", "xa", "x", {"pod": "a"}),
        "x/b": pod(fabric, "w1", "xb", "x", {"pod": "b"}),
        "y/a": pod(fabric, "l1", "ya", "y", {"pod": "a"}),
    }
    serve_name(made["srv"], "srv")
    serve_name(made["srv"], "srv", 8081)
    return made


async def allowed(pods: dict[str, NetworkEndpoint], port: int = 8080) -> set[str]:
    """Clients that reach the server."""
    target = pods["srv"].addresses[0]
    return {name for name, client in pods.items() if name != "srv" and await reaches(client, target, port)}


async def test_without_policies_everybody_talks(fabric: Fabric, pods: dict[str, NetworkEndpoint]) -> None:
    assert await allowed(pods) == {"x/a", "x/b", "y/a"}


async def test_ingress_by_pod_and_by_namespace(fabric: Fabric, pods: dict[str, NetworkEndpoint]) -> None:
    policy(fabric, {"pod": "srv"}, ingress=[{"from": [{"podSelector": {"matchLabels": {"pod": "a"}}}]}])
    assert await allowed(pods) == {"x/a"}
    by_name = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "x"}}}
    policy(fabric, {"pod": "srv"}, ingress=[{"from": [by_name]}])
    assert await allowed(pods) == {"x/a", "x/b"}
    both = {"namespaceSelector": {"matchLabels": {"team": "y"}}, "podSelector": {"matchLabels": {"pod": "a"}}}
    policy(fabric, {"pod": "srv"}, ingress=[{"from": [both]}])
    assert await allowed(pods) == {"y/a"}
    fabric.view.remove("networkpolicies", "x", "p")
    sync(fabric)
    assert await allowed(pods) == {"x/a", "x/b", "y/a"}


async def test_default_deny_and_policies_add_up(fabric: Fabric, pods: dict[str, NetworkEndpoint]) -> None:
    policy(fabric, {}, name="deny", ingress=[])
    assert await allowed(pods) == set()
    policy(fabric, {"pod": "srv"}, name="open", ingress=[{}])
    assert await allowed(pods) == {"x/a", "x/b", "y/a"}


async def test_ports_by_number_range_and_name(fabric: Fabric, pods: dict[str, NetworkEndpoint]) -> None:
    policy(fabric, {"pod": "srv"}, ingress=[{"ports": [{"port": 8081, "protocol": "TCP"}]}])
    assert not await allowed(pods, 8080)
    assert await allowed(pods, 8081)
    policy(fabric, {"pod": "srv"}, ingress=[{"ports": [{"port": 8000, "endPort": 8080, "protocol": "TCP"}]}])
    assert await allowed(pods, 8080)
    assert not await allowed(pods, 8081)
    policy(fabric, {"pod": "srv"}, ingress=[{"ports": [{"port": "http"}]}])
    assert await allowed(pods, 8080)
    assert not await allowed(pods, 8081)
    with pytest.raises(TimedOut):
        await pods["x/a"].exchange(pods["srv"].addresses[0], 8080, b"x", timeout=1)


async def test_ip_blocks_with_exceptions(fabric: Fabric, pods: dict[str, NetworkEndpoint]) -> None:
    block = {"cidr": "10.244.0.0/16", "except": ["10.244.11.0/24"]}
    policy(fabric, {"pod": "srv"}, ingress=[{"from": [{"ipBlock": block}]}])
    assert await allowed(pods) == {"x/a", "x/b"}


async def test_egress_is_judged_at_the_source_after_services_were_translated(
    fabric: Fabric, pods: dict[str, NetworkEndpoint]
) -> None:
    publish(fabric, service("s", "10.96.3.3", namespace="x"), endpoint_slice("s", [pods["srv"]], namespace="x"))
    policy(fabric, {"pod": "a"}, egress=[{"to": [{"podSelector": {"matchLabels": {"pod": "srv"}}}]}])
    assert await reaches(pods["x/a"], "10.96.3.3", 80)
    policy(fabric, {"pod": "a"}, egress=[{"to": [{"podSelector": {"matchLabels": {"pod": "nobody"}}}]}])
    assert not await reaches(pods["x/a"], "10.96.3.3", 80)
    assert await reaches(pods["x/b"], "10.96.3.3", 80)
    assert await reaches(pods["y/a"], "10.96.3.3", 80)


async def test_the_nodes_own_kubelet_gets_through_and_strangers_behind_a_node_port_do_not(
    fabric: Fabric, pods: dict[str, NetworkEndpoint]
) -> None:
    policy(fabric, {"pod": "srv"}, ingress=[])
    target = pods["srv"].addresses[0]
    assert await reaches(fabric.host("w1"), target)
    assert not await reaches(fabric.host("l1"), target)


async def test_policies_take_effect_after_a_delay_and_spare_what_is_established(
    fabric: Fabric, pods: dict[str, NetworkEndpoint]
) -> None:
    async def echo(connection: Connection) -> None:
        while data := await connection.read():
            connection.write(data)

    pods["srv"].listen(7, echo)
    open_before = await pods["x/a"].connect(pods["srv"].addresses[0], 7, timeout=1)
    spec = {"podSelector": {}, "policyTypes": ["Ingress"]}
    fabric.view.put("networkpolicies", {"metadata": {"name": "deny", "namespace": "x"}, "spec": spec})
    assert await reaches(pods["x/a"], pods["srv"].addresses[0])
    await until(lambda: bool(fabric.nodes["w1"].policies._active))
    assert not await reaches(pods["x/a"], pods["srv"].addresses[0])
    open_before.write(b"still here")
    assert await open_before.read() == b"still here"
    open_before.close()


async def test_defects_of_the_engine(fabric: Fabric, pods: dict[str, NetworkEndpoint]) -> None:
    policy(fabric, {"pod": "srv"}, ingress=[{"from": [{"podSelector": {"matchLabels": {"pod": "a"}}}]}])
    defects = fabric.nodes["w1"].defects.policy
    defects.not_enforced = True
    assert await allowed(pods) == {"x/a", "x/b", "y/a"}
    defects.not_enforced, defects.block_all = False, True
    assert await allowed(pods) == set()
    defects.block_all, defects.namespaces_ignored = False, True
    assert await allowed(pods) == {"x/a", "y/a"}
    defects.namespaces_ignored, defects.pods_ignored = False, True
    assert await allowed(pods) == {"x/a", "x/b"}
    defects.pods_ignored, defects.never_removed = False, True
    fabric.view.remove("networkpolicies", "x", "p")
    sync(fabric)
    assert await allowed(pods) == {"x/a"}
    defects.never_removed = False
    sync(fabric)
    assert await allowed(pods) == {"x/a", "x/b", "y/a"}
