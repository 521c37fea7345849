"""``winready dashboard`` on the command line: what it refuses, and where its token comes from."""

from __future__ import annotations

import http.client
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from winready.cli.main import cli

TOKEN = "a-token-that-is-long-enough"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--path-prefix", "winready"], "is no path such as /winready"),
        (["--path-prefix", "/a/../b"], "is no path such as /winready"),
        (["--path-prefix", "//evil.example"], "is no path such as /winready"),
        (["--trusted-proxy", "proxy.example"], "is neither an address nor a network"),
        (["--trusted-proxy", "10.0.0.7/8"], "is neither an address nor a network"),
        (["--trust-user-header", "X-User"], "--trusted-proxy ADDRESS says from whom it counts"),
        (["--trust-user-header", "X User:", "--trusted-proxy", "127.0.0.1"], "is no header"),
        (["--token-file", "nowhere"], "nowhere cannot be read: No such file or directory"),
    ],
)
def test_wrong_usage_is_told_before_anything_is_served(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], told: str
) -> None:
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(cli, ["dashboard", "--port", "0", *arguments])
    assert (result.exit_code, told in result.stderr) == (2, True), result.stderr


@pytest.mark.parametrize(
    "content", [b"", b"short\n", b"two words of a long token\n", b"\xff\xfe" * 20, b"x" * 16 + b"\x1b"]
)
def test_a_file_without_a_token_is_refused_and_not_shown(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "token"
    file.write_bytes(content)
    result = CliRunner().invoke(cli, ["dashboard", "--port", "0", "--token-file", str(file)])
    assert (result.exit_code, "holds no token" in result.stderr) == (2, True)
    assert "short" not in result.output.replace(str(tmp_path), "")


def test_a_token_from_a_file_is_asked_for_and_never_printed(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n")
    command = [sys.executable, "-P", "-m", "winready", "dashboard", "--port", "0", "--token-file", str(file)]
    command += ["--report-dir", str(tmp_path), "--path-prefix", "/winready/"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        assert line.rstrip().endswith("/winready/")
        port = int(line.rpartition(":")[2].partition("/")[0])
        for headers, status in (({}, 401), ({"Authorization": f"Bearer {TOKEN}"}, 200)):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
            connection.request("GET", "/winready/api/v1", headers=headers)
            assert connection.getresponse().status == status
            connection.close()
    finally:
        process.terminate()
        out, err = process.communicate(timeout=60)
    assert TOKEN not in line + out + err
