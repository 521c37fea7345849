"""What a run over features came to, as an exit code."""

from __future__ import annotations

from winready.engine.verdict import EXIT_BLOCKED, EXIT_FAILED, EXIT_INTERRUPTED, EXIT_PASS
from winready.report.record import Record


def exit_code(record: Record) -> int:
    """0: everything that can be shown agrees with the data; 1: something does not; 3: nothing or not all could be."""
    if record.exit_code == EXIT_INTERRUPTED:
        return EXIT_INTERRUPTED
    outcomes = {each.outcome for each in record.features}
    if "failed" in outcomes:
        return EXIT_FAILED
    unjudged = outcomes & {"blocked", "error"} or "passed" not in outcomes or record.leftovers
    return EXIT_BLOCKED if unjudged else EXIT_PASS
