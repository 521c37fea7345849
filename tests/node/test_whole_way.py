"""From a node without a service proxy to a proven worker: the add-ons make the difference, and verify sees it."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.conftest import SPEED, CommandLine
from node.sandboxes import ask, call, command_line, until
from winready.cli.node_addons import addons
from winready.cli.node_verify import verify
from winready.cluster.client import Client
from winready.cluster.resources import DAEMON_SETS, Resource

__all__ = ["command_line"]
NODE = "windows-1"
RIVALS = ("kube-proxy-windows", "calico-node-windows")
BY_SERVICE = "core.network.windows-to-linux-service-ip"
ENDPOINT_SLICES = Resource("discovery.k8s.io/v1", "EndpointSlice", "endpointslices")


@pytest.fixture(scope="module")
def own_cluster(command_line: CommandLine) -> str:
    """A cluster whose Windows node has lost its service proxy and pod network."""
    kubeconfig = str(command_line.sandbox("way", "--linux", "1", "--windows", "1")["kubeconfig"])

    async def clear(client: Client) -> None:
        async def there() -> bool:
            found = [await client.get(DAEMON_SETS, name, "kube-system") for name in RIVALS]
            return all(item["status"].get("numberReady") == 1 for item in found)

        # Until its first service proxy has started, a simulated node programs services by itself.
        await until(there)
        for name in RIVALS:
            await client.delete(DAEMON_SETS, name, "kube-system")

        async def gone() -> bool:
            pods = await client.list(Resource("v1", "Pod", "pods"), "kube-system")
            return not any(pod["metadata"]["name"].startswith(RIVALS) for pod in pods)

        await until(gone)

    ask(kubeconfig, clear)
    return kubeconfig


def endpoint(kubeconfig: str) -> str:
    """The API server as simulated nodes reach it."""
    found = ask(kubeconfig, lambda client: client.get(ENDPOINT_SLICES, "kubernetes", "default"))
    return f"{found['endpoints'][0]['addresses'][0]}:{found['ports'][0]['port']}"


def test_without_add_ons_the_node_fails_and_with_them_it_passes(own_cluster: str, tmp_path: Path) -> None:
    arguments = [NODE, "--requirement", BY_SERVICE, "--time-scale", SPEED, "--report-dir", str(tmp_path)]
    without = call(verify, own_cluster, *arguments)
    assert without.exit_code == 1, without.output
    given = ["--pod-cidr", "10.244.0.0/16", "--service-cidr", "10.96.0.0/16", "--endpoint", endpoint(own_cluster)]
    applied = call(addons.commands["apply"], own_cluster, *given, "--wait", "10m")
    assert applied.exit_code == 0, applied.output
    with_them = call(verify, own_cluster, *arguments)
    assert with_them.exit_code == 0, with_them.output
