"""agnhost's subcommands; the texts were compared with the real program of Kubernetes 1.36."""

from __future__ import annotations

import json

import pytest

from sandbox.helpers.containers import run
from sandbox.network.helpers import endpoint_slice, publish, service
from sandbox.programs.networked import address, network_of, on_node, start
from winready_sandbox.machine.container import Container
from winready_sandbox.machine.tree import Directory
from winready_sandbox.network.fabric import Fabric

VIP = "10.96.7.7"


async def netexec(fabric: Fabric, node: str, name: str, *flags: str) -> Container:
    """A running netexec server."""
    where = on_node(fabric, node, name)
    await start(where, "/agnhost", "netexec", *flags, port=8080)
    return where


async def get(client: Container, url: str) -> str:
    """Fetch with curl of the client's OS."""
    tool = "curl.exe" if client.os == "windows" else "curl"
    result = await run(client, tool, "-g", "-s", "-S", "--max-time", "60", url)
    assert result.code == 0, result.err
    return result.out


@pytest.mark.parametrize("node", ["w1", "l1"])
async def test_netexec_answers_who_it_is_and_who_asks(fabric: Fabric, node: str) -> None:
    server, client = await netexec(fabric, node, "server"), on_node(fabric, "w2", "client")
    base = f"http://{address(server)}:8080"
    assert await get(client, f"{base}/hostname") == "server"
    assert await get(client, f"{base}/hostName") == "server"
    assert (await get(client, f"{base}/clientip")).rpartition(":")[0] == address(client)
    assert (await get(client, base)).startswith("NOW: 20")
    assert await get(client, f"{base}/echo?msg=a%20b") == "a b"
    answer = await network_of(client).exchange(address(server), 8081, b"hostname\n", timeout=3)
    assert answer == b"server"


async def test_fact_1_2_healthz_is_ready_only_with_a_udp_port(fabric: Fabric) -> None:
    client = on_node(fabric, "w2", "client")
    for name, flags, code in (("a", (), "200"), ("b", ("--udp-port=-1",), "412")):
        server = await netexec(fabric, "w1", name, *flags)
        url = f"http://{address(server)}:8080/healthz"
        assert (await run(client, "curl.exe", "-s", "-w", "%{http_code}", url)).out == code


async def test_dial_reports_every_try(fabric: Fabric) -> None:
    first, second = await netexec(fabric, "w1", "ws-1"), await netexec(fabric, "l1", "ls-1")
    client = await netexec(fabric, "w2", "client")
    endpoints = endpoint_slice("s", [network_of(first), network_of(second)])
    endpoints["ports"][1]["port"] = 8081
    publish(fabric, service("s", VIP), endpoints)
    local = "http://127.0.0.1:8080/dial"
    answer = json.loads(await get(client, f"{local}?host={VIP}&port=80&protocol=http&request=hostname&tries=12"))
    assert set(answer["responses"]) == {"ws-1", "ls-1"}
    assert len(answer["responses"]) == 12
    udp = json.loads(await get(client, f"{local}?host={VIP}&port=80&protocol=udp&request=hostname&tries=12"))
    assert set(udp["responses"]) == {"ws-1", "ls-1"}


async def test_dial_words_failures_like_go_on_each_os(fabric: Fabric) -> None:
    target = on_node(fabric, "l2", "silent")
    refused = f"host={address(target)}&port=99&request=hostname"
    windows, linux = await netexec(fabric, "w1", "w"), await netexec(fabric, "l1", "l")
    head = f'Get "http://{address(target)}:99/hostname": dial tcp {address(target)}:99: '
    on_windows = json.loads(await get(windows, f"http://127.0.0.1:8080/dial?{refused}"))
    assert on_windows == {
        "errors": [head + "connectex: No connection could be made because the target machine actively refused it."]
    }
    assert await get(linux, f"http://127.0.0.1:8080/dial?{refused}") == json.dumps(
        {"errors": [head + "connect: connection refused"]}, separators=(",", ":")
    )
    lost = json.loads(await get(windows, "http://127.0.0.1:8080/dial?host=10.96.1.1&port=80&request=x"))
    assert lost["errors"] == [
        'Get "http://10.96.1.1:80/x": context deadline exceeded (Client.Timeout exceeded while awaiting headers)'
    ]


