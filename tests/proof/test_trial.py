"""A trial from its start to its end, and what is left of it."""

from __future__ import annotations

import gc

from winready.engine.selection import Selection
from winready.proof.choosing import Trial
from winready.proof.judgement import Proof
from winready.proof.trial import hold_trial
from winready_sandbox.up import Sandbox


def alive() -> int:
    # What other tests are done with may not be gone yet.
    gc.collect()
    return sum(isinstance(each, Sandbox) for each in gc.get_objects())


def test_nothing_is_left_of_a_trial_but_its_proof() -> None:
    before = alive()
    proof = hold_trial(Trial("machine.windows.remote-access-closed", Selection(requirements=["W4"])))
    assert isinstance(proof, Proof)
    assert (proof.missed, proof.outcomes["extend.worker.remote-access"]) == ([], "failed")
    assert alive() == before, "a worker holds a hundred trials"


def test_a_trial_comes_to_the_same_end_each_time() -> None:
    trial = Trial("service-proxy.windows.every-tenth-lost", Selection(requirements=["N1"]))
    first, second = hold_trial(trial), hold_trial(trial)
    assert isinstance(first, Proof)
    assert isinstance(second, Proof)
    assert first.seconds == second.seconds
    # Down to addresses and counts.
    assert first.reasons == second.reasons
    assert "connections answered" in first.reasons["core.network.windows-to-linux-service-ip"]
    other = hold_trial(trial._replace(seed=1))
    assert isinstance(other, Proof)
    assert other.reasons != first.reasons, "chance has another course"
