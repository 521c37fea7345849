"""The six rules, each a small function from what was seen to an outcome and a reason."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from winready.checks.world import World
from winready.cluster.images import repository
from winready.cluster.inventory import Inventory
from winready.cluster.settings import AGNHOST, PAUSE
from winready.engine.outcomes import Outcome, RequirementResult, RuleResult
from winready.engine.rules.conformance import Conformance
from winready.spec.builds import BuildList, load_builds
from winready.spec.model import Specification

LEAST_NODES = 2
Judged = tuple[Outcome, str]


@dataclass(frozen=True)
class RuleOptions:
    """What the operator decided about the rules."""

    allow_small_cluster: bool = False
    windows_builds: BuildList = "published"
    conformance: Conformance | None = None


def judge_rules(
    specification: Specification,
    inventory: Inventory | None,
    world: World | None,
    results: Sequence[RequirementResult],
    options: RuleOptions,
) -> list[RuleResult]:
    """Judge every rule of the standard."""
    judged: dict[str, Judged] = {
        "rule.windows-builds": _windows_builds(inventory, world, results, options.windows_builds),
        "rule.images": _images(world, results),
        "rule.pod-os": _pod_os(world, results),
        "rule.no-linux-passing": _no_linux_passing(world, results),
        "rule.cluster-size": _cluster_size(inventory),
        "rule.linux-conformance": _linux_conformance(options.conformance),
    }
    waived = {"rule.cluster-size": "--allow-small-cluster"} if options.allow_small_cluster else {}
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


def _windows_builds(
    inventory: Inventory | None, world: World | None, results: Sequence[RequirementResult], chosen: BuildList
) -> Judged:
    """Every judged node has a build of the chosen list, and what runs there does not contradict it."""
    if inventory is None or world is None:
        return "error", "the cluster could not be looked at"
    if not world.windows_nodes:
        return "blocked", "no Windows node can be used"
    known = load_builds()
    allowed = known.lists[chosen]
    words = f"the list '{chosen}' ({allowed.text}, taken {allowed.taken})"
    outside = [node for node in world.windows_nodes if node.build not in allowed.builds]
    if outside:
        nodes = "; ".join(f"node {node.name} runs {known.name(node.build)}" for node in outside[:5])
        others = [name for name, each in known.lists.items() if all(node.build in each.builds for node in outside)]
        hint = f"; --windows-builds {others[0]} allows it" if others else ""
        return "failed", f"{nodes}, which is outside {words}{hint}"
    liars = sorted(
        {
            f"node {pod.node} says it runs {known.name(pod.node_build)}, a container there is {known.name(pod.build)}"
            for result in results
            for pod in result.evidence.pods
            # A host runs containers of its own build or of an older one, never of a newer one.
            if pod.os == "windows" and pod.build and _number(pod.build) > _number(pod.node_build)
        }
    )
    if liars:
        return "failed", "; ".join(liars[:5])
    found = sorted({known.name(node.build) for node in world.windows_nodes})
    return "passed", f"{', '.join(found)}: in {words}"


def _number(build: str) -> int:
    last = build.rpartition(".")[2]
    return int(last) if last.isdigit() else 0


def _images(world: World | None, results: Sequence[RequirementResult]) -> Judged:
    """Windows pods ran agnhost and pause and nothing else, the same content everywhere.

    Upstream's tests bring their own images: what they alone have shown with others is not shown as the standard wants.
    """
    if world is None:
        return "blocked", "no pod was started"
    allowed = {repository(world.settings.image(each)) for each in (AGNHOST, PAUSE)}
    known = {_name(image) for image in (AGNHOST, PAUSE)}
    digests: dict[str, dict[str, set[str]]] = {}
    strangers = []
    for namespace in world.namespaces:
        for used in namespace.images:
            # A run uses one tag of each image: another one on some node is as wrong as other content.
            content = f"{used.image} ({used.digest})"
            digests.setdefault(repository(used.image), {}).setdefault(content, set()).add(used.node)
            if repository(used.image) not in allowed:
                strangers.append(f"pod {namespace.name}/{used.pod} on node {used.node} runs {used.image}")
    if strangers:
        return "failed", f"{'; '.join(strangers[:5])}; the standard wants agnhost and pause"
    for image, found in digests.items():
        if len(found) > 1:
            places = "; ".join(f"{content} on {', '.join(sorted(nodes))}" for content, nodes in sorted(found.items()))
            return "failed", f"{image} is not the same on all nodes: {places}"
    shown_by_others = [
        f"{result.id} was shown by upstream tests with {pod.image}"
        for result in results
        if result.level == "core" and result.verifier == "upstream" and result.outcome == "passed"
        for pod in result.evidence.pods
        if pod.os == "windows" and any(_name(image) not in known for image in pod.image.split(", "))
    ]
    if shown_by_others:
        words = "; ".join(list(dict.fromkeys(shown_by_others))[:5])
        return (
            "blocked",
            f"{words}, where the standard wants agnhost and pause; --engine both adds winready's own check",
        )
    if not digests:
        if any(result.verifier == "upstream" and result.outcome == "passed" for result in results):
            return "passed", "Windows pods of upstream tests ran agnhost and pause and nothing else"
        return "blocked", "no Windows pod was started"
    return "passed", f"Windows pods ran {', '.join(sorted(digests))} and nothing else, the same on every node"


def _name(image: str) -> str:
    return repository(image).rpartition("/")[2]


def _pod_os(world: World | None, results: Sequence[RequirementResult]) -> Judged:
    if world is None or not world.namespaces:
        if any(result.verifier == "upstream" and result.evidence.pods for result in results):
            return "not-applicable", "winready started no pod; upstream's own tests do not state a system for theirs"
        return "blocked", "no pod was started"
    misplaced = [
        f"{namespace.name}/{name}: {how}" for namespace in world.namespaces for name, how in namespace.misplaced.items()
    ]
    if misplaced:
        return "failed", f"something rewrote pods on their way: {'; '.join(misplaced[:5])}"
    return "passed", "every pod states its operating system and carries the node selector for it"


def _no_linux_passing(world: World | None, results: Sequence[RequirementResult]) -> Judged:
    impostors = [text for namespace in (world.namespaces if world else []) for text in namespace.impostors.values()]
    impostors += world.impostors if world else []
    if impostors:
        return "failed", "; ".join(impostors[:5])
    witnesses = {pod.uid for result in results for pod in result.evidence.pods if pod.os == "windows" and pod.build}
    if not witnesses:
        return "blocked", "no Windows container was seen"
    return "passed", f"all {len(witnesses)} Windows pods proved to be Windows containers"


def _cluster_size(inventory: Inventory | None) -> Judged:
    if inventory is None:
        return "error", "the cluster could not be looked at"
    counts = {os: len(inventory.usable(os)) for os in ("linux", "windows")}
    found = f"{counts['linux']} usable Linux and {counts['windows']} usable Windows nodes"
    if min(counts.values()) >= LEAST_NODES:
        return "passed", found
    unusable = [f"{node.name} cannot be used: {node.unusable}" for node in inventory.nodes if node.unusable]
    detail = f" ({'; '.join(unusable)})" if unusable else ""
    return "failed", f"not qualified: {found}, where {LEAST_NODES} of each are needed{detail}"


def _linux_conformance(given: Conformance | None) -> Judged:
    if given is None:
        return "blocked", "absent: no result of Linux conformance was given (--linux-conformance FILE)"
    return given.judged()
