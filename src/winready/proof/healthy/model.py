"""What makes a sound cluster different, and what must come of a run on it."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from winready.proof.conformance import MINOR
from winready.proof.expected.model import ids

if TYPE_CHECKING:
    from winready.spec.builds import BuildList
    from winready_sandbox.api.client import LocalClient
    from winready_sandbox.up import Sandbox


@dataclass(frozen=True)
class Scene:
    """A cluster that has come up, before or while it is judged."""

    sandbox: Sandbox

    @property
    def api(self) -> LocalClient:
        """Everything that its administrators may do."""
        return self.sandbox.embedded.client

    def names(self, os: str) -> list[str]:
        """Its nodes of an OS."""
        return [node.name for node in self.sandbox.plan.nodes if node.os == os]


Act = Callable[[Scene], Coroutine[Any, Any, None]]


async def nothing(scene: Scene) -> None:
    """Leave the cluster as it came up."""


@dataclass(frozen=True)
class Variant:
    """One sound cluster.

    Without ``blocked`` everything passes on it. With it, the cluster refuses something that a run needs: the
    requirements named there are blocked with a reason that says who refused, and nothing is called failed.
    """

    name: str
    sentence: str
    """What is different, for people."""
    fact: str
    """Where such clusters are known from."""
    plan: dict[str, Any] = field(default_factory=dict)
    """How the sandbox is built."""
    prepare: Act = nothing
    """What is put into the cluster before the run."""
    during: Act = nothing
    """What goes on in it while the run does; ended with the run."""
    waived: tuple[str, ...] = ()
    """Flags that waive rules, as an operator of such a cluster would give them."""
    tolerate: tuple[str, ...] = ()
    windows_builds: BuildList = "published"
    least_rights: bool = False
    """Judge it with the rights that ``winready rbac`` prints, and no others."""
    namespace_prefix: str = ""
    """Judge it in namespaces that were prepared, with rights there alone."""
    runs: int = 1
    """Runs at the same time."""
    most_windows_pods: int = 0
    """Windows pods that a run may start; 0: nobody counts."""
    whole: bool = False
    """Extensions take part as well, not the core alone."""
    features: str = ""
    """Features of the matrix that this difference makes it possible to show, by their ids."""
    long: str = ""
    """Long observations that this difference concerns, by their keys; the others are left out."""
    unjudged: str = ""
    """Requirements that need more than such a cluster has, by their keys: they do not apply or are blocked, and are
    never called failed. Of several runs at once one may be spared."""
    blocked: str = ""
    says: str = ""
    """What the reason of each of those must name."""

    @property
    def flags(self) -> list[str]:
        """What an operator adds to ``winready run`` for such a cluster."""
        builds = ["--windows-builds", self.windows_builds] if self.windows_builds != "published" else []
        return [*self.waived, *(word for text in self.tolerate for word in ("--tolerate", text)), *builds]

    @property
    def foreign(self) -> bool:
        """Whether it has another version of Kubernetes than the one whose conformance tests were run."""
        return str(self.plan.get("kubernetes", f"1.{MINOR}")) != f"1.{MINOR}"

    @property
    def at_stake(self) -> list[str]:
        """The ids of long observations that take part."""
        return ids(self.long)

    @property
    def beyond(self) -> list[str]:
        """The ids of the requirements that need more than there is."""
        return ids(self.unjudged)

    @property
    def refused(self) -> list[str]:
        """The ids of the requirements that cannot be judged here."""
        return ids(self.blocked)
