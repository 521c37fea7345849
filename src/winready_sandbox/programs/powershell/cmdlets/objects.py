"""Cmdlets on values in a pipeline, and on output."""

from __future__ import annotations

import datetime
import fnmatch
import json
import random
import re
from typing import Any

from winready_sandbox.clock import wall_time
from winready_sandbox.programs.powershell import display, interop, members
from winready_sandbox.programs.powershell.binding import Cmdlet, Invocation
from winready_sandbox.programs.powershell.operators import compare, regex
from winready_sandbox.programs.powershell.statics import allocated
from winready_sandbox.programs.powershell.syntax import ScriptBlock
from winready_sandbox.programs.powershell.types import new_object, type_name
from winready_sandbox.programs.powershell.values import (
    Hash,
    PowerShellError,
    PSObject,
    as_list,
    to_number,
    to_text,
    truth,
)

_COMPARISONS = ("eq", "ne", "gt", "ge", "lt", "le", "like", "notlike", "match", "notmatch", "contains", "in", "notin")


async def write_output(call: Invocation) -> None:
    """Pass values on."""
    for value in call.items("InputObject"):
        call.emit(value)


async def write_host(call: Invocation) -> None:
    """Show text on the screen, whatever the pipeline does."""
    text = " ".join(to_text(value) for value in call.items("Object"))
    call.session.process.out(text if call.on("NoNewline") else f"{text}\r\n")


async def write_error(call: Invocation) -> None:
    """Report an error."""
    call.error(call.text("Message"), "Microsoft.PowerShell.Commands.WriteErrorException", "NotSpecified")


async def write_warning(call: Invocation) -> None:
    """Report a warning."""
    call.session.process.out(f"WARNING: {call.text('Message')}\r\n")


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
            operator = next((each for each in _COMPARISONS if each in call.given), "")
            right = call.get(operator) if operator else None
            if operator and right is None:
                right = call.get("Value")
            fits = truth(compare(operator, left, right, lambda match: None)) if operator else truth(left)
        if fits:
            call.emit(value)


async def foreach_object(call: Invocation) -> None:
    """Do something with each value."""
    action = call.get("Process")
    if isinstance(begin := call.get("Begin"), ScriptBlock):
        await call.session.invoke(begin, [], call.emit)
    for value in call.inputs or []:
        if isinstance(action, ScriptBlock):
            await call.session.invoke(action, [], call.emit, _=value)
        else:
            call.emit(members.get(value, to_text(action)))
    if isinstance(end := call.get("End"), ScriptBlock):
        await call.session.invoke(end, [], call.emit)


async def select_object(call: Invocation) -> None:
    """Pick properties, or some of the values."""
    values = call.items("InputObject")
    if call.on("Unique"):
        values = list({to_text(value): value for value in values}.values())
    if (first := call.get("First")) is not None:
        values = values[: int(to_number(first))]
    if (skip := call.get("Skip")) is not None:
        values = values[int(to_number(skip)) :]
    if (last := call.get("Last")) is not None:
        values = values[-int(to_number(last)) :]
    expand, wanted = call.get("ExpandProperty"), call.get("Property")
    for value in values:
        if expand is not None:
            for item in as_list(members.get(value, to_text(expand))):
                call.emit(item)
        elif wanted is not None:
            call.emit(await _selected(call, value, as_list(wanted)))
        else:
            call.emit(value)


async def _selected(call: Invocation, value: Any, wanted: list[Any]) -> PSObject:
    properties: dict[str, Any] = {}
    for each in wanted:
        if isinstance(each, Hash):
            expression = each.get("Expression") or each.get("e")
            name = to_text(each.get("Name") or each.get("n") or each.get("Label") or each.get("l"))
            if isinstance(expression, ScriptBlock):
                found: list[Any] = []
                await call.session.invoke(expression, [], found.append, _=value)
                properties[name] = found[0] if len(found) == 1 else found or None
            else:
                properties[name] = members.get(value, to_text(expression))
        elif "*" in to_text(each) and isinstance(value, PSObject):
            matching = [key for key in value.properties if fnmatch.fnmatchcase(key.lower(), to_text(each).lower())]
            properties.update({key: value.properties[key] for key in matching})
        else:
            found_name = value.find(to_text(each)) if isinstance(value, PSObject) else None
            properties[found_name or to_text(each)] = members.get(value, to_text(each))
    return PSObject("Selected.System.Management.Automation.PSCustomObject", properties)


