"""Who notices faults of the control plane: an API server in trouble, webhooks, scheduler and controllers."""

from __future__ import annotations

from winready.proof.expected.model import HARMLESS, Expectation

REFUSED = "privileged-containers linux-security-context uid-gid read-only-root shared-namespaces user-namespaces"
"""What API servers refuse in pods of which they know that they are for Windows."""

CONTROL_PLANE = {
    "api.slow": HARMLESS,
    "api.too-many-requests": HARMLESS,
    "api.internal-errors": HARMLESS,
    "api.resets": HARMLESS,
    "api.watch-expiry": HARMLESS,
    "admission.pod-os-removed": Expectation("pod-os", features=f"identify-pod-os psa-os-exemption {REFUSED}"),
    "scheduler.overcommits-windows": Expectation("H2"),
    "controllers.replicas-lost": Expectation("C1", blocks="S6"),
    "controllers.endpoints-frozen": Expectation(
        "N1 N2 N8 N9 C2 C3 W3 X1 X3 X5", blocks="N3 N4 N10 N11 N12 N13 C1 S6 P7 X2 X4"
    ),
    "scheduler.counts-no-memory": Expectation("H2"),
    "scheduler.counts-no-cpu": Expectation("H2"),
    "scheduler.counts-pods-alone": Expectation("H2"),
    "scheduler.places-later": Expectation("H2"),
    "controllers.endpoints-lag": Expectation("C1"),
}
