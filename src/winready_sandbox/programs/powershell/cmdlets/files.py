"""Cmdlets on files, directories and registry paths."""

from __future__ import annotations

import datetime
import fnmatch
from typing import Any

from winready_sandbox.machine.errors import FileError, NotFound
from winready_sandbox.machine.tree import Directory, File, Node
from winready_sandbox.programs.powershell import display
from winready_sandbox.programs.powershell.binding import Cmdlet, Invocation
from winready_sandbox.programs.powershell.values import PSObject, as_list, to_number, to_text

_REGISTRY = ("hklm:", "hkcu:", "hkey_", "registry::")


def is_registry(path: str) -> bool:
    """Does the path lead into the registry?"""
    return path.lower().startswith(_REGISTRY)


def _paths(call: Invocation) -> list[str]:
    value = call.get("LiteralPath", call.get("Path"))
    if value is None:
        value = [each.get("FullName") or each if isinstance(each, PSObject) else each for each in call.inputs or []]
    return [to_text(each) for each in as_list(value)]


def _expanded(call: Invocation, path: str) -> list[str]:
    files, cwd = call.session.process.files, call.session.cwd
    plain = path.replace("/", "\\")
    if not any(char in plain for char in "*?"):
        return [path]
    folder, slash, name = plain.rpartition("\\")
    try:
        entries = files.list(folder + slash or ".", cwd, who=call.session.process.identity)
    except FileError:
        return []
    return [f"{folder}{slash}{entry}" for entry, _ in entries if fnmatch.fnmatchcase(entry.lower(), name.lower())]


def _all_paths(call: Invocation, default: str = "") -> list[str]:
    given = _paths(call) or ([default] if default else [])
    return [found for pattern in given for found in _expanded(call, pattern)]


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
        "Length": len(node.data) if isinstance(node, File) else None,
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
    for path in _all_paths(call):
        try:
            data = process.files.read(path, call.session.cwd, who=process.identity)
        except FileError as error:
            _missing(call, path, error)
            continue
        codec = "utf-16" if data.startswith(b"\xff\xfe") else "utf-8-sig"
        text = data.decode(codec, "replace")
        if call.on("Raw"):
            call.emit(text)
            continue
        lines = text.replace("\r\n", "\n").removesuffix("\n").split("\n") if text else []
        first = call.get("TotalCount", call.get("Head"))
        lines = lines[: int(to_number(first))] if first is not None else lines
        lines = lines[-int(to_number(call.get("Tail"))) :] if call.get("Tail") is not None else lines
        for line in lines:
            call.emit(line)


def _encoded(call: Invocation, text: str, default: str) -> bytes:
    encoding = call.text("Encoding", default).lower()
    if encoding in ("unicode", "utf16"):
        return b"\xff\xfe" + text.encode("utf-16-le")
    if encoding == "utf8" and call.session.desktop:
        return b"\xef\xbb\xbf" + text.encode()
    return text.encode("utf-8", "replace") if encoding.startswith("utf") else text.encode("ascii", "replace")


async def _write(call: Invocation, values: list[Any], *, append: bool, default: str, shown: bool) -> None:
    lines = display.lines(values) if shown else [to_text(value) for value in values]
    end = "" if call.on("NoNewline") else "\r\n"
    text = "".join(f"{line}{end}" for line in lines)
    for path in [to_text(each) for each in as_list(call.get("LiteralPath", call.get("Path", call.get("FilePath"))))]:
        try:
            call.session.process.files.write(
                path, _encoded(call, text, default), call.session.cwd, who=call.session.process.identity, append=append
            )
        except FileError as error:
            full = call.session.process.files.absolute(path, call.session.cwd)
            if isinstance(error, NotFound):
                call.error(
                    f"Could not find a part of the path '{full}'.",
                    "GetContentWriterDirectoryNotFoundError",
                    "ObjectNotFound",
                )
            else:
                _missing(call, path, error)


async def set_content(call: Invocation) -> None:
    """Write files."""
    await _write(
        call,
        call.items("Value"),
        append=False,
        default="utf8nobom" if not call.session.desktop else "ascii",
        shown=False,
    )


async def add_content(call: Invocation) -> None:
    """Append to files."""
    await _write(
        call,
        call.items("Value"),
        append=True,
        default="utf8nobom" if not call.session.desktop else "ascii",
        shown=False,
    )


async def out_file(call: Invocation) -> None:
    """Write the screen's view into a file."""
    default = "unicode" if call.session.desktop else "utf8nobom"
    await _write(call, call.items("InputObject"), append=call.on("Append"), default=default, shown=True)


async def test_path(call: Invocation) -> None:
    """Is there something at this path?"""
    for path in _paths(call):
        if is_registry(path):
            call.emit(call.session.process.container.host.registry_key(path) is not None)
            continue
        files, cwd = call.session.process.files, call.session.cwd
        found = any(files.exists(each, cwd) for each in _expanded(call, path))
        kind = call.text("PathType").lower()
        if found and kind:
            found = files.is_dir(path, cwd) == (kind == "container")
        call.emit(found)


