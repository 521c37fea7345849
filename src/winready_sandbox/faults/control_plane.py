"""Faults of the control plane: an API server in trouble, webhooks, scheduler and controllers."""

from __future__ import annotations

from winready_sandbox.faults.model import Fault

CONTROL_PLANE_FAULTS = (
    Fault(
        "api.slow",
        "The API server takes a third of a second longer for every answer.",
        "api",
        {"delay": 0.3},
        where="cluster",
        fact="trouble on the way is not a finding",
    ),
    Fault(
        "api.too-many-requests",
        "The API server answers one of twenty calls with 429 and asks to come back later.",
        "api",
        {"too_many": 0.05},
        where="cluster",
        fact="trouble on the way is not a finding",
    ),
    Fault(
        "api.internal-errors",
        "The API server answers one of twenty calls with 500.",
        "api",
        {"errors": 0.05},
        where="cluster",
        fact="trouble on the way is not a finding",
    ),
    Fault(
        "api.resets",
        "The API server drops the connection of one of twenty calls.",
        "api",
        {"resets": 0.05},
        where="cluster",
        fact="trouble on the way is not a finding",
    ),
    Fault(
        "api.watch-expiry",
        "The API server forgets its history again and again, so that watches end with 410.",
        "api",
        {"expiry": 0.05},
        where="cluster",
        fact="trouble on the way is not a finding",
    ),
    Fault(
        "admission.pod-os-removed",
        "A webhook takes spec.os off new pods.",
        "api",
        {"strips_pod_os": True},
        where="cluster",
        fact="1.1: admission webhooks may rewrite selector or runtimeClass",
    ),
    Fault(
        "scheduler.overcommits-windows",
        "The scheduler places pods on one Windows node without looking at the room there is.",
        "scheduler",
        {"overcommitted": True},
        fact="1.8 and brief H2: over-sized pods stay Pending",
    ),
    Fault(
        "controllers.replicas-lost",
        "A pod that a ReplicaSet loses is not replaced.",
        "controllers",
        {"lost_replicas": True},
        where="cluster",
        fact="brief C1",
    ),
    Fault(
        "controllers.endpoints-frozen",
        "EndpointSlices stay as they are, whatever becomes of services and pods.",
        "controllers",
        {"endpoints_frozen": True},
        where="cluster",
        fact="1.5: services are routed by their EndpointSlices",
    ),
)
