"""Who notices faults of network policy engines."""

from __future__ import annotations

from winready.proof.expected.model import Expectation

POLICY = {
    "policy.windows.not-enforced": Expectation("K1 K2"),
    "policy.windows.blocks-all": Expectation("K1 K2"),
    "policy.windows.namespaces-ignored": Expectation("K2"),
    "policy.windows.pods-ignored": Expectation("K1"),
    "policy.windows.never-removed": Expectation("K1 K2"),
    "policy.windows.same-node-let-in": Expectation("K1 K2"),
    "policy.windows.egress-ignored": Expectation("K1 K2"),
    "policy.windows.chosen-pods-kept-out": Expectation("K1"),
    "policy.windows.chosen-namespaces-kept-out": Expectation("K2"),
    "policy.windows.late": Expectation("K1 K2"),
    "policy.windows.removed-late": Expectation("K1 K2"),
    "policy.windows.lost-later": Expectation("K1 K2"),
    "policy.windows.later-pods-missed": Expectation("K1"),
    "policy.windows.labels-stale": Expectation("K1"),
    "policy.windows.updates-missed": Expectation("K2"),
}
