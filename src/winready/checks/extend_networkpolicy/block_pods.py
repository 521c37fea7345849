"""A TCP network policy over IPv4 keeps chosen pods from a Windows pod."""

from winready.checks.context import Context
from winready.checks.extend_networkpolicy.flows import Flow, flows, require_effect, require_open
from winready.checks.extend_networkpolicy.policed import SUBJECT, Policed
from winready.checks.registry import check
from winready.cluster.pods import Pod

FRIEND, STRANGER = "friend", "stranger"


@check("extend.networkpolicy.block-pods", expected_s=290, windows_pods_per_node=3)
async def block_pods(ctx: Context) -> None:
    """On every judged node: who has a label is let through, who has not is kept out, also once labels have changed."""
    policed = await Policed.open(ctx, "np")
    numbered = list(enumerate(ctx.windows_nodes, 1))
    for number, node in numbered:
        await policed.create(f"np-{number}", "windows", node, **SUBJECT)
        await policed.create(f"npc-{number}", "windows", node, who=_who(number))
    places = (ctx.world.fixtures.linux_nodes * 2)[:2]
    for number, node in enumerate(places, 1):
        await policed.create(f"npl-{number}", "linux", node, who=_who(number))
    subjects = await policed.ready([f"np-{number}" for number, _ in numbered])
    windows = await policed.ready([f"npc-{number}" for number, _ in numbered])
    linux = await policed.ready(["npl-1", "npl-2"])
    friends = {pod.uid for pod in (*windows[::2], linux[0])}
    strangers = {pod.uid for pod in (*windows, *linux)} - friends

    await policed.require_alone()
    await require_open(ctx, _flows(subjects, windows, linux, friends | strangers))
    await policed.allow({"podSelector": {"matchLabels": {"who": FRIEND}}})
    await require_effect(
        ctx,
        _flows(subjects, windows, linux, friends),
        f"a policy was made that lets through only pods labelled who={FRIEND}",
    )
    # Pods that start under a policy are covered by it, too.
    for number, node in numbered:
        await policed.create(f"npx-{number}", "windows", node, **SUBJECT)
    subjects += await policed.ready([f"npx-{number}" for number, _ in numbered])
    for pod in (*windows, *linux):
        await policed.label(pod, who=STRANGER if pod.uid in friends else FRIEND)
    await require_effect(
        ctx,
        _flows(subjects, windows, linux, strangers),
        "that label was taken from these pods and given to the others",
        long=True,
    )
    await policed.remove()
    await require_effect(ctx, _flows(subjects, windows, linux, friends | strangers), "the policy was removed")


def _who(number: int) -> str:
    return FRIEND if number % 2 else STRANGER


def _flows(subjects: list[Pod], windows: list[Pod], linux: list[Pod], allowed: set[str]) -> list[Flow]:
    """Between each subject and a Windows pod of its own node, one of the next node, and a Linux pod of either kind."""
    made = []
    for place, subject in enumerate(subjects):
        near = [windows[place % len(windows)], windows[(place + 1) % len(windows)], *linux]
        made += flows(subject, [(other, other.uid in allowed) for other in near])
    return made
