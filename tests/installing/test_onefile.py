"""One file and a Python: everything works, and nothing is run from or written to where it should not be."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from installing.conftest import PLAIN, ROOT, Call, pythons

PYTHONS = pythons()
SUITED = {
    name: path for name, path in PYTHONS.items() if name in ("python3.11", "python3.12", "python3.13", "python3.14")
}
OLDER = {name: path for name, path in PYTHONS.items() if name not in SUITED}
TRAPS = ("msgspec", "zipfile", "zlib", "hashlib", "__future__", "winready", "winready_start", "winready_contents")


@pytest.fixture(scope="session")
def program(dist: Path, version: str) -> Path:
    found = dist / f"winready-{version}-linux-{os.uname().machine}.pyz"
    if sys.platform != "linux" or not found.exists():
        pytest.skip(f"there is no file for {sys.platform} on {os.uname().machine} that this machine could run")
    return found


@pytest.fixture
def cache(home: Path) -> Path:
    return home / ".cache" / "winready" / "one-file"


@pytest.mark.parametrize("name", SUITED)
def test_it_runs_with_every_python_that_is_here(name: str, program: Path, call: Call, version: str, home: Path) -> None:
    said = call(SUITED[name], program, "--version")
    assert (said.stdout, said.stderr) == (f"winready {version}\n", "")
    assert call(SUITED[name], program, "lint", ROOT / "examples" / "aspnet-web").stdout.startswith("0 errors")
    assert [path.name for path in home.iterdir()] == [".cache"]


def test_a_whole_run_from_a_folder_that_is_read_only_and_full_of_traps(
    program: Path, call: Call, tmp_path: Path, home: Path
) -> None:
    here = tmp_path / "traps"
    here.mkdir()
    for trap in TRAPS:
        (here / f"{trap}.py").write_text(f"open({str(tmp_path / 'sprung')!r}, 'a').write({trap + ' '!r})\n")
    here.chmod(0o555)
    words = ("run", "--sandbox", "--requirement", "N1", "--report-dir", tmp_path / "runs")
    assert "\nPass (partial: 1 of 24" in call(program, *words, cwd=here, env=own({"PYTHONPATH": "."})).stdout
    assert not (tmp_path / "sprung").exists()
    assert {path.name for path in here.iterdir()} == {f"{trap}.py" for trap in TRAPS}
    # Called this way, Python itself looks there before anybody can tell it not to.
    call(SUITED[this()], "-c", "", cwd=here, env={**PLAIN, "PYTHONPATH": "."})
    before = (tmp_path / "sprung").read_text() if (tmp_path / "sprung").exists() else ""
    call(SUITED[this()], program, "spec", "list", cwd=here, env={**PLAIN, "PYTHONPATH": "."})
    assert (tmp_path / "sprung").exists() == bool(before)
    assert not before or (tmp_path / "sprung").read_text() == before * 2
    assert [path.name for path in home.iterdir()] == [".cache"]


def this() -> str:
    return "python{}.{}".format(*sys.version_info[:2])


def own(more: dict[str, str] | None = None) -> dict[str, str]:
    """An environment in which the file finds the Python that runs this."""
    return {**PLAIN, "WINREADY_PYTHON": str(SUITED[this()]), **(more or {})}


def test_what_it_starts_finds_it_and_strangers_programs_are_told_nothing(
    program: Path, call: Call, tmp_path: Path
) -> None:
    sandbox = ("--name", f"one-file-{os.getpid()}")
    call(program, "sandbox", "up", "--detach", *sandbox, env=own())
    assert call(program, "sandbox", "down", *sandbox, env=own()).stdout.startswith("Stopped: ")
    plugin = tmp_path / "plugin"
    plugin.write_text(f"#!/bin/sh\nenv > {tmp_path / 'seen'}\nexit 1\n")
    plugin.chmod(0o755)
    config = tmp_path / "kubeconfig"
    config.write_text(
        "apiVersion: v1\nkind: Config\ncurrent-context: c\n"
        "clusters: [{name: c, cluster: {server: 'https://127.0.0.1:9'}}]\n"
        "contexts: [{name: c, context: {cluster: c, user: u}}]\n"
        "users: [{name: u, user: {exec: {apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never, "
        f"command: '{plugin}'}}}}}}]\n"
    )
    call(program, "plan", "--kubeconfig", config, code=None, env=own())
    assert "PYTHON" not in (tmp_path / "seen").read_text().replace("WINREADY_PYTHON", "")


def test_the_cache_is_the_users_alone_and_kept(program: Path, call: Call, cache: Path) -> None:
    call(program, "--version", env=own())
    (place,) = [path for path in cache.iterdir() if path.is_dir()]
    assert [stat.S_IMODE(path.stat().st_mode) for path in (cache.parent, cache, place)] == [0o700] * 3
    mark = place / "mark"
    mark.touch()
    call(program, "--version", env=own())
    assert mark.exists()
    assert not list(cache.glob(".new-*"))


def test_it_can_be_started_many_times_at_once(program: Path, home: Path, cache: Path, version: str) -> None:
    environment = {**own(), "HOME": str(home)}
    running = [subprocess.Popen([program, "--version"], env=environment, stdout=subprocess.PIPE) for _ in range(6)]
    assert {process.communicate()[0].decode() for process in running} == {f"winready {version}\n"}
    assert {process.returncode for process in running} == {0}
    assert len([path for path in cache.iterdir() if path.is_dir()]) == 1


def test_what_a_killed_start_left_is_removed(program: Path, call: Call, cache: Path) -> None:
    (cache / ".new-abc" / "lib").mkdir(parents=True)
    for folder in (cache, cache.parent, cache.parent.parent):
        folder.chmod(0o700)
    call(program, "--version", env=own())
    assert not list(cache.glob(".new-*"))


def hostile_link(cache: Path) -> None:
    elsewhere = cache.parents[2] / "elsewhere"
    elsewhere.mkdir()
    cache.symlink_to(elsewhere)


def hostile_mode(cache: Path) -> None:
    cache.mkdir()
    cache.chmod(0o777)


def hostile_way(cache: Path) -> None:
    cache.mkdir(0o700)
    cache.parent.chmod(0o777)


def hostile_owner(cache: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can make a folder of somebody else")
    cache.mkdir()
    os.chown(cache, 12345, 12345)


def hostile_file(cache: Path) -> None:
    cache.touch()


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (hostile_link, "one-file is not a folder: nothing is run from there"),
        (hostile_mode, "others can write to"),
        (hostile_way, "others can write to"),
        (hostile_owner, "one-file belongs to another user (uid 12345): nothing is run from there"),
        (hostile_file, "cannot unpack itself: File exists"),
    ],
)
def test_a_cache_that_others_made_is_refused(make: object, said: str, program: Path, call: Call, cache: Path) -> None:
    cache.parent.mkdir(parents=True, mode=0o700)
    assert callable(make)
    make(cache)
    result = call(program, "--version", code=None, env=own())
    assert result.returncode in (2, 3)
    assert said in result.stderr
    assert result.stderr.startswith("error: ")
    assert "Traceback" not in result.stderr
    assert result.stdout == ""


def test_an_environment_that_somebody_else_put_there_is_refused(program: Path, call: Call, cache: Path) -> None:
    call(program, "--version", env=own())
    (place,) = [path for path in cache.iterdir() if path.is_dir()]
    place.chmod(0o757)
    result = call(program, "--version", code=2, env=own())
    assert f"others can write to {place}" in result.stderr


def test_a_home_that_cannot_be_written_is_told(program: Path, call: Call, home: Path) -> None:
    (home / ".cache").touch()
    result = call(program, "--version", code=3, env=own())
    assert result.stderr.startswith("error: winready cannot unpack itself: ")
    assert "set XDG_CACHE_HOME to a folder of yours" in result.stderr
    assert call(program, "--version", env=own({"XDG_CACHE_HOME": str(home / "other")})).stdout


@pytest.mark.skipif(not Path("/dev/shm").is_dir() or os.geteuid() != 0, reason="mounting a small disk needs root")
def test_a_full_disk_leaves_nothing_half_made(program: Path, call: Call, tmp_path: Path) -> None:
    script = f"mount -t tmpfs -o size=2m,mode=700 none {tmp_path / 'small'} && {program} --version; "
    script += f"echo $?; ls -A {tmp_path / 'small'}/winready/one-file"
    (tmp_path / "small").mkdir()
    unshare = shutil.which("unshare")
    if not unshare or subprocess.run([unshare, "-m", "true"], capture_output=True, check=False).returncode:
        pytest.skip("this machine does not let a test mount a disk of its own")
    environment = own({"XDG_CACHE_HOME": str(tmp_path / "small")})
    result = call(unshare, "-m", "sh", "-c", script, code=None, env=environment)
    assert result.stdout == "3\n.lock\n" or result.stdout.split() == ["3"], result.stdout + result.stderr
    assert "error: winready cannot unpack itself: No space left on device" in result.stderr


def test_a_file_that_was_cut_off_says_so(program: Path, call: Call, tmp_path: Path) -> None:
    cut = tmp_path / "cut.pyz"
    cut.write_bytes(program.read_bytes()[:1_000_000])
    cut.chmod(0o755)
    assert "is not whole; get it again" in call(cut, "--version", code=2).stderr


def test_a_file_that_was_changed_says_so(program: Path, call: Call, tmp_path: Path, cache: Path) -> None:
    content = bytearray(program.read_bytes())
    content[content.index(b"wheels/aiohttp-") + 2000] ^= 1
    changed = tmp_path / "changed.pyz"
    changed.write_bytes(content)
    changed.chmod(0o755)
    assert "is damaged" in call(changed, "--version", code=2, env=own()).stderr
    assert [path.name for path in cache.iterdir()] == [".lock"]


@pytest.mark.parametrize("name", OLDER)
def test_a_python_that_is_too_old_is_told_in_a_sentence(name: str, program: Path, call: Call) -> None:
    result = call(OLDER[name], program, "--version", code=2)
    assert result.stderr.startswith(f"error: winready needs Python 3.11, 3.12, 3.13 or 3.14, and this is {name[6:]}: ")
    assert len(result.stderr.splitlines()) == 1


def test_without_any_python_that_suits_it_says_what_to_do(program: Path, call: Call, tmp_path: Path) -> None:
    old = tmp_path / "bin" / "python3"
    old.parent.mkdir()
    old.write_text("#!/bin/sh\nexit 1\n")
    old.chmod(0o755)
    (tmp_path / "bin" / "wc").symlink_to(shutil.which("wc") or "/usr/bin/wc")
    result = call("/bin/sh", program, "--version", code=2, env={"PATH": str(tmp_path / "bin")})
    assert result.stderr.startswith("error: winready needs Python 3.11, 3.12, 3.13 or 3.14, and none of these is one: ")
    assert "WINREADY_PYTHON=/path/to/python" in result.stderr


def test_the_file_of_another_platform_says_so(dist: Path, version: str, call: Call) -> None:
    for other in ("macos-arm64", "windows-amd64"):
        result = call(SUITED[this()], dist / f"winready-{version}-{other}.pyz", "--version", code=2)
        assert f"this file is winready for {other}, and " in result.stderr
