"""What an operator has decided: how strict a gate is, how long it holds, and when a run is tried again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from winready.deploy.capi.hooks import Call

Policy = Literal["require-pass", "warn", "off"]
POLICIES: tuple[Policy, ...] = get_args(Policy)
POLICY_LABEL = "winready.io/policy"
AGAIN = "winready.io/run-again"
"""An annotation; each new value asks for one more run."""
LONGEST_VALUE = 253
MINUTE, HOUR = 60.0, 3600.0


@dataclass(frozen=True, kw_only=True)
class Terms:
    """Times are in seconds."""

    policy: Policy = "warn"
    """Of clusters that have no label. Most clusters of a fleet have no Windows nodes, and would never pass."""
    poll: float = 30.0
    """After how long a controller asks again. Labels and annotations are seen then."""
    again: tuple[float, ...] = (10 * MINUTE, 30 * MINUTE, 2 * HOUR)
    """After a run that did not pass; the last one repeats."""
    fresh: float = 24 * HOUR
    """For how long a run counts: an upgrade that was put off for weeks is judged anew."""
    hold_limit: float = 24 * HOUR
    """After that nothing is tried again by itself."""
    at_limit: Literal["hold", "release"] = "hold"
    run_limit: float = 2 * HOUR
    delete_limit: float = 2 * MINUTE
    nodes_wait: float = 30 * MINUTE
    """For how long the first run of a new cluster waits for Windows nodes."""
    parallel: int = 2
    suffix: str = "kubeconfig"
    """How the names of the Secrets end that lead to workload clusters."""


def chosen(call: Call, terms: Terms) -> tuple[Policy, str]:
    """The policy of a cluster, and where it comes from; a label that nobody knows is taken for the strictest."""
    for place, value in (
        (f"label {POLICY_LABEL}", call.labels.get(POLICY_LABEL)),
        ("settings of the ExtensionConfig", call.settings.get("policy")),
    ):
        if value is None:
            continue
        for policy in POLICIES:
            if value == policy:
                return policy, f"{place}: {value}"
        return "require-pass", f"{place}: {value[:63]!r} is none of {', '.join(POLICIES)}, so require-pass holds"
    return terms.policy, f"default: {terms.policy}"


def asked_again(call: Call) -> str:
    """The value of the annotation that asks for one more run."""
    return call.annotations.get(AGAIN, "")[:LONGEST_VALUE]
