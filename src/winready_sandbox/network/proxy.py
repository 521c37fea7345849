"""The service proxy of one node: kube-proxy and the kernel tables that it programs.

Linux answers with iptables, Windows with HNS load balancers, and they differ in ways that workloads notice: how long a
change takes, how many backends fit, what a service without endpoints looks like, whether a pod reaches itself.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Literal

from winready_sandbox.clock import Clock
from winready_sandbox.network.defects import ProxyDefects
from winready_sandbox.network.services import Backend, ServiceCatalog, ServicePort, ServiceState
from winready_sandbox.network.view import ClusterView, Key

FORCED_RESYNC = 30.0
"""Seconds after which winkernel programs again what it could not finish (fact 1.5)."""
HNS_MAX_BACKENDS = 64
AFFINITY_SINCE_BUILD = 20348
Verdict = Literal["refuse", "drop"]


@dataclass(eq=False)
class Rule:
    """One programmed service port."""

    state: ServiceState
    port: ServicePort
    backends: tuple[Backend, ...]
    sticky: dict[str, tuple[Backend, float]] = field(default_factory=dict)
    """Client address to backend and the end of the promise."""
    hand: list[Backend] = field(default_factory=list)
    """Backends whose turn is still to come in this round."""


@dataclass
class _Programmed:
    state: ServiceState
    rules: list[Rule]


class ServiceProxy:
    """Tables of one node and the rules for choosing a backend from them."""

    def __init__(
        self,
        node: str,
        os: str,
        build: int,
        view: ClusterView,
        catalog: ServiceCatalog,
        clock: Clock,
        defects: ProxyDefects,
        rng: random.Random,
        has_local: Callable[[str], bool],
    ) -> None:
        self.node = node
        self._windows = os == "windows"
        self._build = build
        self._view = view
        self._catalog = catalog
        self._clock = clock
        self._defects = defects
        self._rng = rng
        self._has_local = has_local
        self._programmed: dict[Key, _Programmed] = {}
        self._vips: dict[tuple[str, int, str], Rule] = {}
        self._node_ports: dict[tuple[int, str], Rule] = {}
        self._dirty: set[Key] = set(catalog.keys())
        self._sync_timer: asyncio.TimerHandle | None = None
        self._resync_timer: asyncio.TimerHandle | None = None
        self._agents = 0
        self.running = True
        """False once the last kube-proxy process has ended: the tables stay, changes wait."""
        view.on_services(self._changed)

    def close(self) -> None:
        """Stop following changes and forget the tables, as a node that goes down does."""
        self._view.forget(self._changed)
        for timer in (self._sync_timer, self._resync_timer):
            if timer is not None:
                timer.cancel()
        self._programmed.clear()
        self._vips.clear()
        self._node_ports.clear()

    def start(self) -> None:
        """A kube-proxy process came up: it programs everything anew."""
        self._agents += 1
        self.running = True
        self.refresh()

    def stop(self) -> None:
        """A kube-proxy process is gone."""
        self._agents -= 1
        self.running = self._agents > 0

    def refresh(self) -> None:
        """Program every service again at the next sync."""
        self._dirty.update(self._catalog.keys(), self._programmed)
        self._schedule()

    def _changed(self, key: Key) -> None:
        self._dirty.add(key)
        self._schedule()

    def _schedule(self) -> None:
        if self._sync_timer is not None:
            return
        if self._windows:
            # One HNS call per changed service on top of the sync period, within the 1-15 s of fact 1.9.
            delay = min(15.0, self._rng.uniform(1.0, 4.0) + 0.1 * len(self._dirty))
        else:
            delay = self._rng.uniform(0.5, 1.0)
        self._sync_timer = asyncio.get_running_loop().call_later(self._clock.wall(delay), self.sync)

    def sync(self) -> None:
        """Program what changed since the last time."""
        if self._sync_timer is not None:
            self._sync_timer.cancel()
            self._sync_timer = None
        if self.running and not self._defects.stopped:
            dirty, self._dirty = self._dirty, set()
            self._dirty.update(key for key in sorted(dirty) if not self._program(key))
        if self.running and (self._dirty or self._defects != ProxyDefects()):
            self._arm_resync()

    def _arm_resync(self) -> None:
        if self._resync_timer is None:
            delay = self._clock.wall(FORCED_RESYNC)
            self._resync_timer = asyncio.get_running_loop().call_later(delay, self._forced_resync)

    def _forced_resync(self) -> None:
        self._resync_timer = None
        self.refresh()

    def _program(self, key: Key) -> bool:
        """Bring the tables up to date for one service; False to try again at the next sync."""
        state = self._catalog.get(key)
        old = self._programmed.get(key)
        if old is not None and self._defects.stale_after_recreate and (state is None or state.uid != old.state.uid):
            return True
        rules = []
        if state is not None:
            for port in state.ports:
                backends = self._fitting(port.backends)
                if backends is None:
                    return False
                if old is not None and self._defects.stale_endpoints:
                    kept = (b for rule in old.rules if rule.port.port == port.port for b in rule.backends)
                    backends = tuple(dict.fromkeys((*backends, *kept)))
                sticky = next((rule.sticky for rule in old.rules if rule.port.port == port.port), {}) if old else {}
                rules.append(Rule(state, port, backends, sticky))
        if old is not None:
            self._forget_rules(old)
        if state is not None:
            self._programmed[key] = _Programmed(state, rules)
            for rule in rules:
                for vip in state.vips:
                    self._vips[vip, rule.port.port, rule.port.protocol] = rule
                if rule.port.node_port:
                    self._node_ports[rule.port.node_port, rule.port.protocol] = rule
        return True

    def _forget_rules(self, old: _Programmed) -> None:
        del self._programmed[old.state.key]
        for rule in old.rules:
            for vip in old.state.vips:
                if self._vips.get((vip, rule.port.port, rule.port.protocol)) is rule:
                    del self._vips[vip, rule.port.port, rule.port.protocol]
            if self._node_ports.get((rule.port.node_port, rule.port.protocol)) is rule:
                del self._node_ports[rule.port.node_port, rule.port.protocol]

    def _fitting(self, backends: tuple[Backend, ...]) -> tuple[Backend, ...] | None:
        """The backends as the kernel takes them; None when none of them can be programmed yet."""
        if self._defects.partial_backends:
            backends = (*_half(backends, 4), *_half(backends, 6))
        if not self._windows or not backends:
            return backends
        # Fact 1.5: a local pod without a visible HNS endpoint is skipped; the rest counts as done.
        visible = tuple(b for b in backends if b.node != self.node or self._has_local(b.ip))
        if not visible:
            return None
        target_port = visible[0].port
        return tuple(replace(b, port=target_port) for b in visible[:HNS_MAX_BACKENDS])

    def vip(self, ip: str, port: int, protocol: str) -> Rule | None:
        """The rule for a service address."""
        if self._defects.not_programmed or (protocol == "UDP" and self._defects.udp_dead):
            return None
        return self._vips.get((ip, port, protocol))

    def node_port(self, port: int, protocol: str) -> Rule | None:
        """The rule for a port on this node's own addresses."""
        if self._defects.not_programmed or (protocol == "UDP" and self._defects.udp_dead):
            return None
        return self._node_ports.get((port, protocol))

    def node_port_verdict(self) -> Verdict | None:
        """How a NodePort fails on this node whatever its service looks like, if it does."""
        return "drop" if self._defects.node_port_dead else None

    def pick(self, rule: Rule, client: str, *, family: int, external: bool) -> Backend | Verdict:
        """Choose a backend for one new connection."""
        local_only = rule.state.external_local if external else rule.state.internal_local
        backends = [b for b in rule.backends if (6 if ":" in b.ip else 4) == family]
        if not backends:
            # Linux rejects; Windows has no load balancer for a service without endpoints, so packets go nowhere.
            return "drop" if self._windows else "refuse"
        if local_only:
            backends = [b for b in backends if b.node == self.node]
            if not backends:
                return "drop"
        if self._defects.wrong_backend and (stranger := self._stranger(rule)) is not None:
            return stranger
        seconds = rule.state.affinity_seconds
        if not seconds or self._defects.affinity_ignored or (self._windows and self._build < AFFINITY_SINCE_BUILD):
            return self._next(rule, backends)
        backend, until = rule.sticky.get(client, (None, 0.0))
        if backend is None or backend not in backends or until < self._clock.now():
            backend = self._next(rule, backends)
        rule.sticky[client] = (backend, self._clock.now() + seconds)
        return backend

    def _next(self, rule: Rule, backends: list[Backend]) -> Backend:
        """Any backend, but none twice before all had a turn: over many connections hashing spreads them evenly."""
        rule.hand = [backend for backend in rule.hand if backend in backends]
        if not rule.hand:
            rule.hand = self._rng.sample(backends, len(backends))
        return rule.hand.pop()

    def _stranger(self, rule: Rule) -> Backend | None:
        """A backend of some other service, with the same port if there is one."""
        own = {backend.ip for backend in rule.backends}
        others = [b for other in self._vips.values() for b in other.backends if b.ip not in own]
        alike = [b for b in others if b.port == rule.backends[0].port]
        found = alike or others
        return min(found, key=lambda b: (b.ip, b.port)) if found else None


def _half(backends: tuple[Backend, ...], family: int) -> tuple[Backend, ...]:
    own = [backend for backend in backends if (6 if ":" in backend.ip else 4) == family]
    return tuple(own[: max(1, len(own) // 2)])
