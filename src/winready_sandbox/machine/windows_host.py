"""The administrative state of a Windows machine: services, registry, groups, firewall, Defender, host networking.

HostProcess containers read and change it; what they change stays until somebody undoes it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from winready_sandbox.chance import unique
from winready_sandbox.machine.builds import WindowsBuild


@dataclass
class Service:
    """A Windows service."""

    name: str
    display_name: str
    path: str
    state: str = "Running"
    start_mode: str = "Auto"
    account: str = "LocalSystem"


@dataclass
class FirewallRule:
    """One rule of the Windows firewall."""

    name: str
    display_name: str
    direction: str = "Inbound"
    action: str = "Allow"
    enabled: bool = True
    protocol: str = "Any"
    local_port: str = "Any"
    added: bool = False
    """Whether a program on the machine added it, instead of whoever set the machine up."""

    def covers(self, protocol: str, port: int) -> bool:
        """Whether the rule speaks about inbound packets like this; protocol and port numbers as in the rule's own."""
        if not self.enabled or self.direction != "Inbound" or self.protocol.lower() not in ("any", protocol.lower()):
            return False
        for part in self.local_port.split(","):
            first, _, last = part.strip().partition("-")
            if first.lower() == "any" or (first.isdigit() and int(first) <= port <= int(last or first)):
                return True
        return False


@dataclass
class Defender:
    """Microsoft Defender and its exclusions."""

    running: bool = True
    exclusion_paths: list[str] = field(default_factory=lambda: ["C:\\Program Files\\containerd"])
    exclusion_processes: list[str] = field(
        default_factory=lambda: [
            "C:\\Program Files\\containerd\\containerd.exe",
            "C:\\Program Files\\containerd\\ctr.exe",
        ]
    )


@dataclass
class HnsNetwork:
    """A network of the Host Networking Service."""

    name: str
    type: str
    subnet: str = ""
    gateway: str = ""
    id: str = field(default_factory=lambda: unique().upper())


@dataclass
class HnsEndpoint:
    """An endpoint that a program made; those of containers are read off the machine itself."""

    name: str
    network: str
    """The identifier of the network that it belongs to."""
    address: str = ""
    policies: list[str] = field(default_factory=list)
    """The types of its policies."""


@dataclass
class Hns:
    """Objects of the Host Networking Service, by their identifiers in lower case."""

    networks: dict[str, HnsNetwork] = field(default_factory=dict)
    endpoints: dict[str, HnsEndpoint] = field(default_factory=dict)
    namespaces: dict[str, str] = field(default_factory=dict)
    """Types of namespaces that were made by hand."""
    acl_on_private: bool = True
    """Whether endpoints of Private networks, which no traffic enters, may have ACLs."""
    lost: str = ""
    """The network that went with an object that was deleted."""

    def add(self, network: HnsNetwork) -> None:
        """A network comes to be."""
        self.networks[network.id.lower()] = network


def _services() -> list[Service]:
    system32 = "C:\\Windows\\System32"
    containerd = "C:\\Program Files\\containerd\\containerd.exe"
    return [
        Service("kubelet", "kubelet", "C:\\k\\kubelet.exe --windows-service --config=C:\\k\\kubelet.yaml"),
        Service("containerd", "containerd", f'"{containerd}" --run-service'),
        Service("hns", "Host Network Service", f"{system32}\\svchost.exe -k NetSvcs -p"),
        Service("vmcompute", "Hyper-V Host Compute Service", f"{system32}\\vmcompute.exe"),
        Service("Dnscache", "DNS Client", f"{system32}\\svchost.exe -k NetworkService -p", account="NetworkService"),
        Service("EventLog", "Windows Event Log", f"{system32}\\svchost.exe -k LocalServiceNetworkRestricted -p"),
        Service("LanmanWorkstation", "Workstation", f"{system32}\\svchost.exe -k NetworkService -p"),
        Service("mpssvc", "Windows Defender Firewall", f"{system32}\\svchost.exe -k LocalServiceNoNetworkFirewall -p"),
        Service(
            "WinDefend", "Microsoft Defender Antivirus Service", "C:\\Program Files\\Windows Defender\\MsMpEng.exe"
        ),
        Service("sshd", "OpenSSH SSH Server", f"{system32}\\OpenSSH\\sshd.exe"),
        Service("TermService", "Remote Desktop Services", f"{system32}\\svchost.exe -k termsvcs", "Running", "Manual"),
        Service("wuauserv", "Windows Update", f"{system32}\\svchost.exe -k netsvcs -p", "Stopped", "Manual"),
    ]


