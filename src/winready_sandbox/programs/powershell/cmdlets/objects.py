"""Cmdlets on values in a pipeline, and on output."""

from __future__ import annotations

from typing import Any

from winready_sandbox.programs import record
from winready_sandbox.programs.powershell import display, interop, members
from winready_sandbox.programs.powershell.binding import Cmdlet, Invocation
from winready_sandbox.programs.powershell.operators import equal
from winready_sandbox.programs.powershell.syntax import ScriptBlock
from winready_sandbox.programs.powershell.types import new_object, plain_name
from winready_sandbox.programs.powershell.values import NetArray, PSObject, as_list, to_text, truth, whole


async def write_output(call: Invocation) -> None:
    """Pass values on."""
    for value in call.items("InputObject"):
        call.emit(value)


async def write_host(call: Invocation) -> None:
    """Show text on the screen, whatever the pipeline does."""
    text = " ".join(to_text(value) for value in call.items("Object"))
    call.session.process.out(f"{text}\r\n")


async def nothing(call: Invocation) -> None:
    """Take everything and give nothing."""


async def where_object(call: Invocation) -> None:
    """Pick values."""
    condition = call.get("FilterScript")
    for value in call.inputs or []:
        if isinstance(condition, ScriptBlock):
            found: list[Any] = []
            await call.session.invoke(condition, [], found.append, _=value)
            fits = truth(found[0] if len(found) == 1 else found)
        else:
            left = members.get(value, to_text(condition))
            fits = equal(left, call.get("EQ")) if "eq" in call.given else truth(left)
        if fits:
            call.emit(value)


async def foreach_object(call: Invocation) -> None:
    """Do something with each value."""
    action = call.get("Process")
    for value in call.inputs or []:
        if isinstance(action, ScriptBlock):
            await call.session.invoke(action, [], call.emit, _=value)
        else:
            call.emit(members.get(value, to_text(action)))


async def select_object(call: Invocation) -> None:
    """Pick properties, or the first values as they are."""
    expand, wanted = call.get("ExpandProperty"), [to_text(each) for each in as_list(call.get("Property"))]
    inputs = list(call.inputs or [])
    if (first := call.get("First")) is not None:
        inputs = inputs[: max(0, whole(first))]
    for value in inputs:
        if expand is not None:
            for item in as_list(members.get(value, to_text(expand))):
                call.emit(item)
        elif not wanted:
            call.emit(value)
        else:
            properties = {name: members.get(value, name) for name in wanted}
            call.emit(PSObject("Selected.System.Management.Automation.PSCustomObject", properties))


async def convert_to_json(call: Invocation) -> None:
    """Values as JSON."""
    values = call.items("InputObject")
    value = values[0] if len(values) == 1 and not isinstance(call.get("InputObject"), list) else values
    call.emit(display.to_json(value, compress=call.on("Compress"), desktop=call.session.desktop))


async def make_object(call: Invocation) -> None:
    """New-Object; a large array takes memory of the process, and fails where the process may not have more."""
    name = call.text("TypeName")
    record.note(call.session.process, "type", plain_name(name))
    value = new_object(name, as_list(call.get("ArgumentList")))
    if isinstance(value, NetArray):
        call.session.process.allocate(value.length)
    call.emit(value)


CMDLETS = [
    Cmdlet("Write-Output", write_output, ("InputObject",), collects=True),
    Cmdlet("Write-Host", write_host, ("Object",), collects=True),
    Cmdlet("Out-Null", nothing, ("InputObject",)),
    Cmdlet("Where-Object", where_object, ("FilterScript",), (), ("EQ",)),
    Cmdlet("ForEach-Object", foreach_object, ("Process",)),
    Cmdlet("Select-Object", select_object, ("Property",), (), ("ExpandProperty", "First")),
    Cmdlet("ConvertTo-Json", convert_to_json, ("InputObject",), ("Compress",)),
    Cmdlet("New-Object", make_object, ("TypeName", "ArgumentList")),
    Cmdlet("Add-Type", interop.add_type, (), (), ("MemberDefinition", "Name", "Namespace")),
]
