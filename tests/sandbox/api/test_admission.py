"""What the API server adds to pods, nodes and services on their way in, and what it refuses."""

from __future__ import annotations

import ipaddress
from typing import Any

import pytest

from winready_sandbox.api.admission import install
from winready_sandbox.api.assembly import new_registry
from winready_sandbox.api.client import LocalClient
from winready_sandbox.api.errors import ApiError
from winready_sandbox.api.objects import Object

V4, V6 = "10.96.0.0/16", "fd00:96::/108"
MOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"


def cluster(*networks: str) -> LocalClient:
    registry = new_registry()
    install(registry, networks or (V4,))
    client = LocalClient(registry)
    client.create("namespaces", {"metadata": {"name": "default"}})
    client.create("serviceaccounts", {"metadata": {"name": "default"}}, "default")
    return client


def pod(client: LocalClient, name: str = "web", **spec: Any) -> Object:
    containers = [{"name": "main", "image": "registry.k8s.io/pause:3.10"}]
    return client.create("pods", {"metadata": {"name": name}, "spec": {"containers": containers, **spec}}, "default")


def service(client: LocalClient, name: str, **spec: Any) -> Object:
    body = {"metadata": {"name": name}, "spec": {"selector": {"app": name}, "ports": [{"port": 80}], **spec}}
    return dict(client.create("services", body, "default")["spec"])


def refused(call: Any, *arguments: Any, **options: Any) -> ApiError:
    with pytest.raises(ApiError) as caught:
        call(*arguments, **options)
    return caught.value


def test_a_pod_gets_the_token_the_ca_and_its_namespace() -> None:
    spec = pod(cluster())["spec"]
    assert (spec["serviceAccountName"], spec["serviceAccount"]) == ("default", "default")
    (volume,) = spec["volumes"]
    assert volume["name"].startswith("kube-api-access-")
    assert volume["projected"] == {
        "defaultMode": 420,
        "sources": [
            {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
            {"configMap": {"items": [{"key": "ca.crt", "path": "ca.crt"}], "name": "kube-root-ca.crt"}},
            {
                "downwardAPI": {
                    "items": [
                        {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}, "path": "namespace"}
                    ]
                }
            },
        ],
    }
    (mount,) = spec["containers"][0]["volumeMounts"]
    assert (mount["name"], mount["mountPath"], mount["readOnly"]) == (volume["name"], MOUNT, True)


def test_no_token_is_mounted_where_none_is_wanted() -> None:
    client = cluster()
    assert not pod(client, automountServiceAccountToken=False)["spec"].get("volumes")
    account = {"metadata": {"name": "bare"}, "automountServiceAccountToken": False}
    client.create("serviceaccounts", account, "default")
    assert not pod(client, "bare", serviceAccountName="bare")["spec"].get("volumes")


def test_a_pod_of_an_unknown_account_priority_or_runtime_class_is_forbidden() -> None:
    client = cluster()
    missing = refused(pod, client, serviceAccountName="ghost")
    assert missing.code == 403
    assert missing.message == (
        'pods "web" is forbidden: error looking up service account default/ghost: serviceaccount "ghost" not found'
    )
    priority = refused(pod, client, priorityClassName="ghost")
    assert priority.message == 'pods "web" is forbidden: no PriorityClass with name ghost was found'
    runtime = refused(pod, client, runtimeClassName="ghost")
    assert runtime.message == 'pods "web" is forbidden: pod rejected: RuntimeClass "ghost" not found'


def test_priority_and_runtime_class_are_worked_into_the_pod() -> None:
    client = cluster()
    client.create("priorityclasses", {"metadata": {"name": "usual"}, "value": 7, "globalDefault": True})
    scheduling: Object = {
        "nodeSelector": {"kubernetes.io/os": "windows", "node.kubernetes.io/windows-build": "10.0.20348"},
        "tolerations": [{"key": "os", "operator": "Equal", "value": "windows", "effect": "NoSchedule"}],
    }
    runtime = {"metadata": {"name": "ltsc"}, "handler": "runhcs", "scheduling": scheduling}
    client.create("runtimeclasses", {**runtime, "overhead": {"podFixed": {"memory": "64Mi"}}})
    spec = pod(client, runtimeClassName="ltsc", nodeSelector={"kubernetes.io/os": "windows"})["spec"]
    assert (spec["priority"], spec["priorityClassName"], spec["preemptionPolicy"]) == (
        7,
        "usual",
        "PreemptLowerPriority",
    )
    assert spec["nodeSelector"] == scheduling["nodeSelector"]
    assert scheduling["tolerations"][0] in spec["tolerations"]
    assert spec["overhead"] == {"memory": "64Mi"}
    clash = refused(pod, client, "clash", runtimeClassName="ltsc", nodeSelector={"kubernetes.io/os": "linux"})
    assert "conflict: runtimeClass.scheduling.nodeSelector[kubernetes.io/os] = windows" in clash.message


