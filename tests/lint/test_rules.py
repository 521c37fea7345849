"""Every rule has a manifest that triggers it and others that must not, and its data is complete."""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from typing import Any

import pytest

from lint.cases import CASES, FILE_CASES, affinity, cluster, container, node, thing, volume
from lint.manifests import HEALTHY, LINUX, ids, lint, pod, workload
from winready.lint import catalog, rules
from winready.lint.context import Taint
from winready.lint.explain import page
from winready.lint.run import Run, Settings

ROOT = Path(__file__).resolve().parents[2]


def test_every_rule_has_a_case() -> None:
    assert sorted({**CASES, **FILE_CASES}) == sorted(catalog.load())


@pytest.mark.parametrize("rule", CASES)
def test_rule(rule: str, tmp_path: Path) -> None:
    case = CASES[rule]
    found = [one for one in lint(tmp_path, case.bad, case.kubernetes, case.profile) if one.rule == rule]
    assert found
    for one in found:
        assert one.line >= 1
        assert one.column >= 1
        assert one.message
        assert one.fix
        assert re.fullmatch(r"1\.\d+", one.since)
    for good in case.good:
        assert rule not in ids(lint(tmp_path, good, case.kubernetes, case.profile)), good


@pytest.mark.parametrize("rule", FILE_CASES)
def test_rule_about_a_file(rule: str, tmp_path: Path) -> None:
    for content, expected in zip(FILE_CASES[rule], (True, False), strict=True):
        (tmp_path / "a.yaml").write_text(content)
        found = [one.rule for one in Run([str(tmp_path / "a.yaml")], Settings()).results() if hasattr(one, "rule")]
        assert (rule in found) is expected


def test_every_rule_looks_somewhere() -> None:
    rules.load()
    checked = {*rules.POD_CHECKS, *rules.OBJECT_CHECKS}
    blind = [
        rule.id
        for rule in catalog.load().values()
        if rule.id not in checked and rule.area != "files" and not any(place.test for place in rule.places)
    ]
    assert blind == []
    assert checked <= set(catalog.load())


def test_the_data_is_whole() -> None:
    for rule in catalog.load().values():
        assert re.fullmatch(r"[a-z0-9-]+", rule.id)
        assert rule.why.endswith(".")
        assert rule.fix.endswith(".")
        assert rule.sources or rule.area == "files", rule.id
        for outcomes in (rule.declared, rule.inferred):
            for one, following in itertools.pairwise(outcomes):
                assert one.versions.high is not None
                assert one.versions.high + 1 == following.versions.low, rule.id
            assert outcomes[-1].versions.high is None, rule.id
            assert {one.effect for one in outcomes} <= set(catalog.EFFECTS)
            assert {one.severity for one in outcomes} <= set(catalog.SEVERITIES)


def test_the_page_of_rules_is_generated_from_the_data() -> None:
    assert (ROOT / "docs/lint-rules.md").read_text() == page(), (
        "run: python -m winready.lint.explain > docs/lint-rules.md"
    )


def test_a_range_tells_the_worst_and_all_that_changes(tmp_path: Path) -> None:
    manifest = pod({"os": None, "securityContext": {"runAsUser": 1000}})
    [one] = [one for one in lint(tmp_path, manifest, "1.29-1.36") if one.rule == "sc-run-as-user"]
    assert (one.severity, one.effect, one.since, one.until) == ("error", "fails", "1.21", "1.30")
    assert [str(outcome.versions) for outcome in one.outcomes] == ["1.21-1.30", "1.31+"]


def test_a_rule_says_nothing_before_its_first_version(tmp_path: Path) -> None:
    manifest = pod({"securityContext": {"appArmorProfile": {"type": "RuntimeDefault"}}})
    assert "sc-apparmor" not in ids(lint(tmp_path, manifest, "1.29"))
    assert "sc-apparmor" in ids(lint(tmp_path, manifest, "1.30"))


