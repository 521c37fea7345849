"""nc, ping, wget, wincat, dig and nslookup, and the servers coredns, nginx and the node agents."""

from __future__ import annotations

import pytest

from sandbox.helpers.containers import container, machine, run
from sandbox.network.helpers import endpoint_slice, publish, service, sync, until
from sandbox.programs.networked import address, network_of, on_node, start
from winready_sandbox.machine.container import Container
from winready_sandbox.network.fabric import Fabric
from winready_sandbox.network.messages import reverse_name
from winready_sandbox.programs.coredns import BadCorefile, read_corefile
from winready_sandbox.streams import Connection

SYSTEM = "NT AUTHORITY\\SYSTEM"
COREDNS = "registry.k8s.io/coredns/coredns:v1.12.1"


@pytest.fixture
async def server(fabric: Fabric) -> Container:
    """A netexec server on Linux."""
    where = on_node(fabric, "l1", "server")
    await start(where, "/agnhost", "netexec", port=8080)
    return where


@pytest.fixture
async def dns(fabric: Fabric) -> Container:
    """CoreDNS in a pod behind kube-dns, and a service called web."""
    host = machine("linux")
    host.clock = fabric.clock
    endpoint = fabric.attach("l2", namespace="kube-system", name="coredns", uid="u", dns=fabric.node_dns)
    where = container(COREDNS, "linux", on=host, hostname="coredns", endpoint=endpoint)
    await start(where, "/coredns", port=53)
    kube_dns = service("kube-dns", "10.96.0.10", port=53, namespace="kube-system")
    publish(fabric, kube_dns, endpoint_slice("kube-dns", [endpoint], port=53, namespace="kube-system"))
    fabric.view.put("services", service("web", "10.96.4.4"))
    sync(fabric)
    return where


async def test_nc_probes_in_each_programs_words(fabric: Fabric, server: Container) -> None:
    linux, windows, ip = on_node(fabric, "l2", "l"), on_node(fabric, "w1", "w"), address(server)
    good = await run(linux, "nc", "-vz", "-w", "10", ip, "8080")
    assert (good.code, good.err) == (0, f"Connection to {ip} 8080 port [tcp/*] succeeded!\n")
    refused = await run(linux, "nc", "-vz", "-w", "5", ip, "1")
    assert (refused.code, refused.err) == (1, f"nc: connect to {ip} port 1 (tcp) failed: Connection refused\n")
    lost = await run(linux, "nc", "-vz", "-w", "2", "10.96.1.1", "80")
    assert lost.err == "nc: connect to 10.96.1.1 port 80 (tcp) timed out: Operation in progress\n"
    open_port = await run(windows, "nc", "-vz", "-w", "10", ip, "8080")
    assert (open_port.code, open_port.err) == (0, f"(UNKNOWN) [{ip}] 8080 (?) open\n")
    assert (await run(windows, "nc", "-z", "-w", "2", "10.96.1.1", "80")).code == 1


async def test_nc_sends_datagrams(fabric: Fabric, server: Container) -> None:
    client = on_node(fabric, "l2", "c")
    answer = await run(client, "nc", "-v", "-u", "-w", "2", address(server), "8081", stdin=b"hostName\n")
    assert (answer.code, answer.out) == (0, server.hostname)
    assert answer.err == f"Connection to {address(server)} 8081 port [udp/*] succeeded!\n"
    assert (await run(client, "nc", "-t", "-z", "-w", "2", address(server), "8080")).code == 0


async def test_nc_and_wincat_carry_data(fabric: Fabric) -> None:
    listener, client = on_node(fabric, "l1", "a"), on_node(fabric, "w1", "b", image="pause")
    heard: list[bytes] = []

    async def banner(connection: Connection) -> None:
        connection.write(b"SSH-2.0-sim\r\n")
        connection.close_write()
        while data := await connection.read():
            heard.append(data)

    network_of(listener).listen(22, banner)
    result = await run(client, "wincat", address(listener), "22", stdin=b"over the wire")
    assert (result.code, result.out, b"".join(heard)) == (0, "SSH-2.0-sim\r\n", b"over the wire")
    linux = await run(on_node(fabric, "l2", "c"), "nc", "-w", "5", address(listener), "22")
    assert linux.out == "SSH-2.0-sim\r\n", "brief W4"
    failed = await run(client, "wincat", address(listener), "9")
    assert failed.code == 1
    assert "actively refused it" in failed.err
    assert "usage: wincat <host> <port>" in (await run(client, "wincat")).err