def test_services_get_free_addresses_and_give_them_back() -> None:
    client = cluster()
    first = service(client, "one")
    assert ipaddress.ip_address(first["clusterIP"]) in ipaddress.ip_network(V4)
    assert first["clusterIPs"] == [first["clusterIP"]]
    assert (first["ipFamilies"], first["ipFamilyPolicy"]) == (["IPv4"], "SingleStack")
    assert service(client, "two")["clusterIP"] != first["clusterIP"]
    taken = refused(service, client, "three", clusterIP=first["clusterIP"])
    assert taken.code == 422
    assert taken.message == (
        f'Service "three" is invalid: spec.clusterIPs: Invalid value: ["{first["clusterIP"]}"]: '
        f"failed to allocate IP {first['clusterIP']}: provided IP is already allocated"
    )
    client.delete("services", "one", "default")
    assert service(client, "three", clusterIP=first["clusterIP"])["clusterIP"] == first["clusterIP"]
    assert refused(service, client, "four", clusterIP="192.0.2.1").code == 422


def test_headless_and_external_services_have_no_address() -> None:
    client = cluster()
    assert service(client, "headless", clusterIP="None")["clusterIPs"] == ["None"]
    assert "clusterIP" not in service(client, "outside", type="ExternalName", externalName="example.com")


def test_dual_stack_follows_policy_and_order() -> None:
    client = cluster(V4, V6)
    assert len(service(client, "single")["clusterIPs"]) == 1
    both = service(client, "both", ipFamilyPolicy="RequireDualStack", ipFamilies=["IPv6", "IPv4"])
    assert [ipaddress.ip_address(ip).version for ip in both["clusterIPs"]] == [6, 4]
    upgraded = client.patch("services", "single", {"spec": {"ipFamilyPolicy": "PreferDualStack"}}, "default")
    assert upgraded["spec"]["ipFamilies"] == ["IPv4", "IPv6"]
    back = client.patch("services", "single", {"spec": {"ipFamilyPolicy": "SingleStack"}}, "default")
    assert len(back["spec"]["clusterIPs"]) == 1
    assert service(cluster(), "prefers", ipFamilyPolicy="PreferDualStack")["ipFamilies"] == ["IPv4"]
    assert (
        "not configured for dual-stack" in refused(service, cluster(), "x", ipFamilyPolicy="RequireDualStack").message
    )


def test_node_ports_are_allocated_kept_and_refused_when_taken() -> None:
    client = cluster()
    fixed = service(client, "fixed", type="NodePort", ports=[{"port": 80, "nodePort": 30080}])
    assert fixed["ports"][0]["nodePort"] == 30080
    clash = refused(service, client, "clash", type="NodePort", ports=[{"port": 80, "nodePort": 30080}])
    assert "spec.ports[0].nodePort: Invalid value: 30080: provided port is already allocated" in clash.message
    outside = refused(service, client, "outside", type="NodePort", ports=[{"port": 80, "nodePort": 80}])
    assert "The range of valid ports is 30000-32767" in outside.message
    twins = [{"name": "tcp", "port": 53}, {"name": "udp", "port": 53, "protocol": "UDP"}]
    dns = service(client, "dns", type="NodePort", ports=twins)
    assert dns["ports"][0]["nodePort"] == dns["ports"][1]["nodePort"]
    replaced = client.get("services", "dns", "default")
    for port in (bare := {**replaced, "spec": {**replaced["spec"], "ports": twins}})["spec"]["ports"]:
        assert "nodePort" not in port
    assert client.update("services", bare)["spec"]["ports"][0]["nodePort"] == dns["ports"][0]["nodePort"]
    inner = client.patch("services", "fixed", {"spec": {"type": "ClusterIP"}}, "default")
    assert "nodePort" not in inner["spec"]["ports"][0]
    assert service(client, "clash", type="NodePort", ports=[{"port": 80, "nodePort": 30080}])
    local = service(client, "local", type="LoadBalancer", externalTrafficPolicy="Local")
    assert 30000 <= local["healthCheckNodePort"] <= 32767


def test_a_write_that_is_refused_takes_nothing() -> None:
    client = cluster()
    for _ in range(2):
        ports = [{"name": "a", "port": 80, "nodePort": 30001}, {"name": "b", "port": 81, "nodePort": 1}]
        refused(service, client, "bad", type="NodePort", ports=ports)
    assert service(client, "good", type="NodePort", ports=[{"port": 80, "nodePort": 30001}])


def test_a_pod_bears_with_a_node_in_trouble_for_five_minutes() -> None:
    tolerations = pod(cluster())["spec"]["tolerations"]
    assert {(each["key"], each["effect"], each["tolerationSeconds"]) for each in tolerations} == {
        ("node.kubernetes.io/not-ready", "NoExecute", 300),
        ("node.kubernetes.io/unreachable", "NoExecute", 300),
    }


def test_a_claim_that_names_no_class_gets_the_default_one() -> None:
    client = cluster()
    spec: Object = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}

    def class_of(name: str, **more: Any) -> str | None:
        made = client.create(
            "persistentvolumeclaims", {"metadata": {"name": name}, "spec": {**spec, **more}}, "default"
        )
        found: str | None = made["spec"].get("storageClassName")
        return found

    assert class_of("before") is None
    mark = {"storageclass.kubernetes.io/is-default-class": "true"}
    for name, marks in (("slow", {}), ("usual", mark)):
        client.create("storageclasses", {"metadata": {"name": name, "annotations": marks}, "provisioner": "x/y"})
    assert class_of("after") == "usual"
    assert class_of("chosen", storageClassName="slow") == "slow"
    assert class_of("none", storageClassName="") == ""