def test_a_stateful_set_is_created_and_its_pods_are_refused_up_to_1_33(tmp_path: Path) -> None:
    manifest = workload("StatefulSet", {"hostPID": True})
    [old] = [one for one in lint(tmp_path, manifest, "1.33") if one.rule == "pod-host-pid"]
    [new] = [one for one in lint(tmp_path, manifest, "1.34") if one.rule == "pod-host-pid"]
    assert "the API server takes the StatefulSet and refuses its pods" in old.message
    assert "the API server refuses it" in new.message


def test_a_known_taint_makes_a_missing_toleration_an_error(tmp_path: Path) -> None:
    profile = {"taints": (Taint.parse("os=windows:NoSchedule"),)}
    assert "sched-missing-toleration" in ids(lint(tmp_path, pod({"tolerations": None}), profile=profile), "error")
    assert "sched-missing-toleration" not in ids(lint(tmp_path, pod(), profile=profile))


@pytest.mark.parametrize(
    ("change", "field", "told"),
    [
        ({"nodeSelector": {"disk": "ssd"}}, "spec.nodeSelector.disk", "w1: no label disk: ssd; w2: no label disk: ssd"),
        (affinity("disk", "In", "ssd", "nvme"), "nodeSelectorTerms", "not what its required node affinity asks for"),
        (affinity("cores", "Gt", "8"), "nodeSelectorTerms", "not what its required node affinity asks for"),
        ({"nodeName": "l1"}, "spec.nodeName", "nodeName is l1"),
        ({"tolerations": None}, "spec", "w1: the taint os=windows:NoSchedule, which the pod does not tolerate"),
        (container(resources={"requests": {"memory": "16385Mi"}}), "spec.containers", "less than the 16385Mi that"),
        (container(resources={"limits": {"cpu": "4001m"}}), "spec.containers", "4 of cpu, less than the 4001m that"),
    ],
    ids=lambda value: value if isinstance(value, str) and " " not in value else "",
)
def test_a_pod_that_no_windows_node_takes_says_why_for_each(
    tmp_path: Path, change: dict[str, Any], field: str, told: str
) -> None:
    profile = cluster(
        node("w1", "os=windows:NoSchedule", cores="8"), node("w2", "gpu:NoExecute", "os=windows:NoSchedule")
    )
    two = [*HEALTHY["tolerations"], {"key": "gpu", "operator": "Exists"}]
    [one] = [
        one for one in lint(tmp_path, pod({"tolerations": two, **change}), profile=profile) if "no-node" in one.rule
    ]
    assert told in one.message
    assert one.field.endswith(field)
    assert one.severity == "error"


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"nodeSelector": {"cores": "8"}},
        affinity("cores", "Gt", "7"),
        affinity("disk", "NotIn", "ssd"),
        {"nodeName": "w1"},
        container(resources={"limits": {"cpu": "4", "memory": "16Gi"}, "requests": {"cpu": "100m"}}),
        # What nobody can read is the API server's to refuse.
        container(resources={"limits": {"cpu": "a lot", "memory": "9" * 500}}),
    ],
)
def test_a_pod_that_one_windows_node_might_take_is_left_alone(tmp_path: Path, change: dict[str, Any]) -> None:
    profile = cluster(node("w1", "os=windows:NoSchedule", cores="8"), node("w2", "gpu:NoExecute"))
    assert "sched-no-node" not in ids(lint(tmp_path, pod(change), profile=profile))
    assert "sched-no-node" not in ids(lint(tmp_path, pod({"nodeSelector": {"a": "b"}})))


def test_containers_of_a_pod_are_counted_together_and_those_before_them_alone(tmp_path: Path) -> None:
    def asks(many: int, before: int = 0, **more: str) -> bool:
        each = {"name": "c", "resources": {"requests": {"memory": "6Gi"}}, "image": "a:ltsc2022", **more}
        spec = {"containers": [each] * many, "initContainers": [each] * before}
        return "sched-no-node" in ids(lint(tmp_path, pod(spec), profile=cluster(node())))

    assert [asks(2), asks(3), asks(2, 3), asks(2, 1, restartPolicy="Always")] == [False, True, False, True]


