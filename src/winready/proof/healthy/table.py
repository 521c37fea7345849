"""The table of all sound clusters."""

from __future__ import annotations

from winready.proof.expected.table import HEALTHY
from winready.proof.healthy.admission import ADMISSION, REFUSING
from winready.proof.healthy.model import Variant
from winready.proof.healthy.neighbours import NEIGHBOURS
from winready.proof.healthy.network import NETWORK
from winready.proof.healthy.nodes import NODES

PLAIN = Variant(
    HEALTHY,
    "Two nodes of each system, and nothing else.",
    "the sandbox as it comes up",
    whole=True,
    long="S5 S6 C1 P7",
)
VARIANTS: dict[str, Variant] = {
    variant.name: variant for variant in (PLAIN, *NODES, *NETWORK, *ADMISSION, *NEIGHBOURS, *REFUSING)
}
"""By name."""


def variant(name: str) -> Variant:
    """The sound cluster of that name."""
    if name not in VARIANTS:
        raise ValueError(f"no sound cluster is called {name!r}; 'winready sandbox prove --healthy -o json' lists them")
    return VARIANTS[name]
