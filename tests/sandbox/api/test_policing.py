"""Who refuses objects besides the rules of their kind, in the words of the real API server."""

from __future__ import annotations

from typing import Any

import pytest

from winready_sandbox.api import policing
from winready_sandbox.api.admission import install
from winready_sandbox.api.assembly import new_registry
from winready_sandbox.api.client import LocalClient
from winready_sandbox.api.errors import ApiError
from winready_sandbox.api.objects import Object
from winready_sandbox.api.policing.hooks import Reviewers
from winready_sandbox.api.registry import Admission

BOUNDS = {
    "type": "Container",
    "max": {"cpu": "2", "memory": "2Gi"},
    "min": {"cpu": "10m"},
    "default": {"cpu": "500m", "memory": "256Mi"},
    "defaultRequest": {"cpu": "100m"},
    "maxLimitRequestRatio": {"memory": "4"},
}
SMALL = {
    "pods": "1",
    "requests.cpu": "1",
    "limits.memory": "1Gi",
    "services.nodeports": "1",
    "count/deployments.apps": "0",
    "configmaps": "1",
}
RULES = [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}]


class Cluster:
    """An API server with one namespace."""

    def __init__(self, labels: dict[str, str] | None = None, level: str = "privileged") -> None:
        registry = new_registry()
        install(registry)
        self.reviewers: Reviewers = policing.install(registry, level)
        self.api = LocalClient(registry)
        self.api.create("namespaces", {"metadata": {"name": "default", "labels": labels or {}}})
        self.api.create("serviceaccounts", {"metadata": {"name": "default"}}, "default")

    def put(self, resource: str, name: str, **spec: Any) -> Object:
        return self.api.create(resource, {"metadata": {"name": name}, "spec": spec}, "default")

    def pod(self, name: str = "a", count: int = 1, resources: Any = None, **spec: Any) -> Object:
        containers = [
            {"name": f"c{n}", "image": "registry.k8s.io/pause:3.10", "resources": resources or {}}
            for n in range(1, count + 1)
        ]
        return self.put("pods", name, containers=containers, **spec)

    def refuses(self, *arguments: Any, **spec: Any) -> ApiError:
        with pytest.raises(ApiError) as caught:
            self.pod(*arguments, **spec)
        return caught.value


def test_a_limit_range_completes_containers_and_says_so() -> None:
    cluster = Cluster()
    cluster.put("limitranges", "bounds", limits=[BOUNDS])
    pod = cluster.pod(resources={"requests": {"memory": "100Mi"}})
    assert pod["spec"]["containers"][0]["resources"] == {
        "requests": {"memory": "100Mi", "cpu": "100m"},
        "limits": {"cpu": "500m", "memory": "256Mi"},
    }
    words = "LimitRanger plugin set: cpu request for container c1; cpu, memory limit for container c1"
    assert pod["metadata"]["annotations"]["kubernetes.io/limit-ranger"] == words


@pytest.mark.parametrize(
    ("resources", "text"),
    [
        (
            {"limits": {"cpu": "4", "memory": "4Gi"}},
            "[maximum cpu usage per Container is 2, but limit is 4, maximum memory usage per Container is 2Gi, but "
            "limit is 4Gi, maximum memory usage per Pod is 3Gi, but limit is 4Gi]",
        ),
        ({"requests": {"cpu": "1m"}}, "minimum cpu usage per Container is 10m, but request is 1m"),
        (
            {"requests": {"memory": "10Mi"}, "limits": {"memory": "1Gi"}},
            "memory max limit to request ratio per Container is 4, but provided ratio is 102.400000",
        ),
    ],
)
def test_a_limit_range_refuses_what_is_outside_its_bounds(resources: Object, text: str) -> None:
    cluster = Cluster()
    cluster.put("limitranges", "bounds", limits=[BOUNDS, {"type": "Pod", "max": {"memory": "3Gi"}}])
    error = cluster.refuses(resources=resources)
    assert (error.code, error.message) == (403, f'pods "a" is forbidden: {text}')


def test_a_request_above_the_default_limit_is_no_valid_pod() -> None:
    cluster = Cluster()
    cluster.put("limitranges", "bounds", limits=[{"type": "Container", "default": {"cpu": "500m"}}])
    error = cluster.refuses(resources={"requests": {"cpu": "10k"}})
    assert error.code == 422
    assert 'Invalid value: "10k": must be less than or equal to cpu limit of 500m' in error.message


