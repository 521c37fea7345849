"""SIG Windows' own specs judge our nodes: a quick part of what ``make fidelity`` runs whole."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from real.conftest import KUBERNETES, Cluster
from real_programs import ensure
from winready.upstream.binary import inspect
from winready.upstream.flags import Invocation
from winready.upstream.process import run_process

pytestmark = pytest.mark.e2e

HOST_PROCESS = "[sig-windows] [Feature:WindowsHostProcessContainers] HostProcess containers"
USERS = "[sig-windows] [Feature:Windows] SecurityContext"
QUICK = [
    f"{HOST_PROCESS} metrics should report count of started and failed to start HostProcess containers",
    f"{HOST_PROCESS} should run as localgroup accounts",
    f"{HOST_PROCESS} should support init containers",
    f"{USERS} should not be able to create pods with containers running as CONTAINERADMINISTRATOR when runAsNonRoot is "
    "true",
    f"{USERS} should not be able to create pods with unknown usernames at Pod level",
    "[sig-windows] [Feature:Windows] DNS should support configurable pod DNS servers",
    "[sig-windows] [Feature:Windows] Memory Limits [Serial] [Slow] Allocatable node memory should be equal to a "
    "calculated allocatable memory value",
    "[sig-windows] [Feature:Windows] Windows volume mounts check volume mount permissions container should have "
    "readOnly permissions on hostMapPath",
]


@pytest.mark.timeout(900)
async def test_a_quick_part_of_sig_windows_passes_on_our_nodes(
    clusters: Callable[[str], Cluster], tmp_path: Path
) -> None:
    binary = await inspect(ensure(KUBERNETES, ["e2e.test"]) / "e2e.test")
    cluster = await asyncio.to_thread(clusters, KUBERNETES)
    call = Invocation(Path(cluster.kubeconfig), tmp_path, QUICK, deadline=700)
    ended = await run_process(
        binary, call, tmp_path / "log", lambda _: None, stopping=asyncio.Event(), started=lambda _: None
    )
    found = {text: ended.cases[text].status if text in ended.cases else "did not run" for text in QUICK}
    failures = {text: case.message for text, case in ended.cases.items() if case.status == "failed"}
    assert found == dict.fromkeys(QUICK, "passed"), failures
