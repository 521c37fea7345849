"""Defaults as clients of the real API server see them."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from winready_sandbox.api.defaults import apply_defaults
from winready_sandbox.api.pod_defaults import pull_policy, tolerate_node_trouble


def filled(kind: str, group: str, obj: dict[str, Any]) -> dict[str, Any]:
    result = copy.deepcopy(obj)
    apply_defaults(kind, group, result)
    again = copy.deepcopy(result)
    apply_defaults(kind, group, again)
    assert again == result
    return result


def pod(**spec: Any) -> dict[str, Any]:
    result: dict[str, Any] = filled("Pod", "", {"spec": {"containers": [{"name": "c", "image": "i:1"}], **spec}})
    return dict(result["spec"])


def test_a_minimal_pod() -> None:
    assert pod() == {
        "containers": [
            {
                "name": "c",
                "image": "i:1",
                "imagePullPolicy": "IfNotPresent",
                "terminationMessagePath": "/dev/termination-log",
                "terminationMessagePolicy": "File",
                "resources": {},
            }
        ],
        "restartPolicy": "Always",
        "dnsPolicy": "ClusterFirst",
        "schedulerName": "default-scheduler",
        "terminationGracePeriodSeconds": 30,
        "securityContext": {},
        "enableServiceLinks": True,
    }


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("nginx", "Always"),
        ("nginx:latest", "Always"),
        ("host:5000/nginx", "Always"),
        ("host:5000/nginx:1.2", "IfNotPresent"),
        ("nginx@sha256:abc", "IfNotPresent"),
    ],
)
def test_pull_policy_follows_the_tag(image: str, policy: str) -> None:
    assert pull_policy(image) == policy


def test_requests_come_from_limits_in_pods_only() -> None:
    resources = {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "100m"}}
    container = {"name": "c", "image": "i", "resources": resources}
    assert pod(containers=[container])["containers"][0]["resources"]["requests"] == {"cpu": "100m", "memory": "1Gi"}
    template = {"spec": {"template": {"spec": {"containers": [container]}}}}
    kept = filled("Deployment", "apps", template)["spec"]["template"]["spec"]["containers"][0]
    assert kept["resources"]["requests"] == {"cpu": "100m"}


def test_probes_ports_environment_and_lifecycle() -> None:
    container = {
        "name": "c",
        "ports": [{"containerPort": 80}],
        "env": [{"name": "N", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}],
        "readinessProbe": {"httpGet": {"port": 80}},
        "livenessProbe": {"grpc": {"port": 1}, "timeoutSeconds": 5},
        "lifecycle": {"preStop": {"httpGet": {"port": 1}}},
    }
    (result,) = pod(containers=[container], hostNetwork=True)["containers"]
    assert result["ports"] == [{"containerPort": 80, "protocol": "TCP", "hostPort": 80}]
    assert result["env"][0]["valueFrom"]["fieldRef"]["apiVersion"] == "v1"
    numbers = {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}
    assert result["readinessProbe"] == {"httpGet": {"port": 80, "path": "/", "scheme": "HTTP"}, **numbers}
    assert result["livenessProbe"] == {"grpc": {"port": 1, "service": ""}, **numbers, "timeoutSeconds": 5}
    assert result["lifecycle"]["preStop"]["httpGet"]["scheme"] == "HTTP"


def test_volumes() -> None:
    volumes = [
        {"name": "nothing"},
        {"name": "secret", "secret": {"secretName": "s"}},
        {"name": "host", "hostPath": {"path": "/x"}},
        {"name": "token", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}},
    ]
    nothing, secret, host, token = pod(volumes=volumes)["volumes"]
    assert nothing["emptyDir"] == {}
    assert secret["secret"]["defaultMode"] == 420
    assert host["hostPath"] == {"path": "/x", "type": ""}
    assert token["projected"]["defaultMode"] == 420
    assert token["projected"]["sources"][0]["serviceAccountToken"]["expirationSeconds"] == 3600


def test_admission_gives_patience_with_nodes() -> None:
    admitted: dict[str, Any] = {
        "spec": {"tolerations": [{"key": "node.kubernetes.io/not-ready", "operator": "Exists"}]}
    }
    tolerate_node_trouble(admitted)
    assert admitted["spec"]["tolerations"][1] == {
        "key": "node.kubernetes.io/unreachable",
        "operator": "Exists",
        "effect": "NoExecute",
        "tolerationSeconds": 300,
    }
    everything: dict[str, Any] = {"spec": {"tolerations": [{"operator": "Exists"}]}}
    tolerate_node_trouble(everything)
    assert everything["spec"]["tolerations"] == [{"operator": "Exists"}]


def test_deployment() -> None:
    spec = filled("Deployment", "apps", {"spec": {"template": {"spec": {"containers": []}}}})["spec"]
    assert spec["replicas"] == 1
    assert spec["strategy"] == {
        "type": "RollingUpdate",
        "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"},
    }
    assert (spec["revisionHistoryLimit"], spec["progressDeadlineSeconds"]) == (10, 600)
    assert spec["template"]["spec"]["restartPolicy"] == "Always"
    assert "enableServiceLinks" not in spec["template"]["spec"]
    recreate = filled("Deployment", "apps", {"spec": {"strategy": {"type": "Recreate"}, "replicas": 0}})["spec"]
    assert (recreate["strategy"], recreate["replicas"]) == ({"type": "Recreate"}, 0)


def test_other_workloads() -> None:
    daemons = filled("DaemonSet", "apps", {"spec": {}})["spec"]
    assert daemons["updateStrategy"]["rollingUpdate"] == {"maxUnavailable": 1, "maxSurge": 0}
    stateful = filled("StatefulSet", "apps", {"spec": {"volumeClaimTemplates": [{"spec": {}}]}})["spec"]
    assert stateful["podManagementPolicy"] == "OrderedReady"
    assert stateful["updateStrategy"] == {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}
    assert stateful["persistentVolumeClaimRetentionPolicy"] == {"whenDeleted": "Retain", "whenScaled": "Retain"}
    assert stateful["volumeClaimTemplates"][0]["spec"]["volumeMode"] == "Filesystem"
    cron = filled("CronJob", "batch", {"spec": {"jobTemplate": {"spec": {}}}})["spec"]
    assert (cron["concurrencyPolicy"], cron["successfulJobsHistoryLimit"]) == ("Allow", 3)


def test_a_job_selects_its_pods_by_its_uid() -> None:
    job = filled("Job", "batch", {"metadata": {"name": "j", "uid": "u"}, "spec": {}})
    assert job["spec"]["selector"] == {"matchLabels": {"batch.kubernetes.io/controller-uid": "u"}}
    assert job["spec"]["template"]["metadata"]["labels"] == {
        "controller-uid": "u",
        "job-name": "j",
        "batch.kubernetes.io/controller-uid": "u",
        "batch.kubernetes.io/job-name": "j",
    }
    assert (job["spec"]["completions"], job["spec"]["parallelism"], job["spec"]["backoffLimit"]) == (1, 1, 6)
    assert (job["spec"]["completionMode"], job["spec"]["suspend"]) == ("NonIndexed", False)


def test_service() -> None:
    spec = filled("Service", "", {"spec": {"ports": [{"port": 80}], "sessionAffinity": "ClientIP"}})["spec"]
    assert spec == {
        "type": "ClusterIP",
        "ports": [{"port": 80, "protocol": "TCP", "targetPort": 80}],
        "sessionAffinity": "ClientIP",
        "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 10800}},
        "internalTrafficPolicy": "Cluster",
    }
    assert filled("Service", "", {"spec": {"type": "NodePort"}})["spec"]["externalTrafficPolicy"] == "Cluster"
    assert "internalTrafficPolicy" not in filled("Service", "", {"spec": {"type": "ExternalName"}})["spec"]


def test_secret_takes_plain_text() -> None:
    secret = filled("Secret", "", {"stringData": {"a": "é"}, "data": {"b": "Yg=="}})
    assert secret == {"type": "Opaque", "data": {"a": "w6k=", "b": "Yg=="}}


def test_network_policy() -> None:
    policy = filled("NetworkPolicy", "networking.k8s.io", {"spec": {"egress": [{"ports": [{"port": 53}]}]}})["spec"]
    assert policy["policyTypes"] == ["Ingress", "Egress"]
    assert policy["egress"][0]["ports"][0]["protocol"] == "TCP"


def test_role_binding_subjects() -> None:
    binding = filled(
        "RoleBinding",
        "rbac.authorization.k8s.io",
        {"roleRef": {"kind": "Role", "name": "r"}, "subjects": [{"kind": "User"}, {"kind": "ServiceAccount"}]},
    )
    assert binding["roleRef"]["apiGroup"] == "rbac.authorization.k8s.io"
    assert [s.get("apiGroup") for s in binding["subjects"]] == ["rbac.authorization.k8s.io", None]


def test_shapes_that_validation_will_refuse_do_no_harm() -> None:
    shapes: list[Any] = ["text", 3, [], {"containers": "x", "volumes": [3]}, {"template": 1}, {"ports": {}}]
    for spec in shapes:
        for kind, group in (("Pod", ""), ("Deployment", "apps"), ("Service", ""), ("Job", "batch")):
            apply_defaults(kind, group, {"spec": copy.deepcopy(spec)})
