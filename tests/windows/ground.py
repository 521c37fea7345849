"""Windows programs and PowerShell scripts under wine, each machine new and gone at the end of its block.

    with Ground() as machine:
        machine.put(r"C:\\k\\x.exe", Path("x.exe"))
        result = machine.run([r"C:\\k\\x.exe", "--version"])
        first, second = machine.powershell("Get-Service kubelet", r"& C:\\b\\node.ps1 status")
        with machine.network():
            ...  # servers that are started and sockets that are opened here share its network (loopback only)

Wine's exit codes have eight bits; those of ``powershell`` are whole. Wine tells lies (``test_lies.py``): rest nothing
on access rights, firewalls, links or scheduled tasks.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import shutil
import subprocess
import tempfile
import termios
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path, PureWindowsPath
from types import TracebackType

from isolation import Isolated
from windows_ground import WINE, layers

PWSH = (r"C:\pwsh\pwsh.exe", "-NoLogo", "-NoProfile", "-NonInteractive", "-ExecutionPolicy", "Bypass", "-File")


@dataclass(frozen=True)
class Result:
    """How a program ended and what it said."""

    code: int
    out: str
    err: str = ""


class Ground:
    """A Windows machine from the cached layers; whatever happens on it happens in memory."""

    def __init__(self, name: str = "windows-1") -> None:
        self._stage = tempfile.TemporaryDirectory(prefix="winready-ground-")
        self._machine = Isolated(layers(), Path(self._stage.name), name=name)
        self._user: subprocess.Popen[bytes] | None = None
        self._runs = 0

    def __enter__(self) -> Ground:
        with contextlib.ExitStack() as undo:
            undo.callback(self._stage.cleanup)
            undo.enter_context(self._machine)
            self.boot()
            undo.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._machine.__exit__(kind, error, trace)
        self._log_off()
        self._stage.cleanup()

    def boot(self) -> None:
        """Start its services: those of Windows, and whatever is to start at boot.

        Somebody has to stay logged on: with the last program that is no service, wine ends all services.
        """
        self._user = subprocess.Popen(
            self.command(["cmd", "/k", "echo logged on"]),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        assert self._user.stdout is not None
        while b"logged on" not in (line := self._user.stdout.readline()):
            if not line:
                raise AssertionError("wine does not start")

    def reboot(self) -> None:
        """End every process of Windows, and boot again; files and registry stay."""
        for option in ("-k", "-w"):
            command = self._machine.command(["wineserver64", option], WINE)
            subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=60, check=False)
        self._log_off()
        self.boot()

    def _log_off(self) -> None:
        if self._user is not None:
            self._user.kill()
            self._user.communicate()
            self._user = None

    @property
    def c_drive(self) -> Path:
        """Drive C:, as the tests reach it. It is good as long as the machine is."""
        return self._machine.root / "wine/drive_c"

    def path(self, windows: str) -> Path:
        r"""Where a file of drive C: is for the tests: ``C:\k\x`` or ``\k\x``, in the same letters as on the drive."""
        return self.c_drive.joinpath(*PureWindowsPath(windows).parts[1:])

    def put(self, windows: str, content: Path | bytes | str) -> None:
        """Put a file, a folder or some text on drive C:."""
        target = self.path(windows)
        target.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, Path) and content.is_dir():
            shutil.copytree(content, target)
        elif isinstance(content, Path):
            shutil.copyfile(content, target)
        else:
            target.write_bytes(content.encode() if isinstance(content, str) else content)

    def network(self) -> AbstractContextManager[None]:
        """What this thread opens and starts in the block is in the machine's network, where there is only loopback."""
        return self._machine.network()

    def command(self, command: Sequence[str], folder: str = "C:\\", env: Mapping[str, str] | None = None) -> list[str]:
        """What runs a Windows program, for those who start it themselves."""
        inside = "/wine/drive_c/" + "/".join(PureWindowsPath(folder).parts[1:])
        return self._machine.command(["wine64", *command], {**WINE, **(env or {})}, inside)

    def run(
        self,
        command: Sequence[str],
        timeout: float = 120,
        folder: str = "C:\\",
        env: Mapping[str, str] | None = None,
        terminal: bool = False,
    ) -> Result:
        """Run a Windows program to its end. On a terminal, all that it says is in ``out``, drawn as on a screen."""
        argv = self.command(command, folder, env)
        if terminal:
            return on_terminal(argv, timeout)
        # Not to pipes: services that the program starts would hold them open.
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            with stopped_at_last(subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=out, stderr=err)) as process:
                process.wait(timeout)
            texts = []
            for file in (out, err):
                file.seek(0)
                texts.append(file.read().decode(errors="replace").replace("\r\n", "\n"))
        return Result(process.returncode, *texts)

    def powershell(
        self,
        *commands: str,
        prelude: str = "",
        timeout: float = 300,
        env: Mapping[str, str] | None = None,
    ) -> list[Result]:
        """Run commands one after the other in one real PowerShell, after a prelude; what each one said and its code.

        A command that calls a script gets the script's exit code. PowerShell needs a terminal: without one it ends
        with 0 and has run nothing. Since that may happen for other reasons, too, each run has to leave a canary.
        """
        self._runs += 1
        folder = rf"C:\ground\{self._runs}"
        lines = ["$ErrorActionPreference = 'Stop'", prelude]
        for index, command in enumerate(commands):
            self.put(rf"{folder}\{index}.ps1", command)
            lines.append(_CALL.format(base=rf"{folder}\{index}"))
        lines.append(rf"[IO.File]::WriteAllText('{folder}\canary', 'alive')")
        self.put(rf"{folder}\run.ps1", "\n".join(lines))
        screen = self.run([*PWSH, rf"{folder}\run.ps1"], timeout, env=env, terminal=True)
        if not self.path(rf"{folder}\canary").exists():
            raise AssertionError(f"PowerShell ended with {screen.code} and did not run its script:\n{screen.out}")
        return [self._said(rf"{folder}\{index}") for index in range(len(commands))]

    def _said(self, base: str) -> Result:
        text = self.path(f"{base}.out").read_text("utf-8-sig", errors="replace").replace("\r\n", "\n")
        return Result(int(self.path(f"{base}.code").read_text()), text)


