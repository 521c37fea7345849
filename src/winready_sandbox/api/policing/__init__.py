"""Who may refuse an object, or change it, besides the rules of its kind: limit ranges, quotas, Pod Security, webhooks.

All speak as the real API server does; what they look at is in the cluster, and none of them acts unless somebody put
the object there that says so.
"""

from __future__ import annotations

from winready_sandbox.api.admission import RuntimeClasses
from winready_sandbox.api.pod_fields import PodFields
from winready_sandbox.api.policing.hooks import Reviewers
from winready_sandbox.api.policing.limits import LimitRanges
from winready_sandbox.api.policing.quotas import Quotas
from winready_sandbox.api.policing.security import Configuration, PodSecurity
from winready_sandbox.api.registry import Registry
from winready_sandbox.api.telling import Telling


def install(registry: Registry, pod_security: str = "privileged") -> Reviewers:
    """Let a cluster refuse as a real one does; ``pod_security`` is the level of namespaces that state none."""
    limits, quotas = LimitRanges(registry), Quotas(registry)
    reviewers = Reviewers(registry)
    fields = PodFields(registry.resources.minor)
    registry.admission += [limits.complete, reviewers.mutate, fields.admit]
    registry.validating += [
        Telling(registry.resources.minor).tell,
        limits.validate,
        PodSecurity(registry, Configuration.at(pod_security)).validate,
        RuntimeClasses(registry).validate,
        reviewers.validate,
        quotas.validate,
    ]
    registry.committed.append(quotas.committed)
    return reviewers
