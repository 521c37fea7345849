"""A simulated Active Directory domain: group managed service accounts, and the shares of one file server."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from winready_sandbox.machine import errors
from winready_sandbox.machine.files import OPEN_ACL
from winready_sandbox.machine.tree import Directory

READ_ACL = {"Everyone": "r"}


@dataclass
class Share:
    """A shared folder and the accounts that may use it."""

    accounts: set[str] = field(default_factory=set)
    root: Directory = field(default_factory=lambda: Directory(fold=True, acl=OPEN_ACL))
    offline: bool = False
    """The server knows it and cannot serve it."""


@dataclass
class DomainDefects:
    """Ways in which a domain can be broken."""

    anybody_is_let_in: bool = False
    """Shares do not ask who comes."""
    let_in_after: float = 0.0
    """Cluster seconds after the first of them from which shares let every visitor in (0: never)."""
    members_are_let_in: bool = False
    """Shares ask who comes, and let every account of the domain in."""
    read_only: bool = False
    """Shares take no writes."""
    controller_down: bool = False
    one_session: bool = False
    """The domain keeps one session for an account: whoever logs on last ends those of the others."""


@dataclass
class Domain:
    """What containers with a credential spec can log on to."""

    name: str
    netbios: str
    accounts: tuple[str, ...] = ()
    server: str = "fileserver"
    server_address: str = ""
    shares: dict[str, Share] = field(default_factory=dict)
    defects: DomainDefects = field(default_factory=DomainDefects)
    sessions: dict[str, str] = field(default_factory=dict)
    """The container that logged on last, by account."""
    _opened_at: float | None = None

    def admits(self, spec: CredentialSpec, container: str) -> bool:
        """Whether a container with a credential spec is somebody to the domain."""
        known = self.name.lower() == spec.domain.lower() and spec.account in self.accounts
        if not known or self.defects.controller_down:
            return False
        return not self.defects.one_session or self.sessions.get(spec.account) == container

    def share(self, server: str, name: str, account: str, now: float = 0.0) -> Directory:
        """A share as an account reaches it; an empty account is nobody."""
        known = {self.server, f"{self.server}.{self.name}".lower(), self.server_address}
        share = self.shares.get(name.lower())
        if server.lower() not in known or share is None or self.defects.controller_down:
            raise errors.NetworkPathNotFound(f"\\\\{server}\\{name}")
        if share.offline:
            raise errors.NetworkNameGone(f"\\\\{server}\\{name}")
        member = bool(account) and self.defects.members_are_let_in
        if account.lower() not in share.accounts and not member and not self._lets_anybody_in(now):
            raise errors.AccessDenied(f"\\\\{server}\\{name}")
        share.root.acl = READ_ACL if self.defects.read_only else OPEN_ACL
        return share.root

    def _lets_anybody_in(self, now: float) -> bool:
        self._opened_at = now if self._opened_at is None else self._opened_at
        return self.defects.anybody_is_let_in or 0 < self.defects.let_in_after < now - self._opened_at


def new_domain(server_address: str) -> Domain:
    """The domain of a sandbox: two gMSAs, ``webapp`` and ``backup``, each with a share that is not for the other."""
    shares = {"webapp": Share({"webapp"}), "finance": Share({"backup"})}
    return Domain("sandbox.test", "SANDBOX", ("webapp", "backup"), server_address=server_address, shares=shares)


@dataclass(frozen=True)
class CredentialSpec:
    """The part of a gMSA credential spec that decides who the container is to the domain."""

    domain: str
    netbios: str
    account: str

    @classmethod
    def parse(cls, spec: dict[str, Any]) -> CredentialSpec:
        """Read the JSON of a credential spec; raises ValueError when it is not one."""
        join = spec.get("DomainJoinConfig")
        if not isinstance(join, dict) or not join.get("DnsName"):
            raise ValueError("the credential spec has no DomainJoinConfig.DnsName")
        return cls(str(join["DnsName"]), str(join.get("NetBiosName", "")), str(join.get("MachineAccountName", "")))

    def contents(self) -> dict[str, Any]:
        """The whole of it, as New-CredentialSpec writes it."""
        scopes = [{"Name": self.account, "Scope": scope} for scope in (self.netbios, self.domain)]
        return {
            "CmsPlugins": ["ActiveDirectory"],
            "ActiveDirectoryConfig": {"GroupManagedServiceAccounts": scopes},
            "DomainJoinConfig": {
                "DnsName": self.domain,
                "DnsTreeName": self.domain,
                "Guid": "244818ae-87ac-4fcd-92ec-e79e5252348a",
                "MachineAccountName": self.account,
                "NetBiosName": self.netbios,
                "Sid": "S-1-5-21-2126449477-2524075714-3094792973",
            },
        }
