"""Names: the cluster's zone, the DNS server, and the resolvers of both OSes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.network.helpers import endpoint_slice, pod, publish, serve_name, service, sync
from winready_sandbox.network import messages
from winready_sandbox.network.dns_server import DnsServer
from winready_sandbox.network.endpoint import DnsFailure, NoSuchName
from winready_sandbox.network.fabric import Fabric
from winready_sandbox.network.messages import Message, Record
from winready_sandbox.network.resolver import DnsConfig
from winready_sandbox.network.zone import ClusterZone

DNS = "10.96.0.10"


@pytest.fixture
async def named(fabric: Fabric) -> Fabric:
    """A cluster with its DNS server behind kube-dns, a service, a headless service and an alias."""
    server = fabric.attach(
        "l1", namespace="kube-system", name="coredns", uid="u", labels={"k8s-app": "kube-dns"}, dns=fabric.node_dns
    )
    server.bind_udp(53, DnsServer(ClusterZone(fabric.view, "cluster.local"), server).answer)
    publish(
        fabric,
        service("kube-dns", DNS, port=53, namespace="kube-system"),
        endpoint_slice("kube-dns", [server], port=53, namespace="kube-system"),
    )
    for namespace in ("ns", "kube-system"):
        fabric.view.put("namespaces", {"metadata": {"name": namespace}})
    backend = pod(fabric, "w1", "st-0")
    serve_name(backend, "st-0")
    publish(fabric, service("web", "10.96.4.4"), endpoint_slice("web", [backend]))
    members = endpoint_slice("st", [backend])
    members["endpoints"][0]["hostname"] = "st-0"
    publish(fabric, service("st", "None"), members)
    alias = {
        "metadata": {"name": "ext", "namespace": "ns"},
        "spec": {"type": "ExternalName", "externalName": "example.com"},
    }
    fabric.view.put("services", alias)
    sync(fabric)
    return fabric


async def test_fact_1_6_windows_takes_names_with_a_dot_as_complete(named: Fabric) -> None:
    windows, linux = pod(named, "w2", "a"), pod(named, "l2", "b")
    for name in ("web", "web.ns.svc.cluster.local", "web.ns.svc.cluster.local."):
        assert await windows.resolve(name) == ["10.96.4.4"], name
        assert await linux.resolve(name) == ["10.96.4.4"], name
    for name in ("web.ns", "web.ns.svc"):
        assert await linux.resolve(name) == ["10.96.4.4"], name
        with pytest.raises(NoSuchName):
            await windows.resolve(name)


async def test_suffixes_are_tried_in_order(named: Fabric) -> None:
    linux = pod(named, "l2", "b").resolver
    assert list(linux.candidates("web.ns")) == [
        "web.ns.ns.svc.cluster.local",
        "web.ns.svc.cluster.local",
        "web.ns.cluster.local",
        "web.ns",
    ]
    assert next(linux.candidates("a.b.c.d.e.f")) == "a.b.c.d.e.f"
    assert list(pod(named, "w2", "a").resolver.candidates("web")) == [
        "web.ns.svc.cluster.local",
        "web.svc.cluster.local",
        "web.cluster.local",
    ]


async def test_headless_names_and_pod_names(named: Fabric) -> None:
    windows = pod(named, "w2", "a")
    ip = next(ip for ip, found in named.view.pods_by_ip.items() if found["metadata"]["name"] == "st-0")
    assert await windows.resolve("st.ns.svc.cluster.local") == [ip]
    assert await windows.resolve("st-0.st.ns.svc.cluster.local") == [ip]
    assert await windows.resolve("10-244-1-5.ns.pod.cluster.local") == ["10.244.1.5"]
    for missing in ("st-1.st.ns.svc.cluster.local", "10-244-1.ns.pod.cluster.local", "web.other.svc.cluster.local"):
        with pytest.raises(NoSuchName):
            await windows.resolve(missing)


async def test_outside_names_are_forwarded_and_aliases_followed(named: Fabric) -> None:
    windows = pod(named, "w2", "a")
    assert await windows.resolve("registry.k8s.io") == [named.world.names["registry.k8s.io"][0]]
    assert await windows.resolve("ext.ns.svc.cluster.local") == ["192.0.2.80"]
    with pytest.raises(NoSuchName):
        await windows.resolve("no-such-host.example.org")
    named.world.online = False
    with pytest.raises(DnsFailure):
        await windows.resolve("github.com")
    assert await windows.resolve("web") == ["10.96.4.4"]


@pytest.mark.parametrize(
    ("name", "kind", "expected"),
    [
        ("_tcp._tcp.web.ns.svc.cluster.local", "SRV", ["0 100 80 web.ns.svc.cluster.local."]),
        ("_tcp._tcp.st.ns.svc.cluster.local", "SRV", ["0 100 8080 st-0.st.ns.svc.cluster.local."]),
        ("4.4.96.10.in-addr.arpa", "PTR", ["web.ns.svc.cluster.local."]),
        ("ext.ns.svc.cluster.local", "CNAME", ["example.com."]),
        ("web.ns.svc.cluster.local", "AAAA", []),
        ("dns-version.cluster.local", "TXT", ["1.1.0"]),
    ],
)
async def test_records(named: Fabric, name: str, kind: str, expected: list[str]) -> None:
    reply = await pod(named, "l2", "b").query(DNS, name, kind)
    assert (reply.rcode, [record.data for record in reply.answers]) == (messages.NOERROR, expected)


async def test_the_hosts_file_comes_first(named: Fabric) -> None:
    windows = pod(named, "w2", "a")
    hosts = "# Kubernetes-managed hosts file.\n203.0.113.7\talias.test other.test\n"
    assert await windows.resolve("Other.test", hosts=hosts) == ["203.0.113.7"]
    assert await windows.resolve("web", hosts=hosts) == ["10.96.4.4"]


async def test_queries_travel_as_packets_so_a_broken_proxy_or_policy_breaks_names(named: Fabric) -> None:
    windows, other = pod(named, "w2", "a"), pod(named, "w1", "c")
    named.nodes["w2"].defects.proxy.udp_dead = True
    with pytest.raises(DnsFailure):
        await windows.resolve("web", timeout=4)
    assert await other.resolve("web") == ["10.96.4.4"]


async def test_custom_nameservers_and_suffixes_from_the_pod(named: Fabric) -> None:
    config = DnsConfig(("203.0.113.9", DNS), ("ns.svc.cluster.local",), (("ndots", "2"),))
    windows = named.attach("w2", namespace="other", name="b", uid="u", dns=config)
    assert await windows.resolve("web", timeout=10) == ["10.96.4.4"]
    named.nodes["w2"].defects.dns.ignore_dns_config = True
    assert windows.dns == DnsConfig((DNS,), ("svc.cluster.local",))
    with pytest.raises(NoSuchName):
        await windows.resolve("web2", timeout=10)
    assert config.resolv_conf() == (
        "search ns.svc.cluster.local\nnameserver 203.0.113.9\nnameserver 10.96.0.10\noptions ndots:2\n"
    )


async def test_windows_remembers_answers_for_a_while(named: Fabric, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr(named.clock, "now", lambda: now)
    windows, linux = pod(named, "w2", "a"), pod(named, "l2", "b")
    with pytest.raises(NoSuchName):
        await windows.resolve("late")
    named.view.put("services", service("late", "10.96.5.5"))
    assert await linux.resolve("late") == ["10.96.5.5"]
    with pytest.raises(NoSuchName):
        await windows.resolve("late")
    now += 6
    assert await windows.resolve("late") == ["10.96.5.5"]


@pytest.mark.parametrize(("answers", "windows_asks", "linux_asks"), [(False, 5, 2), (True, 1, 2)])
async def test_windows_asks_five_times_and_takes_a_failure_for_the_last_word(
    fabric: Fabric, answers: bool, windows_asks: int, linux_asks: int
) -> None:
    asked: list[str] = []

    async def fail(payload: bytes, source: tuple[str, int]) -> bytes | None:
        asked.append(source[0])
        question = messages.decode(payload)
        failure = Message(question.id, question.name, question.type, response=True, rcode=messages.SERVFAIL)
        return failure.encode() if answers else None

    server = pod(fabric, "l1", "server")
    server.bind_udp(53, fail)
    config = DnsConfig((server.addresses[0],))
    for node, times in (("w1", windows_asks), ("l2", linux_asks)):
        asked.clear()
        client = fabric.attach(node, namespace="ns", name=node, uid=node, dns=config)
        with pytest.raises(DnsFailure):
            await client.resolve("a.test.", timeout=10)
        assert len(asked) == times


async def test_what_does_not_fit_into_a_datagram_is_asked_for_in_a_stream(fabric: Fabric) -> None:
    server = pod(fabric, "l1", "server")
    dns = DnsServer(ClusterZone(fabric.view, "cluster.local"), server)
    server.bind_udp(53, dns.answer)
    server.listen(53, dns.serve)
    many = endpoint_slice("wide", [server])
    many["endpoints"] = [{"addresses": [f"203.0.113.{number}"]} for number in range(1, 61)]
    publish(fabric, service("wide", "None"), many)
    cut = messages.decode(await dns.answer(Message(7, "wide.ns.svc.cluster.local", "A").encode()) or b"")
    assert (cut.truncated, cut.answers) == (True, ())
    config = DnsConfig((server.addresses[0],))
    for node in ("w1", "l2"):
        client = fabric.attach(node, namespace="ns", name=node, uid=node, dns=config)
        assert len(await client.resolve("wide.ns.svc.cluster.local")) == 60
    fabric.nodes["w1"].defects.dns.tcp_dead = True
    client = fabric.attach("w1", namespace="ns", name="new", uid="new", dns=config)
    with pytest.raises(DnsFailure):
        await client.resolve("wide.ns.svc.cluster.local", timeout=4)


async def test_defects(named: Fabric) -> None:
    windows, other = pod(named, "w2", "a"), pod(named, "w1", "c")
    defects = named.nodes["w2"].defects.dns
    defects.no_suffix = True
    with pytest.raises(NoSuchName):
        await windows.resolve("web")
    assert await windows.resolve("web.ns.svc.cluster.local") == ["10.96.4.4"]
    assert windows.dns.searches == ()
    defects.no_suffix, defects.external_dead = False, True
    with pytest.raises(DnsFailure):
        await windows.resolve("github.com", timeout=4)
    assert await other.resolve("github.com")
    defects.external_dead, defects.wrong_answers = False, True
    assert await windows.resolve("st.ns.svc.cluster.local") != await other.resolve("st.ns.svc.cluster.local")
    defects.wrong_answers, defects.ignore_host_aliases = False, True
    with pytest.raises(NoSuchName):
        await windows.resolve("alias.test", hosts="203.0.113.7 alias.test\n")
    defects.ignore_host_aliases, defects.dead = False, True
    with pytest.raises(DnsFailure):
        await windows.resolve("never-asked-before.ns.svc.cluster.local", timeout=4)


_names = st.lists(
    st.text("abcdefghijklmnopqrstuvwxyz0123456789-", min_size=1, max_size=20), min_size=1, max_size=5
).map(".".join)


@given(_names, st.sampled_from(["A", "AAAA", "SRV"]), st.integers(0, 65535), st.lists(_names, max_size=3))
def test_messages_survive_the_wire(name: str, kind: str, number: int, targets: list[str]) -> None:
    answers = tuple(Record(name, "CNAME", 30, target + ".") for target in targets)
    message = Message(number, name, kind, response=True, rcode=3, answers=answers)
    assert messages.decode(message.encode()) == message


@given(st.binary(max_size=64))
def test_nonsense_is_no_message(data: bytes) -> None:
    try:
        messages.decode(data)
    except messages.BadMessage:
        return
