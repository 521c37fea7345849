"""Programs and script files run from PowerShell."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from winready_sandbox.machine import commandline, executables
from winready_sandbox.machine.errors import ExecError
from winready_sandbox.programs.output import Collector, filled
from winready_sandbox.programs.powershell import display
from winready_sandbox.programs.powershell.syntax import Command
from winready_sandbox.programs.powershell.values import PowerShellError, to_text

if TYPE_CHECKING:
    from winready_sandbox.programs.powershell.session import Session


def not_recognized(name: str) -> str:
    """What PowerShell says about a command that it does not know."""
    return (
        f"The term '{name}' is not recognized as the name of a cmdlet, function, script file, or operable program. "
        "Check the spelling of the name, or if a path was included, verify that the path is correct and try again."
    )


async def run(
    session: Session, name: str, node: Command, inputs: list[Any] | None, emit: Callable[[Any], None]
) -> None:
    """Run a program or script file."""
    path = find(session, name)
    if path is None:
        raise PowerShellError(
            not_recognized(name),
            "CommandNotFoundException",
            "ObjectNotFound",
            name,
        )
    values = [await session.evaluator.argument(each) for each in node.arguments]
    if path.lower().endswith(".ps1"):
        text = session.process.files.read(path, who=session.process.identity).decode("utf-8-sig", "replace")
        await session.script(text, emit, values)
        return
    words = [word for value in values for word in _words(value)]
    argv = [name, *words]
    collected = Collector(session.account.check)
    from_pipe = "".join(f"{line}\r\n" for line in display.lines(inputs)).encode() if inputs is not None else None
    try:
        child = session.process.spawn(
            argv,
            stdin=filled(from_pipe) if from_pipe is not None else None,
            stdout=None if emit == session.print else collected,
            cwd=session.cwd,
            path=path,
            command_line=commandline.join(argv),
        )
    except ExecError as error:
        message = f"Program '{name}' failed to run: {error.reason}"
        raise PowerShellError(message, "NativeCommandFailed", "ResourceUnavailable") from None
    session.last_native = await child.finish()
    session.succeeded = session.last_native == 0
    text = collected.text().replace("\r\n", "\n")
    for line in text.removesuffix("\n").split("\n") if text else []:
        emit(line)


def _words(value: Any) -> list[str]:
    parameter = getattr(value, "parameter", "")
    if parameter:
        return [f"-{parameter}"]
    return [to_text(item) for item in value] if isinstance(value, list) else [to_text(value)]


def find(session: Session, name: str) -> str | None:
    """The file behind a command's name."""
    files = session.process.files
    if name.lower().endswith(".ps1") and any(char in name for char in "\\/"):
        return files.absolute(name, session.cwd) if files.exists(name, session.cwd) else None
    if any(char in name for char in "\\/"):
        return executables.find_for_shell(files, name, session.cwd, session.process.env)
    return executables.find_for_shell(files, name, session.cwd, session.process.env, current_first=False)
