"""Arguments of cmdlets: names may be cut short, positions fill what is left."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from winready_sandbox.programs.powershell.syntax import Command, Variable
from winready_sandbox.programs.powershell.values import Hash, PowerShellError, to_text, truth

if TYPE_CHECKING:
    from winready_sandbox.programs.powershell.session import Session

_COMMON = ("ErrorAction",)


@dataclass
class Invocation:
    """A cmdlet with its bound arguments."""

    session: Session
    name: str
    given: dict[str, Any]
    rest: list[Any]
    inputs: list[Any] | None
    emit: Callable[[Any], None]

    def get(self, name: str, default: Any = None) -> Any:
        """A parameter's value."""
        return self.given.get(name.lower(), default)

    def text(self, name: str, default: str = "") -> str:
        """A parameter as text."""
        value = self.given.get(name.lower())
        return default if value is None else to_text(value)

    def on(self, name: str) -> bool:
        """Is a switch set?"""
        return truth(self.given.get(name.lower(), False))

    def items(self, name: str) -> list[Any]:
        """A parameter's values, or what the pipeline brings."""
        value = self.given.get(name.lower())
        if value is None:
            return list(self.inputs or [])
        return list(value) if isinstance(value, list | range) else [value]

    def error(self, message: str, identifier: str, kind: str = "NotSpecified") -> None:
        """A non-terminating error of this cmdlet."""
        action = self.given.get("erroraction")
        if action is not None:
            self.session.scopes.append({"erroractionpreference": to_text(action)})
        try:
            self.session.error(message, f"{identifier},{self.name}", source=self.name, kind=kind)
        finally:
            if action is not None:
                self.session.scopes.pop()


@dataclass(frozen=True)
class Cmdlet:
    """How a cmdlet is called, and what it does."""

    name: str
    run: Callable[[Invocation], Awaitable[None]]
    parameters: tuple[str, ...] = ()
    """In the order in which they take positional arguments."""
    switches: tuple[str, ...] = ()
    named_only: tuple[str, ...] = ()
    collects: bool = False
    """Surplus arguments become one list in the last positional parameter."""
    desktop_only: bool = False
    """Only Windows PowerShell has it."""
    host_only: bool = False
    """Only nodes have it, not container images."""

    def resolve(self, name: str) -> tuple[str, bool]:
        """The full name of a parameter, and whether it is a switch."""
        wanted = name.lower()
        valued = (*self.parameters, *self.named_only)
        for group, is_switch in ((valued, False), (self.switches, True), (_COMMON, False)):
            exact = [each for each in group if each.lower() == wanted]
            found = exact or [each for each in group if each.lower().startswith(wanted)]
            if found:
                return found[0].lower(), is_switch
        raise PowerShellError(
            f"A parameter cannot be found that matches parameter name '{name}'.",
            f"NamedParameterNotFound,{self.name}",
            "InvalidArgument",
        )


async def bind(
    session: Session, cmdlet: Cmdlet, node: Command, inputs: list[Any] | None, emit: Callable[[Any], None]
) -> Invocation:
    """Bind the arguments of a command to the parameters of a cmdlet."""
    given: dict[str, Any] = {}
    rest: list[Any] = []
    waiting = list(node.arguments)
    while waiting:
        argument = waiting.pop(0)
        if isinstance(argument.value, Variable) and argument.value.name.startswith("@"):
            splatted = session.lookup(argument.value.name[1:])
            for key, value in splatted.items() if isinstance(splatted, Hash) else []:
                given[cmdlet.resolve(to_text(key))[0]] = value
            continue
        if not argument.parameter:
            rest.append(await session.evaluator.argument(argument))
            continue
        name, is_switch = cmdlet.resolve(argument.parameter.rstrip(":"))
        if argument.parameter.endswith(":"):
            given[name] = await session.evaluator.value(argument.value) if argument.value is not None else True
        elif is_switch:
            given[name] = True
        else:
            if not waiting:
                raise PowerShellError(
                    f"Missing an argument for parameter '{argument.parameter}'.", f"MissingArgument,{cmdlet.name}"
                )
            given[name] = await session.evaluator.argument(waiting.pop(0))
    for name in cmdlet.parameters:
        if not rest:
            break
        if name.lower() not in given:
            last = name == cmdlet.parameters[-1]
            given[name.lower()] = rest if cmdlet.collects and last and len(rest) > 1 else rest.pop(0)
            if cmdlet.collects and last:
                rest = []
    if rest:
        raise PowerShellError(
            f"A positional parameter cannot be found that accepts argument '{to_text(rest[0])}'.",
            f"PositionalParameterNotFound,{cmdlet.name}",
            "InvalidArgument",
        )
    return Invocation(session, cmdlet.name, given, rest, inputs, emit)