async def test_ping_on_windows(fabric: Fabric) -> None:
    windows, linux = on_node(fabric, "w1", "w"), on_node(fabric, "l1", "l")
    result = await run(windows, "ping.exe", "-n", "2", "-w", "2000", address(linux))
    assert result.code == 0
    assert result.lines[1] == f"Pinging {address(linux)} with 32 bytes of data:"
    assert result.lines[2] == f"Reply from {address(linux)}: bytes=32 time=2ms TTL=62"
    assert "    Packets: Sent = 2, Received = 2, Lost = 0 (0% loss)," in result.lines
    silent = await run(windows, "ping.exe", "-n", "1", "10.96.0.1")
    assert (silent.code, silent.lines[2]) == (1, "Request timed out.")


async def test_ping_on_linux(fabric: Fabric) -> None:
    windows, linux = on_node(fabric, "w1", "w"), on_node(fabric, "l1", "l")
    result = await run(linux, "ping", "-c", "2", "-W", "2", address(windows))
    assert result.code == 0
    assert result.lines[1].startswith(f"64 bytes from {address(windows)}: seq=0 ttl=126 time=")
    assert "2 packets transmitted, 2 packets received, 0% packet loss" in result.out
    assert (await run(linux, "ping", "-c", "1", "-W", "1", "10.96.0.1")).code == 1


async def test_wget(fabric: Fabric, server: Container) -> None:
    client = on_node(fabric, "l2", "c")
    url = f"http://{address(server)}:8080/hostname"
    assert (await run(client, "wget", "-q", "-O", "-", url)).out == "server"
    assert (await run(client, "wget", "-qO-", "-T", "2", url)).out == "server"
    refused = await run(client, "wget", "-q", "-O-", f"http://{address(server)}:1/")
    expected = f"wget: can't connect to remote host ({address(server)}): Connection refused\n"
    assert (refused.code, refused.err) == (1, expected)
    assert (await run(client, "wget", "-q", "-O-", "-T", "2", "http://10.96.1.1/")).err == "wget: download timed out\n"
    failed = await run(client, "wget", "-q", "-O-", f"http://{address(server)}:8080/echo?msg=x&code=404")
    assert failed.err == "wget: server returned error: HTTP/1.1 404 Not Found\n"


async def test_dig_and_nslookup_of_bind(fabric: Fabric, dns: Container) -> None:
    linux, windows = on_node(fabric, "l1", "l"), on_node(fabric, "w1", "w")
    for client, folder in ((linux, ""), (windows, "C:\\dig\\")):
        suffix = ".exe" if client is windows else ""
        dig, nslookup = f"{folder}dig{suffix}", f"{folder}nslookup{suffix}"
        assert (await run(client, dig, "+short", "web.ns.svc.cluster.local.")).out == "10.96.4.4\n"
        assert (await run(client, dig, "+short", "web")).out == ""
        assert (await run(client, dig, "+short", "+search", "web")).out == "10.96.4.4\n"
        assert (await run(client, dig, "+short", "+tcp", "web.ns.svc.cluster.local")).out == "10.96.4.4\n"
        assert "status: NXDOMAIN" in (await run(client, dig, "nobody.ns.svc.cluster.local")).out
        found = await run(client, nslookup, "web")
        assert found.out == (
            "Server:\t\t10.96.0.10\nAddress:\t10.96.0.10#53\n\nName:\tweb.ns.svc.cluster.local\nAddress: 10.96.4.4\n\n"
        )
        missing = await run(client, nslookup, "nobody")
        assert (missing.code, missing.lines[-2]) == (1, "** server can't find nobody: NXDOMAIN")


async def test_dig_gives_up_when_no_nameserver_answers(fabric: Fabric) -> None:
    dead = await run(on_node(fabric, "l1", "l"), "dig", "x.test")
    assert (dead.code, dead.lines[-1]) == (9, ";; connection timed out; no servers could be reached")


