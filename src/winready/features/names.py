"""Host names that a container is told: services of the cluster, and names outside it.

Only what is clearly a host is taken for one: the host of a URL, ``host:port``, the server of a connection string, the
full name of a service, or exactly the name of a service that is known. A guess would verify what nobody relies on.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator

_HOST = r"(?P<host>[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?(?:\.[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?)*)\.?"
_WRITTEN = (
    re.compile(rf"[A-Za-z][A-Za-z0-9+.-]{{0,30}}://(?:[^/@\s\"']*@)?{_HOST}(?=[:/?#\s\"',;]|$)"),
    re.compile(rf"(?:^|[=\s,]){_HOST}:\d{{2,5}}(?=$|[\s,/;])"),
    re.compile(rf"(?i)(?:^|;)\s*(?:server|data source|host|address)\s*=\s*(?:tcp:)?{_HOST}(?=[,;:\\]|$)"),
    re.compile(rf"^{_HOST}(?=$)"),
)
_FILE = re.compile(
    r"(?i)\.(?:exe|ps1|cmd|bat|dll|json|ya?ml|xml|txt|log|config|conf|ini|md|html?|js|cs|pem|key|crt|pfx)$"
)


def hosts(text: str) -> Iterator[tuple[str, bool]]:
    """The host names in a text; with each, whether it is certain that it is one."""
    if len(text) > 100_000:
        return
    seen: set[str] = set()
    for pattern in _WRITTEN:
        for match in pattern.finditer(text):
            host = match["host"].lower()
            if host not in seen and not _no_name(host):
                seen.add(host)
                # "timeout:30" looks like a host and its port, too.
                yield host, pattern is not _WRITTEN[-1] and (pattern is not _WRITTEN[1] or "." in host)


def _no_name(host: str) -> bool:
    if host == "localhost" or host.rpartition(".")[2].isdigit() or _FILE.search(host):
        return True
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def service(host: str, namespace: str) -> tuple[str, str] | None:
    """The namespace and name of the service that a full or short name means; None for a name outside the cluster."""
    labels = host.split(".")
    if "svc" in labels[1:]:
        at = labels.index("svc", 1)
        # A pod of a StatefulSet stands before the name of its service.
        return (labels[at - 1], labels[at - 2]) if at >= 2 else None
    return (namespace, host) if len(labels) == 1 else None
