"""Who a container is to Kerberos, by its own tickets.

Many sound containers have none to show: an image without klist, a user whom Windows gives none, a share that is reached
by its address, and so with NTLM. A ticket of somebody else settles it all the same.
"""

from __future__ import annotations

import re

from winready.checks.context import Context
from winready.checks.extend_activedirectory.lasting import LOOK
from winready.checks.extend_activedirectory.shares import run
from winready.checks.hosting import said
from winready.cluster.failures import CheckFailed
from winready.cluster.pods import Pod
from winready.cluster.probes import Try, describe

ASK = ["cmd", "/c", "klist get krbtgt"]
CLIENT = re.compile(r"Client:[ \t]*(\S+?)\$?[ \t]*@[ \t]*(\S+)")


async def require_own_tickets(ctx: Context, pod: Pod, container: str, account: str, domain: str) -> None:
    """Whatever tickets there are must be those of the account; ``account`` is empty where it is not known."""
    result = await run(pod, ASK, container)
    clients = sorted({f"{name}@{realm}" for name, realm in CLIENT.findall(result.stdout.decode(errors="replace"))})
    what = f"Kerberos tickets of container {container} of {pod.name}"
    ctx.evidence.fact(what, clients or f"none shown: {said(result)}")
    if not clients:
        return
    wanted = f"{account or 'its account'}@{domain.upper()}"
    others = [name for name in clients if account and name.lower() != wanted.lower()]
    ctx.probe.record(what, Try(not others, ", ".join(clients), result), pod, ASK, f"tickets of {wanted}", domain)
    if others:
        raise CheckFailed(
            f"container {container} of {describe(pod)} holds Kerberos tickets of {', '.join(others)}, and its "
            f"credential spec is that of {wanted}",
            expected=f"tickets of {wanted}",
            observed=", ".join(clients),
            next_step=f"look at the event log {LOOK} of node {pod.node.name}: whose password does it fetch?",
        )
