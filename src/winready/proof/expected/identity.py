"""Who notices faults of who containers are: their users, and their accounts in a domain."""

from __future__ import annotations

from winready.proof.expected.model import Expectation

IDENTITY = {
    "runtime.windows.user-name-ignored": Expectation("A4"),
    "runtime.windows.user-of-pod-wins": Expectation("A4"),
    "runtime.windows.user-first-container": Expectation("A4"),
    "runtime.windows.unknown-user-runs": Expectation("A4"),
    "runtime.windows.gmsa-for-everyone": Expectation("A3"),
    "runtime.windows.gmsa-ignored": Expectation("A1 A2", blocks="A3"),
    "runtime.windows.gmsa-of-another": Expectation("A1 A2", blocks="A3"),
    "runtime.windows.gmsa-first-container": Expectation("A1 A2"),
    "machine.windows.gmsa-lost-later": Expectation("A1 A2", blocks="A3"),
    "machine.windows.gmsa-now-and-then": Expectation("A1 A2"),
    "machine.windows.gmsa-tickets-of-another": Expectation("A1"),
    "domain.lets-everybody-in": Expectation("A1 A3"),
    "domain.lets-everybody-in-later": Expectation("A1 A3"),
    "domain.controller-down": Expectation("A1 A2", blocks="A3"),
    "domain.lets-members-in": Expectation("A1"),
    "domain.shares-read-only": Expectation("A2", blocks="A3"),
    "domain.one-session-per-account": Expectation("A1 A2", blocks="A3"),
    "admission.gmsa-for-any-account": Expectation("A1"),
    "admission.gmsa-not-filled-in": Expectation(blocks="A1 A2 A3", survived_by="A4"),
}
