"""ping.exe, and ping as busybox has it."""

from __future__ import annotations

import itertools

from winready_sandbox.machine.process import Process
from winready_sandbox.network.endpoint import NetworkError, TimedOut, Unreachable
from winready_sandbox.network.pod_endpoint import NetworkEndpoint
from winready_sandbox.programs import record
from winready_sandbox.programs.net import addresses, endpoint_of, is_address

WINDOWS_OPTIONS = ("-n", "-t", "-w")
LINUX_OPTIONS = ("-c", "-W")


async def ping(process: Process) -> int:
    """Send echo requests and tell what came back."""
    return await (_windows(process) if process.windows else _linux(process))


def _ttl(endpoint: NetworkEndpoint, address: str) -> int:
    """Hops left: two routers lie between nodes, none within one."""
    stack = endpoint.fabric.stack_at(address)
    start = 128 if stack is not None and stack.os == "windows" else 64
    return start if stack is None or stack.node is endpoint.stack.node else start - 2


async def _windows(process: Process) -> int:
    count, wait, host, endless = 4, 4000, "", False
    queue = process.argv[1:]
    while queue:
        item = queue.pop(0)
        flag = item.lower().replace("/", "-", 1)
        if flag in WINDOWS_OPTIONS:
            record.note(process, "program", "ping", [flag])
        if flag == "-t":
            endless = True
        elif flag in WINDOWS_OPTIONS and queue:
            text = queue.pop(0)
            if not text.isdigit():
                process.out(f"Bad value for option {item}, valid range is from 1 to 4294967295.\r\n")
                return 1
            count = int(text) if flag == "-n" else count
            wait = int(text) if flag == "-w" else wait
        elif item.startswith("-"):
            process.out(f"Bad option {item}.\r\n\r\n")
            return 1
        else:
            host = item
    if not host:
        process.out("\r\nUsage: ping [-n count] [-w timeout] target_name\r\n\r\n")
        return 1
    try:
        address = (await addresses(process, host))[0]
    except NetworkError:
        process.out(f"Ping request could not find host {host}. Please check the name and try again.\r\n")
        return 1
    endpoint, clock = endpoint_of(process), process.container.clock
    shown = address if is_address(host) else f"{host} [{address}]"
    process.out(f"\r\nPinging {shown} with 32 bytes of data:\r\n")
    times: list[int] = []
    received = 0
    for number in itertools.count() if endless else range(count):
        if number:
            await clock.sleep(1.0)
        try:
            seconds = await endpoint.ping(address, timeout=wait / 1000)
        except TimedOut:
            process.out("Request timed out.\r\n")
        except Unreachable:
            # Fact 1.3: an unreachable answer counts as an answer, so the exit code is 0.
            received += 1
            process.out(f"Reply from {endpoint.addresses[0]}: Destination host unreachable.\r\n")
        else:
            received += 1
            times.append(round(seconds * 1000))
            took = f"time={times[-1]}ms" if times[-1] else "time<1ms"
            hops = "" if ":" in address else f" TTL={_ttl(endpoint, address)}"
            data = "" if ":" in address else " bytes=32"
            process.out(f"Reply from {address}:{data} {took}{hops}\r\n")
    lost = count - received
    process.out(
        f"\r\nPing statistics for {address}:\r\n    Packets: Sent = {count}, Received = {received}, "
        f"Lost = {lost} ({100 * lost // max(count, 1)}% loss),\r\n"
    )
    if times:
        process.out(
            f"Approximate round trip times in milli-seconds:\r\n    Minimum = {min(times)}ms, "
            f"Maximum = {max(times)}ms, Average = {sum(times) // len(times)}ms\r\n"
        )
    return 0 if received else 1


async def _linux(process: Process) -> int:
    count, wait, host = 0, 10.0, ""
    queue = process.argv[1:]
    while queue:
        item = queue.pop(0)
        if item in LINUX_OPTIONS:
            record.note(process, "program", "ping", [item])
            value = queue.pop(0) if queue else ""
            if not value.isdigit():
                process.err(f"ping: invalid number '{value}'\n")
                return 1
            count = int(value) if item == "-c" else count
            wait = float(value) if item == "-W" else wait
        elif item.startswith("-"):
            process.err(f"ping: unrecognized option: {item[1:]}\n")
            return 1
        else:
            host = item
    try:
        address = (await addresses(process, host))[0]
    except NetworkError:
        process.err(f"ping: bad address '{host}'\n")
        return 1
    endpoint, clock = endpoint_of(process), process.container.clock
    process.out(f"PING {host} ({address}): 56 data bytes\n")
    times: list[float] = []
    sent = 0
    while not count or sent < count:
        if sent:
            await clock.sleep(1.0)
        sent += 1
        try:
            seconds = await endpoint.ping(address, timeout=wait)
        except TimedOut:
            continue
        except Unreachable:
            process.err("ping: sendto: Host is unreachable\n")
            return 1
        times.append(seconds * 1000)
        ttl = _ttl(endpoint, address)
        process.out(f"64 bytes from {address}: seq={sent - 1} ttl={ttl} time={times[-1]:.3f} ms\n")
    loss = 100 * (sent - len(times)) // sent
    process.out(
        f"\n--- {host} ping statistics ---\n{sent} packets transmitted, {len(times)} packets received, "
        f"{loss}% packet loss\n"
    )
    if times:
        average = sum(times) / len(times)
        process.out(f"round-trip min/avg/max = {min(times):.3f}/{average:.3f}/{max(times):.3f} ms\n")
    return 0 if times else 1
