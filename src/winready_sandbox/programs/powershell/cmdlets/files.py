"""Cmdlets on files, directories and registry paths."""

from __future__ import annotations

import datetime
import hashlib
from typing import Any

from winready_sandbox.machine.errors import FileError, NotFound
from winready_sandbox.machine.tree import Directory, File, Node
from winready_sandbox.programs.powershell.binding import Cmdlet, Invocation
from winready_sandbox.programs.powershell.values import ITEM, PSObject, as_list, to_text

_REGISTRY = ("hklm:", "hkcu:", "hkey_", "registry::")


def is_registry(path: str) -> bool:
    """Does the path lead into the registry?"""
    return path.lower().startswith(_REGISTRY)


def _paths(call: Invocation) -> list[str]:
    return [to_text(each) for each in as_list(call.get("Path"))]


def _missing(call: Invocation, path: str, error: FileError | None = None) -> None:
    full = path if is_registry(path) else call.session.process.files.absolute(path, call.session.cwd)
    if error is not None and not isinstance(error, NotFound):
        text = f"Access to the path '{full}' is denied." if error.code == 5 else error.windows
        call.error(text, f"{type(error).__name__}", "PermissionDenied" if error.code == 5 else "WriteError")
        return
    call.error(f"Cannot find path '{full}' because it does not exist.", "PathNotFound", "ObjectNotFound")


def item(full: str, node: Node) -> PSObject:
    """A file or directory as an object."""
    folder, _, name = full.rpartition("\\")
    is_directory = isinstance(node, Directory)
    modified = datetime.datetime.fromtimestamp(int(node.mtime))
    properties: dict[str, Any] = {
        "Mode": "d-----" if is_directory else "-a----",
        "LastWriteTime": modified,
        "Length": node.size if isinstance(node, File) else None,
        "Name": name or full,
        "FullName": full,
        "DirectoryName": folder,
        "Extension": f".{name.rpartition('.')[2]}" if "." in name else "",
        "BaseName": name.rpartition(".")[0] if "." in name else name,
        "Exists": True,
        "PSIsContainer": is_directory,
        "CreationTime": modified,
    }
    kind = "System.IO.DirectoryInfo" if is_directory else "System.IO.FileInfo"
    return PSObject(kind, properties, shown=("Mode", "LastWriteTime", "Length", "Name"))


async def get_content(call: Invocation) -> None:
    """Lines of files."""
    process = call.session.process
    for path in _paths(call):
        try:
            data = process.files.read(path, call.session.cwd, who=process.identity)
        except FileError as error:
            _missing(call, path, error)
            continue
        call.session.account.check(len(data) + data.count(b"\n") * ITEM)
        text = data.decode("utf-16" if data.startswith(b"\xff\xfe") else "utf-8-sig", "replace")
        for line in text.replace("\r\n", "\n").removesuffix("\n").split("\n") if text else []:
            call.emit(line)


async def set_content(call: Invocation) -> None:
    """Write files."""
    text = "".join(f"{to_text(value)}\r\n" for value in call.items("Value"))
    ascii_only = call.text("Encoding", "ascii" if call.session.desktop else "utf8").lower() == "ascii"
    data = text.encode("ascii" if ascii_only else "utf-8", "replace")
    for path in _paths(call):
        try:
            call.session.process.files.write(path, data, call.session.cwd, who=call.session.process.identity)
        except FileError as error:
            _missing(call, path, error)


async def get_filehash(call: Invocation) -> None:
    """The SHA-256 of files."""
    process = call.session.process
    for path in _paths(call):
        try:
            data = process.files.read(path, call.session.cwd, who=process.identity)
        except FileError as error:
            _missing(call, path, error)
            continue
        full = process.files.absolute(path, call.session.cwd)
        properties = {"Algorithm": "SHA256", "Hash": hashlib.sha256(data).hexdigest().upper(), "Path": full}
        call.emit(PSObject("Microsoft.Powershell.Utility.FileHash", properties, shown=tuple(properties)))


async def test_path(call: Invocation) -> None:
    """Is there something at this path?"""
    for path in _paths(call):
        call.emit(call.session.process.files.exists(path, call.session.cwd))


async def get_childitem(call: Invocation) -> None:
    """What is in a directory."""
    process, cwd = call.session.process, call.session.cwd
    for path in _paths(call) or ["."]:
        try:
            node = process.files.node(path, cwd, who=process.identity)
            full = process.files.absolute(path, cwd)
            if not isinstance(node, Directory):
                call.emit(item(full, node))
                continue
            entries = process.files.list(path, cwd, who=process.identity)
        except FileError as error:
            _missing(call, path, error)
            continue
        for name, below in entries:
            call.emit(item(full.rstrip("\\") + f"\\{name}", below))


async def get_itemproperty(call: Invocation) -> None:
    """Values of a registry key."""
    for path in _paths(call):
        key = call.session.process.container.host.registry_key(path)
        if key is None:
            _missing(call, path)
            continue
        names = [to_text(each) for each in as_list(call.get("Name"))]
        if names:
            chosen = {name: value for name, value in key.items() if name.lower() in [each.lower() for each in names]}
            if not chosen:
                text = f"Property {names[0]} does not exist at path {path}."
                call.error(text, "System.Management.Automation.PSArgumentException", "InvalidArgument")
                continue
            key = chosen
        call.emit(PSObject("System.Management.Automation.PSCustomObject", {**key, "PSPath": path}))


CMDLETS = [
    Cmdlet("Get-Content", get_content, ("Path",)),
    Cmdlet("Set-Content", set_content, ("Path", "Value"), (), ("Encoding",)),
    Cmdlet("Get-FileHash", get_filehash, ("Path",)),
    Cmdlet("Test-Path", test_path, ("Path",)),
    Cmdlet("Get-ChildItem", get_childitem, ("Path",)),
    Cmdlet("Get-ItemProperty", get_itemproperty, ("Path", "Name")),
]
