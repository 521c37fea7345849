"""What a page shows of a run in progress: everything so far, then each event as it is written."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

from winready.cluster.inventory import is_simulated
from winready.engine import events
from winready.report.tailing import tail
from winready.report.words import workload_reason


async def follow(
    folder: Path, offset: int = 0, watched: Callable[[], bool] = lambda: True
) -> AsyncIterator[tuple[int, dict[str, Any]]]:
    """What a page shows of each event from a byte offset on; the last says when the run was cut off."""
    async for position, event in tail(folder, offset, watched):
        yield position, told(event) if event is not None else {"event": "cut-off"}


def told(event: events.AnyEvent) -> dict[str, Any]:
    """What the page shows of an event; evidence stays in the journal."""
    match event:
        case events.RunStarted():
            scale = event.settings.get("time_scale", 1)
            return {"event": "started", "run": event.run_id, "time": event.time, "tool": event.tool, "scale": scale}
        case events.InventoryTaken():
            nodes = [{"name": node.name, "os": node.os, "build": node.build} for node in event.inventory.nodes]
            return {
                "event": "cluster",
                "version": event.inventory.version,
                "nodes": nodes,
                "simulated": is_simulated(event.inventory),
                "at": event.at_s,
            }
        case events.PlanMade():
            return {
                "event": "plan",
                "requirements": [{"id": item.id, "action": item.action} for item in event.plan.requirements],
                "fixtures": list(event.plan.fixtures),
                "expected": event.plan.expected_s,
                "at": event.at_s,
            }
        case events.FixtureReady() | events.FixtureFailed():
            reason = event.reason if isinstance(event, events.FixtureFailed) else ""
            return {"event": "fixture", "name": event.name, "reason": reason, "at": event.at_s}
        case events.RequirementStarted():
            return {"event": "running", "id": event.id, "at": event.at_s}
        case events.UpstreamProgress():
            return {"event": "upstream", "text": event.text, "state": event.state, "at": event.at_s}
        case events.PodsSeen():
            return {"event": "seen", "at": event.at_s}
        case events.WorkloadsRead():
            return {"event": "workloads", "names": [each.title for each in event.workloads], "at": event.at_s}
        case events.WorkloadTried():
            step = event.step
            return {"event": "tried", "name": event.name, "node": step.node, "reached": step.reached, "at": event.at_s}
        case events.WorkloadJudged():
            judged = event.result
            return {
                "event": "workload",
                "name": judged.title,
                "ready": judged.ready,
                "outcome": judged.outcome,
                "reason": "" if judged.ready else workload_reason(judged),
                "at": event.at_s,
            }
        case events.Crashed():
            return {"event": "crashed", "error": event.error, "at": event.at_s}
        case events.CheckFinished():
            return {"event": "checked", "id": event.result.id, "outcome": event.result.outcome, "at": event.at_s}
        case events.RequirementFinished():
            result = event.result
            return {
                "event": "finished",
                "id": result.id,
                "outcome": result.outcome,
                "reason": result.reason,
                "next": result.next_step,
                "seconds": result.duration_s,
                "at": event.at_s,
            }
        case events.FeatureFinished():
            feature = event.result
            told_of = {"id": feature.id, "outcome": feature.outcome, "reason": feature.reason, "way": feature.way}
            return {"event": "feature", **told_of, "odd": bool(feature.contradiction), "at": event.at_s}
        case events.RuleJudged():
            rule = event.result
            return {"event": "rule", "id": rule.id, "outcome": rule.outcome, "reason": rule.reason, "at": event.at_s}
        case events.CleanedUp():
            return {"event": "cleaned", "leftovers": event.leftovers, "at": event.at_s}
        case events.RunFinished():
            return {"event": "verdict", "verdict": event.verdict.verdict, "text": str(event.verdict), "at": event.at_s}
