"""Controllers that checks create: Deployments and StatefulSets of netexec servers on Windows."""

from __future__ import annotations

from typing import Any

from winready.checks.context import Context
from winready.cluster.client import Object
from winready.cluster.pods import netexec_container, pod_spec

HOSTNAME = "kubernetes.io/hostname"


def netexec_deployment(ctx: Context, name: str, replicas: int) -> Object:
    """A Deployment of Windows servers, spread over the judged nodes."""
    return {"metadata": {"name": name}, "spec": {"replicas": replicas, **_template(ctx, name)}}


def netexec_stateful_set(ctx: Context, name: str, replicas: int, service: str) -> Object:
    """A StatefulSet of Windows servers behind a headless service."""
    spec = {"replicas": replicas, "serviceName": service, "podManagementPolicy": "Parallel", **_template(ctx, name)}
    return {"metadata": {"name": name}, "spec": spec}


def _template(ctx: Context, name: str) -> Object:
    labels = {"app": name}
    spread: dict[str, Any] = {
        "maxSkew": 1,
        "topologyKey": HOSTNAME,
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": labels},
    }
    hostnames = [node.labels.get(HOSTNAME, node.name) for node in ctx.windows_nodes]
    judged = {"matchExpressions": [{"key": HOSTNAME, "operator": "In", "values": hostnames}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [judged]}}}
    spec = pod_spec(
        "windows",
        [netexec_container(ctx.settings)],
        ctx.settings,
        ctx.windows_nodes,
        affinity=affinity,
        topologySpreadConstraints=[spread],
    )
    template = {"metadata": {"labels": {**ctx.settings.labels(), **labels}}, "spec": spec}
    return {"selector": {"matchLabels": labels}, "template": template}
