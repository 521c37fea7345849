"""From what somebody names on the command line to the workloads that a run is to answer for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from winready.cluster.client import Client
from winready.cluster.kubeconfig import Target
from winready.engine.trying import Attempt
from winready.engine.workloads import Workload
from winready.features import attempts, manifests, relying
from winready.features.manifests import ManifestError, Manifests
from winready.lint.context import Profile
from winready.lint.files import Input
from winready.lint.live import ask

HOW = "a pod goes to Windows by spec.os.name and the nodeSelector kubernetes.io/os, both with the value windows"


@dataclass(frozen=True)
class Asked:
    """Workloads, and what is said beside them."""

    workloads: tuple[Workload, ...]
    attempts: tuple[Attempt, ...] = ()
    notices: tuple[str, ...] = ()


def read(paths: Sequence[str], namespace: str) -> Manifests:
    """The manifests in these files and folders; raises `ManifestError`, also where nothing is for Windows."""
    found = manifests.read(paths, Profile(namespace=namespace))
    _require(found, ", ".join(paths))
    return found


async def look(target: Target, known: Manifests | None, *, live: bool, namespace: str, with_attempts: bool) -> Asked:
    """The workloads, judged for this cluster; with ``live`` those that it has itself."""
    seen = await ask(target, Profile(namespace=namespace), live, namespace)
    inputs: list[Input] = [*(known.inputs if known else ()), *seen.inputs]
    found = manifests.read((), seen.profile, inputs)
    _require(found, "the cluster" + (f", namespace {namespace}" if namespace else ""))
    workloads = relying.workloads(found)
    tried: list[Attempt] = []
    if with_attempts:
        if live:
            async with Client.connect(target) as client:
                await attempts.copy_live(client, found)
        tried = attempts.attempts(found, workloads)
    notices = (*seen.notices, *(known.notices if known else found.notices))
    return Asked(tuple(workloads), tuple(tried), tuple(dict.fromkeys(notices)))


def _require(found: Manifests, where: str) -> None:
    if not found.windows:
        raise ManifestError(f"no workload for Windows in {where}: {found.seen}; {HOW}")
