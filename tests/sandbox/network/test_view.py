"""The shared view of the cluster."""

from __future__ import annotations

from sandbox.network.helpers import endpoint_slice, pod, pod_object, service
from winready_sandbox.network.fabric import Fabric
from winready_sandbox.network.view import ClusterView


def test_a_pods_address_is_its_own_only_while_it_runs() -> None:
    view = ClusterView()
    first = pod_object("a", "ns", ["10.0.0.1"], "n", {})
    view.put("pods", first)
    assert view.pods_by_ip["10.0.0.1"]["metadata"]["name"] == "a"
    view.put("pods", {**first, "status": {"phase": "Succeeded", "podIPs": [{"ip": "10.0.0.1"}]}})
    assert "10.0.0.1" not in view.pods_by_ip
    view.put("pods", pod_object("b", "ns", ["10.0.0.1"], "n", {}))
    view.remove("pods", "ns", "a")
    assert view.pods_by_ip["10.0.0.1"]["metadata"]["name"] == "b"


def test_a_new_list_removes_what_is_gone_and_tells_whose_service_changed() -> None:
    view = ClusterView()
    told: list[tuple[str, str]] = []
    view.on_services(told.append)
    view.replace("services", [service("a", "10.96.0.1"), service("b", "10.96.0.2")])
    view.replace("services", [service("b", "10.96.0.3")])
    assert view.services_by_ip == {"10.96.0.3": ("ns", "b")}
    assert told == [("ns", "a"), ("ns", "b"), ("ns", "a"), ("ns", "b")]


async def test_a_slice_that_changes_hands_changes_both_services(fabric: Fabric) -> None:
    backend = pod(fabric, "l1", "a")
    view = fabric.view
    view.put("endpointslices", endpoint_slice("old", [backend]))
    moved = endpoint_slice("old", [backend])
    moved["metadata"]["labels"] = {"kubernetes.io/service-name": "new"}
    view.put("endpointslices", moved)
    assert not view.slices_of["ns", "old"]
    assert view.slices_of["ns", "new"]
    view.remove("endpointslices", "ns", "old-4")
    assert not view.slices_of["ns", "new"]
