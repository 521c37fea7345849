"""What is said of a finding: the place, what happens, why. What happens is said here alone, and once.

The data of rules gives reasons that hold whatever happens, and notes for one outcome; only this module says
"accepted" or "refused", so that a sentence cannot say both.
"""

from __future__ import annotations

from collections.abc import Mapping

from winready.lint.catalog import Effect, Outcome, Rule

CONSEQUENCE: Mapping[Effect, str] = {
    "rejected": "the API server refuses it",
    "fails": "accepted, but it does not work",
    "ignored": "accepted, but without effect",
    "different": "works differently on Windows",
    "supported": "works on Windows",
}
RESERVED = "works on Windows, with a reservation"
"""What is supported and still worth a warning."""
UNSURE = "accepted, but it may not work"
"""What fails only on some clusters or images, and is no more than a note for that reason."""


def consequence(outcome: Outcome, through: str = "", severity: str = "") -> str:
    """What happens; ``through`` names a controller that is accepted while its pods are not.

    ``severity`` is that of the finding, where the manifest or the cluster says more than the rule knows.
    """
    if outcome.effect == "rejected" and through:
        return f"the API server takes the {through} and refuses its pods"
    if outcome.effect == "supported" and outcome.severity != "info":
        return RESERVED
    if outcome.effect == "fails" and (severity or outcome.severity) == "info":
        return UNSURE
    return CONSEQUENCE[outcome.effect]


def message(rule: Rule, outcome: Outcome, detail: str = "", through: str = "", severity: str = "") -> str:
    """All of it: what is there, what happens, why, and what is to be known about these versions."""
    told = f"{detail or rule.title}: {consequence(outcome, through, severity)}. {rule.why}"
    return f"{told} {outcome.note}" if outcome.note else told


def summary(rule: Rule) -> str:
    """A rule in one sentence, as it is in the newest version."""
    return f"{rule.title}: {consequence(rule.declared[-1])}"
