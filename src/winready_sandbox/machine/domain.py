"""A simulated Active Directory domain: group managed service accounts, and the shares of one file server."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from winready_sandbox.machine import errors
from winready_sandbox.machine.files import OPEN_ACL
from winready_sandbox.machine.tree import Directory


@dataclass
class Share:
    """A shared folder and the accounts that may use it."""

    accounts: set[str] = field(default_factory=set)
    root: Directory = field(default_factory=lambda: Directory(fold=True, acl=OPEN_ACL))


@dataclass
class DomainDefects:
    """Ways in which a domain can be broken."""

    anybody_is_let_in: bool = False
    """Shares do not ask who comes."""
    controller_down: bool = False


@dataclass
class Domain:
    """What containers with a credential spec can log on to."""

    name: str
    netbios: str
    accounts: set[str] = field(default_factory=set)
    server: str = "fileserver"
    server_address: str = ""
    shares: dict[str, Share] = field(default_factory=dict)
    defects: DomainDefects = field(default_factory=DomainDefects)

    def share(self, server: str, name: str, account: str) -> Directory:
        """A share as an account reaches it; an empty account is nobody."""
        known = {self.server, f"{self.server}.{self.name}".lower(), self.server_address}
        share = self.shares.get(name.lower())
        if server.lower() not in known or share is None or self.defects.controller_down:
            raise errors.NetworkPathNotFound(f"\\\\{server}\\{name}")
        if account.lower() not in share.accounts and not self.defects.anybody_is_let_in:
            raise errors.AccessDenied(f"\\\\{server}\\{name}")
        return share.root


def new_domain(server_address: str) -> Domain:
    """The domain of a sandbox: one gMSA, ``webapp``, with a share of its own beside one that is not for it."""
    shares = {"webapp": Share({"webapp"}), "finance": Share({"backup"})}
    return Domain("sandbox.test", "SANDBOX", {"webapp"}, server_address=server_address, shares=shares)


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
