"""Storage, scheduling and concurrency on a healthy sandbox; `winready sandbox prove` breaks it for the checks."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from cli.conftest import CommandLine

JWT = re.compile(r"eyJ[A-Za-z0-9_-]{10,}\.")


def run(command_line: CommandLine, folder: Path, *arguments: str) -> tuple[int, dict[str, Any], str]:
    result = command_line("run", "--sandbox", "--report-dir", str(folder), "-o", "json", *arguments)
    document: dict[str, Any] = json.loads(result.stdout)
    journal = (folder / document["run_id"] / "journal.jsonl").read_text()
    return result.returncode, document, journal


def titles(requirement: dict[str, Any]) -> str:
    return "\n".join(probe["title"] for probe in requirement["evidence"]["probes"] if probe["ok"])


def test_storage_passes_with_proof_and_without_tokens_and_reboots_must_be_allowed(
    command_line: CommandLine, tmp_path: Path
) -> None:
    code, document, journal = run(command_line, tmp_path, "--category", "core.storage", "--speed", "50")
    found = {item["id"].rpartition(".")[2]: item for item in document["requirements"]}
    outcomes = {name: item["outcome"] for name, item in found.items()}
    assert outcomes.pop("reboot-recovery") == "blocked", outcomes
    assert "--allow-disruptive" in found["reboot-recovery"]["next_step"]
    assert set(outcomes.values()) == {"passed"}, [item["reason"] for item in found.values()]
    assert (code, document["verdict"]) == (3, "Fail")
    assert not JWT.search(json.dumps(document) + journal)
    assert "hp-1 reads what the pod wrote to its hostPath volume" in titles(found["hostpath-write"])
    assert "reader-2 reads the file that was there before it" in titles(found["hostpath-read"])
    assert "vol-1 reads the update of the secret volume" in titles(found["host-volumes"])
    assert titles(found["shared-files"]).count("writes round 5 of a common file") == 4
    assert titles(found["token-rotation"]).count("keeps its access") == 2
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
    for item in (by_address, by_port):
        assert len([pod for pod in item["evidence"]["pods"] if pod["name"].startswith("ten-")]) == 10
        assert "is answered by everyone" in titles(item)
