"""A running PowerShell: scopes, statements, pipelines, errors."""

from __future__ import annotations

import asyncio
import contextlib
import fnmatch
import functools
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from winready_sandbox.machine.errors import FileError, OutOfMemory
from winready_sandbox.machine.process import Exit, Process
from winready_sandbox.programs import record
from winready_sandbox.programs.pacing import Pace
from winready_sandbox.programs.powershell import display, native
from winready_sandbox.programs.powershell.accounting import Account, Gathered
from winready_sandbox.programs.powershell.binding import Cmdlet, bind
from winready_sandbox.programs.powershell.cmdlets import ALIASES, CMDLETS
from winready_sandbox.programs.powershell.evaluation import Evaluator, Parameter
from winready_sandbox.programs.powershell.failures import as_failure, error_record
from winready_sandbox.programs.powershell.operators import equal
from winready_sandbox.programs.powershell.parser import Parser
from winready_sandbox.programs.powershell.syntax import (
    Assignment,
    Chain,
    Command,
    Flow,
    For,
    ForEach,
    FunctionDefinition,
    If,
    ParseError,
    Pipeline,
    Redirection,
    ScriptBlock,
    Statement,
    Switch,
    Try,
    Value,
    Variable,
    While,
)
from winready_sandbox.programs.powershell.values import (
    LONGEST_VARIABLE,
    PowerShellError,
    PSObject,
    as_list,
    to_text,
    truth,
    unrolled,
)

Emit = Callable[[Any], None]
AT_ONCE = 64
"""Values that are passed on before anybody else gets a turn."""
LONG = 2**14
"""Characters of a script from which on it is read beside everything else."""
ALWAYS = Value(Variable("true"))


class LoopExit(Exception):
    """`break` and `continue`."""

    def __init__(self, *, ends: bool) -> None:
        super().__init__("break" if ends else "continue")
        self.ends = ends


class ReturnValue(Exception):
    """`return`."""