def test_a_quota_wants_to_know_and_refuses_what_does_not_fit() -> None:
    cluster = Cluster()
    cluster.put("resourcequotas", "small", hard=SMALL)
    silent = "failed quota: small: must specify limits.memory for: c1,c2; requests.cpu for: c1,c2"
    assert cluster.refuses(count=2).message == f'pods "a" is forbidden: {silent}'
    large = {"requests": {"cpu": "2"}, "limits": {"memory": "2Gi"}}
    assert cluster.refuses(resources=large).message == (
        'pods "a" is forbidden: exceeded quota: small, requested: limits.memory=2Gi,requests.cpu=2, '
        "used: limits.memory=0,requests.cpu=0, limited: limits.memory=1Gi,requests.cpu=1"
    )
    fitting = {"requests": {"cpu": "100m"}, "limits": {"memory": "100Mi"}}
    cluster.pod("a", resources=fitting)
    assert cluster.refuses("b", resources=fitting).message == (
        'pods "b" is forbidden: exceeded quota: small, requested: pods=1, used: pods=1, limited: pods=1'
    )
    cluster.api.delete("pods", "a", "default", grace=0)
    cluster.pod("b", resources=fitting)


def test_a_quota_counts_objects_and_node_ports_and_shows_what_is_used() -> None:
    cluster = Cluster()
    cluster.put("resourcequotas", "small", hard=SMALL)
    with pytest.raises(ApiError, match=r"requested: services.nodeports=2, used: services.nodeports=0, limited"):
        cluster.put("services", "s", type="NodePort", ports=[{"name": "a", "port": 1}, {"name": "b", "port": 2}])
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    with pytest.raises(ApiError, match=r'deployments\.apps "d" is forbidden: exceeded quota: small'):
        cluster.put("deployments", "d", selector={"matchLabels": {"a": "b"}}, template=template)
    cluster.api.create("configmaps", {"metadata": {"name": "c"}}, "default")
    cluster.pod(resources={"requests": {"cpu": "100m"}, "limits": {"memory": "100Mi"}})
    status = cluster.api.get("resourcequotas", "small", "default")["status"]
    assert status["hard"] == SMALL
    used = {"pods": "1", "requests.cpu": "100m", "limits.memory": "100Mi", "configmaps": "1"}
    assert status["used"] == used | {"services.nodeports": "0", "count/deployments.apps": "0"}


def test_a_namespace_takes_pods_of_its_level_or_of_the_clusters() -> None:
    host_process: dict[str, Any] = {
        "os": {"name": "windows"},
        "hostNetwork": True,
        "securityContext": {"windowsOptions": {"hostProcess": True, "runAsUserName": "NT AUTHORITY\\SYSTEM"}},
        "volumes": [{"name": "h", "hostPath": {"path": "C:\\x"}}],
    }
    baseline = Cluster(level="baseline")
    baseline.pod("plain")
    assert baseline.refuses(**host_process).message == (
        'pods "a" is forbidden: violates PodSecurity "baseline:latest": host namespaces (hostNetwork=true), hostPath '
        'volumes (volume "h"), hostProcess (pod must not set securityContext.windowsOptions.hostProcess=true)'
    )
    Cluster({"pod-security.kubernetes.io/enforce": "privileged"}, "restricted").pod(**host_process)


def test_a_restricted_namespace_asks_less_of_windows_pods() -> None:
    cluster = Cluster({"pod-security.kubernetes.io/enforce": "restricted"})
    run_as = 'runAsNonRoot != true (pod or containers "c1", "c2" must set securityContext.runAsNonRoot=true)'
    assert cluster.refuses(count=2).message == (
        'pods "a" is forbidden: violates PodSecurity "restricted:latest": allowPrivilegeEscalation != false '
        '(containers "c1", "c2" must set securityContext.allowPrivilegeEscalation=false), unrestricted capabilities '
        f'(containers "c1", "c2" must set securityContext.capabilities.drop=["ALL"]), {run_as}, seccompProfile '
        '(pod or containers "c1", "c2" must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost")'
    )
    windows = cluster.refuses(count=2, os={"name": "windows"}).message
    assert windows == f'pods "a" is forbidden: violates PodSecurity "restricted:latest": {run_as}'


def webhook(cluster: Cluster, kind: str = "Validating", **more: Any) -> None:
    service = {"namespace": "default", "name": "policy", "path": "/v1"}
    hook = {
        "name": "pods.example.com",
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "clientConfig": {"service": service},
        "rules": RULES,
        **more,
    }
    body = {"metadata": {"name": "hooks"}, "webhooks": [hook]}
    cluster.api.create(f"{kind.lower()}webhookconfigurations", body)


def test_a_webhook_that_is_away_refuses_everything_that_it_is_asked_about() -> None:
    cluster = Cluster({"team": "a"})
    webhook(cluster, namespaceSelector={"matchLabels": {"team": "a"}})
    error = cluster.refuses()
    assert (error.code, error.reason) == (500, "InternalError")
    assert error.message == (
        'Internal error occurred: failed calling webhook "pods.example.com": failed to call webhook: Post '
        '"https://policy.default.svc:443/v1?timeout=10s": service "policy" not found'
    )
    cluster.put("services", "policy", ports=[{"port": 443}])
    assert "connect: connection refused" in cluster.refuses().message


