"""Tools that come with Windows."""

from __future__ import annotations

from winready_sandbox.machine.process import Program
from winready_sandbox.programs.windows import administration, host, membership, network, system

WINDOWS_PROGRAMS: dict[str, Program] = {
    **system.PROGRAMS,
    **administration.PROGRAMS,
    **membership.PROGRAMS,
    **network.PROGRAMS,
    **host.PROGRAMS,
}
