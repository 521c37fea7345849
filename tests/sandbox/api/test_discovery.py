"""What the server says of itself."""

from __future__ import annotations

import json
import re
from typing import Any

import aiohttp
import pytest

from sandbox.api.conftest import Http
from winready_sandbox.api.assembly import new_registry
from winready_sandbox.api.resources import ResourceTable
from winready_sandbox.api.server import ApiServer

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"


async def test_versions_groups_and_resources(http: Http) -> None:
    assert (await http.get("/api")).body["versions"] == ["v1"]
    core = (await http.get("/api/v1/")).body
    assert core["groupVersion"] == "v1"
    pods = next(r for r in core["resources"] if r["name"] == "pods")
    assert pods["shortNames"] == ["po"]
    assert {"pods/exec", "pods/log", "pods/status", "nodes/proxy"} <= {r["name"] for r in core["resources"]}
    eviction = next(r for r in core["resources"] if r["name"] == "pods/eviction")
    assert (eviction["group"], eviction["version"], eviction["kind"]) == ("policy", "v1", "Eviction")
    groups = {g["name"]: g for g in (await http.get("/apis/")).body["groups"]}
    assert groups["apps"]["preferredVersion"] == {"groupVersion": "apps/v1", "version": "v1"}
    assert (await http.get("/apis/apps")).body["name"] == "apps"
    assert (await http.get("/apis/apps/v1")).body["groupVersion"] == "apps/v1"
    assert (await http.get("/apis/nothing")).code == 404
    assert (await http.get("/apis/apps/v2")).code == 404


@pytest.mark.parametrize("version", ["v2", "v2beta1"])
async def test_everything_in_one_answer(http: Http, version: str) -> None:
    accept = AGGREGATED.replace("v=v2", f"v={version}")
    answer = await http.get("/apis", accept=accept)
    assert answer.headers["Content-Type"] == accept.split(",")[0]
    assert answer.body["apiVersion"] == f"apidiscovery.k8s.io/{version}"
    by_name = {item["metadata"]["name"]: item for item in answer.body["items"]}
    deployments = next(r for r in by_name["apps"]["versions"][0]["resources"] if r["resource"] == "deployments")
    assert deployments["responseKind"] == {"group": "apps", "version": "v1", "kind": "Deployment"}
    scale = next(s for s in deployments["subresources"] if s["subresource"] == "scale")
    assert scale["responseKind"]["kind"] == "Scale"
    core = (await http.get("/api", accept=accept)).body["items"]
    assert "name" not in core[0]["metadata"]


async def test_openapi_lists_the_parameters_that_kubectl_looks_for(http: Http) -> None:
    paths = (await http.get("/openapi/v3")).body["paths"]
    document = (await http.get(paths["apis/apps/v1"]["serverRelativeURL"].partition("?")[0])).body
    patch = document["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"]["patch"]
    assert {"fieldValidation", "fieldManager", "dryRun"} <= {p["name"] for p in patch["parameters"]}
    assert patch["x-kubernetes-group-version-kind"] == {"group": "apps", "version": "v1", "kind": "Deployment"}
    assert (await http.get("/openapi/v2")).body["swagger"] == "2.0"
    assert (await http.get("/openapi/v3/apis/nothing/v1")).code == 404


async def test_openapi_describes_the_fields_of_known_kinds(http: Http) -> None:
    schemas = (await http.get("/openapi/v3/api/v1")).body["components"]["schemas"]
    pod = schemas["io.k8s.api.core.v1.Pod"]
    assert pod["x-kubernetes-group-version-kind"] == [{"group": "", "version": "v1", "kind": "Pod"}]
    assert pod["properties"]["spec"] == {"allOf": [{"$ref": "#/components/schemas/io.k8s.api.core.v1.PodSpec"}]}
    containers = schemas["io.k8s.api.core.v1.PodSpec"]["properties"]["containers"]
    assert containers == {"type": "array", "items": {"$ref": "#/components/schemas/io.k8s.api.core.v1.Container"}}
    options = schemas["io.k8s.api.core.v1.WindowsSecurityContextOptions"]["properties"]
    assert options["hostProcess"] == {"type": "boolean"}
    used = set(re.findall(r'"\$ref": "#/components/schemas/([^"]+)"', json.dumps(schemas)))
    assert used <= set(schemas)


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz", "/readyz/ping"])
async def test_health(http: Http, path: str) -> None:
    assert (await http.get(path)).text == "ok"


@pytest.mark.parametrize(
    ("method", "path", "code"),
    [
        ("GET", "/nothing", 404),
        ("POST", "/version", 405),
        ("OPTIONS", "/api/v1/pods", 405),
        ("HEAD", "/api/v1/pods", 200),
    ],
)
async def test_other_requests(http: Http, method: str, path: str, code: int) -> None:
    answer = await http.request(method, path)
    assert answer.code == code
    if path == "/nothing":
        assert answer.text == "404 page not found\n"
    else:
        assert method == "HEAD" or json.loads(answer.text)["kind"] == "Status"


@pytest.mark.parametrize(("minor", "reviews", "policies"), [(23, False, False), (28, True, False), (37, True, True)])
async def test_the_reported_version_decides_what_is_served(minor: int, reviews: bool, policies: bool) -> None:
    server = ApiServer(new_registry(minor))
    url = f"http://127.0.0.1:{await server.start()}"
    async with aiohttp.ClientSession(url) as session:

        async def get(path: str) -> tuple[int, Any]:
            async with session.get(path) as response:
                return response.status, await response.json()

        _, version = await get("/version")
        assert (version["minor"], version["gitVersion"]) == (str(minor), f"v1.{minor}.0")
        _, found = await get("/apis/authentication.k8s.io/v1")
        assert ("selfsubjectreviews" in {r["name"] for r in found["resources"]}) is reviews
        _, found = await get("/apis/admissionregistration.k8s.io/v1")
        assert ("validatingadmissionpolicies" in {r["name"] for r in found["resources"]}) is policies
    await server.stop()


@pytest.mark.parametrize("minor", [22, 38])
def test_other_versions_are_refused(minor: int) -> None:
    with pytest.raises(ValueError, match=f"Kubernetes 1.{minor} is not one of 1.23 to 1.37"):
        ResourceTable(minor)
