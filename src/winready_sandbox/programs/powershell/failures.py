"""Failures as a script sees them."""

from __future__ import annotations

from winready_sandbox.machine.errors import FileError, OutOfMemory
from winready_sandbox.programs.powershell.values import PowerShellError, PSObject


def as_failure(error: Exception) -> PowerShellError:
    """Any failure inside a script as PowerShell sees it."""
    if isinstance(error, PowerShellError):
        return error
    if isinstance(error, OutOfMemory):
        message = "Exception of type 'System.OutOfMemoryException' was thrown."
        return PowerShellError(message, "System.OutOfMemoryException", "OutOfMemoryException")
    if isinstance(error, RecursionError):
        return PowerShellError("The script failed due to call depth overflow.", "CallDepthOverflow", "InvalidOperation")
    return PowerShellError(
        error.windows if isinstance(error, FileError) else str(error), type(error).__name__, "WriteError"
    )


def error_record(failure: PowerShellError) -> PSObject:
    """`$_` in a catch block."""
    exception = PSObject(
        f"System.{failure.kind}", {"Message": failure.message}, text=f"System.{failure.kind}: {failure.message}"
    )
    values = {
        "Exception": exception,
        "TargetObject": failure.value,
        "FullyQualifiedErrorId": failure.identifier,
        "CategoryInfo": failure.kind,
    }
    return PSObject("System.Management.Automation.ErrorRecord", values, text=failure.message)
