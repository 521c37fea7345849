"""The recorded facts that an outcome rests on: enough to believe or dispute it without the cluster, and bounded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from winready.cluster.secrets import without_secrets

TEXT_LIMIT = 2000
PROBE_LIMIT = 400
FULL_PODS, FULL_PROBES = 100, 100
"""Of very many pods and good answers, as many are told in full; of the others, what they share is told once."""


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


class Member(msgspec.Struct, frozen=True, array_like=True):
    """What is a pod's own, among many that are alike."""

    name: str
    uid: str
    node: str
    addresses: list[str] = []


class PodGroup(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Many pods that are alike: what they share, once, and then who they are."""

    namespace: str
    os: str
    build: str = ""
    node_build: str = ""
    image: str = ""
    image_id: str = ""
    pods: list[Member] = []


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
    again: int = 0
    """How often its last command had to be repeated because the way to it broke."""
    at_s: float = 0.0
    """Wall seconds since the run began."""
    seconds: float = 0.0


class Evidence(msgspec.Struct, kw_only=True, omit_defaults=True):
    """All that is kept for one requirement."""

    pods: list[PodFact] = []
    probes: list[Probe] = []
    facts: dict[str, Any] = {}
    dropped_probes: int = 0
    alike: list[PodGroup] = []
    """Pods beyond those that are told in full."""
    counted: dict[str, int] = {}
    """Good answers that are only counted, by the node that asked."""

    @property
    def everybody(self) -> Iterator[PodFact]:
        """All pods that took part, those of groups as well."""
        yield from self.pods
        for group in self.alike:
            for one in group.pods:
                yield PodFact(
                    namespace=group.namespace,
                    name=one.name,
                    uid=one.uid,
                    node=one.node,
                    os=group.os,
                    build=group.build,
                    node_build=group.node_build,
                    image=group.image,
                    image_id=group.image_id,
                    addresses=one.addresses,
                )

    @property
    def windows_nodes(self) -> list[str]:
        """The nodes on which a container proved to be a Windows one, by name."""
        return sorted({pod.node for pod in self.everybody if pod.os == "windows" and pod.build})

    def saw(self, facts: Iterable[PodFact]) -> None:
        """Record pods, each once; a later fact that knows more takes the earlier one's place."""
        known = {item.uid: item for item in self.pods}
        for fact in facts:
            known.pop(fact.uid, None)
            known[fact.uid] = fact
        self.pods = list(known.values())

    def probe(self, probe: Probe) -> None:
        """Record a probe; beyond the limit successes are only counted, failures still kept up to twice the limit."""
        room = PROBE_LIMIT if probe.ok else 2 * PROBE_LIMIT
        if len(self.probes) < room:
            self.probes.append(probe)
        else:
            self.dropped_probes += 1
            if probe.ok:
                self.counted[probe.node] = self.counted.get(probe.node, 0) + 1

    def fold(self) -> Evidence:
        """Make the record of very many nodes a small one, in place, before it is told.

        Whatever failed stays; answers and pods of nodes on which something failed stay before those of others.
        """
        troubled = {probe.node for probe in self.probes if not probe.ok}
        if self.dropped_probes:
            self._fold_probes(troubled)
        pods = list(self.everybody)
        if len(pods) > FULL_PODS:
            pods.sort(key=lambda pod: pod.node not in troubled)
            self.pods, rest = pods[:FULL_PODS], pods[FULL_PODS:]
            groups: dict[tuple[str, ...], list[Member]] = {}
            for pod in rest:
                shared = (pod.namespace, pod.os, pod.build, pod.node_build, pod.image, pod.image_id)
                groups.setdefault(shared, []).append(Member(pod.name, pod.uid, pod.node, pod.addresses))
            names = ("namespace", "os", "build", "node_build", "image", "image_id")
            self.alike = [
                PodGroup(**dict(zip(names, shared, strict=True)), pods=members) for shared, members in groups.items()
            ]
        return self

    def _fold_probes(self, troubled: set[str]) -> None:
        """Of the good answers, the first of each node come first."""
        turns: Counter[str] = Counter()
        ranks = {}
        for place, probe in enumerate(self.probes):
            if probe.ok:
                ranks[place] = (probe.node not in troubled, turns[probe.node], place)
                turns[probe.node] += 1
        left_out = set(sorted(ranks, key=lambda place: ranks[place])[FULL_PROBES:])
        for place in left_out:
            node = self.probes[place].node
            self.counted[node] = self.counted.get(node, 0) + 1
        self.dropped_probes += len(left_out)
        self.probes = [probe for place, probe in enumerate(self.probes) if place not in left_out]

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
