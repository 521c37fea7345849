"""Who notices faults of the control plane: an API server in trouble, webhooks, scheduler and controllers."""

from __future__ import annotations

from winready.proof.expected.model import HARMLESS, Expectation

CONTROL_PLANE = {
    "api.slow": HARMLESS,
    "api.too-many-requests": HARMLESS,
    "api.internal-errors": HARMLESS,
    "api.resets": HARMLESS,
    "api.watch-expiry": HARMLESS,
    "admission.pod-os-removed": Expectation("pod-os"),
    "scheduler.overcommits-windows": Expectation("H2"),
    "controllers.replicas-lost": Expectation("C1", blocks="S6"),
    "controllers.endpoints-frozen": Expectation(
        "N1 N2 N8 N9 C2 C3", blocks="N3 N4 N10 N11 N12 N13 C1 S6 P7 X1 X2 X3 X4 X5 W3"
    ),
}
