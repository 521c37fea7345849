"""What has to be verified so that a run can answer for workloads: exactly what they rely on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from winready.engine.selection import Selection
from winready.engine.workloads import Workload
from winready.features import catalogue, choosing


def features(workloads: Iterable[Workload]) -> list[str]:
    """The features of the matrix that these workloads use."""
    known = catalogue.load()
    return [each for each in _ids(workloads) if each in known]


def selection(workloads: Sequence[Workload], skip: Sequence[str] = ()) -> Selection:
    """The requirements and features that these workloads rely on, and the requirements that show these features."""
    chosen = features(workloads)
    requirements = [each for each in _ids(workloads) if each not in chosen]
    return choosing.selected(Selection(requirements=requirements, features=chosen, skip=list(skip)), chosen)


def _ids(workloads: Iterable[Workload]) -> list[str]:
    return list(dict.fromkeys(need.id for each in workloads for need in each.needs))
