"""The table of all faults."""

from __future__ import annotations

import difflib

from winready_sandbox.faults.control_plane import CONTROL_PLANE_FAULTS
from winready_sandbox.faults.model import Fault
from winready_sandbox.faults.network import NETWORK_FAULTS
from winready_sandbox.faults.nodes import NODE_FAULTS
from winready_sandbox.faults.volumes import VOLUME_FAULTS

FAULTS: dict[str, Fault] = {
    fault.name: fault for fault in (*NETWORK_FAULTS, *NODE_FAULTS, *VOLUME_FAULTS, *CONTROL_PLANE_FAULTS)
}


class UnknownFault(ValueError):
    """A fault that is not in the table; the message names the nearest."""


def find(name: str) -> Fault:
    """The fault of that name."""
    if name not in FAULTS:
        near = difflib.get_close_matches(name, FAULTS, n=1, cutoff=0.4)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise UnknownFault(f"there is no fault {name!r}{hint} ('winready sandbox faults' lists them)")
    return FAULTS[name]