async def get_childitem(call: Invocation) -> None:
    """What is in a directory."""
    process, cwd = call.session.process, call.session.cwd
    pattern = (call.text("Filter") or call.text("Include") or "*").lower()
    for path in _all_paths(call, "."):
        if path.lower().startswith("env:"):
            for key, value in sorted(process.env.items()):
                call.emit(PSObject("System.Collections.DictionaryEntry", {"Name": key, "Value": value}))
            continue
        try:
            node = process.files.node(path, cwd, who=process.identity)
            full = process.files.absolute(path, cwd)
            if not isinstance(node, Directory):
                call.emit(item(full, node))
                continue
            base = full.rstrip("\\")
            entries = (
                [
                    (each[len(base) + 1 :], below)
                    for each, below in process.files.walk(full, who=process.identity)
                    if each != full
                ]
                if call.on("Recurse")
                else process.files.list(path, cwd, who=process.identity)
            )
        except FileError as error:
            _missing(call, path, error)
            continue
        for name, below in entries:
            wanted = isinstance(below, Directory) or not call.on("Directory")
            wanted = wanted and not (call.on("File") and isinstance(below, Directory))
            if wanted and fnmatch.fnmatchcase(name.rpartition("\\")[2].lower(), pattern):
                call.emit(name if call.on("Name") else item(f"{base}\\{name}", below))


async def get_item(call: Invocation) -> None:
    """One file, directory or registry key."""
    for path in _paths(call):
        if is_registry(path):
            key = call.session.process.container.host.registry_key(path)
            if key is None:
                _missing(call, path)
            else:
                call.emit(PSObject("Microsoft.Win32.RegistryKey", {"Name": path, "Property": list(key)}))
            continue
        try:
            node = call.session.process.files.node(path, call.session.cwd, who=call.session.process.identity)
            call.emit(item(call.session.process.files.absolute(path, call.session.cwd), node))
        except FileError as error:
            _missing(call, path, error)


async def get_itemproperty(call: Invocation) -> None:
    """Values of a registry key."""
    for path in _paths(call):
        if not is_registry(path):
            await get_item(call)
            return
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
        value = PSObject("System.Management.Automation.PSCustomObject", {**key, "PSPath": path})
        call.emit(next(iter(key.values())) if call.name == "Get-ItemPropertyValue" else value)


async def set_itemproperty(call: Invocation) -> None:
    """Set a value of a registry key."""
    path = _paths(call)[0]
    who = call.session.process.identity
    key = call.session.process.container.host.registry_key(path)
    if key is None:
        _missing(call, path)
    elif who is not None and not who.administrator:
        call.error("Requested registry access is not allowed.", "System.Security.SecurityException", "PermissionDenied")
    else:
        key[call.text("Name")] = call.get("Value")


async def remove_item(call: Invocation) -> None:
    """Remove files and trees."""
    process = call.session.process
    for path in _all_paths(call):
        if path.lower().startswith("env:"):
            process.env.pop(path[4:], None)
            continue
        try:
            process.files.remove(
                path, call.session.cwd, who=process.identity, recursive=call.on("Recurse") or call.on("Force")
            )
        except FileError as error:
            _missing(call, path, error)


async def new_item(call: Invocation) -> None:
    """Make a file or directory."""
    process = call.session.process
    kind = "directory" if call.name == "mkdir" else call.text("ItemType", "file").lower()
    path = to_text(call.get("Path", ""))
    if call.get("Name") is not None:
        path = f"{path}\\{call.text('Name')}" if path else call.text("Name")
    files, cwd = process.files, call.session.cwd
    try:
        if kind.startswith("dir"):
            if files.exists(path, cwd) and not call.on("Force"):
                full = files.absolute(path, cwd)
                call.error(
                    f"An item with the specified name {full} already exists.", "DirectoryExist", "ResourceExists"
                )
                return
            files.mkdir(path, cwd, who=process.identity, parents=True)
        elif kind in ("symboliclink", "junction"):
            files.symlink(path, call.text("Value") or call.text("Target"), cwd, who=process.identity)
        else:
            if files.exists(path, cwd) and not call.on("Force"):
                call.error(f"The file '{files.absolute(path, cwd)}' already exists.", "NewItemIOError", "WriteError")
                return
            files.write(path, call.text("Value").encode(), cwd, who=process.identity)
        call.emit(item(files.absolute(path, cwd), files.node(path, cwd)))
    except FileError as error:
        _missing(call, path, error)


