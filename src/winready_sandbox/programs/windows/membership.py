"""nltest, klist: what a container is to a domain."""

from __future__ import annotations

from datetime import timedelta

from winready_sandbox.clock import utc_now
from winready_sandbox.machine.domain import Domain
from winready_sandbox.machine.process import Process, Program

LIFE, RENEWAL = timedelta(hours=10), timedelta(days=7)
"""How long a ticket is good for, and may be renewed, in a domain that nobody told otherwise."""


async def nltest(process: Process) -> int:
    """The container's place in a domain, as its credential spec says."""
    spec = process.container.credential_spec
    domain = process.container.machine.domain
    action = process.argv[1].lower() if len(process.argv) > 1 else ""
    if action == "/parentdomain":
        if spec is None:
            process.err("Getting parent domain failed: Status = 1355 0x54b ERROR_NO_SUCH_DOMAIN\r\n")
            return 1355
        process.out(f"{spec.domain}. (1)\r\nThe command completed successfully\r\n")
        return 0
    if action.startswith(("/query", "/sc_verify", "/sc_reset")):
        if spec is None:
            process.err("I_NetLogonControl failed: Status = 1717 0x6b5 RPC_S_UNKNOWN_IF\r\n")
            return 1717
        if domain is None or not process.container.account:
            process.out("Flags: 0\r\nTrusted DC Name \r\n")
            process.out("Trusted DC Connection Status Status = 1311 0x51f ERROR_NO_LOGON_SERVERS\r\n")
            process.out("The command completed successfully\r\n")
            return 0
        process.out(f"Flags: 30 HAS_IP  HAS_TIMESERV \r\nTrusted DC Name \\\\dc1.{domain.name} \r\n")
        process.out("Trusted DC Connection Status Status = 0 0x0 NERR_Success\r\n")
        if action.startswith("/sc_verify"):
            process.out("Trust Verification Status = 0 0x0 NERR_Success\r\n")
        process.out("The command completed successfully\r\n")
        return 0
    process.out("Usage: nltest [/OPTIONS]\r\n")
    return 1


async def klist(process: Process) -> int:
    """The Kerberos tickets of the container's logon session; `klist get` asks a controller for one more."""
    words, container = process.argv[1:], process.container
    asked = words[1] if len(words) == 2 and words[0].lower() == "get" else ""
    if words and not asked:
        process.out("Usage: klist [-lh <LogonId.HighPart>] [-li <LogonId.LowPart>] tickets | tgt | purge | get\r\n")
        return 1
    process.out(f"\r\nCurrent LogonId is 0:0x{int(container.id[:6], 16):x}\r\n")
    if asked and not container.account:
        sub, code, why = _NO_SERVERS if container.credential_spec is not None else _NO_CREDENTIALS
        process.out(f"Error calling API LsaCallAuthenticationPackage (GetTicket substatus): {sub}\r\n\r\n")
        process.out(f"klist failed with {code}: {why}\r\n")
        return 1
    if asked:
        container.tickets = list(dict.fromkeys([*container.tickets, asked]))
        process.out(f"A ticket to {asked} has been retrieved successfully.\r\n")
    process.out(f"\r\nCached Tickets: ({len(container.tickets)})\r\n")
    for number, server in enumerate(container.tickets):
        process.out(f"\r\n#{number}>\t" + "\r\n\t".join(_ticket(process, server)) + "\r\n")
    return 0


_NO_SERVERS = (
    "0x51f",
    "0xc000005e/-1073741730",
    "There are currently no logon servers available to service the logon request.",
)
_NO_CREDENTIALS = (
    "0x520",
    "0x8009030e/-2146893042",
    "No credentials are available in the security package",
)


def _ticket(process: Process, server: str) -> list[str]:
    container = process.container
    spec, domain = container.credential_spec, container.machine.domain
    if spec is None or domain is None:
        return []
    client = _another(domain, spec.account) if container.machine.defects.tickets_of_another else spec.account
    realm, now = domain.name.upper(), utc_now()
    times = {"Start Time:": now, "End Time:  ": now + LIFE, "Renew Time:": now + RENEWAL}
    return [
        f"Client: {client}$ @ {realm}",
        f"Server: {server}/{realm} @ {realm}",
        "KerbTicket Encryption Type: AES-256-CTS-HMAC-SHA1-96",
        "Ticket Flags 0x40e10000 -> forwardable renewable initial pre_authent name_canonicalize ",
        *(f"{what} {when.month}/{when.day}/{when.year} {when:%H:%M:%S} (local)" for what, when in times.items()),
        "Session Key Type: AES-256-CTS-HMAC-SHA1-96",
        "Cache Flags: 0x1 -> PRIMARY ",
        f"Kdc Called: dc1.{domain.name}",
    ]


def _another(domain: Domain, account: str) -> str:
    return next(name for name in domain.accounts if name != account)


PROGRAMS: dict[str, Program] = {"nltest.exe": nltest, "klist.exe": klist}
