"""The real agnhost.exe and wine's own cmd.exe are asked what our checks ask in Windows containers.

Whatever they answer, our readers must make the same of it as of the model's answer.
"""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import AsyncIterator, Iterator

import pytest

from sandbox.helpers import containers
from windows.ground import Ground
from windows.judges import curl, foreign, ours, pod_that_says, put_agnhost, running
from winready.checks.core_network.names import Target, look_up, read_look_up
from winready.checks.extend_activedirectory.run_as_user import ASK, read_names
from winready.checks.extend_activedirectory.shares import look_into
from winready.checks.extend_activedirectory.tickets import ASK as ASK_FOR_TICKET
from winready.checks.extend_activedirectory.tickets import CLIENT
from winready.checks.hosting import MOUNT_POINT, listeners
from winready.cluster import commands
from winready.cluster.commands import Ask
from winready.cluster.execution import Execution
from winready_sandbox.machine.container import Container
from winready_sandbox.network.fabric import Fabric
from winready_sandbox.network.resolver import DnsConfig

pytestmark = pytest.mark.windows_programs
ADDRESS = "127.0.0.1"
SILENT = "198.51.100.7"
NAMESERVERS, SEARCHES = ["192.0.2.53", "192.0.2.54"], ["one.opready.test", "two.opready.test"]


@pytest.fixture(scope="module")
def wine(machine: Ground) -> Ground:
    put_agnhost(machine)
    with machine.network():
        # What is sent there is dropped, as by a firewall.
        subprocess.run(["ip", "route", "add", "198.51.100.0/24", "dev", "lo"], check=True)
    return machine


@pytest.fixture
async def model() -> AsyncIterator[Container]:
    host = containers.machine()
    fabric = Fabric(host.clock)
    fabric.add_node("n", "windows", ["10.250.0.2"], ["10.244.2.0/24"])
    dns = DnsConfig(tuple(NAMESERVERS), tuple(SEARCHES))
    endpoint = fabric.attach("n", namespace="ns", name="windows-1", uid="u", dns=dns)
    where = containers.container(on=host, endpoint=endpoint, hostname="windows-1", user="ContainerAdministrator")
    yield where
    for process in list(where.processes.values()):
        await process.kill()
    fabric.close()


HP = r"C:\hp"
FILES = [
    commands.make_folder(rf"{HP}\below"),
    commands.make_folder(rf"{HP}\below"),
    commands.write_lines(rf"{HP}\a.txt", "large large file", 300),
    commands.read_file("windows", rf"{HP}\a.txt"),
    commands.write_file("windows", rf"{HP}\b.txt", "first-line"),
    commands.write_file("windows", rf"{HP}\b.txt", "second-line", append=True),
    commands.read_file("windows", rf"{HP}\b.txt"),
    commands.read_file("windows", rf"{HP}\no.txt"),
    commands.write_file("windows", rf"{HP}\no\b.txt", "nowhere"),
    commands.write_lines(rf"{HP}\no\a.txt", "nowhere", 3),
    ["cmd", "/c", rf"type {HP}\b.txt & type {HP}\no.txt & type {HP}\b.txt"],
    commands.list_folder(HP),
    commands.list_folder(rf"{HP}\a.txt"),
    commands.list_folder(rf"{HP}\below"),
    commands.list_folder(rf"{HP}\no"),
    ["cmd", "/c", "if", "exist", HP, "exit", "1"],
    ["cmd", "/c", "del", "/q", rf"{HP}\a.txt"],
    ["cmd", "/c", "if", "exist", rf"{HP}\a.txt", "exit", "1"],
    ["cmd", "/c", "rmdir", HP],
    commands.remove_folder(HP),
    commands.remove_folder(HP),
    ["cmd", "/c", "if", "exist", HP, "exit", "1"],
]


ENDS_WITH_0 = [FILES[8], FILES[9], FILES[18], FILES[20]]
"""Where wine's cmd only complains, and Windows has an exit code as well."""


async def test_files(wine: Ground, model: Container) -> None:
    """Each line does the same to the files, prints the same, and fails where the model's fails."""
    different, other_codes = [], []
    for words in FILES:
        real, mine = foreign(wine, words), await ours(model, words)
        one, other = (
            (commands.lines(each.stdout), each.exit_code != 0 or bool(each.stderr.strip())) for each in (real, mine)
        )
        if one != other:
            different.append((words, one, other))
        if real.exit_code != mine.exit_code:
            other_codes.append(words)
            assert real.exit_code == 0
    assert different == []
    assert other_codes == ENDS_WITH_0


