"""The interpreter: variables, functions, control flow, redirections, child processes."""

from __future__ import annotations

import asyncio
import fnmatch
import random
from dataclasses import dataclass, field

from winready_sandbox.machine import executables, paths
from winready_sandbox.machine.environment import Environment
from winready_sandbox.machine.errors import ExecError, FileError, IsDirectory, NotFound
from winready_sandbox.machine.process import Exit, Process
from winready_sandbox.programs import record
from winready_sandbox.programs.holding import Holding
from winready_sandbox.programs.output import Collector, FileWriter, NullWriter, filled
from winready_sandbox.programs.pacing import Pace
from winready_sandbox.programs.sh import builtins, expand
from winready_sandbox.programs.sh.parser import Parser
from winready_sandbox.programs.sh.syntax import (
    AndOr,
    CaseClause,
    ForClause,
    Function,
    IfClause,
    Loop,
    Pipeline,
    Redirect,
    Redirected,
    Sequence,
    ShellNode,
    Simple,
    Subshell,
)
from winready_sandbox.programs.sh.words import ShellSyntaxError
from winready_sandbox.streams import Pipe, encoded

Handles = dict[int, Pipe]
MOST_FORKS = 256
"""Parts of a script that run at once, as a limit of processes has it."""
LONG = 2**14
"""Characters of a script from which on it is read beside everything else."""


class Family:
    """What a shell and its subshells share: the processor, their memory, and how many of them there are."""

    def __init__(self, process: Process) -> None:
        self.pace = Pace(process)
        self.holding = Holding(process)
        self.forks = 0
        self.bytes = 0

    def grow(self, size: int) -> None:
        """Hold so many bytes more, or less."""
        self.bytes += size
        self.holding.book(self.bytes)


