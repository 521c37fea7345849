"""The service account token of a running Windows pod is rotated, and its access to the API server goes on.

A token cannot be made to rotate: the shortest life that the API grants is ten minutes, and the kubelet renews after
eight. So the pods start first and are read last. Tokens are compared by what they say of themselves; none is kept.
Access is lost by who is refused, or reaches the API server no more. Whoever is asked for patience was let in, and what
a bad wire loses, other requirements judge.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import re
from dataclasses import dataclass
from typing import Any

from winready.checks.context import Context
from winready.checks.registry import check
from winready.cluster.client import Object
from winready.cluster.commands import lines, read_file
from winready.cluster.failures import CheckBlocked, CheckFailed
from winready.cluster.inventory import Node
from winready.cluster.pods import CONTAINER, Pod, idle_container, pause_container
from winready.cluster.probes import Try, describe, every

FOLDER = "C:\\var\\run\\secrets\\kubernetes.io\\serviceaccount"
LOG_LINES = 5000
SECOND = "second"
REFUSED = ("provide credentials", "Unauthorized", "forbidden")
"""How the client says 401, with a body that it understands or not, and 403."""
NO_ANSWER = 'Get "'
"""How Go begins an error without an answer of the server; with one, it tells the answer."""
CALLING, ERROR = "calling /healthz", "error checking /healthz: "
_HASH = re.compile(r"authz_header=(\S+)")


@dataclass(frozen=True)
class Token:
    """What may be known of a token."""

    digest: str
    issued: int
    expires: int


@dataclass(frozen=True)
class Call:
    """One call of the pod's own client to the API server."""

    token: str
    """The hash of the token used, made by the client, with a salt."""
    error: str = ""


@dataclass(frozen=True)
class Calls:
    """What the pod's own client says in its log about its calls; of the last one the end is not known yet."""

    made: list[Call]

    @property
    def errors(self) -> list[str]:
        """How calls failed."""
        return [call.error for call in self.made if call.error]

    @property
    def refusals(self) -> list[str]:
        """Answers that keep the pod out."""
        return [error for error in self.errors if any(word in error for word in REFUSED)]

    @property
    def tokens(self) -> list[str]:
        """The tokens used, in order of first use."""
        return list(dict.fromkeys(call.token for call in self.made if call.token))

    @property
    def renewed(self) -> list[Call]:
        """Those with another token than the first."""
        return [call for call in self.made if call.token in self.tokens[1:]]

    @property
    def answered(self) -> int:
        """How many were answered as they should be."""
        return len(self.made) - len(self.errors)

    @property
    def goes_on(self) -> bool:
        """Whether there is access with another token than the first."""
        return bool(self.renewed) and not self.renewed[-1].error


@check("core.storage.token-rotation", expected_s=600, windows_pods_per_node=1)
async def token_rotation(ctx: Context) -> None:
    """On each judged node: a pod calls the API server all the time, across a rotation of its containers' token."""
    await every(*(_judge(ctx, node, number) for number, node in enumerate(ctx.windows_nodes, 1)))


async def _judge(ctx: Context, node: Node, number: int) -> None:
    namespace = await ctx.world.namespace("tok")
    mounts = [{"name": "token", "mountPath": FOLDER, "readOnly": True}]
    calling = ["inclusterclient", f"--poll-interval={ctx.times.token_call:g}"]
    containers = [
        idle_container(ctx.settings, args=calling, volumeMounts=mounts),
        pause_container(ctx.settings, name=SECOND, volumeMounts=mounts),
    ]
    pod = await ctx.start(namespace, f"token-{number}", node, containers, volumes=[_volume(ctx)])
    first = await _token(pod)
    life = first.expires - first.issued
    if life != ctx.times.token_life:
        raise CheckBlocked(
            f"{describe(pod)} asked for a token of {ctx.times.token_life:g} s and has one of {life} s",
            next_step="the API server lengthens tokens; without a short one a rotation takes too long to wait for",
        )
    await _before(ctx, pod)
    last, calls = first, await _calls(pod)
    async for _ in ctx.timing.attempts(ctx.times.token_rotation, every=ctx.times.token_look):
        last, calls = await _token(pod), await _calls(pod)
        if (last.digest != first.digest and calls.goes_on) or calls.refusals:
            break
    _judged(ctx, pod, first, last, calls)
    await _second(ctx, pod, first)


async def _second(ctx: Context, pod: Pod, first: Token) -> None:
    """The other container of the pod has a new token, too: the file is one and the same."""
    seen = await _token(pod, SECOND)
    ok, command = seen.digest != first.digest, read_file(pod.os, f"{FOLDER}\\token")
    age, expected = f"issued {seen.issued - first.issued} s after the first", "another token in the file"
    ctx.probe.record(f"{pod.name}/{SECOND} has a new token", Try(ok, age), pod, command, expected)
    if not ok:
        raise CheckFailed(
            f"container {SECOND} of {describe(pod)} still has the first token while the other container has a new one",
            expected=expected,
            observed=age,
            next_step=f"look at how the container runtime of node {pod.node.name} mounts volumes",
        )


