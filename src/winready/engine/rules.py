"""Rules of a run: conditions on the cluster and on the run itself, judged once, beside the requirements."""

from __future__ import annotations

from collections.abc import Sequence

from winready.checks.world import World
from winready.cluster.inventory import Inventory
from winready.engine.outcomes import Outcome, RequirementResult, RuleResult
from winready.spec.model import Specification

LEAST_NODES = 2


def judge_rules(
    specification: Specification,
    inventory: Inventory | None,
    world: World | None,
    results: Sequence[RequirementResult],
    *,
    allow_small_cluster: bool,
) -> list[RuleResult]:
    """Judge the rules that this version of winready verifies."""
    judged: dict[str, tuple[Outcome, str]] = {
        "rule.cluster-size": _cluster_size(inventory),
        "rule.pod-os": _pod_os(world),
        "rule.no-linux-passing": _no_linux_passing(world, results),
    }
    waived = {"rule.cluster-size": "--allow-small-cluster"} if allow_small_cluster else {}
    return [
        RuleResult(
            id=rule.id,
            outcome=judged[rule.id][0],
            reason=judged[rule.id][1],
            gates=rule.gates,
            waived_by=waived.get(rule.id) if judged[rule.id][0] != "passed" else None,
        )
        for rule in specification.rules
        if rule.id in judged
    ]


def _cluster_size(inventory: Inventory | None) -> tuple[Outcome, str]:
    if inventory is None:
        return "error", "the cluster could not be looked at"
    counts = {os: len(inventory.usable(os)) for os in ("linux", "windows")}
    found = f"{counts['linux']} usable Linux and {counts['windows']} usable Windows nodes"
    if min(counts.values()) >= LEAST_NODES:
        return "passed", found
    unusable = [f"{node.name} cannot be used: {node.unusable}" for node in inventory.nodes if node.unusable]
    detail = f" ({'; '.join(unusable)})" if unusable else ""
    return "failed", f"not qualified: {found}, where {LEAST_NODES} of each are needed{detail}"


def _pod_os(world: World | None) -> tuple[Outcome, str]:
    if world is None or not world.namespaces:
        return "blocked", "no pod was started"
    misplaced = [
        f"{namespace.name}/{name}: {how}" for namespace in world.namespaces for name, how in namespace.misplaced.items()
    ]
    if misplaced:
        return "failed", f"something rewrote pods on their way: {'; '.join(misplaced[:5])}"
    return "passed", "every pod states its operating system and carries the node selector for it"


def _no_linux_passing(world: World | None, results: Sequence[RequirementResult]) -> tuple[Outcome, str]:
    impostors = [text for namespace in (world.namespaces if world else []) for text in namespace.impostors.values()]
    if impostors:
        return "failed", "; ".join(impostors[:5])
    witnesses = {pod.uid for result in results for pod in result.evidence.pods if pod.os == "windows" and pod.build}
    if not witnesses:
        return "blocked", "no Windows container was seen"
    return "passed", f"all {len(witnesses)} Windows pods proved to be Windows containers"
