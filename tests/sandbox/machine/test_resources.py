"""CPU and memory: limits as job objects and cgroups enforce them."""

from __future__ import annotations

import asyncio

import pytest

from sandbox.helpers.containers import container, machine, powershell, run, sh, until
from winready_sandbox.machine.machine import MachineDefects
from winready_sandbox.machine.resources import MEBIBYTE, cpu_cap

_GROW = "$n=0; try { while ($n -lt 128) { $keep += ,(New-Object byte[] 8MB); $n++ } } catch { 'refused' }; $n"


def test_fact_1_8_a_windows_limit_is_a_share_of_all_cores_and_overshoots_a_little() -> None:
    assert 0.5 < cpu_cap("windows", 0.5, 4) <= 0.6
    assert cpu_cap("linux", 0.5, 4) == 0.5
    assert cpu_cap("windows", 0.0001, 64) > 0
    assert cpu_cap("windows", None, 4) == 4


async def test_usage_stays_at_the_limit_however_much_is_asked_for() -> None:
    where = container(cpu_limit=0.5)
    burning = where.spawn(["powershell.exe", "-NoProfile", "-Command", "while($true){}"])
    await until(lambda: where.cpu.rate > 0)
    assert 0.5 <= where.cpu.rate <= 0.6
    await burning.kill()
    assert where.cpu.demand == 0


@pytest.mark.virtual_time
async def test_containers_share_a_busy_machine() -> None:
    host = machine(cores=2)
    one, two = container(on=host), container(on=host)
    for each in (one, two):
        each.cpu.ask(2)
    assert one.cpu.rate == two.cpu.rate == 1.0
    before = one.cpu.core_nanoseconds()
    await asyncio.sleep(10)
    assert one.cpu.core_nanoseconds() - before == pytest.approx(10e9), "in seconds of the wall, as meters count"


async def test_fact_1_8_a_cap_holds_on_a_busy_machine_and_what_is_left_goes_to_the_others() -> None:
    host = machine(cores=4)
    host.defects.busy = 6.0
    capped, free = container(on=host, cpu_limit=0.25), container(on=host)
    for each in (capped, free):
        each.cpu.ask(1)
    assert capped.cpu.rate == pytest.approx(0.275), "its cap and a little more"
    assert free.cpu.rate == pytest.approx((4 - 0.275) / 7)


async def test_a_weight_is_a_share_on_a_busy_machine_and_nothing_on_an_idle_one() -> None:
    host = machine(cores=4)
    host.defects.cpu_limit_is_weight = True
    weighted, free = container(on=host, cpu_limit=0.5), container(on=host)
    for each in (weighted, free):
        each.cpu.ask(1)
    assert weighted.cpu.rate == free.cpu.rate == 1.0
    host.defects.busy = 6.0
    free.cpu.ask(0)
    assert weighted.cpu.rate == pytest.approx(free.cpu.rate / 2)


async def test_fact_1_8_windows_refuses_memory_at_the_commit_limit_and_the_process_lives_on() -> None:
    where = container(memory_limit=512 * MEBIBYTE)
    answer = await powershell(where, _GROW)
    refused, count = answer.lines
    assert refused == "refused"
    assert 0.6 * 512 <= int(count) * 8 <= 0.95 * 512
    assert not where.oom_killed
    assert where.memory.peak <= 512 * MEBIBYTE
    assert where.memory.used < 100 * MEBIBYTE


async def test_without_a_limit_the_same_script_gets_all_it_asks_for() -> None:
    assert (await powershell(container(), _GROW)).lines == ["128"]


async def test_a_machine_that_ignores_limits_gives_more() -> None:
    host = machine()
    host.defects = MachineDefects(cpu_limit_ignored=True, memory_limit_ignored=True)
    where = container(on=host, memory_limit=512 * MEBIBYTE, cpu_limit=0.5)
    assert (await powershell(where, _GROW)).lines == ["128"]
    assert where.cpu.cap == host.cores


async def test_linux_kills_the_container_that_takes_too_much() -> None:
    where = container("busybox", "linux", memory_limit=64 * MEBIBYTE)
    main = where.spawn(["sleep", "600"])
    with pytest.raises(Exception, match="137"):
        main.allocate(100 * MEBIBYTE)
    await main.kill(137)
    assert where.oom_killed


async def test_an_endless_loop_of_a_shell_lets_the_sandbox_live() -> None:
    where = container()
    loops = [
        where.spawn(["cmd", "/c", "for /L %i in (0,0,1) do @ver>nul"]),
        where.spawn(["/bin/sh", "-c", "while true; do true; done"]),
    ]
    assert (await sh(where, "echo still here")).out == "still here\n"
    for loop in loops:
        await loop.kill()


async def test_testlimit_takes_what_it_is_told_to() -> None:
    where = container("resource-consumer")
    before = where.memory.used
    process = where.spawn(["/bin/testlimit.exe", "-accepteula", "-d", "100Mb", "-e", "1", "-c", "3"])
    await until(lambda: where.memory.used >= before + 300 * MEBIBYTE)
    await process.kill()
    assert where.memory.used == before


async def test_linux_sees_its_own_limits() -> None:
    where = container("busybox", "linux", cpu_limit=0.5, memory_limit=64 * MEBIBYTE)
    answer = await run(where, "cat", "/sys/fs/cgroup/cpu.max", "/sys/fs/cgroup/memory.max")
    assert answer.lines == ["50000 100000", str(64 * MEBIBYTE)]
