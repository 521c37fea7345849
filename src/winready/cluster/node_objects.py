"""What killed runs left in the configuration of Windows nodes: firewall rules, local groups, host networking objects.

Everything that a run makes there is called after the run, and nothing else is ever named.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from winready.cluster.commands import lines
from winready.cluster.host_scripts import delete_network_objects, encoded, network_objects
from winready.cluster.pods import Pod
from winready.cluster.settings import RUN_ID
from winready.cluster.timing import TABLE

LIST = (
    "Get-NetFirewallRule -Name 'winready-*' -ErrorAction SilentlyContinue | % { \"rule=$($_.Name)\" }; "
    "net.exe localgroup | ? { $_ -like '*winready-*' } | % { \"group=$_\" }; "
    "Get-HnsNetwork | ? { $_.Name -like 'winready-*' } | % { \"network=$($_.Name) $($_.ID)\" }; exit 0"
)
KINDS = {"rule": "firewall rule", "group": "local group", "network": "host networking objects"}
_OURS = re.compile(rf"(rule|group|network)=\*?(winready-({RUN_ID.pattern})(?:-[0-9a-z]+)?)(?: ([0-9A-Fa-f-]{{36}}))?")


@dataclass(frozen=True)
class NodeObject:
    """One of them."""

    kind: str
    name: str
    run_id: str
    identifier: str = ""

    def __str__(self) -> str:
        """As people read it."""
        return f"{KINDS[self.kind]} {self.name}"

    @property
    def removal(self) -> str:
        """The script that removes it."""
        if self.kind == "network":
            return delete_network_objects(network_objects(self.identifier), "exit 0")
        if self.kind == "rule":
            return f"Remove-NetFirewallRule -Name '{self.name}'; exit 0"
        return f"net.exe localgroup '{self.name}' /delete; exit 0"


async def find_objects(host: Pod) -> list[NodeObject]:
    """Those that are on the node of a HostProcess pod."""
    result = await host.run(encoded(LIST), seconds=TABLE.host_script)
    found = (_OURS.fullmatch(line) for line in lines(result.stdout))
    return [NodeObject(match[1], match[2], match[3], match[4] or "") for match in found if match]


async def remove_object(host: Pod, item: NodeObject) -> str:
    """Remove one; what was said about it if it is still there, and empty when it is gone."""
    result = await host.run(encoded(item.removal), seconds=TABLE.host_script)
    if item not in await find_objects(host):
        return ""
    return "; ".join(lines(result.stderr or result.stdout)) or "no reason given"