_CALL = r"""
$global:LASTEXITCODE = 0
$code = 0
try {{
    & '{base}.ps1' *> '{base}.out'
    $code = $global:LASTEXITCODE
}}
catch {{
    $code = 1
    [IO.File]::AppendAllText('{base}.out', "not caught: $_`n$($_.ScriptStackTrace)`n")
}}
[IO.File]::WriteAllText('{base}.code', [string]$code)
"""


@contextlib.contextmanager
def stopped_at_last(process: subprocess.Popen[bytes]) -> Iterator[subprocess.Popen[bytes]]:
    """A process that is not left behind; what it started inside goes with its machine."""
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


def on_terminal(argv: Sequence[str], timeout: float) -> Result:
    """Run a program on a wide terminal."""
    master, slave = os.openpty()
    termios.tcsetwinsize(slave, (50, 250))

    def take_terminal() -> None:
        os.setsid()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    said = bytearray()
    until = time.monotonic() + timeout
    try:
        process = subprocess.Popen(argv, stdin=slave, stdout=slave, stderr=slave, preexec_fn=take_terminal)
        with stopped_at_last(process):
            while process.poll() is None:
                if time.monotonic() > until:
                    raise subprocess.TimeoutExpired(argv, timeout, bytes(said))
                if select.select([master], [], [], 0.05)[0]:
                    said += os.read(master, 65536)
            while select.select([master], [], [], 0)[0]:
                said += os.read(master, 65536)
    finally:
        os.close(slave)
        os.close(master)
    return Result(process.returncode, said.decode(errors="replace").replace("\r\n", "\n"))
