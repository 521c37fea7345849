"""The native suite gives the same outcomes on a real control plane as on the embedded one, healthy and broken.

Nodes run 25 times as fast on both. A real control plane reacts in its own time, so every wait of a check is divided by
no more than 5; on both, so that two runs at a time on a busy machine are not judged by moments.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from real.conftest import EMBEDDED, KUBERNETES, OLDER, Cluster
from winready.sandbox.faults.table import FAULTS

TIME_SCALE = 5
FAULTS_BY_CATEGORY = {
    "Core.Network": "dns.windows.no-search-path",
    "Core.Storage": "volumes.windows.hostpath-not-persistent",
    "Core.Scheduling": "machine.windows.cpu-limit-ignored",
    "Core.Concurrent": "service-proxy.windows.not-programmed",
}
LONG = ("core.concurrent.reschedule-50", "core.storage.reboot-recovery")
"""Verified on healthy clusters only: each takes minutes."""


def outcomes(cluster: Cluster, folder: Path, *selection: str) -> dict[str, str]:
    """What a run says about each requirement."""
    options = ["--time-scale", str(TIME_SCALE), "--report-dir", str(folder), "-o", "json"]
    result = cluster.winready("run", "--kubeconfig", cluster.kubeconfig, *options, *selection)
    assert result.returncode in (0, 1, 3), result.stderr
    return {item["id"]: item["outcome"] for item in json.loads(result.stdout)["requirements"]}


def both(one: Cluster, other: Cluster, folder: Path, *selection: str) -> tuple[dict[str, str], dict[str, str]]:
    """The outcomes on two clusters, found side by side."""
    with ThreadPoolExecutor() as pool:
        first = pool.submit(outcomes, one, folder / "one", *selection)
        second = pool.submit(outcomes, other, folder / "other", *selection)
        return first.result(), second.result()


@pytest.mark.timeout(900)
@pytest.mark.parametrize("version", [KUBERNETES, OLDER])
def test_healthy_cluster(clusters: Callable[[str], Cluster], tmp_path: Path, version: str) -> None:
    embedded, real = both(clusters(EMBEDDED), clusters(version), tmp_path, "--profile", "core", "--allow-disruptive")
    assert real == embedded
    assert set(real.values()) <= {"passed", "blocked"}
    assert "passed" in real.values()


@pytest.mark.timeout(900)
@pytest.mark.parametrize("category", FAULTS_BY_CATEGORY)
def test_broken_cluster(clusters: Callable[[str], Cluster], tmp_path: Path, category: str) -> None:
    fault = FAULTS[FAULTS_BY_CATEGORY[category]]
    pair = clusters(EMBEDDED), clusters(KUBERNETES)
    for cluster in pair:
        broken = cluster.winready("sandbox", "break", fault.name, "--name", cluster.document["name"])
        assert broken.returncode == 0, broken.stderr
    try:
        skipped = [word for name in LONG if name.startswith(category.lower()) for word in ("--skip", name)]
        embedded, real = both(*pair, tmp_path, "--category", category, *skipped)
    finally:
        for cluster in pair:
            cluster.winready("sandbox", "heal", "--name", cluster.document["name"])
    assert real == embedded
    assert {name for name, outcome in real.items() if outcome == "failed"} == {*fault.requirements} & {*real}
