"""Evidence of very many nodes: small, and still telling of each of them."""

from __future__ import annotations

import msgspec

from winready.cluster.evidence import FULL_PODS, FULL_PROBES, PROBE_LIMIT, Evidence, PodFact, Probe


def pod(number: int, name: str = "client", build: str = "10.0.20348") -> PodFact:
    return PodFact(
        namespace="winready-1",
        name=f"{name}-{number}",
        uid=f"uid-{name}-{number}",
        node=f"windows-{number}",
        os="windows",
        build=build,
        node_build="10.0.20348",
        image="agnhost",
        image_id="sha256:1",
        addresses=[f"10.128.{number // 256}.{number % 256}"],
    )


def probe(number: int, turn: int, ok: bool = True) -> Probe:
    return Probe(title=f"question {turn}", ok=ok, node=f"windows-{number}", observed="an answer" * 10)


def gathered(nodes: int, bad: int = 0) -> Evidence:
    """Five questions from each node, and of one node all of them without answer."""
    evidence = Evidence()
    evidence.saw(pod(number) for number in range(1, nodes + 1))
    for turn in range(5):
        for number in range(1, nodes + 1):
            evidence.probe(probe(number, turn, number != bad))
    return evidence


def test_what_is_recorded_of_few_nodes_stays_as_it_is() -> None:
    evidence = gathered(20)
    before = msgspec.json.encode(evidence)
    assert msgspec.json.encode(evidence.fold()) == before


def test_a_thousand_nodes_are_all_told_of_and_take_little_room() -> None:
    small, evidence = gathered(60).fold(), gathered(1000)
    facts = list(evidence.everybody)
    evidence.fold()
    assert (len(evidence.pods), len(evidence.probes)) == (FULL_PODS, FULL_PROBES)
    assert sorted(evidence.everybody, key=lambda fact: fact.uid) == sorted(facts, key=lambda fact: fact.uid)
    assert len(evidence.windows_nodes) == 1000
    told = {
        name: evidence.counted.get(name, 0) + sum(p.node == name for p in evidence.probes)
        for name in evidence.windows_nodes
    }
    assert set(told.values()) == {5}
    assert evidence.dropped_probes == sum(evidence.counted.values()) == 5000 - FULL_PROBES
    # Not one probe more of a node that has been told of while others have not.
    assert len({each.node for each in evidence.probes}) == FULL_PROBES
    each = (len(msgspec.json.encode(evidence)) - len(msgspec.json.encode(small))) / 940
    assert each < 120
    again = msgspec.json.decode(msgspec.json.encode(evidence), type=Evidence)
    assert again == evidence
    assert list(again.everybody) == list(evidence.everybody)


def test_of_a_node_on_which_something_failed_everything_is_kept() -> None:
    evidence = gathered(1000, bad=70).fold()
    assert [each.title for each in evidence.probes if not each.ok] == [f"question {turn}" for turn in range(5)]
    assert evidence.pods[0].node == "windows-70"
    late = gathered(300)
    late.probe(probe(299, 9, ok=False))
    late.fold()
    assert [each for each in late.probes if not each.ok]
    assert sum(each.node == "windows-299" and each.ok for each in late.probes) == sum(
        each.node == "windows-299" for each in gathered(300).probes[:PROBE_LIMIT]
    )


def test_pods_that_differ_are_in_groups_of_their_own() -> None:
    evidence = gathered(300)
    evidence.saw([pod(400, build="10.0.26100")])
    evidence.fold()
    assert [group.build for group in evidence.alike] == ["10.0.20348", "10.0.26100"]
    assert [one.node for one in evidence.alike[1].pods] == ["windows-400"]
