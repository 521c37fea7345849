"""A TCP network policy over IPv4 keeps chosen namespaces from a Windows pod."""

from winready.checks.context import Context
from winready.checks.extend_networkpolicy.flows import Flow, flows, require_effect, require_open
from winready.checks.extend_networkpolicy.policed import SUBJECT, Policed
from winready.checks.registry import check
from winready.cluster.client import Object
from winready.cluster.pods import Pod

NAME_LABEL = "kubernetes.io/metadata.name"


@check(
    "extend.networkpolicy.block-namespaces",
    fixtures=("clients",),
    expected_s=260,
    windows_pods=1,
    windows_pods_per_node=1,
)
async def block_namespaces(ctx: Context) -> None:
    """On every judged node: one namespace is let through, another kept out, also once the policy has changed."""
    policed = await Policed.open(ctx, "nn")
    numbered = list(enumerate(ctx.windows_nodes, 1))
    for number, node in numbered:
        await policed.create(f"nn-{number}", "windows", node, **SUBJECT)
    await policed.create("nnc-1", "windows", ctx.windows_nodes[0])
    await policed.create("nnl-1", "linux", ctx.world.fixtures.linux_nodes[0])
    subjects = await policed.ready([f"nn-{number}" for number, _ in numbered])
    inside = await policed.ready(["nnc-1", "nnl-1"])
    windows, linux = await ctx.clients("windows"), await ctx.clients("linux")
    own, other = policed.namespace.name, windows[0].namespace

    await policed.require_alone()
    await require_open(ctx, _flows(subjects, inside, windows, linux, {own, other}))
    await policed.allow(_namespace(own))
    await require_effect(
        ctx,
        _flows(subjects, inside, windows, linux, {own}),
        f"a policy was made that lets through only namespace {own}",
    )
    await policed.allow_others(_namespace(other))
    await require_effect(
        ctx,
        _flows(subjects, inside, windows, linux, {other}),
        f"the policy was changed to let through only namespace {other}",
        long=True,
    )
    await policed.remove()
    await require_effect(ctx, _flows(subjects, inside, windows, linux, {own, other}), "the policy was removed")


def _namespace(name: str) -> Object:
    return {"namespaceSelector": {"matchLabels": {NAME_LABEL: name}}}


def _flows(
    subjects: list[Pod], inside: list[Pod], windows: list[Pod], linux: list[Pod], allowed: set[str]
) -> list[Flow]:
    """Between each subject and pods of its namespace, and of the other one on the same node, the next and Linux."""
    made = []
    for place, subject in enumerate(subjects):
        near = [*inside, windows[place], windows[(place + 1) % len(windows)], linux[0]]
        made += flows(subject, [(pod, pod.namespace in allowed) for pod in near])
    return made
