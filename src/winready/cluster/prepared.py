"""Namespaces that an administrator prepared: a run takes them, leaves them as they were, and never deletes them."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping

from winready.cluster.absence import LostPods
from winready.cluster.client import Client
from winready.cluster.errors import AlreadyExists, ClusterError, Forbidden, NotFound
from winready.cluster.resources import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    ENDPOINT_SLICES,
    NETWORK_POLICIES,
    PODS,
    RESOURCE_QUOTAS,
    ROLE_BINDINGS,
    ROLES,
    SECRETS,
    SERVICE_ACCOUNTS,
    SERVICES,
    STATEFUL_SETS,
    Resource,
)
from winready.cluster.settings import RUN_LABEL, Settings

CLAIM = "winready-run"
"""The config map that says which run has a namespace: it can be made only once, and is removed last."""
ALWAYS = (PODS, NETWORK_POLICIES)
"""What may be in any namespace of a run, whoever uses it."""
KINDS: tuple[Resource, ...] = (
    DEPLOYMENTS, STATEFUL_SETS, SERVICES, ENDPOINT_SLICES, PODS, NETWORK_POLICIES, SECRETS, ROLE_BINDINGS, ROLES,
    SERVICE_ACCOUNTS, RESOURCE_QUOTAS, CONFIG_MAPS,
)  # fmt: skip
"""Everything that a run can make in a namespace, in the order in which it goes: owners before what they own."""


async def claim(client: Client, settings: Settings, name: str) -> None:
    """Take a prepared namespace for this run, or say who has it."""
    prefix = settings.namespace_prefix
    try:
        await client.create(CONFIG_MAPS, {"metadata": {"name": CLAIM, "labels": settings.labels()}}, name)
    except AlreadyExists:
        holder = await _holder(client, name)
        if holder == settings.run_id:
            return
        raise ClusterError(
            f"namespace {name} is in use by run {holder or '(unknown)'}",
            f"wait for it, or, if it was killed: 'winready cleanup --namespace-prefix {prefix} --run {holder}'",
        ) from None
    except NotFound:
        raise ClusterError(
            f"namespace {name} does not exist",
            f"'winready rbac --namespace-prefix {prefix}' prints the namespaces for an administrator to make; "
            "tell it the same requirements",
        ) from None


async def _holder(client: Client, name: str) -> str:
    found = await client.list(CONFIG_MAPS, name, labels=RUN_LABEL, fields=f"metadata.name={CLAIM}")
    return str(found[0]["metadata"]["labels"][RUN_LABEL]) if found else ""


async def empty(
    client: Client, made: Mapping[str, Collection[Resource]], *, run_id: str | None, patience: float, pause: float
) -> list[str]:
    """Remove what a run (``None``: any run) made, by namespace and kind; what is there after ``patience`` seconds."""
    loop = asyncio.get_running_loop()
    end = loop.time() + patience
    left: list[str] = []
    trouble: ClusterError | None = None
    waiting = dict(made)
    lost = LostPods(client, patience)
    while True:
        try:
            found = {name: await _remove_once(client, name, kinds, run_id) for name, kinds in waiting.items()}
            left = [item for items in found.values() for item in items]
            waiting = {name: waiting[name] for name, items in found.items() if items}
            trouble = None
            if not left:
                return []
            await lost.forget(waiting, _labels(run_id))
        except ClusterError as error:
            trouble = error
        if loop.time() > end:
            break
        await asyncio.sleep(pause)
    return [*left, f"unknown: the API server did not answer ({trouble.message})"] if trouble else left


async def objects_in(client: Client, names: Collection[str], run_id: str | None) -> list[str]:
    """What runs made in these namespaces and is still there."""
    return [item for name in names for item in await _remove_once(client, name, KINDS, run_id, remove=False)]


async def _remove_once(
    client: Client, namespace: str, kinds: Collection[Resource], run_id: str | None, *, remove: bool = True
) -> list[str]:
    labels = _labels(run_id)
    left: list[str] = []
    for resource in KINDS:
        if resource not in kinds and resource not in ALWAYS and resource is not CONFIG_MAPS:
            continue
        try:
            items = [item["metadata"] for item in await client.list(resource, namespace, labels=labels)]
        except Forbidden:
            # Whoever may not look was not allowed to make any: rights to create are given with those to list.
            continue
        for metadata in items:
            name = metadata["name"]
            if name == CLAIM and left:
                continue
            left.append(f"{resource.kind} {namespace}/{name}")
            # What a controller made goes with what it was made for.
            owned = any(owner.get("controller") for owner in metadata.get("ownerReferences") or [])
            if remove and not owned and not metadata.get("deletionTimestamp"):
                await client.delete(resource, name, namespace)
    return left


def _labels(run_id: str | None) -> str:
    return RUN_LABEL if run_id is None else f"{RUN_LABEL}={run_id}"
