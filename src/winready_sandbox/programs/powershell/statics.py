"""Static members of types."""

from __future__ import annotations

from collections.abc import Callable, MutableMapping
from typing import TYPE_CHECKING, Any

from winready_sandbox.chance import unique
from winready_sandbox.programs.powershell import interop
from winready_sandbox.programs.powershell.types import plain_name
from winready_sandbox.programs.powershell.values import LONGEST_VARIABLE, PowerShellError, to_text

if TYPE_CHECKING:
    from winready_sandbox.programs.powershell.session import Session


def static(session: Session, type_text: str, name: str, arguments: list[Any]) -> Any:
    """`[type]::name(...)`."""
    wanted = plain_name(type_text)
    if wanted in session.native_types:
        return interop.call(session, wanted, name, arguments)
    function = STATICS.get((wanted, name.lower()))
    if function is not None:
        return function(session, arguments)
    if any(each == wanted for each, _ in STATICS):
        raise PowerShellError(
            f"Method invocation failed because [{type_text}] does not contain a method named '{name}'.",
            "MethodNotFound",
        )
    raise PowerShellError(f"Unable to find type [{type_text}].", "TypeNotFound")


def _variables(session: Session, target: list[Any]) -> MutableMapping[str, str]:
    machine_wide = bool(target) and to_text(target[0]).lower() == "machine"
    return session.process.container.host.machine_environment if machine_wide else session.process.env


def _get_variable(session: Session, arguments: list[Any]) -> str | None:
    wanted = to_text(arguments[0]).lower()
    return next((value for key, value in _variables(session, arguments[1:]).items() if key.lower() == wanted), None)


def _set_variable(session: Session, arguments: list[Any]) -> None:
    variables, key, value = _variables(session, arguments[2:]), to_text(arguments[0]), to_text(arguments[1])
    if len(value) > LONGEST_VARIABLE:
        raise PowerShellError("Environment variable name or value is too long.", "ArgumentException")
    if value:
        variables[key] = value
    else:
        variables.pop(key, None)


STATICS: dict[tuple[str, str], Callable[[Session, list[Any]], Any]] = {
    ("environment", "getenvironmentvariable"): _get_variable,
    ("environment", "setenvironmentvariable"): _set_variable,
    ("guid", "newguid"): lambda session, arguments: unique(),
}
