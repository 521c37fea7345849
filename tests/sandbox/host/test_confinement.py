"""What bubblewrap is told, who a container is, and how files from API objects are written."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest

from winready_sandbox.host import volumes
from winready_sandbox.host.confinement import Confinement, Mount
from winready_sandbox.host.users import Account, account
from winready_sandbox.nodes.environment import ConfigError
from winready_sandbox.nodes.volumes.content import Entry


def confinement(root: Path, *mounts: Mount, read_only: bool = True) -> Confinement:
    return Confinement(root, read_only, mounts, Account(1000, 3000), "a", "", {"PATH": "/bin", "SECRET": "s"})


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in ("bin", "tmp", "etc"):
        (tmp_path / "root" / name).mkdir(parents=True)
    tool = tmp_path / "root" / "bin" / "tool"
    tool.write_text("x")
    tool.chmod(0o755)
    (tmp_path / "root" / "etc" / "passwd").write_text("root:x:0:0::/:\nworker:x:1000:3000::/:\nbroken\n:x::\n")
    return tmp_path / "root"


def test_a_read_only_root_has_room_for_places_that_the_image_does_not_have(root: Path, tmp_path: Path) -> None:
    words = confinement(root, Mount(tmp_path, "/tmp/results")).arguments(str)
    assert words[:2] == ["--tmpfs", "/"]
    pairs = list(itertools.pairwise(words))
    assert ("--ro-bind", str(root / "bin")) in pairs
    assert ("--dir", "/tmp") in pairs
    assert ("--remount-ro", "/") in pairs
    assert words.index("--remount-ro") > words.index("/tmp/results")
    assert ("--bind", str(root / "bin")) not in pairs


def test_every_container_is_apart_and_has_no_environment_but_its_own(root: Path) -> None:
    words = confinement(root).arguments(str)
    for word in (
        "--unshare-user",
        "--unshare-pid",
        "--unshare-ipc",
        "--unshare-uts",
        "--die-with-parent",
        "--clearenv",
    ):
        assert word in words
    assert words[words.index("--uid") + 1] == "1000"


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["tool"], ""),
        (["/bin/tool", "x"], ""),
        (["nothing"], 'exec: "nothing": executable file not found in $PATH'),
        (["/bin/nothing"], 'exec: "/bin/nothing": stat /bin/nothing: no such file or directory'),
        (["/etc/passwd"], 'exec: "/etc/passwd": permission denied'),
        ([], "no command specified"),
    ],
)
def test_a_command_that_cannot_be_started_is_named(root: Path, argv: list[str], said: str) -> None:
    assert confinement(root).missing_program(argv) == said


def test_a_command_may_be_in_a_volume(root: Path, tmp_path: Path) -> None:
    (tmp_path / "v").mkdir()
    (tmp_path / "v" / "made").touch(0o755)
    assert confinement(root, Mount(tmp_path / "v", "/v")).missing_program(["/v/made"]) == ""


def pod(**context: Any) -> dict[str, Any]:
    return {"metadata": {"name": "p", "namespace": "n", "uid": "u"}, "spec": {"securityContext": context}}


@pytest.mark.parametrize(
    ("context", "image", "who"),
    [
        ({}, "", Account(0, 0)),
        ({}, "worker", Account(1000, 3000)),
        ({}, "5:6", Account(5, 6)),
        ({"runAsUser": 1000}, "5", Account(1000, 3000)),
        ({"runAsUser": 9, "runAsGroup": 8, "fsGroup": 7, "supplementalGroups": [7, 6]}, "", Account(9, 8, (7, 6))),
    ],
)
def test_who_a_container_is(root: Path, context: dict[str, Any], image: str, who: Account) -> None:
    assert account(pod(**context), {"name": "c"}, image, root) == who


def test_whom_the_image_does_not_know_is_named(root: Path) -> None:
    with pytest.raises(ConfigError, match="unable to find user ghost: no matching entries in passwd file"):
        account(pod(), {"name": "c"}, "ghost", root)
    with pytest.raises(ConfigError, match="container has runAsNonRoot and image will run as root"):
        account(pod(runAsNonRoot=True), {"name": "c"}, "", root)


def test_files_of_a_volume_change_in_one_step(tmp_path: Path) -> None:
    volumes.write(tmp_path, {"a": Entry(b"1", 0o640), "deep/b": Entry(b"2", 0o644)})
    first = (tmp_path / "..data").resolve()
    assert ((tmp_path / "a").read_bytes(), (tmp_path / "deep" / "b").read_bytes()) == (b"1", b"2")
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o640
    volumes.write(tmp_path, {"a": Entry(b"3", 0o644)})
    assert (tmp_path / "a").read_bytes() == b"3"
    assert not (tmp_path / "deep").exists()
    assert not first.exists()
    volumes.write(tmp_path, {})
    assert [path.name for path in tmp_path.iterdir() if not path.name.startswith("..")] == []
