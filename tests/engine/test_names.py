"""Names: who answers behind them, for how long, in which domain; and whose fault it is when they lead astray."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator

import pytest

from engine.stage import Stage, a_check
from winready.checks.context import Context
from winready.checks.registry import load_checks
from winready.cluster.client import Client, Object
from winready.cluster.errors import Forbidden
from winready.cluster.pods import Pod
from winready.cluster.resources import NETWORK_POLICIES
from winready.cluster.timing import TABLE
from winready.engine import events
from winready.engine.outcomes import RequirementResult

INTERNAL, EXTERNAL, CUSTOM = (f"core.network.dns-{name}" for name in ("internal", "external", "custom"))


@pytest.fixture
def network(stage: Stage) -> Iterator[Stage]:
    """The stage, whose network is mended after the test."""
    yield stage
    stage.do(lambda _: stage.sandbox.heal_fault())


def later(stage: Stage, fault: str) -> Callable[[events.AnyEvent, object], object]:
    """Break a node a minute after its pods were there, in the middle of what is observed."""
    tasks: dict[str, asyncio.Task[None]] = {}

    async def break_it() -> None:
        await asyncio.sleep(TABLE.observe / 2)
        await stage.sandbox.break_fault(fault, "windows-1")

    def hear(event: events.AnyEvent, _: object) -> None:
        if isinstance(event, events.FixtureReady) and event.name == "servers":
            tasks[event.name] = asyncio.ensure_future(break_it())

    return hear


def test_names_that_stop_resolving_after_a_minute_are_noticed(network: Stage) -> None:
    played = network.play("N10", "N11", "N12", on=later(network, "dns.windows.dead"))
    for name in (INTERNAL, EXTERNAL, CUSTOM):
        result = played.results[name]
        assert result.outcome == "failed", f"{name}: {result.reason}"
        assert "windows-1" in result.reason
        assert any(probe.ok and probe.node == "windows-1" for probe in result.evidence.probes), "it worked at first"


def test_evidence_says_who_answered_and_how_many_questions_were_lost(network: Stage) -> None:
    network.do(lambda _: network.sandbox.break_fault("dns.windows.every-second-lost", "windows-1"))
    played = network.play("N10")
    result = played.results[INTERNAL]
    assert result.outcome == "failed"
    observed = {probe.title: probe.observed for probe in result.evidence.probes if probe.node == "windows-1"}
    full = next(title for title in observed if title.startswith("wc-1 asks for ls-1.peers."))
    assert observed[full] == "ls-1"
    assert observed["wc-1 asks for ls:80"] in ("ls-1", "ls-2")
    assert observed["wc-1 asks for kubernetes.default.svc.cluster.local:443"].startswith("an API server of v1.")
    assert "got no answer (" in observed["wc-1 puts many questions to cluster DNS"]
    assert "bound 10%" in result.reason
    healthy = {probe.title: probe.observed for probe in result.evidence.probes if probe.node == "windows-2"}
    assert "of 32 questions 0 got no answer" in healthy["wc-2 goes on asking for names"]
    assert "wc-2 puts many questions to cluster DNS" not in healthy, "nobody asks more without a reason"


@pytest.mark.parametrize(
    ("fault", "step"),
    [
        ("service-proxy.windows.udp-dead", "look at the service proxy on node windows-1"),
        ("service-proxy.windows.stopped", "look at the service proxy on node windows-1"),
        ("dns.windows.no-search-path", "compare 'dns-suffix'"),
        ("dns.windows.stale-answers", "look at the DNS cache of Windows"),
        ("dns.windows.dead", "look at UDP port 53"),
    ],
)
def test_the_next_step_is_about_what_is_broken(network: Stage, fault: str, step: str) -> None:
    network.do(lambda _: network.sandbox.break_fault(fault, "windows-1"))
    result = network.play("N10").results[INTERNAL]
    assert result.outcome == "failed", result.reason
    assert step in result.next_step


def test_one_broken_linux_node_does_not_keep_names_from_being_judged(network: Stage) -> None:
    network.do(lambda _: network.sandbox.break_fault("service-proxy.linux.not-programmed", "linux-1"))
    played = network.play("N10", "N11")
    assert {result.outcome for result in played.results.values()} == {"passed"}


def test_cluster_dns_that_fails_everybody_is_not_the_fault_of_a_windows_node(stage: Stage) -> None:
    deny = {"metadata": {"name": "deny"}, "spec": {"podSelector": {}, "policyTypes": ["Ingress"]}}

    async def closed(client: Client) -> None:
        await client.create(NETWORK_POLICIES, deny, "kube-system")

    stage.do(closed)
    try:
        played = stage.play("N10", "N11")
    finally:
        stage.do(lambda client: client.delete(NETWORK_POLICIES, "deny", "kube-system"))
    assert {result.outcome for result in played.results.values()} == {"blocked"}
    assert "either" in played.results[INTERNAL].reason


def asked_for_domain(
    stage: Stage,
    monkeypatch: pytest.MonkeyPatch,
    searches: dict[str, str],
    before: Callable[[Context], Awaitable[object]] | None = None,
) -> RequirementResult:
    """What a check learns of the cluster's domain when Linux pods have such search lists."""

    async def run(ctx: Context) -> None:
        for pod in await ctx.clients("linux"):
            if pod.name in searches:
                await write_searches(pod, searches[pod.name])
        if before is not None:
            await before(ctx)
        ctx.evidence.fact("domain", await ctx.world.cluster_domain())
        client = (await ctx.clients("windows"))[0]
        ctx.probe.record_output("it answers", True, client, ["cmd"], "", await client.run(["cmd", "/c", "ver"]))

    monkeypatch.setitem(load_checks(), INTERNAL, a_check(INTERNAL, run, fixtures=("clients",)))
    return stage.play("N10").results[INTERNAL]


