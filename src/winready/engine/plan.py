"""The plan: what runs where, what cannot be judged and why, and how long it should take.

Made from the specification, the inventory and the table of checks alone; it changes nothing on the cluster.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Literal

import msgspec

from winready.checks.fixtures import LINUX_NODES
from winready.checks.registry import Check, FeatureCheck
from winready.cluster.inventory import Inventory, Node
from winready.engine import defaults
from winready.engine.coverage import choose, why_not
from winready.spec.model import Requirement, Specification
from winready.spec.versions import Version

UNNAMED = {
    "gmsa": "no Active Directory domain was named; 'winready run --active-directory FILE' does, with a gMSA that the "
    "cluster has a credential spec of, and a share for it"
}
"""Features that cannot be seen from a cluster alone, and what would make them judgeable."""
NO_NODES_STEP = {
    "Windows": "add one: 'winready node bundle' makes a worker of a Windows machine",
    "Linux": "add Linux workers: they are the other side of what Windows pods are asked for",
}
NAMED_STEP = {"gmsa": "install the gMSA webhook with its CRD, and create the credential spec that the file names"}


FEATURE = "feature"
"""Stands where a requirement has its category."""


class Assignment(msgspec.Struct, frozen=True, kw_only=True):
    """What upstream tests do for a requirement, or why they must not."""

    tests: list[str] = []
    full: bool = False
    """Whether they prove all of it."""
    unproven: list[str] = []
    expected_s: float = 0.0
    disruptive: bool = False
    """Whether one of them harms nodes."""
    refused: str = ""
    next_step: str = ""


class Lacking(msgspec.Struct, frozen=True):
    """Rights that are missing, as people read them, and what to do."""

    rights: str
    next_step: str


class Planned(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One selected requirement and what will become of it."""

    id: str
    category: str
    level: str
    action: Literal["run", "blocked", "not-applicable"]
    reason: str = ""
    next_step: str = ""
    verifier: str = ""
    fixtures: list[str] = []
    expected_s: float = 0.0
    """Cluster seconds, fixtures not counted."""
    windows_pods: int = 0
    disruptive: bool = False
    upstream: list[str] = []
    """The upstream tests that verify it, by their names in the mapping."""
    upstream_full: bool = False
    unproven: list[str] = []
    """What those tests leave open."""


