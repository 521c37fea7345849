"""A few of the conformance specs that pass on our nodes, others each day: ``make fidelity`` runs all of them.

The seed is the day; ``WINREADY_SAMPLE=2026-11-18`` repeats the choice of another one.
"""

from __future__ import annotations

import os
import random
import tempfile
from datetime import UTC, datetime
from pathlib import Path

import pytest

from fidelity_running import Pace, run_round
from fidelity_specs import ROUNDS, TIMED, explained
from fidelity_state import State
from real.conftest import KUBERNETES
from real_programs import ensure
from winready.proof import conformance
from winready.upstream.binary import inspect
from winready.upstream.junit import read_cases
from winready.upstream.shards import Selected

pytestmark = pytest.mark.e2e

EACH = 10
QUICK_SECONDS = 10
SLOW_WORDS = ("[Serial]", "[Slow]", "[Disruptive]")
PROGRAMS = ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl", "e2e.test"]
RECORDS = {
    "linux": Path(conformance.__file__).parent / conformance.FOLDER / f"{conformance.SOUND}.xml",
    "steered": Path(__file__).parent / "records" / "windows.xml",
}
"""What passed, by the round it passed in."""


def quick(record: Path) -> list[str]:
    """Specs that passed in little time, and do not depend on clocks."""
    return [
        case.text
        for case in read_cases(record)
        if case.status == "passed"
        and case.seconds <= QUICK_SECONDS
        and not any(word in case.text for word in SLOW_WORDS)
        and not explained(dict.fromkeys(TIMED, "yes"), case.text)
    ]


@pytest.mark.timeout(1500)
@pytest.mark.parametrize("name", list(RECORDS))
async def test_a_sample_of_what_passed_still_passes(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seed = os.environ.get("WINREADY_SAMPLE") or f"{datetime.now(UTC):%Y-%m-%d}"
    texts = random.Random(f"{seed} {name}").sample(quick(RECORDS[name]), EACH)
    print(f"WINREADY_SAMPLE={seed}", *texts, sep="\n  ")
    programs = ensure(KUBERNETES, PROGRAMS)
    binary, state = await inspect(programs / "e2e.test"), State(tmp_path / "state.jsonl")
    specs = [Selected(f"spec-{number}", text) for number, text in enumerate(texts)]
    with tempfile.TemporaryDirectory(prefix="wr-") as runtime:
        monkeypatch.setenv("XDG_RUNTIME_DIR", runtime)
        await run_round(ROUNDS[name], specs, binary, programs, tmp_path, state, Pace(parallel=4, limit=300.0))
    missed = {result.text: result.message for result in state.results.values() if not result.passed}
    assert missed == {}, f"WINREADY_SAMPLE={seed}"
    assert len(state.results) == EACH