async def write_searches(pod: Pod, domain: str) -> None:
    line = f"search {pod.namespace}.svc.{domain} x" if domain else "search x"
    await pod.run(["sh", "-c", f"echo {line}>/etc/resolv.conf"])


async def hide_configuration(ctx: Context) -> None:
    """The operator may not read kubelets' configurations."""

    async def refuse(node: str, path: str) -> Object:
        raise Forbidden(403, {"message": f"nodes {node} is forbidden: cannot get {path} through nodes/proxy"})

    ctx.world.client.node_proxy = refuse  # type: ignore[method-assign,assignment]


def test_the_domain_is_found_inside_although_configurations_may_not_be_read(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    searches = {"lc-1": "k8s.example", "lc-2": "k8s.example"}
    result = asked_for_domain(stage, monkeypatch, searches, hide_configuration)
    assert result.evidence.facts["domain"] == "k8s.example", result.reason


def test_of_two_domains_the_one_counts_that_has_an_api_server(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    result = asked_for_domain(stage, monkeypatch, {"lc-1": "nowhere.example"})
    assert result.evidence.facts["domain"] == "cluster.local", result.reason


def test_domains_that_contradict_each_other_block(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    result = asked_for_domain(stage, monkeypatch, {"lc-1": "nowhere.example", "lc-2": "elsewhere.example"})
    assert result.outcome == "blocked"
    assert "linux-1: nowhere.example, node linux-2: elsewhere.example" in result.reason


def test_without_a_search_list_the_kubelet_tells_the_domain(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    result = asked_for_domain(stage, monkeypatch, {"lc-1": "", "lc-2": ""})
    assert result.evidence.facts["domain"] == "cluster.local", result.reason


def test_a_domain_that_nobody_tells_blocks(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    result = asked_for_domain(stage, monkeypatch, {"lc-1": "", "lc-2": ""}, hide_configuration)
    assert result.outcome == "blocked"
    assert "DNS domain is not known" in result.reason
    assert "winready rbac" in result.next_step
