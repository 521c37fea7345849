"""A pod with a credential spec is its account in the domain: it reaches what that may reach, and nothing else.

What counts is what the domain and the file server say, not the exit code of nltest. A share that is refused must be of
the server that was just reached, and a service account that may not use the credential spec must not get it.
"""

from winready.checks.context import Context
from winready.checks.extend_activedirectory.lasting import LOOK, ROUNDS, Round, go_on
from winready.checks.extend_activedirectory.members import CONTAINERS, pair, scene
from winready.checks.extend_activedirectory.permission import REVIEW_STEP, UNBOUND
from winready.checks.extend_activedirectory.shares import LOOKS, SEEN, absent, denied, lists, look_into, look_often, run
from winready.checks.extend_activedirectory.tickets import require_own_tickets
from winready.checks.hosting import said
from winready.checks.registry import check
from winready.cluster.commands import lines
from winready.cluster.directory import ActiveDirectory
from winready.cluster.failures import CheckBlocked, CheckFailed
from winready.cluster.inventory import Node
from winready.cluster.pods import Pod
from winready.cluster.probes import Try, describe, every
from winready.cluster.timing import uneven

SUCCESS = "completed successfully"
NEXT = "winready-next"


@check("extend.activedirectory.gmsa-access", expected_s=160, windows_pods_per_node=2)
async def gmsa_access(ctx: Context) -> None:
    """On every judged node, in two containers of a pod each."""
    shared = await scene(ctx)
    ctx.evidence.fact("a pod whose service account was given nothing", shared.use.unbound)
    await every(_refused(ctx), *(_judge(ctx, node) for node in ctx.windows_nodes))


async def _refused(ctx: Context) -> None:
    shared = await scene(ctx)
    if shared.use.unbound == "let in":
        name = shared.given.credential_spec
        raise CheckFailed(
            f"a pod of service account {shared.namespace.name}/{UNBOUND} got credential spec {name}, which that "
            "account may not use",
            expected="admission refuses the pod (403)",
            observed="the pod is admitted, with the contents of the credential spec",
            next_step="look at the validating webhook configuration of the gMSA webhook",
        )
    if shared.use.unbound == "unknown":
        raise CheckBlocked(
            f"a pod of service account {shared.namespace.name}/{UNBOUND}, which was given nothing, got credential spec "
            f"{shared.given.credential_spec}; whether everybody may use it, or the webhook lets everybody in, cannot "
            "be told: LocalSubjectAccessReviews may not be created",
            next_step=REVIEW_STEP,
        )


async def _judge(ctx: Context, node: Node) -> None:
    shared, pods = await scene(ctx), await pair(ctx, node)
    given, member = shared.given, pods.member
    ctx.evidence.fact(f"local user of {member.name}", said(await member.run(["C:\\Windows\\System32\\whoami.exe"])))
    for container in CONTAINERS:
        await _logged_on(ctx, member, container, given)
        await _reaches(ctx, member, container, given)
    refusals = [(member, given.denied_share)] if given.denied_share else []
    refusals += [(pods.stranger, given.allowed_share)] if pods.stranger is not None else []
    await every(
        *(require_own_tickets(ctx, member, each, shared.use.member, given.domain) for each in CONTAINERS),
        *(_stays(ctx, member, each, given) for each in CONTAINERS),
        *(_kept_out(ctx, pod, share) for pod, share in refusals),
    )


def _sound(text: str) -> bool:
    """Whether nltest tells of a connection to a controller; it ends with success without one, too."""
    return SUCCESS in text and "ERROR_" not in text and "RPC_S_" not in text


