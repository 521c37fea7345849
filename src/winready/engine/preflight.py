"""What a run will meet, known before its first object: ``doctor``, ``plan`` and ``run`` look the same way.

Nothing on the cluster changes. One cause is one finding, with everything that it concerns behind it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import msgspec

from winready.checks.rights import rights_needed
from winready.cluster.client import Client
from winready.cluster.errors import (
    ANONYMOUS,
    ClusterError,
    ConfigError,
    ConnectionFailed,
    DeadlineExceeded,
    Forbidden,
    Unauthorized,
)
from winready.cluster.inventory import Inventory, Node
from winready.cluster.resources import NODES
from winready.cluster.settings import AGNHOST, PAUSE, Settings
from winready.cluster.transport import OUTAGE_SECONDS
from winready.engine.facts import Facts
from winready.engine.options import Options
from winready.engine.outcomes import RuleResult
from winready.engine.plan import NO_NODES_STEP, Plan, without_nodes
from winready.engine.planning import checked_features, look_at, plan_run
from winready.engine.rights import RightsMissing, granting
from winready.engine.rules import judge_rules
from winready.engine.rules.judge import CLUSTER_SIZE, WINDOWS_BUILDS
from winready.engine.selection import select
from winready.engine.terms import SMALL_CLUSTER
from winready.engine.verdict import EXIT_BLOCKED, EXIT_FAILED, EXIT_PASS, EXIT_USAGE
from winready.engine.with_upstream.prepare import Prepared, prepare
from winready.spec.model import Requirement, Specification

Level = Literal["ok", "unknown", "warning", "problem"]
SCHEMA = "winready-doctor/1"
LOOK_AT_NODE = "'kubectl describe node {}' tells more"
NAMED = 5
ABSENT = "absent"
"""The subject of what the cluster does not offer."""


class Finding(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One thing that was looked at."""

    level: Level
    """A problem keeps a run from passing whatever it finds, or from starting; a warning may."""
    subject: str
    """connection, credentials, kubeconfig, rights, nodes, size, builds, requirements, absent or images."""
    message: str
    next_step: str = ""
    concerns: list[str] = []
    """Requirements that cannot be judged, or do not apply, because of it."""