@dataclass
class Session:
    """The state of one interpreter."""

    process: Process
    desktop: bool
    """Windows PowerShell 5.1, not PowerShell Core 6.2."""
    scopes: list[dict[str, Any]] = field(default_factory=lambda: [{}])
    functions: dict[str, ScriptBlock] = field(default_factory=dict)
    cwd: str = "C:\\"
    succeeded: bool = True
    last_native: int | None = None
    jobs: list[Any] = field(default_factory=list)
    errors: list[Any] = field(default_factory=list)
    errors_to: Emit | None = None
    """Where `2>&1` sends errors."""
    native_types: dict[str, dict[str, str]] = field(default_factory=dict)
    """Types made by Add-Type: the library behind each native function."""

    def __post_init__(self) -> None:
        self.pace = Pace(self.process)
        self.account = Account(self, self.pace)
        self.evaluator = Evaluator(self)

    @property
    def product(self) -> str:
        """The version number of this PowerShell."""
        return (
            f"5.1.{self.process.container.build.number}.{self.process.container.build.revision}"
            if self.desktop
            else "6.2.7"
        )

    def lookup(self, name: str) -> Any:
        """A variable of any scope, or None."""
        plain = (
            name.partition(":")[2]
            if name.partition(":")[0] in ("global", "script", "local", "private", "using")
            else name
        )
        for scope in reversed(self.scopes):
            if plain in scope:
                return scope[plain]
        return None

    def assign(self, name: str, value: Any) -> None:
        """Set a variable in the current (or the named) scope."""
        prefix, _, plain = name.rpartition(":")
        if prefix == "env":
            if len(to_text(value)) > LONGEST_VARIABLE:
                raise PowerShellError("Environment variable name or value is too long.", "ArgumentException")
            if value is None or value == "":
                self.process.env.pop(plain, None)
            else:
                self.process.env[plain] = to_text(value)
            return
        (self.scopes[0] if prefix in ("global", "script") else self.scopes[-1])[plain] = value

    def print(self, value: Any) -> None:
        """Show a value on the screen."""
        text = "".join(f"{line}\r\n" for line in display.lines([value]))
        self.process.out(text.replace("\r\r\n", "\r\n"))

    def error(self, message: str, identifier: str, *, source: str = "", kind: str = "NotSpecified") -> None:
        """A non-terminating error: shown, remembered, or raised, as $ErrorActionPreference says."""
        self.succeeded = False
        preference = to_text(self.lookup("erroractionpreference") or "Continue").lower()
        if preference == "stop":
            raise PowerShellError(message, identifier, kind)
        record = error_record(PowerShellError(message, identifier, kind))
        self.errors.insert(0, record)
        if preference in ("silentlycontinue", "ignore"):
            return
        self.show_error(message, identifier, source=source, kind=kind)

    def show_error(self, message: str, identifier: str, *, source: str = "", kind: str = "NotSpecified") -> None:
        """An error as it looks on the screen."""
        head = f"{source} : {message}" if source else message
        text = (
            f"{head}\r\nAt line:1 char:1\r\n+ {source or message}\r\n+ {'~' * max(len(source), 1)}\r\n"
            f"    + CategoryInfo          : {kind}: (:) [{source}], {kind}Exception\r\n"
            f"    + FullyQualifiedErrorId : {identifier}\r\n \r\n"
        )
        if self.errors_to is not None:
            self.errors_to(PSObject("System.Management.Automation.ErrorRecord", {}, text=text.rstrip()))
        else:
            self.process.err(text)

    async def script(self, text: str, emit: Emit, arguments: list[Any] | None = None) -> None:
        """Run a text."""
        try:
            block = Parser(text).parse() if len(text) < LONG else await asyncio.to_thread(Parser(text).parse)
        except (ParseError, RecursionError) as error:
            reason = "The script is nested too deeply." if isinstance(error, RecursionError) else str(error)
            raise PowerShellError(reason, "ParserError", "ParserError") from None
        await self.invoke(block, arguments or [], emit)

    async def invoke(
        self, block: ScriptBlock, arguments: list[Any], emit: Emit, *, inputs: Iterable[Any] = (), **variables: Any
    ) -> None:
        """Run a script block in a scope of its own."""
        scope: dict[str, Any] = {"args": list(arguments), "input": list(inputs), **variables}
        self.scopes.append(scope)
        try:
            await self._parameters(block, arguments, scope)
            await self.run(block.body, emit)
        except ReturnValue:
            return
        finally:
            self.scopes.pop()

    async def _parameters(self, block: ScriptBlock, arguments: list[Any], scope: dict[str, Any]) -> None:
        named: dict[str, Any] = {}
        rest: list[Any] = []
        waiting = list(arguments)
        while waiting:
            value = waiting.pop(0)
            name = value.parameter.lower() if isinstance(value, Parameter) else ""
            known = [each for each, _ in block.parameters if each.startswith(name)] if name else []
            if known:
                switch = not waiting or isinstance(waiting[0], Parameter)
                named[known[0]] = True if switch else waiting.pop(0)
            else:
                rest.append(value)
        for name, default in block.parameters:
            if name in named:
                scope[name] = named[name]
            elif rest:
                scope[name] = rest.pop(0)
            else:
                scope[name] = await self.evaluator.value(default) if default is not None else None

    async def run(self, statements: list[Statement], emit: Emit) -> None:
        """Run statements."""
        for statement in statements:
            await self.statement(statement, emit)

    async def collect(self, statement: Statement) -> list[Any]:
        """Run a statement and keep its output."""
        with self.account.gathering() as found:
            await self.statement(statement, found.append)
        return list(found)

    async def condition(self, statement: Statement) -> bool:
        """Run a statement as a condition."""
        before = self.account.unfinished
        try:
            if isinstance(statement, Value) and not statement.redirections:
                return truth(await self.evaluator.value(statement.expression))
            return truth(unrolled(await self.collect(statement)))
        finally:
            self.account.unfinished = before

    async def statement(self, node: Statement, emit: Emit) -> None:
        """Run one statement."""
        await self.pace.step()
        await self.process.stdout.room()
        before = self.account.unfinished
        try:
            await self._statement(node, emit)
        finally:
            self.account.unfinished = before

    async def _statement(self, node: Statement, emit: Emit) -> None:
        if isinstance(node, Value | Command):
            await self._pipeline([node], emit)
        elif isinstance(node, Pipeline):
            await self._pipeline(node.stages, emit)
        elif isinstance(node, Assignment):
            await self.evaluator.assign(node)
            self.succeeded = True
        elif isinstance(node, If):
            for condition, body in node.branches:
                if await self.condition(condition):
                    return await self.run(body, emit)
            if node.otherwise is not None:
                await self.run(node.otherwise, emit)
        elif isinstance(node, While | For | ForEach):
            await self._loop(node, emit)
        elif isinstance(node, Switch):
            await self._switch(node, emit)
        elif isinstance(node, Try):
            await self._try(node, emit)
        elif isinstance(node, Flow):
            await self._flow(node, emit)
        elif isinstance(node, FunctionDefinition):
            self.functions[node.name] = node.block
        elif isinstance(node, Chain):
            await self.statement(node.left, emit)
            if self.succeeded == (node.operator == "&&"):
                await self.statement(node.right, emit)
        return None

    async def _body(self, body: list[Statement], emit: Emit) -> bool:
        """One round of a loop; False ends it."""
        await self.pace.step()
        try:
            await self.run(body, emit)
        except LoopExit as left:
            return not left.ends
        return True

    async def _loop(self, node: While | For | ForEach, emit: Emit) -> None:
        if isinstance(node, ForEach):
            values = (
                await self.evaluator.value(node.values.expression)
                if isinstance(node.values, Value)
                else await self.collect(node.values)
            )
            for value in values if isinstance(values, range) else list(as_list(values)):
                self.scopes[-1][node.variable] = value
                if not await self._body(node.body, emit):
                    return
            return
        if isinstance(node, For):
            if node.start is not None:
                await self.statement(node.start, lambda value: None)
            while node.condition is None or await self.condition(node.condition):
                if not await self._body(node.body, emit):
                    return
                if node.step is not None:
                    await self.statement(node.step, lambda value: None)
            return
        if not node.body and node.condition == ALWAYS and not node.until:
            while True:
                await self.pace.spin()
        if node.body_first and not await self._body(node.body, emit):
            return
        while await self.condition(node.condition) != node.until:
            if not await self._body(node.body, emit):
                return

    async def _switch(self, node: Switch, emit: Emit) -> None:
        for value in await self.collect(node.value):
            matched = False
            for pattern, body in node.cases:
                if pattern is None:
                    fits = not matched
                else:
                    wanted = await self.evaluator.value(pattern)
                    if node.regex:
                        fits = truth(await self.evaluator.match(value, wanted))
                    elif node.wildcard:
                        fits = fnmatch.fnmatchcase(to_text(value).lower(), to_text(wanted).lower())
                    else:
                        fits = equal(value, wanted)
                if fits:
                    matched = True
                    self.scopes[-1]["_"] = value
                    if not await self._body(body, emit):
                        return

    async def _try(self, node: Try, emit: Emit) -> None:
        try:
            await self.run(node.body, emit)
        except (PowerShellError, OutOfMemory, FileError, RecursionError) as error:
            failure = as_failure(error)
            for types, body in node.handlers:
                if not types or any(each.rpartition(".")[2] in failure.kind.lower() for each in types):
                    record = error_record(failure)
                    self.errors.insert(0, record)
                    self.scopes[-1]["_"] = record
                    await self.run(body, emit)
                    return
            if node.handlers:
                raise failure from None
            raise
        finally:
            if node.final:
                await self.run(node.final, emit)

    async def _flow(self, node: Flow, emit: Emit) -> None:
        values = await self.collect(node.value) if node.value is not None else []
        if node.keyword == "throw":
            value = unrolled(values)
            message = to_text(value.get("Message") or value) if isinstance(value, PSObject) else to_text(value)
            raise PowerShellError(message or "ScriptHalted", message, "OperationStopped", value)
        if node.keyword == "return":
            for value in values:
                emit(value)
            raise ReturnValue
        if node.keyword == "exit":
            text = to_text(unrolled(values)) or str(self.last_native if node.value is not None else 0)
            raise Exit(int(text) if re.fullmatch(r"-?\d{1,12}", text, re.ASCII) else 0)
        raise LoopExit(ends=node.keyword == "break")

    async def _pipeline(self, stages: list[Command | Value], emit: Emit) -> None:
        with contextlib.ExitStack() as under_way:
            inputs: list[Any] | None = None
            for stage in stages[:-1]:
                found = under_way.enter_context(self.account.gathering())
                await self._stage(stage, inputs, found.append)
                inputs = found
            await self._stage(stages[-1], inputs, emit)

    async def _stage(self, stage: Command | Value, inputs: list[Any] | None, sink: Emit) -> None:
        sink, finish = await self._redirected(stage.redirections, sink)
        try:
            if isinstance(stage, Value):
                value = await self.evaluator.value(stage.expression)
                self.succeeded = True
                for count, item in enumerate(value if isinstance(value, list | range) else [value], 1):
                    if item is not None:
                        sink(item)
                    if count % AT_ONCE == 0:
                        await self.pace.step()
                        await self.process.stdout.room()
            else:
                await self.command(stage, inputs, sink)
        finally:
            self.errors_to = None
            finish()

    async def _redirected(self, redirections: list[Redirection], emit: Emit) -> tuple[Emit, Callable[[], None]]:
        finishers: list[Callable[[], None]] = []
        begun: list[Gathered] = []
        for redirection in redirections:
            if redirection.target is None:
                self.errors_to = emit
                continue
            target = to_text(await self.evaluator.value(redirection.target))
            kept = self.account.begin()
            begun.append(kept)
            if redirection.stream in ("1", "*"):
                emit = kept.append
            if redirection.stream in ("2", "*"):
                self.errors_to = kept.append
            if target:
                finishers.append(functools.partial(self._save, target, kept, redirection.append))

        def finish() -> None:
            for each in finishers:
                each()
            for kept in begun:
                self.account.drop(kept)

        return emit, finish

    def _save(self, target: str, values: list[Any], append: bool) -> None:
        text = "".join(f"{line}\r\n" for line in display.lines(values))
        data = b"\xff\xfe" + text.encode("utf-16-le") if self.desktop else text.encode()
        self.process.files.write(target, data, self.cwd, who=self.process.identity, append=append)

    async def command(self, node: Command, inputs: list[Any] | None, emit: Emit) -> None:
        """Run a cmdlet, a function, a script block or a program."""
        name = await self.evaluator.value(node.name)
        if isinstance(name, ScriptBlock):
            await self.invoke(
                name, [await self.evaluator.argument(each) for each in node.arguments], emit, inputs=inputs or ()
            )
            return
        text = to_text(name)
        plain = text.lower()
        if plain in self.functions:
            values = [await self.evaluator.argument(each) for each in node.arguments]
            await self.invoke(self.functions[plain], values, emit, inputs=inputs or ())
            return
        cmdlet = self.cmdlet(text)
        if cmdlet is not None:
            self.succeeded = True
            call = await bind(self, cmdlet, node, inputs, emit)
            record.note(self.process, "cmdlet", cmdlet.name, call.given)
            if plain in ALIASES:
                record.note(self.process, "alias", plain)
            await cmdlet.run(call)
            return
        await native.run(self, text, node, inputs, emit)

    def cmdlet(self, name: str) -> Cmdlet | None:
        """The cmdlet that a name or its short form means in this PowerShell, on this machine."""
        found = CMDLETS.get(ALIASES.get(name.lower(), name.lower()))
        if found is None or (found.desktop_only and not self.desktop):
            return None
        return found if self.process.container.host_process or not found.host_only else None
