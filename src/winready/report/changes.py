"""What changed from run to run of a cluster, and which requirements cannot make up their mind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TypeVar

import msgspec

from winready.report import words
from winready.report.comparing import RANKS, rank, unjudged
from winready.report.history import Entry, FeatureSeen, History, Outcome, RuleSeen, WorkloadSeen, counts

Seen = FeatureSeen | WorkloadSeen
J = TypeVar("J", Outcome, FeatureSeen, WorkloadSeen, Seen)

FLAKY_RUNS, FLAKY_TURNS = 10, 2
"""Flaky: among the last ten runs of a cluster, passed turned into failed or back at least twice."""


class Advisory(msgspec.Struct, frozen=True, kw_only=True):
    """What a run tells beside the requirements, and what changed of it since the run before that told of it."""

    counts: str
    better: list[str]
    worse: list[str]


class RunLine(msgspec.Struct, frozen=True, kw_only=True):
    """A run and what it changed."""

    folder: str
    """What it is called on the command line; the same as its id unless it was copied."""
    run_id: str
    started: str
    verdict: str | None
    verdict_text: str
    exit_code: int
    version: str
    tool: str
    counts: str
    rules: list[str] = []
    """Rules of the run that do not hold, and are not waived."""
    better: list[str]
    worse: list[str]
    features: Advisory | None = None
    """None for a run that was to show none; better is what works now and did not."""
    workloads: Advisory | None = None


class ClusterRuns(msgspec.Struct, frozen=True, kw_only=True):
    """The runs of one cluster, newest first."""

    cluster: str
    label: str
    flaky: list[str]
    runs: list[RunLine]
    simulated: bool = False


def by_cluster(index: History, wanted: str | None, limit: int) -> list[ClusterRuns]:
    """Runs grouped by cluster, the one with the newest run first."""
    groups: dict[str, list[Entry]] = {}
    for entry in index.runs(limit=100_000):
        groups.setdefault(entry.cluster, []).append(entry)
    found = []
    for cluster, entries in groups.items():
        if wanted and not any(wanted.casefold() in text.casefold() for text in (cluster, entries[0].label)):
            continue
        recent = entries[: max(limit + 1, FLAKY_RUNS)]
        results, features, workloads = index.results(recent), index.features(recent), index.workloads(recent)
        rules = index.rules(recent)
        lines = []
        for number, entry in enumerate(entries[:limit]):
            line = _line(entry, results, _before(entries[number + 1 :], results))
            line = msgspec.structs.replace(line, rules=_broken(rules.get(entry.folder, {})))
            if shown := features.get(entry.folder):
                told = _advisory(words.features_text(shown.values()), recent[number:], features)
                line = msgspec.structs.replace(line, features=told)
            if asked := workloads.get(entry.folder):
                text = words.workloads_text(item.outcome for item in asked.values())
                line = msgspec.structs.replace(line, workloads=_advisory(text, recent[number:], workloads))
            lines.append(line)
        newest = [results[entry.folder] for entry in entries[:FLAKY_RUNS]]
        found.append(
            ClusterRuns(
                cluster=cluster,
                label=entries[0].label,
                flaky=flaky(newest),
                runs=lines,
                simulated=bool(entries[0].simulated),
            )
        )
    return found


def _before(earlier: Sequence[Entry], results: Mapping[str, dict[str, Outcome]]) -> dict[str, Outcome]:
    """What a run is compared with: the run before it; one that was interrupted leaves to the one before what it left.

    As far back as results are at hand: a cluster whose runs are always interrupted has nothing to compare with.
    """
    found: dict[str, Outcome] = {}
    for entry in earlier:
        if entry.folder not in results:
            break
        found = _judged(entry, results) | found
        if not entry.interrupted:
            break
    return found


def _broken(rules: Mapping[str, RuleSeen]) -> list[str]:
    """Only what failed: what could not be judged has a cause among the requirements."""
    return [
        name for name, rule in rules.items() if rule.gates == "run" and rule.outcome == "failed" and not rule.waived
    ]


def _advisory(text: str, runs: Sequence[Entry], seen: Mapping[str, Mapping[str, Seen]]) -> Advisory:
    """The first of these runs against the next that tells of the same."""
    now = _judged(runs[0], seen)
    before = next((_judged(run, seen) for run in runs[1:] if run.folder in seen), {})
    both = {name: _rank(item) - _rank(before[name]) for name, item in now.items() if name in before}
    return Advisory(
        counts=text,
        better=[name for name, change in both.items() if change > 0],
        worse=[name for name, change in both.items() if change < 0],
    )


def _judged(run: Entry, seen: Mapping[str, Mapping[str, J]]) -> dict[str, J]:
    """What a run found out, without what it was kept from by an interruption."""
    told = seen[run.folder].items()
    return {name: item for name, item in told if not unjudged(item.outcome, interrupted=run.interrupted)}


def _rank(item: Seen) -> int:
    return rank(item.outcome, item.works if isinstance(item, FeatureSeen) else None)


def _line(entry: Entry, results: Mapping[str, dict[str, Outcome]], before: dict[str, Outcome]) -> RunLine:
    now = _judged(entry, results)
    both = {name: RANKS[item.outcome] - RANKS[before[name].outcome] for name, item in now.items() if name in before}
    return RunLine(
        folder=entry.folder,
        run_id=entry.run_id,
        started=entry.started,
        verdict=entry.verdict,
        verdict_text=entry.verdict_text,
        exit_code=entry.exit_code,
        version=entry.version,
        tool=entry.tool,
        counts=_counts(now, len(results[entry.folder]) - len(now)),
        better=[name for name, change in both.items() if change > 0],
        worse=[name for name, change in both.items() if change < 0],
    )


def _counts(judged: dict[str, Outcome], left: int) -> str:
    return counts(judged) if not left else f"{counts(judged) if judged else '0 passed'}, {left} not judged"


def flaky(runs: Sequence[dict[str, Outcome]]) -> list[str]:
    """Requirements that passed, failed and passed again (or the other way round) within these runs."""
    names = dict.fromkeys(name for run in runs for name in run)
    result = []
    for name in names:
        story = [run[name].outcome for run in runs if name in run and run[name].outcome in ("passed", "failed")]
        turns = sum(one != other for one, other in pairwise(story))
        if turns >= FLAKY_TURNS:
            result.append(name)
    return result
