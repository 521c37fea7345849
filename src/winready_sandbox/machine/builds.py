"""Versions of the operating systems that machines and images can have, and of their container runtime."""

from __future__ import annotations

import re
from dataclasses import dataclass

DEFAULT_CONTAINERD = "2.1.4"
_CONTAINERD = re.compile(r"(\d+)\.(\d+)\.\d+")


@dataclass(frozen=True)
class WindowsBuild:
    """One Windows Server release."""

    number: str
    revision: int
    name: str
    edition: str
    suffix: str
    """How image tags name it."""

    @property
    def version(self) -> str:
        """What `ver` prints: `10.0.20348.2700`."""
        return f"10.0.{self.number}.{self.revision}"

    @property
    def label(self) -> str:
        """Value of the node label node.kubernetes.io/windows-build."""
        return f"10.0.{self.number}"

    @property
    def banner(self) -> str:
        """The first line of cmd."""
        return f"Microsoft Windows [Version {self.version}]"

    @property
    def copyright(self) -> str:
        """The second line of cmd."""
        year = "(c) 2018 Microsoft Corporation. All rights reserved."
        return year if self.number == "17763" else "(c) Microsoft Corporation. All rights reserved."


WINDOWS = {
    build.number: build
    for build in (
        WindowsBuild("17763", 6414, "Windows Server 2019", "Windows Server 2019 Datacenter", "1809"),
        WindowsBuild("18363", 1556, "Windows Server, version 1909", "Windows Server Datacenter", "1909"),
        WindowsBuild("19041", 1415, "Windows Server, version 2004", "Windows Server Datacenter", "2004"),
        WindowsBuild("19042", 1889, "Windows Server, version 20H2", "Windows Server Datacenter", "20H2"),
        WindowsBuild("20348", 2700, "Windows Server 2022", "Windows Server 2022 Datacenter", "ltsc2022"),
        WindowsBuild("25398", 1189, "Windows Server, version 23H2", "Windows Server 23H2 Datacenter", "ltsc2022"),
        WindowsBuild("26100", 2314, "Windows Server 2025", "Windows Server 2025 Datacenter", "ltsc2025"),
    )
}
BUILD_OF_SUFFIX = {build.suffix: build.number for build in reversed(WINDOWS.values())} | {"ltsc2022": "20348"}

_ALIASES = {"2019": "17763", "2022": "20348", "2025": "26100", "1809": "17763", "ltsc2019": "17763"}

RUNS_IMAGES_OF = {"25398": ("25398", "20348"), "26100": ("26100", "20348")}
"""Process isolation: newer hosts also run images of one LTSC back; all others only their own build."""


def windows_build(name: str) -> WindowsBuild:
    """The release behind `20348`, `10.0.20348`, `2022` or `ltsc2022`."""
    plain = name.removeprefix("10.0.").partition(".")[0]
    number = _ALIASES.get(plain) or BUILD_OF_SUFFIX.get(plain) or plain
    if number not in WINDOWS:
        known = ", ".join(WINDOWS)
        raise ValueError(f"{name!r} is no known Windows build; write one of {known}, or 2019, 2022, 2025")
    return WINDOWS[number]


def image_builds(host: str) -> tuple[str, ...]:
    """Image builds that a host of this build can run, best first."""
    return RUNS_IMAGES_OF.get(host, (host,))


HOST_PROCESS_SINCE = (1, 6)
"""The release of containerd that knows HostProcess containers."""


def containerd_release(version: str) -> tuple[int, int]:
    """Major and minor version of a container runtime such as `2.1.4`."""
    found = _CONTAINERD.fullmatch(version)
    if found is None:
        raise ValueError(f"{version}: not a version; write it like {DEFAULT_CONTAINERD}")
    return int(found[1]), int(found[2])
