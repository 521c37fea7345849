"""Containers for tests, without nodes or a cluster around them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from winready_sandbox.clock import MAX_SPEED, Clock
from winready_sandbox.machine import images
from winready_sandbox.machine.container import Container
from winready_sandbox.machine.domain import CredentialSpec, Domain
from winready_sandbox.machine.errors import OS
from winready_sandbox.machine.machine import Machine
from winready_sandbox.network.endpoint import Endpoint
from winready_sandbox.programs.catalogue import PROGRAMS
from winready_sandbox.programs.output import filled

IMAGES = {
    "agnhost": "registry.k8s.io/e2e-test-images/agnhost:2.63.0",
    "busybox": "registry.k8s.io/e2e-test-images/busybox:1.37.0-2",
    "pause": "registry.k8s.io/pause:3.10.2",
    "nanoserver": "mcr.microsoft.com/windows/nanoserver:ltsc2022",
    "servercore": "mcr.microsoft.com/windows/servercore:ltsc2022",
    "nginx": "registry.k8s.io/e2e-test-images/nginx:1.15-4",
    "nonroot": "registry.k8s.io/e2e-test-images/nonroot:1.6.0",
    "resource-consumer": "registry.k8s.io/e2e-test-images/resource-consumer:1.15.0",
}


@dataclass(frozen=True)
class Result:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        """Standard output without line ends."""
        return self.out.splitlines()


def machine(os: OS = "windows", *, build: str = "20348", domain: Domain | None = None, cores: int = 4) -> Machine:
    """A computer that runs as fast as it can."""
    return Machine(
        f"{os[:3]}-1", os, clock=Clock(MAX_SPEED), programs=PROGRAMS, build=build, domain=domain, cores=cores
    )


def container(
    image: str = "agnhost",
    os: OS = "windows",
    *,
    on: Machine | None = None,
    user: str = "",
    env: Mapping[str, str] | None = None,
    hostname: str = "pod-1",
    host_process: bool = False,
    endpoint: Endpoint | None = None,
    cpu_limit: float | None = None,
    memory_limit: int | None = None,
    credential_spec: CredentialSpec | None = None,
) -> Container:
    """A container in which nothing runs yet."""
    host = on or machine(os)
    found = images.resolve(IMAGES.get(image, image), os, host.build.number if host.build else "")
    return Container(
        host,
        found,
        user=user,
        env=env,
        hostname=hostname,
        host_process=host_process,
        endpoint=endpoint,
        cpu_limit=cpu_limit,
        memory_limit=memory_limit,
        credential_spec=credential_spec,
    )


async def run(where: Container, *argv: str, stdin: bytes = b"", cwd: str | None = None) -> Result:
    """Exec a command and wait for it; it is not taken for the container's main process."""
    process = where.spawn(list(argv), stdin=filled(stdin), cwd=cwd)
    if where.main is process:
        where.main = None
    code = await process.wait()
    out = await process.stdout.read_all()
    err = b"" if process.tty else await process.stderr.read_all()
    return Result(code, out.decode("utf-8", "surrogateescape"), err.decode("utf-8", "surrogateescape"))


async def cmd(where: Container, line: str) -> Result:
    """`cmd /c line` as an exec."""
    return await run(where, "cmd", "/c", line)


async def sh(where: Container, script: str, *arguments: str, stdin: bytes = b"") -> Result:
    """`/bin/sh -c script` as an exec."""
    return await run(where, "/bin/sh", "-c", script, *arguments, stdin=stdin)


async def powershell(where: Container, script: str) -> Result:
    """`powershell.exe -NoProfile -Command script` as an exec."""
    return await run(where, "powershell.exe", "-NoProfile", "-Command", script)


async def until(condition: Callable[[], bool]) -> None:
    """Let the sandbox run until something holds."""
    for _ in range(12000):
        if condition():
            return
        await asyncio.sleep(0.005)
    raise AssertionError("it never came to be")
