"""net, reg, icacls."""

from __future__ import annotations

import itertools

from winready_sandbox.machine.errors import FileError
from winready_sandbox.machine.process import Process, Program

_DENIED = "System error 5 has occurred.\r\n\r\nAccess is denied.\r\n\r\n"
_DONE = "The command completed successfully.\r\n\r\n"


def _administrator(process: Process) -> bool:
    return process.identity is None or process.identity.administrator


async def net(process: Process) -> int:
    """`net localgroup`."""
    words = process.argv[1:]
    if words[:1] and words[0].lower() == "localgroup":
        return _local_group(process, words[1:])
    process.err("The syntax of this command is:\r\n\r\nNET\r\n    [ LOCALGROUP ]\r\n")
    return 1


def _local_group(process: Process, words: list[str]) -> int:
    host = process.container.host
    names = [word for word in words if not word.startswith("/")]
    switches = {word.lower() for word in words if word.startswith("/")}
    if not names:
        process.out(f"\r\nAliases for \\\\{process.container.computer_name}\r\n\r\n{'-' * 79}\r\n")
        process.out("".join(f"*{group}\r\n" for group in sorted(host.groups)) + _DONE)
        return 0
    group = host.group(names[0])
    if switches and not _administrator(process):
        process.err(_DENIED)
        return 2
    if "/add" in switches and len(names) == 1:
        if group is not None:
            process.err("System error 1379 has occurred.\r\n\r\nThe specified local group already exists.\r\n\r\n")
            return 2
        host.groups[names[0]] = []
    elif group is None:
        process.err("System error 1376 has occurred.\r\n\r\nThe specified local group does not exist.\r\n\r\n")
        return 2
    elif "/delete" in switches and len(names) == 1:
        del host.groups[group]
    elif "/add" in switches:
        host.groups[group] += names[1:]
    elif "/delete" in switches:
        host.groups[group] = [member for member in host.groups[group] if member not in names[1:]]
    else:
        process.out(f"Alias name     {group}\r\nComment        \r\n\r\nMembers\r\n\r\n{'-' * 79}\r\n")
        process.out("".join(f"{member}\r\n" for member in host.groups[group]))
    process.out(_DONE)
    return 0


async def reg(process: Process) -> int:
    """`reg query`."""
    words = process.argv[1:]
    if len(words) < 2 or words[0].lower() != "query":
        process.err('ERROR: Invalid syntax.\r\nType "REG /?" for usage.\r\n')
        return 1
    path = words[1]
    options = {flag.lower(): value for flag, value in itertools.pairwise(words) if flag.startswith("/")}
    key = process.container.host.registry_key(path)
    values = {} if key is None else key
    if "/v" in options:
        values = {name: value for name, value in values.items() if name.lower() == options["/v"].lower()}
    if key is None or ("/v" in options and not values):
        process.err("ERROR: The system was unable to find the specified registry key or value.\r\n")
        return 1
    process.out(f"\r\n{path.replace('HKLM', 'HKEY_LOCAL_MACHINE')}\r\n")
    for name, value in values.items():
        kind, shown = ("REG_DWORD", hex(value)) if isinstance(value, int) else ("REG_SZ", value)
        process.out(f"    {name}    {kind}    {shown}\r\n")
    process.out("\r\n")
    return 0


_RIGHTS = {"rwd": "(F)", "rd": "(RX,AD)", "r": "(RX)", "rw": "(M)"}


async def icacls(process: Process) -> int:
    """Access lists: show them, or `/grant name:rights`."""
    words = process.argv[1:]
    if not words:
        return 87
    try:
        place = process.files.find(words[0], process.cwd, who=process.identity)
        if place.node is None:
            raise FileNotFoundError
        lowered = [word.lower() for word in words]
        if "/grant" in lowered:
            node = process.files.change(words[0], process.cwd, who=process.identity)
            name, _, rights = words[lowered.index("/grant") + 1].partition(":")
            full = any(letter in rights.upper() for letter in ("F", "M", "W"))
            group = name.rpartition("\\")[2]
            node.acl = {**place.acl, group: "rwd" if full else "r"}
            process.out(f"processed file: {words[0]}\r\n")
        else:
            for group, rights in place.acl.items():
                owner = "NT AUTHORITY" if group in ("SYSTEM", "Authenticated Users") else "BUILTIN"
                process.out(f"{words[0]} {owner}\\{group}:{_RIGHTS.get(rights, '(R)')}\r\n")
    except FileNotFoundError:
        process.err(f"{words[0]}: The system cannot find the file specified.\r\n")
        process.out("Successfully processed 0 files; Failed processing 1 files\r\n")
        return 2
    except FileError as error:
        process.err(f"{words[0]}: {error.windows}\r\n")
        process.out("Successfully processed 0 files; Failed processing 1 files\r\n")
        return error.code
    process.out("Successfully processed 1 files; Failed processing 0 files\r\n")
    return 0


PROGRAMS: dict[str, Program] = {
    "net.exe": net,
    "reg.exe": reg,
    "icacls.exe": icacls,
}
