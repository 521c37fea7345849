"""What manifests rely on: each field, with the line that needs it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from winready.engine.workloads import Workload
from winready.features import manifests, names, table
from winready.features.manifests import ManifestError, Manifests
from winready.features.relying import OF_SERVICES, workloads
from winready.lint import matrix
from winready.lint.context import Profile
from winready.spec.loader import load_standard

COMPUTED = {
    "shared-volumes",
    "core.storage.hostpath-write",
    "subpath-secret",
    "core.network.dns-internal",
    "core.network.dns-external",
    "svc-externalname",
    *OF_SERVICES.values(),
}
"""What several fields together tell, beside the table."""

POD = """\
apiVersion: v1
kind: Pod
metadata: {name: one, namespace: here, labels: {app: one}}
spec:
  os: {name: windows}
  nodeSelector: {kubernetes.io/os: windows}
  containers:
    - name: main
      image: mcr.microsoft.com/windows/nanoserver:ltsc2022
"""
BASE = {"identify-pod-os", "pod-status", "core.network.distinct-pod-ips"}
"""What every such pod relies on."""


def read(folder: Path, text: str, namespace: str = "") -> Manifests:
    (folder / "app.yaml").write_text(text)
    return manifests.read([str(folder)], Profile(namespace=namespace))


def only(folder: Path, text: str) -> dict[str, int]:
    """What the one workload in a text relies on, with the lines."""
    (workload,) = workloads(read(folder, text))
    return {need.id: need.line for need in workload.needs}


def test_everything_in_the_table_is_a_feature_or_a_requirement() -> None:
    known = {feature.id for feature in matrix.load()} | {item.id for item in load_standard().requirements}
    assert {*table.ids(), *COMPUTED} <= known


def test_nothing_in_the_table_is_never_offered_on_windows() -> None:
    # What Windows never offers is a finding of lint, and would be told twice.
    never = {feature.id for feature in matrix.load() if feature.status(36).support == "never"}
    assert never.isdisjoint(table.ids())


@pytest.mark.parametrize(
    ("more", "id", "line"),
    [
        ("      readinessProbe: {tcpSocket: {port: 80}}\n", "probes", 10),
        ("      startupProbe:\n        grpc: {port: 80}\n", "grpc-probes", 11),
        ("      lifecycle:\n        preStop: {exec: {command: [cmd]}}\n", "lifecycle-hooks", 11),
        ("      resources:\n        limits:\n          memory: 1Gi\n", "resource-limits", 12),
        ("      securityContext: {windowsOptions: {gmsaCredentialSpecName: a}}\n", "gmsa", 10),
        ("      volumeMounts: [{name: v, mountPath: 'C:\\v', subPath: a}]\n", "subpath", 10),
        ("      envFrom:\n        - secretRef: {name: s}\n", "configmap-secret", 11),
        ("      terminationMessagePath: /dev/termination-log\n", "", 0),
        ("  hostAliases: [{ip: 10.0.0.1, hostnames: [a]}]\n", "hosts-file", 10),
        ("  dnsPolicy: None\n", "custom-dns", 10),
        ("  dnsPolicy: ClusterFirst\n", "", 0),
        ("  serviceAccountName: default\n", "", 0),
        ("  serviceAccountName: mine\n", "core.storage.token-rotation", 10),
        ("  volumes:\n    - {name: v, emptyDir: {}}\n", "emptydir", 11),
        ("  volumes:\n    - {name: v, persistentVolumeClaim: {claimName: c}}\n", "csi", 11),
        ("  volumes:\n    - {name: v, hostPath: {path: '\\\\.\\pipe\\x'}}\n", "named-pipe-mounts", 11),
        ("  volumes:\n    - {name: v, hostPath: {path: 'C:\\x'}}\n", "core.storage.hostpath-read", 11),
        ("  initContainers:\n    - {name: s, image: i, restartPolicy: Always}\n", "sidecars", 11),
    ],
)  # fmt: skip
def test_a_field_relies_on_something_at_its_line(tmp_path: Path, more: str, id: str, line: int) -> None:
    needs = only(tmp_path, POD + more)
    assert needs.keys() >= BASE
    assert {name: at for name, at in needs.items() if name not in BASE and name != "startup-probes"} == (
        {id: line} if id else {}
    )


def test_a_host_process_pod_relies_on_other_things(tmp_path: Path) -> None:
    more = "      ports: [{containerPort: 80}]\n  hostNetwork: true\n  serviceAccountName: mine\n"
    more += "  securityContext: {windowsOptions: {hostProcess: true, runAsUserName: 'NT AUTHORITY\\Network Service'}}\n"
    assert only(tmp_path, POD + more).keys() == {
        "identify-pod-os",
        "pod-status",
        "host-process",
        "extend.hostprocess.node-ip",
        "extend.hostprocess.bind-host-interface",
        "extend.hostprocess.api-access",
        "extend.hostprocess.network-service",
    }


SERVICE = """\
---
apiVersion: v1
kind: Service
metadata: {name: one, namespace: here}
spec:
  selector: {app: one}
