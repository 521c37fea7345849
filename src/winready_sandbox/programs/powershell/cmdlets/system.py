"""Cmdlets on processes, services and the operating system."""

from __future__ import annotations

import datetime
import fnmatch
import time
from typing import Any

from winready_sandbox.clock import wall_time
from winready_sandbox.machine.errors import FileError
from winready_sandbox.machine.machine import PowerRequest
from winready_sandbox.machine.windows_host import Service
from winready_sandbox.programs.powershell import native
from winready_sandbox.programs.powershell.binding import Cmdlet, Invocation
from winready_sandbox.programs.powershell.types import version
from winready_sandbox.programs.powershell.values import PSObject, as_list, to_number, to_text

_DOMAIN_ROLE = {True: 3, False: 2}


async def start_sleep(call: Invocation) -> None:
    """Wait for some cluster seconds."""
    seconds = float(to_number(call.get("Seconds", 0))) + float(to_number(call.get("Milliseconds", 0))) / 1000
    await call.session.process.container.clock.sleep(seconds)


def _process(name: str, pid: int, memory: int) -> PSObject:
    properties: dict[str, Any] = {
        "Handles": 120,
        "WorkingSet64": memory,
        "PM": memory,
        "CPU": 0.05,
        "Id": pid,
        "ProcessName": name,
        "Name": name,
        "WorkingSet": memory,
        "HasExited": False,
    }
    shown = ("Handles", "CPU", "Id", "ProcessName")
    return PSObject("System.Diagnostics.Process", properties, shown=shown, text=None)


def running(call: Invocation) -> list[PSObject]:
    """Processes that this PowerShell sees: the container's own, and for HostProcess the node's services too."""
    container = call.session.process.container
    found = []
    for process in container.processes.values():
        base = process.path.replace("/", "\\").rpartition("\\")[2]
        found.append(_process(base[:-4] if base.lower().endswith(".exe") else base, process.pid, process.memory))
    found += [
        _process(name, 400 + 4 * index, 8 * 2**20)
        for index, name in enumerate(("csrss", "lsass", "services", "smss", "svchost"))
    ]
    if container.host_process:
        host = container.host
        names = [
            each.path.strip('"').partition(".exe")[0].rpartition("\\")[2]
            for each in host.services
            if each.state == "Running"
        ]
        extra = [name for name in names if name not in ("svchost", "MsMpEng")]
        extra += ["MsMpEng"] if host.defender.running else []
        found += [_process(name, 2000 + 4 * index, 60 * 2**20) for index, name in enumerate(extra)]
    return found


async def get_process(call: Invocation) -> None:
    """Running processes."""
    processes = running(call)
    if call.get("Id") is not None:
        wanted_id = int(to_number(call.get("Id")))
        for each in [each for each in processes if each.get("Id") == wanted_id]:
            call.emit(each)
        return
    for name in [to_text(each) for each in as_list(call.get("Name"))] or ["*"]:
        matching = [each for each in processes if fnmatch.fnmatchcase(to_text(each.get("Name")).lower(), name.lower())]
        if not matching and "*" not in name:
            text = f'Cannot find a process with the name "{name}". Verify the process name and call the cmdlet again.'
            call.error(text, "NoProcessFoundForGivenName", "ObjectNotFound")
        for each in matching:
            call.emit(each)


async def stop_process(call: Invocation) -> None:
    """End processes."""
    container = call.session.process.container
    numbers = [int(to_number(each)) for each in as_list(call.get("Id"))]
    numbers += [int(to_number(each.get("Id"))) for each in call.inputs or [] if isinstance(each, PSObject)]
    for process in list(container.processes.values()):
        name = process.path.rpartition("\\")[2].lower().removesuffix(".exe")
        if process.pid in numbers or name in [to_text(each).lower() for each in as_list(call.get("Name"))]:
            await process.kill(4294967295)


def _service(service: Service) -> PSObject:
    properties = {
        "Status": service.state,
        "Name": service.name,
        "DisplayName": service.display_name,
        "StartType": "Automatic" if service.start_mode == "Auto" else service.start_mode,
        "ServiceName": service.name,
        "CanStop": True,
    }
    return PSObject("System.ServiceProcess.ServiceController", properties, shown=("Status", "Name", "DisplayName"))


async def get_service(call: Invocation) -> None:
    """Services."""
    services = call.session.process.container.host.services
    for name in [to_text(each) for each in as_list(call.get("Name"))] or ["*"]:
        matching = [each for each in services if fnmatch.fnmatchcase(each.name.lower(), name.lower())]
        if not matching and "*" not in name:
            text = f"Cannot find any service with service name '{name}'."
            call.error(text, "NoServiceFoundForGivenName", "ObjectNotFound")
        for each in matching:
            call.emit(_service(each))


