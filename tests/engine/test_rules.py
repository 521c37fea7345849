"""The rules of a run: builds, images, and the imported result of Linux conformance."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from winready.cluster.evidence import Evidence, PodFact
from winready.cluster.images import repository
from winready.cluster.inventory import Inventory, Node, Taint, read_node
from winready.cluster.settings import AGNHOST, PAUSE
from winready.engine.facts import Facts
from winready.engine.outcomes import Judged, RequirementResult, RuleResult
from winready.engine.rules import JUDGES, conformance, judge_rules
from winready.engine.rules.conformance import ConformanceError, judge_conformance, read_conformance
from winready.engine.sights import ImageSeen, NodeAnswer, Sights
from winready.engine.terms import Terms
from winready.engine.verdict import judge
from winready.spec.builds import BuildList
from winready.spec.conformance_tests import conformance_tests, digest, minors, render
from winready.spec.loader import load_standard
from winready.spec.model import Rule


def used(pod: str, node: str, image: str, digest: str) -> ImageSeen:
    return ImageSeen(pod=f"ns/{pod}", node=node, image=image, digest=digest)


def judged(
    rule: str, *images: ImageSeen, build: str = "10.0.20348", said: str = "", chosen: BuildList = "published"
) -> RuleResult:
    pods = [PodFact(namespace="ns", name="p", uid="p", node="w1", os="windows", build=said, node_build=build)]
    result = RequirementResult(
        id="x", category="c", level="core", outcome="passed", reason="", evidence=Evidence(pods=pods)
    )
    nodes = [Node(name=f"w{n}", uid=f"u{n}", os="windows", build=build) for n in (1, 2)]
    facts = Facts(
        terms=Terms(windows_builds=chosen).stated([repository(AGNHOST), repository(PAUSE)]),
        inventory=Inventory(server="https://x", version="v1.36.0", nodes=nodes, features={}, missing={}),
        judged_nodes=["w1", "w2"],
        sights=Sights(namespaces=["ns"], images=list(images)),
    )
    return next(item for item in judge_rules(load_standard(), facts, [result]) if item.id == rule)


@pytest.mark.parametrize(
    ("build", "allowed"),
    [
        ("10.0.17763", {"draft", "published"}),
        ("10.0.19041", {"draft"}),
        ("10.0.20348", {"draft", "published", "current"}),
        ("10.0.26100", {"current"}),
        ("10.0.14393", set()),
    ],
)
def test_a_build_is_judged_by_the_chosen_list(build: str, allowed: set[str]) -> None:
    lists: tuple[BuildList, ...] = ("draft", "published", "current")
    for chosen in lists:
        rule = judged("rule.windows-builds", build=build, chosen=chosen)
        assert (rule.outcome == "passed") == (chosen in allowed)
        if rule.outcome == "failed":
            assert "w1" in rule.reason
            assert build in rule.reason
            assert f"'{chosen}'" in rule.reason


def test_a_node_that_runs_newer_containers_than_it_claims_to_be_able_to_is_found_out() -> None:
    rule = judged("rule.windows-builds", build="10.0.17763", said="10.0.20348")
    assert rule.outcome == "failed"
    assert "node w1" in rule.reason
    assert judged("rule.windows-builds", build="10.0.20348", said="10.0.17763").outcome == "passed"


def test_images_other_than_agnhost_and_pause_are_named_with_pod_and_node() -> None:
    fine = [used("a", "w1", AGNHOST, "sha256:1"), used("b", "w2", PAUSE, "sha256:2")]
    assert judged("rule.images", *fine).outcome == "passed"
    rule = judged("rule.images", *fine, used("c", "w2", "docker.io/library/iis:1", "sha256:3"))
    assert rule.outcome == "failed"
    assert "ns/c on node w2 runs docker.io/library/iis:1" in rule.reason
    assert judged("rule.images").outcome == "blocked"


def test_one_image_must_have_one_content_on_all_nodes() -> None:
    rule = judged("rule.images", used("a", "w1", AGNHOST, "sha256:1"), used("b", "w2", AGNHOST, "sha256:2"))
    assert rule.outcome == "failed"
    assert "(sha256:1) on w1" in rule.reason
    assert "(sha256:2) on w2" in rule.reason
    older = AGNHOST.replace("2.63.0", "2.56")
    rule = judged("rule.images", used("a", "w1", AGNHOST, "sha256:1"), used("b", "w2", older, "sha256:2"))
    assert rule.outcome == "failed"


def test_the_repository_of_an_image_has_neither_tag_nor_digest() -> None:
    assert repository("localhost:5000/a/b:1@sha256:0") == "localhost:5000/a/b"
    assert repository("pause") == "pause"


NAMES = [f"[sig-tests] Something should be number {number} [Conformance]" for number in range(8)]
RUNTIME = "[sig-storage] Secrets optional updates should be reflected in volume [NodeConformance] [Conformance]"


@pytest.fixture
def eight_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two versions of Kubernetes with few conformance tests."""
    known = {35: frozenset(map(digest, NAMES[:7])), 36: frozenset(map(digest, NAMES[1:]))}
    monkeypatch.setattr(conformance, "conformance_tests", lambda: known)


