"""The files of a release, installed in the ways that users do. ``tools/release.py`` makes them and says where."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import wheels

ROOT = Path(__file__).resolve().parents[2]
PLAIN = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}
Result = subprocess.CompletedProcess[str]


@pytest.fixture(scope="session")
def dist() -> Path:
    """The folder of the release."""
    return Path(os.environ["WINREADY_DIST"])


@pytest.fixture(scope="session")
def wheel(dist: Path) -> Path:
    (found,) = dist.glob("winready-*-py3-none-any.whl")
    return found


@pytest.fixture(scope="session")
def version(wheel: Path) -> str:
    return wheel.name.split("-")[1]


@pytest.fixture(scope="session")
def offline(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment in which pip has the locked wheels and no index."""
    house = tmp_path_factory.mktemp("wheelhouse")
    for file in wheels.kept(wheels.here(), building=True):
        shutil.copy(file, house)
    return {
        **PLAIN,
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(house),
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PIP_CONFIG_FILE": os.devnull,
    }


@pytest.fixture(scope="session")
def trial(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of locks/trial.txt, from the package index; their folder."""
    place = tmp_path_factory.mktemp("trial") / "venv"
    uv = Path(sys.executable).with_name("uv")
    subprocess.run([uv, "venv", "--quiet", "--python", sys.executable, place], check=True)
    command = [str(uv), "pip", "install", "--quiet", "--python", str(place / "bin" / "python")]
    subprocess.run([*command, "--require-hashes", "-r", str(ROOT / "locks" / "trial.txt")], check=True)
    return place / "bin"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """An empty home."""
    place = tmp_path / "home"
    place.mkdir(mode=0o700)
    return place


Call = Callable[..., Result]


@pytest.fixture
def call(home: Path, tmp_path: Path) -> Call:
    """Runs a program with an empty home in an empty folder."""
    here = tmp_path / "here"
    here.mkdir()

    def run(*command: str | Path, code: int | None = 0, cwd: Path = here, env: dict[str, str] | None = None) -> Result:
        environment = {**(env or PLAIN), "HOME": str(home)}
        result = subprocess.run(
            [str(word) for word in command],
            cwd=cwd,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        assert code is None or result.returncode == code, result.stdout + result.stderr
        return result

    return run


def pythons() -> dict[str, Path]:
    """Interpreters of this machine by version, the one that runs this included."""
    found: dict[str, Path] = {}
    places = [Path(entry) for entry in os.environ["PATH"].split(os.pathsep)]
    places += sorted(Path.home().glob(".pyenv/versions/*/bin"))
    for place in places:
        for path in sorted(place.glob("python[23].*")):
            if re.fullmatch(r"python\d\.\d+", path.name) and path.name not in found:
                asked = subprocess.run([path, "--version"], capture_output=True, text=True, check=False)
                if asked.returncode == 0:
                    found[path.name] = path
    own = "python{}.{}".format(*sys.version_info[:2])
    return {**found, own: Path(sys.executable).resolve()}
