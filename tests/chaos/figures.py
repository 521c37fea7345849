"""What many runs under trouble come to, as figures; whatever was wrong with one of them stands among the troubles."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from chaos.crashes import Crashed
from chaos.kills import Killed
from chaos.kinds import KINDS
from chaos.nodes import Gone

Figures = dict[str, Any]


def weather_figures(results: Iterable[Figures]) -> Figures:
    """What storms did."""
    runs = list(results)
    return {
        "runs": len(runs),
        "kinds": len(KINDS),
        "requests": sum(run["requests"] for run in runs),
        "requests_struck": sum(run["met"] for run in runs),
        "verdict_changed": sum(run["changed"] for run in runs),
        "outcomes_changed": sum(len(run["wrong"]) for run in runs),
        "left_behind": sum(len(run["left"]) for run in runs),
        "troubles": [run for run in runs if run["changed"] or run["wrong"] or run["left"]],
    }


def crash_figures(results: Iterable[tuple[int, Crashed]]) -> Figures:
    """What was lost and left."""
    runs = list(results)
    bad = [each for each in runs if each[1].lost or each[1].cleaned or each[1].remains or each[1].verdict != "Pass"]
    return {
        "runs": len(runs),
        "finished_before": sum(one.finished for _, one in runs),
        "results_lost": sum(len(one.lost) for _, one in runs),
        "left_by_the_kill": sum(one.left_by_kill for _, one in runs),
        "left_after_cleanup": sum(len(one.remains) + len(one.cleaned) for _, one in runs),
        "verdict_changed": sum(one.verdict != "Pass" for _, one in runs),
        "troubles": [
            {"number": n, "lost": one.lost, "left": one.remains[:5], "verdict": one.verdict} for n, one in bad
        ],
    }


def kill_figures(runs: Sequence[Killed]) -> Figures:
    """The same of processes that were killed for real."""
    bad = [one for one in runs if one.lost or one.remains or one.words or one.verdict != "Pass"]
    return {
        "runs": len(runs),
        "finished_before": sum(one.finished for one in runs),
        "results_lost": sum(len(one.lost) for one in runs),
        "left_after_cleanup": sum(len(one.remains) for one in runs),
        "verdict_changed": sum(one.verdict != "Pass" for one in runs),
        "tracebacks": sum(bool(one.words) for one in runs),
        "troubles": [vars(one) for one in bad],
    }


def node_figures(results: Iterable[Gone]) -> Figures:
    """What nodes took with them that went away."""
    runs = list(results)
    outcomes = [outcome for one in runs for outcome in one.outcomes.values()]
    return {
        "runs": len(runs),
        "ways": len({one.how for one in runs}),
        "finished_before": sum(one.finished for one in runs),
        "results_lost": sum(len(one.lost) for one in runs),
        "not_judged_for_the_node": outcomes.count("blocked"),
        "unfair_outcomes": sum(len(one.unfair) for one in runs),
        "objects_left_while_it_is_away": sum(len(one.objects) for one in runs),
        "left_after_cleanup": sum(len(one.cleaned) + len(one.remains) for one in runs),
        "longest_run_cluster_seconds": round(max((one.seconds for one in runs), default=0)),
        "troubles": [
            {"how": one.how, "gone_at": one.gone_at, "troubles": one.troubles[:5]} for one in runs if one.troubles
        ],
    }


def failed(errors: Sequence[str]) -> list[Figures]:
    """Runs that did not come to an end at all, as troubles."""
    return [{"error": error} for error in errors]
