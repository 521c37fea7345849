"""Background jobs: script blocks that run in processes of their own."""

from __future__ import annotations

import asyncio
from typing import Any

from winready_sandbox.machine.errors import OutOfMemory
from winready_sandbox.machine.process import Exit
from winready_sandbox.programs.powershell.binding import Cmdlet, Invocation
from winready_sandbox.programs.powershell.syntax import ScriptBlock
from winready_sandbox.programs.powershell.values import PowerShellError, PSObject, as_list, to_number, to_text

_JOB_MEMORY = 45 * 2**20
_MOST_KEPT = 2000


async def start_job(call: Invocation) -> None:
    """Run a script block in the background."""
    block = call.get("ScriptBlock")
    if not isinstance(block, ScriptBlock):
        raise PowerShellError(
            "Cannot bind argument to parameter 'ScriptBlock' because it is null.", "ParameterArgumentValidationError"
        )
    session = call.session
    output: list[Any] = []
    number = len(session.jobs) * 2 + 1
    values = {
        "Id": number,
        "Name": f"Job{number}",
        "PSJobTypeName": "BackgroundJob",
        "State": "Running",
        "HasMoreData": True,
    }
    job = PSObject("System.Management.Automation.PSRemotingJob", values, shown=("Id", "Name", "PSJobTypeName", "State"))

    def keep(value: Any) -> None:
        if len(output) < _MOST_KEPT:
            output.append(value)

    async def work() -> None:
        child = type(session)(session.process, session.desktop, cwd=session.cwd)
        try:
            session.process.allocate(_JOB_MEMORY)
            await child.invoke(block, as_list(call.get("ArgumentList")), keep)
            job.properties["State"] = "Completed"
        except (PowerShellError, OutOfMemory, Exit) as error:
            job.properties["State"] = "Completed" if isinstance(error, Exit) else "Failed"

    task = asyncio.create_task(work())
    session.jobs.append((job, task, output))
    call.emit(job)


def _chosen(call: Invocation) -> list[tuple[PSObject, asyncio.Task[None], list[Any]]]:
    numbers = [int(to_number(each)) for each in as_list(call.get("Id"))]
    given = [each for each in [*as_list(call.get("Job")), *(call.inputs or [])] if isinstance(each, PSObject)]
    names = [to_text(each).lower() for each in as_list(call.get("Name"))]
    if not numbers and not given and not names:
        return list(call.session.jobs)
    return [
        each
        for each in call.session.jobs
        if each[0] in given or each[0].get("Id") in numbers or to_text(each[0].get("Name")).lower() in names
    ]


async def get_job(call: Invocation) -> None:
    """Jobs of this session."""
    for job, _, _ in _chosen(call):
        call.emit(job)


async def wait_job(call: Invocation) -> None:
    """Wait until jobs have ended."""
    chosen = _chosen(call)
    if chosen:
        limit = call.get("Timeout")
        wall = call.session.process.container.clock.wall(float(to_number(limit))) if limit is not None else None
        await asyncio.wait([task for _, task, _ in chosen], timeout=wall)
    for job, task, _ in chosen:
        if task.done():
            call.emit(job)


async def receive_job(call: Invocation) -> None:
    """What jobs have written."""
    for _, task, output in _chosen(call):
        if call.on("Wait"):
            await asyncio.wait([task])
        for value in output:
            call.emit(value)
        output.clear()


async def remove_job(call: Invocation) -> None:
    """End and forget jobs."""
    for each in _chosen(call):
        each[1].cancel()
        if call.name == "Remove-Job":
            call.session.jobs.remove(each)
        else:
            each[0].properties["State"] = "Stopped"


CMDLETS = [
    Cmdlet("Start-Job", start_job, ("ScriptBlock",), (), ("ArgumentList", "Name")),
    Cmdlet("Get-Job", get_job, ("Id",), (), ("Name", "State")),
    Cmdlet("Wait-Job", wait_job, ("Id",), ("Any",), ("Job", "Name", "Timeout")),
    Cmdlet("Receive-Job", receive_job, ("Job",), ("Wait", "Keep", "AutoRemoveJob"), ("Id", "Name")),
    Cmdlet("Stop-Job", remove_job, ("Id",), (), ("Job", "Name")),
    Cmdlet("Remove-Job", remove_job, ("Id",), ("Force",), ("Job", "Name")),
]