def junit(names: Sequence[str] = NAMES[1:], failed: str = "", head: str = "") -> bytes:
    cases = "".join(f'<testcase name="[It] {name}"/>' for name in names)
    cases += '<testcase name="left out [Conformance]"><skipped/></testcase><testcase name="other"><failure/></testcase>'
    if failed:
        cases += f'<testcase name="{failed} [Conformance]"><failure message="no"/></testcase>'
    return f"{head}<testsuites><testsuite>{cases}</testsuite></testsuites>".encode()


def archive(content: bytes, name: str = "plugins/e2e/results/global/junit_01.xml") -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for path, data in (("meta/run.log", b"x" * 2000), (name, content)):
            member = tarfile.TarInfo(path)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return buffer.getvalue()


@pytest.mark.usefixtures("eight_tests")
def test_conformance_comes_from_a_junit_file_or_a_sonobuoy_archive(tmp_path: Path) -> None:
    file = tmp_path / "result"
    for content in (junit(), archive(junit())):
        file.write_bytes(content)
        assert judge_conformance(read_conformance(file), "v1.36.2") == (
            "passed",
            "all 7 conformance tests of Kubernetes 1.36 passed in result",
        )
    file.write_bytes(archive(junit(failed="Pods should start")))
    outcome, reason = judge_conformance(read_conformance(file), "v1.36.2")
    assert outcome == "failed"
    assert "Pods should start" in reason


@pytest.mark.usefixtures("eight_tests")
@pytest.mark.parametrize(
    ("names", "version", "words"),
    [
        (NAMES[2:], "v1.36.2", "result has 6 of the 7 conformance tests of Kubernetes 1.36, which is not the whole"),
        ([*NAMES[1:], "[sig-x] made up [Conformance]"], "v1.36.2", "1 of 8 tests in result are none of Kubernetes'"),
        ([*NAMES[1:], "[sig-x] made up [Conformance]"], "v1.36.2", "conformance tests: [It] [sig-x] made up"),
        (NAMES[:7], "v1.36.2", "does not have 1 of its 7 tests, it is one of 1.35; run the conformance tests of"),
        (NAMES, "v1.36.2-eks-1", "does not have 1 of its 8 tests; run"),
        (NAMES[1:], "v1.37.0", "this winready knows the conformance tests of Kubernetes 1.35 to 1.36, not those of"),
        (NAMES[1:], "v2.36.0", "not those of v2.36.0"),
        (NAMES[1:], "unknown", "not those of unknown"),
    ],
)
def test_tests_that_are_not_those_of_the_clusters_version_show_nothing(
    tmp_path: Path, names: list[str], version: str, words: str
) -> None:
    file = tmp_path / "result"
    file.write_bytes(junit(names))
    outcome, reason = judge_conformance(read_conformance(file), version)
    assert outcome == "blocked"
    assert words in reason


def test_four_hundred_invented_names_are_no_conformance_result(tmp_path: Path) -> None:
    file = tmp_path / "result"
    file.write_bytes(junit([f"[sig-node] invented test {number} [Conformance]" for number in range(420)]))
    outcome, reason = judge_conformance(read_conformance(file), "v1.36.0")
    assert outcome == "blocked"
    assert reason.startswith("420 of 420 tests in result are none of Kubernetes' conformance tests: [It] [sig-node]")
    file.write_bytes(junit([f"[sig-node] invented test {number} [Conformance]" for number in range(6000)]))
    with pytest.raises(ConformanceError, match="no version of Kubernetes has so many"):
        read_conformance(file)


def test_a_test_is_known_however_a_result_writes_its_name() -> None:
    plain = RUNTIME.partition(" [Node")[0]
    for name in (
        RUNTIME,
        f"[It] {RUNTIME}",
        f"Kubernetes e2e suite.[It] {RUNTIME}",
        f"[It] {RUNTIME} [sig-storage, NodeConformance, Conformance]",
        f"{plain} [Conformance] [NodeConformance]",
        f"{plain}  [NodeConformance]  [Conformance]",
    ):
        assert digest(name) in conformance_tests()[36], name
    assert (
        digest("[sig-storage] Secrets optional updates should be reflected [Conformance]")
        not in (conformance_tests()[36])
    )


