"""What holds for a deployment unless an operator says otherwise; written here once, as for the engine."""

from __future__ import annotations

from typing import Final

NAME: Final = "winready"
"""Of the namespace, and of everything in it."""
TIMEOUT: Final = "2h"
KEEP: Final = 3
"""Jobs that a CronJob keeps of each kind."""
SIZE: Final = "1Gi"
"""Of the volume for results: a run takes a few megabytes."""
