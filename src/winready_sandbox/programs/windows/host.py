"""hcsdiag and hnsdiag: what the host compute and networking services know."""

from __future__ import annotations

from winready_sandbox.machine.process import Process, Program


async def hcsdiag(process: Process) -> int:
    """Compute systems of this node."""
    if process.argv[1:2] != ["list"]:
        process.out("hcsdiag <command> [options...]\r\n\r\nCommands:\r\n\r\n  list [-raw]\r\n")
        return 0 if len(process.argv) == 1 else 1
    for container in process.container.machine.containers.values():
        if not container.host_process:
            process.out(f"{container.id}\r\n    Windows Server Container,\tRunning, {container.id[:8]}, ")
            process.out("containerd-shim-runhcs-v1.exe\r\n\r\n")
    for identifier in sorted(process.container.machine.virtual_machines):
        process.out(f"{identifier}\r\n    VM,\tRunning, {identifier[:8]}, containerd-shim-runhcs-v1.exe\r\n\r\n")
    return 0


async def hnsdiag(process: Process) -> int:
    """Objects of the host networking service."""
    machine = process.container.machine
    hns = machine.windows_host.hns
    words = [word.lower() for word in process.argv[1:]]
    if words[:1] != ["list"]:
        process.out("hnsdiag [list|delete|reset] [networks|endpoints|loadbalancers|namespaces|all]\r\n")
        return 1
    if machine.defects.hns_down:
        process.err("The RPC server is unavailable.\r\n")
        return 1722
    subject = words[1] if len(words) > 1 else "all"
    if subject in ("networks", "all"):
        for network in machine.hns_networks:
            process.out(f"Network : {network.id}\r\n    Name : {network.name}\r\n    Type : {network.type}\r\n")
            process.out(f"    Subnets : {network.subnet}\r\n\r\n")
    if subject in ("endpoints", "all"):
        for container in machine.containers.values():
            if container.endpoint is not None and not container.host_process:
                process.out(
                    f"Endpoint : {container.id[:32]}\r\n    IP Address : {container.endpoint.addresses[0]}\r\n\r\n"
                )
    if subject in ("namespaces", "all"):
        for identifier in hns.namespaces:
            process.out(f"Namespace : {identifier}\r\n\r\n")
    return 0


PROGRAMS: dict[str, Program] = {"hcsdiag.exe": hcsdiag, "hnsdiag.exe": hnsdiag}