def test_each_minor_version_has_its_own_tests_and_the_file_keeps_them() -> None:
    known = conformance_tests()
    assert list(known) == list(range(23, 38))
    assert all(len(tests) > 340 for tests in known.values())
    assert len({len(tests) for tests in known.values()}) == len(known)
    assert minors(render({"aa": {24, 25, 27}, "bb": {25}})) == {
        24: frozenset({"aa"}),
        25: frozenset({"aa", "bb"}),
        27: frozenset({"aa"}),
    }


def test_a_result_may_have_any_name_that_a_file_can_have(tmp_path: Path) -> None:
    file = tmp_path / b"r\xff.xml".decode(errors="surrogateescape")
    file.write_bytes(junit())
    assert read_conformance(file).source == "r?.xml"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"hello", "neither JUnit XML"),
        (b'<?xml version="1.0" encoding="UTF-8UTF-8"?><testsuites/>', "neither JUnit XML.*unknown encoding"),
        (junit(head='<!DOCTYPE a [<!ENTITY b "c">]>'), "document type definition"),
        (b"<testsuites/>", "names no test"),
        (archive(junit(), "plugins/other/results/junit_01.xml"), "no JUnit result of plugin e2e"),
        (archive(junit())[:200], "no archive that can be read"),
    ],
)
def test_what_is_no_conformance_result_is_refused_in_words(tmp_path: Path, content: bytes, words: str) -> None:
    file = tmp_path / "result"
    file.write_bytes(content)
    with pytest.raises(ConformanceError, match=words):
        read_conformance(file)


def test_a_run_without_a_conformance_result_says_that_it_is_absent() -> None:
    rule = judged("rule.linux-conformance")
    assert rule.reason.startswith("absent")
    assert rule.gates == "certificate"


def test_a_rule_that_this_winready_cannot_judge_is_blocked_and_no_run_passes_with_it() -> None:
    standard = load_standard()
    new = Rule(id="rule.of-tomorrow", statement="something new", gates="run")
    document = msgspec.structs.replace(standard.document, rules=[*standard.rules, new])
    newer = msgspec.structs.replace(standard, document=document)
    rules = judge_rules(newer, Facts(terms=Terms()), [])
    assert [rule.id for rule in rules] == [rule.id for rule in newer.rules]
    unknown = rules[-1]
    assert (unknown.outcome, unknown.gates) == ("blocked", "run")
    assert "does not know how to judge it" in unknown.reason
    passed = RequirementResult(id="x", category="c", level="core", outcome="passed", reason="")
    assert judge(newer, [passed], [unknown]).exit_code == 3


def test_a_rule_whose_judge_crashes_is_in_error_and_the_others_are_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> Judged:
        raise KeyError("x")

    monkeypatch.setitem(JUDGES, "rule.images", broken)
    rule = judged("rule.images")
    assert (rule.outcome, rule.reason) == ("error", "winready itself failed: KeyError: 'x'")
    assert judged("rule.windows-builds").outcome == "passed"


def test_nothing_known_passes_no_rule() -> None:
    rules = judge_rules(load_standard(), Facts(), [])
    assert {rule.id for rule in rules} == set(JUDGES)
    assert {rule.outcome for rule in rules} <= {"blocked", "error"}
    size = next(rule for rule in rules if rule.id == "rule.cluster-size")
    assert (size.outcome, size.reason) == ("error", "the cluster could not be looked at")


def test_a_waiver_is_named_only_where_there_is_something_to_waive() -> None:
    terms = Terms(waived=["--allow-small-cluster"])
    one = Node(name="w1", uid="1", os="windows")
    inventory = Inventory(server="https://x", version="v1.36.0", nodes=[one], features={}, missing={})
    rules = {rule.id: rule for rule in judge_rules(load_standard(), Facts(terms=terms, inventory=inventory), [])}
    assert rules["rule.cluster-size"].outcome == "failed"
    assert [rule.id for rule in rules.values() if rule.waived_by] == ["rule.cluster-size"]
    pairs = [Node(name=f"{os}{n}", uid=f"{os}{n}", os=os) for os in ("windows", "linux") for n in (1, 2)]
    whole = Facts(terms=terms, inventory=msgspec.structs.replace(inventory, nodes=pairs))
    assert not any(rule.waived_by for rule in judge_rules(load_standard(), whole, []))


def test_nodes_that_a_selector_leaves_out_count_for_the_size_of_the_cluster() -> None:
    nodes = [Node(name=f"{os}{n}", uid=f"{os}{n}", os=os) for os in ("windows", "linux") for n in (1, 2)]
    nodes[0] = msgspec.structs.replace(nodes[0], left_out="it is not chosen by --node-selector pool=a")
    found = Inventory(server="https://x", version="v1.36.0", nodes=nodes, features={}, missing={})
    rules = {rule.id: rule for rule in judge_rules(load_standard(), Facts(terms=Terms(), inventory=found), [])}
    assert rules["rule.cluster-size"].outcome == "passed"