class Examined(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that is known of a run before it begins, as ``winready doctor -o json`` prints it."""

    schema: str = SCHEMA
    server: str = ""
    version: str = ""
    exit_code: int
    """0 a run can start and may pass, 1 it would fail by a rule already, 2 wrong input, 3 something that it would have
    to show, or all of it, cannot be judged."""
    runs: int = 0
    """How many requirements a run would verify."""
    blocked: list[str] = []
    """What a run would have to show and cannot."""
    findings: list[Finding]


@dataclass(frozen=True)
class Seen:
    """A cluster as a run would find it, and what is to be said about that."""

    inventory: Inventory
    plan: Plan
    prepared: Prepared | None
    findings: list[Finding]
    exit_code: int

    @property
    def remarkable(self) -> list[Finding]:
        """What should be told before anything is started."""
        return [finding for finding in self.findings if finding.level in ("problem", "warning")]

    def told(self) -> Examined:
        """The same as a document."""
        return Examined(
            server=self.inventory.server,
            version=self.inventory.version,
            exit_code=self.exit_code,
            runs=sum(item.action == "run" for item in self.plan.requirements),
            blocked=_unshown(self.plan),
            findings=self.findings,
        )


async def look(client: Client, specification: Specification, options: Options) -> Seen:
    """Look at a cluster for a run with these options; raises `ClusterError` when there is none to look at."""
    requirements = select(specification, options.selection)
    client.transport.patience = OUTAGE_SECONDS
    inventory = await look_at(client, requirements, options)
    prepared = await prepare(client, options.upstream, inventory) if options.upstream else None
    plan = plan_run(specification, requirements, inventory, options, prepared)
    rules = _known_rules(specification, inventory, plan, options)
    findings = [
        _answers(inventory),
        *_rights(inventory, requirements, options),
        *_nodes(inventory, plan),
        *_rules(inventory, rules),
        *_blocked(plan),
    ]
    return Seen(inventory, plan, prepared, findings, _exit_code(findings, rules, plan))


def trouble(error: ClusterError) -> Examined:
    """What is to be said where there is no cluster to look at, by the kind of trouble."""
    subject = "cluster"
    if isinstance(error, ConfigError):
        subject = "kubeconfig"
    elif isinstance(error, (ConnectionFailed, DeadlineExceeded)):
        subject = "connection"
    elif isinstance(error, Unauthorized) or ANONYMOUS in error.message:
        subject = "credentials"
    elif isinstance(error, (Forbidden, RightsMissing)):
        subject = "rights"
    finding = Finding(level="problem", subject=subject, message=error.message, next_step=error.remedy)
    return Examined(exit_code=exit_code_of(error), findings=[finding])


def exit_code_of(error: ClusterError) -> int:
    """The exit code of every command that cannot ask the cluster: wrong input where the way is described wrongly."""
    return EXIT_USAGE if isinstance(error, ConfigError) else EXIT_BLOCKED


async def images(client: Client, plan: Plan, settings: Settings) -> list[Finding]:
    """Where the images of a run are already; whether they can be pulled only a pod can tell."""
    there: dict[str, set[str]] = {}
    for raw in await client.list(NODES):
        for image in (raw.get("status") or {}).get("images") or []:
            for name in image.get("names") or []:
                there.setdefault(name, set()).add(raw["metadata"]["name"])
    # Pods are placed where the plan says, and take an image that is there already.
    nodes = [*plan.windows_nodes, *plan.linux_nodes]
    wanted = [settings.image(image) for image in (AGNHOST, PAUSE)]
    lacking: dict[tuple[str, ...], list[str]] = {}
    for image in wanted:
        lacking.setdefault(tuple(name for name in nodes if name not in there.get(image, ())), []).append(image)
    found = []
    for where, names in lacking.items() if nodes else ():
        what = f"{' and '.join(names)} {'are' if len(names) > 1 else 'is'}"
        if not where:
            found.append(Finding(level="ok", subject="images", message=f"{what} on every node of the run"))
            continue
        they, them = ("they", "them") if len(names) > 1 else ("it", "it")
        message = (
            f"{what} not known to be on {_some(where)}; whether {they} can be pulled is not known before the first pod"
        )
        slow = any(name in plan.windows_nodes for name in where)
        step = f"the first pods pull {them}{', which takes minutes on Windows' if slow else ''}"
        if not settings.image_registry:
            step += "; '--image-registry R' takes images from a registry of yours"
        found.append(Finding(level="unknown", subject="images", message=message, next_step=step))
    return found


def _answers(inventory: Inventory) -> Finding:
    simulated = ", a simulated cluster (sandbox)" if inventory.simulated else ""
    message = f"Kubernetes {inventory.version} at {inventory.server} answers and takes the credentials{simulated}"
    return Finding(level="ok", subject="connection", message=message)


def _rights(inventory: Inventory, requirements: Sequence[Requirement], options: Options) -> Iterator[Finding]:
    if not inventory.denied:
        yield Finding(level="ok", subject="rights", message="every right that the run uses is granted")
        return
    native = [item.id for item in requirements] if options.engine != "upstream" else []
    needed = rights_needed([*native, *checked_features(options)], options.settings)
    vital = [str(right) for right in needed.everywhere if str(right) in inventory.denied]
    step = granting(options)
    if vital:
        message = f"rights are missing that no run can do without: {', '.join(vital)}"
        yield Finding(level="problem", subject="rights", message=message, next_step=step)
    other = [right for right in inventory.denied if right not in vital]
    if not other:
        return
    met = [name for name, rights in needed.of_checks.items() if any(str(right) in other for right in rights)]
    message = f"rights are missing: {_some(other)}"
    if not met:
        message += "; without them a run knows less of what stands in its way"
    yield Finding(level="warning", subject="rights", message=message, next_step=step, concerns=sorted(met))


def _nodes(inventory: Inventory, plan: Plan) -> Iterator[Finding]:
    """Nodes that a run would use, and what keeps others from being used."""
    for os, used in (("Windows", plan.windows_nodes), ("Linux", plan.linux_nodes)):
        every = [node for node in inventory.nodes if node.os == os.lower()]
        if not every:
            yield Finding(level="problem", subject="nodes", message=without_nodes(os), next_step=NO_NODES_STEP[os])
            continue
        unwell = [node for node in every if node.unusable]
        level: Level = "warning" if used else "problem"
        if not used and not unwell:
            message = f"no {os} node is chosen: {every[0].left_out}"
            yield Finding(level="problem", subject="nodes", message=message, next_step="choose others")
        for why, names in _by_reason(unwell):
            message = f"{os} node{'s' if len(names) > 1 else ''} {_some(names)} cannot be used: {why}"
            yield Finding(level=level, subject="nodes", message=message, next_step=LOOK_AT_NODE.format(names[0]))
        if used:
            many = "nodes" if len(used) > 1 else "node"
            words = "to judge" if os == "Windows" else "beside them" if plan.windows_nodes else "in the cluster"
            yield Finding(level="ok", subject="nodes", message=f"{len(used)} {os} {many} {words}: {_some(used)}")


def _by_reason(nodes: Sequence[Node]) -> list[tuple[str, list[str]]]:
    found: dict[str, list[str]] = {}
    for node in nodes:
        found.setdefault(node.unusable, []).append(node.name)
    return list(found.items())


def _known_rules(
    specification: Specification, inventory: Inventory, plan: Plan, options: Options
) -> dict[str, RuleResult]:
    """The rules that a cluster passes or fails by what it is, before anything runs on it; none without a verdict."""
    if not plan.requirements:
        return {}
    facts = Facts(
        terms=options.terms, inventory=inventory, judged_nodes=plan.windows_nodes, left_out=plan.nodes_left_out
    )
    judged = judge_rules(specification, facts, [])
    return {rule.id: rule for rule in judged if rule.id in (CLUSTER_SIZE, WINDOWS_BUILDS)}


def _rules(inventory: Inventory, rules: dict[str, RuleResult]) -> Iterator[Finding]:
    size = rules.get(CLUSTER_SIZE)
    if size is not None and {node.os for node in inventory.nodes} >= {"linux", "windows"}:
        # Without any node of a system that alone is to be said.
        yield _rule("size", size, f"add nodes, or add {SMALL_CLUSTER} to judge it all the same")
    builds = rules.get(WINDOWS_BUILDS)
    if builds is not None and builds.outcome != "blocked":
        yield _rule("builds", builds, "")


def _rule(subject: str, rule: RuleResult, step: str) -> Finding:
    if rule.outcome == "passed":
        return Finding(level="ok", subject=subject, message=rule.reason)
    if rule.waived_by:
        return Finding(level="ok", subject=subject, message=f"{rule.reason}; waived by {rule.waived_by}")
    message = f"{rule.id} will fail: {rule.reason}"
    return Finding(level="problem", subject=subject, message=message, next_step=step)


def _blocked(plan: Plan) -> Iterator[Finding]:
    """What the plan cannot have judged, by its reason; what nodes and rights explain is told with them."""
    told = {without_nodes("Windows"), without_nodes("Linux")}
    causes: dict[tuple[str, str], list[str]] = {}
    for item in plan.requirements:
        if item.action == "blocked" and item.reason not in told and not item.reason.startswith("rights are missing"):
            causes.setdefault((item.reason, item.next_step), []).append(item.id)
    for (reason, step), names in causes.items():
        yield Finding(
            level="warning",
            subject="requirements",
            message=f"{_named(names)} cannot be judged: {reason}",
            next_step=step,
            concerns=names if len(names) > 1 else [],
        )
    absent: dict[str, list[str]] = {}
    for item in plan.requirements:
        if item.action == "not-applicable":
            absent.setdefault(item.reason, []).append(item.id)
    for reason, names in absent.items():
        message = f"{_named(names)} {'do' if len(names) > 1 else 'does'} not apply here: {reason}"
        yield Finding(level="ok", subject=ABSENT, message=message, concerns=names if len(names) > 1 else [])
    running = sum(item.action == "run" for item in plan.requirements)
    if running:
        many = f"{running} of {len(plan.requirements)} selected requirements can be verified"
        yield Finding(level="ok", subject="requirements", message=many)


def _exit_code(findings: Sequence[Finding], rules: dict[str, RuleResult], plan: Plan) -> int:
    if any(rule.outcome == "failed" and not rule.waived_by for rule in rules.values()):
        return EXIT_FAILED
    runs = any(item.action == "run" for item in plan.requirements) or bool(plan.features)
    sound = all(finding.level != "problem" for finding in findings)
    return EXIT_PASS if runs and sound and not _unshown(plan) else EXIT_BLOCKED


def _unshown(plan: Plan) -> list[str]:
    """What keeps any run of this plan from passing; what is advisory does not."""
    return [item.id for item in plan.requirements if item.action == "blocked" and item.level != "advisory"]


def _named(names: Sequence[str]) -> str:
    return f"{len(names)} requirements" if len(names) > 1 else names[0]


def _some(names: Sequence[str]) -> str:
    more = [f"{len(names) - NAMED} more"] if len(names) > NAMED else []
    return ", ".join([*names[:NAMED], *more])
