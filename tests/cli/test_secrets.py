"""Secrets planted in a cluster and in the way to it reach no output: no file, no format, no bundle, no terminal."""

from __future__ import annotations

import asyncio
import base64
import gzip
import urllib.request
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from winready.cli.main import cli
from winready.cluster.client import Client
from winready.cluster.kubeconfig import find_target
from winready.cluster.resources import CONFIG_MAPS, NODES

JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhIn0.c2lnbmF0dXJlLXNpZw"
OPAQUE = "pl4nted-opaque-bearer"


@pytest.mark.timeout(300)
def test_a_run_over_planted_secrets_leaks_none(command_line: Any, kubeconfig: str, tmp_path: Path) -> None:
    config = yaml.safe_load(Path(kubeconfig).read_text())
    user = config["users"][0]["user"]
    own = [text for name, text in user.items() if name.endswith("-data")]
    assert own
    # A token beside the certificate is sent along with it, and the server believes the certificate.
    user["token"] = OPAQUE
    planted = tmp_path / "config"
    planted.write_text(yaml.safe_dump(config))
    asyncio.run(_label(kubeconfig, {"leak": JWT, "opaque": OPAQUE}))
    runs = tmp_path / "runs"
    arguments = ["--requirement", "core.network.windows-to-linux-pod-ip", "--time-scale", "25"]
    told = tmp_path / "told"
    told.mkdir()
    arguments += ["--metrics-file", str(told / "a.prom"), "--publish", f"termination-log={told / 'last-words'}"]
    arguments += ["--publish", "configmap=default/told"]
    result = command_line("run", "--kubeconfig", str(planted), "--report-dir", str(runs), *arguments)
    asyncio.run(_label(kubeconfig, {"leak": None, "opaque": None}))
    assert result.returncode == 0, result.stdout + result.stderr
    outputs = [result.stdout, result.stderr, asyncio.run(_told(kubeconfig))]
    place = ("--report-dir", str(runs))
    forms = ("html", "junit", "csv", "json", "yaml", "markdown", "sonobuoy")
    outputs += [CliRunner().invoke(cli, ["report", *place, "--format", form]).stdout for form in forms]
    assert all(outputs[3:])
    CliRunner().invoke(cli, ["report", *place, "--format", "prow", "--output", str(runs / "prow")])
    product = ("--vendor", "v", "--product-name", "p", "--product-version", "1", "--contact", "c@d")
    made = command_line("certify", *place, "--draft", "--output", str(runs / "b.tar.gz"), *product)
    assert made.returncode == 0, made.stderr
    run = next(path.parent.name for path in runs.glob("*/journal.jsonl"))
    for words in (
        ("history", *place, "-o", "json"),
        ("history", *place),
        ("status", *place, "-o", "yaml"),
        ("status", *place, "-o", "wide"),
        ("history", *place, "-o", "wide"),
        ("verify", str(runs / "b.tar.gz"), "-o", "json"),
        *(("compare", run, run, *place, "-o", form) for form in ("text", "wide", "markdown", "html", "csv", "json")),
    ):
        shown = CliRunner().invoke(cli, words)
        assert shown.stdout, words
        outputs += [shown.stdout, shown.stderr]
    outputs += [made.stdout, made.stderr]
    outputs += pages(command_line, runs, run)
    contents = [path.read_bytes() for folder in (runs, told) for path in folder.rglob("*") if path.is_file()]
    assert len(contents) >= 10
    contents += [gzip.decompress(data) for data in contents if data.startswith(b"\x1f\x8b")]
    everything = b"\n".join([*contents, *(text.encode() for text in outputs)])
    assert b"[secret removed]" in everything
    secrets = [JWT, OPAQUE, *own, *(base64.b64decode(text).decode() for text in own)]
    for secret in secrets:
        lines = [line for line in secret.splitlines() if len(line) > 12 and not line.startswith("-----")]
        assert lines
        assert not any(line.encode() in everything for line in lines)


def pages(command_line: Any, runs: Path, run: str) -> list[str]:
    """Everything that the dashboard answers."""
    process = command_line.start("dashboard", "--port", "0", "--report-dir", str(runs))
    try:
        address = process.stdout.readline().rsplit(" ", 1)[1].strip()
        paths = (
            "",
            "fleet",
            "requirements",
            "flaky",
            "trends",
            "metrics",
            "api/v1/clusters",
            "grid",
            "grid.json",
            f"runs/{run}",
            f"runs/{run}/live",
            f"runs/{run}/events",
            f"compare?a={run}&b={run}",
        )
        texts = []
        for path in paths:
            with urllib.request.urlopen(address + path, timeout=60) as answer:  # noqa: S310 - our own address
                texts.append(answer.read().decode())
        return texts
    finally:
        process.terminate()
        process.communicate()


async def _told(kubeconfig: str) -> str:
    """What the run wrote into a ConfigMap."""
    async with Client.connect(find_target(kubeconfig)) as client:
        return "\n".join((await client.get(CONFIG_MAPS, "told", "default"))["data"].values())


async def _label(kubeconfig: str, labels: dict[str, str | None]) -> None:
    async with Client.connect(find_target(kubeconfig)) as client:
        await client.patch(NODES, "windows-1", {"metadata": {"labels": labels}})
