"""Invoke-WebRequest and Invoke-RestMethod, by the machine's curl."""

from __future__ import annotations

import json

from winready_sandbox.machine.errors import ExecError
from winready_sandbox.programs.output import Collector
from winready_sandbox.programs.powershell.binding import Cmdlet, Invocation
from winready_sandbox.programs.powershell.values import Hash, PowerShellError, PSObject, to_text

_FAILURES = {
    6: "The remote name could not be resolved: '{host}'",
    7: "Unable to connect to the remote server",
    28: "The operation has timed out.",
}


async def web_request(call: Invocation) -> None:
    """Fetch a page."""
    url = call.text("Uri")
    url = url if "://" in url else f"http://{url}"
    argv = ["curl.exe", "-s", "-g", "-L", "-w", "\\n%{http_code}", "--max-time", call.text("TimeoutSec", "100")]
    argv += ["-X", call.text("Method").upper()] if call.get("Method") is not None else []
    argv += ["-d", call.text("Body")] if call.get("Body") is not None else []
    if isinstance(headers := call.get("Headers"), Hash):
        for key, value in headers.items():
            argv += ["-H", f"{to_text(key)}: {to_text(value)}"]
    out, err = Collector(), Collector()
    try:
        code = await call.session.process.spawn([*argv, url], stdout=out, stderr=err).finish()
    except ExecError as error:
        raise PowerShellError(str(error), "WebCmdletWebResponseException", "WebException") from None
    if code:
        host = url.partition("://")[2].partition("/")[0].partition(":")[0]
        text = _FAILURES.get(code, "The underlying connection was closed.").format(host=host)
        raise PowerShellError(text, f"WebCmdletWebResponseException,{call.name}", "WebException")
    body, _, status = out.text().rpartition("\n")
    if status.isdigit() and int(status) >= 400:
        text = f"The remote server returned an error: ({status})."
        raise PowerShellError(text, f"WebCmdletWebResponseException,{call.name}", "WebException")
    if call.get("OutFile") is not None:
        session = call.session
        session.process.files.write(call.text("OutFile"), body.encode(), session.cwd, who=session.process.identity)
        return
    if call.name == "Invoke-RestMethod":
        call.emit(_parsed(body))
        return
    values = {"StatusCode": int(status or 0), "StatusDescription": "OK", "Content": body, "RawContentLength": len(body)}
    call.emit(PSObject("Microsoft.PowerShell.Commands.HtmlWebResponseObject", values))


def _parsed(body: str) -> object:
    try:
        value = json.loads(body)
    except ValueError:
        return body
    return PSObject("System.Management.Automation.PSCustomObject", value) if isinstance(value, dict) else value


_NAMED = ("Method", "Body", "Headers", "TimeoutSec", "OutFile", "ContentType", "UserAgent")
_SWITCHES = ("UseBasicParsing", "SkipCertificateCheck", "DisableKeepAlive")

CMDLETS = [
    Cmdlet("Invoke-WebRequest", web_request, ("Uri",), _SWITCHES, _NAMED),
    Cmdlet("Invoke-RestMethod", web_request, ("Uri",), _SWITCHES, _NAMED),
]
