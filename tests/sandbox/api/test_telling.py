"""What writers are told in ``Warning`` headers."""

from __future__ import annotations

from typing import Any

from sandbox.api.conftest import Http, pod
from winready_sandbox.api.registry import Registry
from winready_sandbox.api.telling import Telling

PODS = "/api/v1/namespaces/default/pods"


async def test_deprecated_labels_and_volumes_are_told_of_pods_and_templates(http: Http, registry: Registry) -> None:
    registry.validating.insert(0, Telling(registry.resources.minor).tell)
    body = pod()
    body["spec"]["nodeSelector"] = {"beta.kubernetes.io/os": "windows"}
    body["spec"]["volumes"] = [{"name": "v", "glusterfs": {"endpoints": "e", "path": "p"}}]
    label = r'deprecated since v1.14; use \"kubernetes.io/os\" instead"'
    told = (await http.post(PODS, body)).headers.getall("Warning")
    assert told == [
        f'299 - "spec.nodeSelector[beta.kubernetes.io/os]: {label}',
        '299 - "spec.volumes[0].glusterfs: deprecated in v1.25, non-functional in v1.26+"',
    ]
    template = {"metadata": {"labels": {"a": "b"}}, "spec": body["spec"]}
    workload = {"metadata": {"name": "w"}, "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template}}
    made = await http.post("/apis/apps/v1/namespaces/default/deployments", workload)
    assert (
        made.headers.getall("Warning")[0] == f'299 - "spec.template.spec.nodeSelector[beta.kubernetes.io/os]: {label}'
    )


async def test_what_hides_something_is_told(http: Http, registry: Registry) -> None:
    registry.validating.insert(0, Telling(registry.resources.minor).tell)
    body: dict[str, Any] = pod()
    body["spec"]["containers"][0] |= {
        "ports": [{"containerPort": 80}, {"containerPort": 80, "hostPort": 80}],
        "env": [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}],
        "resources": {"limits": {"memory": "100m"}},
    }
    told = (await http.post(PODS, body, dryRun="All")).headers.getall("Warning")
    here = "spec.containers[0]"
    fraction = r"fractional byte value \"100m\" is invalid, must be an integer"
    assert told == [
        f'299 - "{here}.resources.limits[memory]: {fraction}"',
        f'299 - "{here}.resources.requests[memory]: {fraction}"',
        rf'299 - "{here}.env[1]: hides previous definition of \"A\", which may be dropped when using apply"',
        f'299 - "{here}.ports[1]: overlapping port definition with {here}.ports[0]"',
    ]


async def test_a_refusal_comes_with_what_is_told_and_never_with_lines_of_its_own(http: Http) -> None:
    body = pod()
    body["spec"] |= {"colour": "red", "a\r\nSet-Cookie: b": "c", "hostPID": True, "os": {"name": "windows"}}
    refused = await http.post(PODS, body)
    assert refused.code == 422
    assert refused.headers.getall("Warning") == [r'299 - "unknown field \"spec.colour\""']
    assert "Set-Cookie" not in refused.headers