@dataclass
class Shell:
    """The state of one shell; subshells are copies."""

    process: Process
    env: Environment
    cwd: str
    arguments: list[str]
    variables: dict[str, str] = field(default_factory=dict)
    """Those that are not exported."""
    functions: dict[str, ShellNode] = field(default_factory=dict)
    traces: bool = False
    """`-x`: commands are shown before they run."""
    status: int = 0
    traps: dict[str, str] = field(default_factory=dict)
    jobs: list[asyncio.Task[int]] = field(default_factory=list)
    last_job: int = 0

    family: Family | None = None

    def __post_init__(self) -> None:
        self.relatives = self.family or Family(self.process)
        self.pace = self.relatives.pace
        self._sizes: dict[str, int] = {}

    @property
    def name(self) -> str:
        """How error messages begin."""
        return self.process.argv[0] if self.process.argv else "sh"

    def get(self, name: str) -> str | None:
        """The value of a variable or special parameter."""
        if name.isdigit():
            index = int(name)
            return self.arguments[index] if index < len(self.arguments) else None
        if name == "RANDOM":
            return str(random.randrange(32768))
        special = {
            "?": str(self.status),
            "$": str(self.process.pid),
            "#": str(len(self.arguments) - 1),
            "!": str(self.last_job) if self.last_job else "",
            "PWD": self.cwd,
        }.get(name)
        if special is not None:
            return special
        return self.variables.get(name, self.env.get(name))

    def set(self, name: str, value: str) -> None:
        """Assign a variable, exported or not."""
        self.relatives.grow(len(value) - self._sizes.get(name, 0))
        self._sizes[name] = len(value)
        if name in self.env:
            self.env[name] = value
        else:
            self.variables[name] = value

    def copy(self) -> Shell:
        """A subshell."""
        return Shell(
            self.process,
            self.env.copy(),
            self.cwd,
            list(self.arguments),
            dict(self.variables),
            dict(self.functions),
            self.traces,
            self.status,
            family=self.relatives,
        )

    def leave(self) -> None:
        """A subshell is over, and what it held."""
        self.relatives.grow(-sum(self._sizes.values()))
        self._sizes.clear()

    async def script(self, text: str, handles: Handles, *, last: bool = False) -> int:
        """Run a text; with ``last`` its final command may take the place of the shell."""
        try:
            tree = Parser(text).parse() if len(text) < LONG else await asyncio.to_thread(Parser(text).parse)
        except ShellSyntaxError as error:
            self.complain(handles, str(error))
            self.status = 2
            return 2
        if last and tree.commands:
            *before, (final, background) = tree.commands
            if isinstance(final, Simple) and not background and not self.traps:
                await self.run(Sequence(before), handles)
                return await self._simple(final, handles, replace=not self.traps)
        return await self.run(tree, handles)

    def complain(self, handles: Handles, text: str) -> None:
        """An error message of the shell itself."""
        handles[2].write(encoded(f"{self.name}: {text}\n"))

    async def substitute(self, script: str) -> str:
        """The output of a script."""
        collected = Collector(self.relatives.holding.check)
        child = self.copy()
        handles = {0: self._current[0], 1: collected, 2: self._current[2]} if self._current else {}
        try:
            self.status = await child.script(script, handles)
        except Exit as ended:
            self.status = ended.code
        finally:
            child.leave()
        return collected.text().replace("\r\n", "\n") if self.process.windows else collected.text()

    _current: Handles = field(default_factory=dict)

    async def run(self, node: ShellNode, handles: Handles) -> int:
        """Run a node and give its exit status."""
        await self.pace.step()
        self._current = handles
        if isinstance(node, Sequence):
            for command, background in node.commands:
                if background:
                    self._start_job(command, handles)
                    self.status = 0
                else:
                    self.status = await self.run(command, handles)
                    await self._signals(handles)
            return self.status
        if isinstance(node, Simple):
            self.status = await self._simple(node, handles)
            return self.status
        if isinstance(node, AndOr):
            code = await self.run(node.left, handles)
            return await self.run(node.right, handles) if (code == 0) == (node.operator == "&&") else code
        if isinstance(node, Pipeline):
            return await self._pipeline(node, handles)
        if isinstance(node, Function):
            self.functions[node.name] = node.body
            return 0
        if isinstance(node, Subshell):
            return await self._subshell(node.body, handles)
        if isinstance(node, Redirected):
            redirected, opened = await self.redirect(node.redirects, handles)
            if redirected is None:
                return 1
            try:
                return await self.run(node.body, redirected)
            finally:
                for pipe in opened:
                    pipe.close()
        return await self._control(node, handles)

    async def _control(self, node: IfClause | Loop | ForClause | CaseClause, handles: Handles) -> int:
        if isinstance(node, IfClause):
            for condition, body in node.branches:
                if await self._test(condition, handles):
                    return await self.run(body, handles)
            return await self.run(node.otherwise, handles) if node.otherwise else 0
        if isinstance(node, CaseClause):
            subject = await expand.text(self, node.word)
            for patterns, body in node.items:
                for each in patterns:
                    if fnmatch.fnmatchcase(subject, await expand.pattern(self, each)):
                        return await self.run(body, handles)
            return 0
        code = 0
        if isinstance(node, ForClause):
            values = self.arguments[1:] if node.words is None else await expand.fields(self, node.words)
            for value in values:
                self.set(node.variable, value)
                code = await self.run(node.body, handles)
            return code
        while await self._test(node.condition, handles) != node.until:
            code = await self.run(node.body, handles)
        return code

    async def _test(self, node: ShellNode, handles: Handles) -> bool:
        return await self.run(node, handles) == 0

    async def _subshell(self, body: ShellNode, handles: Handles) -> int:
        child = self.copy()
        try:
            return await child.run(body, handles)
        except Exit as ended:
            return ended.code & 0xFF
        finally:
            child.leave()

    async def _pipeline(self, node: Pipeline, handles: Handles) -> int:
        if len(node.commands) == 1:
            code = int(await self._test(node.commands[0], handles))
            return code if node.negated else 1 - code
        if not self._may_fork(handles, len(node.commands)):
            return 2
        tasks: list[asyncio.Task[int]] = []
        source = handles[0]
        for index, command in enumerate(node.commands):
            final = index == len(node.commands) - 1
            sink = handles[1] if final else Pipe()
            tasks.append(asyncio.create_task(self._stage(command, {**handles, 0: source, 1: sink}, index, final)))
            source = sink
        try:
            code = (await asyncio.gather(*tasks))[-1]
        except asyncio.CancelledError:
            for task in tasks:
                task.cancel()
            raise
        finally:
            self.relatives.forks -= len(tasks)
        return int(not code) if node.negated else code

    async def _stage(self, command: ShellNode, handles: Handles, index: int, final: bool) -> int:
        try:
            return await self._subshell(command, handles)
        finally:
            if not final:
                handles[1].close()
            if index:
                handles[0].close()

    def _start_job(self, node: ShellNode, handles: Handles) -> None:
        if not self._may_fork(handles, 1):
            raise Exit(2)
        silent = {**handles, 0: filled(b"")}
        task = asyncio.create_task(self._subshell(node, silent))
        task.add_done_callback(self._job_over)
        self.jobs.append(task)
        self.last_job = self.process.pid + len(self.jobs)

    def _may_fork(self, handles: Handles, number: int) -> bool:
        if self.relatives.forks + number > MOST_FORKS:
            self.complain(handles, "can't fork: Resource temporarily unavailable")
            return False
        self.relatives.forks += number
        return True

    def _job_over(self, task: asyncio.Task[int]) -> None:
        self.relatives.forks -= 1
        if not task.cancelled():
            task.exception()

    async def _signals(self, handles: Handles) -> None:
        action = self.traps.get("TERM")
        if action and self.process.stop_requested.is_set():
            self.traps.pop("TERM")
            await self.script(action, handles)

    async def redirect(self, redirects: list[Redirect], handles: Handles) -> tuple[Handles | None, list[Pipe]]:
        """Handles with redirections applied and what was opened for them; None after a failure."""
        current = dict(handles)
        opened: list[Pipe] = []
        for redirect in redirects:
            if redirect.operator in ("<<", "<<-", "<<<"):
                text = await expand.text(self, redirect.target)
                current[redirect.handle] = filled(encoded(f"{text}\n" if redirect.operator == "<<<" else text))
                continue
            target = await expand.text(self, redirect.target)
            pipe: Pipe | None
            if redirect.operator in (">&", "<&") and (target.isdecimal() or target == "-"):
                pipe = NullWriter() if target == "-" else current.get(int(target[:9]))
                if pipe is not None:
                    current[redirect.handle] = pipe
                    continue
                self.complain(handles, f"{target}: Bad file descriptor")
            else:
                pipe = self._open(redirect, target, handles)
            if pipe is None:
                for each in opened:
                    each.close()
                return None, []
            opened.append(pipe)
            current[redirect.handle] = pipe
            if redirect.operator == "&>":
                current[2] = pipe
        return current, opened

    def _open(self, redirect: Redirect, target: str, handles: Handles) -> Pipe | None:
        reading = redirect.operator in ("<", "<>")
        if target == "/dev/null" or (self.process.windows and paths.is_null("windows", target)):
            return filled(b"") if reading else NullWriter()
        files, who = self.process.files, self.process.identity
        try:
            if reading:
                return filled(files.read(target, self.cwd, who=who))
            access = "a" if redirect.operator == ">>" else "w"
            return FileWriter(files.open(target, self.cwd, who=who, access=access, share="rw"), files.owner)
        except FileError as error:
            if reading:
                reason = "no such file" if isinstance(error, NotFound) else error.linux
                self.complain(handles, f"can't open {target}: {reason}")
            else:
                reason = "nonexistent directory" if isinstance(error, NotFound) else error.linux
                reason = "Is a directory" if isinstance(error, IsDirectory) else reason
                self.complain(handles, f"can't create {target}: {reason}")
            return None

    async def _simple(self, node: Simple, handles: Handles, *, replace: bool = False) -> int:
        try:
            argv = await expand.fields(self, node.words)
            assignments = [(name, await expand.text(self, word)) for name, word in node.assignments]
            redirected, opened = await self.redirect(node.redirects, handles)
        except expand.ExpansionError as error:
            self.complain(handles, str(error))
            raise Exit(2) from None
        if redirected is None:
            return 1
        try:
            if self.traces and argv:
                handles[2].write(encoded(f"+ {' '.join(argv)}\n"))
            if not argv:
                for name, value in assignments:
                    self.set(name, value)
                substituted = any(node.assignments)
                return self.status if substituted and "$(" in repr(node.assignments) else 0
            code = await self.execute(argv, dict(assignments), redirected, replace=replace)
            await redirected[1].room()
            return code
        except FileError as error:
            self.complain(handles, f"write error: {error.linux}")
            return 1
        finally:
            for pipe in opened:
                pipe.close()

    async def execute(
        self, argv: list[str], assignments: dict[str, str], handles: Handles, *, replace: bool = False
    ) -> int:
        """Run a function, a built-in or a program."""
        function = self.functions.get(argv[0])
        if function is not None:
            return await self._call(function, argv, handles)
        builtin = builtins.BUILTINS.get(argv[0])
        if builtin is not None:
            record.note(self.process, "sh", argv[0])
            for name, value in assignments.items():
                self.set(name, value)
            return await builtin(self, argv, handles)
        env = self.env
        if assignments:
            env = self.env.copy()
            env.update(assignments)
        return await self.program(argv, env, handles, replace=replace)

    async def _call(self, body: ShellNode, argv: list[str], handles: Handles) -> int:
        outer, self.arguments = self.arguments, [self.arguments[0], *argv[1:]]
        try:
            return await self.run(body, handles)
        finally:
            self.arguments = outer

    def find(self, name: str, env: Environment) -> str:
        """The file behind a command's name; raises `ExecError`."""
        if not self.process.windows:
            return executables.find_for_posix(self.process.files, name, self.cwd, env, self.process.identity)
        found = executables.find_for_shell(self.process.files, name, self.cwd, env, current_first=False)
        if found is None and "/" in name:
            return executables.find_for_create_process(self.process.files, name, self.cwd, env)
        if found is None:
            raise ExecError("windows", "not found")
        return found

    async def program(self, argv: list[str], env: Environment, handles: Handles, *, replace: bool) -> int:
        """Run a program as a child, or in place of the shell."""
        try:
            found = self.find(argv[0], env)
            if replace and handles[1] is self.process.stdout and handles[2] is self.process.stderr:
                self.process.stdin = handles[0]
                return await self.process.container.replace(self.process, found, argv, env, self.cwd)
            child = self.process.spawn(
                argv, stdin=handles[0], stdout=handles[1], stderr=handles[2], env=env, cwd=self.cwd, path=found
            )
        except ExecError as error:
            if error.permission:
                self.complain(handles, f"{argv[0]}: Permission denied")
                return 126
            self.complain(handles, f"{argv[0]}: not found")
            return 127
        return await child.finish()
