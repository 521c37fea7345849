"""Environment variables; on Windows their names ignore case and keep their spelling."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping

from winready_sandbox.machine.errors import OS
from winready_sandbox.machine.executables import PATHEXT
from winready_sandbox.machine.users import Identity


class Environment(MutableMapping[str, str]):
    """The variables of a process."""

    def __init__(self, os: OS, values: Mapping[str, str] | None = None) -> None:
        self.os: OS = os
        self._values: dict[str, tuple[str, str]] = {}
        if isinstance(values, Environment) and values.os == os:
            self._values.update(values._values)
        elif values:
            self.update(values)

    def _key(self, name: str) -> str:
        return name.upper() if self.os == "windows" else name

    def __getitem__(self, name: str) -> str:
        return self._values[self._key(name)][1]

    def __setitem__(self, name: str, value: str) -> None:
        old = self._values.get(self._key(name))
        self._values[self._key(name)] = (old[0] if old else name, value)

    def __delitem__(self, name: str) -> None:
        del self._values[self._key(name)]

    def __iter__(self) -> Iterator[str]:
        return iter([name for name, _ in self._values.values()])

    def __len__(self) -> int:
        return len(self._values)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self._key(name) in self._values

    def copy(self) -> Environment:
        """Variables for a child."""
        child = Environment(self.os)
        child._values = dict(self._values)
        return child


def windows_variables(identity: Identity, computer: str, cores: int) -> dict[str, str]:
    """What Windows tells every process of a user."""
    account = identity.name
    profile = "C:\\Windows\\system32\\config\\systemprofile" if account == "SYSTEM" else f"C:\\Users\\{account}"
    return {
        "ALLUSERSPROFILE": "C:\\ProgramData",
        "APPDATA": f"{profile}\\AppData\\Roaming",
        "CommonProgramFiles": "C:\\Program Files\\Common Files",
        "COMPUTERNAME": computer,
        "ComSpec": "C:\\Windows\\system32\\cmd.exe",
        "LOCALAPPDATA": f"{profile}\\AppData\\Local",
        "NUMBER_OF_PROCESSORS": str(cores),
        "OS": "Windows_NT",
        "Path": "C:\\Windows\\system32;C:\\Windows;C:\\Windows\\System32\\Wbem;"
        "C:\\Windows\\System32\\WindowsPowerShell\\v1.0\\;",
        "PATHEXT": PATHEXT,
        "PROCESSOR_ARCHITECTURE": "AMD64",
        "ProgramData": "C:\\ProgramData",
        "ProgramFiles": "C:\\Program Files",
        "PUBLIC": "C:\\Users\\Public",
        "SystemDrive": "C:",
        "SystemRoot": "C:\\Windows",
        "TEMP": f"{profile}\\AppData\\Local\\Temp",
        "TMP": f"{profile}\\AppData\\Local\\Temp",
        "USERDOMAIN": identity.domain,
        "USERNAME": account,
        "USERPROFILE": profile,
        "windir": "C:\\Windows",
    }
