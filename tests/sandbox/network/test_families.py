"""What nodes that know one IP family only do in a network of both."""

from __future__ import annotations

import pytest

from sandbox.network.helpers import ask, endpoint_slice, pod, publish, serve_name, service, small_cluster
from winready_sandbox.network.endpoint import TimedOut

SERVER_2019, SERVER_2022 = 17763, 20348


@pytest.mark.parametrize(("build", "families"), [(SERVER_2019, 1), (SERVER_2022, 2)])
async def test_pods_of_server_2019_have_one_family(build: int, families: int) -> None:
    fabric = small_cluster(dual_stack=True, build=build)
    assert len(pod(fabric, "w1", "a").addresses) == families
    assert len(pod(fabric, "l1", "b").addresses) == 2
    fabric.close()


@pytest.mark.parametrize("build", [SERVER_2019, SERVER_2022])
async def test_server_2019_has_no_ipv6_node_ports(build: int) -> None:
    fabric = small_cluster(dual_stack=True, build=build)
    server, client = pod(fabric, "l1", "server"), pod(fabric, "l2", "client")
    pod(fabric, "w1", "any")  # without a pod a Windows node forwards nothing
    serve_name(server, "server")
    publish(fabric, service("s", "fd00:96::9", node_port=30080), endpoint_slice("s", [server], family=6))
    four, six = fabric.nodes["w1"].host.addresses
    assert four
    if build == SERVER_2022:
        assert (await ask(client, six, 30080))[0] == "server"
    else:
        with pytest.raises(TimedOut):
            await ask(client, six, 30080)
    fabric.close()
