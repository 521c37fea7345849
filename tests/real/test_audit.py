"""The bundled snapshots against the API servers and the e2e.test that they were made from."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from real.conftest import KUBERNETES, OLDER, WITH_OLDER, Cluster, Kubectl, programs
from real_programs import ensure
from winready.cluster.client import Client
from winready.cluster.errors import ApiError
from winready.cluster.kubeconfig import find_target
from winready.cluster.resources import Resource
from winready.features.audit.snapshot import bundled
from winready.lint.openapi import places
from winready.lint.statements import Statements

TEMPLATES = Resource("v1", "PodTemplate", "podtemplates")
REFUSED = "not be set for a windows pod"
VALUES: dict[str, Any] = {
    "string": "x", "boolean": True, "int32": 1, "int64": 1, "Quantity": "1", "IntOrString": 1,
    "Time": "2026-01-01T00:00:00Z",
}  # fmt: skip
VERSIONS = [KUBERNETES, pytest.param(OLDER, marks=WITH_OLDER)]


def audit(cluster: Cluster, *arguments: str | Path, code: int = 0) -> dict[str, Any]:
    result = cluster.winready("matrix", "audit", *map(str, arguments), "-o", "json")
    assert result.returncode == code, result.stdout + result.stderr
    document: dict[str, Any] = json.loads(result.stdout)
    return document


@pytest.mark.parametrize("version", VERSIONS)
def test_the_snapshot_is_true_and_nothing_lacks_a_statement(clusters: Callable[[str], Cluster], version: str) -> None:
    cluster = clusters(version)
    document = audit(cluster, "--kubeconfig", cluster.kubeconfig)
    assert document["to"]["kubernetes"] == version
    assert document["from"]["kubernetes"] == version
    assert document["unstated"] == 0
    for part in ("fields", "gates"):
        found = document[part]
        assert (found["compared"], found["new"], found["gone"], found["changed"]) == (True, [], [], [])


@pytest.mark.parametrize("version", VERSIONS)
def test_what_kubectl_saves_tells_the_same(clusters: Callable[[str], Cluster], version: str, tmp_path: Path) -> None:
    cluster = clusters(version)
    kubectl = Kubectl(programs(KUBERNETES) / "kubectl", cluster.kubeconfig)
    saved = {}
    for path in ("/openapi/v2", "/openapi/v3/api/v1", "/metrics"):
        saved[path] = tmp_path / path.replace("/", "-")
        saved[path].write_text(kubectl.ok("get", "--raw", path))
    snapshot = bundled()[version.rpartition(".")[0]]
    for openapi in ("/openapi/v2", "/openapi/v3/api/v1"):
        document = audit(cluster, "--to", saved[openapi], "--to", saved["/metrics"], "--all")
        assert {item["name"]: item["after"] for item in document["fields"]["all"]} == snapshot.fields
        assert document["gates"]["total"] == len(snapshot.gates or {})
        assert document["gates"]["changed"] == []


def test_two_servers_side_by_side_are_what_the_page_shows(clusters: Callable[[str], Cluster]) -> None:
    cluster = clusters(KUBERNETES)
    document = audit(cluster, "--from", OLDER, "--kubeconfig", cluster.kubeconfig)
    bundled_ones = audit(cluster, "--from", OLDER, "--to", KUBERNETES)
    for part in ("fields", "gates"):
        assert document[part] == bundled_ones[part]
    assert "PodSpec.hostnameOverride" in [item["name"] for item in document["fields"]["new"]]


def value(kind: str) -> Any:
    """Something of a type; the server may not like it, but it can read it."""
    if kind.startswith("[]"):
        return [value(kind[2:])]
    if kind.startswith("map[string]"):
        return {"a": value(kind.removeprefix("map[string]"))}
    return VALUES.get(kind, {})


def with_field(place: str, content: Any) -> dict[str, Any]:
    """A Windows pod's template in which one field is set."""
    template: dict[str, Any] = {"spec": {"os": {"name": "windows"}, "containers": [{"name": "c", "image": "i"}]}}
    *above, last = place.split(".")
    node = template
    for step in above:
        name = step.removesuffix("[*]")
        below = node.setdefault(name, [{}] if step.endswith("[*]") else {})
        node = below[0] if isinstance(below, list) else below
    node[last] = content
    return {"metadata": {"name": "audited"}, "template": template}


@pytest.mark.parametrize("version", VERSIONS)
def test_what_the_api_server_refuses_windows_pods_is_what_the_data_calls_rejected(
    clusters: Callable[[str], Cluster], version: str
) -> None:
    snapshot = bundled()[version.rpartition(".")[0]]
    fields = snapshot.fields or {}
    known = Statements(fields, snapshot.minor or 0)

    async def refused() -> set[str]:
        found = set()
        async with Client.connect(find_target(clusters(version).kubeconfig)) as client:
            for name, shortest in places(fields).items():
                # Resources of a pod are refused as a whole; what containers may have is asked there.
                place = shortest.replace("spec.resources.", "spec.containers[*].resources.")
                try:
                    await client.create(TEMPLATES, with_field(place, value(fields[name])), "default", dry_run=True)
                except ApiError as error:
                    if REFUSED in error.message:
                        found.add(name)
        return found

    stated = {name for name in fields if (one := known.of(name)) and one.effect == "rejected"}
    assert len(stated) > 30
    assert asyncio.run(refused()) == stated


@pytest.mark.e2e
def test_the_specs_are_those_of_the_real_program(clusters: Callable[[str], Cluster]) -> None:
    program = ensure(KUBERNETES, ["e2e.test"]) / "e2e.test"
    document = audit(clusters(KUBERNETES), "--to", KUBERNETES, "--e2e-binary", program)
    assert (document["specs"]["new"], document["specs"]["gone"]) == ([], [])
    assert document["unstated"] == 0
    assert document["linux_only"]["total"] == sum((bundled()["1.36"].linux_only or {}).values())