async def test_several_files(wine: Ground, model: Container) -> None:
    """Of several files each is read whole: long ones, empty ones, and ones that are not there."""
    folder = r"C:\several"
    large, small, missing = (rf"{folder}\{name}" for name in ("large", "small", "missing"))
    for words in (
        commands.make_folder(folder),
        commands.write_lines(large, "text", 200),
        commands.write_file("windows", small, "one"),
    ):
        assert foreign(wine, words).exit_code == (await ours(model, words)).exit_code == 0
    words = commands.show_files([missing, large, small])
    real, mine = (commands.read_shown(each.stdout) for each in (foreign(wine, words), await ours(model, words)))
    assert real == mine == {missing: [], large: commands.numbered("text", 200), small: ["one"]}


async def test_looking_into_a_folder(wine: Ground, model: Container) -> None:
    for path, listed in ((r"C:\windows", True), (r"C:\not there", False)):
        real, mine = foreign(wine, look_into(path)), await ours(model, look_into(path))
        assert (real.exit_code == 0) == (mine.exit_code == 0) == listed
        assert bool(commands.lines(real.stdout)) == bool(commands.lines(mine.stdout))


@pytest.mark.parametrize(
    ("address", "word"),
    [
        (f"{ADDRESS}:8080", ""),
        (f"{ADDRESS}:1", "OTHER:"),
        ("no-such-name.invalid:80", "DNS:"),
        (f"{SILENT}:80", "TIMEOUT"),
    ],
)
async def test_connect(wine: Ground, model: Container, server: int, address: str, word: str) -> None:
    model.spawn(["/agnhost", "netexec"])
    await asyncio.sleep(0)
    words = commands.connect(address)
    real, mine = foreign(wine, words), await ours(model, words)
    assert real.exit_code == mine.exit_code == bool(word)
    assert commands.name_error(real.stderr) == commands.name_error(mine.stderr) == (word == "DNS:")
    assert (real.stderr.decode().split() or [""])[0] == (mine.stderr.decode().split() or [""])[0] == word


async def test_network_settings(wine: Ground, model: Container) -> None:
    """What a runtime writes to registry and files of a container is printed in the same form."""
    key = r"HKLM\System\CurrentControlSet\Services\Tcpip\Parameters\Interfaces\{1}"
    assert wine.run(["reg", "add", key, "/v", "SearchList", "/d", ",".join(SEARCHES), "/f"]).code == 0
    (wine.c_drive.parents[1] / "etc/resolv.conf").write_text("".join(f"nameserver {one}\n" for one in NAMESERVERS))
    hosts = "192.0.2.9 alias1.opready.test alias2.opready.test\r\n"
    wine.put(r"C:\windows\system32\drivers\etc\hosts", hosts)
    model.files.write(r"C:\Windows\System32\drivers\etc\hosts", hosts.encode())
    for subcommand in ("dns-server-list", "dns-suffix", "etc-hosts"):
        real, mine = foreign(wine, ["/agnhost", subcommand]), await ours(model, ["/agnhost", subcommand])
        assert (subcommand, real.exit_code, commands.lines(real.stdout)) == (
            subcommand,
            mine.exit_code,
            commands.lines(mine.stdout),
        )


@pytest.fixture(scope="module")
def server(wine: Ground) -> Iterator[int]:
    """A real netexec. Without its UDP port, which wine does not open."""
    with running(wine, ["/agnhost", "netexec", "--http-port=8080", "--udp-port=-1"], port=8080):
        yield 8080


ASKS = [
    Ask(ADDRESS, 8080, 3),
    Ask(ADDRESS, 8080, 2, body=commands.BODY),
    Ask(ADDRESS, 8080, body=commands.BODY, back=False),
    Ask("::1", 8080, 2),
    Ask(ADDRESS, 1, 2),
    Ask("no-such-name.invalid", 80, 2),
]


async def test_netexec(wine: Ground, model: Container, server: int) -> None:
    model.spawn(["/agnhost", "netexec"])
    await asyncio.sleep(0)
    words = commands.dial_all("windows", ASKS)
    real = commands.read_dials(curl(wine, words).stdout, ASKS)
    mine = commands.read_dials((await ours(model, words)).stdout, ASKS)
    assert [each.answers for each in real] == [each.answers for each in mine]
    assert [each.answers for each in real][:3] == [["windows-1"] * 3, ["x" * commands.BODY] * 2, ["windows-1"]]
    assert [(len(each.errors), each.understood, each.tried) for each in real] == [
        (len(each.errors), each.understood, each.tried) for each in mine
    ]


