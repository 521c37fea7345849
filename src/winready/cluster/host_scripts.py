"""Scripts on Windows nodes themselves, in HostProcess containers.

The runtime may put `cmd /c` before every command of such a container, so scripts go in encoded, where nothing is left
that `cmd` would read; and it has a limit for the length of a line.
"""

from __future__ import annotations

import base64
import uuid
from collections.abc import Mapping

LONGEST_LINE = 8000
STOP = "$ErrorActionPreference='Stop'; "
"""Makes a script end at the first error, with another exit code than 0."""
_IMPORT = '[DllImport("computenetwork.dll",CharSet=CharSet.Unicode)]public static extern int Hcn'
_DECLARE = "Add-Type -Namespace Winready -Name Hcn -MemberDefinition '{functions}'; $e=[IntPtr]0; $c=@(); "
_DELETE = tuple(f"Delete{kind}(ref Guid i,out IntPtr e);" for kind in ("Endpoint", "Network", "Namespace"))


def encoded(script: str) -> list[str]:
    """A script for Windows PowerShell on a node, as a command that any runtime passes on unchanged."""
    text = base64.b64encode(f"$ProgressPreference='SilentlyContinue'; {script}".encode("utf-16-le")).decode()
    if len(text) > LONGEST_LINE:
        raise ValueError(f"a script of {len(script)} characters is too long for a command line of Windows")
    return ["powershell.exe", "-NoProfile", "-NonInteractive", "-ExecutionPolicy", "Bypass", "-EncodedCommand", text]


def network_objects(network: str) -> dict[str, str]:
    """Identifiers of host networking objects of ours: who finds the network, which has a name, knows the others."""
    others = {kind: str(uuid.uuid5(uuid.UUID(network), kind)) for kind in ("endpoint", "namespace")}
    return {"network": network.lower(), **others}


def with_networking(functions: tuple[str, ...], calls: str) -> str:
    """A script that calls functions of host networking (HCN) and collects in ``$c`` how each ended."""
    return STOP + _DECLARE.format(functions="".join(_IMPORT + each for each in functions)) + calls


def delete_network_objects(own: Mapping[str, str], then: str = "") -> str:
    """A script that deletes objects of ours; the network last, since the others are found by it."""
    calls = "".join(
        f"$i=[guid]'{own[kind]}'; $c+=[Winready.Hcn]::HcnDelete{kind.capitalize()}([ref]$i,[ref]$e); "
        for kind in ("endpoint", "namespace", "network")
    )
    return with_networking(_DELETE, calls + then)