async def _logged_on(ctx: Context, pod: Pod, container: str, given: ActiveDirectory) -> None:
    parent, query = ["nltest", "/parentdomain"], ["nltest", "/query"]
    repaired = False

    async def attempt() -> Try:
        nonlocal repaired
        told = await run(pod, parent, container)
        names = {line.split()[0].rstrip(".").lower() for line in lines(told.stdout)}
        if given.domain.lower() not in names:
            return Try(False, said(told), told)
        channel = await run(pod, query, container)
        text = said(channel)
        if _sound(text):
            return Try(True, f"{given.domain}; {text}", channel)
        if not repaired:
            repaired = True
            await run(pod, ["nltest", f"/sc_reset:{given.domain}"], container)
        return Try(False, text, channel)

    expected = f"domain {given.domain}, and a connection to one of its controllers"
    title = f"container {container} of {pod.name} is logged on to {given.domain}"
    found = await ctx.probe.until(
        title, attempt, window=ctx.times.identity, pod=pod, command=query, expected=expected, target=given.domain
    )
    if not found.ok:
        raise CheckFailed(
            f"container {container} of {describe(pod)} is not logged on to domain {given.domain} after "
            f"{ctx.times.identity:g} s: {found.seen}",
            expected=expected,
            observed=found.seen,
            next_step=f"look at the event log {LOOK} of node {pod.node.name}, and at its way to the domain controllers",
        )


async def _reaches(ctx: Context, pod: Pod, container: str, given: ActiveDirectory) -> None:
    share = given.allowed_share
    found = await ctx.probe.until(
        f"container {container} of {pod.name} lists {share}",
        lambda: lists(pod, share, container),
        window=ctx.times.identity,
        pod=pod,
        command=look_into(share),
        expected="what is in the share",
        target=share,
    )
    if not found.ok:
        raise CheckFailed(
            f"container {container} of {describe(pod)} does not reach {share}, which its account may use: {found.seen}",
            expected="what is in the share",
            observed=found.seen,
            next_step=f"is it the account that {share} is for, and does node {pod.node.name} get its password "
            f"(Test-ADServiceAccount)? The event log {LOOK} tells",
        )


async def _stays(ctx: Context, pod: Pod, container: str, given: ActiveDirectory) -> None:
    """Logged on, with access to the share, for minutes."""
    share, verify = given.allowed_share, f"nltest /sc_verify:{given.domain}&echo {NEXT}&"
    first = True

    def command() -> list[str]:
        return ["cmd", "/c", f"nltest /query&echo {NEXT}&{verify}{look_often(share)}"]

    async def attempt() -> Round:
        nonlocal first, verify
        result = await run(pod, command(), container, waits=LOOKS + 2)
        *told, looks = result.stdout.decode(errors="replace").split(NEXT)
        states = [_sound(text) for text in told]
        if first and states == [True, False]:
            # Verifying takes rights that not every user has; what works without them is enough.
            verify, states = "", states[:1]
        first = False
        return Round((2 if verify else 1) + LOOKS, sum(states) + looks.count(SEEN), result)

    what = f"it is logged on to {given.domain} and lists {share}"
    await go_on(ctx, pod, f"container {container}", what, attempt, command=command(), target=share)


async def _kept_out(ctx: Context, pod: Pod, share: str) -> None:
    """Asked right after the server was reached, and again for minutes."""
    for pause in (0.0, *uneven(ctx.times.observe, ROUNDS - 1, f"{pod.name} {share}")):
        await ctx.timing.pause(pause)
        await _refused_by(ctx, pod, share)


async def _refused_by(ctx: Context, pod: Pod, share: str) -> None:
    async for _ in ctx.timing.attempts(ctx.times.hold):
        found = await lists(pod, share)
        told = found.execution
        refused = told is not None and not found.ok and denied(told)
        if found.ok or refused or (told is not None and absent(told)):
            break
    title = f"{pod.name} is refused by {share}"
    ctx.probe.record(title, Try(refused, found.seen, told), pod, look_into(share), "a refusal", share)
    if found.ok:
        raise CheckFailed(
            f"{describe(pod)} gets into {share}, which its account may not use",
            expected="a refusal",
            observed=found.seen,
            next_step=f"look at the permissions of {share}, and at the groups of the account",
        )
    if not refused:
        what = "is not there" if told is not None and absent(told) else "does not answer with a refusal"
        raise CheckBlocked(
            f"{share} {what} for {describe(pod)} ({found.seen}), so that nothing can be said about its refusal",
            next_step="name a share that is there and not for the account in the file for --active-directory",
        )
