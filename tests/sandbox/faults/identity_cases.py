"""What faults of users, of accounts in a domain, and of who may have them look like."""

from __future__ import annotations

import asyncio

from sandbox.faults.bench import IMAGE, NAMESPACE, OTHER, Bench, Object, pod
from sandbox.faults.case import Case
from sandbox.faults.network_cases import service_ip
from winready.cluster.errors import Refused
from winready.cluster.resources import EVENTS, PODS

SHARE, FOREIGN = "\\\\10.250.0.254\\webapp", "\\\\10.250.0.254\\finance"
MEMBER = {"gmsaCredentialSpecName": "webapp"}
SECOND = {"name": "second", "image": IMAGE, "args": ["pause"]}


def _name(made: Object) -> str:
    return str(made["metadata"]["name"])


def _user(name: str) -> Object:
    return {"securityContext": {"windowsOptions": {"runAsUserName": name}}}


async def user_names(b: Bench, node: str) -> str:
    """Who the containers of a pod run as that asks for ContainerUser; the image says ContainerAdministrator."""
    more = [SECOND, {**SECOND, "name": "third", **_user("ContainerAdministrator")}]
    async with b.pod(node, windows={"runAsUserName": "ContainerUser"}, more=more) as made:
        ask = ("cmd", "/S", "/C", "echo %USERNAME%")
        found = [(await b.run(_name(made), *ask, container=each))[1] for each in ("c", "second", "third")]
        return " ".join(name.removeprefix("Container") for name in found)


async def nobody(b: Bench, node: str) -> str:
    """What becomes of a pod that asks for a user who does not exist."""
    async with b.pod(node, wait=False, windows={"runAsUserName": "bench-nobody"}) as made:

        async def state() -> str:
            if await b.if_ready(_name(made), NAMESPACE):
                return "runs"
            fields = f"involvedObject.name={_name(made)},reason=FailedCreatePodSandBox"
            return "does not run" if await b.client.list(EVENTS, NAMESPACE, fields=fields) else ""

        return str(await b.until(state))


async def share_without_account(b: Bench, node: str) -> str:
    """Whether a pod without credentials gets into the share of an account."""
    async with b.pod(node or "windows-1") as made:
        return "let in" if (await b.run(_name(made), "cmd", "/c", "dir", SHARE))[0] == 0 else "denied"


async def share_with_account(b: Bench, node: str) -> str:
    """Whether the two containers of a pod with a gMSA write to the share of that account."""
    async with b.pod(node or "windows-1", windows=MEMBER, more=[SECOND]) as made:
        codes = []
        for container in ("c", "second"):
            command = ("cmd", "/c", f"echo mark>{SHARE}\\f.txt")
            codes.append((await b.run(_name(made), *command, container=container))[0])
        return " ".join("kept-out" if code else "let-in" for code in codes)


async def share_of_another(b: Bench, node: str) -> str:
    """Whether a pod with a gMSA gets into the share of another account."""
    async with b.pod(node or "windows-1", windows=MEMBER) as made:
        return "let in" if (await b.run(_name(made), "cmd", "/c", "dir", FOREIGN))[0] == 0 else "denied"


async def read_with_account(b: Bench, node: str) -> str:
    """Whether a pod with a gMSA may look into the share of that account."""
    async with b.pod(node or "windows-1", windows=MEMBER) as made:
        return "let in" if (await b.run(_name(made), "cmd", "/c", "dir", SHARE))[0] == 0 else "denied"


async def share_after(b: Bench, node: str) -> str:
    """Whether a pod with a gMSA gets into the share of that account at once, and again minutes later."""
    async with b.pod(node or "windows-1", windows=MEMBER) as made:
        first = await _lists(b, made, SHARE)
        await asyncio.sleep(120)
        return f"{first}, then {await _lists(b, made, SHARE)}"


async def share_every_second(b: Bench, node: str) -> str:
    """Whether a pod with a gMSA always gets into the share of that account."""
    async with b.pod(node or "windows-1", windows=MEMBER) as made:
        command = f"for /l %i in (1,1,10) do @(dir {SHARE} >nul && echo in & ping -n 2 127.0.0.1 >nul)"
        _, text = await b.run(_name(made), "cmd", "/c", command)
        return "always" if text.count("in") == 10 else "at times" if "Access is denied." in text else text