async def control_service(call: Invocation) -> None:
    """Start, stop or restart services."""
    who = call.session.process.identity
    for name in [to_text(each) for each in as_list(call.get("Name"))]:
        service = call.session.process.container.host.service(name)
        if service is None:
            text = f"Cannot find any service with service name '{name}'."
            call.error(text, "NoServiceFoundForGivenName", "ObjectNotFound")
        elif who is not None and not who.administrator:
            text = f"Service '{service.display_name} ({name})' cannot be changed: access is denied."
            call.error(text, "CouldNotChangeService", "PermissionDenied")
        else:
            service.state = "Stopped" if call.name == "Stop-Service" else "Running"


def _stamp(moment: float) -> datetime.datetime:
    return datetime.datetime.fromtimestamp(int(moment))


def _wmi_stamp(moment: float) -> str:
    return time.strftime("%Y%m%d%H%M%S.000000+000", time.localtime(moment))


def _operating_system(call: Invocation) -> dict[str, Any]:
    container = call.session.process.container
    machine, build = container.machine, container.build
    stamp = _wmi_stamp if call.name == "Get-WmiObject" else _stamp
    free = (machine.memory_bytes - machine.memory.used) // 1024
    return {
        "SystemDirectory": "C:\\Windows\\system32",
        "Organization": "",
        "BuildNumber": build.number,
        "RegisteredUser": "",
        "SerialNumber": "00454-40000-00001-AA404",
        "Version": build.label,
        "Caption": f"Microsoft {build.edition}",
        "OSArchitecture": "64-bit",
        "CSName": container.computer_name,
        "LastBootUpTime": stamp(machine.booted_at),
        "InstallDate": stamp(machine.installed_at),
        "LocalDateTime": stamp(wall_time()),
        "TotalVisibleMemorySize": machine.memory_bytes // 1024,
        "FreePhysicalMemory": free,
        "ProductType": 3,
    }


def instances(call: Invocation, name: str) -> list[dict[str, Any]] | None:
    """Instances of a WMI class, or None if there is no such class."""
    container = call.session.process.container
    machine = container.machine
    domain = container.host.domain
    if name == "win32_operatingsystem":
        return [_operating_system(call)]
    if name == "win32_computersystem":
        values = {
            "Name": container.computer_name,
            "DNSHostName": container.hostname,
            "Domain": domain or "WORKGROUP",
            "PartOfDomain": bool(domain),
            "DomainRole": _DOMAIN_ROLE[bool(domain)],
            "TotalPhysicalMemory": machine.memory_bytes,
            "NumberOfLogicalProcessors": machine.cores,
            "NumberOfProcessors": 1,
            "Manufacturer": "Microsoft Corporation",
            "Model": "Virtual Machine",
        }
        return [values]
    if name == "win32_service":
        return [
            {
                "ProcessId": 2000 if each.state == "Running" else 0,
                "Name": each.name,
                "StartMode": each.start_mode,
                "State": each.state,
                "Status": "OK",
                "ExitCode": 0,
                "PathName": each.path,
                "DisplayName": each.display_name,
                "StartName": each.account,
            }
            for each in container.host.services
        ]
    if name == "win32_process":
        return [{"ProcessId": each.get("Id"), "Name": f"{each.get('Name')}.exe"} for each in running(call)]
    if name == "win32_processor":
        return [
            {"Name": "Simulated processor", "NumberOfCores": machine.cores, "NumberOfLogicalProcessors": machine.cores}
        ]
    if name == "win32_computersystemproduct":
        return [{"UUID": machine.system_uuid, "Name": "Virtual Machine"}]
    return None


async def get_cim_instance(call: Invocation) -> None:
    """Instances of a WMI class."""
    name = call.text("ClassName") or call.text("Class")
    found = instances(call, name.lower())
    if found is None:
        call.error("Invalid class ", "HRESULT 0x80041010", "ObjectNotFound")
        return
    condition = call.text("Filter")
    if condition:
        field, _, value = condition.partition("=")
        wanted = value.strip().strip("'\"").lower()
        found = [
            each
            for each in found
            if any(k.lower() == field.strip().lower() and to_text(v).lower() == wanted for k, v in each.items())
        ]
    for each in found:
        call.emit(
            PSObject(f"Microsoft.Management.Infrastructure.CimInstance#root/cimv2/{name}", each, shown=tuple(each)[:5])
        )


async def get_computer_info(call: Invocation) -> None:
    """A summary of the computer."""
    system = _operating_system(call)
    values = {
        "WindowsProductName": system["Caption"].removeprefix("Microsoft "),
        "OsBuildNumber": system["BuildNumber"],
    }
    values |= {"OsVersion": system["Version"], "CsName": system["CSName"], "OsLastBootUpTime": system["LastBootUpTime"]}
    call.emit(PSObject("Microsoft.PowerShell.Commands.ComputerInfo", values))


async def get_win_event(call: Invocation) -> None:
    """Entries of an event log."""
    machine = call.session.process.container.machine
    log = call.text("LogName", "System")
    if log.lower() not in ("system", "application", "security"):
        call.error(
            f'There is not an event log on the localhost computer that matches "{log}".',
            "NoMatchingLogsFound",
            "ObjectNotFound",
        )
        return
    values = {
        "TimeCreated": _stamp(machine.booted_at),
        "Id": 6005,
        "LevelDisplayName": "Information",
        "Message": "The Event log service was started.",
        "ProviderName": "EventLog",
        "LogName": log.capitalize(),
    }
    shown = ("TimeCreated", "Id", "LevelDisplayName", "Message")
    call.emit(PSObject("System.Diagnostics.Eventing.Reader.EventLogRecord", values, shown=shown))


