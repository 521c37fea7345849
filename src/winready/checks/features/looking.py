"""How checks of features look: at pods that several of them share, at what the API server takes, and what they keep."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from winready.checks.context import Context
from winready.checks.fixtures import SHARED
from winready.cluster.client import Object
from winready.cluster.commands import lines
from winready.cluster.errors import Invalid
from winready.cluster.failures import CheckBlocked, CheckFailed
from winready.cluster.pods import Pod, idle_container, pinned, pod_object, pod_spec
from winready.cluster.probes import Try, describe
from winready.cluster.resources import PODS
from winready.spec.versions import Version

NOBODY_ASKS = 24
"""The minor version from which API servers look at ``spec.os``."""


def require(
    ctx: Context,
    pod: Pod,
    what: str,
    ok: bool,
    seen: str,
    expected: str,
    *,
    command: Sequence[str] = (),
    next_step: str = "",
) -> None:
    """Keep what was seen of a pod; where that is not right, the feature is not shown."""
    ctx.probe.record(f"{pod.name}: {what}", Try(ok, seen), pod, list(command), expected, pod.node.name)
    if not ok:
        raise CheckFailed(
            f"{describe(pod)}: {what}: {seen}",
            expected=expected,
            observed=seen,
            next_step=next_step or f"'kubectl describe pods -n {pod.namespace} {pod.name}' during a run shows more",
        )


async def ask(
    ctx: Context,
    pod: Pod,
    command: list[str],
    what: str,
    right: Callable[[str], bool],
    expected: str,
    *,
    container: str = "main",
    next_step: str = "",
) -> str:
    """Run a command in a pod and require that it says the right thing; what it said."""
    result = await pod.run(command, container=container)
    said = "; ".join([*lines(result.stdout), *lines(result.stderr)]) or f"nothing, exit code {result.exit_code}"
    require(ctx, pod, what, right(said), said, expected, command=command, next_step=next_step)
    return said


def minor_version(ctx: Context) -> int:
    """Of the API server; the newest imaginable where it does not say."""
    try:
        return Version.parse(ctx.world.inventory.version).minor
    except ValueError:
        return 1000


def with_fields(spec: Mapping[str, Any], fields: Mapping[str, Any]) -> Object:
    """A pod specification with more fields: names of them with dots, those of its only container after ``main.``."""
    made: Object = {**spec, "containers": [dict(each) for each in spec["containers"]]}
    for path, value in fields.items():
        holder: Object = made
        *above, name = path.split(".")
        for part in above:
            if part == "main":
                holder = made["containers"][0]
            else:
                holder[part] = dict(holder.get(part) or {})
                holder = holder[part]
        holder[name] = value
    return made


async def taken(ctx: Context, pod: Pod, fields: Mapping[str, Any]) -> Object | str:
    """What becomes of a Windows pod with these fields on its way in, or in which words it is refused; none is made."""
    namespace = await ctx.world.namespace(SHARED)
    spec = pinned(pod_spec("windows", [idle_container(ctx.settings)], ctx.settings, [pod.node]), pod.node)
    try:
        return await namespace.admitted(PODS, pod_object("feature", with_fields(spec, fields), ctx.settings))
    except Invalid as error:
        return error.message


async def require_taken(ctx: Context, pod: Pod) -> None:
    """A Windows pod without anything special must get in, or a refusal would say nothing."""
    if isinstance(words := await taken(ctx, pod, {}), str):
        raise CheckBlocked(f"the API server takes no ordinary Windows pod: {words}")
