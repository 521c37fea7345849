"""The way to a workload cluster: the kubeconfig that Cluster API keeps in a Secret beside the Cluster."""

from __future__ import annotations

import base64
import binascii
from typing import Any

from winready.cluster.client import Client
from winready.cluster.errors import ConfigError, Forbidden, NotFound
from winready.cluster.kubeconfig import Target, foreign_target
from winready.cluster.resources import NODES, SECRETS
from winready.deploy.capi.hooks import Named

KEY = "value"


SUFFIX = "kubeconfig"
"""Of the Secret that Cluster API keeps; who has made one with fewer rights gives it another."""


def secret_name(cluster: str, suffix: str = SUFFIX) -> str:
    """Where the way to a cluster is."""
    return f"{cluster}-{suffix}"


async def kubeconfig(client: Client, cluster: Named, suffix: str = SUFFIX) -> tuple[bytes, Target]:
    """What is in the Secret, and where it leads; raises `ClusterError`. Nothing of it is ever told."""
    name = secret_name(cluster.name, suffix)
    title = f"Secret {cluster.namespace}/{name}"
    try:
        secret = await client.get(SECRETS, name, cluster.namespace)
    except NotFound:
        raise ConfigError(
            f"there is no {title}",
            "Cluster API writes it when the control plane is up; look at the KubeadmControlPlane",
        ) from None
    except Forbidden as error:
        error.remedy = f"winready needs the right to get Secrets in namespace {cluster.namespace}: winready deploy capi"
        raise
    text = (secret.get("data") or {}).get(KEY)
    if not isinstance(text, str) or not text:
        raise ConfigError(f"{title} has no {KEY!r}", "Cluster API keeps the kubeconfig there; have it written again")
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise ConfigError(f"{title}: {KEY!r} is not base64", "have Cluster API write it again") from None
    return data, foreign_target(data, title)


async def windows_ready(target: Target) -> bool:
    """Whether there are Windows nodes, all of them ready; raises `ClusterError`."""
    async with Client.connect(target) as client:
        nodes = await client.list(NODES, labels="kubernetes.io/os=windows")
    return bool(nodes) and all(_ready(node) for node in nodes)


def _ready(node: dict[str, Any]) -> bool:
    conditions = (node.get("status") or {}).get("conditions") or []
    return any(item.get("type") == "Ready" and item.get("status") == "True" for item in conditions)
