"""Workloads that somebody wants to know about: what they rely on, and what a run has shown of it.

Pure on purpose, as the verdict is: the same outcomes always say the same about a workload.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

import msgspec

from winready.engine.outcomes import NO_CHECK, NO_TESTS, FeatureResult, Outcome, RequirementResult
from winready.engine.plan import UNNAMED
from winready.engine.verdict import EXIT_BLOCKED, EXIT_FAILED, EXIT_PASS, Verdict


class Need(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Something that a workload relies on: a feature of the matrix or a requirement, and the field that needs it."""

    id: str
    path: str
    """The file, as it was named."""
    line: int
    field: str = ""
    also: list[str] = []
    """Other places that need it, as ``path:line``."""

    @property
    def place(self) -> str:
        """Where to look."""
        return f"{self.path}:{self.line}"


class FieldFinding(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A field that Windows refuses, ignores or takes differently."""

    rule: str
    severity: str
    effect: str
    path: str
    line: int
    reason: str
    fix: str = ""


class Workload(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A workload for Windows as its manifests describe it."""

    kind: str
    namespace: str
    name: str
    path: str
    line: int
    needs: list[Need] = []
    findings: list[FieldFinding] = []

    @property
    def title(self) -> str:
        """What people call it: ``web (Deployment shop/web)``."""
        return title(self.kind, self.namespace, self.name)


class Answer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the cluster has shown of something, whoever showed it."""

    outcome: Outcome
    reason: str
    next_step: str = ""
    by_data: bool = False
    """Nothing that took part can show it, and the documentation says that it is there."""


def answers(requirements: Iterable[RequirementResult], features: Iterable[FeatureResult]) -> dict[str, Answer]:
    """What a run has shown, by id."""
    return {each.id: answer(each) for each in requirements} | {each.id: feature_answer(each) for each in features}


def answer(result: RequirementResult) -> Answer:
    """What a requirement says to whoever relies on it.

    That nobody named a domain, or that what shows it took no part, leaves the question open; that the cluster has no
    such thing answers it.
    """
    return Answer(outcome=_open(result), reason=result.reason, next_step=result.next_step)


def feature_answer(result: FeatureResult) -> Answer:
    """What a feature of the matrix says to whoever relies on it: whether it works, not whether the data is right."""
    unshown = result.way == "data" or (result.way == "upstream" and result.reason == NO_TESTS)
    if unshown and result.support in ("yes", "limited"):
        reason = f"documented as {result.documented}; {result.reason}"
        return Answer(outcome="not-applicable", reason=reason, next_step=result.next_step, by_data=True)
    outcome = _open(result)
    if outcome in ("passed", "failed") and result.works is not None:
        outcome = "passed" if result.works else "failed"
    return Answer(outcome=outcome, reason=result.reason, next_step=result.next_step)


def _open(result: RequirementResult | FeatureResult) -> Outcome:
    undecided = any(words in result.reason for words in (*UNNAMED.values(), NO_CHECK))
    return "blocked" if undecided and result.outcome == "not-applicable" else result.outcome


class FeatureUse(msgspec.Struct, frozen=True, kw_only=True):
    """Something that a workload relies on, and what came of it."""

    id: str
    outcome: Outcome
    reason: str
    path: str
    line: int
    field: str = ""
    also: list[str] = []
    nodes: list[str] = []
    """The nodes that the reason names, when it was not shown."""
    next_step: str = ""
    by_data: bool = False
    """Nothing that took part can show it, and the documentation says that it is there: no obstacle."""


class Step(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How far a workload's own pod came on a node."""

    node: str
    reached: str
    """``nothing``, ``accepted``, ``scheduled``, ``pulled``, ``started`` or ``ready``."""
    outcome: Outcome
    reason: str
    differs: list[str] = []
    """How the pod differed from those that the workload would have."""
    seconds: float = 0.0


class WorkloadResult(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a workload will find what it relies on."""

    kind: str
    namespace: str
    name: str
    path: str
    line: int
    ready: bool
    outcome: Outcome
    """Why not ready: ``failed`` when something it relies on does not work, ``blocked`` when that cannot be told."""
    features: list[FeatureUse]
    findings: list[FieldFinding] = []
    tried: list[Step] = []

    @property
    def title(self) -> str:
        """What people call it."""
        return title(self.kind, self.namespace, self.name)

    @property
    def shown(self) -> int:
        """How many of the features it uses were shown."""
        return sum(use.outcome == "passed" for use in self.features)


def key(workload: Workload | WorkloadResult) -> tuple[str, ...]:
    """What tells one workload from another, in several files as well."""
    return workload.path, workload.kind, workload.namespace, workload.name


def title(kind: str, namespace: str, name: str) -> str:
    """``web (Deployment shop/web)``."""
    return f"{name} ({kind} {namespace}/{name})" if namespace else f"{name} ({kind} {name})"


def labelled(workloads: Sequence[WorkloadResult]) -> dict[str, WorkloadResult]:
    """Workloads by what people call them, the same from run to run; with the file where one run has two of a name."""
    titles = Counter(each.title for each in workloads)
    return {each.title if titles[each.title] == 1 else f"{each.title} in {each.path}": each for each in workloads}


def judge_workload(
    workload: Workload, answers: Mapping[str, Answer], nodes: Collection[str], tried: Sequence[Step] = ()
) -> WorkloadResult:
    """What the answers of a run say about one workload; what has no answer was not verified."""
    uses = [_use(need, answers.get(need.id), nodes) for need in workload.needs]
    outcomes = [use.outcome for use in uses if not use.by_data] + [step.outcome for step in tried]
    outcomes += ["failed" for finding in workload.findings if finding.severity == "error"]
    return WorkloadResult(
        kind=workload.kind,
        namespace=workload.namespace,
        name=workload.name,
        path=workload.path,
        line=workload.line,
        ready=(worst := _worst(outcomes)) == "passed",
        outcome=worst,
        features=uses,
        findings=workload.findings,
        tried=sorted(tried, key=lambda step: step.node),
    )


def _use(need: Need, answer: Answer | None, nodes: Collection[str]) -> FeatureUse:
    if answer is None:
        answer = Answer(outcome="blocked", reason="this run left it out, so it was not verified")
    text = f"{answer.reason} {answer.next_step}"
    return FeatureUse(
        id=need.id,
        outcome=answer.outcome,
        reason=answer.reason,
        path=need.path,
        line=need.line,
        field=need.field,
        also=need.also,
        nodes=[] if answer.outcome == "passed" else sorted(name for name in nodes if names(text, name)),
        next_step=answer.next_step,
        by_data=answer.by_data,
    )


def names(text: str, node: str) -> bool:
    """Whether a text names a node, and not merely one whose name begins alike."""
    return re.search(rf"(?<![\w.-]){re.escape(node)}(?![\w-])", text) is not None


def _worst(outcomes: Sequence[Outcome]) -> Outcome:
    """A cluster that does not offer what a workload relies on is not ready for it: that is no question left open."""
    if "failed" in outcomes or "not-applicable" in outcomes:
        return "failed"
    return "blocked" if "blocked" in outcomes or "error" in outcomes else "passed"


def exit_with(verdict: Verdict, results: Sequence[WorkloadResult]) -> Verdict:
    """The verdict as it is, and an exit code that tells of workloads which are not ready."""
    outcomes = {result.outcome for result in results}
    code = EXIT_FAILED if "failed" in outcomes else EXIT_BLOCKED if "blocked" in outcomes else EXIT_PASS
    if verdict.exit_code == EXIT_PASS or (verdict.exit_code == EXIT_BLOCKED and code == EXIT_FAILED):
        return msgspec.structs.replace(verdict, exit_code=code or verdict.exit_code)
    return verdict
