"""Who may refuse an object, or change it, besides the rules of its kind: limit ranges, quotas, Pod Security, webhooks.

All speak as the real API server does; what they look at is in the cluster, and none of them acts unless somebody put
the object there that says so.
"""

from __future__ import annotations

from winready_sandbox.api.policing.hooks import Reviewers
from winready_sandbox.api.policing.limits import LimitRanges
from winready_sandbox.api.policing.quotas import Quotas
from winready_sandbox.api.policing.security import PodSecurity
from winready_sandbox.api.registry import Registry


def install(registry: Registry, pod_security: str = "privileged") -> Reviewers:
    """Let a cluster refuse as a real one does; ``pod_security`` is the level of namespaces that state none."""
    limits, quotas = LimitRanges(registry), Quotas(registry)
    reviewers = Reviewers(registry)
    registry.admission += [limits.complete, reviewers.mutate]
    registry.validating += [
        limits.validate,
        PodSecurity(registry, pod_security).validate,
        reviewers.validate,
        quotas.validate,
    ]
    registry.committed.append(quotas.committed)
    return reviewers