async def share_of_another_later(b: Bench, node: str) -> str:
    """Whether a pod with a gMSA gets into the share of another account minutes after its first attempt."""
    async with b.pod(node or "windows-1", windows=MEMBER) as made:
        await _lists(b, made, FOREIGN)
        await asyncio.sleep(120)
        return await _lists(b, made, FOREIGN)


async def tickets(b: Bench, node: str) -> str:
    """Whose Kerberos tickets a pod with a gMSA has."""
    async with b.pod(node or "windows-1", windows=MEMBER) as made:
        _, text = await b.run(_name(made), "klist", "get", "krbtgt")
        return next((line.split()[-3] for line in text.splitlines() if "Client:" in line), text)


async def _lists(b: Bench, made: Object, share: str) -> str:
    return "let in" if (await b.run(_name(made), "cmd", "/c", "dir", share))[0] == 0 else "denied"


async def unauthorised(b: Bench, node: str) -> str:
    """What becomes of a pod whose service account may not use a credential spec."""
    try:
        wanted = pod(b.name("w"), "windows-1", windows=MEMBER)
        await b.client.create(PODS, wanted, OTHER, dry_run=True)
    except Refused:
        return "refused"
    return "let in"


async def filled_in(b: Bench, node: str) -> str:
    """Whether a pod that names a credential spec gets its contents."""
    wanted = pod(b.name("w"), "windows-1", windows=MEMBER)
    made = await b.client.create(PODS, wanted, NAMESPACE, dry_run=True)
    return "filled in" if "gmsaCredentialSpec" in made["spec"]["securityContext"]["windowsOptions"] else "named only"


IDENTITY_CASES = [
    Case(
        "runtime.windows.user-name-ignored",
        user_names,
        "User User Administrator",
        "Administrator Administrator Administrator",
    ),
    Case("runtime.windows.user-of-pod-wins", user_names, "User User Administrator", "User User User"),
    Case(
        "runtime.windows.user-first-container",
        user_names,
        "User User Administrator",
        "User Administrator Administrator",
    ),
    Case("runtime.windows.unknown-user-runs", nobody, "does not run", "runs"),
    Case("runtime.windows.gmsa-for-everyone", share_without_account, "denied", "let in"),
    Case("runtime.windows.gmsa-ignored", share_with_account, "let-in let-in", "kept-out kept-out"),
    Case("runtime.windows.gmsa-of-another", share_of_another, "denied", "let in"),
    Case("runtime.windows.gmsa-first-container", share_with_account, "let-in let-in", "let-in kept-out"),
    Case("machine.windows.gmsa-lost-later", share_after, "let in, then let in", "let in, then denied"),
    Case("machine.windows.gmsa-now-and-then", share_every_second, "always", "at times"),
    Case("machine.windows.gmsa-tickets-of-another", tickets, "webapp$", "backup$"),
    Case(
        "domain.lets-everybody-in-later",
        share_of_another_later,
        "denied",
        "let in",
        beside=(share_with_account, "let-in let-in"),
    ),
    Case(
        "domain.lets-everybody-in",
        share_without_account,
        "denied",
        "let in",
        beside=(share_with_account, "let-in let-in"),
    ),
    Case(
        "domain.controller-down",
        share_with_account,
        "let-in let-in",
        "kept-out kept-out",
        beside=(service_ip, "ls"),
    ),
    Case("domain.lets-members-in", share_of_another, "denied", "let in", beside=(share_without_account, "denied")),
    Case(
        "domain.shares-read-only",
        share_with_account,
        "let-in let-in",
        "kept-out kept-out",
        beside=(read_with_account, "let in"),
    ),
    Case(
        "domain.one-session-per-account",
        share_with_account,
        "let-in let-in",
        "kept-out let-in",
        beside=(share_without_account, "denied"),
    ),
    Case("admission.gmsa-for-any-account", unauthorised, "refused", "let in", beside=(filled_in, "filled in")),
    Case("admission.gmsa-not-filled-in", filled_in, "filled in", "named only", beside=(unauthorised, "refused")),
]
