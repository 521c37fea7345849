"""The fleet for Prometheus. Names of clusters are few and bounded, and requirements are those of the standard."""

from __future__ import annotations

from collections.abc import Iterator
from typing import get_args

from aiohttp import web

from winready.engine.outcomes import Outcome
from winready.report.dashboard.site import Site
from winready.report.exposition import CONTENT_TYPE, metric
from winready.report.fleet import clusters, requirements
from winready.report.fleet.filters import Filter
from winready.report.fleet.model import ClusterState, State, state_of
from winready.report.history import History

MOST = 500
"""Clusters with samples of their own: those that were looked at last. The others are counted."""
STATES: tuple[State, ...] = get_args(State)


class Metrics:
    """Answers ``/metrics``."""

    def __init__(self, site: Site) -> None:
        self.site = site

    async def metrics(self, request: web.Request) -> web.Response:
        """All of it, as it is now."""
        text = await self.site.ask(lambda index: "".join(f"{line}\n" for line in self._lines(index)))
        return web.Response(body=text.encode(), headers={"Content-Type": CONTENT_TYPE})

    def _lines(self, index: History) -> Iterator[str]:
        runs, _ = clusters.sizes(index)
        found = clusters.newest(index, Filter(), "age")
        done, total = self.site.looking.progress or (0, 0)
        states = [state_of(each.entry) for each in found]
        yield from metric("winready_fleet_runs", "Finished runs in the report folder.", [({}, runs)])
        yield from metric(
            "winready_fleet_clusters", "Clusters by the state of their newest run.",
            [({"state": state}, states.count(state)) for state in STATES],
        )  # fmt: skip
        left_out = max(0, len(found) - MOST)
        yield from metric(
            "winready_fleet_clusters_left_out", "Clusters without samples of their own.", [({}, left_out)]
        )
        yield from metric("winready_fleet_runs_damaged", "Runs that cannot be read.", [({}, len(index.damaged()))])
        yield from metric("winready_fleet_runs_pending", "New runs that are not taken in yet.", [({}, total - done)])
        shown = list(clusters.states(index, found[:MOST], self.site.now()))
        yield from _clusters(shown, [each.entry.at for each in found[:MOST]])
        standard = requirements.known()
        yield from metric(
            "winready_fleet_requirement_clusters", "Clusters by their current outcome of a requirement.",
            [
                ({"requirement": item.requirement, "category": item.category, "level": item.level, "outcome": outcome},
                 item.counts.get(outcome, 0))
                for item in requirements.sums(index, Filter()) if item.requirement in standard
                for outcome in get_args(Outcome)
            ],
        )  # fmt: skip


def _clusters(found: list[ClusterState], began: list[float]) -> Iterator[str]:
    """Of each cluster its newest run, under names that do not change with it."""
    labels = [{"cluster": state.cluster, "server": state.label} for state in found]
    known = list(zip(labels, found, strict=True))
    yield from metric(
        "winready_cluster_info", "The newest run of a cluster and what it is about; always 1.",
        [
            ({**label, "run": state.newest.run_id, "tool": state.newest.tool, "kubernetes": state.newest.kubernetes,
              "windows": ", ".join(state.newest.windows), "simulated": str(state.newest.simulated).lower()}, 1)
            for label, state in known
        ],
    )  # fmt: skip
    yield from metric(
        "winready_cluster_verdict", "The newest run: 1 Pass, 0 Fail; absent when it was interrupted.",
        [
            ({**label, "scope": state.newest.scope}, int(state.state == "pass"))
            for label, state in known if state.state != "none"
        ],
    )  # fmt: skip
    yield from metric(
        "winready_cluster_last_run_start_time_seconds", "When the newest run of a cluster began.",
        [(label, at) for (label, _), at in zip(known, began, strict=True)],
    )  # fmt: skip
    yield from metric(
        "winready_cluster_last_run_duration_seconds", "How long the newest run of a cluster took.",
        [(label, state.newest.duration_s) for label, state in known],
    )  # fmt: skip
    yield from metric(
        "winready_cluster_runs", "Finished runs of a cluster.", [(label, state.runs) for label, state in known]
    )
    yield from metric(
        "winready_cluster_requirements", "Requirements of the newest run by outcome.",
        [
            ({**label, "outcome": outcome}, state.counts.get(outcome, 0))
            for label, state in known for outcome in get_args(Outcome)
        ],
    )  # fmt: skip
