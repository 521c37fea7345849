"""The rules, each a small function from facts and results to an outcome and a reason; none of them needs a cluster."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from winready.cluster.images import repository
from winready.cluster.inventory import Inventory
from winready.cluster.settings import AGNHOST, PAUSE
from winready.engine.facts import Facts
from winready.engine.outcomes import Judged, RequirementResult, RuleResult
from winready.engine.rules.conformance import judge_conformance
from winready.engine.terms import SMALL_CLUSTER, Terms
from winready.spec.builds import Builds, load_builds
from winready.spec.model import Rule, Specification
from winready.spec.windows import build_number

LEAST_NODES = 2
WINDOWS_BUILDS, LINUX_CONFORMANCE = "rule.windows-builds", "rule.linux-conformance"
CLUSTER_SIZE = "rule.cluster-size"
NAMED = 5
"""Examples in a reason; more would hide it."""
Judge = Callable[[Facts, Terms, Sequence[RequirementResult]], Judged]


def judge_rules(specification: Specification, facts: Facts, results: Sequence[RequirementResult]) -> list[RuleResult]:
    """Judge every rule of the specification; one that this winready cannot judge is blocked."""
    terms = facts.terms or Terms()
    return [_judge(rule, facts, terms, results) for rule in specification.rules]


def _judge(rule: Rule, facts: Facts, terms: Terms, results: Sequence[RequirementResult]) -> RuleResult:
    try:
        judge = JUDGES.get(rule.id, _unknown)
        outcome, reason = judge(facts, terms, results)
    except Exception as error:
        outcome, reason = "error", f"winready itself failed: {type(error).__name__}: {error}"
    waived = rule.waived_by if outcome != "passed" and rule.waived_by in terms.waived else None
    return RuleResult(id=rule.id, outcome=outcome, reason=reason, gates=rule.gates, waived_by=waived)


def _unknown(facts: Facts, terms: Terms, results: Sequence[RequirementResult]) -> Judged:
    return "blocked", "this winready does not know how to judge it; a newer one may"


def _windows_builds(facts: Facts, terms: Terms, results: Sequence[RequirementResult]) -> Judged:
    """Every judged node has a build of the chosen list, and what runs there does not contradict it."""
    if facts.inventory is None:
        return "error", "the cluster could not be looked at"
    if not facts.windows_nodes:
        return "blocked", "no Windows node can be used"
    known = load_builds()
    allowed = known.lists[terms.windows_builds]
    words = f"the list '{terms.windows_builds}' ({allowed.text}, taken {allowed.taken})"
    outside = [node for node in facts.windows_nodes if node.build not in allowed.builds]
    if outside:
        nodes = "; ".join(f"node {node.name} runs {known.name(node.build)}" for node in outside[:NAMED])
        others = [name for name, each in known.lists.items() if all(node.build in each.builds for node in outside)]
        hint = f"; --windows-builds {others[0]} allows it" if others else ""
        return "failed", f"{nodes}, which is outside {words}{hint}"
    if untrue := _builds_in_dispute(facts, known) or _newer_containers(results, known):
        return "failed", "; ".join(untrue[:NAMED])
    found = sorted({known.name(node.build) for node in facts.windows_nodes})
    asked = {said.node for said in facts.sights.answers if said.host}
    proof = "as every node itself says" if asked >= set(facts.judged_nodes) else "as the API says"
    return "passed", f"{', '.join(found)}, {proof}: in {words}"


def _builds_in_dispute(facts: Facts, known: Builds) -> list[str]:
    """What a node's label says, its kubelet reports and the host itself answers must be one and the same build."""
    hosts = {said.node: said.build for said in facts.sights.answers if said.host and build_number(said.build)}
    found = []
    for node in facts.windows_nodes:
        label = f"node {node.name} is labelled {known.name(node.build)}"
        if node.kernel_build and node.kernel_build != node.build:
            found.append(f"{label}, its kubelet reports {known.name(node.kernel_build)}")
        elif (host := hosts.get(node.name, node.build)) != node.build:
            found.append(
                f"{label} and is {known.name(host)}, as the host itself says; correct the label or the kubelet"
            )
    return found


def _newer_containers(results: Sequence[RequirementResult], known: Builds) -> list[str]:
    """A host runs containers of its own build or of an older one, never of a newer one."""
    return sorted(
        {
            f"node {pod.node} says it runs {known.name(pod.node_build)}, a container there is {known.name(pod.build)}"
            for result in results
            for pod in result.evidence.everybody
            if pod.os == "windows"
            and pod.build
            and (build_number(pod.build) or 0) > (build_number(pod.node_build) or 0)
        }
    )


