"""cmd.exe: reads command lines, runs built-ins and programs, keeps the error level."""

from __future__ import annotations

import asyncio
import fnmatch
import re
from collections.abc import Callable
from dataclasses import dataclass, field

from winready_sandbox.machine import commandline, executables, paths
from winready_sandbox.machine.environment import Environment
from winready_sandbox.machine.errors import ExecError, FileError
from winready_sandbox.machine.process import Exit, Process
from winready_sandbox.programs import record
from winready_sandbox.programs.cmd import builtins, expand
from winready_sandbox.programs.cmd.flow import Streams, number, split_name
from winready_sandbox.programs.cmd.loops import Counting
from winready_sandbox.programs.cmd.parser import (
    Block,
    Chain,
    CmdNode,
    CmdSyntaxError,
    Command,
    For,
    If,
    Parser,
    Redirect,
)
from winready_sandbox.programs.output import FileWriter, NullWriter, filled
from winready_sandbox.programs.pacing import Pace
from winready_sandbox.streams import Pipe

NOT_RECOGNIZED = 9009
SYNTAX_ERROR = 255
LONG = 2**14
"""Characters of a line from which on it is read beside everything else."""


@dataclass
class Shell:
    """The state of one interpreter."""

    process: Process
    env: Environment
    cwd: str
    errorlevel: int = 0
    echo: bool = True
    loop: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.pace = Pace(self.process)

    def variable(self, name: str) -> str | None:
        """A variable, or one of those that cmd computes."""
        if name in self.env:
            return self.env[name]
        computed: dict[str, Callable[[], str]] = {
            "CD": lambda: self.cwd,
            "ERRORLEVEL": lambda: str(self.errorlevel),
        }
        answer = computed.get(name.upper())
        return answer() if answer else None

    def path(self, text: str) -> str:
        """A path as this interpreter sees it, quotes taken off."""
        return self.process.files.absolute(text.strip().strip('"'), self.cwd)

    async def line(self, text: str, streams: Streams) -> int:
        """Run one line (or one parenthesised group of lines)."""
        expanded = expand.percent(text, self.variable)
        try:
            node = Parser(expanded).parse() if len(expanded) < LONG else await asyncio.to_thread(Parser(expanded).parse)
        except CmdSyntaxError as error:
            streams.err(f"{error}\n")
            self.errorlevel = SYNTAX_ERROR
            return SYNTAX_ERROR if "unexpected" in str(error) else 1
        return await self.run(node, streams) if node is not None else 0

    async def run(self, node: CmdNode, streams: Streams) -> int:
        """Run a parsed command and give its return code."""
        await self.pace.step()
        if isinstance(node, Chain):
            return await self._chain(node, streams)
        if isinstance(node, If):
            if self._condition(node):
                return await self.run(node.then, streams)
            return await self.run(node.otherwise, streams) if node.otherwise else 0
        if isinstance(node, For):
            return await self._for(node, streams)
        inner = self._redirected(node.redirects, streams)
        if inner is None:
            self.errorlevel = 1
            return 1
        redirected, opened = inner
        try:
            if isinstance(node, Block):
                code = 0
                for command in node.commands:
                    code = await self.run(command, redirected)
                return code
            code = await self._simple(node, redirected)
            await redirected.stdout.room()
            return code
        except FileError as error:
            streams.err(f"{error.windows}\n")
            self.errorlevel = 1
            return 1
        finally:
            for pipe in opened:
                pipe.close()

    async def _chain(self, node: Chain, streams: Streams) -> int:
        if node.operator == "|":
            return await self._pipeline(node, streams)
        code = await self.run(node.left, streams)
        if node.operator == "&&" and code:
            return code
        if node.operator == "||":
            if not code:
                return code
            self.errorlevel = code if self.errorlevel != NOT_RECOGNIZED else self.errorlevel
        return await self.run(node.right, streams)

    async def _pipeline(self, node: Chain, streams: Streams) -> int:
        between = Pipe()

        async def first() -> None:
            try:
                await self._child().run(node.left, Streams(streams.stdin, between, streams.stderr))
            except Exit:
                return
            finally:
                between.close()

        feeding = asyncio.ensure_future(first())
        try:
            code = await self._child().run(node.right, Streams(between, streams.stdout, streams.stderr))
        except Exit as ended:
            code = ended.code
        finally:
            between.close()
            feeding.cancel()
            await asyncio.wait([feeding])
        self.errorlevel = code
        return code

    def _child(self) -> Shell:
        return Shell(self.process, self.env.copy(), self.cwd, self.errorlevel, self.echo, dict(self.loop))

    def _redirected(self, redirects: list[Redirect], streams: Streams) -> tuple[Streams, list[Pipe]] | None:
        current = Streams(streams.stdin, streams.stdout, streams.stderr)
        opened: list[Pipe] = []
        for redirect in redirects:
            pipes = {0: current.stdin, 1: current.stdout, 2: current.stderr}
            if redirect.mode.endswith("&"):
                pipe = pipes.get(int(redirect.target) if redirect.target.isdigit() else -1)
            else:
                pipe = self._open(redirect, current)
                if pipe is not None:
                    opened.append(pipe)
            if pipe is None:
                for each in opened:
                    each.close()
                return None
            if redirect.handle == 0:
                current.stdin = pipe
            elif redirect.handle == 1:
                current.stdout = pipe
            elif redirect.handle == 2:
                current.stderr = pipe
        return current, opened

    def _open(self, redirect: Redirect, streams: Streams) -> Pipe | None:
        target = expand.loop_variables(redirect.target, self.loop)
        if paths.is_null("windows", target):
            return filled(b"") if redirect.mode == "<" else NullWriter()
        files = self.process.files
        try:
            if redirect.mode == "<":
                return filled(files.read(target, self.cwd, who=self.process.identity))
            access = "a" if redirect.mode == ">>" else "w"
            handle = files.open(target, self.cwd, who=self.process.identity, access=access, share="r")
            return FileWriter(handle, files.owner)
        except FileError as error:
            streams.err(f"{error.windows}\n")
            return None

    def _condition(self, node: If) -> bool:
        left, right = (self._text(text) for text in (node.left, node.right))
        if node.kind == "exist":
            result = bool(self.matching(left)) if any(c in left for c in "*?") else self._exists(left)
        elif node.kind == "defined":
            result = self.variable(left) is not None
        elif node.kind == "errorlevel":
            result = self.errorlevel >= number(left)
        else:
            result = self._compare(node.kind, left, right, node.ignore_case)
        return result != node.negated

    def _exists(self, text: str) -> bool:
        plain = text.strip('"')
        return paths.is_null("windows", plain) or self.process.files.exists(plain, self.cwd)

    @staticmethod
    def _compare(kind: str, left: str, right: str, ignore_case: bool) -> bool:
        if ignore_case:
            left, right = left.lower(), right.lower()
        if kind == "==":
            return left == right
        numbers = re.fullmatch(r"-?\d+", left) and re.fullmatch(r"-?\d+", right)
        one, two = (number(left), number(right)) if numbers else (0, 0)
        order = (one > two) - (one < two) if numbers else (left > right) - (left < right)
        tests = {
            "EQU": order == 0,
            "NEQ": order != 0,
            "LSS": order < 0,
            "LEQ": order <= 0,
            "GTR": order > 0,
            "GEQ": order >= 0,
        }
        return tests[kind]

    def matching(self, pattern: str) -> list[str]:
        """Names that a wildcard pattern matches, with the directory as it was written."""
        plain = pattern.strip().strip('"').replace("/", "\\")
        folder, slash, name = plain.rpartition("\\")
        try:
            entries = self.process.files.list(folder + slash or ".", self.cwd, who=self.process.identity)
        except FileError:
            return []
        wanted = "*" if name in ("*.*", "*") else name.lower()
        return [f"{folder}{slash}{entry}" for entry, _ in entries if fnmatch.fnmatchcase(entry.lower(), wanted)]

    async def _for(self, node: For, streams: Streams) -> int:
        code = 0
        for values in self._for_items(node):
            outer = dict(self.loop)
            self.loop.update(values)
            if self.echo and isinstance(node.body, Command) and not node.body.quiet:
                streams.out(f"\n{self.cwd}>{self._text(node.body.text)} \n")
            try:
                code = await self.run(node.body, streams)
            finally:
                self.loop = outer
        return code

    def _for_items(self, node: For) -> list[dict[str, str]] | Counting:
        items = expand.loop_variables(node.items, self.loop)
        if node.kind == "l":
            numbers = [number(part) for part in re.split(r"[\s,;]+", items.strip()) if part]
            return Counting(node.variable, *numbers[:3])
        words = [word.strip() for word in re.findall(r'"[^"]*"|[^\s,;=]+', items)]
        found: list[dict[str, str]] = []
        for word in words:
            names = self.matching(word) if any(char in word for char in "*?") else [word]
            found += [{node.variable: name} for name in names]
        return found

    def _text(self, text: str) -> str:
        return expand.loop_variables(text, self.loop)

    async def _simple(self, command: Command, streams: Streams) -> int:
        text = self._text(command.text).lstrip(" \t,;=")
        if not text.strip():
            return 0
        builtin = builtins.find(text)
        if builtin is not None:
            name, function, rest = builtin
            record.note(self.process, "cmd", name, record.switches(rest.split()))
            code = await function(self, rest, streams)
            if code is not None:
                self.errorlevel = code
            return code or 0
        return await self.external(text, streams)

    async def external(self, text: str, streams: Streams) -> int:
        """Run a program or batch file named at the start of a text."""
        name, rest = split_name(text)
        found = self._program(name)
        if found is None and "/" in name and not text.startswith('"'):
            shorter = name.partition("/")[0]
            found, name = self._program(shorter), shorter
        folder = name.replace("/", "\\").rpartition("\\")[0]
        if found is None and folder and not self.process.files.is_dir(f"{folder}\\", self.cwd):
            streams.err("The system cannot find the path specified.\n")
            self.errorlevel = 1
            return 1
        if found is None:
            streams.err(
                f"'{name}' is not recognized as an internal or external command,\noperable program or batch file.\n"
            )
            self.errorlevel = NOT_RECOGNIZED
            return 1
        try:
            child = self.process.spawn(
                [name, *commandline.split(rest)],
                stdin=streams.stdin,
                stdout=streams.stdout,
                stderr=streams.stderr,
                env=self.env,
                cwd=self.cwd,
                command_line=text,
                path=found,
            )
        except ExecError as error:
            streams.err(f"{error.reason}\n")
            self.errorlevel = 1
            return 1
        self.errorlevel = await child.finish()
        return self.errorlevel

    def _program(self, name: str) -> str | None:
        if name.startswith(("./", "../")):
            return None
        return executables.find_for_shell(self.process.files, name, self.cwd, self.env)
