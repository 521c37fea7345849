"""Probes: wait for the first success, then it must hold; every attempt is recorded, every deadline is cluster time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator

import pytest

from engine.stage import BY_ADDRESS, Stage, a_check
from winready.checks.context import Context
from winready.checks.registry import load_checks
from winready.cluster.client import Client
from winready.cluster.commands import NETEXEC_HTTP
from winready.cluster.errors import ClusterError
from winready.cluster.evidence import Evidence, Probe
from winready.cluster.failures import CheckBlocked, CheckFailed
from winready.cluster.inventory import Node
from winready.cluster.kubeconfig import Target
from winready.cluster.pods import Pod
from winready.cluster.probes import HOLD_ROUNDS, LEAST_ATTEMPTS, Prober, Try, every
from winready.cluster.settings import Settings
from winready.cluster.timing import SHORTEST_DEADLINE, TABLE, Timing, now
from winready.cluster.transport import Transport
from winready.engine.outcomes import RequirementResult
from winready_sandbox.virtual_time import VirtualTimeLoop

CUT = "link.windows.one-way-out"


def probed(right_at: int, *, window: float, scale: float = 1.0, takes: float = 0.0) -> tuple[Try, Probe]:
    """A question that gets its first right answer at that attempt, each of which takes some seconds."""
    asked = 0

    async def attempt() -> Try:
        nonlocal asked
        asked += 1
        await asyncio.sleep(takes)
        return Try(asked == right_at, f"answer {asked}")

    async def story() -> tuple[Try, Probe]:
        settings = Settings(run_id="test", timing=Timing(scale))
        client, node = Client(Transport(Target("https://x"))), Node(name="windows-1", uid="1", os="windows")
        pod = Pod(client, settings, "n", "wc-1", "1", node, "windows", ("10.0.0.1",), "", "")
        prober = Prober(Evidence(), settings.timing, now() - 5)
        result = await prober.until("it answers", attempt, window=window, pod=pod, command=["ask"], expected="yes")
        (probe,) = prober.evidence.probes
        return result, probe

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(story())


def test_the_first_right_answer_ends_the_waiting_and_all_attempts_are_recorded() -> None:
    result, probe = probed(right_at=3, window=30.0)
    assert (result.ok, result.seen) == (True, "answer 3")
    assert (probe.ok, probe.attempts, probe.observed) == (True, 3, "answer 3")
    assert probe.seconds == pytest.approx(2 * TABLE.poll, abs=0.01)
    assert (probe.at_s, probe.pod, probe.node) == (5.0, "n/wc-1", "windows-1")


def test_without_a_right_answer_the_last_one_is_recorded_when_the_window_has_passed() -> None:
    result, probe = probed(right_at=0, window=30.0)
    assert not result.ok
    assert (probe.ok, probe.observed) == (False, f"answer {probe.attempts}")
    assert 30.0 <= probe.seconds <= 31.1
    assert probe.attempts >= 31


@pytest.mark.parametrize(("scale", "wall"), [(10.0, 12.0), (100.0, SHORTEST_DEADLINE)])
def test_a_window_is_cluster_time_but_never_too_short_for_the_machine_we_run_on(scale: float, wall: float) -> None:
    _, probe = probed(right_at=0, window=120.0, scale=scale)
    assert wall <= probe.seconds <= wall + 2 * TABLE.poll / scale


def test_a_slow_way_to_the_cluster_does_not_leave_a_single_attempt_to_judge_by() -> None:
    _, probe = probed(right_at=0, window=10.0, takes=20.0)
    assert probe.attempts == LEAST_ATTEMPTS
    assert probed(right_at=LEAST_ATTEMPTS, window=10.0, takes=20.0)[0].ok


def test_without_a_window_there_is_one_attempt() -> None:
    _, probe = probed(right_at=0, window=0.0, takes=1.0)
    assert probe.attempts == 1


@pytest.fixture
def network(stage: Stage) -> Iterator[Stage]:
    """The stage, whose network is mended after the test."""
    yield stage
    stage.do(lambda _: stage.sandbox.heal_fault())


def reaching(
    stage: Stage,
    monkeypatch: pytest.MonkeyPatch,
    meanwhile: Callable[[Context], Awaitable[object]] | None = None,
    *,
    expected: str = "ls-1",
) -> tuple[RequirementResult, list[Probe]]:
    """A pod on windows-1 that is to reach ls-1, while something else happens to the cluster."""

    async def run(ctx: Context) -> None:
        clients, servers = await ctx.clients("windows"), {pod.name: pod for pod in await ctx.servers("linux")}
        side = asyncio.ensure_future(meanwhile(ctx)) if meanwhile else None
        try:
            await ctx.probe.reach(
                next(pod for pod in clients if pod.node.name == "windows-1"),
                servers["ls-1"].address,
                NETEXEC_HTTP,
                [servers[expected]],
                "the server",
                window=ctx.times.pod_reachable,
            )
        finally:
            if side is not None:
                await side

    monkeypatch.setitem(load_checks(), BY_ADDRESS, a_check(BY_ADDRESS, run, fixtures=("clients", "servers")))
    result = stage.play("N5").results[BY_ADDRESS]
    return result, result.evidence.probes


def test_a_first_answer_is_followed_by_connections_spread_over_the_hold(
    network: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    result, (first, hold) = reaching(network, monkeypatch)
    assert result.outcome == "passed"
    assert (first.ok, first.attempts, first.observed) == (True, 1, "ls-1")
    total = sum(HOLD_ROUNDS)
    assert (hold.ok, hold.observed) == (True, f"{total} of {total} answered: ls-1 {total}")
    assert hold.at_s >= first.at_s + first.seconds - 0.01
    assert TABLE.hold <= hold.seconds < 2 * TABLE.hold


def test_a_network_that_takes_its_time_is_waited_for(network: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    async def late(ctx: Context) -> None:
        await network.sandbox.break_fault(CUT, "windows-1")
        await asyncio.sleep(15)
        await network.sandbox.heal_fault(CUT)

    result, (first, hold) = reaching(network, monkeypatch, late)
    assert result.outcome == "passed"
    assert (first.ok, hold.ok) == (True, True)
    assert first.attempts > 1
    assert first.seconds >= 15


def test_a_network_that_never_works_fails_when_the_window_has_passed(
    network: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def never(ctx: Context) -> None:
        await network.sandbox.break_fault(CUT, "windows-1")

    result, (first,) = reaching(network, monkeypatch, never)
    assert result.outcome == "failed"
    assert "Windows pod wc-1 on node windows-1 does not reach the server" in result.reason
    assert (first.ok, first.attempts >= LEAST_ATTEMPTS) == (False, True)
    assert first.seconds >= TABLE.pod_reachable


def test_a_network_that_breaks_within_the_hold_is_a_failure(network: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    async def soon(ctx: Context) -> None:
        async for _ in ctx.timing.attempts(ctx.times.pod_reachable):
            if ctx.evidence.probes:
                break
        await asyncio.sleep(TABLE.hold / 2)
        await network.sandbox.break_fault(CUT, "windows-1")

    result, (first, hold) = reaching(network, monkeypatch, soon)
    assert (first.ok, hold.ok) == (True, False)
    assert result.outcome == "failed"
    assert "reached the server" in result.reason
    assert "and then lost ls-1 on node linux-1" in result.reason
    assert result.next_step


def test_an_answer_of_somebody_else_is_none(network: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    result, (first,) = reaching(network, monkeypatch, expected="ls-2")
    assert result.outcome == "failed"
    assert "'ls-1' answered" in result.reason
    assert not first.ok


async def test_of_many_probes_failures_are_told_together_and_outweigh_everything_else() -> None:
    async def ends(error: Exception | None) -> str:
        if error is not None:
            raise error
        return "well"

    assert await every(ends(None), ends(None)) == ["well", "well"]
    failures = [CheckFailed(f"failure {number}", next_step="look") for number in range(6)]
    with pytest.raises(CheckFailed, match=r"^failure 0; failure 1; failure 2; failure 3; and 2 more$") as caught:
        await every(ends(ClusterError("away")), *map(ends, failures), ends(CheckBlocked("blocked")))
    assert caught.value.next_step == "look"
    with pytest.raises(ClusterError):
        await every(ends(CheckBlocked("blocked")), ends(ValueError()), ends(ClusterError("away")))
    with pytest.raises(CheckBlocked):
        await every(ends(ValueError()), ends(CheckBlocked("blocked")))