def _images(facts: Facts, terms: Terms, results: Sequence[RequirementResult]) -> Judged:
    """Windows pods ran agnhost and pause and nothing else, the same content everywhere.

    Upstream's tests bring their own images: what they alone have shown with others is not shown as the standard wants.
    """
    known = {_name(image) for image in (AGNHOST, PAUSE)}
    digests: dict[str, dict[str, set[str]]] = {}
    strangers = []
    for used in facts.sights.images:
        # A run uses one tag of each image: another one on some node is as wrong as other content.
        content = f"{used.image} ({used.digest})"
        digests.setdefault(repository(used.image), {}).setdefault(content, set()).add(used.node)
        # The registry is the operator's to choose, the image is not.
        if repository(used.image) not in terms.images or _name(used.image) not in known:
            strangers.append(f"pod {used.pod} on node {used.node} runs {used.image}")
    if strangers:
        return "failed", f"{'; '.join(strangers[:NAMED])}; the standard wants agnhost and pause"
    for image, found in digests.items():
        if len(found) > 1:
            places = "; ".join(f"{content} on {', '.join(sorted(nodes))}" for content, nodes in sorted(found.items()))
            return "failed", f"{image} is not the same on all nodes: {places}"
    shown_by_others = [
        f"{result.id} was shown by upstream tests with {pod.image}"
        for result in results
        if result.level == "core" and result.verifier == "upstream" and result.outcome == "passed"
        for pod in result.evidence.everybody
        if pod.os == "windows" and any(_name(image) not in known for image in pod.image.split(", "))
    ]
    if shown_by_others:
        words = "; ".join(list(dict.fromkeys(shown_by_others))[:NAMED])
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


def _pod_os(facts: Facts, terms: Terms, results: Sequence[RequirementResult]) -> Judged:
    if not facts.sights.namespaces:
        if any(result.verifier == "upstream" and result.evidence.pods for result in results):
            return "not-applicable", "winready started no pod; upstream's own tests do not state a system for theirs"
        return "blocked", "no pod was started"
    if misplaced := facts.sights.misplaced:
        return "failed", f"something rewrote pods on their way: {'; '.join(misplaced[:NAMED])}"
    return "passed", "every pod states its operating system and carries the node selector for it"


def _no_linux_passing(facts: Facts, terms: Terms, results: Sequence[RequirementResult]) -> Judged:
    if impostors := facts.sights.impostors:
        return "failed", "; ".join(impostors[:NAMED])
    witnesses = {
        pod.uid for result in results for pod in result.evidence.everybody if pod.os == "windows" and pod.build
    }
    if not witnesses:
        return "blocked", "no Windows container was seen"
    return "passed", f"all {len(witnesses)} Windows pods proved to be Windows containers"


def _cluster_size(facts: Facts, terms: Terms, results: Sequence[RequirementResult]) -> Judged:
    inventory = facts.inventory
    if inventory is None:
        return "error", "the cluster could not be looked at"
    if disputed := _systems_in_dispute(facts, inventory):
        return "failed", f"nodes cannot be counted: {'; '.join(disputed[:NAMED])}"
    # What the operator does not want judged is still a part of the cluster.
    counts = {os: sum(n.os == os and not n.unusable for n in inventory.nodes) for os in ("linux", "windows")}
    found = f"{counts['linux']} usable Linux and {counts['windows']} usable Windows nodes"
    if min(counts.values()) >= LEAST_NODES:
        return "passed", found
    unusable = [f"{node.name} cannot be used: {node.unusable}" for node in inventory.nodes if node.unusable]
    detail = f" ({'; '.join(unusable)})" if unusable else ""
    # A waiver is no way out where there is nothing to judge.
    hint = f"; {SMALL_CLUSTER} waives it" if min(counts.values()) and SMALL_CLUSTER not in terms.waived else ""
    return "failed", f"not qualified: {found}, where {LEAST_NODES} of each are needed{detail}{hint}"


def _systems_in_dispute(facts: Facts, inventory: Inventory) -> list[str]:
    """Nodes of which the API says two things, or another thing than a container there says of itself."""
    found = [f"node {node.name}: {node.contradiction}" for node in inventory.nodes if node.contradiction]
    found += [
        f"node {said.node} counts as Linux, a Linux pod there answers {said.build!r} when asked for its system"
        for said in facts.sights.answers
        if said.os == "linux" and said.build != "Linux"
    ]
    return found


def _linux_conformance(facts: Facts, terms: Terms, results: Sequence[RequirementResult]) -> Judged:
    return judge_conformance(terms.conformance, facts.inventory.version if facts.inventory else "an unknown version")


JUDGES: dict[str, Judge] = {
    WINDOWS_BUILDS: _windows_builds,
    "rule.images": _images,
    "rule.pod-os": _pod_os,
    "rule.no-linux-passing": _no_linux_passing,
    CLUSTER_SIZE: _cluster_size,
    LINUX_CONFORMANCE: _linux_conformance,
}