async def sort_object(call: Invocation) -> None:
    """Sort values."""
    name = call.get("Property")

    def key(value: Any) -> tuple[int, Any]:
        item = members.get(value, to_text(name)) if name is not None and not isinstance(name, ScriptBlock) else value
        return (0, item) if isinstance(item, int | float) else (1, to_text(item).lower())

    values = sorted(call.inputs or [], key=key, reverse=call.on("Descending"))
    if call.on("Unique"):
        values = list({to_text(value).lower(): value for value in values}.values())
    for value in values:
        call.emit(value)


async def measure_object(call: Invocation) -> None:
    """Count and add up."""
    name = call.get("Property")
    values = [members.get(value, to_text(name)) if name is not None else value for value in call.inputs or []]
    numbers = (
        [to_number(value) for value in values] if {"sum", "average", "maximum", "minimum"} & set(call.given) else []
    )
    result: dict[str, Any] = {"Count": len(values), "Average": None, "Sum": None, "Maximum": None, "Minimum": None}
    if numbers:
        result["Sum"] = sum(numbers) if call.on("Sum") else None
        result["Average"] = sum(numbers) / len(numbers) if call.on("Average") else None
        result["Maximum"] = max(numbers) if call.on("Maximum") else None
        result["Minimum"] = min(numbers) if call.on("Minimum") else None
    result["Property"] = to_text(name) if name is not None else None
    if call.on("Line"):
        result = {"Lines": len(values), "Words": None, "Characters": None, "Property": None}
    call.emit(PSObject("Microsoft.PowerShell.Commands.GenericMeasureInfo", result))


async def group_object(call: Invocation) -> None:
    """Values with the same property together."""
    groups: dict[str, list[Any]] = {}
    for value in call.inputs or []:
        key = to_text(members.get(value, call.text("Property")) if call.get("Property") is not None else value)
        groups.setdefault(key, []).append(value)
    for key, values in groups.items():
        properties = {"Count": len(values), "Name": key, "Group": values}
        call.emit(PSObject("Microsoft.PowerShell.Commands.GroupInfo", properties, shown=("Count", "Name", "Group")))


async def get_member(call: Invocation) -> None:
    """What a value has."""
    for value in (call.inputs or [])[:1]:
        for name in value.properties if isinstance(value, PSObject) else []:
            properties = {"Name": name, "MemberType": "Property", "Definition": f"{type_name(value)} {name}"}
            call.emit(PSObject("Microsoft.PowerShell.Commands.MemberDefinition", properties))


async def format_list(call: Invocation) -> None:
    """Show every property on a line."""
    await _formatted(call, as_table=False)


async def format_table(call: Invocation) -> None:
    """Show a table."""
    await _formatted(call, as_table=True)


async def _formatted(call: Invocation, *, as_table: bool) -> None:
    items = [value for value in call.items("InputObject") if isinstance(value, PSObject)]
    if not items:
        for value in call.items("InputObject"):
            call.emit(value)
        return
    wanted = [to_text(each) for each in as_list(call.get("Property"))]
    columns = (
        wanted if wanted and wanted != ["*"] else list((items[0].shown if not wanted else ()) or items[0].properties)
    )
    if as_table and call.on("HideTableHeaders"):
        lines = ["", *display.table(items, columns)[3:]]
    else:
        lines = display.table(items, columns) if as_table else display.as_list_view(items, columns)
    for line in lines:
        call.emit(line)


async def out_string(call: Invocation) -> None:
    """The screen's view as one text."""
    lines = display.lines(call.inputs or [])
    if call.on("Stream"):
        for line in lines:
            call.emit(line)
    else:
        call.emit("".join(f"{line}\r\n" for line in lines))


async def convert_to_json(call: Invocation) -> None:
    """Values as JSON."""
    values = call.items("InputObject")
    depth = int(to_number(call.get("Depth", 2)))
    value = values[0] if len(values) == 1 and not isinstance(call.get("InputObject"), list) else values
    desktop = call.session.desktop
    call.emit(display.to_json(value, compress=call.on("Compress"), depth=depth, desktop=desktop))


