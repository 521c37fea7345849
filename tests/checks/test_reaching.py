"""Who asks whom: all pairs of few nodes; of very many a sample, fair, stated, and the same for the same run."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace
from typing import cast

from hypothesis import given, settings
from hypothesis import strategies as st

from winready.checks.context import Context
from winready.checks.reaching import MOST_PAIRS, PARTNERS, asked_by_others, partners
from winready.cluster.evidence import Evidence
from winready.cluster.inventory import Node
from winready.cluster.pods import Pod

Pair = tuple[str, str]


def scene(run_id: str = "260101-000000-0000") -> Context:
    return cast(Context, SimpleNamespace(settings=SimpleNamespace(run_id=run_id), evidence=Evidence()))


def nodes_of(count: int, first: int = 1) -> list[Node]:
    return cast(
        list[Node], [SimpleNamespace(name=f"n{n}", addresses=["10.0.0.1"]) for n in range(first, first + count)]
    )


def clients_on(nodes: list[Node]) -> list[Pod]:
    return cast(list[Pod], [SimpleNamespace(name=f"on-{node.name}", node=node) for node in nodes])


def dealt(clients: list[Pod], nodes: list[Node], ctx: Context | None = None) -> list[Pair]:
    return [(client.name, node.name) for client, node in partners(ctx or scene(), clients, nodes, "pings")]


@given(st.integers(1, 60), st.integers(1, 60), st.integers(1, 60), st.text(max_size=5))
@settings(deadline=None)
def test_each_client_and_each_node_is_in_several_pairs_and_none_is_its_own(
    clients: int, nodes: int, first: int, run_id: str
) -> None:
    judged, askers = nodes_of(nodes), clients_on(nodes_of(clients, first))
    pairs = dealt(askers, judged, scene(run_id))
    assert len(set(pairs)) == len(pairs)
    assert not any(client == f"on-{node}" for client, node in pairs)
    asks, asked = Counter(client for client, _ in pairs), Counter(node for _, node in pairs)
    others = {client.name: sum(node.name != client.node.name for node in judged) for client in askers}
    able = {node.name: sum(client.node.name != node.name for client in askers) for node in judged}
    if clients * nodes <= MOST_PAIRS:
        assert (asks, asked) == (Counter(others), Counter(able))
        return
    assert all(asks[name] >= min(PARTNERS, count) for name, count in others.items())
    assert all(asked[name] >= min(PARTNERS, count) for name, count in able.items())
    assert max(asked.values()) - min(asked.values()) <= 2
    assert max(asks.values()) - min(asks.values()) <= 2


def test_pairs_of_a_thousand_nodes_are_as_many_for_each_as_those_of_a_hundred() -> None:
    for count in (100, 1000):
        nodes = nodes_of(count)
        ctx = scene()
        pairs = dealt(clients_on(nodes), nodes, ctx)
        assert PARTNERS * count <= len(pairs) <= (PARTNERS + 1) * count
        (told,) = ctx.evidence.facts.values()
        assert f"{len(pairs)} of {count * count}, dealt by the run's id" in told
        asked = Counter(node for _, node in pairs)
        assert f"each of {count} nodes is asked by {min(asked.values())} to {max(asked.values())} clients" in told


def test_the_same_run_asks_the_same_pairs_and_the_next_one_others() -> None:
    nodes = nodes_of(40)
    once, again, other = (dealt(clients_on(nodes), nodes, scene(run_id)) for run_id in ("a", "a", "b"))
    assert once == again
    assert len(set(once) & set(other)) < len(once) // 2


def test_all_pairs_of_few_nodes_are_tried_and_nothing_is_said_of_a_sample() -> None:
    nodes, ctx = nodes_of(12), scene()
    assert len(dealt(clients_on(nodes), nodes, ctx)) == 12 * 11
    assert not ctx.evidence.facts


@given(st.integers(1, 12), st.lists(st.integers(1, 12), min_size=1, max_size=12))
def test_each_node_is_asked_by_one_client_of_another_in_turn(nodes: int, places: list[int]) -> None:
    judged = nodes_of(nodes)
    askers = [client for place in places for client in clients_on(nodes_of(1, place))]
    pairs = asked_by_others(askers, judged)
    for number, node in enumerate(judged):
        others = [client for client in askers if client.node.name != node.name]
        found = [client for client, asked in pairs if asked is node]
        assert found == ([others[number % len(others)]] if others else [])
