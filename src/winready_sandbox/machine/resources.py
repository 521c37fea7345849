"""CPU and memory use over time, and the limits that job objects (Windows) and cgroups (Linux) put on it.

Counters run on wall time whatever the speed of the sandbox: a reader divides their growth by wall-time
stamps, and half a core must come out as half a core.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import ceil

from winready_sandbox.clock import monotonic
from winready_sandbox.machine.errors import OS, OutOfMemory

WINDOWS_OVERSHOOT = 1.1
"""A job object's hard cap is enforced per interval: 0.52-0.60 core is seen for a limit of 0.5."""
MEBIBYTE = 2**20


def cpu_cap(os: OS, limit: float | None, cores: int) -> float:
    """How many cores a limit really allows."""
    if limit is None:
        return float(cores)
    if os == "linux":
        return min(limit, float(cores))
    hundredths_of_percent = max(1, int(limit * 10000 / cores))
    return min(hundredths_of_percent * cores / 10000 * WINDOWS_OVERSHOOT, float(cores))


@dataclass(eq=False)
class CpuMeter:
    """Processor time of one container."""

    processor: Processor
    cap: float
    weight: float = 0.0
    """Its share when cores are short (a job object's weight); 0: as much as it has threads that want to run."""
    per_process: bool = False
    """The cap is that of each process, of which every one that computes wants a core."""
    demand: float = 0.0
    rate: float = 0.0
    total: float = 0.0

    @property
    def share(self) -> float:
        """What it counts for among all that want to run."""
        return self.weight or self.demand

    @property
    def wanted(self) -> float:
        """What it would use if it were alone."""
        return min(self.demand, self.cap * ceil(self.demand) if self.per_process else self.cap)

    def lift(self) -> None:
        """Forget the limit."""
        self.limit_to(float(self.processor.cores))

    def limit_to(self, cores: float) -> None:
        """Take another limit from now on."""
        self.processor.settle()
        self.cap = cores
        self.processor.share_out(self)

    def ask(self, change: float) -> None:
        """Change by how many cores the processes would use if nobody stopped them."""
        self.processor.settle()
        self.demand = max(0.0, self.demand + change)
        self.processor.share_out(self)

    def charge(self, seconds: float) -> None:
        """Add the cost of something short, such as the start of a process."""
        self.total += seconds

    def core_nanoseconds(self) -> int:
        """Everything used so far."""
        self.processor.settle()
        return int(self.total * 1e9)


@dataclass(eq=False)
class Processor:
    """The cores of a machine, shared out among the containers that want them."""

    cores: int
    host_threads: Callable[[], float] = lambda: 0.0
    """How many threads of the machine itself want a core each."""
    _busy: set[CpuMeter] = field(default_factory=set)
    settled: float = field(default_factory=monotonic)
    """The moment up to which everything is booked."""
    _past: float = 0.0
    _host_rate: float = 0.0

    def settle(self) -> None:
        """Book what was used since the last change."""
        now = monotonic()
        elapsed, self.settled = now - self.settled, now
        for meter in self._busy:
            meter.total += meter.rate * elapsed
            self._past += meter.rate * elapsed
        self._past += self._host_rate * elapsed

    def share_out(self, changed: CpuMeter) -> None:
        """Give every container its part: at most its cap, and all of them at most the machine.

        When cores are short everybody gets by his share; what one does not need or may not have goes to the others.
        """
        (self._busy.add if changed.demand > 0 else self._busy.discard)(changed)
        if changed.demand <= 0:
            changed.rate = 0.0
        threads = self.host_threads()
        host = CpuMeter(self, float(self.cores), demand=threads)
        claims = sorted([*self._busy, *([host] if threads else [])], key=lambda each: each.wanted / each.share)
        left = float(self.cores)
        for number, meter in enumerate(claims):
            meter.rate = min(meter.wanted, left * meter.share / sum(each.share for each in claims[number:]))
            left -= meter.rate
        self._host_rate = host.rate

    def core_nanoseconds(self) -> int:
        """What containers used on this machine so far."""
        self.settle()
        return int(self._past * 1e9)


@dataclass(eq=False)
class Memory:
    """Memory of one container, or of a machine (the parent of its containers' memories)."""

    os: OS
    limit: int | None
    parent: Memory | None = None
    used: int = 0
    peak: int = 0

    def _fits(self, size: int) -> bool:
        within = self.limit is None or self.used + size <= self.limit
        return within and (self.parent is None or self.parent._fits(size))

    def take(self, size: int) -> None:
        """Reserve bytes; raises at the limit of this container or of the machine."""
        if not self._fits(size):
            raise OutOfMemory
        self._add(size)

    def _add(self, size: int) -> None:
        self.used += size
        self.peak = max(self.peak, self.used)
        if self.parent is not None:
            self.parent._add(size)

    def lift(self) -> None:
        """Forget the limit."""
        self.limit = None

    def give_back(self, size: int) -> None:
        """Release bytes."""
        self._add(-size)

    @property
    def working_set(self) -> int:
        """What is in use right now: on Windows the private part of the commit, about four fifths of it."""
        return self.used * 4 // 5 if self.os == "windows" else self.used
