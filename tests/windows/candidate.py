"""A Windows machine that is to join a real cluster: the real kubeadm.exe, stand-ins for containerd and kubelet."""

from __future__ import annotations

import contextlib
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from real_programs import ensure, stand_ins
from windows.control_plane import ENDPOINT, KUBERNETES, ControlPlane
from windows.ground import Ground, Result, stopped_at_last

STAND_INS = Path(__file__).parent / "standins"
NAME = "windows-1"
ELEVATED = """<assembly xmlns="urn:schemas-microsoft-com:asm.v1" manifestVersion="1.0">
<trustInfo xmlns="urn:schemas-microsoft-com:asm.v3"><security><requestedPrivileges>
<requestedExecutionLevel level="requireAdministrator" uiAccess="false"/>
</requestedPrivileges></security></trustInfo></assembly>
"""
"""What makes wine start a program as an administrator, beside the program."""
STATE = (r"C:\etc\kubernetes", r"C:\var\lib\kubelet")


class Line(NamedTuple):
    """What the join line says."""

    token: str
    ca_hash: str


class Operator:
    """Whoever has the rights of an administrator on the cluster."""

    def __init__(self, plane: ControlPlane) -> None:
        self.plane = plane

    def winready(self, *words: str, check: bool = True) -> str:
        """Our own command."""
        command = [sys.executable, "-m", "winready", *words, "--kubeconfig", str(self.plane.kubeconfig)]
        return self.plane.run(command, check=check)


class Candidate(Operator):
    """The machine, and the cluster that it is to join."""

    def __init__(self, ground: Ground, plane: ControlPlane) -> None:
        super().__init__(plane)
        self.ground = ground
        built = stand_ins(KUBERNETES, STAND_INS)
        ground.put(r"C:\k\kubeadm.exe", ensure(KUBERNETES, ["kubeadm.exe"]) / "kubeadm.exe")
        ground.put(r"C:\k\kubeadm.exe.manifest", ELEVATED)
        for name in ("kubelet.exe", "containerd.exe"):
            ground.put(rf"C:\k\{name}", built / name)
        made = ground.run(["sc", "create", "kubelet", "binPath=", r"C:\k\kubelet.exe", "start=", "auto"])
        assert made.code == 0, made

    def line(self) -> Line:
        """A token and the fingerprint, out of the line that our own command prints."""
        found = re.search(r"-Token (\S+) -TokenExpires \S+ -CaHash '([^']+)'", self.winready("node", "join-command"))
        assert found
        return Line(*found.groups())

    @contextlib.contextmanager
    def runtime(self) -> Iterator[None]:
        """While this lasts something answers on the runtime's pipe."""
        command = self.ground.command([r"C:\k\containerd.exe"])
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        with stopped_at_last(process):
            assert process.stdout is not None
            assert process.stdout.readline().startswith(b"serving")
            try:
                yield
            finally:
                self.ground.run(["taskkill", "/f", "/im", "containerd.exe"])

    def kubeadm(self, *words: str) -> Result:
        """Run kubeadm.exe as node.ps1 does: where the kubelet is."""
        return self.ground.run([r"C:\k\kubeadm.exe", *words], folder=r"C:\k")

    def join(self, line: Line, *words: str) -> Result:
        """Join by a token."""
        hashed = ["--discovery-token-ca-cert-hash", line.ca_hash]
        return self.kubeadm("join", ENDPOINT, "--token", line.token, *hashed, *words)

    def service(self) -> str:
        """What the service manager says of the kubelet: RUNNING or STOPPED."""
        found = re.search(r"STATE\s+: \d+\s+(\w+)", self.ground.run(["sc", "query", "kubelet"]).out)
        assert found
        return found[1]

    def files(self) -> dict[str, bytes]:
        """What lies in the folders of kubeadm and kubelet, by name."""
        found = {}
        for folder in map(self.ground.path, STATE):
            for path in sorted(folder.rglob("*")):
                if path.is_file():
                    found[path.relative_to(self.ground.c_drive).as_posix()] = path.read_bytes()
        return found

    def clean(self) -> None:
        """As before the first join."""
        self.kubeadm("reset", "--force")
        for folder in map(self.ground.path, STATE):
            for path in sorted(folder.rglob("*"), reverse=True):
                if path.is_file():
                    path.unlink()
        self.ground.path(r"C:\var\lib\kubelet").mkdir(parents=True, exist_ok=True)
        self.plane.kubectl("delete", "nodes,certificatesigningrequests", "--all", "--ignore-not-found")