def test_volumes_of_a_pod_itself_are_held_against_the_cluster(tmp_path: Path) -> None:
    profile = CASES["vol-csi-not-on-windows"].profile
    inline = lint(tmp_path, pod(volume(csi={"driver": "fast.example.org"})), profile=profile)
    assert "vol-csi-not-on-windows" in ids(inline, "error")
    claim = {"volumeClaimTemplate": {"spec": {"storageClassName": "fast"}}}
    assert "vol-csi-not-on-windows" in ids(lint(tmp_path, pod(volume(ephemeral=claim)), profile=profile), "error")
    profile = CASES["vol-class-unknown"].profile
    claim = {"volumeClaimTemplate": {"spec": {}}}
    [one] = [
        one for one in lint(tmp_path, pod(volume(ephemeral=claim)), profile=profile) if one.rule == "vol-class-unknown"
    ]
    assert one.message.startswith("the claim names no StorageClass, and the cluster has no default one: ")
    own = [
        pod(volume(persistentVolumeClaim={"claimName": "mine"})),
        thing("PersistentVolumeClaim", name="mine", spec={"storageClassName": "gone"}),
    ]
    assert "vol-class-unknown" in ids(lint(tmp_path, own, profile=profile), "error")


def test_known_windows_nodes_make_every_service_count(tmp_path: Path) -> None:
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "a"},
        "spec": {"sessionAffinity": "ClientIP"},
    }
    assert "svc-session-affinity" not in ids(lint(tmp_path, service))
    assert "svc-session-affinity" in ids(lint(tmp_path, service, profile={"windows_nodes": True}))


def test_calico_resolves_negative_selectors(tmp_path: Path) -> None:
    case = CASES["np-negative-selectors"]
    assert "np-negative-selectors" not in ids(lint(tmp_path, case.bad, profile={"cni": "calico"}))
    assert "np-needs-plugin" not in ids(lint(tmp_path, CASES["np-needs-plugin"].bad, profile={"cni": "antrea"}))


@pytest.mark.parametrize(
    "spec",
    [
        {"nodeSelector": {"node.kubernetes.io/windows-build": "10.0.20348"}},
        {"runtimeClassName": "windows-2022"},
        {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
            {"matchExpressions": [{"key": "kubernetes.io/os", "operator": "In", "values": ["windows"]}]}]}}}},
        {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
            {"matchExpressions": [{"key": "kubernetes.io/os", "operator": "NotIn", "values": ["linux"]}]}]}}}},
        {"tolerations": [{"key": "os", "value": "Windows"}]},
        {"containers": [{"name": "a", "image": "mcr.microsoft.com/dotnet/framework/aspnet:4.8"}]},
        {"containers": [{"name": "a", "image": "b", "securityContext": {"windowsOptions": {"runAsUserName": "x"}}}]},
    ],
)  # fmt: skip
def test_pods_that_are_taken_for_windows(spec: dict[str, object], tmp_path: Path) -> None:
    base = {"containers": [{"name": "a", "image": "b"}]}
    assert "os-field-missing" in ids(lint(tmp_path, pod(spec, base)))


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"nodeSelector": {"kubernetes.io/os": "linux"}, "containers": [{"image": "a:ltsc2022"}]},
        {"tolerations": [{"key": "gpu", "value": "true"}, {"operator": "Exists"}]},
        {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
            {"matchExpressions": [{"key": "kubernetes.io/os", "operator": "In", "values": ["windows"]}]},
            {"matchExpressions": [{"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]}]}]}}}},
        {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
            {"matchExpressions": [{"key": "kubernetes.io/os", "operator": "NotIn", "values": ["windows"]}]}]}}}},
    ],
)  # fmt: skip
def test_pods_that_are_not(spec: dict[str, object], tmp_path: Path) -> None:
    base = {"containers": [{"name": "a", "image": "nginx"}]}
    assert ids(lint(tmp_path, pod(spec, base)), "error", "warning") == []


def test_linux_workloads_have_no_findings(tmp_path: Path) -> None:
    linux = {"hostPID": True, "securityContext": {"fsGroup": 1}, "volumes": [{"name": "a", "nfs": {}}]}
    assert lint(tmp_path, workload("Deployment", linux, LINUX)) == []
