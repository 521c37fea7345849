"""The first line of a journal: what is verified, by which text, and how."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from winready import __version__
from winready.cluster.images import repository
from winready.cluster.settings import AGNHOST, PAUSE
from winready.engine import events
from winready.engine.options import Options
from winready.engine.terms import SMALL_CLUSTER
from winready.spec.model import Requirement, Specification


def started(
    specification: Specification, requirements: Sequence[Requirement], options: Options, at_s: float
) -> events.RunStarted:
    """The start of a run, with everything that was decided about it."""
    settings, upstream, terms = options.settings, options.upstream, options.terms
    return events.RunStarted(
        at_s=at_s,
        run_id=settings.run_id,
        time=datetime.now(UTC).isoformat(timespec="seconds"),
        tool=f"winready {__version__}",
        spec_version=specification.document.version,
        spec_digest=specification.digest,
        selection=options.selection,
        requirements=[item.id for item in requirements],
        terms=terms.stated([repository(settings.image(image)) for image in (AGNHOST, PAUSE)]),
        settings={
            "time_scale": settings.timing.scale,
            "engine": options.engine,
            "nodes": options.nodes or "all",
            "node_selector": options.node_selector,
            "air_gapped": settings.air_gapped,
            "allow_disruptive": options.allow_disruptive,
            "allow_downtime": settings.allow_downtime,
            "allow_small_cluster": SMALL_CLUSTER in terms.waived,
            "windows_builds": terms.windows_builds,
            "image_registry": settings.image_registry,
            "active_directory": settings.active_directory.domain if settings.active_directory else "",
            "times_cluster_s": settings.timing.describe(),
            **({"notes": upstream.notes} if upstream is not None and upstream.notes else {}),
            **options.record,
        },
    )