async def convert_from_json(call: Invocation) -> None:
    """JSON as values."""
    text = "\n".join(to_text(value) for value in call.items("InputObject"))
    try:
        parsed = json.loads(text)
    except ValueError:
        raise PowerShellError(
            "Invalid JSON primitive: " + text[:20] + ".", "System.ArgumentException", "ArgumentException"
        ) from None
    for item in parsed if isinstance(parsed, list) else [parsed]:
        call.emit(_from_json(item))


def _from_json(value: Any) -> Any:
    if isinstance(value, dict):
        return PSObject(
            "System.Management.Automation.PSCustomObject", {key: _from_json(item) for key, item in value.items()}
        )
    return [_from_json(item) for item in value] if isinstance(value, list) else value


async def select_string(call: Invocation) -> None:
    """Lines that match."""
    patterns = [to_text(each) for each in as_list(call.get("Pattern"))]
    flags = 0 if call.on("CaseSensitive") else re.IGNORECASE
    lines: list[str] = []
    for path in as_list(call.get("Path")):
        data = call.session.process.files.read(to_text(path), call.session.cwd, who=call.session.process.identity)
        lines += data.decode(errors="replace").splitlines()
    lines += [line for value in call.inputs or [] for line in to_text(value).splitlines()]
    for number, line in enumerate(lines, 1):
        if any(re.search(re.escape(each) if call.on("SimpleMatch") else regex(each), line, flags) for each in patterns):
            if call.on("Quiet"):
                call.emit(True)
                return
            values = {"Line": line, "LineNumber": number}
            call.emit(PSObject("Microsoft.PowerShell.Commands.MatchInfo", values, text=line))


async def make_object(call: Invocation) -> None:
    """New-Object."""
    value = allocated(call.session, new_object(call.text("TypeName"), as_list(call.get("ArgumentList"))))
    properties = call.get("Property")
    if isinstance(value, PSObject) and isinstance(properties, Hash):
        value.properties.update({to_text(key): item for key, item in properties.items()})
    call.emit(value)


async def add_member(call: Invocation) -> None:
    """Give an object another property."""
    for value in call.items("InputObject"):
        if isinstance(value, PSObject):
            name = call.text("NotePropertyName") or call.text("Name")
            value.properties[name] = call.get("NotePropertyValue", call.get("Value"))
        if call.on("PassThru"):
            call.emit(value)


async def get_random(call: Invocation) -> None:
    """A random number or value."""
    choices = call.items("InputObject")
    low, high = int(to_number(call.get("Minimum", 0))), int(to_number(call.get("Maximum", 2**31 - 1)))
    call.emit(random.choice(choices) if choices else random.randrange(low, max(high, low + 1)))


async def get_date(call: Invocation) -> None:
    """The time."""
    now = datetime.datetime.fromtimestamp(wall_time()).replace(microsecond=0)
    form = call.get("Format") or call.get("UFormat")
    call.emit(members.call(now, "ToString", [to_text(form)]) if form is not None else now)


async def new_timespan(call: Invocation) -> None:
    """A length of time."""
    if (start := call.get("Start")) is not None:
        call.emit((call.get("End") or datetime.datetime.fromtimestamp(wall_time())) - start)
        return
    amounts = {name: float(to_number(call.get(name, 0))) for name in ("Seconds", "Minutes", "Hours", "Days")}
    call.emit(datetime.timedelta(**{name.lower(): amount for name, amount in amounts.items()}))


async def invoke_expression(call: Invocation) -> None:
    """Run a text."""
    await call.session.script(call.text("Command"), call.emit)


async def set_variable(call: Invocation) -> None:
    """Assign a variable by name."""
    call.session.assign(call.text("Name").lower(), call.get("Value"))


async def get_variable(call: Invocation) -> None:
    """Read a variable by name."""
    value = call.session.lookup(call.text("Name").lower())
    call.emit(value if call.on("ValueOnly") else PSObject("PSVariable", {"Name": call.text("Name"), "Value": value}))


async def measure_command(call: Invocation) -> None:
    """How long a script block takes, in cluster time."""
    clock = call.session.process.container.clock
    start = clock.now()
    if isinstance(block := call.get("Expression"), ScriptBlock):
        await call.session.invoke(block, [], lambda value: None)
    call.emit(datetime.timedelta(seconds=clock.now() - start))


