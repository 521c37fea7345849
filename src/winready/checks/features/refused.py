"""What the API server does with pods that declare Windows and ask for what only Linux has.

Nothing is created for it: each is a dry run, and the shared Windows pods, which were made the same way without these
fields, show that ordinary ones get in and run.
"""

from __future__ import annotations

from typing import Any

from winready.checks.context import Context
from winready.checks.features.looking import NOBODY_ASKS, minor_version, require, require_taken, taken
from winready.checks.fixtures import SHARED
from winready.checks.registry import Sight, feature_check
from winready.cluster.commands import Os
from winready.cluster.errors import Refused
from winready.cluster.failures import CheckBlocked, NotApplicable
from winready.cluster.pods import idle_container, pod_object, pod_spec
from winready.cluster.resources import NAMESPACES, PODS

LOOK_AT_ADMISSION = "look for what takes spec.os off pods on their way in: without it the API server knows no better"


async def _refused(ctx: Context, *wishes: dict[str, Any]) -> Sight:
    """Each wish is refused, with words that name its field."""
    if minor_version(ctx) < NOBODY_ASKS:
        raise NotApplicable(f"API servers before 1.{NOBODY_ASKS} take such pods without looking at their system")
    pod, *_ = await ctx.clients("windows")
    await require_taken(ctx, pod)
    for fields in wishes:
        names = ", ".join(fields)
        answer = await taken(ctx, pod, fields)
        last = names.rpartition(".")[2].casefold()
        ok = isinstance(answer, str) and last in answer.casefold()
        seen = answer if isinstance(answer, str) else "taken"
        require(ctx, pod, f"a pod like it with {names}", ok, seen, "refused", next_step=LOOK_AT_ADMISSION)
    return Sight(False, "the API server refuses " + "; ".join(", ".join(fields) for fields in wishes))


@feature_check("privileged-containers", fixtures=("clients",))
async def privileged(ctx: Context) -> Sight:
    """``privileged`` is not for Windows pods."""
    return await _refused(ctx, {"main.securityContext.privileged": True})


@feature_check("linux-security-context", fixtures=("clients",))
async def linux_security_context(ctx: Context) -> Sight:
    """Neither are capabilities, SELinux, seccomp and sysctls."""
    return await _refused(
        ctx,
        {"main.securityContext.capabilities": {"add": ["NET_ADMIN"]}},
        {"main.securityContext.allowPrivilegeEscalation": False},
        {"securityContext.seLinuxOptions": {"level": "s0:c123,c456"}},
        {"securityContext.seccompProfile": {"type": "RuntimeDefault"}},
        {"securityContext.sysctls": [{"name": "kernel.shm_rmid_forced", "value": "0"}]},
    )


@feature_check("uid-gid", fixtures=("clients",))
async def uid_gid(ctx: Context) -> Sight:
    """Nor numeric users and groups."""
    return await _refused(
        ctx,
        {"securityContext.runAsUser": 1000},
        {"securityContext.runAsGroup": 1000},
        {"securityContext.fsGroup": 1000},
        {"securityContext.supplementalGroups": [1000]},
        {"main.securityContext.runAsUser": 1000},
    )


@feature_check("read-only-root", fixtures=("clients",))
async def read_only_root(ctx: Context) -> Sight:
    """Nor a root file system that cannot be written."""
    return await _refused(ctx, {"main.securityContext.readOnlyRootFilesystem": True})


@feature_check("shared-namespaces", fixtures=("clients",))
async def shared_namespaces(ctx: Context) -> Sight:
    """Nor process namespaces of the host or of the pod."""
    return await _refused(ctx, {"hostPID": True}, {"hostIPC": True}, {"shareProcessNamespace": True})


@feature_check("user-namespaces", fixtures=("clients",))
async def user_namespaces(ctx: Context) -> Sight:
    """Nor users of their own."""
    return await _refused(ctx, {"hostUsers": False})


@feature_check("identify-pod-os", fixtures=("clients",))
async def identify_pod_os(ctx: Context) -> Sight:
    """``spec.os`` of running pods is what was asked for, and one that does not exist is refused."""
    namespace = await ctx.world.namespace(SHARED)
    pods = await ctx.clients("windows")
    for pod in pods:
        raw = namespace.pod(pod.name) or {}
        name = str(((raw.get("spec") or {}).get("os") or {}).get("name") or "missing")
        require(ctx, pod, "its spec.os", name == "windows", name, "windows", next_step=LOOK_AT_ADMISSION)
    answer = await taken(ctx, pods[0], {"os": {"name": "plan9"}})
    seen = answer if isinstance(answer, str) else "taken"
    require(ctx, pods[0], "a pod like it for plan9", isinstance(answer, str), seen, "refused")
    return Sight(True, "spec.os stays as it was asked for, and is looked at")


@feature_check("psa-os-exemption", fixtures=("clients",))
async def psa_os_exemption(ctx: Context) -> Sight:
    """Where only restricted pods may be, a Windows pod gets in without the fields that only Linux has."""
    pods = await ctx.clients("windows")
    namespace = await ctx.world.namespace("psa")
    level = {"pod-security.kubernetes.io/enforce": "restricted", "pod-security.kubernetes.io/enforce-version": "latest"}
    await ctx.world.client.patch(NAMESPACES, namespace.name, {"metadata": {"labels": level}})
    answers: dict[Os, str] = {}
    systems: tuple[Os, ...] = ("windows", "linux")
    for os in systems:
        made = pod_spec(os, [idle_container(ctx.settings)], ctx.settings, [])
        spec = {**made, "securityContext": {"runAsNonRoot": True}}
        try:
            await namespace.admitted(PODS, pod_object(f"restricted-{os}", spec, ctx.settings))
            answers[os] = "taken"
        except Refused as error:
            answers[os] = f"{error.refusal}"
    if answers["linux"] == "taken":
        raise CheckBlocked(
            f"namespace {namespace.name} is for restricted pods, and takes a Linux pod that is none",
            next_step="look whether the API server has the admission plugin PodSecurity",
        )
    for pod in pods:
        ok = answers["windows"] == "taken"
        require(ctx, pod, "a pod like it in a namespace for restricted ones", ok, answers["windows"], "taken")
    return Sight(True, "a restricted namespace takes Windows pods without fields of Linux, and no such Linux pods")