async def power(call: Invocation) -> None:
    """Restart or stop the computer."""
    process = call.session.process
    if not process.container.host_process or (process.identity is not None and not process.identity.administrator):
        call.error("Privilege not held.", "PrivilegeNotHeld", "InvalidOperation")
        return
    process.container.machine.request_power(PowerRequest(call.name == "Restart-Computer", 0))


async def get_command(call: Invocation) -> None:
    """Which command a name means."""
    for name in [to_text(each) for each in as_list(call.get("Name"))]:
        cmdlet = call.session.cmdlet(name)
        path = native.find(call.session, name)
        if cmdlet is not None:
            call.emit(
                PSObject(
                    "System.Management.Automation.CmdletInfo",
                    {"CommandType": "Cmdlet", "Name": cmdlet.name, "Source": ""},
                )
            )
        elif path is not None:
            base = path.rpartition("\\")[2]
            call.emit(
                PSObject(
                    "System.Management.Automation.ApplicationInfo",
                    {"CommandType": "Application", "Name": base, "Source": path},
                )
            )
        else:
            call.error(native.not_recognized(name), "CommandNotFoundException", "ObjectNotFound")


async def get_acl(call: Invocation) -> None:
    """The access list of a file."""
    path = call.text("Path")
    try:
        place = call.session.process.files.find(path, call.session.cwd)
    except FileError:
        place = None
    if place is None or place.node is None:
        call.error(
            f"Cannot find path '{path}' because it does not exist.", "GetAcl_PathNotFound_Exception", "ObjectNotFound"
        )
        return
    rights = {"r": 0x1200A9, "rd": 0x1200A9, "rwd": 0x1F01FF, "rw": 0x1301BF}
    access = []
    for group, letters in place.acl.items():
        prefix = "NT AUTHORITY" if group in ("SYSTEM", "Authenticated Users") else "BUILTIN"
        name = f"{prefix}\\{group}"
        identity = PSObject("System.Security.Principal.NTAccount", {"Value": name}, text=name)
        allowed = PSObject(
            "System.Security.AccessControl.FileSystemRights", {"value__": rights.get(letters, 0)}, text="FullControl"
        )
        values = {"FileSystemRights": allowed, "AccessControlType": "Allow", "IdentityReference": identity}
        access.append(PSObject("System.Security.AccessControl.FileSystemAccessRule", values))
    owner = "BUILTIN\\Administrators"
    values = {"Path": path, "Owner": owner, "Group": "NT AUTHORITY\\SYSTEM", "Access": access}
    call.emit(PSObject("System.Security.AccessControl.FileSecurity", values, shown=("Path", "Owner", "Group")))


async def get_host(call: Invocation) -> None:
    """This PowerShell."""
    call.emit(
        PSObject(
            "System.Management.Automation.Internal.Host.InternalHost",
            {"Name": "ConsoleHost", "Version": version(call.session.product)},
        )
    )


_CIM = ("Filter", "Namespace", "Property", "ComputerName", "Query")

CMDLETS = [
    Cmdlet(
        "Start-Sleep",
        start_sleep,
        ("Seconds",),
        (),
        ("Milliseconds",),
        aliases={"m": "milliseconds", "ms": "milliseconds"},
    ),
    Cmdlet("Get-Process", get_process, ("Name",), (), ("Id",)),
    Cmdlet("Stop-Process", stop_process, ("Id",), ("Force", "PassThru"), ("Name",)),
    Cmdlet("Get-Service", get_service, ("Name",), (), ("DisplayName",)),
    Cmdlet("Start-Service", control_service, ("Name",), ("PassThru",)),
    Cmdlet("Stop-Service", control_service, ("Name",), ("Force", "PassThru")),
    Cmdlet("Restart-Service", control_service, ("Name",), ("Force", "PassThru")),
    Cmdlet("Get-CimInstance", get_cim_instance, ("ClassName",), (), _CIM),
    Cmdlet("Get-WmiObject", get_cim_instance, ("Class",), (), _CIM, desktop_only=True),
    Cmdlet("Get-ComputerInfo", get_computer_info, ("Property",)),
    Cmdlet(
        "Get-WinEvent",
        get_win_event,
        ("LogName",),
        (),
        ("MaxEvents", "FilterHashtable", "ProviderName"),
        desktop_only=True,
    ),
    Cmdlet("Restart-Computer", power, ("ComputerName",), ("Force", "Wait")),
    Cmdlet("Stop-Computer", power, ("ComputerName",), ("Force",)),
    Cmdlet("Get-Command", get_command, ("Name",), ("All",), ("CommandType", "Module")),
    Cmdlet("Get-Acl", get_acl, ("Path",)),
    Cmdlet("Get-Host", get_host),
]
