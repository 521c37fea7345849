"""Who a process runs as, and which groups that makes it a member of."""

from __future__ import annotations

from dataclasses import dataclass, field

from winready_sandbox.machine.errors import OS


class UnknownUser(Exception):
    """No account of that name can log on here."""

    def __init__(self, name: str) -> None:
        super().__init__(f"The user name or password is incorrect: {name!r}")
        self.name = name


@dataclass(frozen=True)
class Identity:
    """An account as access decisions see it."""

    name: str
    domain: str = ""
    groups: frozenset[str] = field(default_factory=frozenset)
    uid: int = 0
    gid: int = 0
    sid: str = ""

    @property
    def qualified(self) -> str:
        """`domain\\name`, the way whoami prints it."""
        return f"{self.domain}\\{self.name}" if self.domain else self.name

    @property
    def administrator(self) -> bool:
        """May this account change the machine?"""
        return bool(self.groups & {"Administrators", "SYSTEM"}) or (not self.groups and self.uid == 0)


_LONGEST_ACCOUNT = 20
_USER_GROUPS = frozenset({"Users", "Authenticated Users", "Everyone"})
_ADMIN_GROUPS = _USER_GROUPS | {"Administrators"}

CONTAINER_ADMINISTRATOR = Identity("ContainerAdministrator", "User Manager", _ADMIN_GROUPS, sid="S-1-5-93-2-1")
CONTAINER_USER = Identity("ContainerUser", "User Manager", _USER_GROUPS, sid="S-1-5-93-2-2")
SYSTEM = Identity("SYSTEM", "NT AUTHORITY", _ADMIN_GROUPS | {"SYSTEM"}, sid="S-1-5-18")
LOCAL_SERVICE = Identity("LOCAL SERVICE", "NT AUTHORITY", _USER_GROUPS | {"LOCAL SERVICE"}, sid="S-1-5-19")
NETWORK_SERVICE = Identity("NETWORK SERVICE", "NT AUTHORITY", _USER_GROUPS | {"NETWORK SERVICE"}, sid="S-1-5-20")
ROOT = Identity("root")

_CONTAINER_ACCOUNTS = {
    "containeradministrator": CONTAINER_ADMINISTRATOR,
    "containeruser": CONTAINER_USER,
    "nt authority\\system": SYSTEM,
    "nt authority\\network service": NETWORK_SERVICE,
    "nt authority\\networkservice": NETWORK_SERVICE,
    "nt authority\\local service": LOCAL_SERVICE,
    "nt authority\\localservice": LOCAL_SERVICE,
}
_HOST_ACCOUNTS = {key: value for key, value in _CONTAINER_ACCOUNTS.items() if key.startswith("nt authority")}


def windows_identity(name: str, *, host: bool = False) -> Identity:
    """The account behind a Windows user name, in a container or (HostProcess) on the node itself.

    HostProcess compares the domain part with ``NT AUTHORITY`` by letter case, as hcsshim does.
    """
    plain = name.strip()
    for prefix in ("User Manager\\", ".\\"):
        if plain.lower().startswith(prefix.lower()):
            plain = plain[len(prefix) :]
    table = _HOST_ACCOUNTS if host else _CONTAINER_ACCOUNTS
    found = table.get(plain.lower())
    if found is None or (host and plain.partition("\\")[0] != "NT AUTHORITY"):
        raise UnknownUser(name)
    return found


def group_member(account: str, computer: str, group: str) -> Identity:
    """An account that the runtime makes for one HostProcess container whose user name is that of a local group."""
    return Identity(account[:_LONGEST_ACCOUNT], computer, _USER_GROUPS | {group})


def linux_identity(name: str, passwd: str) -> Identity:
    """The account behind `user`, `uid`, `user:group` or `uid:gid`, looked up in the text of /etc/passwd."""
    user, _, group = (name or "0").partition(":")
    accounts = [line.split(":") for line in passwd.splitlines() if line.count(":") >= 3]
    for entry in accounts:
        if user in (entry[0], entry[2]):
            uid, gid, login = int(entry[2]), int(entry[3]), entry[0]
            break
    else:
        if not user.isdigit():
            raise UnknownUser(name)
        uid, gid, login = int(user), 0, ""
    if group.isdigit():
        gid = int(group)
    return Identity(login, uid=uid, gid=gid)


def identity(os: OS, name: str, *, host: bool = False, passwd: str = "") -> Identity:
    """The account behind a user name on either OS."""
    return windows_identity(name, host=host) if os == "windows" else linux_identity(name, passwd)
