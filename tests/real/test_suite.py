"""The native suite gives the same outcomes on a real control plane as on the embedded one, healthy and broken.

Healthy clusters are judged with exactly the rights that ``winready rbac`` prints for the run, and the audit log of the
API server tells which of them were used.

On the embedded one time is virtual. A real control plane reacts in its own time: nodes run 25 times as fast there, and
every wait of a check is divided by no more than 5.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from real.conftest import KUBERNETES, OLDER, WITH_OLDER, Cluster
from real.least_rights import UNHAPPY, UNSEEN, Operator
from winready.engine.selection import Selection
from winready.proof.choosing import Trial
from winready.proof.expected.table import HEALTHY, expected
from winready.proof.furnishing import furnished
from winready.proof.trial import hold_trial
from winready.spec.loader import load_standard

TIME_SCALE = 5
FAULTS_BY_CATEGORY = {
    "Core.Storage": "volumes.windows.hostpath-not-persistent",
    "Core.Concurrent": "service-proxy.windows.not-programmed",
    "Extend.HostProcess": "runtime.windows.hostprocess-always-system",
    "Extend.NetworkPolicy": "policy.windows.namespaces-ignored",
    "Extend.Network": "service-proxy.windows.ipv6-nodeport-dead",
    "Extend.Worker": "machine.windows.pings-dropped",
}
"""Whole categories; ``test_classes.py`` has single requirements of the others."""
EXTENSIONS = [category for category in FAULTS_BY_CATEGORY if category.startswith("Extend.")]
WITHOUT_DOMAIN = "extend.activedirectory.run-as-user"
"""The one of Extend.ActiveDirectory that needs no domain; ``test_gmsa_webhook.py`` has the others."""
OPTIONS = {"dual_stack": "--dual-stack"}
"""How the command line asks for what a selection needs."""
LONG = ("core.concurrent.reschedule-50", "core.storage.reboot-recovery", "extend.hostprocess.node-rejoins")
"""Verified on healthy clusters only: each takes minutes."""
Outcomes = dict[str, str]


def on_real(cluster: Cluster, folder: Path, *selection: str, kubeconfig: str = "") -> Outcomes:
    """What a run says about each requirement."""
    options = ["--time-scale", str(TIME_SCALE), "--report-dir", str(folder), "-o", "json"]
    result = cluster.winready("run", "--kubeconfig", kubeconfig or cluster.kubeconfig, *options, *selection)
    assert result.returncode in (0, 1, 3), result.stderr
    return {item["id"]: item["outcome"] for item in json.loads(result.stdout)["requirements"]}


def with_least_rights(cluster: Cluster, folder: Path, *selection: str) -> Outcomes:
    """The same of a run that has the rights which are printed for it: nothing is refused, and it uses all of them.

    What only a run needs that has something in its way is used in ``test_rights.py``.
    """
    operator = Operator(cluster, folder, "suite", *selection)
    with operator.heard() as asked:
        outcomes = on_real(cluster, folder, *selection, kubeconfig=operator.kubeconfig)
    operator.leave()
    assert (asked.refused, 403 in asked.codes) == (set(), False)
    assert asked.unused(operator.rights) <= {*UNHAPPY, *UNSEEN}
    return outcomes


def on_embedded(fault: str, selection: Selection) -> Outcomes:
    """What a run on the embedded control plane says."""
    found = hold_trial(Trial(fault, selection, sound=fault == HEALTHY)).outcomes
    return {name: outcome for name, outcome in found.items() if not name.startswith("rule.")}


def furnished_for(clusters: Callable[..., Cluster], selection: Selection, version: str = KUBERNETES) -> Cluster:
    """A sandbox on the real control plane that has what the selection needs."""
    return clusters(version, *(OPTIONS[name] for name in furnished(load_standard(), selection)))


@pytest.mark.timeout(900)
@pytest.mark.parametrize("version", [KUBERNETES, pytest.param(OLDER, marks=WITH_OLDER)])
def test_healthy_cluster(clusters: Callable[[str], Cluster], tmp_path: Path, version: str) -> None:
    real = with_least_rights(clusters(version), tmp_path, "--profile", "core", "--allow-disruptive")
    assert len(real) == 24
    assert set(real.values()) == {"passed"}
    assert real == on_embedded(HEALTHY, Selection())


@pytest.mark.timeout(900)
@pytest.mark.parametrize("version", [KUBERNETES, pytest.param(OLDER, marks=WITH_OLDER)])
def test_extensions_on_a_healthy_cluster(clusters: Callable[..., Cluster], tmp_path: Path, version: str) -> None:
    selection = Selection(categories=EXTENSIONS, requirements=[WITHOUT_DOMAIN])
    words = [word for category in EXTENSIONS for word in ("--category", category)]
    words += ["--requirement", WITHOUT_DOMAIN]
    real = with_least_rights(furnished_for(clusters, selection, version), tmp_path, *words, "--allow-disruptive")
    assert len(real) == 19
    assert set(real.values()) == {"passed"}
    assert real == on_embedded(HEALTHY, selection)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("category", FAULTS_BY_CATEGORY)
def test_broken_cluster(clusters: Callable[..., Cluster], tmp_path: Path, category: str) -> None:
    skipped = [name for name in LONG if name.startswith(f"{category.lower()}.")]
    selection = Selection(categories=[category], skip=skipped)
    fault, cluster = FAULTS_BY_CATEGORY[category], furnished_for(clusters, selection)
    broken = cluster.winready("sandbox", "break", fault, "--name", cluster.document["name"])
    assert broken.returncode == 0, broken.stderr
    try:
        words = [word for name in skipped for word in ("--skip", name)]
        real = on_real(cluster, tmp_path, "--category", category, *words)
    finally:
        cluster.winready("sandbox", "heal", "--name", cluster.document["name"])
    assert real == on_embedded(fault, selection)
    assert {name for name, outcome in real.items() if outcome == "failed"} == {*expected(fault).requirements} & {*real}