class PlannedFeature(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A feature of the matrix that is to be shown, and by what."""

    id: str
    requirements: list[str] = []
    check: bool = False
    tests: list[str] = []


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What a run will do."""

    windows_nodes: list[str]
    linux_nodes: list[str]
    nodes_left_out: dict[str, str]
    requirements: list[Planned]
    fixtures: dict[str, float]
    """Shared fixtures and the cluster seconds each should take."""
    critical_path: list[str]
    expected_s: float
    """Cluster seconds along the critical path: no order of the work could be shorter."""
    windows_pods: int
    features: list[PlannedFeature] = []
    unhelped: Lacking | None = None
    """Missing rights that stop nothing: the run will know less."""


def make_plan(
    specification: Specification,
    requirements: Sequence[Requirement],
    inventory: Inventory,
    checks: Mapping[str, Check],
    fixture_seconds: Mapping[str, float],
    *,
    nodes: int | None = defaults.NODES,
    allow_disruptive: bool = False,
    named: Collection[str] = (),
    lacking: Mapping[str, Lacking] | None = None,
    unhelped: Lacking | None = None,
    upstream: Mapping[str, Assignment] | None = None,
    features: Sequence[PlannedFeature] = (),
    feature_checks: Mapping[str, FeatureCheck] | None = None,
) -> Plan:
    """Decide for every selected requirement whether and how it is verified. ``nodes=None`` judges all nodes.

    ``named`` are features that the operator says the cluster offers: without them a requirement is blocked.
    ``lacking`` says for requirements which rights are missing to check them, ``unhelped`` which others are missing.
    Empty ``checks`` leave everything to upstream; ``upstream=None`` leaves everything to the checks.
    """
    windows, linux = choose(inventory.usable("windows"), nodes), choose(inventory.usable("linux"), LINUX_NODES)
    left_out = {node.name: why for node in inventory.nodes if (why := why_not(node))}
    for os, chosen, why in (
        ("windows", windows, f"only {nodes} Windows {'node is' if nodes == 1 else 'nodes are'} judged (--nodes)"),
        ("linux", linux, f"{LINUX_NODES} Linux nodes are enough as the other side"),
    ):
        left_out |= {node.name: why for node in inventory.usable(os) if node not in chosen}
    planned = [
        _planned(
            specification,
            item,
            inventory,
            windows,
            linux,
            checks.get(item.id),
            upstream.get(item.id, Assignment()) if upstream is not None else None,
            allow_disruptive,
            named,
            (lacking or {}).get(item.id),
        )
        for item in requirements
    ]
    planned = _spared(planned, checks, len(windows))
    running = [item for item in planned if item.action == "run"]
    shown = [feature_checks[item.id] for item in features if item.check] if feature_checks and windows else []
    shared = [name for item in running for name in item.fixtures] + [name for each in shown for name in each.fixtures]
    fixtures = {name: fixture_seconds[name] for name in shared}
    path, expected = _critical_path(running, fixtures)
    # Long work first: what bounds the run starts before what fits beside it.
    planned.sort(key=lambda item: (item.disruptive, item.action != "run", -item.expected_s))
    return Plan(
        windows_nodes=[node.name for node in windows],
        linux_nodes=[node.name for node in linux],
        nodes_left_out=left_out,
        requirements=planned,
        fixtures=fixtures,
        critical_path=path,
        expected_s=expected,
        windows_pods=sum(item.windows_pods for item in running)
        + len(windows) * sum(each.windows_pods_per_node for each in shown),
        features=list(features),
        unhelped=unhelped,
    )


def _planned(
    specification: Specification,
    item: Requirement,
    inventory: Inventory,
    windows: Sequence[Node],
    linux: Sequence[Node],
    check: Check | None,
    upstream: Assignment | None,
    allow_disruptive: bool,
    named: Collection[str],
    lacking: Lacking | None,
) -> Planned:
    base = Planned(
        id=item.id,
        category=item.category,
        level=specification.level(item),
        action="run",
        disruptive=item.disruptive or (upstream is not None and upstream.disruptive),
    )
    version = Version.parse(inventory.version)
    for feature in item.needs.features:
        if feature in UNNAMED and feature not in named:
            return _without(base, "not-applicable", UNNAMED[feature])
        if feature in inventory.missing:
            lack = inventory.missing[feature]
            if feature in named:
                return _without(base, "blocked", lack, NAMED_STEP[feature])
            return _without(base, "not-applicable", lack)
    if version not in item.versions:
        return _without(base, "not-applicable", f"it applies to Kubernetes {item.versions}, this is {version}")
    if upstream is not None and upstream.refused:
        return _without(base, "blocked", upstream.refused, upstream.next_step)
    tests = upstream.tests if upstream is not None else []
    if check is None and not tests:
        missing = "winready has no check for it yet"
        if upstream is not None:
            missing = f"no upstream test of Kubernetes {version} verifies it"
        return _without(base, "blocked", missing, "'winready spec coverage' lists what verifies what")
    for os, have, need in (("Windows", windows, item.needs.windows), ("Linux", linux, item.needs.linux)):
        if len(have) < need and not any(node.os == os.lower() for node in inventory.nodes):
            return _without(base, "blocked", without_nodes(os), NO_NODES_STEP[os])
        if len(have) < need:
            reason = f"it needs {need} usable {os} node{'s' if need > 1 else ''}, the cluster has {len(have)}"
            aside = any(node.os == os.lower() and why_not(node) for node in inventory.nodes)
            step = "'kubectl get nodes' shows what keeps nodes from being used" if aside else f"add {os} nodes"
            return _without(base, "blocked", reason, step)
    if base.disruptive and not allow_disruptive:
        return _without(base, "blocked", "it disturbs nodes and was not allowed", "add --allow-disruptive")
    if check is not None and lacking:
        return _without(base, "blocked", f"rights are missing: {lacking.rights}", lacking.next_step)
    if upstream is not None and tests:
        base = msgspec.structs.replace(
            base,
            verifier="upstream",
            expected_s=upstream.expected_s,
            upstream=tests,
            upstream_full=upstream.full,
            unproven=upstream.unproven,
        )
    if check is None:
        return base
    return msgspec.structs.replace(
        base,
        verifier="both" if tests else "native",
        fixtures=sorted(check.fixtures),
        expected_s=base.expected_s + check.expected_s + check.expected_s_per_node * len(windows),
        windows_pods=check.windows_pods + check.windows_pods_per_node * len(windows),
    )


def without_nodes(os: str) -> str:
    """What is to be said of a cluster without any node of a system, usable or not."""
    return f"the cluster has no {os} node"


def _spared(planned: Sequence[Planned], checks: Mapping[str, Check], nodes: int) -> list[Planned]:
    """Without the time for what another check of the same run does already."""
    native = {item.id for item in planned if item.verifier in ("native", "both")}
    result = []
    for item in planned:
        saved = checks[item.id].spared_s_per_node if item.id in native else {}
        seconds = nodes * sum(each for other, each in saved.items() if other in native)
        result.append(msgspec.structs.replace(item, expected_s=item.expected_s - seconds))
    return result


def tested_feature(feature: str, tests: Sequence[str]) -> Planned:
    """A feature that upstream tests show, as something for e2e.test to verify."""
    return Planned(
        id=feature,
        category=FEATURE,
        level="advisory",
        action="run",
        verifier="upstream",
        upstream=list(tests),
        upstream_full=True,
    )


def unplanned(specification: Specification, item: Requirement) -> Planned:
    """A requirement that no plan could be made for."""
    return Planned(id=item.id, category=item.category, level=specification.level(item), action="blocked")


def _without(base: Planned, action: Literal["blocked", "not-applicable"], reason: str, next_step: str = "") -> Planned:
    return msgspec.structs.replace(base, action=action, reason=reason, next_step=next_step)


def _critical_path(running: Sequence[Planned], fixtures: Mapping[str, float]) -> tuple[list[str], float]:
    """The longest chain that no order could shorten: the slowest fixture of a check and then the check itself."""
    best: tuple[list[str], float] = ([], 0.0)
    serial = sum(item.expected_s for item in running if item.disruptive)
    for item in running:
        if item.disruptive:
            continue
        slowest = max(item.fixtures, key=lambda name: fixtures[name], default=None)
        chain = [*([f"fixture {slowest}"] if slowest else []), item.id]
        seconds = (fixtures[slowest] if slowest else 0.0) + item.expected_s
        if seconds > best[1]:
            best = (chain, seconds)
    disruptive = [item.id for item in running if item.disruptive]
    return [*best[0], *disruptive], best[1] + serial