"""


@pytest.mark.parametrize(
    ("more", "ids"),
    [
        ("", {"svc-clusterip"}),
        ("  type: LoadBalancer\n  externalTrafficPolicy: Local\n", {"svc-loadbalancer", "local-traffic-policy"}),
        ("  clusterIP: None\n", {"svc-headless-env"}),
        ("  sessionAffinity: ClientIP\n  internalTrafficPolicy: Local\n",
         {"svc-clusterip", "session-affinity", "internal-traffic-policy"}),
        ("  ipFamilies: [IPv4, IPv6]\n", {"svc-clusterip", "dual-stack"}),
    ],
)  # fmt: skip
def test_services_that_select_a_workload_count_for_it(tmp_path: Path, more: str, ids: set[str]) -> None:
    assert only(tmp_path, POD + SERVICE + more).keys() - BASE == ids
    other = SERVICE.replace("app: one", "app: two")
    assert only(tmp_path, POD + other + more).keys() - BASE == set()
    elsewhere = SERVICE.replace("namespace: here", "namespace: there")
    assert only(tmp_path, POD + elsewhere + more).keys() - BASE == set()


def test_policies_and_scalers_count_for_whom_they_concern(tmp_path: Path) -> None:
    policy = "---\napiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: p, namespace: here}\n"
    assert only(tmp_path, POD + policy + "spec: {podSelector: {}}\n")["network-policy"] == 12
    other = policy + "spec: {podSelector: {matchLabels: {app: two}}}\n"
    assert "network-policy" not in only(tmp_path, POD + other)


@pytest.mark.parametrize(
    ("version", "spec"),
    [
        ("v2", "metrics: [{type: Resource, resource: {name: cpu}}]"),
        ("v2", "metrics: [{type: ContainerResource, containerResource: {name: cpu, container: main}}]"),
        ("v1", "targetCPUUtilizationPercentage: 80"),
    ],
)
def test_a_scaler_relies_on_what_it_measures(tmp_path: Path, version: str, spec: str) -> None:
    scaler = "kind: HorizontalPodAutoscaler\nmetadata: {name: s, namespace: here}\n"
    text = (
        POD + f"---\napiVersion: autoscaling/{version}\n" + scaler + "spec:\n  scaleTargetRef: {kind: Pod, name: one}\n"
    )
    assert only(tmp_path, f"{text}  {spec}\n")["metrics"] == 16
    assert "metrics" not in only(tmp_path, f"{text}  metrics: [{{type: External, external: {{}}}}]\n")


def test_volumes_that_are_shared_or_written_on_the_node(tmp_path: Path) -> None:
    text = POD + "      volumeMounts: [{name: v, mountPath: 'C:\\v', readOnly: true}]\n"
    text += "    - name: other\n      image: i\n      volumeMounts:\n        - {name: v, mountPath: 'C:\\v'}\n"
    needs = only(tmp_path, text + "  volumes:\n    - {name: v, hostPath: {path: 'C:\\x'}}\n")
    assert needs["shared-volumes"] == needs["core.storage.hostpath-write"] == 14
    only_read = text.replace("{name: v, mountPath: 'C:\\v'}", "{name: v, mountPath: 'C:\\v', readOnly: true}")
    needs = only(tmp_path, only_read + "  volumes:\n    - {name: v, hostPath: {path: 'C:\\x'}}\n")
    assert "core.storage.hostpath-write" not in needs


@pytest.mark.parametrize(
    ("text", "hosts"),
    [
        ("http://orders:8080/x", {"orders"}),
        ("https://user:word@api.example.com", {"api.example.com"}),
        ("nats://queue-0.queue.m.svc.cluster.local:4222", {"queue-0.queue.m.svc.cluster.local"}),
        ("Server=tcp:sql.shop.svc.cluster.local,1433;Database=a", {"sql.shop.svc.cluster.local"}),
        ("--peer=db.example.com:5432", {"db.example.com"}),
        ("http://+:8080", set()),
        ("http://localhost:80", set()),
        ("http://10.0.0.1:80", set()),
        ("timeout:30", set()),
        ("Production", set()),
        ("appsettings.json", set()),
        ("System.Net.Http", set()),
        ("x" * 200_000, set()),
    ],
)
def test_only_what_is_clearly_a_host_is_taken_for_one(text: str, hosts: set[str]) -> None:
    assert {host for host, certain in names.hosts(text) if certain} == hosts


def test_names_of_services_and_of_others(tmp_path: Path) -> None:
    linux = POD.replace("name: one,", "name: two,").replace("app: one", "app: two").replace("windows}", "linux}")
    mine = POD + "      env: [{name: A, value: two}, {name: B, value: 'https://example.com'}]\n"
    theirs = linux + "      args: ['http://one.here.svc.cluster.local']\n"
    services = SERVICE + SERVICE.replace("name: one", "name: two").replace("app: one", "app: two")
    needs = only(tmp_path, mine + "---\n" + theirs + services)
    assert needs["core.network.dns-internal"] == needs["core.network.dns-external"] == 10
    assert needs["core.network.windows-to-linux-service-ip"] == 10
    assert needs["core.network.linux-to-windows-service-ip"] == 21
    # With its namespace a name is that of a service where the manifests have one, whoever asks from wherever.
    apart = services.replace("namespace: here", "namespace: there")
    short = mine.replace("value: two", "value: 'http://two.there:80'").replace("https://example.com", "nothing")
    away = linux.replace("namespace: here", "namespace: there")
    needs = only(tmp_path, short + "---\n" + away + apart)
    assert "core.network.dns-external" not in needs
    assert needs["core.network.windows-to-linux-service-ip"] == 10
    theirs = away + "      args: ['http://one.here']\n"
    assert only(tmp_path, POD + "---\n" + theirs + SERVICE)["core.network.linux-to-windows-service-ip"] == 20


def test_a_service_that_is_a_name_elsewhere_is_relied_on_by_who_calls_it(tmp_path: Path) -> None:
    called = POD + "      env: [{name: A, value: 'http://bank:80'}]\n"
    service = SERVICE.replace("name: one", "name: bank").replace("selector: {app: one}", "type: ExternalName")
    assert only(tmp_path, called + service)["svc-externalname"] == 10
    assert "svc-externalname" not in only(tmp_path, POD + service)


def test_names_in_config_maps_count_at_their_own_line(tmp_path: Path) -> None:
    config = "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, namespace: here}\n"
    config += 'data:\n  appsettings.json: |\n    {"Url": "https://api.example.com/"}\n'
    needs = only(tmp_path, POD + "      envFrom: [{configMapRef: {name: c}}]\n" + config)
    assert needs["core.network.dns-external"] == 16
    assert "core.network.dns-external" not in only(tmp_path, POD + config)


def test_an_id_stands_once_with_all_its_places(tmp_path: Path) -> None:
    more = "      livenessProbe: {tcpSocket: {port: 1}}\n      readinessProbe: {tcpSocket: {port: 1}}\n"
    (workload,) = workloads(read(tmp_path, POD + more))
    (probes,) = [need for need in workload.needs if need.id == "probes"]
    assert (probes.line, probes.field) == (10, "spec.containers[0].livenessProbe")
    assert probes.also == [f"{tmp_path}/app.yaml:11"]


def test_lists_json_and_strangers(tmp_path: Path) -> None:
    pod = yaml.safe_load(POD)
    stranger = {"apiVersion": "cert-manager.io/v1", "kind": "Certificate", "metadata": {"name": "c"}}
    listed = {"apiVersion": "v1", "kind": "List", "items": [stranger, pod]}
    (tmp_path / "all.json").write_text(json.dumps(listed, indent=1))
    found = manifests.read([str(tmp_path)], Profile())
    assert [each.title for each in workloads(found)] == ["one (Pod here/one)"]
    assert found.notices == ["nothing is known about what these rely on: Certificate"]


def test_fields_that_windows_does_not_take_are_part_of_it(tmp_path: Path) -> None:
    (workload,) = workloads(read(tmp_path, POD + "  hostPID: true\n" + SERVICE + "  sessionAffinity: ClientIP\n"))
    told = {(each.rule, each.severity, each.line) for each in workload.findings}
    assert {("pod-host-pid", "error", 10), ("svc-session-affinity", "warning", 17)} <= told


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("apiVersion: v1\nkind: [\n", r"app.yaml:\d+:1: "),
        ("apiVersion: v1\nkind: {{ .Values.kind }}\n", "must be rendered first"),
        ("\0", "binary file"),
    ],
)
def test_what_cannot_be_read_is_said_with_its_place(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "app.yaml").write_text(text + "\n# kind apiVersion\n")
    with pytest.raises(ManifestError, match=words):
        manifests.read([str(tmp_path)], Profile())


def test_objects_without_a_namespace_are_where_the_reader_says(tmp_path: Path) -> None:
    text = (POD + SERVICE).replace(", namespace: here", "")
    (workload,) = workloads(read(tmp_path, text, namespace="mine"))
    assert isinstance(workload, Workload)
    assert workload.title == "one (Pod mine/one)"
    assert "svc-clusterip" in {need.id for need in workload.needs}


def test_what_a_run_has_on_the_cluster_is_nobodys_workload(tmp_path: Path) -> None:
    found = read(tmp_path, POD.replace("labels: {app: one}", "labels: {winready.io/run: 260101-000000-0000}"))
    assert found.windows == []