CURRENT_VERSION = "HKLM\\SOFTWARE\\Microsoft\\Windows NT\\CurrentVersion"


def _current_version(build: WindowsBuild) -> dict[str, str | int]:
    return {
        "ProductName": build.edition,
        "CurrentBuild": build.number,
        "CurrentBuildNumber": build.number,
        "UBR": build.revision,
        "CurrentMajorVersionNumber": 10,
        "CurrentMinorVersionNumber": 0,
        "InstallationType": "Server Core",
        "EditionID": "ServerDatacenter",
    }


def _registry() -> dict[str, dict[str, str | int]]:
    control = "HKLM\\SYSTEM\\CurrentControlSet\\Control"
    return {
        "HKLM\\SOFTWARE": {},
        "HKLM\\SOFTWARE\\Microsoft": {},
        CURRENT_VERSION: {},
        f"{control}\\Terminal Server": {"fDenyTSConnections": 0},
        f"{control}\\Session Manager\\Environment": {"OS": "Windows_NT"},
        "HKLM\\SYSTEM\\CurrentControlSet\\Services\\hns\\State": {"EnableCompartmentNamespace": 1},
    }


@dataclass
class WindowsHost:
    """Everything administrative about one Windows installation (a machine, or a container's own view)."""

    build: WindowsBuild
    services: list[Service] = field(default_factory=_services)
    programs: list[str] = field(default_factory=list)
    """Paths of programs that run without being services, as those do that a service such as RKE2's starts."""
    groups: dict[str, list[str]] = field(
        default_factory=lambda: {
            "Administrators": ["Administrator"],
            "Users": ["NT AUTHORITY\\Authenticated Users"],
            "Remote Desktop Users": [],
        }
    )
    firewall: list[FirewallRule] = field(
        default_factory=lambda: [
            FirewallRule("kubelet", "kubelet", protocol="TCP", local_port="10250"),
            FirewallRule("OpenSSH-Server-In-TCP", "OpenSSH SSH Server (sshd)", protocol="TCP", local_port="22"),
            FirewallRule("RemoteDesktop-UserMode-In-TCP", "Remote Desktop", protocol="TCP", local_port="3389"),
            FirewallRule("CoreNet-Diag-ICMP4-EchoRequest-In", "Echo Request - ICMPv4-In", protocol="ICMPv4"),
            FirewallRule("CoreNet-Diag-ICMP6-EchoRequest-In", "Echo Request - ICMPv6-In", protocol="ICMPv6"),
        ]
    )
    defender: Defender = field(default_factory=Defender)
    hns: Hns = field(default_factory=Hns)
    machine_environment: dict[str, str] = field(default_factory=dict)
    """Variables set for the whole machine; they survive a restart."""
    domain: str = ""
    """The Active Directory domain it is a member of."""
    registry: dict[str, dict[str, str | int]] = field(default_factory=_registry)
    installed: Callable[[], WindowsBuild] | None = None
    """What is installed there, where that is not the build that it passes for."""

    def registry_key(self, path: str) -> dict[str, str | int] | None:
        """The values of a registry key, written in any of the usual ways."""
        plain = path.replace("Registry::", "").replace("HKEY_LOCAL_MACHINE", "HKLM").replace("HKLM:", "HKLM")
        plain = plain.replace("/", "\\").rstrip("\\").lower()
        if plain == CURRENT_VERSION.lower():
            return _current_version(self.installed() if self.installed else self.build)
        return next((values for name, values in self.registry.items() if name.lower() == plain), None)

    def service(self, name: str) -> Service | None:
        """A service by its name."""
        return next((service for service in self.services if service.name.lower() == name.lower()), None)

    def admits(self, protocol: str, port: int, *, without_added: bool = False) -> bool:
        """Whether the firewall lets an inbound packet through: a rule must allow it, and none may block it."""
        rules = [rule for rule in self.firewall if rule.covers(protocol, port) and not (rule.added and without_added)]
        return any(rule.action == "Allow" for rule in rules) and not any(rule.action == "Block" for rule in rules)

    def group(self, name: str) -> str | None:
        """A local group's true name."""
        return next((group for group in self.groups if group.lower() == name.lower()), None)
