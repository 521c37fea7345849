"""What the operator chose on the command line, typed: one field for each option of ``plan`` and ``run``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from winready.engine.defaults import Engine, Profile
    from winready.spec.builds import BuildList


@dataclass(frozen=True, kw_only=True)
class PlanChoices:
    """Which cluster, which requirements, which verifiers."""

    kubeconfig: str | None
    context: str | None
    profile: Profile
    categories: tuple[str, ...]
    requirements: tuple[str, ...]
    skip: tuple[str, ...]
    allow_disruptive: bool
    nodes: str | None
    node_selectors: tuple[str, ...]
    active_directory: Path | None
    namespace_prefix: str
    engine: Engine | None
    e2e_binary: Path | None
    provider: str
    steer_by_taint: bool
    shards: int | None
    verbose: bool
    quiet: bool
    test_directory: Path | None
    output: Literal["text", "wide", "json", "yaml"]
    features: tuple[str, ...] = ()
    """Ids of features of the matrix to show; with them nothing else is selected by default."""


@dataclass(frozen=True, kw_only=True)
class RunChoices(PlanChoices):
    """The same, and how the run is done."""

    sandbox: bool
    speed: str | None
    faults: tuple[str, ...]
    report_dir: str | None
    parallel: int
    timeout: str | None
    time_scale: float | None
    tolerations: tuple[str, ...]
    image_registry: str
    air_gapped: bool
    allow_downtime: bool
    allow_small_cluster: bool
    windows_builds: BuildList | None
    linux_conformance: str | None
    dry_run: bool
    resume: str | None
    rerun_failed: str | None
    for_paths: tuple[str, ...] = ()
    for_live: bool = False
    namespace: str | None = None
    try_them: bool = False
    prow: str | None = None
