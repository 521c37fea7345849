"""Probes: wait for the first success, then it must hold; every attempt is recorded, every deadline is cluster time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator

import pytest

from engine.stage import BY_ADDRESS, BY_SERVICE, Stage, a_check
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
from winready.cluster.probes import LEAST_ATTEMPTS, Prober, Try, every
from winready.cluster.reaching import CONNECTIONS, ROUNDS
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
    named, large = ROUNDS * CONNECTIONS, ROUNDS
    counted = f"{named + large} of {named + large} connections answered ({large} of {large} with 4,000 bytes each way)"
    assert (hold.ok, hold.observed) == (True, f"{counted}; by ls-1 {named}")
    assert max(map(len, hold.command)) < 200, "how many bytes were sent is evidence, the bytes are not"
    assert hold.at_s >= first.at_s + first.seconds - 0.01
    assert TABLE.hold <= hold.seconds < 2 * TABLE.hold


def test_a_network_that_takes_its_time_is_waited_for(network: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    async def late(ctx: Context) -> None:
        await network.sandbox.break_fault(CUT, "windows-1")
        await asyncio.sleep(60)
        await network.sandbox.heal_fault(CUT)

    result, (first, hold) = reaching(network, monkeypatch, late)
    assert result.outcome == "passed"
    assert (first.ok, hold.ok) == (True, True)
    assert first.attempts > 1


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


OBSERVED = TABLE.observe


def observing(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, meanwhile: Callable[[Context], Awaitable[object]]
) -> RequirementResult:
    """A pod on windows-1 that is to reach the Linux pods through their service for minutes, while something happens."""

    async def run(ctx: Context) -> None:
        clients, service = await ctx.clients("windows"), await ctx.service("linux")
        client = next(pod for pod in clients if pod.node.name == "windows-1")
        servers = await ctx.servers("linux")
        side = asyncio.ensure_future(meanwhile(ctx))
        try:
            await ctx.probe.reach(
                client,
                service.cluster_ip,
                service.port,
                servers,
                "the service",
                window=ctx.times.service_reachable,
                everyone=True,
                udp=service.udp_port,
                also=service.also,
                hold=OBSERVED,
                keep=True,
            )
        finally:
            await side

    fixtures = ("clients", "servers", "services")
    monkeypatch.setitem(load_checks(), BY_SERVICE, a_check(BY_SERVICE, run, fixtures=fixtures))
    return stage.play("N1").results[BY_SERVICE]


def at(stage: Stage, seconds: float, fault: str) -> Callable[[Context], Awaitable[object]]:
    """Something breaks so many seconds after the first answer."""

    async def story(ctx: Context) -> None:
        async for _ in ctx.timing.attempts(ctx.times.service_reachable):
            if ctx.evidence.probes:
                break
        await asyncio.sleep(seconds)
        await stage.sandbox.break_fault(fault, "windows-1")

    return story


@pytest.mark.parametrize("fault", [CUT, "service-proxy.windows.not-programmed", "service-proxy.windows.large-lost"])
def test_what_breaks_a_minute_into_the_observation_is_noticed(
    network: Stage, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    result = observing(network, monkeypatch, at(network, 60, fault))
    assert result.outcome == "failed"
    assert "windows-1" in result.reason


def kept(result: RequirementResult) -> list[tuple[bool, str]]:
    return [(probe.ok, probe.observed) for probe in result.evidence.probes if " connection to " in probe.title]


@pytest.mark.parametrize(
    ("fault", "answered"), [("link.windows.connections-cut", 13), ("service-proxy.windows.connections-forgotten", 12)]
)
def test_connections_that_do_not_last_fail_although_new_ones_are_answered(
    network: Stage, monkeypatch: pytest.MonkeyPatch, fault: str, answered: int
) -> None:
    network.do(lambda _: network.sandbox.break_fault(fault, "windows-1"))
    result = observing(network, monkeypatch, at(network, 0, fault))
    assert result.outcome == "failed"
    assert "Windows pod wc-1 on node windows-1 reaches the service" in result.reason
    assert f"but connections do not last: {answered} of 13 requests answered by ls-" in result.reason
    assert "a new connection was needed at request " in result.reason
    assert "load balancers" in result.next_step
    assert [ok for ok, _ in kept(result)] == [False, False], "one that is lost may be bad luck"


def test_a_connection_that_is_lost_once_is_bad_luck(network: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    network.do(lambda _: network.sandbox.break_fault("link.windows.connections-cut", "windows-1"))

    async def mended(ctx: Context) -> None:
        await asyncio.sleep(OBSERVED)
        await network.sandbox.heal_fault()

    result = observing(network, monkeypatch, mended)
    (first, _), (second, told) = kept(result)
    assert (result.outcome, first, second) == ("passed", False, True)
    assert told.endswith("over one connection")


def test_large_bodies_that_get_lost_lead_to_the_mtu(network: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    result = observing(network, monkeypatch, at(network, 0, "link.windows.mtu-black-hole-in"))
    assert "with small requests and loses bodies of 4,000 bytes on the way back" in result.reason
    assert result.next_step.startswith("look at the MTU of the pod network between nodes windows-1 and linux-")
    network.do(lambda _: network.sandbox.heal_fault())
    result = observing(network, monkeypatch, at(network, 0, "link.windows.mtu-black-hole-out"))
    assert "on the way there" in result.reason


def test_a_service_that_loses_what_pods_answer_leads_to_the_proxy_and_a_bad_wire_to_the_wire(
    network: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = observing(network, monkeypatch, at(network, 0, "service-proxy.windows.every-third-lost"))
    assert "loses some connections to" in result.reason
    assert "% lost (bound 5%)" in result.reason
    assert result.next_step == "the pods themselves answer: look at the service proxy on node windows-1"
    network.do(lambda _: network.sandbox.heal_fault())
    result = observing(network, monkeypatch, at(network, 0, "link.windows.loss"))
    assert result.next_step.startswith("look for packet loss between nodes windows-1 and linux-")


def test_ports_that_do_not_answer_are_named(network: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    result = observing(network, monkeypatch, at(network, 0, "service-proxy.windows.udp-dead"))
    assert "but not at UDP port 90" in result.reason


@pytest.mark.parametrize("fault", ["link.windows.packet-loss", "link.windows.jitter", "link.windows.slow"])
def test_a_bad_but_sound_wire_passes(network: Stage, monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    result = observing(network, monkeypatch, at(network, 0, fault))
    assert result.outcome == "passed"
    hold = next(probe for probe in result.evidence.probes if "goes on reaching" in probe.title)
    assert hold.seconds >= OBSERVED
