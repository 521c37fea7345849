"""The limits that a job object really has: those of the container, unless the machine is broken."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from winready_sandbox.machine.machine import MachineDefects


@dataclass(frozen=True)
class Limits:
    """What a container may use."""

    cpu: float | None = None
    memory: int | None = None
    weight: float = 0.0
    """Its share of cores that are short; 0: as that of everybody else."""
    per_process: bool = False
    """Each of its processes may use as much."""


def in_force(wanted: Limits, defects: MachineDefects, *, first: bool, again: bool) -> Limits:
    """The limits of a container that starts: the ``first`` of its pod or another one, for the first time or again."""
    limits = wanted
    if again and defects.limits_lost_on_restart:
        return Limits()
    if defects.cpu_limit_ignored or (defects.first_cpu_limit_only and not first):
        limits = replace(limits, cpu=None)
    if defects.memory_limit_ignored or (defects.first_memory_limit_only and not first):
        limits = replace(limits, memory=None)
    if defects.cpu_limit_is_weight and limits.cpu is not None:
        limits = replace(limits, cpu=None, weight=limits.cpu)
    if defects.cpu_limit_per_process:
        limits = replace(limits, per_process=True)
    return limits
