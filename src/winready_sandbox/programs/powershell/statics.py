"""Static members of types that need the machine: environment, files, names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from winready_sandbox.machine.errors import FileError
from winready_sandbox.network.endpoint import NetworkError
from winready_sandbox.programs.powershell import interop, members
from winready_sandbox.programs.powershell.types import plain_name, version
from winready_sandbox.programs.powershell.values import NetArray, PowerShellError, PSObject, as_list, to_text

if TYPE_CHECKING:
    from winready_sandbox.programs.powershell.session import Session


def allocated(session: Session, value: Any) -> Any:
    """A new object; a large array takes memory of the process, and fails where the process may not have more."""
    if isinstance(value, NetArray):
        session.process.allocate(value.size)
    return value


async def static(session: Session, type_text: str, name: str, arguments: list[Any] | None) -> Any:
    """`[type]::name` and `[type]::name(...)`."""
    wanted, member = plain_name(type_text), name.lower()
    if wanted in session.native_types and arguments is not None:
        return interop.call(session, wanted, name, arguments)
    if wanted == "environment":
        found = _environment(session, member, arguments or [])
        if found is not NotImplemented:
            return found
    if wanted in ("io.file", "io.directory", "io.path"):
        return _files(session, wanted, member, name, [to_text(each) for each in arguments or []], arguments or [])
    if wanted in ("net.dns", "dns"):
        return await _names(session, name, arguments or [])
    if wanted == "security.principal.windowsidentity" and member == "getcurrent":
        who = session.process.identity
        return PSObject("System.Security.Principal.WindowsIdentity", {"Name": who.qualified if who else ""})
    if wanted == "runtime.interopservices.runtimeinformation":
        return f"Microsoft Windows {session.process.container.build.version}" if member == "osdescription" else None
    if wanted == "console" and member in ("writeline", "write"):
        session.process.out(to_text(arguments[0] if arguments else "") + ("\r\n" if member == "writeline" else ""))
        return None
    return allocated(session, members.static(type_text, name, arguments))


def _environment(session: Session, member: str, arguments: list[Any]) -> Any:
    container = session.process.container
    machine_wide = len(arguments) > 2 and to_text(arguments[2]).lower() == "machine"
    if len(arguments) > 1 and member == "getenvironmentvariable":
        machine_wide = to_text(arguments[1]).lower() == "machine"
    if member == "getenvironmentvariable":
        source = container.host.machine_environment if machine_wide else session.process.env
        return next((value for key, value in source.items() if key.lower() == to_text(arguments[0]).lower()), None)
    if member == "setenvironmentvariable":
        key, value = to_text(arguments[0]), to_text(arguments[1])
        target = container.host.machine_environment if machine_wide else session.process.env
        if value:
            target[key] = value
        else:
            target.pop(key, None)
        return None
    values: dict[str, Any] = {
        "machinename": container.computer_name,
        "username": session.process.identity.name if session.process.identity else "",
        "processorcount": container.machine.cores,
        "is64bitoperatingsystem": True,
        "osversion": PSObject(
            "System.OperatingSystem",
            {
                "Platform": "Win32NT",
                "Version": version(f"10.0.{container.build.number}.0"),
                "VersionString": f"Microsoft Windows NT 10.0.{container.build.number}.0",
            },
        ),
    }
    return values.get(member, NotImplemented)


def _files(session: Session, wanted: str, member: str, name: str, words: list[str], arguments: list[Any]) -> Any:
    files, who = session.process.files, session.process.identity
    try:
        if member == "exists":
            node_is_dir = files.is_dir(words[0], session.cwd)
            return node_is_dir if wanted == "io.directory" else files.exists(words[0], session.cwd) and not node_is_dir
        if member == "readalltext":
            return files.read(words[0], session.cwd, who=who).decode("utf-8-sig", "replace")
        if member == "readalllines":
            return files.read(words[0], session.cwd, who=who).decode("utf-8-sig", "replace").splitlines()
        if member == "readallbytes":
            return list(files.read(words[0], session.cwd, who=who))
        if member in ("writealltext", "appendalltext"):
            files.write(words[0], words[1].encode(), session.cwd, who=who, append=member.startswith("append"))
            return None
        if member == "writeallbytes":
            files.write(words[0], bytes(as_list(arguments[1])), session.cwd, who=who)
            return None
        if member == "delete":
            files.remove(words[0], session.cwd, who=who)
            return None
        if member == "createdirectory":
            files.mkdir(words[0], session.cwd, who=who, parents=True)
            return PSObject("System.IO.DirectoryInfo", {"FullName": files.absolute(words[0], session.cwd)})
    except FileError as error:
        reason = _dotnet(error, files.absolute(words[0], session.cwd))
        raise PowerShellError(
            f'Exception calling "{name}" with "{len(words)}" argument(s): "{reason}"',
            type(error).__name__,
            "MethodInvocationException",
        ) from None
    paths = {
        "combine": lambda: "\\".join(word.rstrip("\\") for word in words),
        "getfilename": lambda: words[0].replace("/", "\\").rpartition("\\")[2],
        "getdirectoryname": lambda: words[0].replace("/", "\\").rpartition("\\")[0],
        "gettemppath": lambda: session.process.env.get("TEMP", "C:\\Windows\\Temp") + "\\",
    }
    if member in paths:
        return paths[member]()
    raise PowerShellError(
        f"Method invocation failed because [System.{wanted}] does not contain a method named '{name}'.",
        "MethodNotFound",
    )


def _dotnet(error: FileError, path: str) -> str:
    words = {
        2: f"Could not find file '{path}'.",
        3: f"Could not find a part of the path '{path}'.",
        5: f"Access to the path '{path}' is denied.",
    }
    return words.get(error.code, error.windows)


async def _names(session: Session, name: str, arguments: list[Any]) -> Any:
    endpoint = session.process.container.endpoint
    if name.lower() == "gethostname":
        return session.process.container.hostname
    if name.lower() not in ("gethostaddresses", "gethostentry", "resolve"):
        raise PowerShellError(
            f"Method invocation failed because [System.Net.Dns] does not contain a method named '{name}'.",
            "MethodNotFound",
        )
    try:
        addresses = await endpoint.resolve(to_text(arguments[0])) if endpoint else []
    except NetworkError:
        addresses = []
    if not addresses:
        raise PowerShellError(
            f'Exception calling "{name}" with "1" argument(s): "No such host is known"',
            "SocketException",
            "MethodInvocationException",
        )
    found = [PSObject("System.Net.IPAddress", {"IPAddressToString": each}, text=each) for each in addresses]
    if name.lower() == "gethostaddresses":
        return found
    return PSObject("System.Net.IPHostEntry", {"HostName": to_text(arguments[0]), "AddressList": found})
