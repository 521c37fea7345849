"""The service account token of a running Windows pod is rotated, and its access to the API server goes on.

A token cannot be made to rotate: the shortest life that the API grants is ten minutes, and the kubelet renews after
eight. So the pods start first and are read last. Tokens are compared by what they say of themselves; none is kept.
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
from winready.cluster.pods import CONTAINER, Pod, idle_container
from winready.cluster.probes import Try, describe, every

FOLDER = "C:\\var\\run\\secrets\\kubernetes.io\\serviceaccount"
LOG_LINES = 5000
REFUSED = ("Unauthorized", "forbidden")
_HASH = re.compile(r"authz_header=(\S+)")


@dataclass(frozen=True)
class Token:
    """What may be known of a token."""

    digest: str
    issued: int
    expires: int


@dataclass(frozen=True)
class Calls:
    """What the pod's own client says in its log about its calls to the API server."""

    tokens: list[str]
    """Hashes of the tokens used, in order of first use; made by the client, with a salt."""
    made: int
    errors: list[str]


@check("core.storage.token-rotation", expected_s=600, windows_pods_per_node=1)
async def token_rotation(ctx: Context) -> None:
    """On each judged node: a pod calls the API server all the time, across a rotation of its token."""
    await every(*(_judge(ctx, node, number) for number, node in enumerate(ctx.windows_nodes, 1)))


async def _judge(ctx: Context, node: Node, number: int) -> None:
    namespace = await ctx.world.namespace("tok")
    container = idle_container(
        ctx.settings,
        args=["inclusterclient", f"--poll-interval={ctx.times.token_call:g}"],
        volumeMounts=[{"name": "token", "mountPath": FOLDER, "readOnly": True}],
    )
    pod = await ctx.start(namespace, f"token-{number}", node, [container], volumes=[_volume(ctx)])
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
        if (last.digest != first.digest and len(calls.tokens) > 1) or _refusals(calls):
            break
    _judged(ctx, pod, first, last, calls)


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
        calls = await _calls(pod)
        if calls.made > len(calls.errors) + 1:
            break
    if calls.made <= len(calls.errors) + 1:
        seen = calls.errors[-1] if calls.errors else "no call was made"
        raise CheckBlocked(
            f"{describe(pod)} does not reach the API server with its first token: {seen}",
            next_step=f"repair access to the service kubernetes.default from node {pod.node.name} first",
        )


def _judged(ctx: Context, pod: Pod, first: Token, last: Token, calls: Calls) -> None:
    seen = (
        f"token file issued {last.issued - first.issued} s after the first, {len(calls.tokens)} tokens used in "
        f"{calls.made} calls, {len(calls.errors)} failed"
    )
    ok = last.digest != first.digest and len(calls.tokens) > 1 and not calls.errors
    expected = "another token in the file, two tokens used, no call failed"
    ctx.probe.record(
        f"{pod.name} keeps its access", Try(ok, seen), pod, read_file(pod.os, f"{FOLDER}\\token"), expected
    )
    ctx.evidence.fact(
        f"calls of {pod.name}", {"made": calls.made, "tokens": len(calls.tokens), "errors": calls.errors[-5:]}
    )
    window = f"{ctx.times.token_rotation:g} s"
    if last.digest == first.digest:
        reason, hint = f"still has its first token after {window}", f"look at the kubelet's log on node {pod.node.name}"
    elif refused := _refusals(calls):
        reason, hint = (
            f"was refused by the API server after its token was rotated: {refused[-1]}",
            "is the token's issuer known?",
        )
    elif len(calls.tokens) < 2:
        reason, hint = f"has a new token file and went on with the old token for {window}", "look at the pod's log"
    elif calls.errors:
        reason, hint = (
            f"lost its access in {len(calls.errors)} of {calls.made} calls: {calls.errors[-1]}",
            "look for packet loss",
        )
    else:
        return
    raise CheckFailed(f"{describe(pod)} {reason}", expected=expected, observed=seen, next_step=hint)


def _refusals(calls: Calls) -> list[str]:
    return [error for error in calls.errors if any(word in error for word in REFUSED)]


async def _token(pod: Pod) -> Token:
    """Read the pod's token and keep only what it says of itself."""
    result = await pod.run(read_file(pod.os, f"{FOLDER}\\token"))
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
        return claims if {"iat", "exp"} <= set(claims) else {}
    except (IndexError, ValueError, binascii.Error):
        return {}


async def _calls(pod: Pod) -> Calls:
    log = await pod.client.logs(pod.namespace, pod.name, CONTAINER, tail=LOG_LINES)
    errors = [line.partition("error checking /healthz: ")[2] for line in log.splitlines() if "error checking" in line]
    return Calls(list(dict.fromkeys(_HASH.findall(log))), log.count("calling /healthz"), errors)
