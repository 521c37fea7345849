"""How specs are run to judge the nodes: side by side, each kept as it ends, and none that hangs holds up the others."""

from __future__ import annotations

from pathlib import Path

import pytest

from fidelity_running import Pace, Trouble, Work
from fidelity_specs import ROUNDS
from fidelity_state import State
from upstream.conftest import PASSES, MakeE2e
from winready.cluster.client import Client
from winready.cluster.inventory import take_inventory
from winready.cluster.kubeconfig import find_target
from winready.upstream.binary import inspect
from winready.upstream.shards import Selected

GOOD = [f"[sig-x] good spec number {number}" for number in range(5)]
BAD = "[sig-x] a bad spec"
HANGS = "[sig-x] a spec that hangs"
ALONE = "[sig-x] [Serial] a spec that wants to be alone"


class Impatient(Pace):
    """All the time in the world, but not for the one that hangs."""

    def patience(self, spec: Selected) -> float:
        return 1.0 if spec.text == HANGS else 120.0


async def work(program: Path, kubeconfig: str, folder: Path, texts: list[str]) -> State:
    """Run these specs, and give what was kept."""
    state = State(folder / "state.jsonl")
    async with Client.connect(find_target(kubeconfig, None)) as client:
        nodes = (await take_inventory(client)).nodes
        doing = Work(
            ROUNDS["pinned"],
            await inspect(program),
            program.parent,
            folder,
            state,
            Impatient(parallel=2),
            client,
            nodes,
            folder / "executed.jsonl",
        )
        await doing.run(Selected(f"spec-{number}", text, expected_s=1.0) for number, text in enumerate(texts))
    return state


async def test_every_spec_is_kept_and_a_hanging_one_costs_only_itself(
    make_e2e: MakeE2e, kubeconfig: str, tmp_path: Path
) -> None:
    behaviours = dict.fromkeys([*GOOD, ALONE], PASSES)
    behaviours |= {BAD: {"end": "fail"}, HANGS: {"end": "hang"}}
    program = make_e2e(behaviours)
    state = await work(program, kubeconfig, tmp_path, [*GOOD, BAD, HANGS, ALONE])
    found = {text: result.status for (_, text), result in State(tmp_path / "state.jsonl").results.items()}
    assert found == dict.fromkeys([*GOOD, ALONE], "passed") | {BAD: "failed", HANGS: "unfinished"}
    assert state.results["pinned", HANGS].message == "did not end within 1 s"
    assert state.results["pinned", GOOD[0]].systems == {"windows": 1}
    assert "the answer was wrong" in state.results["pinned", BAD].message


async def test_a_program_that_runs_nothing_ends_it(make_e2e: MakeE2e, kubeconfig: str, tmp_path: Path) -> None:
    program = make_e2e(dict.fromkeys(GOOD, PASSES), **{"break": True})
    with pytest.raises((Trouble, ExceptionGroup)) as failed:
        await work(program, kubeconfig, tmp_path, GOOD)
    told = failed.value.exceptions[0] if isinstance(failed.value, ExceptionGroup) else failed.value
    assert "ran nothing 3 times in a row" in str(told)
    assert State(tmp_path / "state.jsonl").results == {}, "what was not run has no result"