def _volume(ctx: Context) -> Object:
    token = {"path": "token", "expirationSeconds": int(ctx.times.token_life)}
    item = {"path": "namespace", "fieldRef": {"fieldPath": "metadata.namespace"}}
    sources: list[Object] = [
        {"serviceAccountToken": token},
        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        {"downwardAPI": {"items": [item]}},
    ]
    return {"name": "token", "projected": {"sources": sources}}


async def _before(ctx: Context, pod: Pod) -> None:
    """Without access before the rotation there is nothing that could go on."""
    calls = await _calls(pod)
    async for _ in ctx.timing.attempts(ctx.times.service_reachable, every=ctx.times.token_call):
        if calls.answered:
            return
        calls = await _calls(pod)
    if not calls.answered:
        seen = calls.errors[-1] if calls.errors else "no call was made"
        raise CheckBlocked(
            f"{describe(pod)} does not reach the API server with its first token: {seen}",
            next_step=f"repair access to the service kubernetes.default from node {pod.node.name} first",
        )


def _judged(ctx: Context, pod: Pod, first: Token, last: Token, calls: Calls) -> None:
    seen = (
        f"token file issued {last.issued - first.issued} s after the first, {len(calls.tokens)} tokens used in "
        f"{len(calls.made)} calls, {len(calls.errors)} failed"
    )
    ok = last.digest != first.digest and calls.goes_on and not calls.refusals
    expected = "another token in the file, calls with it answered, none refused"
    ctx.probe.record(
        f"{pod.name} keeps its access", Try(ok, seen), pod, read_file(pod.os, f"{FOLDER}\\token"), expected
    )
    ctx.evidence.fact(
        f"calls of {pod.name}",
        {
            "made": len(calls.made),
            "tokens": len(calls.tokens),
            "failed": len(calls.errors),
            "errors": calls.errors[-5:],
        },
    )
    if not ok:
        reason, hint = _why(ctx, pod, last.digest == first.digest, calls)
        raise CheckFailed(f"{describe(pod)} {reason}", expected=expected, observed=seen, next_step=hint)


def _why(ctx: Context, pod: Pod, stayed: bool, calls: Calls) -> tuple[str, str]:
    """What became of a pod's access, and where to look."""
    window = f"{ctx.times.token_rotation:g} s"
    if stayed:
        return f"still has its first token after {window}", f"look at the kubelet's log on node {pod.node.name}"
    if calls.refusals:
        after = f"was refused by the API server after its token was rotated: {calls.refusals[-1]}"
        return after, "is the token's issuer known?"
    if not calls.renewed:
        return f"has a new token file and went on with the old token for {window}", "look at the pod's log"
    error = calls.renewed[-1].error
    if not error.startswith(NO_ANSWER):
        raise CheckBlocked(
            f"{describe(pod)} has a new token, and the API server answers its calls with errors: {error}",
            next_step="look at the API server's load and health, and run again",
        )
    hint = f"ask for the service kubernetes.default from another pod on node {pod.node.name}"
    return f"reaches the API server no more after its token was rotated: {error}", hint


async def _token(pod: Pod, container: str = CONTAINER) -> Token:
    """Read a container's token and keep only what it says of itself."""
    result = await pod.run(read_file(pod.os, f"{FOLDER}\\token"), container=container)
    text = "".join(lines(result.stdout))
    claims = _claims(text)
    if result.exit_code != 0 or not claims:
        raise CheckFailed(
            f"{describe(pod)} has no service account token in {FOLDER}",
            expected="a JWT",
            observed="none",
            next_step=f"look at the kubelet's log on node {pod.node.name}",
        )
    return Token(hashlib.sha256(text.encode()).hexdigest(), int(claims["iat"]), int(claims["exp"]))


def _claims(text: str) -> dict[str, Any]:
    try:
        body = text.split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
        return claims if all(isinstance(claims[name], int) for name in ("iat", "exp")) else {}
    except (LookupError, TypeError, ValueError, RecursionError, binascii.Error):
        return {}


async def _calls(pod: Pod) -> Calls:
    return read_calls(await pod.client.logs(pod.namespace, pod.name, CONTAINER, tail=LOG_LINES))


def read_calls(log: str) -> Calls:
    """The calls that a client's log tells of, as far as they are over."""
    done = log.split(CALLING)[1:-1]
    return Calls([Call((_HASH.findall(text) or [""])[0], _error(text)) for text in done])


def _error(text: str) -> str:
    return text.partition(ERROR)[2].partition("\n")[0]
