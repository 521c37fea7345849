"""A run as a policy report (wgpolicyk8s.io/v1alpha2), which dashboards of policy engines show."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from winready.cluster.client import Client, Object, is_discovery
from winready.cluster.errors import NotFound
from winready.cluster.resources import Resource
from winready.deploy.telling import REASON, line
from winready.engine.outcomes import RequirementResult
from winready.report.record import Record

VERSION: Final = "wgpolicyk8s.io/v1alpha2"
CLUSTER_REPORTS = Resource(VERSION, "ClusterPolicyReport", "clusterpolicyreports", namespaced=False)
REPORTS = Resource(VERSION, "PolicyReport", "policyreports")
RESULTS = {"passed": "pass", "failed": "fail", "blocked": "error", "error": "error", "not-applicable": "skip"}
SEVERITIES = {"core": "high", "extension": "medium", "advisory": "low"}


async def served(client: Client) -> Resource | None:
    """The kind of report that the cluster has: about clusters, else in a namespace, else none."""
    try:
        answer = await client.transport.call("GET", f"/apis/{VERSION}", expected=is_discovery)
    except NotFound:
        return None
    names = {item.get("name") for item in answer.body.get("resources") or []}
    return next((kind for kind in (CLUSTER_REPORTS, REPORTS) if kind.plural in names), None)


def report(resource: Resource, name: str, record: Record, labels: dict[str, str]) -> Object:
    """The report of a run as far as it is."""
    results = [_result(record, item) for item in record.requirements]
    kinds = ("pass", "fail", "warn", "error", "skip")
    return {
        "apiVersion": VERSION,
        "kind": resource.kind,
        "metadata": {"name": name, "labels": labels},
        "summary": {kind: sum(item["result"] == kind for item in results) for kind in kinds},
        "results": results,
    }


def _result(record: Record, item: RequirementResult) -> dict[str, Any]:
    gates = item.level != "advisory"
    result = RESULTS[item.outcome]
    entry: dict[str, Any] = {
        "source": "winready",
        "policy": "windows-operational-readiness",
        "rule": item.id,
        "category": item.category,
        "severity": SEVERITIES.get(item.level, "info"),
        "scored": gates,
        "result": "warn" if result == "fail" and not gates else result,
        "message": line(item.reason, REASON),
        "properties": {"run": record.run_id, "outcome": item.outcome, "level": item.level},
    }
    if began := _seconds(record.started):
        entry["timestamp"] = {"seconds": began + round(item.started_s + item.duration_s), "nanos": 0}
    return entry


def _seconds(time: str) -> int:
    try:
        return int(datetime.fromisoformat(time).timestamp())
    except ValueError:
        return 0