async def test_fact_1_3_windows_own_nslookup_ends_with_zero_for_a_missing_name(fabric: Fabric, dns: Container) -> None:
    client = on_node(fabric, "w1", "w", image="nonroot")
    found = await run(client, "nslookup", "web.ns.svc.cluster.local")
    assert found.lines[:2] == ["Server:  kube-dns.kube-system.svc.cluster.local", "Address:  10.96.0.10"]
    assert found.lines[3:5] == ["Name:    web.ns.svc.cluster.local", "Address:  10.96.4.4"]
    missing = await run(client, "nslookup", "nobody.ns.svc.cluster.local")
    assert missing.code == 0
    assert missing.err.endswith("can't find nobody.ns.svc.cluster.local: Non-existent domain\r\n")


async def test_coredns_follows_its_corefile(fabric: Fabric, dns: Container) -> None:
    custom = on_node(fabric, "l1", "custom")
    hosts = "    hosts {\n        203.0.113.5 special.test\n        fallthrough\n    }\n"
    corefile = f".:53 {{\n{hosts}    forward . 10.96.0.10\n}}\n"
    host = machine("linux")
    host.clock = fabric.clock
    where = container(COREDNS, "linux", on=host, endpoint=custom.endpoint)
    where.files.write("/Corefile", corefile.encode())
    await start(where, "/coredns", "-conf", "/Corefile", port=53)
    client = on_node(fabric, "w1", "w")
    for kind, name, answer in (
        ("A", "special.test", "203.0.113.5"),
        ("PTR", reverse_name("203.0.113.5"), "special.test."),
        ("A", "web.ns.svc.cluster.local", "10.96.4.4"),
    ):
        found = await network_of(client).query(address(custom), name, kind, timeout=5)
        assert [record.data for record in found.answers] == [answer]
    with pytest.raises(BadCorefile):
        read_corefile("nonsense\n")


async def test_coredns_tells_its_health(fabric: Fabric, dns: Container) -> None:
    client = on_node(fabric, "l1", "l")
    assert (await run(client, "curl", "-s", f"http://{address(dns)}:8181/ready")).out == "OK"
    assert (await run(client, "curl", "-s", f"http://{address(dns)}:8080/health")).out == "OK"


async def test_nginx_serves_its_page(fabric: Fabric) -> None:
    where, client = on_node(fabric, "l1", "web", image="nginx"), on_node(fabric, "w1", "c")
    await start(where, "/usr/sbin/nginx", "-g", "daemon off;", port=80)
    assert "Welcome to nginx!" in (await run(client, "curl.exe", "-s", f"http://{address(where)}/")).out
    missing = await run(client, "curl.exe", "-s", "-w", "%{http_code}", f"http://{address(where)}/nope")
    assert missing.out.endswith("404")


@pytest.mark.virtual_time
async def test_services_change_only_while_kube_proxy_runs(fabric: Fabric, server: Container) -> None:
    host = machine("windows")
    host.clock = fabric.clock
    image = "docker.io/sigwindowstools/kube-proxy:v1.36.0-calico-hostprocess"
    agent = container(image, "windows", on=host, host_process=True, user=SYSTEM, endpoint=fabric.host("w1"))
    process = agent.spawn(["%CONTAINER_SANDBOX_MOUNT_POINT%\\kube-proxy\\kube-proxy.exe"])
    proxy = fabric.nodes["w1"].proxy
    fabric.view.put("services", service("s", "10.96.7.7"))
    fabric.view.put("endpointslices", endpoint_slice("s", [network_of(server)]))
    await until(lambda: proxy.vip("10.96.7.7", 80, "TCP") is not None)
    await process.kill()
    fabric.view.remove("services", "ns", "s")
    await fabric.clock.sleep(60)
    assert proxy.vip("10.96.7.7", 80, "TCP") is not None
    again = agent.spawn(["%CONTAINER_SANDBOX_MOUNT_POINT%\\kube-proxy\\kube-proxy.exe"])
    await until(lambda: proxy.vip("10.96.7.7", 80, "TCP") is None)
    await again.kill()
