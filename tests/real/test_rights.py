"""The rights that ``winready rbac`` prints are enough on a real API server, which serves more than the sandbox."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from real.conftest import KUBERNETES, Cluster, Kubectl, programs

QUICK = "core.storage.hostpath-write"


@pytest.mark.timeout(300)
def test_a_run_and_a_cleanup_with_their_least_rights_leave_nothing_and_know_the_cluster(
    clusters: Callable[[str], Cluster], tmp_path: Path
) -> None:
    cluster = clusters(KUBERNETES)
    kubectl = Kubectl(programs(KUBERNETES) / "kubectl", cluster.kubeconfig)
    run = ["run", "--requirement", QUICK, "--time-scale", "5", "--report-dir", str(tmp_path), "-o", "json"]
    for purpose, command in (("run", run), ("cleanup", ["cleanup"])):
        name = f"least-{purpose}"
        rights = cluster.winready("rbac", "--for", purpose, "--name", name, "--namespace", name).stdout
        kubectl.ok("apply", "-f", "-", stdin=rights)
        token = kubectl.ok("create", "token", name, "--namespace", name).strip()
        config = json.loads(kubectl.ok("config", "view", "--raw", "-o", "json"))
        config["users"] = [{"name": user["name"], "user": {"token": token}} for user in config["users"]]
        own = tmp_path / f"{name}.json"
        own.write_text(json.dumps(config))
        result = cluster.winready(*command, "--kubeconfig", str(own))
        kubectl.ok("delete", "--ignore-not-found", "-f", "-", stdin=rights)
        assert result.returncode == 0, result.stdout + result.stderr
        if purpose == "run":
            record = json.loads(result.stdout)
            assert (record["verdict"], record["leftovers"]) == ("Pass", [])
            assert record["cluster"]["simulated"] is True
