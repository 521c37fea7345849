"""What operators read in the conditions of a Cluster: which run, which verdict, what failed first, what to do."""

from __future__ import annotations

from datetime import UTC, datetime

from winready.deploy.capi.facts import Attempt, Ended
from winready.deploy.capi.hooks import DELETE, Call, title
from winready.deploy.capi.terms import AGAIN, POLICY_LABEL, Policy, Terms
from winready.deploy.telling import line

MESSAGE = 1500
"""Bytes; a condition has more, and shows those of other hooks beside it."""
FIRST = 400


def switched_off(call: Call, source: str) -> str:
    """Nothing is asked of this cluster."""
    return line(f"winready: not asked to judge cluster {call.cluster} ({source})", MESSAGE)


def begins(call: Call, source: str, policy: Policy) -> str:
    """A run has just been asked for."""
    return line(f"winready: a run of cluster {call.cluster} begins, {title(call.step)}; {_until(policy, source)}. "
                f"{override(call)}", MESSAGE)  # fmt: skip


def goes_on(call: Call, attempt: Attempt, doing: str, source: str, policy: Policy) -> str:
    """A run is queued or under way."""
    again = f"; attempt {attempt.number}" if attempt.number > 1 else ""
    restarted = "; it was taken up again after winready was restarted" if len(attempt.taken) > 1 else ""
    return line(f"winready: {doing or 'a run is queued'} (cluster {call.cluster}, {title(call.step)}{again})"
                f"{restarted}; {_until(policy, source)}. {override(call)}", MESSAGE)  # fmt: skip


def passed(call: Call, ended: Ended) -> str:
    """The gate is open."""
    return line(f"winready: {ended.words} (run {ended.run_id} of cluster {call.cluster})", MESSAGE)


def warned(call: Call, ended: Ended, source: str) -> str:
    """It goes on although nothing has passed."""
    return line(f"winready: warning: {_result(call, ended)}. It goes on all the same ({source})", MESSAGE)


def failed(call: Call, ended: Ended, due: float, source: str) -> str:
    """It is held, and will be tried again."""
    return line(f"winready: {_result(call, ended)}. Held ({source}); the next run begins at {clock(due)}, or at once "
                f"by: kubectl -n {call.cluster.namespace} annotate cluster {call.cluster.name} --overwrite "
                f"{AGAIN}=\"$(date +%s)\". {override(call)}", MESSAGE)  # fmt: skip


def limit_held(call: Call, ended: Ended, terms: Terms) -> str:
    """Nothing is tried any more unless somebody asks for it."""
    return line(f"winready: {_result(call, ended)}. Held for more than {span(terms.hold_limit)}, so no run begins by "
                f"itself any more; one begins by: kubectl -n {call.cluster.namespace} annotate cluster "
                f"{call.cluster.name} --overwrite {AGAIN}=\"$(date +%s)\". {override(call)}", MESSAGE)  # fmt: skip


def limit_released(call: Call, ended: Ended, terms: Terms) -> str:
    """The operator wants it to go on then."""
    return line(f"winready: warning: {_result(call, ended)}. It goes on all the same, since it was held for "
                f"{span(terms.hold_limit)} (--at-limit release)", MESSAGE)  # fmt: skip


def not_kept(call: Call, trouble: str, policy: Policy) -> str:
    """The place for facts takes none."""
    if policy == "warn":
        return line(f"winready: warning: cluster {call.cluster} was not judged, since winready cannot keep what it "
                    f"does: {trouble}. It goes on all the same (policy warn)", MESSAGE)  # fmt: skip
    return line(f"winready: held, since winready cannot keep what it does: {trouble}. {override(call)}", MESSAGE)


def being_kept(call: Call) -> str:
    """The place for facts takes its time."""
    return line(f"winready: a run of cluster {call.cluster} is being asked for. {override(call)}", MESSAGE)


def queued(call: Call) -> str:
    """Nobody waits for the first run."""
    return line(f"winready: a run of cluster {call.cluster} is queued; it begins when there are Windows nodes", MESSAGE)


def deletion_waits(call: Call, doing: str, until: float) -> str:
    """A run cleans up what it made in a cluster."""
    return line(f"winready: {doing or 'a run'} is being stopped and cleans up in cluster {call.cluster}; "
                f"the deletion goes on at {clock(until)} at the latest", MESSAGE)  # fmt: skip


def override(call: Call) -> str:
    """How to go on without a Pass."""
    if call.hook == DELETE:
        return ""
    return (f"To go on without a Pass: kubectl -n {call.cluster.namespace} label cluster {call.cluster.name} "
            f"--overwrite {POLICY_LABEL}=off")  # fmt: skip


def clock(moment: float) -> str:
    """A time of day, as logs have it."""
    return f"{datetime.fromtimestamp(moment, UTC):%Y-%m-%d %H:%M:%S} UTC"


def span(seconds: float) -> str:
    """So much time, in words."""
    if seconds < 120:
        return f"{max(seconds, 0):.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:g} h"


def _until(policy: Policy, source: str) -> str:
    held = "until a run has passed" if policy == "require-pass" else "until the run has ended"
    return f"held {held} ({source})"


def _result(call: Call, ended: Ended) -> str:
    run = f" (run {ended.run_id})" if ended.run_id else ""
    verdict = f"cluster {call.cluster} did not pass" if ended.verdict else f"cluster {call.cluster} was not judged"
    first = f"; first of all: {line(ended.first, FIRST)}" if ended.first else ""
    return f"{verdict}: {line(ended.words, FIRST)}{run}{first}".rstrip(".")
