"""The recorded facts that an outcome rests on: enough to believe or dispute it without the cluster, and bounded."""

from __future__ import annotations

from typing import Any

import msgspec

from winready.cluster.secrets import without_secrets

TEXT_LIMIT = 2000
PROBE_LIMIT = 400


class PodFact(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A pod that took part, and what proves its operating system."""

    namespace: str
    name: str
    uid: str
    node: str
    os: str
    build: str = ""
    """What the container itself answered (``ver``, ``uname``), empty when it was not asked."""
    node_build: str = ""
    image: str = ""
    image_id: str = ""
    addresses: list[str] = []


class Probe(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One question that was put to the cluster, and its answer."""

    title: str
    ok: bool
    pod: str = ""
    node: str = ""
    target: str = ""
    command: list[str] = []
    expected: str = ""
    observed: str = ""
    exit_code: int | None = None
    attempts: int = 1
    at_s: float = 0.0
    """Wall seconds since the run began."""
    seconds: float = 0.0


class Evidence(msgspec.Struct, kw_only=True, omit_defaults=True):
    """All that is kept for one requirement."""

    pods: list[PodFact] = []
    probes: list[Probe] = []
    facts: dict[str, Any] = {}
    dropped_probes: int = 0

    def pod(self, fact: PodFact) -> None:
        """Record a pod, once; a later fact that knows more takes the earlier one's place."""
        self.pods = [item for item in self.pods if item.uid != fact.uid] + [fact]

    def probe(self, probe: Probe) -> None:
        """Record a probe; beyond the limit successes are only counted, failures still kept up to twice the limit."""
        room = PROBE_LIMIT if probe.ok else 2 * PROBE_LIMIT
        if len(self.probes) < room:
            self.probes.append(probe)
        else:
            self.dropped_probes += 1

    def fact(self, name: str, value: Any) -> None:
        """Record a named observation; raises ``TypeError`` for what no journal can hold."""
        self.facts[name] = msgspec.to_builtins(value)


def bounded(text: str | bytes, limit: int = TEXT_LIMIT) -> str:
    """Text fit for the record: no secrets, no endless output; what is cut says so."""
    if isinstance(text, bytes):
        text = text.decode("utf-8", errors="replace")
    text = without_secrets(text)
    if len(text) <= limit:
        return text
    return f"{text[: limit // 2]}\n[... {len(text) - limit} characters cut ...]\n{text[-limit // 2 :]}"