async def test_fact_1_2_dial_drops_the_answers_when_the_last_try_failed(fabric: Fabric) -> None:
    server, client = await netexec(fabric, "w1", "s"), await netexec(fabric, "l1", "c")
    fabric.nodes["w1"].defects.link.loss = 0.5
    query = f"host={address(server)}&port=8080&request=hostname&tries=4"
    answer = json.loads(await get(client, f"http://127.0.0.1:8080/dial?{query}"))
    assert len(answer["errors"]) == 2
    assert "responses" not in answer


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("host=127.0.0.1&port=1", "request parameter not specified. <nil>"),
        ("host=127.0.0.1&port=1&protocol=foo&request=x", "unsupported protocol. foo"),
        (
            "host=127.0.0.1&port=1&request=x&tries=z",
            'tries parameter is invalid. strconv.Atoi: parsing "z": invalid syntax',
        ),
        ("host=127.0.0.1&port=zz&request=x", "host and/or port param are invalid. lookup tcp/zz: unknown port"),
    ],
)
async def test_dial_refuses_wrong_parameters(fabric: Fabric, query: str, message: str) -> None:
    client = await netexec(fabric, "l1", "c")
    result = await run(client, "curl", "-s", "-w", " %{http_code}", f"http://127.0.0.1:8080/dial?{query}")
    assert result.out == f"{message}\n 400"


async def test_exit_ends_the_container_with_the_code(fabric: Fabric) -> None:
    where = on_node(fabric, "w1", "s")
    process = await start(where, "/agnhost", "netexec", port=8080)
    client = on_node(fabric, "l1", "c")
    result = await run(client, "curl", "-s", "-S", f"http://{address(where)}:8080/exit?code=7")
    assert (result.code, result.err) == (52, "curl: (52) Empty reply from server\n")
    assert await process.wait() == 7


async def test_netexec_stops_at_once_and_serve_hostname_sleeps_sixty_seconds(fabric: Fabric) -> None:
    """Fact 1.2."""
    quick, slow = on_node(fabric, "w1", "a"), on_node(fabric, "w1", "b")
    netexec_process = await start(quick, "/agnhost", "netexec", port=8080)
    slow_process = await start(slow, "/agnhost", "serve-hostname", port=9376)
    assert await get(on_node(fabric, "l1", "c"), f"http://{address(slow)}:9376") == "b"
    began = fabric.clock.now()
    netexec_process.signal_stop()
    slow_process.signal_stop()
    assert await netexec_process.wait() == 0
    assert await slow_process.wait() == 0
    assert fabric.clock.now() - began >= 60


async def test_a_taken_port_is_fatal(fabric: Fabric) -> None:
    where = on_node(fabric, "w1", "s")
    network_of(where).bind_udp(8081, lambda payload, source: pytest.fail("never asked"))
    assert await (await start(where, "/agnhost", "netexec")).wait() == 1


async def test_connect_says_how_it_ended(fabric: Fabric) -> None:
    server = await netexec(fabric, "l1", "s")
    linux, windows = on_node(fabric, "l2", "l"), on_node(fabric, "w1", "w")
    ip = address(server)
    for client in (linux, windows):
        assert (await run(client, "/agnhost", "connect", "--timeout=5s", f"{ip}:8080")).code == 0
        lost = await run(client, "/agnhost", "connect", "--timeout=1s", "10.96.1.1:80")
        assert (lost.code, lost.err) == (1, "TIMEOUT\n")
        udp = await run(client, "/agnhost", "connect", "--protocol=udp", "--timeout=5s", f"{ip}:8081")
        assert udp.code == 0
        assert (
            await run(client, "/agnhost", "connect", "foo")
        ).err == "UNKNOWN: address foo: missing port in address\n"
    refused = await run(linux, "/agnhost", "connect", f"{ip}:1")
    assert (refused.code, refused.err) == (1, "REFUSED\n")
    assert (await run(windows, "/agnhost", "connect", f"{ip}:1")).err == (
        f"OTHER: dial tcp {ip}:1: connectex: "
        "No connection could be made because the target machine actively refused it.\n"
    )
    assert (await run(linux, "/agnhost", "connect", "--timeout=10s", "10.244.12.200:1")).err == (
        "OTHER: dial tcp 10.244.12.200:1: connect: no route to host\n"
    )
    unknown = await run(linux, "/agnhost", "connect", "--protocol=udp", "--timeout=1s", f"{ip}:1")
    assert unknown.err.startswith("REFUSED: read udp ")
    assert (await run(linux, "/agnhost", "connect", "--protocol=x", "1.1.1.1:1")).err == "Unsupported protocol\nx"


