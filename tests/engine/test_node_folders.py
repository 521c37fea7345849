"""Folders that killed runs left on Windows nodes: found, removed, and nothing else with them."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from engine.stage import Stage
from winready.cluster.client import Client
from winready.cluster.host_scripts import network_objects
from winready.cluster.inventory import Inventory, read_node, take_inventory
from winready.cluster.node_folders import Swept, sweep_nodes
from winready.cluster.resources import NAMESPACES, NODES
from winready.cluster.settings import RUN_LABEL, Settings
from winready_sandbox.machine.files import FileSystem
from winready_sandbox.machine.machine import PowerRequest
from winready_sandbox.machine.windows_host import FirewallRule, HnsEndpoint, HnsNetwork, WindowsHost

OURS, OTHER, SWEEP = "261115-101500-ab12", "261115-111500-cd34", "261116-090000-0001"
NETWORK, FOREIGN_NAMESPACE = "0d6b2c1e-8d4f-4c5a-9a67-0c2f8e1d3b5a", "6f1d2c3b-1111-4222-8333-444455556666"
FOREIGN = ("C:\\winready\\keep\\a.txt", f"C:\\winready\\{OURS}.txt", "C:\\winready\\261115-101500-ab12x\\b.txt")


def disk(stage: Stage, node: str) -> FileSystem:
    return stage.sandbox.fleet.kubelets[node].machine.files


@pytest.fixture
def littered(stage: Stage) -> Iterator[Stage]:
    """Folders of two runs on one node, of one on the other, and what somebody else keeps beside them."""
    for node, run in (("windows-1", OURS), ("windows-1", OTHER), ("windows-2", OURS)):
        put(stage, node, f"C:\\winready\\{run}\\read\\r.txt")
    for path in FOREIGN:
        put(stage, "windows-1", path)
    yield stage
    for node in ("windows-1", "windows-2"):
        if disk(stage, node).exists("C:\\winready"):
            disk(stage, node).remove("C:\\winready", recursive=True)


def put(stage: Stage, node: str, path: str) -> None:
    disk(stage, node).mkdir(path.rpartition("\\")[0], parents=True)
    disk(stage, node).write(path, b"x")


def sweep(stage: Stage, *, found: Inventory | None = None, **given: Any) -> Swept:
    async def story(client: Client) -> Swept:
        inventory = found or await take_inventory(client)
        options = {"run_id": None, "patience": 300.0, "dry_run": False, **given}
        return await sweep_nodes(client, Settings(run_id=SWEEP), inventory, **options)

    return stage.do(story)


def test_folders_of_runs_go_and_everything_else_stays(littered: Stage) -> None:
    swept = sweep(littered)
    assert sorted(swept.removed) == [
        f"folder C:\\winready\\{OURS} on node windows-1",
        f"folder C:\\winready\\{OURS} on node windows-2",
        f"folder C:\\winready\\{OTHER} on node windows-1",
    ]
    assert swept.left == []
    assert all(disk(littered, "windows-1").exists(path) for path in FOREIGN)
    assert not disk(littered, "windows-1").exists(f"C:\\winready\\{OURS}")
    assert not disk(littered, "windows-2").exists("C:\\winready"), "the empty folder above goes, too"
    assert littered.left() == []


def test_one_run_alone_is_cleaned_up_after_and_a_dry_run_only_looks(littered: Stage) -> None:
    looked = sweep(littered, run_id=OTHER, dry_run=True)
    assert looked.removed == [f"folder C:\\winready\\{OTHER} on node windows-1"]
    assert disk(littered, "windows-1").exists(f"C:\\winready\\{OTHER}\\read\\r.txt")
    assert sweep(littered, run_id=OTHER).removed == looked.removed
    assert disk(littered, "windows-1").exists(f"C:\\winready\\{OURS}\\read\\r.txt")
    assert littered.left() == []


def test_the_folder_of_a_run_that_is_going_on_stays(littered: Stage) -> None:
    space = {"metadata": {"name": f"winready-{OURS}-fx", "labels": {RUN_LABEL: OURS}}}
    littered.do(lambda client: client.create(NAMESPACES, space))
    try:
        swept = sweep(littered)
    finally:
        littered.tidy()
    assert sorted(swept.left) == [
        f"folder C:\\winready\\{OURS} on node {node} (its run is going on)" for node in ("windows-1", "windows-2")
    ]
    assert disk(littered, "windows-2").exists(f"C:\\winready\\{OURS}\\read\\r.txt")


def test_without_host_process_containers_a_volume_shows_the_folder(littered: Stage) -> None:
    async def old(client: Client) -> Inventory:
        found = await take_inventory(client)
        found.missing["hostprocess"] = "containerd 1.6 is needed"
        return found

    swept = sweep(littered, found=littered.do(old))
    assert (len(swept.removed), swept.left) == (3, [])
    assert all(disk(littered, "windows-1").exists(path) for path in FOREIGN)
    assert littered.left() == []


def test_a_node_that_is_away_is_named_and_the_others_are_swept(littered: Stage) -> None:
    async def cordon(client: Client, value: bool | None) -> None:
        await client.patch(NODES, "windows-1", {"spec": {"unschedulable": value}})

    littered.do(lambda client: cordon(client, True))
    try:
        swept = sweep(littered)
    finally:
        littered.do(lambda client: cordon(client, None))
    assert swept.left == ["unknown on node windows-1: it is cordoned"]
    assert swept.removed == [f"folder C:\\winready\\{OURS} on node windows-2"]


def test_a_node_that_reboots_is_waited_for(littered: Stage) -> None:
    before = littered.sandbox.fleet.kubelets["windows-2"].machine.boot_id

    async def story(client: Client) -> Swept:
        machine = littered.sandbox.fleet.kubelets["windows-2"].machine
        machine.request_power(PowerRequest(restart=True, delay=0.0))
        for _ in range(100):
            await asyncio.sleep(1.0)
            if read_node(await client.get(NODES, "windows-2")).away:
                break
        inventory = await take_inventory(client)
        looked = await sweep_nodes(client, Settings(run_id=SWEEP), inventory, run_id=None, patience=300.0, dry_run=True)
        assert [text.partition(" (")[0] for text in looked.left] == ["unknown on node windows-2: it is not Ready"]
        return await sweep_nodes(client, Settings(run_id=SWEEP), inventory, run_id=None, patience=300.0, dry_run=False)

    swept = littered.do(story)
    assert (len(swept.removed), swept.left) == (3, [])
    assert littered.sandbox.fleet.kubelets["windows-2"].machine.boot_id != before
    assert littered.left() == []


def test_a_pod_that_does_not_start_says_why_and_is_removed(littered: Stage) -> None:
    async def story(client: Client) -> Swept:
        settings = replace(Settings(run_id=SWEEP), image_registry="nowhere.example/mirror")
        inventory = await take_inventory(client)
        return await sweep_nodes(client, settings, inventory, run_id=None, patience=60.0, dry_run=False)

    swept = littered.do(story)
    assert swept.removed == []
    assert len(swept.left) == 2
    assert all(text.startswith("unknown on node windows-") for text in swept.left)
    assert all("nowhere.example/mirror" in text for text in swept.left), "the image that cannot be had"
    assert littered.left() == []


def test_an_interruption_leaves_no_pod_behind(littered: Stage) -> None:
    async def story(client: Client) -> None:
        inventory = await take_inventory(client)
        task = asyncio.create_task(
            sweep_nodes(client, Settings(run_id=SWEEP), inventory, run_id=None, patience=300.0, dry_run=False)
        )
        await asyncio.sleep(3)
        assert await client.list(NAMESPACES, labels=RUN_LABEL), "its pods are being started"
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    littered.do(story)
    assert littered.left() == []


def configure(stage: Stage, node: str) -> WindowsHost:
    """What a run that was killed left in the settings of a node, between things of others."""
    host = stage.sandbox.fleet.kubelets[node].machine.windows_host
    for name in (f"winready-{OURS}", "winready", "calico"):
        identifier = NETWORK if name == f"winready-{OURS}" else str(uuid.uuid5(uuid.UUID(NETWORK), name))
        host.hns.add(HnsNetwork(name, "Private", "192.0.2.0/24", id=identifier.upper()))
    own = network_objects(NETWORK)
    host.hns.endpoints[own["endpoint"]] = HnsEndpoint(f"winready-{OURS}", NETWORK, "192.0.2.10", ["ACL"])
    for identifier in (own["namespace"], FOREIGN_NAMESPACE):
        host.hns.namespaces[identifier] = "Guest"
    for name in (f"winready-{OURS}-20123", f"winready-{OTHER}-20124", "winready-team-20125"):
        host.firewall.append(FirewallRule(name, name, "Inbound", "Allow", added=True))
    for name in (f"winready-{OURS}-1a2b3c4d", "winready-operators", f"our-winready-{OURS}"):
        host.groups[name] = []
    return host


def test_settings_of_runs_go_and_those_of_others_stay(stage: Stage) -> None:
    host = configure(stage, "windows-1")
    everything = [
        f"firewall rule winready-{OURS}-20123 on node windows-1",
        f"host networking objects winready-{OURS} on node windows-1",
        f"local group winready-{OURS}-1a2b3c4d on node windows-1",
    ]
    try:
        assert sorted(sweep(stage, run_id=OURS, dry_run=True).removed) == everything
        assert len(host.hns.endpoints) == 1, "a dry run only looks"
        swept = sweep(stage, run_id=OURS)
        assert (sorted(swept.removed), swept.left) == (everything, [])
        assert sweep(stage).removed == [f"firewall rule winready-{OTHER}-20124 on node windows-1"]
        assert sweep(stage) == Swept()
        assert not host.hns.endpoints
        assert list(host.hns.namespaces) == [FOREIGN_NAMESPACE]
        assert {"winready", "calico"} <= {each.name for each in host.hns.networks.values()}
        assert {"winready-operators", f"our-winready-{OURS}"} <= set(host.groups)
        assert [rule.name for rule in host.firewall if rule.added] == ["winready-team-20125"]
        assert stage.left() == []
    finally:
        restore(host)


def test_settings_of_a_run_that_is_going_on_stay(stage: Stage) -> None:
    host = configure(stage, "windows-1")
    space = {"metadata": {"name": f"winready-{OURS}-fx", "labels": {RUN_LABEL: OURS}}}
    stage.do(lambda client: client.create(NAMESPACES, space))
    try:
        swept = sweep(stage, run_id=OURS)
        assert swept.removed == []
        assert len(swept.left) == 3
        assert all(text.endswith("on node windows-1 (its run is going on)") for text in swept.left)
        assert len(host.hns.endpoints) == 1
    finally:
        stage.do(lambda client: client.delete(NAMESPACES, f"winready-{OURS}-fx"))
        restore(host)


def restore(host: WindowsHost) -> None:
    host.hns.endpoints.clear()
    host.hns.namespaces.clear()
    host.hns.networks = {name: each for name, each in host.hns.networks.items() if each.type != "Private"}
    host.firewall[:] = [rule for rule in host.firewall if not rule.added]
    host.groups = {name: members for name, members in host.groups.items() if "winready" not in name}
