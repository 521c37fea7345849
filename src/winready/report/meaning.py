"""What a run means and what it does not, for those who read only that: sums by category, and sentences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from winready.engine.terms import SMALL_CLUSTER
from winready.report.folding import ranges
from winready.report.record import Record
from winready.spec.loader import load_standard

INTERRUPTED = "Interrupted, no verdict"


@dataclass(frozen=True)
class Sum:
    """What became of a category."""

    name: str
    title: str
    counts: Mapping[str, int]
    """How many of what was selected have each outcome."""
    selected: int
    total: int
    """How many the standard has."""

    @property
    def passed(self) -> int:
        """How many passed."""
        return self.counts.get("passed", 0)

    @property
    def outcome(self) -> str:
        """The worst of it."""
        worst = ("failed", "error", "blocked", "passed")
        return next((name for name in worst if self.counts.get(name)), "not-applicable")

    @property
    def text(self) -> str:
        """``11 of 13 selected passed, of 24 in the standard``; short where all are selected."""
        if not self.selected:
            return f"none of {self.total} selected"
        if self.selected == self.total:
            return f"{self.passed} of {self.total} passed"
        return f"{self.passed} of {self.selected} selected passed; the standard has {self.total}"


@dataclass(frozen=True)
class Meaning:
    """For those who read only the top."""

    does: list[str]
    does_not: list[str]


def has_verdict(run: Record) -> bool:
    """Whether it came to one; earlier versions called an interruption a Fail."""
    return run.verdict is not None and not run.interrupted


def headline(run: Record) -> str:
    """The verdict as people read it; a run that was interrupted has none."""
    return run.verdict_text if has_verdict(run) else INTERRUPTED


def sums(run: Record) -> list[Sum]:
    """Every category of which anything was selected, in the order of the standard, with what was not selected of it."""
    standard = load_standard()
    same = run.spec.get("digest") == standard.digest
    titles = {item.name: item.title for item in standard.document.categories}
    known = Counter(item.category for item in standard.requirements)
    found: dict[str, Counter[str]] = {}
    for item in run.requirements:
        found.setdefault(item.category, Counter())[item.outcome] += 1
    order = [*(name for name in titles if name in found), *(name for name in found if name not in titles)]
    return [
        Sum(
            name=name,
            title=titles.get(name, ""),
            counts=found[name],
            selected=found[name].total(),
            total=known[name] if same else found[name].total(),
        )
        for name in order
    ]


def core(run: Record) -> Sum:
    """The core requirements; another text of the standard may have another number of them."""
    standard = load_standard()
    selected = [item for item in run.requirements if item.level == "core"]
    known = sum(standard.level(item) == "core" for item in standard.requirements)
    same = run.spec.get("digest") == standard.digest
    counts: Counter[str] = Counter(item.outcome for item in selected)
    return Sum("core", "", counts, len(selected), known if same else len(selected))


def builds(run: Record) -> list[str]:
    """The Windows builds that were judged, or that there are where nothing was, with how many nodes have each."""
    judged = set(run.coverage.judged)
    nodes = [node for node in run.cluster.nodes if node.windows] if run.cluster else []
    counted = Counter(node.build for node in nodes if not judged or node.name in judged)
    return [
        f"{build or 'of unknown build'} on {number} {'node' if number == 1 else 'nodes'}"
        for build, number in sorted(counted.items())
    ]


def explain(run: Record) -> Meaning:
    """What the verdict says, and what nobody should take it for."""
    return Meaning(_does(run), _does_not(run))


def _does(run: Record) -> list[str]:
    counts = Counter(item.outcome for item in run.requirements)
    judged = run.coverage.judged
    where = f"on {_count(len(judged), 'Windows node')}" if judged else "on any Windows node"
    if not has_verdict(run):
        number, total = counts["passed"] + counts["failed"], len(run.selected) or len(run.requirements)
        return [f"The run was ended before all was judged: {number} of {_count(total, 'requirement')} have an outcome."]
    if run.verdict == "Pass":
        return _passes(run, where)
    broken = any(rule.gates == "run" and rule.outcome == "failed" and not rule.waived_by for rule in run.rules)
    if broken and counts["passed"] + counts["not-applicable"] == len(run.requirements):
        return [
            "Every selected requirement passed, but a rule of the run does not hold: as a whole they show too little."
        ]
    whole = "Not all" if counts["passed"] else "Nothing"
    lines = [f"{whole} that Windows workloads rely on was shown {where}."]
    if counts["failed"]:
        lines.append(f"{_count(counts['failed'], 'requirement')} failed: the cluster showed that it does not do this.")
    if broken:
        lines.append("A rule of the run does not hold, so that its outcomes as a whole show too little.")
    if unjudged := counts["blocked"] + counts["error"]:
        lines.append(f"{_count(unjudged, 'requirement')} could not be judged: nothing is known either way.")
    return lines


def _passes(run: Record, where: str) -> list[str]:
    part = core(run)
    beyond = [item for item in run.requirements if item.level != "core"]
    lines = []
    if part.selected:
        number = f"All {part.total}" if part.passed == part.total else f"{part.passed} of {part.total}"
        version = run.spec.get("version", "?")
        lines.append(f"{number} core requirements of version {version} of the standard were shown {where}.")
    if absent := part.counts.get("not-applicable"):
        lines.append(f"{_count(absent, 'core requirement')} did not apply here.")
    if beyond:
        shown = sum(item.outcome == "passed" for item in beyond)
        lines.append(f"Beyond core, {shown} of {_count(len(beyond), 'selected requirement')} were shown.")
    return [*lines, "Each of them rests on what Windows containers answered."]


def _does_not(run: Record) -> list[str]:
    lines: list[str] = []
    if run.simulated:
        lines.append("It says nothing about a real cluster: this one was simulated (sandbox).")
    if not run.simulated and (scale := run.time_scale) != 1:
        lines.append(f"It says nothing about real waits: each was divided by a time scale of {scale:g}.")
    standard = load_standard()
    if run.spec and run.spec.get("digest") != standard.digest:
        lines.append("It says nothing about the published standard: a modified specification was followed.")
    if missing := core(run).total - core(run).selected:
        lines.append(f"It says nothing about {_count(missing, 'core requirement')} outside the selection.")
    if run.not_judged:
        total = len(run.not_judged) + len(run.coverage.judged)
        nodes = ranges(run.not_judged, 3)
        lines.append(f"It says nothing about {len(run.not_judged)} of {total} Windows nodes, not judged: {nodes}.")
    for rule in run.rules:
        if rule.waived_by:
            what = "a cluster of the usual size" if rule.waived_by == SMALL_CLUSTER else rule.id
            lines.append(f"It does not hold for {what}: {rule.id} was waived by {rule.waived_by}.")
        elif rule.gates == "certificate" and rule.outcome != "passed":
            why = rule.reason.removeprefix("absent: ")
            lines.append(f"It does not show Linux conformance, which only a certificate needs: {why}.")
    if (
        has_verdict(run)
        and run.verdict == "Fail"
        and (passed := sum(item.outcome == "passed" for item in run.requirements))
    ):
        lines.append(
            f"It does not say that nothing works: {passed} of {len(run.requirements)} selected requirements passed."
        )
    if not run.workloads:
        lines.append("It does not show that your own workloads run: 'winready run --for MANIFESTS' answers that.")
    lines.append(f"It promises nothing for later: it is what was seen on {run.started[:10] or 'that day'}.")
    return lines


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}{'' if number == 1 else 's'}"
