"""What an inventory makes of nodes that no run may use."""

from __future__ import annotations

from typing import Any

from winready.cluster.inventory import read_node


def node(**labels: str) -> dict[str, Any]:
    ready = {"type": "Ready", "status": "True"}
    info = {"operatingSystem": "linux", "osImage": "Debian"}
    status = {"conditions": [ready], "nodeInfo": info}
    return {
        "metadata": {"name": "host-1", "uid": "1", "labels": {"kubernetes.io/os": "linux", **labels}},
        "status": status,
    }


def test_the_host_node_of_a_sandbox_is_left_out() -> None:
    assert read_node(node()).unusable == ""
    said = read_node(node(**{"sandbox.winready.io/host": "true"})).unusable
    assert said == "it is the host node of a sandbox, beside the simulated network"
