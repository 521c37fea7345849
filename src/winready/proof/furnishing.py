"""What a sandbox must be given so that nothing of a selection is beside the point on it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from winready.engine.selection import Selection, select
from winready.spec.model import Specification

if TYPE_CHECKING:
    from winready.cluster.directory import ActiveDirectory

OFFERS: dict[str, dict[str, Any]] = {"dual-stack": {"dual_stack": True}, "gmsa": {"active_directory": True}}
"""Features that a sandbox has on request, by their names in the standard; the others it has anyway."""


def furnished(standard: Specification, selection: Selection) -> dict[str, Any]:
    """The options of a sandbox that offers every feature which the selected requirements need."""
    options: dict[str, Any] = {}
    for item in select(standard, selection):
        for feature in item.needs.features:
            options |= OFFERS.get(feature, {})
    return options


def on_request(standard: Specification) -> list[str]:
    """The ids of the requirements that a sandbox as it comes up has not all features for."""
    return [item.id for item in standard.requirements if not OFFERS.keys().isdisjoint(item.needs.features)]


def own_domain(options: dict[str, Any]) -> ActiveDirectory | None:
    """What an operator would tell about the domain of a sandbox with these options, if it has one."""
    if not options.get("active_directory"):
        return None
    from winready.cluster.directory import ActiveDirectory
    from winready_sandbox.directory import FOLDER
    from winready_sandbox.machine.domain import new_domain
    from winready_sandbox.up import FILE_SERVER_ADDRESS

    domain = new_domain(FILE_SERVER_ADDRESS)
    allowed, denied = (f"\\\\{FILE_SERVER_ADDRESS}\\{name}" for name in domain.shares)
    return ActiveDirectory(
        domain=domain.name,
        credential_spec=domain.accounts[0],
        allowed_share=allowed,
        denied_share=denied,
        folder=FOLDER,
    )
