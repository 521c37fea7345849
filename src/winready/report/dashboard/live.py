"""A run in progress, from its journal: whoever looks gets everything so far, then each event as it is written."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

from winready.cluster.inventory import is_simulated
from winready.engine import events, journal

POLL_SECONDS = 0.2
MOST = 1 << 20
"""Bytes read at a time: a journal of any size is followed in bounded memory."""


async def follow(
    folder: Path, offset: int = 0, watched: Callable[[], bool] = lambda: True
) -> AsyncIterator[tuple[int, dict[str, Any]]]:
    """Events from a byte offset on, each with the offset after it, until the run has its verdict or nobody watches.

    A half-written line waits for its other half; a line that cannot be read is passed over. When nobody writes any
    more and there is no verdict, the last event says that the run was cut off.
    """
    path = folder / journal.NAME
    rest = b""
    abandoned = False
    while watched():
        try:
            with path.open("rb") as file:
                file.seek(offset + len(rest))
                data = file.read(MOST)
        except OSError:
            return
        if not data:
            if abandoned:
                yield offset, {"event": "cut-off"}
                return
            # Looked at before the pause, believed after it: the last lines may still have been on their way.
            abandoned = not journal.in_progress(folder)
            await asyncio.sleep(POLL_SECONDS)
            continue
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            offset += len(line) + 1
            try:
                event = journal.decode(line)
            except journal.NOT_JSON:
                continue
            yield offset, told(event)
            if isinstance(event, events.RunFinished):
                return


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
        case events.RuleJudged():
            rule = event.result
            return {"event": "rule", "id": rule.id, "outcome": rule.outcome, "reason": rule.reason, "at": event.at_s}
        case events.CleanedUp():
            return {"event": "cleaned", "leftovers": event.leftovers, "at": event.at_s}
        case events.RunFinished():
            return {"event": "verdict", "verdict": event.verdict.verdict, "text": str(event.verdict), "at": event.at_s}
