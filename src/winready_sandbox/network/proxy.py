"""The service proxy of one node: kube-proxy and the kernel tables that it programs.

Linux answers with iptables, Windows with HNS load balancers, and they differ in ways that workloads notice: how long a
change takes, how many backends fit, what a service without endpoints looks like, whether a pod reaches itself.
"""

from __future__ import annotations

import asyncio
import math
import random
from collections import Counter
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
DUAL_STACK_SINCE_BUILD = 19041
Verdict = Literal["refuse", "drop"]


def knows_both_families(os: str, build: int) -> bool:
    """Whether pods of a node can have both IP families (brief X5: not on Server 2019); 0 stands for any new build."""
    return os != "windows" or not 0 < build < DUAL_STACK_SINCE_BUILD


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
    lost_at: float
    """When the kernel forgets it; never on a sound node."""


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
        self._both_families = knows_both_families(os, build)
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
        self._connections: Counter[tuple[str, Key, int]] = Counter()
        self._orphaned: dict[Key, set[str]] = {}
        """Backends that a service lost together with another one."""
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
        delay += self._defects.sync_delay
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
            for port in state.ports[:1] if self._defects.first_port_only else state.ports:
                backends = self._fitting(self._of_port(state, port))
                if backends is None:
                    return False
                before = next((rule for rule in old.rules if rule.port.port == port.port), None) if old else None
                kept = self._kept(port, backends, before.backends) if before is not None else backends
                rules.append(Rule(state, port, self._left(key, kept), before.sticky if before is not None else {}))
        if old is not None:
            self._forget_rules(old)
            if state is None:
                self._orphan(old)
        if state is not None:
            self._programmed[key] = _Programmed(state, rules, self._lost_at(rules, old))
            for rule in rules:
                for vip in self._programmable(state.vips):
                    self._vips[vip, rule.port.port, rule.port.protocol] = rule
                if rule.port.node_port:
                    self._node_ports[rule.port.node_port, rule.port.protocol] = rule
        return True

    def _of_port(self, state: ServiceState, port: ServicePort) -> tuple[Backend, ...]:
        """The backends that get into the table of one port."""
        if self._defects.unready_too:
            return tuple(dict.fromkeys((*port.backends, *port.unready)))
        if self._defects.first_slice_only:
            return port.first_slice
        if port.protocol == "UDP":
            fewer = self._defects.partial_datagrams
        else:
            fewer = port is not state.ports[0] and self._defects.partial_second_ports
        return (*_half(port.backends, 4), *_half(port.backends, 6)) if fewer else port.backends

    def _lost_at(self, rules: list[Rule], old: _Programmed | None) -> float:
        after = self._defects.lost_after
        if not after or not any(rule.backends for rule in rules):
            return math.inf
        if old is not None and any(rule.backends for rule in old.rules):
            return old.lost_at
        return self._clock.now() + after

    def _kept(
        self, port: ServicePort, backends: tuple[Backend, ...], before: tuple[Backend, ...]
    ) -> tuple[Backend, ...]:
        """The backends of a port that had others before."""
        stays = self._defects.stale_endpoints or (port.protocol == "UDP" and self._defects.stale_datagrams)
        if stays:
            return tuple(dict.fromkeys((*backends, *before)))
        if self._defects.stale_if_as_many and len(backends) == len(before):
            return before
        return backends

    def _orphan(self, old: _Programmed) -> None:
        """HNS knows an endpoint once: remember who else used those of a service that is gone."""
        gone = {backend.ip for rule in old.rules for backend in rule.backends}
        for key, other in self._programmed.items():
            shared = gone & {backend.ip for rule in other.rules for backend in rule.backends}
            if shared:
                self._orphaned.setdefault(key, set()).update(shared)

    def _left(self, key: Key, backends: tuple[Backend, ...]) -> tuple[Backend, ...]:
        if not self._defects.lost_with_neighbour:
            self._orphaned.clear()
        lost = self._orphaned.get(key, set())
        return tuple(backend for backend in backends if backend.ip not in lost)

    def _programmable(self, vips: tuple[str, ...]) -> tuple[str, ...]:
        if not self._defects.second_family_missing:
            return vips
        return tuple(vip for vip in vips if (":" in vip) == (":" in vips[0]))

    def _forget_rules(self, old: _Programmed) -> None:
        del self._programmed[old.state.key]
        for rule in old.rules:
            datagrams = rule.port.protocol == "UDP"
            further = not datagrams and rule.port is not old.state.ports[0]
            for vip in old.state.vips if not (further and self._defects.stale_second_ports) else ():
                if self._vips.get((vip, rule.port.port, rule.port.protocol)) is rule:
                    del self._vips[vip, rule.port.port, rule.port.protocol]
            mine = self._node_ports.get((rule.port.node_port, rule.port.protocol)) is rule
            kept = self._defects.stale_node_ports or (datagrams and self._defects.stale_udp_node_ports)
            if mine and not kept:
                del self._node_ports[rule.port.node_port, rule.port.protocol]

    def _fitting(self, backends: tuple[Backend, ...]) -> tuple[Backend, ...] | None:
        """The backends as the kernel takes them; None when none of them can be programmed yet."""
        if self._defects.ipv4_only or not self._both_families:
            backends = tuple(backend for backend in backends if ":" not in backend.ip)
        if self._defects.partial_backends:
            backends = (*_half(backends, 4), *_half(backends, 6))
        if not self._windows or not backends:
            return backends
        # Fact 1.5: a local pod without a visible HNS endpoint is skipped; the rest counts as done.
        visible = tuple(b for b in backends if b.node != self.node or self._has_local(b.ip))
        if not visible:
            return None
        target_port = visible[0].port
        most = self._defects.most_backends or HNS_MAX_BACKENDS
        return tuple(replace(b, port=target_port) for b in visible[:most])

    def vip(self, ip: str, port: int, protocol: str) -> Rule | None:
        """The rule for a service address."""
        if self._defects.not_programmed or (protocol == "UDP" and self._defects.udp_dead):
            return None
        if ":" in ip and self._defects.ipv6_cluster_ip_dead:
            return None
        return self._there(self._vips.get((ip, port, protocol)))

    def node_port(self, port: int, protocol: str) -> Rule | None:
        """The rule for a port on this node's own addresses."""
        if self._defects.not_programmed or (protocol == "UDP" and self._defects.udp_dead):
            return None
        return self._there(self._node_ports.get((port, protocol)))

    def _there(self, rule: Rule | None) -> Rule | None:
        """The rule if the kernel still has it."""
        programmed = self._programmed.get(rule.state.key) if rule is not None else None
        return None if programmed is not None and self._clock.now() > programmed.lost_at else rule

    def node_port_verdict(self, protocol: str, family: int) -> Verdict | None:
        """How a NodePort fails on this node whatever its service looks like, if it does."""
        dead = self._defects.node_port_dead or (family == 6 and self._defects.ipv6_node_port_dead)
        dead = dead or (protocol == "UDP" and self._defects.udp_node_port_dead)
        return "drop" if dead else None

    def pick(self, rule: Rule, client: str, *, family: int, external: bool) -> Backend | Verdict:
        """Choose a backend for one new connection, or say what becomes of it instead."""
        if (ill := self._ill_fate(rule, client)) is not None:
            return ill
        backend = self._choose(rule, client, family=family, external=external)
        elsewhere = isinstance(backend, Backend) and backend.node != self.node
        return "drop" if external and elsewhere and self._defects.node_port_local_only else backend

    def _ill_fate(self, rule: Rule, client: str) -> Verdict | None:
        """Of what a client opens to a port of a service, every so-many-th connection goes wrong."""
        drop, refuse = self._defects.drop_every, self._defects.refuse_every
        if not (drop or refuse):
            self._connections.clear()
        if not (drop or refuse) or rule.port.protocol != "TCP":
            return None
        asked = (client, rule.state.key, rule.port.port)
        self._connections[asked] += 1
        count = self._connections[asked]
        return "drop" if drop and count % drop == 0 else "refuse" if refuse and count % refuse == 0 else None

    def _choose(self, rule: Rule, client: str, *, family: int, external: bool) -> Backend | Verdict:
        local_only = rule.state.external_local if external else rule.state.internal_local
        if self._defects.external_policy_ignored if external else self._defects.internal_policy_ignored:
            local_only = False
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
        if self._defects.affinity_ignored or (self._windows and self._build < AFFINITY_SINCE_BUILD):
            seconds = 0.0
        if self._defects.always_sticky:
            seconds = math.inf
        if not seconds:
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
