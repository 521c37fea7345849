"""What is wrong with a cluster, or keeps it from being judged: how a check ends when it does not pass."""

from __future__ import annotations


class CheckFailed(Exception):
    """The cluster does not show the ability. Names the object or node, what was expected and what was seen."""

    def __init__(self, reason: str, *, expected: str = "", observed: str = "", next_step: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.expected = expected
        self.observed = observed
        self.next_step = next_step


class CheckBlocked(Exception):
    """The requirement cannot be judged here: a precondition or a control probe failed."""

    def __init__(self, reason: str, *, next_step: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.next_step = next_step


class NotApplicable(Exception):
    """The cluster does not offer the feature that the requirement is about."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
