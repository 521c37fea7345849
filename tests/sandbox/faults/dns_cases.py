"""What faults of name resolution look like from pods."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from sandbox.faults.bench import IMAGE, NAMESPACE, Bench, service
from sandbox.faults.case import Case
from sandbox.faults.network_cases import DOMAIN, _app, _n, bare_name
from winready.cluster.resources import ENDPOINT_SLICES, SERVICES

KNOWN = "kubernetes.default.svc.cluster.local."
FORGOTTEN = 40
"""Seconds after which an answer must not be believed any more."""


async def _questions(b: Bench, node: str, count: int) -> str:
    """What dig says of so many questions."""
    command = ["dig", "+noall", "+comments", "+answer", "+tries=1", "+time=2", *[KNOWN] * count]
    return (await b.run(f"wc-{_n(node)}", *command))[1]


async def lost_of_ten(b: Bench, node: str) -> str:
    """How many of ten questions get no answer."""
    return str((await _questions(b, node, 10)).count("no servers could be reached"))


async def lost_of_99(b: Bench, node: str) -> str:
    """How many of 99 questions get no answer."""
    return str((await _questions(b, node, 99)).count("no servers could be reached"))


async def failed_of_nine(b: Bench, node: str) -> str:
    """How many of nine questions are answered with a failure."""
    return str((await _questions(b, node, 9)).count("SERVFAIL"))


async def wrong_of_fourteen(b: Bench, node: str) -> str:
    """How many of fourteen answers have an address of nobody."""
    return str((await _questions(b, node, 14)).count("198.51.100."))


async def addresses_of_a_service(b: Bench, node: str) -> str:
    """How many addresses the name of a service has."""
    return str((await _questions(b, node, 1)).count("IN\tA"))


async def pace(b: Bench, node: str) -> str:
    """What dig says of the time that an answer took."""
    return "slow" if "Query time: 80" in (await b.run(f"wc-{_n(node)}", "dig", KNOWN))[1] else "quick"


async def name_of_a_service(b: Bench, node: str) -> str:
    """Who answers behind the name of a new service."""
    async with b.service("lc") as made:
        return _app(await b.fetch(f"wc-{_n(node)}", f"{made['metadata']['name']}.{DOMAIN}", 80))


async def name_that_moved(b: Bench, node: str) -> str:
    """Who answers behind the name of a service that was deleted and made again over other pods."""
    async with b.service("lc") as made:
        name = made["metadata"]["name"]
        await b.fetch(f"wc-{_n(node)}", f"{name}.{DOMAIN}", 80)
        await b.client.delete(SERVICES, name, NAMESPACE)
        await b.create(SERVICES, service(name, "ls"))
        await asyncio.sleep(FORGOTTEN)
        return _app(await b.fetch(f"wc-{_n(node)}", f"{name}.{DOMAIN}", 80))


async def name_that_came_late(b: Bench, node: str) -> str:
    """Who answers behind a name that was asked for before it existed."""
    name = b.name("late")
    assert await b.fetch(f"wc-{_n(node)}", f"{name}.{DOMAIN}", 80) == "no name"
    await b.create(SERVICES, service(name, "ls"))
    await asyncio.sleep(FORGOTTEN)
    found = _app(await b.fetch(f"wc-{_n(node)}", f"{name}.{DOMAIN}", 80))
    await b.client.delete(SERVICES, name, NAMESPACE)
    return found


async def name_in_time(b: Bench, node: str) -> str:
    """Who answers behind a new name within seconds."""
    async with b.service() as made:
        return _app(await b.fetch(f"wc-{_n(node)}", f"{made['metadata']['name']}.{DOMAIN}", 80))


@asynccontextmanager
async def _headless(b: Bench, ends: list[dict[str, Any]]) -> AsyncIterator[str]:
    """The name of a headless service over these endpoints."""
    async with b.service("nobody", clusterIP="None") as made:
        name = made["metadata"]["name"]
        labels = {"kubernetes.io/service-name": name}
        ports = [{"name": "http", "port": 8080, "protocol": "TCP"}]
        ready = [{**end, "conditions": {"ready": True}} for end in ends]
        made_slice: dict[str, Any] = {"metadata": {"name": name, "labels": labels}, "addressType": "IPv4"}
        await b.create(ENDPOINT_SLICES, {**made_slice, "endpoints": ready, "ports": ports})
        yield f"{name}.{DOMAIN}"


async def many_addresses(b: Bench, node: str) -> str:
    """Whether a name resolves that has more addresses than fit into a datagram."""
    async with _headless(b, [{"addresses": [f"203.0.113.{number}"]} for number in range(1, 61)]) as name:
        found = await b.connects(f"wc-{_n(node)}", f"{name}:80")
        return "no name" if found == "no name" else "a name"


async def names_of_two_endpoints(b: Bench, node: str) -> str:
    """Who answers behind the names of two endpoints of a headless service."""
    ends = [{"addresses": b.addresses[f"ls-{n}"][:1], "hostname": f"db-{n}"} for n in (1, 2)]
    async with _headless(b, ends) as name:
        return " ".join([await b.fetch(f"wc-{_n(node)}", f"db-{n}.{name}", 8080) for n in (1, 2)])


async def name_of_an_endpoint(b: Bench, node: str) -> str:
    """Whether an endpoint of a headless service has a name."""
    async with b.service(clusterIP="None") as made:
        host = b.addresses["ls-1"][0].replace(".", "-")
        await b.until(lambda: _has_slices(b, made["metadata"]["name"]))
        return await b.connects(f"wc-{_n(node)}", f"{host}.{made['metadata']['name']}.{DOMAIN}:8080")


async def _has_slices(b: Bench, name: str) -> bool:
    slices = await b.client.list(ENDPOINT_SLICES, NAMESPACE, labels=f"kubernetes.io/service-name={name}")
    return any(each.get("endpoints") for each in slices)


async def name_of_nobody(b: Bench, node: str) -> str:
    """Whether a name resolves that does not exist."""
    return await b.connects(f"wc-{_n(node)}", f"{b.name('nobody')}.{DOMAIN}:80")


async def servers(b: Bench, node: str) -> str:
    """The nameservers of a pod."""
    return (await b.run(f"wc-{_n(node)}", "/agnhost", "dns-server-list"))[1]


@asynccontextmanager
async def _particular(b: Bench, node: str) -> AsyncIterator[str]:
    """A pod of two containers with DNS settings and host records of its own."""
    second = {"name": "second", "image": IMAGE, "args": ["pause"]}
    dns = {"nameservers": ["203.0.113.9", "10.96.0.10"], "searches": ["other.svc.cluster.local", DOMAIN]}
    aliases = [{"ip": "203.0.113.7", "hostnames": ["one.bench.test", "two.bench.test"]}]
    spec = {"dnsPolicy": "None", "dnsConfig": dns, "hostAliases": aliases}
    async with b.pod(node, more=[second], spec=spec) as made:
        yield made["metadata"]["name"]


async def through_the_second_server(b: Bench, node: str) -> str:
    """A look-up that the first nameserver does not answer."""
    async with _particular(b, node) as pod:
        return await b.connects(pod, "registry.k8s.io:443")


async def through_the_second_suffix(b: Bench, node: str) -> str:
    """A bare name that exists below the second suffix only."""
    async with _particular(b, node) as pod:
        found = await b.connects(pod, "ls:80")
        return "no name" if found == "no name" else "a name"


async def suffixes(b: Bench, node: str) -> str:
    """The first search suffix of a pod."""
    async with _particular(b, node) as pod:
        return (await b.run(pod, "/agnhost", "dns-suffix"))[1].split(",")[0]


async def _knows(b: Bench, pod: str, name: str, container: str = "c") -> str:
    return "known" if name in (await b.run(pod, "/agnhost", "etc-hosts", container=container))[1] else "unknown"


async def alias_in_second_container(b: Bench, node: str) -> str:
    """Whether the second container has the host records; the first has."""
    async with _particular(b, node) as pod:
        assert await _knows(b, pod, "one.bench.test") == "known"
        return await _knows(b, pod, "one.bench.test", "second")


async def second_alias(b: Bench, node: str) -> str:
    """Whether the second name of a host record is there; the first is."""
    async with _particular(b, node) as pod:
        assert await _knows(b, pod, "one.bench.test") == "known"
        return await _knows(b, pod, "two.bench.test")


async def own_alias(b: Bench, node: str) -> str:
    """Whether a pod has its own host records."""
    async with _particular(b, node) as pod:
        return await _knows(b, pod, "one.bench.test")


DNS_CASES = [
    Case("dns.windows.other-service", name_of_a_service, "lc", "ls"),
    Case("dns.windows.stale-answers", name_that_moved, "ls", "time-out"),
    Case("dns.windows.missing-names-kept", name_that_came_late, "ls", "no name"),
    Case("dns.windows.every-second-lost", lost_of_ten, "0", "5"),
    Case("dns.windows.every-third-fails", failed_of_nine, "0", "3"),
    Case("dns.windows.every-seventh-wrong", wrong_of_fourteen, "0", "2"),
    Case("dns.windows.one-address-more", addresses_of_a_service, "1", "2"),
    Case("dns.windows.few-lost", lost_of_99, "0", "3"),
    Case("dns.windows.slow", pace, "quick", "slow"),
    Case("dns.windows.dead-after-a-minute", bare_name, "a name", "no name"),
    Case("dns.windows.large-answers-lost", many_addresses, "a name", "no name"),
    Case("dns.windows.ipv6-unanswered", name_in_time, "ls", "time-out"),
    Case("dns.windows.headless-names-missing", name_of_an_endpoint, "reached", "no name"),
    Case("dns.windows.headless-names-merged", names_of_two_endpoints, "ls-1 ls-2", "ls-1 ls-1"),
    Case("dns.windows.invents-names", name_of_nobody, "no name", "not reached"),
    Case("dns.windows.node-servers-too", servers, "10.96.0.10", "10.96.0.10,192.0.2.53"),
    Case("dns.windows.second-server-unused", through_the_second_server, "reached", "no name"),
    Case("dns.windows.first-suffix-only", through_the_second_suffix, "a name", "no name"),
    Case("dns.windows.suffix-of-default", suffixes, "other.svc.cluster.local", "default.svc.cluster.local"),
    Case("dns.windows.hosts-first-container", alias_in_second_container, "known", "unknown"),
    Case("dns.windows.first-alias-only", second_alias, "known", "unknown"),
    Case("dns.windows.hosts-of-another-pod", own_alias, "known", "unknown"),
]
