"""The table of what fields rely on, as trees that an object is followed along."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from winready.lint import catalog
from winready.lint.fields import Fields


@dataclass(frozen=True)
class Use:
    """One row: what is relied on, and of which pods that is true."""

    id: str
    when: str = ""
    unless: str = ""

    def applies(self, host_process: bool) -> bool:
        """Whether it is true of pods of this sort."""
        return not (self.when and not host_process) and not (self.unless and host_process)


@cache
def load() -> dict[str, Fields[Use]]:
    """The trees by kind; ``Pod`` stands for everything with a pod template."""
    trees: dict[str, Fields[Use]] = {}
    for row in catalog.read_data("uses.yaml", "winready.features"):
        use = Use(row["uses"], row.get("when", ""), row.get("unless", ""))
        for place in catalog.places(row):
            if place.test is not None:
                trees.setdefault(place.kind, Fields()).add(place.path, use, place.test)
    return trees


@cache
def ids() -> tuple[str, ...]:
    """Everything that the table names."""
    rows = catalog.read_data("uses.yaml", "winready.features")
    return tuple(dict.fromkeys(str(row["uses"]) for row in rows))
