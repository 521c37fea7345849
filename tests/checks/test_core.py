"""Storage, scheduling and concurrency on a healthy sandbox; `winready sandbox prove` breaks it for the checks."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from checks.conftest import broken
from cli.conftest import CommandLine
from engine.stage import Stage

JWT = re.compile(r"eyJ[A-Za-z0-9_-]{10,}\.")


def run(command_line: CommandLine, folder: Path, *arguments: str) -> tuple[int, dict[str, Any], str]:
    result = command_line("run", "--sandbox", "--report-dir", str(folder), "-o", "json", *arguments)
    document: dict[str, Any] = json.loads(result.stdout)
    journal = (folder / document["run_id"] / "journal.jsonl").read_text()
    return result.returncode, document, journal


def titles(requirement: dict[str, Any]) -> str:
    return "\n".join(probe["title"] for probe in requirement["evidence"]["probes"] if probe["ok"])


def test_storage_passes_with_proof_and_without_tokens_and_its_own_sandbox_is_rebooted(
    command_line: CommandLine, tmp_path: Path
) -> None:
    code, document, journal = run(command_line, tmp_path, "--category", "core.storage")
    found = {item["id"].rpartition(".")[2]: item for item in document["requirements"]}
    outcomes = {name: item["outcome"] for name, item in found.items()}
    assert set(outcomes.values()) == {"passed"}, [item["reason"] for item in found.values()]
    assert (code, document["verdict"]) == (0, "Pass")
    assert not JWT.search(json.dumps(document) + journal)
    assert "pod wrote to its hostPath volume, now that the pod is gone" in titles(found["hostpath-write"])
    assert "reader-2/second reads the files that were there before it" in titles(found["hostpath-read"])
    volumes = titles(found["host-volumes"])
    assert "vol-1 follows its sources" in volumes
    assert "vol-2/second reads the files of its volumes" in volumes
    assert "vol2-1 has an empty emptyDir" in volumes
    assert volumes.count("has binary files") == 4
    assert titles(found["shared-files"]).count("writes round 5 of a common file") == 4
    assert titles(found["token-rotation"]).count("keeps its access") == 2
    assert titles(found["token-rotation"]).count("/second has a new token") == 2
    assert not document["leftovers"]


def test_pods_too_large_stay_pending_and_every_one_of_ten_pods_is_reached(
    command_line: CommandLine, tmp_path: Path
) -> None:
    names = ("scheduling.unschedulable-stays-pending", "concurrent.ten-pods-service-ip", "concurrent.ten-pods-nodeport")
    wanted = [word for name in names for word in ("--requirement", f"core.{name}")]
    code, document, _ = run(command_line, tmp_path, *wanted)
    assert (code, document["verdict"]) == (0, "Pass"), document["verdict_reasons"]
    pending, by_address, by_port = document["requirements"]
    assert "Insufficient cpu" in pending["evidence"]["facts"]["big-cpu: scheduler's reason"]
    assert "Insufficient memory" in pending["evidence"]["facts"]["big-memory: scheduler's reason"]
    assert "Insufficient cpu" in pending["evidence"]["facts"]["all-cpu-2: scheduler's reason"]
    assert titles(pending).count("stays Pending") == 6, "for each node one that asks for all of it"
    for item in (by_address, by_port):
        assert len([pod for pod in item["evidence"]["pods"] if pod["name"].startswith("ten-")]) == 10
        assert "is answered by everyone" in titles(item)


def test_a_pod_that_shows_what_a_judged_node_does_runs_on_one(staged: Callable[..., Stage]) -> None:
    stage = staged(windows=3)
    # The emptiest node is the one that is not judged, and pods do not start there.
    broken(stage, "runtime.windows.pulls-fail", "windows-3")
    played = stage.play("H2", nodes=2)
    (result,) = played.results.values()
    assert result.outcome == "passed", result.reason
    assert {pod.node for pod in result.evidence.pods} == {"windows-1", "windows-2"}


def test_a_refused_token_is_told_from_lost_packets(staged: Callable[..., Stage]) -> None:
    stage = staged()
    stage.do(lambda client: stage.sandbox.break_fault("tokens.rotated-refused"))
    (result,) = stage.play("core.storage.token-rotation").results.values()
    assert result.outcome == "failed"
    assert "was refused by the API server after its token was rotated: the server has asked" in result.reason
