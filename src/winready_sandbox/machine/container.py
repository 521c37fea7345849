"""A container: an image's files, a user, an environment, a network endpoint and the processes in it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from winready_sandbox.chance import unique_hex
from winready_sandbox.machine import commandline, executables, users
from winready_sandbox.machine.builds import WindowsBuild, windows_build
from winready_sandbox.machine.domain import CredentialSpec
from winready_sandbox.machine.environment import Environment, windows_variables
from winready_sandbox.machine.errors import OS, ExecError, NetworkPathNotFound, OutOfMemory
from winready_sandbox.machine.files import FileSystem
from winready_sandbox.machine.limits import Limits, in_force
from winready_sandbox.machine.process import Process, Program
from winready_sandbox.machine.resources import MEBIBYTE, CpuMeter, Memory, cpu_cap
from winready_sandbox.machine.tree import Directory, Node, as_directory
from winready_sandbox.machine.windows_host import WindowsHost
from winready_sandbox.streams import Pipe

if TYPE_CHECKING:
    from winready_sandbox.clock import Clock
    from winready_sandbox.machine.images import Image
    from winready_sandbox.machine.machine import Machine
    from winready_sandbox.machine.users import Identity
    from winready_sandbox.network.endpoint import Endpoint

__all__ = ["OS", "Container"]

MOUNT_POINT_VARIABLE = "CONTAINER_SANDBOX_MOUNT_POINT"
_SYSTEM_MEMORY = {"windows": 48 * MEBIBYTE, "linux": MEBIBYTE}
"""What a container needs for itself: a Windows container runs system processes of its own."""
_PROCESS_MEMORY = {"windows": 6 * MEBIBYTE, "linux": MEBIBYTE // 2}
_HEAVY = {"powershell-core": 55 * MEBIBYTE, "powershell-desktop": 70 * MEBIBYTE}
_MOST_PROCESSES = 500
_NESTED_SCRIPTS = 4
"""Scripts that name a script as their interpreter, as far as Linux follows them."""
_START_COST = {"windows": 0.06, "linux": 0.005}
"""Processor seconds that starting a process takes."""


class Container:
    """One running container; `winready_sandbox.nodes` starts it, programs run inside it."""

    machine: Machine
    hostname: str
    memory: Memory

    def __init__(
        self,
        machine: Machine,
        image: Image,
        *,
        os: OS | None = None,
        id: str = "",
        name: str = "",
        pod: str = "",
        hostname: str = "",
        user: str = "",
        cwd: str = "",
        env: Mapping[str, str] | None = None,
        endpoint: Endpoint | None = None,
        cpu_limit: float | None = None,
        memory_limit: int | None = None,
        first: bool = True,
        again: bool = False,
        host_process: bool = False,
        credential_spec: CredentialSpec | None = None,
    ) -> None:
        self.machine = machine
        self.image = image
        self.os: OS = os or image.os
        self.id = id or unique_hex(64)
        self.name = name
        self.pod = pod
        """Namespace and name of the pod that it is part of."""
        self.hostname = machine.name if host_process else hostname or self.id[:12]
        self.endpoint = endpoint
        self.clock: Clock = machine.clock
        self.host_process = host_process
        self.credential_spec = credential_spec
        self.tickets: list[str] = []
        """The services that it has Kerberos tickets for."""
        self._made_at = self.clock.now()
        if credential_spec is not None and machine.domain is not None:
            machine.domain.sessions[credential_spec.account] = self.id
        limits = in_force(Limits(cpu_limit, memory_limit), machine.defects, first=first, again=again)
        self.cpu_limit = limits.cpu
        self.oom_killed = False
        self.privileged = False
        self.no_new_privileges = False
        """Whether set-user-ID bits mean nothing here."""
        self.main: Process | None = None
        self.processes: dict[int, Process] = {}
        self._next_pid = 1 if self.os == "linux" else 1000
        self.memory = Memory(self.os, limits.memory, machine.memory)
        cap = cpu_cap(self.os, limits.cpu, machine.cores)
        self.cpu = CpuMeter(machine.processor, cap, limits.weight, limits.per_process)
        self.cpu_request = 0.0
        """Of a core: what it gets of a busy machine."""
        self._lose_limits_later(machine.defects.cpu_limit_lost_after, machine.defects.memory_limit_lost_after)
        self._own_host: WindowsHost | None = None
        self.mount_point = ""
        """Where a HostProcess container finds its image's files."""
        self.files = self._file_system()
        self.user = user or image.user
        self.identity = self.identity_of(self.user)
        self.cwd = cwd or (self.mount_point if host_process else image.cwd)
        self.env = self._environment({**image.env, **(env or {})})
        if not host_process:
            self.memory._add(_SYSTEM_MEMORY[self.os])
        machine.containers[self.id] = self

    def _lose_limits_later(self, cpu: float, memory: float) -> None:
        if cpu:
            asyncio.get_running_loop().call_later(self.clock.wall(cpu), self.cpu.lift)
        if memory:
            asyncio.get_running_loop().call_later(self.clock.wall(memory), self.memory.lift)

    def resize(self, request: float, cpu: float | None, memory: int | None) -> None:
        """Change what it may use while it runs."""
        self.cpu_request, self.cpu_limit, self.memory.limit = request, cpu, memory
        self.cpu.limit_to(cpu_cap(self.os, cpu, self.machine.cores))

    def _file_system(self) -> FileSystem:
        if not self.host_process:
            files = FileSystem(self.os, self.image.root, owner=self, disk=self.machine.disk)
        else:
            files = FileSystem(self.os, self.machine.files.root, owner=self, disk=self.machine.disk)
            bound = self.machine.binds_files
            base = "C:\\hpc" if self.machine.containerd_release >= (1, 7) else "C:\\C"
            self.mount_point = base if bound else f"{base}\\{self.id}"
            own = as_directory(self.image.root.get("C:")).thawed()
            own.acl = own.inherit = None
            if bound:
                files.mount(self.mount_point, own)
            else:
                self.machine.files.mkdir(base, parents=True)
                as_directory(self.machine.files.change(base)).put(self.id, own)
        files.shares = self._reach_share
        return files

    def _reach_share(self, server: str, name: str, who: Identity | None) -> Directory:
        domain = self.machine.domain
        if domain is None:
            raise NetworkPathNotFound(f"\\\\{server}\\{name}")
        return domain.share(server, name, self.account, self.clock.now())

    @property
    def account(self) -> str:
        """Who the container is to its domain at this moment; empty for nobody."""
        spec, domain, defects = self.credential_spec, self.machine.domain, self.machine.defects
        if spec is None or domain is None or not domain.admits(spec, self.id):
            return ""
        now, after, every = self.clock.now(), defects.account_lost_after, defects.account_falters
        gone = 0 < after < now - self._made_at or (every and now % every < 1)
        return "" if gone else spec.account

    def mount_volume(self, path: str, node: Node, *, read_only: bool = False, memory: bool = False) -> None:
        """Mount a volume as the runtime does: HostProcess containers also (or only) find it below their mount point."""
        if not self.host_process:
            self.files.mount(path, node, read_only=read_only, memory=memory)
            return
        if self.machine.binds_files:
            self.files.mount(path, node, read_only=read_only)
        below = path.replace("/", "\\")
        below = below[2:] if below[1:2] == ":" else below
        self.files.mount(f"{self.mount_point}\\{below.lstrip(chr(92))}", node, read_only=read_only)

    @property
    def computer_name(self) -> str:
        """The NetBIOS name: at most 15 characters, upper case."""
        return self.hostname[:15].upper()

    @property
    def build(self) -> WindowsBuild:
        """The Windows release that processes see: the image's, or the node's for HostProcess."""
        if self.host_process or not self.image.build:
            return self.machine.own_build
        return windows_build(self.image.build)

    @property
    def host(self) -> WindowsHost:
        """The administrative state that processes can change: a container's own, unless it is HostProcess."""
        if self.host_process:
            return self.machine.windows_host
        if self._own_host is None:
            self._own_host = WindowsHost(self.build, services=[], firewall=[])
            self._own_host.defender.running = False
        return self._own_host

    def identity_of(self, user: str) -> Identity:
        """The account behind a user name here; raises `UnknownUser`."""
        if self.os == "windows":
            if self.host_process and (group := self.machine.windows_host.group(user)):
                return users.group_member(self.id, self.machine.name, group)
            return self._with_account(users.windows_identity(user or "ContainerAdministrator", host=self.host_process))
        passwd = self.files.read("/etc/passwd").decode() if self.files.exists("/etc/passwd") else ""
        return users.linux_identity(user, passwd)

    def _with_account(self, local: Identity) -> Identity:
        """A local user of a container with a credential spec has the rights of its account as well."""
        spec, domain = self.credential_spec, self.machine.domain
        if spec is None or domain is None or not domain.admits(spec, self.id):
            return local
        return replace(local, groups=local.groups | {spec.account})

    def _environment(self, given: Mapping[str, str]) -> Environment:
        env = Environment(self.os)
        if self.os == "linux":
            env.update(
                {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOSTNAME": self.hostname}
            )
            env.update({"HOME": "/root" if self.identity.uid == 0 else "/"})
            env.update(given)
            return env
        env.update(windows_variables(self.identity, self.computer_name, self.machine.cores))
        if self.host_process:
            env.update(self.machine.windows_host.machine_environment)
            given = {name: self._with_mount_point(value) for name, value in given.items()}
        env.update(given)
        if self.host_process:
            env[MOUNT_POINT_VARIABLE] = self.mount_point
            separator = "" if env["PATH"].endswith(";") else ";"
            powershell = "C:\\WINDOWS\\System32\\WindowsPowerShell\\v1.0\\;C:\\WINDOWS\\System32\\Wbem"
            env["PATH"] = f"{env['PATH']}{separator}{self.mount_point};{powershell}"
        return env

    def _with_mount_point(self, text: str) -> str:
        for form in (f"%{MOUNT_POINT_VARIABLE}%", f"$env:{MOUNT_POINT_VARIABLE}"):
            text = text.replace(form, self.mount_point)
        return text

    def spawn(
        self,
        argv: Sequence[str],
        *,
        stdin: Pipe | None = None,
        stdout: Pipe | None = None,
        stderr: Pipe | None = None,
        tty: bool = False,
        user: str | None = None,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
    ) -> Process:
        """Start a process as the runtime does, for the container's command or an exec; raises `ExecError`.

        Without ``stdin`` the process reads an empty input. The first process is the container's main one: when it
        ends, all end. HostProcess commands run under ``cmd /c`` where the runtime binds files.
        """
        arguments = list(argv)
        if not arguments:
            raise ExecError(self.os, "no command specified")
        if stdin is None:
            stdin = Pipe()
            stdin.close()
        environment = self.env
        if env:
            environment = self.env.copy()
            environment.update(env)
        line = ""
        directory = cwd or self.cwd
        if self.host_process:
            line = self._with_mount_point(commandline.join(arguments))
            directory = self._with_mount_point(directory)
            if not self.files.is_dir(directory):
                self.files.mkdir(directory, parents=True)
            if self.machine.binds_files:
                line = f"cmd /c {line}"
            arguments = commandline.split(line)
        stdout = stdout or Pipe()
        process = self.start_process(
            arguments,
            stdin=stdin,
            stdout=stdout,
            stderr=stdout if tty else stderr or Pipe(),
            env=environment,
            cwd=self.files.absolute(directory, self.files.top),
            user=user or self.user,
            identity=self.identity_of(user) if user and not self.host_process else self.identity,
            parent=None,
            command_line=line,
            tty=tty,
        )
        if self.main is None:
            self.main = process
        return process

    def start_process(
        self,
        argv: list[str],
        *,
        stdin: Pipe,
        stdout: Pipe,
        stderr: Pipe,
        env: MutableMapping[str, str],
        cwd: str,
        user: str,
        identity: Identity | None,
        parent: Process | None,
        command_line: str = "",
        path: str = "",
        tty: bool = False,
    ) -> Process:
        """Start a process of any kind; raises `ExecError` when the program does not exist or cannot run here."""
        found = path or self.find_program(argv[0], cwd, env, identity)
        program, name, argv = self._load(found, argv, cwd, env, identity)
        memory = _HEAVY.get(name, _PROCESS_MEMORY[self.os])
        if len(self.processes) >= _MOST_PROCESSES:
            windows = "Insufficient system resources exist to complete the requested service."
            raise ExecError(self.os, windows if self.os == "windows" else "resource temporarily unavailable")
        try:
            self.memory.take(memory)
        except OutOfMemory:
            reason = "The paging file is too small for this operation to complete."
            raise ExecError(self.os, reason if self.os == "windows" else "cannot allocate memory") from None
        process = Process(
            self,
            argv,
            Environment(self.os, env),
            cwd,
            user,
            stdin,
            stdout,
            stderr,
            tty,
            pid=self._next_pid,
            parent=parent,
            command_line=command_line or commandline.join(argv),
            path=found,
            identity=self._as_owner(found, identity),
            shares_streams=parent is not None,
            memory=memory,
        )
        self._next_pid += 1 if self.os == "linux" else 4
        self.processes[process.pid] = process
        if parent is not None:
            parent.children.append(process)
        self.cpu.charge(_START_COST[self.os])
        process.run(program)
        return process

    def _as_owner(self, path: str, identity: Identity | None) -> Identity | None:
        """Who a program runs as: whoever starts it, or its owner where the file has the set-user-ID bit."""
        if self.os == "windows" or identity is None or self.no_new_privileges:
            return identity
        node = self.files.node(path)
        return self.identity_of(str(node.uid)) if node.mode & 0o4000 else identity

    async def replace(
        self, process: Process, path: str, argv: list[str], env: MutableMapping[str, str], cwd: str
    ) -> int:
        """Run another program in place of the one in a process, as exec(2) does; raises `ExecError`."""
        program, _, process.argv = self._load(path, argv, cwd, env, process.identity)
        process.env, process.cwd, process.path = Environment(self.os, env), cwd, path
        process.command_line = commandline.join(process.argv)
        return await program(process)

    def find_program(self, name: str, cwd: str, env: Mapping[str, str], who: Identity | None) -> str:
        """The file that a name means when a process is created directly, without a shell."""
        if self.os == "windows":
            return executables.find_for_create_process(self.files, name, cwd, env)
        return executables.find_for_posix(self.files, name, cwd, env, who)

    def _load(
        self, path: str, argv: list[str], cwd: str, env: Mapping[str, str], who: Identity | None, nested: int = 0
    ) -> tuple[Program, str, list[str]]:
        data = self.files.read(path)
        name = executables.program_of(self.os, data)
        if name is not None:
            program = self.machine.programs.get(name)
            if program is None:
                raise ExecError(self.os, f"the sandbox has no program {name!r} behind {path}")
            return program, name, argv
        if self.os == "linux" and data.startswith(b"#!"):
            interpreter = data[2:1024].partition(b"\n")[0].decode(errors="replace").split()
            if nested > _NESTED_SCRIPTS:
                raise ExecError("linux", f"exec {path}: too many levels of symbolic links")
            if interpreter:
                found = self.find_program(interpreter[0], cwd, env, who)
                return self._load(found, [*interpreter, path, *argv[1:]], cwd, env, who, nested + 1)
        if self.os == "windows":
            raise ExecError("windows", "%1 is not a valid Win32 application.")
        raise ExecError("linux", f"exec {path}: exec format error", permission=True)

    def forget(self, process: Process) -> None:
        """A process has ended; with the main one, the others end too."""
        self.processes.pop(process.pid, None)
        if process is self.main:
            for other in list(self.processes.values()):
                if other._task is not None:
                    other._task.cancel()

    def out_of_memory(self) -> None:
        """The kernel kills everything in a Linux container that went over its limit."""
        self.oom_killed = True
        for process in list(self.processes.values()):
            if process._task is not None and process._task is not asyncio.current_task():
                process._killed_with = 137
                process._task.cancel()

    async def stop(self, grace: float) -> int:
        """Ask the container to stop, kill what is left after ``grace`` cluster seconds, and give its exit code."""
        main = self.main
        if main is None:
            return 0
        await asyncio.sleep(0)  # a process that was only just started gets to install its handler
        for process in list(self.processes.values()) if self.os == "windows" else [main]:
            process.signal_stop()
        if main.running and main._task is not None:
            await asyncio.wait([main._task], timeout=self.clock.wall(grace))
        await main.kill()
        self.remove()
        return await main.wait()

    def remove(self) -> None:
        """Take the container off its machine."""
        if self.machine.containers.pop(self.id, None) is not None:
            for process in list(self.processes.values()):
                if process._task is not None:
                    process._task.cancel()
            if not self.host_process:
                self.memory.give_back(_SYSTEM_MEMORY[self.os])
            if self.cpu.demand:
                self.cpu.ask(-self.cpu.demand)
