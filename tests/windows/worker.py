"""A Windows machine that is to become a worker: a bundle, stand-ins for its programs, shims for what wine lacks."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from node.mirror import Mirror, running
from real_programs import one_builder
from windows.cluster import CA_HASH, CLUSTER, ENDPOINT, NEXT, RELEASE, TOKEN, Api, api_server
from windows.ground import Ground, Result
from windows_ground import home
from winready.cli.main import cli

SHIMS = Path(__file__).parent / "shims"
JOIN = f"join -Token {TOKEN} -CaHash {CA_HASH}"
PLAYED = ("kubeadm.exe", "kubelet.exe", "kube-log-runner.exe", "containerd.exe", "crictl.exe")
SERVICES = r"HKLM\SYSTEM\CurrentControlSet\Services"
ENVIRONMENT = r"HKLM\SYSTEM\CurrentControlSet\Control\Session Manager\Environment"
UNTOUCHED = {"windows", "users", "pwsh", "ground", "shim", "bundle"}
"""Folders of drive C: that are the machine's own, or the test's."""
NEW_MACHINE: dict[str, Any] = {
    "features": {"Containers": "Enabled", "Microsoft-Hyper-V": "Disabled"},
    "features_need_reboot": False,
    "firewall": {},
    "defender": [],
    "tasks": {},
    "hns": {"HnsNetwork": [], "HnsEndpoint": [], "HnsPolicyList": []},
    "rights": {},
    "stubborn": [],
}


@functools.cache
def standin(version: str) -> Path:
    """The program that plays all others, built for one release."""
    source = SHIMS / "standin"
    digest = hashlib.sha256(version.encode())
    for path in sorted(source.iterdir()):
        digest.update(path.read_bytes())
    target = home() / "standins" / f"{digest.hexdigest()[:16]}.exe"
    with one_builder(target.parent):
        if not target.exists():
            env = {**os.environ, "GOOS": "windows", "GOARCH": "amd64", "CGO_ENABLED": "0", "GOTOOLCHAIN": "local"}
            flags = ["-trimpath", "-buildvcs=false", "-ldflags", f"-s -w -X main.version={version}"]
            unfinished = target.with_suffix(".part")
            subprocess.run(["go", "build", *flags, "-o", str(unfinished), "."], cwd=source, env=env, check=True)
            unfinished.rename(target)
    return target


def publish(mirror: Mirror, version: str, containerd: str = "") -> None:
    """A release whose programs do something; a containerd that is named is another one than that of the release."""
    played = dict.fromkeys(PLAYED, standin(version).read_bytes())
    if containerd:
        mirror.release(version, containerd, {**played, "containerd.exe": standin(containerd).read_bytes()})
    else:
        mirror.release(version, programs=played)


def make_bundle(mirror: Mirror, version: str, to: Path, *flags: str) -> str:
    """A bundle as an operator makes it; its digest."""
    command = ["node", "bundle", "--kubernetes", version, "--endpoint", ENDPOINT, "--pod-cidr", "10.244.0.0/16"]
    command += ["--service-cidr", "10.96.0.0/12", "--dns", "10.96.0.10", "--mirror", mirror.url, "--to", str(to)]
    result = CliRunner().invoke(cli, [*command, *flags], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return hashlib.sha256((to / "SHA256SUMS").read_bytes()).hexdigest()


def make_bundles(folder: Path) -> dict[str, Path]:
    """Bundles of two releases that need no way out, by version."""
    with running() as mirror:
        for version in (RELEASE, NEXT):
            publish(mirror, version)
            make_bundle(mirror, version, folder / version, "--offline")
    return {version: folder / version for version in (RELEASE, NEXT)}


class Worker:
    """What tests do to such a machine, and what they see on it."""

    def __init__(self, ground: Ground) -> None:
        self.ground = ground

    def prepare(self, bundle: Path, **state: object) -> None:
        """Windows Server 2022 with a bundle; ``state`` differs from a new machine."""
        ground = self.ground
        ground.put(r"C:\bundle", bundle)
        ground.put(r"C:\shim\windows.ps1", SHIMS / "windows.ps1")
        ground.put(r"C:\shim\ca.crt", CLUSTER.pem)
        ground.put(r"C:\windows\system32\sc.exe", standin(RELEASE))
        self.set_state(**{**NEW_MACHINE, **state})
        self.set_build(20348)

    def set_build(self, build: int) -> None:
        key = r"HKLM\SOFTWARE\Microsoft\Windows NT\CurrentVersion"
        result = self.ground.run(["reg", "add", key, "/v", "CurrentBuildNumber", "/d", str(build), "/f"])
        assert result.code == 0, result.err

    def change_bundle(self, bundle: Path) -> None:
        """Another bundle in the place of the first."""
        shutil.rmtree(self.ground.path(r"C:\bundle"))
        self.ground.put(r"C:\bundle", bundle)

    @property
    def upgrade(self) -> str:
        """The command that upgrades to the bundle which is there now."""
        digest = hashlib.sha256(self.ground.path(r"C:\bundle\SHA256SUMS").read_bytes()).hexdigest()
        return f"upgrade -BundleDigest {digest}"

    def node(self, *commands: str, timeout: float = 300) -> list[Result]:
        r"""``C:\bundle\node.ps1`` with each of these command lines, in one PowerShell."""
        return self.powershell(*(rf"& C:\bundle\node.ps1 {command}" for command in commands), timeout=timeout)

    def powershell(self, *commands: str, timeout: float = 300) -> list[Result]:
        """Commands on a machine whose shims stand in for Windows."""
        env = {"WINEDLLOVERRIDES": "sc.exe=n"}
        return self.ground.powershell(*commands, prelude=r". C:\shim\windows.ps1", timeout=timeout, env=env)

    @property
    def state(self) -> dict[str, Any]:
        """What the shims know."""
        found: dict[str, Any] = json.loads(self.ground.path(r"C:\shim\state.json").read_text("utf-8-sig"))
        return found

    def set_state(self, **changes: object) -> None:
        path = r"C:\shim\state.json"
        known = self.state if self.ground.path(path).exists() else {}
        self.ground.put(path, json.dumps({**known, **changes}))

    def order(self, name: str, words: str | None) -> None:
        """Tell a stand-in to fail in some way, or not any more."""
        path = self.ground.path(rf"C:\shim\order\{name}")
        if words is None:
            path.unlink()
        else:
            self.ground.put(rf"C:\shim\order\{name}", words)

    def calls(self) -> list[dict[str, Any]]:
        """Calls of shims that change something, since the last time they were asked for."""
        found = self._lines(r"C:\shim\calls.jsonl")
        return [call for call in found if not call["call"].startswith("Get-")]

    def programs(self) -> list[dict[str, Any]]:
        """Starts of stand-ins, since the last time they were asked for."""
        return self._lines(r"C:\shim\programs.jsonl")

    def _lines(self, windows: str) -> list[dict[str, Any]]:
        path = self.ground.path(windows)
        if not path.exists():
            return []
        found = [json.loads(line) for line in path.read_text().splitlines()]
        path.unlink()
        return found

    def files(self) -> dict[str, str]:
        """Folders and files that a join may touch, with digests; without the log."""
        found = {}
        for top in sorted(self.ground.c_drive.iterdir()):
            if top.name.lower() in UNTOUCHED:
                continue
            for path in [top, *sorted(top.rglob("*"))]:
                name = path.relative_to(self.ground.c_drive).as_posix()
                if path.is_dir():
                    found[name] = "folder"
                elif not name.endswith(".log"):
                    found[name] = hashlib.sha256(path.read_bytes()).hexdigest()
        return found

    def registry(self) -> str:
        """The settings of our services, and the machine's variables."""
        keys = [rf"{SERVICES}\containerd", rf"{SERVICES}\kubelet", ENVIRONMENT]
        return "".join(self.ground.run(["reg", "query", key, "/s"]).out for key in keys)

    def picture(self) -> tuple[dict[str, str], str, dict[str, Any]]:
        """All that a second join must not change."""
        return self.files(), self.registry(), self.state

    def log(self) -> str:
        return self.ground.path(r"C:\ProgramData\winready\logs\node.log").read_text()


@contextlib.contextmanager
def worker(bundle: Path, api: Api | None = None, **state: object) -> Iterator[Worker]:
    """A new machine with a bundle, and an API server to join."""
    with Ground() as ground, api_server(ground, api):
        found = Worker(ground)
        found.prepare(bundle, **state)
        yield found
