"""How powershell.exe and pwsh.exe read their own arguments."""

from __future__ import annotations

import base64
import binascii
import re

from winready_sandbox.machine.errors import FileError, OutOfMemory
from winready_sandbox.machine.process import Exit, Process
from winready_sandbox.programs.powershell.evaluation import Parameter
from winready_sandbox.programs.powershell.failures import as_failure
from winready_sandbox.programs.powershell.session import LoopExit, Session
from winready_sandbox.programs.powershell.values import PowerShellError

_VALUED = (
    "executionpolicy",
    "ep",
    "version",
    "outputformat",
    "inputformat",
    "windowstyle",
    "workingdirectory",
    "psconsolefile",
)
_SWITCHES = ("noprofile", "noninteractive", "nologo", "noexit", "sta", "mta", "login", "interactive")


def _option(word: str) -> str:
    """The full name of an option that may be cut short."""
    name = word[1:].lower()
    fixed = {
        "c": "command",
        "f": "file",
        "e": "encodedcommand",
        "ec": "encodedcommand",
        "enc": "encodedcommand",
        "ep": "executionpolicy",
    }
    if name in fixed:
        return fixed[name]
    known = ("command", "file", "encodedcommand", *_VALUED, *_SWITCHES)
    return next((each for each in known if each.startswith(name)), "")


def _decoded(text: str) -> str | None:
    try:
        return base64.b64decode(text, validate=True).decode("utf-16-le")
    except (binascii.Error, UnicodeDecodeError):
        return None


async def _powershell(process: Process, *, desktop: bool) -> int:
    session = Session(process, desktop, cwd=process.cwd)
    words = process.argv[1:]
    script: str | None = None
    file: str | None = None
    while words and words[0].startswith(("-", "/")) and len(words[0]) > 1:
        option = _option(words[0])
        if not option and words[0].startswith("/"):
            break
        words.pop(0)
        if option == "command":
            script = " ".join(words)
            words = []
        elif option == "file":
            file = words.pop(0) if words else None
            break
        elif option == "encodedcommand":
            script = _decoded(words.pop(0)) if words else None
            if script is None:
                process.err(
                    "Cannot process the command because the value of -EncodedCommand is not properly encoded.\r\n"
                )
                return 1
            words = []
        elif option in _VALUED and words:
            words.pop(0)
    if script is None and file is None and words:
        if desktop:
            script = " ".join(words)
        else:
            file, words = words[0], words[1:]
    if script == "-" or (script is None and file is None):
        script = (await process.stdin.read_all()).decode(errors="replace")
    if file is not None:
        return await _file(session, file, words)
    return await _run(session, script or "", [])


async def _file(session: Session, name: str, arguments: list[str]) -> int:
    process = session.process
    try:
        text = process.files.read(name, session.cwd, who=process.identity).decode("utf-8-sig", "replace")
    except FileError:
        message = "does not exist. Provide the path to an existing '.ps1' file as an argument to the -File parameter."
        if session.desktop:
            process.err(f"The argument '{name}' to the -File parameter {message}\r\n")
            return 4294770688
        process.err(
            f"The argument '{name}' is not recognized as the name of a script file. Check the spelling of the name, "
            "or if a path was included, verify that the path is correct and try again.\r\n"
        )
        return 64
    return await _run(session, text, list(arguments), is_file=True)


async def _run(session: Session, text: str, arguments: list[str], *, is_file: bool = False) -> int:
    try:
        values = [Parameter(word[1:]) if re.match(r"-[A-Za-z]", word) else word for word in arguments]
        await session.script(text, session.print, values)
    except Exit as ended:
        return ended.code
    except LoopExit:
        return 0
    except (PowerShellError, OutOfMemory, FileError, RecursionError) as error:
        failure = as_failure(error)
        source = str(failure.value) if failure.identifier == "CommandNotFoundException" else ""
        session.show_error(failure.message, failure.identifier, source=source, kind=failure.kind)
        return 1
    finally:
        for _, task in session.jobs:
            task.cancel()
    return 0 if session.succeeded or is_file else 1


async def powershell_core(process: Process) -> int:
    """PowerShell Core 6.2.7, in the busybox and agnhost images."""
    return await _powershell(process, desktop=False)


async def powershell_desktop(process: Process) -> int:
    """Windows PowerShell 5.1, in servercore and on nodes."""
    return await _powershell(process, desktop=True)
