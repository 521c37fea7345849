"""What a lint run yields: findings, and inputs that could not be read."""

from __future__ import annotations

from dataclasses import dataclass, field

from winready.lint.catalog import Effect, Outcome, Severity


@dataclass(slots=True)
class Finding:
    """One thing that Windows does not do as the manifest expects, and where it stands."""

    rule: str
    severity: Severity
    effect: Effect
    path: str
    line: int
    column: int
    width: int
    kind: str
    namespace: str
    name: str
    container: str
    field: str
    message: str
    fix: str
    since: str
    until: str | None
    outcomes: tuple[Outcome, ...]
    evidence: str
    excerpt: str
    fixable: bool = False
    suppressed: str = ""

    @property
    def object(self) -> str:
        """The object as people name it: ``Deployment web/iis``."""
        place = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f"{self.kind} {place}".strip()


def from_root(path: str) -> str:
    """A path as code hosts name files: without the ``./`` of a folder that was named by a dot."""
    while path.startswith("./"):
        path = path[2:].lstrip("/")
    return path


@dataclass(slots=True)
class Unreadable:
    """A file or document that could not be read."""

    path: str
    line: int
    column: int
    message: str


@dataclass(slots=True)
class Summary:
    """The counts of a run."""

    files: int = 0
    objects: int = 0
    windows: int = 0
    counts: dict[str, int] = field(default_factory=lambda: {"error": 0, "warning": 0, "info": 0})
    suppressed: int = 0
    untold: int = 0
    unreadable: int = 0
    notices: list[str] = field(default_factory=list)