async def test_wrong_usage_reads_like_cobra(fabric: Fabric) -> None:
    where = on_node(fabric, "l1", "c")
    cases = {
        ("bogus",): 'Error: unknown command "bogus" for "app"\n',
        ("connect",): "Error: accepts 1 arg(s), received 0\n",
        ("netexec", "--bogus"): "Error: unknown flag: --bogus\n",
        ("netexec", "extra"): "Error: accepts at most 0 arg(s), received 1\n",
        ("connect", "--timeout=abc", "1:1"): (
            'Error: invalid argument "abc" for "--timeout" flag: time: invalid duration "abc"\n'
        ),
    }
    for arguments, message in cases.items():
        result = await run(where, "/agnhost", *arguments)
        assert (result.code, result.err) == (1, message)
    assert "netexec" in (await run(where, "/agnhost")).out


async def test_porter_serves_what_the_environment_says(fabric: Fabric) -> None:
    env = {"SERVE_PORT_80": "eighty", "SERVE_TCP_PORT_81": "eighty-one", "SERVE_UDP_PORT_82": "udp"}
    server = on_node(fabric, "w1", "s", env=env)
    await start(server, "/agnhost", "porter", port=81)
    client = on_node(fabric, "l1", "c")
    assert await get(client, f"http://{address(server)}") == "eighty"
    assert await get(client, f"http://{address(server)}:81") == "eighty-one"
    assert await network_of(client).exchange(address(server), 82, b"x", timeout=2) == b"udp"


async def test_resolver_settings_and_hosts_file_as_the_container_sees_them(fabric: Fabric) -> None:
    windows, linux = on_node(fabric, "w1", "w"), on_node(fabric, "l1", "l")
    expected = "ns.svc.cluster.local,svc.cluster.local,cluster.local\n"
    linux.files.write("/etc/resolv.conf", network_of(linux).dns.resolv_conf().encode())
    windows.files.write("C:\\Windows\\System32\\drivers\\etc\\hosts", b"203.0.113.7\talias.test\r\n")
    for client in (windows, linux):
        assert (await run(client, "/agnhost", "dns-suffix")).out == expected
        assert (await run(client, "/agnhost", "dns-server-list")).out == "10.96.0.10\n"
    assert "203.0.113.7\talias.test" in (await run(windows, "/agnhost", "etc-hosts")).out
    result = await run(windows, "/agnhost", "connect", "--timeout=1s", "alias.test:80")
    assert result.err == "TIMEOUT\n"


async def test_fact_1_2_stress_dies_on_windows(fabric: Fabric) -> None:
    result = await run(on_node(fabric, "w1", "w"), "/agnhost", "stress", "--cpus=0")
    assert result.code == 255
    assert "failed to open /dev/zero" in result.err


async def test_mounttest(fabric: Fabric) -> None:
    windows, linux = on_node(fabric, "w1", "w"), on_node(fabric, "l1", "l")
    assert (await run(windows, "/agnhost", "mounttest", "--new_file_0644=C:\\f")).out == (
        'content of file "C:\\f": mount-tester new file\n\n'
    )
    out = (await run(linux, "/agnhost", "mounttest", "--new_file_0644=/tmp/f", "--file_mode=/tmp/f")).out
    assert out.splitlines()[-1] == 'mode of file "/tmp/f": -rw-r--r--'
    linux.files.mount("/m", Directory(0o1777), memory=True)
    flags = ("--fs_type=/m", "--new_file_0777=/m/f", "--file_perm=/m/f", "--file_mode=/m")
    assert (await run(linux, "/agnhost", "mounttest", *flags)).out.splitlines() == [
        'mount type of "/m": tmpfs',
        'content of file "/m/f": mount-tester new file',
        "",
        'mode of file "/m": dtrwxrwxrwx',
        'perms of file "/m/f": -rwxrwxrwx',
    ]
    missing = await run(windows, "/agnhost", "mounttest", "--file_content=C:\\nothing")
    assert missing.code == 1
    assert missing.out == (
        'error reading file content for "C:\\nothing": open C:\\nothing: The system cannot find the file specified.\n'
    )