def counted(*nodes: Node, said: tuple[NodeAnswer, ...] = (), rule: str = "rule.cluster-size") -> RuleResult:
    facts = Facts(
        terms=Terms(),
        inventory=Inventory(server="https://x", version="v1.36.0", nodes=list(nodes), features={}, missing={}),
        judged_nodes=[node.name for node in nodes if node.windows],
        sights=Sights(namespaces=["ns"], answers=list(said)),
    )
    return next(item for item in judge_rules(load_standard(), facts, []) if item.id == rule)


def a_node(name: str, os: str, **info: str) -> Node:
    """A node as the API describes it; ``info`` goes over what its kubelet reports."""
    labels = {"kubernetes.io/os": os, **({"node.kubernetes.io/windows-build": "10.0.20348"} if os == "windows" else {})}
    reported = {
        "operatingSystem": os,
        "kernelVersion": "10.0.20348.4052" if os == "windows" else "6.8.0-1024-generic",
        "osImage": "Windows Server 2022 Datacenter" if os == "windows" else "Ubuntu 24.04.2 LTS",
    }
    ready = {"conditions": [{"type": "Ready", "status": "True"}], "nodeInfo": {**reported, **info}}
    return read_node({"metadata": {"name": name, "uid": name, "labels": labels}, "spec": {}, "status": ready})


SOUND = [a_node("l1", "linux"), a_node("l2", "linux"), a_node("w1", "windows"), a_node("w2", "windows")]


@pytest.mark.parametrize(
    ("node", "words"),
    [
        (
            a_node("x", "linux", operatingSystem="windows"),
            "label kubernetes.io/os says linux, its kubelet says windows",
        ),
        (
            a_node("x", "windows", operatingSystem="linux"),
            "label kubernetes.io/os says windows, its kubelet says linux",
        ),
        (a_node("x", "linux", osImage="Windows Server 2022 Datacenter"), "'Windows Server 2022 Datacenter'"),
    ],
)
def test_a_node_that_says_two_things_of_its_system_counts_as_neither(node: Node, words: str) -> None:
    rule = counted(*SOUND, node)
    assert rule.outcome == "failed", "although there are enough nodes without it"
    assert "node x" in rule.reason
    assert words in rule.reason
    assert node.unusable


@pytest.mark.parametrize(
    "node", [a_node("x", "linux", operatingSystem="Linux"), a_node("x", "windows", osImage="Azure Stack HCI")]
)
def test_other_ways_to_say_the_same_are_no_contradiction(node: Node) -> None:
    assert counted(*SOUND, node).outcome == "passed"


def test_a_linux_node_that_runs_something_else_is_not_counted() -> None:
    fine = NodeAnswer(node="l1", os="linux", build="Linux")
    assert counted(*SOUND, said=(fine,)).outcome == "passed"
    rule = counted(*SOUND, said=(fine, NodeAnswer(node="l2", os="linux", build="Windows_NT")))
    assert rule.outcome == "failed"
    assert "node l2" in rule.reason


def test_label_kubelet_and_host_must_name_one_build() -> None:
    builds = "rule.windows-builds"
    hosts = [NodeAnswer(node=name, os="windows", build="10.0.20348", host=True) for name in ("w1", "w2")]
    assert "as the API says" in counted(*SOUND, rule=builds).reason
    assert "as every node itself says" in counted(*SOUND, said=tuple(hosts), rule=builds).reason
    newer = NodeAnswer(node="w1", os="windows", build="10.0.26100", host=True)
    rule = counted(*SOUND, said=(newer, hosts[1]), rule=builds)
    assert rule.outcome == "failed"
    assert "node w1 is labelled Windows Server 2022 (10.0.20348) and is Windows Server 2025 (10.0.26100)" in rule.reason
    rule = counted(*SOUND, a_node("w3", "windows", kernelVersion="10.0.17763.1"), rule=builds)
    assert rule.outcome == "failed"
    assert "node w3" in rule.reason
    assert "its kubelet reports Windows Server 2019 (10.0.17763)" in rule.reason
    older = NodeAnswer(node="w1", os="windows", build="10.0.17763")
    assert counted(*SOUND, said=(older,), rule=builds).outcome == "passed", "legal with Hyper-V isolation"


@pytest.mark.parametrize("key", ["node.cloudprovider.kubernetes.io/shutdown", "node.kubernetes.io/unreachable"])
def test_taints_of_a_node_that_is_unwell_are_not_tolerated(key: str) -> None:
    assert not Taint(key=key, effect="NoSchedule").ours_to_tolerate
    assert Taint(key="os", value="windows", effect="NoSchedule").ours_to_tolerate
