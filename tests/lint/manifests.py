"""Manifests for tests: a healthy Windows pod to start from, and small helpers around a run."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from winready.lint.context import Profile
from winready.lint.finding import Finding, Unreadable
from winready.lint.run import Run, Settings
from winready.lint.versions import parse_range

HEALTHY: Mapping[str, Any] = {
    "os": {"name": "windows"},
    "nodeSelector": {"kubernetes.io/os": "windows"},
    "tolerations": [{"key": "os", "operator": "Equal", "value": "windows", "effect": "NoSchedule"}],
    "securityContext": {"windowsOptions": {"runAsUserName": "ContainerUser"}},
    "containers": [
        {
            "name": "iis",
            "image": "mcr.microsoft.com/windows/servercore/iis:windowsservercore-ltsc2022",
            "resources": {"limits": {"cpu": "1", "memory": "800Mi"}},
        }
    ],
}
LINUX: Mapping[str, Any] = {
    "nodeSelector": {"kubernetes.io/os": "linux"},
    "containers": [{"name": "web", "image": "nginx:1.27"}],
}


def merge(base: Any, change: Any) -> Any:
    """A deep merge; None removes a key, a list of changes merges item by item."""
    if isinstance(base, dict) and isinstance(change, dict):
        result = copy.deepcopy(base)
        for key, value in change.items():
            if value is None:
                result.pop(key, None)
            else:
                result[key] = merge(result.get(key), value)
        return result
    if isinstance(base, list) and isinstance(change, list):
        return [merge(base[i] if i < len(base) else None, one) for i, one in enumerate(change)]
    return copy.deepcopy(change)


def pod(change: Mapping[str, Any] | None = None, base: Mapping[str, Any] = HEALTHY, **metadata: Any) -> dict[str, Any]:
    """A Pod whose spec is ``base`` with a change."""
    spec = merge(dict(base), dict(change or {}))
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", **metadata}, "spec": spec}


def workload(
    kind: str, change: Mapping[str, Any] | None = None, base: Mapping[str, Any] = HEALTHY, **spec: Any
) -> dict[str, Any]:
    """A controller around such a pod."""
    template = {"metadata": {"labels": {"app": "web"}}, "spec": merge(dict(base), dict(change or {}))}
    version = {"Job": "batch/v1", "CronJob": "batch/v1"}.get(kind, "apps/v1")
    body: dict[str, Any] = {"template": template, **spec}
    if kind == "CronJob":
        body = {"schedule": "@daily", "jobTemplate": {"spec": body}}
    return {"apiVersion": version, "kind": kind, "metadata": {"name": "web"}, "spec": body}


def lint(
    folder: Path, documents: Sequence[Any] | Any, kubernetes: str = "1.34", profile: Mapping[str, Any] | None = None
) -> list[Finding]:
    """The findings of documents that stand in one file."""
    listed = documents if isinstance(documents, list) else [documents]
    path = folder / "manifest.yaml"
    path.write_text(
        "".join(f"---\n{document if isinstance(document, str) else json.dumps(document)}\n" for document in listed)
    )
    results = list(Run([str(path)], Settings(Profile(versions=parse_range(kubernetes), **(profile or {})))).results())
    assert not [one for one in results if isinstance(one, Unreadable)], results
    return [one for one in results if isinstance(one, Finding)]


def ids(findings: Sequence[Finding], *severities: str) -> list[str]:
    """The rules of the findings of these severities (all by default), sorted."""
    return sorted(one.rule for one in findings if not severities or one.severity in severities)
