"""What a kubelet counts about starting containers, as its ``/metrics`` shows it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field


@dataclass
class StartCounters:
    """Attempts to start containers and how many failed, by kind of container; HostProcess ones are counted twice."""

    started: Counter[tuple[str, bool]] = field(default_factory=Counter)
    errors: Counter[tuple[str, bool, str]] = field(default_factory=Counter)

    def start(self, kind: str, *, host_process: bool) -> None:
        """A container is about to be pulled, created and started."""
        self.started[kind, host_process] += 1

    def fail(self, kind: str, code: str, *, host_process: bool) -> None:
        """That failed, for a reason such as ``ErrImagePull`` or ``RunContainerError``."""
        self.errors[kind, host_process, code] += 1

    def text(self) -> str:
        """The four counters in the text format of Prometheus."""
        lines: list[str] = []
        for name, words, only_host in (
            ("started_containers", "containers", False),
            ("started_host_process_containers", "hostprocess containers", True),
        ):
            started: Counter[str] = Counter()
            errors: Counter[tuple[str, str]] = Counter()
            for (kind, host_process), count in self.started.items():
                if host_process or not only_host:
                    started[kind] += count
            for (kind, host_process, code), count in self.errors.items():
                if host_process or not only_host:
                    errors[kind, code] += count
            lines += _head(f"kubelet_{name}_total", f"Cumulative number of {words} started.")
            lines += [f'kubelet_{name}_total{{container_type="{kind}"}} {n}' for kind, n in sorted(started.items())]
            lines += _head(f"kubelet_{name}_errors_total", f"Cumulative number of errors when starting {words}.")
            lines += [
                f'kubelet_{name}_errors_total{{code="{code}",container_type="{kind}"}} {n}'
                for (kind, code), n in sorted(errors.items())
            ]
        return "".join(f"{line}\n" for line in lines)


def _head(name: str, words: str) -> list[str]:
    return [f"# HELP {name} [ALPHA] {words}", f"# TYPE {name} counter"]