async def copy_item(call: Invocation) -> None:
    """Copy files."""
    process, cwd = call.session.process, call.session.cwd
    target = call.text("Destination")
    for path in _all_paths(call):
        goal = (
            f"{target}\\{path.replace('/', chr(92)).rpartition(chr(92))[2]}"
            if process.files.is_dir(target, cwd)
            else target
        )
        try:
            if call.name == "Move-Item":
                process.files.rename(path, goal, cwd, who=process.identity, replace=call.on("Force"))
            elif process.files.is_dir(path, cwd):
                process.files.mkdir(goal, cwd, who=process.identity, parents=True)
                if call.on("Recurse"):
                    _copy_tree(call, path, goal)
            else:
                process.files.write(
                    goal, process.files.read(path, cwd, who=process.identity), cwd, who=process.identity
                )
        except FileError as error:
            _missing(call, path, error)


def _copy_tree(call: Invocation, source: str, target: str) -> None:
    process, cwd = call.session.process, call.session.cwd
    for name, node in process.files.list(source, cwd, who=process.identity):
        if isinstance(node, Directory):
            process.files.mkdir(f"{target}\\{name}", cwd, who=process.identity, parents=True)
            _copy_tree(call, f"{source}\\{name}", f"{target}\\{name}")
        else:
            process.files.write(
                f"{target}\\{name}", process.files.read(f"{source}\\{name}", cwd), cwd, who=process.identity
            )


async def set_location(call: Invocation) -> None:
    """Change the current directory."""
    path = call.text("Path", call.session.process.env.get("USERPROFILE", "C:\\"))
    if not call.session.process.files.is_dir(path, call.session.cwd):
        _missing(call, path)
        return
    call.session.cwd = call.session.process.files.absolute(path, call.session.cwd)


async def get_location(call: Invocation) -> None:
    """The current directory."""
    call.emit(PSObject("System.Management.Automation.PathInfo", {"Path": call.session.cwd}, shown=("Path",)))


async def join_path(call: Invocation) -> None:
    """Two parts of a path as one."""
    call.emit(f"{call.text('Path').rstrip(chr(92) + '/')}\\{call.text('ChildPath').lstrip(chr(92) + '/')}")


async def split_path(call: Invocation) -> None:
    """Parts of a path."""
    folder, _, name = call.text("Path").replace("/", "\\").rpartition("\\")
    call.emit(name if call.on("Leaf") else folder)


async def resolve_path(call: Invocation) -> None:
    """A path in full."""
    for path in _paths(call):
        if call.session.process.files.exists(path, call.session.cwd):
            full = call.session.process.files.absolute(path, call.session.cwd)
            call.emit(PSObject("System.Management.Automation.PathInfo", {"Path": full}, shown=("Path",), text=full))
        else:
            _missing(call, path)


_ITEM = ("LiteralPath", "Encoding", "Filter", "Include", "Exclude")

CMDLETS = [
    Cmdlet(
        "Get-Content", get_content, ("Path",), ("Raw", "Force"), (*_ITEM, "TotalCount", "Head", "Tail", "ReadCount")
    ),
    Cmdlet("Set-Content", set_content, ("Path", "Value"), ("NoNewline", "Force", "PassThru"), _ITEM),
    Cmdlet("Add-Content", add_content, ("Path", "Value"), ("NoNewline", "Force"), _ITEM),
    Cmdlet("Out-File", out_file, ("FilePath",), ("Append", "Force", "NoNewline"), ("Encoding", "InputObject", "Width")),
    Cmdlet("Test-Path", test_path, ("Path",), (), (*_ITEM, "PathType")),
    Cmdlet(
        "Get-ChildItem", get_childitem, ("Path", "Filter"), ("Recurse", "Force", "Name", "Directory", "File"), _ITEM
    ),
    Cmdlet("Get-Item", get_item, ("Path",), ("Force",), _ITEM),
    Cmdlet("Get-ItemProperty", get_itemproperty, ("Path", "Name"), (), _ITEM),
    Cmdlet("Get-ItemPropertyValue", get_itemproperty, ("Path", "Name"), (), _ITEM),
    Cmdlet("Set-ItemProperty", set_itemproperty, ("Path", "Name", "Value"), ("Force",), (*_ITEM, "Type")),
    Cmdlet("Remove-Item", remove_item, ("Path",), ("Recurse", "Force"), _ITEM),
    Cmdlet(
        "New-Item",
        new_item,
        ("Path",),
        ("Force",),
        ("ItemType", "Name", "Value", "Target"),
        aliases={"type": "itemtype"},
    ),
    Cmdlet("mkdir", new_item, ("Path",), ("Force",), ("Name",)),
    Cmdlet("Copy-Item", copy_item, ("Path", "Destination"), ("Recurse", "Force"), _ITEM),
    Cmdlet("Move-Item", copy_item, ("Path", "Destination"), ("Force",), _ITEM),
    Cmdlet("Set-Location", set_location, ("Path",)),
    Cmdlet("Get-Location", get_location),
    Cmdlet("Join-Path", join_path, ("Path", "ChildPath")),
    Cmdlet("Split-Path", split_path, ("Path",), ("Leaf", "Parent")),
    Cmdlet("Resolve-Path", resolve_path, ("Path",), (), ("LiteralPath",)),
]
