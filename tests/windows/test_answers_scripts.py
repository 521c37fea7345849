"""A real PowerShell runs scripts of our checks for Windows containers; our readers make the same of both answers."""

from __future__ import annotations

import pytest

from sandbox.helpers.containers import container
from windows.ground import Ground, Result
from windows.judges import ours
from winready.checks.extend_activedirectory.run_as_user import STARTED
from winready.cluster import commands
from winready_sandbox.machine.container import Container

pytestmark = pytest.mark.windows_programs
CONTENT = bytes(range(256)) * 16


@pytest.fixture
async def model() -> Container:
    return container(user="ContainerAdministrator")


def _real(machine: Ground, words: list[str]) -> Result:
    """PowerShell itself is the newer one, and needs a terminal: only the script can be the same."""
    assert words[:4] == commands.powershell("")[:4]
    (result,) = machine.powershell(words[4])
    return result


async def test_digests(machine: Ground, model: Container) -> None:
    path = r"C:\binary"
    machine.put(path, CONTENT)
    model.files.write(path, CONTENT)
    words = commands.hash_files([path, path])
    real, mine = _real(machine, words), await ours(model, words)
    assert commands.lines(real.out.encode()) == commands.lines(mine.stdout)
    assert len(commands.lines(mine.stdout)) == 2


async def test_memory(machine: Ground, model: Container) -> None:
    words = commands.fill_memory(3, 2, 0)
    real, mine = _real(machine, words), await ours(model, words)
    assert commands.read_blocks(real.out.encode()) == commands.read_blocks(mine.stdout) == [3, 3]
    assert real.code == mine.exit_code == 0


async def test_burning_until_told_to_stop(machine: Ground, model: Container) -> None:
    machine.put(r"C:\stop", "stop")
    model.files.write(r"C:\stop", b"stop")
    words = commands.burn_cpu(r"C:\stop")
    assert _real(machine, words).code == (await ours(model, words)).exit_code == 0


async def test_who_was_started(machine: Ground, model: Container) -> None:
    words = commands.powershell(f"Write-Output ('{STARTED}' + $env:USERNAME)")
    real, mine = _real(machine, words), await ours(model, words)
    for out in (real.out.encode(), mine.stdout):
        (line,) = commands.lines(out)
        assert line.startswith(STARTED)
        assert line.removeprefix(STARTED)