@pytest.mark.parametrize(
    "more",
    [
        {"failurePolicy": "Ignore"},
        {"namespaceSelector": {"matchLabels": {"team": "b"}}},
        {"objectSelector": {"matchExpressions": [{"key": "checked", "operator": "Exists"}]}},
        {"rules": [{**RULES[0], "resources": ["services"]}]},
        {"rules": [{**RULES[0], "operations": ["DELETE"]}]},
    ],
)
def test_a_webhook_is_asked_about_what_it_asks_for(more: Any) -> None:
    cluster = Cluster({"team": "a"})
    webhook(cluster, **more)
    cluster.pod()


def test_a_webhook_denies_or_changes() -> None:
    cluster = Cluster()
    webhook(cluster)
    cluster.reviewers.services["default", "policy"] = lambda admission: "no owner label"
    error = cluster.refuses()
    assert (error.code, error.message) == (
        403,
        'admission webhook "pods.example.com" denied the request: no owner label',
    )

    def label(admission: Admission) -> str:
        admission.obj["metadata"]["labels"] = {"owner": "somebody"}
        return ""

    changing = Cluster()
    webhook(changing, "Mutating")
    changing.reviewers.services["default", "policy"] = label
    assert changing.pod()["metadata"]["labels"] == {"owner": "somebody"}


def test_a_policy_denies_through_its_binding() -> None:
    cluster = Cluster()
    spec = {
        "matchConstraints": {"resourceRules": RULES},
        "validations": [{"expression": "false", "message": "images come from registry.example.com only"}],
    }
    cluster.api.create("validatingadmissionpolicies", {"metadata": {"name": "images"}, "spec": spec})
    cluster.pod("before")
    binding = {"policyName": "images", "validationActions": ["Deny"]}
    cluster.api.create("validatingadmissionpolicybindings", {"metadata": {"name": "everywhere"}, "spec": binding})
    error = cluster.refuses()
    assert (error.code, error.reason) == (422, "Invalid")
    assert error.message == (
        "pods \"a\" is forbidden: ValidatingAdmissionPolicy 'images' with binding 'everywhere' denied request: "
        "images come from registry.example.com only"
    )


def policy(cluster: Cluster, expression: str, conditions: tuple[str, ...] = (), **more: Any) -> None:
    spec = {
        "matchConstraints": {"resourceRules": RULES, "namespaceSelector": {"matchLabels": {"steer": "yes"}}},
        "matchConditions": [{"name": f"c{number}", "expression": text} for number, text in enumerate(conditions)],
        "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}],
        "reinvocationPolicy": "Never",
        **more,
    }
    cluster.api.create("mutatingadmissionpolicies", {"metadata": {"name": "p"}, "spec": spec})
    cluster.api.create("mutatingadmissionpolicybindings", {"metadata": {"name": "b"}, "spec": {"policyName": "p"}})


PATCH = '[JSONPatch{op: "add", path: "/spec/nodeSelector", value: {"kubernetes.io/os": "windows"}}]'


def test_a_mutating_policy_changes_pods_of_its_namespaces_alone() -> None:
    cluster = Cluster({"steer": "yes"})
    cluster.api.create("namespaces", {"metadata": {"name": "other"}})
    cluster.api.create("serviceaccounts", {"metadata": {"name": "default"}}, "other")
    policy(cluster, PATCH, ("!has(object.spec.nodeSelector)",))
    assert cluster.pod("a")["spec"]["nodeSelector"] == {"kubernetes.io/os": "windows"}
    assert cluster.pod("b", nodeSelector={"x": "y"})["spec"]["nodeSelector"] == {"x": "y"}
    elsewhere = {"metadata": {"name": "c"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    assert "nodeSelector" not in cluster.api.create("pods", elsewhere, "other")["spec"]
    cluster.api.delete("mutatingadmissionpolicybindings", "b")
    assert "nodeSelector" not in cluster.pod("d")["spec"]


@pytest.mark.parametrize("expression", ["size(object)", "[{'op': 'remove', 'path': '/nothing'}]", "'no patch'"])
def test_a_policy_that_fails_refuses_unless_it_ignores_its_failures(expression: str) -> None:
    strict = Cluster({"steer": "yes"})
    policy(strict, expression)
    error = strict.refuses("a")
    assert "policy 'p' with binding 'b' denied request" in error.message
    lenient = Cluster({"steer": "yes"})
    policy(lenient, expression, failurePolicy="Ignore")
    assert lenient.pod("a")["metadata"]["name"] == "a"
