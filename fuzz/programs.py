"""Scripts of strangers in simulated containers: whatever they are, the sandbox does not stumble."""

from __future__ import annotations

import asyncio
from pathlib import Path

from winready_sandbox.clock import MAX_SPEED, Clock
from winready_sandbox.machine import images
from winready_sandbox.machine.container import Container
from winready_sandbox.machine.errors import OS
from winready_sandbox.machine.machine import Machine
from winready_sandbox.programs.catalogue import PROGRAMS
from winready_sandbox.virtual_time import VirtualTimeLoop

SECONDS = 3.0
"""Virtual seconds that a script gets."""
IMAGES = {
    "linux": "registry.k8s.io/e2e-test-images/busybox:1.37.0-2",
    "windows": "mcr.microsoft.com/windows/servercore:ltsc2022",
}


def run(data: bytes, folder: Path) -> None:
    """Run a script as what it looks like."""
    text = data.replace(b"\x00", b"").decode("utf-8", "replace")
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        if text.startswith(("@", "%")) or "%i" in text[:200]:
            runner.run(_run("windows", ["cmd", "/c", text]))
        elif "$a = " in text or "@(" in text or "::" in text:
            runner.run(_run("windows", ["powershell", "-Command", text]))
        else:
            runner.run(_run("linux", ["/bin/sh", "-c", text]))


async def _run(os: OS, argv: list[str]) -> None:
    machine = Machine(f"{os}-1", os, clock=Clock(MAX_SPEED), programs=PROGRAMS)
    image = images.resolve(IMAGES[os], os, machine.build.number if machine.build else "")
    container = Container(machine, image, hostname="pod")
    process = container.spawn(argv)
    said = [asyncio.create_task(pipe.read_head(1000)) for pipe in (process.stdout, process.stderr)]
    try:
        async with asyncio.timeout(SECONDS):
            await process.wait()
    except TimeoutError:
        await process.kill()
    container.remove()
    for each in said:
        each.cancel()
    await asyncio.gather(*said, return_exceptions=True)
