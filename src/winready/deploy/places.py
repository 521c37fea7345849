"""Where a run tells what becomes of it: ``--publish THING=WHERE``, read once, typed from then on."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from winready.deploy.inputs import check_label, check_subdomain

THINGS = {
    "job": "job=NAMESPACE/NAME",
    "configmap": "configmap=NAMESPACE/NAME",
    "policy-report": "policy-report=NAMESPACE/NAME",
    "termination-log": "termination-log=FILE",
}


@dataclass(frozen=True)
class Named:
    """An object in a namespace."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True)
class Places:
    """Where to tell; None where nobody wants to hear."""

    job: Named | None = None
    configmap: Named | None = None
    policy_report: Named | None = None
    termination_log: Path | None = None

    @property
    def on_the_cluster(self) -> bool:
        """Whether the API server is needed for it."""
        return any((self.job, self.configmap, self.policy_report))


def read_places(texts: Iterable[str]) -> Places:
    """What ``--publish`` was given; raises ``ValueError``."""
    given: dict[str, str] = {}
    for text in texts:
        thing, separator, where = text.partition("=")
        if thing not in THINGS or not separator or not where:
            raise ValueError(f"{text[:120]!r} is no place to publish; write {', '.join(THINGS.values())}")
        if given.setdefault(thing, where) != where:
            raise ValueError(f"{thing} is given twice: {given[thing][:80]!r} and {where[:80]!r}")
    return Places(
        job=_named(given, "job", "Job"),
        configmap=_named(given, "configmap", "ConfigMap"),
        policy_report=_named(given, "policy-report", "policy report"),
        termination_log=Path(given["termination-log"]) if "termination-log" in given else None,
    )


def read_named(text: str, kind: str) -> Named:
    """``NAMESPACE/NAME``; raises ``ValueError``."""
    namespace, slash, name = text.partition("/")
    if not slash:
        raise ValueError(f"{text[:120]!r} names no namespace; write NAMESPACE/NAME")
    return Named(check_label(namespace, "namespace"), check_subdomain(name, kind))


def _named(given: dict[str, str], thing: str, kind: str) -> Named | None:
    if thing not in given:
        return None
    namespace, slash, name = given[thing].partition("/")
    if not slash:
        raise ValueError(f"{thing}={given[thing][:120]} names no namespace; write {THINGS[thing]}")
    return Named(check_label(namespace, "namespace"), check_subdomain(name, kind))