CMDLETS = [
    Cmdlet("Write-Output", write_output, ("InputObject",), ("NoEnumerate",), collects=True),
    Cmdlet(
        "Write-Host", write_host, ("Object",), ("NoNewline",), ("ForegroundColor", "BackgroundColor"), collects=True
    ),
    Cmdlet("Write-Error", write_error, ("Message",), (), ("Category", "ErrorId")),
    Cmdlet("Write-Warning", write_warning, ("Message",)),
    Cmdlet("Write-Verbose", nothing, ("Message",)),
    Cmdlet("Write-Debug", nothing, ("Message",)),
    Cmdlet("Write-Information", nothing, ("MessageData",)),
    Cmdlet("Write-Progress", nothing, ("Activity", "Status"), ("Completed",), ("PercentComplete",)),
    Cmdlet("Out-Null", nothing, ("InputObject",)),
    Cmdlet("Out-Host", write_output, ("InputObject",)),
    Cmdlet("Out-Default", write_output, ("InputObject",)),
    Cmdlet("Set-StrictMode", nothing, (), ("Off",), ("Version",)),
    Cmdlet("Import-Module", nothing, ("Name",), ("Force", "DisableNameChecking")),
    Cmdlet("Set-ExecutionPolicy", nothing, ("ExecutionPolicy", "Scope"), ("Force",)),
    Cmdlet(
        "Where-Object", where_object, ("FilterScript", "Value"), (), _COMPARISONS, aliases={"property": "filterscript"}
    ),
    Cmdlet(
        "ForEach-Object",
        foreach_object,
        ("Process",),
        (),
        ("Begin", "End", "MemberName"),
        aliases={"membername": "process"},
    ),
    Cmdlet(
        "Select-Object",
        select_object,
        ("Property",),
        ("Unique",),
        ("ExpandProperty", "First", "Last", "Skip", "InputObject"),
    ),
    Cmdlet("Sort-Object", sort_object, ("Property",), ("Descending", "Unique")),
    Cmdlet("Measure-Object", measure_object, ("Property",), ("Sum", "Average", "Maximum", "Minimum", "Line")),
    Cmdlet("Group-Object", group_object, ("Property",), ("NoElement",)),
    Cmdlet("Get-Member", get_member, ("Name",), (), ("MemberType",)),
    Cmdlet("Format-List", format_list, ("Property",), ("Force",), ("InputObject",)),
    Cmdlet("Format-Table", format_table, ("Property",), ("AutoSize", "Wrap", "HideTableHeaders"), ("InputObject",)),
    Cmdlet("Out-String", out_string, (), ("Stream",), ("Width", "InputObject")),
    Cmdlet("ConvertTo-Json", convert_to_json, ("InputObject",), ("Compress",), ("Depth",)),
    Cmdlet("ConvertFrom-Json", convert_from_json, ("InputObject",)),
    Cmdlet(
        "Select-String", select_string, ("Pattern", "Path"), ("Quiet", "SimpleMatch", "CaseSensitive", "AllMatches")
    ),
    Cmdlet("New-Object", make_object, ("TypeName", "ArgumentList"), (), ("Property", "ComObject")),
    Cmdlet(
        "Add-Member",
        add_member,
        ("MemberType", "Name", "Value"),
        ("PassThru", "Force"),
        ("InputObject", "NotePropertyName", "NotePropertyValue"),
    ),
    Cmdlet("Get-Random", get_random, ("Maximum",), (), ("Minimum", "InputObject", "Count")),
    Cmdlet("Get-Date", get_date, ("Date",), (), ("Format", "UFormat")),
    Cmdlet("New-TimeSpan", new_timespan, ("Start", "End"), (), ("Seconds", "Minutes", "Hours", "Days")),
    Cmdlet("Invoke-Expression", invoke_expression, ("Command",)),
    Cmdlet("Set-Variable", set_variable, ("Name", "Value"), (), ("Scope",)),
    Cmdlet("Get-Variable", get_variable, ("Name",), ("ValueOnly",), ("Scope",)),
    Cmdlet("Add-Type", interop.add_type, ("TypeDefinition",), ("PassThru",), ("MemberDefinition", "Name", "Namespace")),
    Cmdlet("Measure-Command", measure_command, ("Expression",)),
]
