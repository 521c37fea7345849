"""Names must lead where they should; if not, a Linux pod tells whether the node or the cluster is at fault."""

from __future__ import annotations

from winready.checks.context import Context
from winready.checks.core_network.name_steps import next_step
from winready.checks.core_network.names import Answer, Led, Target, lead, summary
from winready.cluster.failures import CheckBlocked, CheckFailed
from winready.cluster.pods import Pod
from winready.cluster.probes import describe

SHOWN = 3
"""Names that a reason tells about."""


async def require(ctx: Context, client: Pod, controls: list[Pod], targets: list[Target], *, window: float) -> None:
    """Every name leads where it should within the window."""
    answers = await lead(ctx, client, targets, window=window)
    if wrong := [answer for answer in answers if not answer.right]:
        await fail(ctx, client, controls, wrong)


async def fail(ctx: Context, client: Pod, controls: list[Pod], wrong: list[Answer]) -> None:
    """Raise: the node's fault, unless no Linux pod finds it otherwise."""
    targets = [answer.target for answer in wrong]
    for control in controls:
        others = await lead(ctx, control, targets, window=ctx.times.hold)
        alone = [mine for mine, other in zip(wrong, others, strict=True) if other.right]
        if alone:
            raise CheckFailed(
                "; ".join(f"{describe(client)} {_problem(answer, describe(control))}" for answer in alone[:SHOWN]),
                expected=f"{alone[0].target}: {alone[0].target.wanted}",
                observed=summary(alone),
                next_step=await next_step(ctx, client, alone[0]),
            )
    raise CheckBlocked(
        f"{wrong[0].target} does not lead where it should from {describe(control)} either: "
        f"{others[0].seen or others[0].led.value}",
        next_step="repair cluster DNS in general first ('kubectl -n kube-system get pods -l k8s-app=kube-dns')",
    )


def _problem(answer: Answer, control: str) -> str:
    target = answer.target
    if target.absent:
        return f"resolves {target}, a name that does not exist; {control} does not"
    match answer.led:
        case Led.UNRESOLVED:
            return f"does not resolve {target}, which {control} does"
        case Led.STRANGER:
            return f"asks for {target} and is answered by {answer.seen}; {control} gets {target.wanted}"
    return f"resolves, but does not reach, {target}, which {control} does"