async def test_names(wine: Ground, model: Container, server: int) -> None:
    """The same words of netexec lead our reader to the same judgement of a name."""
    model.spawn(["/agnhost", "netexec"])
    await asyncio.sleep(0)
    targets = [
        Target(ADDRESS, 8080, ("windows-1",)),
        Target(ADDRESS, 8080, ("somebody-else",)),
        Target(ADDRESS, 1, ("windows-1",)),
        Target("no-such-name.invalid", 80, ("windows-1",)),
        Target("no-such-name.invalid", 80, absent=True),
    ]
    words = look_up("windows", targets)
    real = read_look_up(targets, curl(wine, words))
    mine = read_look_up(targets, await ours(model, words))
    assert [answer.led for answer in real] == [answer.led for answer in mine]
    assert len({answer.led for answer in real}) == 4


async def test_netexec_is_not_healthy_without_datagrams(wine: Ground, model: Container, server: int) -> None:
    """Why the servers of a run keep their UDP port, which nobody may need."""
    model.spawn(["/agnhost", "netexec", "--udp-port=-1"])
    await asyncio.sleep(0)
    words = ["curl.exe", "-s", "-w", "%{http_code}", "http://127.0.0.1:8080/healthz"]
    real, mine = curl(wine, words), await ours(model, words)
    assert real.stdout[-3:] == mine.stdout[-3:] == b"412"


async def test_netexec_ends_when_it_is_told_to(wine: Ground, model: Container) -> None:
    words = commands.fetch("windows", "http://127.0.0.1:8090/exit?code=1")
    with running(wine, ["/agnhost", "netexec", "--http-port=8090", "--udp-port=-1"], port=8090) as process:
        real = curl(wine, words)
        assert process.wait(60) == 1
    served = model.spawn(["/agnhost", "netexec", "--http-port=8090"])
    model.main = None
    await asyncio.sleep(0)
    mine = await ours(model, words)
    assert await served.wait() == 1
    assert real.exit_code == mine.exit_code


async def test_pause(wine: Ground, model: Container) -> None:
    with running(wine, ["/agnhost", "pause"]) as process:
        assert process.stdout is not None
        assert process.stdout.readline().strip() == b"Paused"
        assert process.poll() is None


async def test_porter(wine: Ground) -> None:
    """A server on a node: the program is copied to a folder of its own and told by its environment what to say."""
    folder = rf"{MOUNT_POINT}\winready"
    program = rf"{folder}\agnhost.exe"
    words = ["cmd", "/c", "mkdir", folder, "&&", "copy", rf"{MOUNT_POINT}\agnhost", program, "&&", program, "porter"]
    wine.put(r"C:\hpc\agnhost", wine.path(r"C:\agnhost"))
    env = {"CONTAINER_SANDBOX_MOUNT_POINT": r"C:\hpc", "SERVE_PORT_20001": "host-1"}
    with running(wine, words, port=20001, env=env):
        said = curl(wine, commands.fetch("windows", "http://127.0.0.1:20001/hostname"))
        assert said.stdout == b"host-1"


async def test_who_am_i(wine: Ground, model: Container) -> None:
    real, mine = read_names(foreign(wine, ASK)), read_names(await ours(model, ASK))
    assert len(real) == len(mine) == 2
    for seen in (real, mine):
        assert len({name.lower() for name in seen.values()}) == 1
        assert "" not in seen.values()


async def test_tickets(wine: Ground, model: Container) -> None:
    real, mine = foreign(wine, ASK_FOR_TICKET), await ours(model, ASK_FOR_TICKET)
    assert CLIENT.findall(real.stdout.decode()) == CLIENT.findall(mine.stdout.decode()) == []


LACKS = [
    ["curl.exe", "--version"],
    ["dig"],
    ["nltest", "/query"],
    ["cmd", "/c", "dir", r"\\127.0.0.1\share"],
]


@pytest.mark.parametrize("words", LACKS, ids=" ".join)
def test_wine_lacks_it_still(wine: Ground, words: list[str]) -> None:
    assert foreign(wine, words).exit_code != 0


def test_wine_says_less_than_windows_still(wine: Ground, server: int) -> None:
    shown = foreign(wine, ["netstat.exe", "-ano"])
    assert asyncio.run(listeners(pod_that_says(shown))) == set()
    assert b"The syntax of this command" in foreign(wine, ["cmd", "/c", "net", "localgroup", "some", "/add"]).stdout
    assert b"[Version" not in foreign(wine, commands.system_version("windows")).stdout
    silent = foreign(wine, commands.powershell("Write-Output here"))
    assert silent == Execution(0, b"", silent.stderr)


def test_wine_opens_no_port_for_datagrams_still(wine: Ground, server: int) -> None:
    ask = Ask(ADDRESS, 8081, protocol="udp")
    (real,) = commands.read_dials(curl(wine, commands.dial_all("windows", [ask])).stdout, [ask])
    assert real.answers == []
    assert real.errors
