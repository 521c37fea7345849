"""Background jobs: script blocks that run in processes of their own."""

from __future__ import annotations

import asyncio

from winready_sandbox.machine.errors import FileError, OutOfMemory
from winready_sandbox.machine.process import Exit
from winready_sandbox.programs.powershell.binding import Cmdlet, Invocation
from winready_sandbox.programs.powershell.syntax import ScriptBlock
from winready_sandbox.programs.powershell.values import PowerShellError, PSObject

_JOB_MEMORY = 45 * 2**20


async def start_job(call: Invocation) -> None:
    """Run a script block in the background."""
    block = call.get("ScriptBlock")
    if not isinstance(block, ScriptBlock):
        raise PowerShellError(
            "Cannot bind argument to parameter 'ScriptBlock' because it is null.", "ParameterArgumentValidationError"
        )
    session = call.session
    number = len(session.jobs) * 2 + 1
    values = {
        "Id": number,
        "Name": f"Job{number}",
        "PSJobTypeName": "BackgroundJob",
        "State": "Running",
        "HasMoreData": True,
    }
    job = PSObject("System.Management.Automation.PSRemotingJob", values, shown=("Id", "Name", "PSJobTypeName", "State"))

    async def work() -> None:
        child = type(session)(session.process, session.desktop, cwd=session.cwd)
        try:
            session.process.allocate(_JOB_MEMORY)
            await child.invoke(block, [], lambda value: None)
            job.properties["State"] = "Completed"
        except (PowerShellError, OutOfMemory, FileError, RecursionError, Exit) as error:
            job.properties["State"] = "Completed" if isinstance(error, Exit) else "Failed"

    task = asyncio.create_task(work())
    session.jobs.append((job, task))
    call.emit(job)


async def get_job(call: Invocation) -> None:
    """Jobs of this session."""
    for job, _ in call.session.jobs:
        call.emit(job)


async def wait_job(call: Invocation) -> None:
    """Wait until jobs have ended."""
    chosen = [each for each in call.session.jobs if each[0] in (call.inputs or [])]
    if chosen:
        await asyncio.wait([task for _, task in chosen])
    for job, _ in chosen:
        call.emit(job)


CMDLETS = [
    Cmdlet("Start-Job", start_job, ("ScriptBlock",)),
    Cmdlet("Get-Job", get_job),
    Cmdlet("Wait-Job", wait_job),
]
