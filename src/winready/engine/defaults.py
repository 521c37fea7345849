"""What holds unless an operator says otherwise; written here once, for the engine and for the command line's help."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from winready.spec.builds import BuildList

Engine = Literal["native", "upstream", "both"]
Profile = Literal["core", "full"]

ENGINE: Final[Engine] = "native"
PROFILE: Final[Profile] = "core"
NODES: Final = 10
"""Windows nodes that are judged."""
PARALLEL: Final = 16
"""Checks at the same time."""
TIME_SCALE: Final = 1.0
WINDOWS_BUILDS: Final[BuildList] = "published"
PROVIDER: Final = "skeleton"
"""What e2e.test is told about who provides the cluster."""
CLEANUP_SECONDS: Final = 300.0
"""Cluster seconds that a run takes at most to remove what it made, once it has its outcomes or is told to end."""
