"""Cmdlets on processes, services and the operating system."""

from __future__ import annotations

import datetime
import fnmatch
import time
from typing import Any

from winready_sandbox.clock import wall_time
from winready_sandbox.machine.machine import PowerRequest
from winready_sandbox.machine.windows_host import Service
from winready_sandbox.programs.powershell.binding import Cmdlet, Invocation
from winready_sandbox.programs.powershell.values import PSObject, as_list, to_number, to_text

_DOMAIN_ROLE = {True: 3, False: 2}


async def start_sleep(call: Invocation) -> None:
    """Wait for some cluster seconds."""
    await call.session.process.container.clock.sleep(min(max(float(to_number(call.get("Seconds", 0))), 0), 10**9))


def _process(name: str, pid: int, memory: int, path: str = "") -> PSObject:
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
        "Path": path or None,
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
        services = [each.path for each in host.services if each.state == "Running"]
        paths = [path.strip('"').partition(".exe")[0] + ".exe" for path in [*services, *host.programs]]
        by_path = {path: path.rpartition("\\")[2].removesuffix(".exe") for path in paths}
        extra = [(path, name) for path, name in by_path.items() if name not in ("svchost", "MsMpEng")]
        # Of a protected process nobody is told the path.
        extra += [("", "MsMpEng")] if host.defender.running else []
        found += [_process(name, 2000 + 4 * n, 60 * 2**20, path) for n, (path, name) in enumerate(extra)]
    return found


async def get_process(call: Invocation) -> None:
    """Running processes."""
    processes = running(call)
    for name in [to_text(each) for each in as_list(call.get("Name"))] or ["*"]:
        matching = [each for each in processes if fnmatch.fnmatchcase(to_text(each.get("Name")).lower(), name.lower())]
        if not matching and "*" not in name:
            text = f'Cannot find a process with the name "{name}". Verify the process name and call the cmdlet again.'
            call.error(text, "NoProcessFoundForGivenName", "ObjectNotFound")
        for each in matching:
            call.emit(each)


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
    return None


async def get_cim_instance(call: Invocation) -> None:
    """Instances of a WMI class."""
    name = call.text("ClassName") or call.text("Class")
    container = call.session.process.container
    broken = container.host_process and container.machine.defects.wmi_broken
    found = None if broken else instances(call, name.lower())
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


async def restart_computer(call: Invocation) -> None:
    """Restart the computer."""
    process = call.session.process
    if not process.container.host_process or (process.identity is not None and not process.identity.administrator):
        call.error("Privilege not held.", "PrivilegeNotHeld", "InvalidOperation")
        return
    process.container.machine.request_power(PowerRequest(True, 0))


CMDLETS = [
    Cmdlet("Start-Sleep", start_sleep, ("Seconds",)),
    Cmdlet("Get-Process", get_process, ("Name",)),
    Cmdlet("Get-Service", get_service, ("Name",)),
    Cmdlet("Get-CimInstance", get_cim_instance, ("ClassName",), (), ("Filter",)),
    Cmdlet("Get-WmiObject", get_cim_instance, ("Class",), desktop_only=True),
    Cmdlet("Get-WinEvent", get_win_event, (), (), ("LogName", "MaxEvents"), desktop_only=True),
    Cmdlet("Restart-Computer", restart_computer, (), ("Force",)),
]
