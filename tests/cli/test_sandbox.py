"""``winready sandbox up | status | down`` as a user runs it: real processes, real sockets, real files."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.request
from base64 import b64decode
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from winready.cli.main import cli

Run = Callable[..., subprocess.CompletedProcess[str]]
LISTENING = "0A"
LOOPBACK = ("0100007F", "00000000000000000000000001000000")


@pytest.fixture(scope="module")
def runtime() -> Iterator[Path]:
    """A runtime folder of the test's own, with a path short enough for sockets."""
    folder = Path(tempfile.mkdtemp(prefix="wr-"))
    yield folder
    environment = {**os.environ, "XDG_RUNTIME_DIR": str(folder)}
    subprocess.run([sys.executable, "-m", "winready", "sandbox", "down", "--all"], env=environment, check=True)
    assert list((folder / "winready").glob("*")) == []
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def winready(runtime: Path) -> Run:
    """Run the command line in a process of its own."""

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "winready", "sandbox", *arguments]
        environment = {**os.environ, "XDG_RUNTIME_DIR": str(runtime)}
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)

    return run


@pytest.fixture(scope="module")
def running(winready: Run) -> dict[str, Any]:
    """A sandbox that several tests look at; its document."""
    result = winready("up", "--detach", "--linux", "1", "--windows", "2", "--speed", "max", "-o", "json")
    assert result.returncode == 0, result.stderr
    document: dict[str, Any] = json.loads(result.stdout)
    return document


def get(kubeconfig: str, path: str) -> dict[str, Any]:
    """Ask the API with the credentials of a kubeconfig, with nothing but the standard library."""
    config = yaml.safe_load(Path(kubeconfig).read_text())
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    context = ssl.create_default_context(cadata=b64decode(cluster["certificate-authority-data"]).decode())
    with tempfile.NamedTemporaryFile() as pair:
        pair.write(b64decode(user["client-key-data"]) + b64decode(user["client-certificate-data"]))
        pair.flush()
        context.load_cert_chain(pair.name)
    with urllib.request.urlopen(cluster["server"] + path, context=context) as answer:  # noqa: S310
        decoded: dict[str, Any] = json.load(answer)
    return decoded


def test_up_tells_all_there_is_to_know(running: dict[str, Any]) -> None:
    assert running["server"].startswith("https://127.0.0.1:")
    assert [(node["name"], node["os"]) for node in running["nodes"]] == [
        ("linux-1", "linux"),
        ("windows-1", "windows"),
        ("windows-2", "windows"),
    ]
    assert running["nodes"][1]["build"].startswith("10.0.20348")
    assert running["nodes"][1]["version"].startswith("v1.36.")
    os.kill(running["pid"], 0)


def test_its_kubeconfig_opens_the_api_and_nobody_else_can_read_it(running: dict[str, Any]) -> None:
    names = [node["metadata"]["name"] for node in get(running["kubeconfig"], "/api/v1/nodes")["items"]]
    assert names == ["linux-1", "windows-1", "windows-2"]
    assert Path(running["kubeconfig"]).stat().st_mode & 0o077 == 0
    assert Path(running["kubeconfig"]).parent.stat().st_mode & 0o077 == 0


def test_nothing_listens_beyond_loopback(running: dict[str, Any]) -> None:
    process = Path("/proc") / str(running["pid"])
    links = {os.readlink(fd) for fd in (process / "fd").iterdir()}
    listening = []
    for table in ("tcp", "tcp6"):
        for line in (process / "net" / table).read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == LISTENING and f"socket:[{fields[9]}]" in links:
                listening.append(fields[1].split(":")[0])
    assert listening
    assert set(listening) <= set(LOOPBACK)


def test_status_shows_it_in_words_and_as_json(winready: Run, running: dict[str, Any]) -> None:
    assert json.loads(winready("status", "-o", "json").stdout)["server"] == running["server"]
    text = winready("status").stdout
    assert f"export KUBECONFIG={running['kubeconfig']}" in text
    assert "windows-2" in text


def test_second_one_of_the_same_name_is_refused(winready: Run, running: dict[str, Any]) -> None:
    again = winready("up", "--detach")
    assert again.returncode == 2
    assert "a sandbox named 'default' is running; stop it with 'winready sandbox down'" in again.stderr
    assert again.stdout == ""


def test_another_one_runs_beside_it_and_leaves_no_process_port_or_file(
    winready: Run, running: dict[str, Any], runtime: Path
) -> None:
    up = winready("up", "--detach", "--name", "other", "--windows", "0", "--kubernetes", "1.29", "-o", "json")
    document = json.loads(up.stdout)
    assert document["server"] != running["server"]
    assert get(document["kubeconfig"], "/version")["gitVersion"].startswith("v1.29.")
    down = winready("down", "--name", "other")
    assert (down.returncode, down.stdout) == (0, "Stopped: other\n")
    assert has_ended(document["pid"])
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", int(document["server"].rpartition(":")[2])))
    assert not (runtime / "winready" / "other").exists()
    assert json.loads(winready("down", "--name", "other", "-o", "json").stdout) == {"stopped": []}
    assert get(running["kubeconfig"], "/version")["gitVersion"].startswith("v1.36.")


def test_taken_port_is_named(winready: Run, running: dict[str, Any], runtime: Path) -> None:
    port = running["server"].rpartition(":")[2]
    result = winready("up", "--detach", "--name", "third", "--port", port)
    assert result.returncode == 2
    assert f"port {port} on 127.0.0.1 is taken" in result.stderr
    assert "Traceback" not in result.stderr
    assert not (runtime / "winready" / "third").exists()


def test_foreground_sandbox_stops_cleanly(runtime: Path) -> None:
    command = [sys.executable, "-u", "-m", "winready", "sandbox", "up", "--name", "front"]
    environment = {**os.environ, "XDG_RUNTIME_DIR": str(runtime)}
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert any("Ctrl-C stops it." in line for line in process.stdout)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=20)
    assert (process.returncode, errors) == (0, "")
    assert not (runtime / "winready" / "front").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--linux", "-1"], "--linux -1"),
        (["--linux", "0", "--windows", "0"], "1 to 2000 nodes"),
        (["--windows", "2000"], "1 to 2000 nodes"),
        (["--kubernetes", "1.12"], "choose 1.23 to 1.37"),
        (["--kubernetes", "latest"], "choose 1.23 to 1.37"),
        (["--port", "70000"], "a port is a number from 1 to 65535"),
        (["--speed", "fast"], "write a number up to 100, or 'max'"),
        (["--speed", "0"], "speed must be above 0"),
        (["--windows-build", "95"], "no known Windows build"),
        (["--name", "../x"], "is not a sandbox name"),
    ],
)
def test_wrong_options_are_explained(arguments: list[str], message: str, runtime: Path) -> None:
    result = CliRunner(env={"XDG_RUNTIME_DIR": str(runtime)}).invoke(cli, ["sandbox", "up", "--detach", *arguments])
    assert result.exit_code == 2
    assert message in result.stderr


def test_killed_sandbox_is_noticed_and_swept_away(winready: Run, running: dict[str, Any], runtime: Path) -> None:
    """The last test of this file: the sandbox that the others share does not survive it."""
    os.kill(running["pid"], signal.SIGKILL)
    while not has_ended(running["pid"]):
        time.sleep(0.01)
    result = winready("status", "-o", "json")
    assert (result.returncode, json.loads(result.stdout)["running"]) == (1, False)
    assert not (runtime / "winready" / "default").exists()


def has_ended(pid: int) -> bool:
    """Whether a process is gone; one that only waits for its parent to take notice is."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True
