"""Real programs: what is missing and cannot be built is named, with the place where it is looked for."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import real_programs


def test_a_program_that_cannot_be_built_is_named_before_anything_is_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WINREADY_CACHE", str(tmp_path))
    monkeypatch.setattr(real_programs, "go", lambda *_, **__: pytest.fail("something is built"))
    place = tmp_path / "kubernetes" / "v1.36.3" / "bin" / "gmsa-webhook"
    with pytest.raises(real_programs.BuildError, match=r"gmsa-webhook is not there and cannot be built: .*; put it at"):
        real_programs.ensure("1.36.3", ["etcd", "gmsa-webhook"])
    place.parent.mkdir(parents=True)
    place.touch()
    assert real_programs.ensure("1.36.3", ["gmsa-webhook"]) == place.parent


def test_the_command_says_so_and_fails(tmp_path: Path) -> None:
    command = [sys.executable, real_programs.__file__, "gmsa-webhook"]
    environment = {"WINREADY_CACHE": str(tmp_path), "PATH": "/usr/bin:/bin"}
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 1
    assert result.stdout == ""
    assert result.stderr.startswith("error: gmsa-webhook is not there")
    assert str(tmp_path) in result.stderr


class Go:
    """What the Go tool was asked for; it makes an empty program of each build."""

    def __init__(self) -> None:
        self.built: list[tuple[str, str, dict[str, str]]] = []
        """Scratch module, package, environment."""
        self.fails = ""

    def __call__(self, *words: str, cwd: Path, env: dict[str, str] | None = None) -> str:
        if words[:2] == ("mod", "download"):
            module = cwd / "upstream"
            module.mkdir(exist_ok=True)
            (module / "go.mod").write_text("go 1.26\nk8s.io/api => ./staging/src/k8s.io/api\n")
            (module / "go.sum").write_text("")
            return json.dumps({"Dir": str(module)})
        if words[0] == "build":
            if words[-1] == self.fails:
                raise real_programs.BuildError(words[-1])
            target = Path(words[words.index("-o") + 1])
            target.parent.mkdir(parents=True, exist_ok=True)
            target.touch()
            self.built.append((cwd.name, words[-1], env or {}))
        return ""


@pytest.fixture
def go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Go:
    tool = Go()
    monkeypatch.setenv("WINREADY_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(real_programs, "go", tool)
    monkeypatch.setattr(real_programs, "need_go", lambda purpose: None)
    return tool


def test_the_name_of_a_program_tells_the_system_it_is_built_for(go: Go) -> None:
    programs = ["kubectl", "kubeadm", "kubeadm.exe", "host-local.exe"]
    folder = real_programs.ensure("1.36.3", programs)
    windows = {"CGO_ENABLED": "0", "GOOS": "windows", "GOARCH": "amd64"}
    assert go.built == [
        ("kubernetes", "k8s.io/kubernetes/cmd/kubectl", {"CGO_ENABLED": "0"}),
        ("workers", "k8s.io/kubernetes/cmd/kubeadm", {"CGO_ENABLED": "0"}),
        ("workers", "k8s.io/kubernetes/cmd/kubeadm", windows),
        ("src", "github.com/containernetworking/plugins/plugins/ipam/host-local", windows),
    ]
    assert sorted(path.name for path in folder.iterdir()) == sorted(programs)
    real_programs.ensure("1.36.3", programs)
    assert len(go.built) == len(programs)


def test_programs_of_workers_leave_the_module_of_the_others_alone(go: Go, tmp_path: Path) -> None:
    folder = real_programs.ensure("1.36.3", ["kubectl"]).parent / "src" / "kubernetes"
    imports = (folder / "tools.go").read_text()
    real_programs.ensure("1.36.3", ["kubelet.exe"])
    assert (folder / "tools.go").read_text() == imports
    assert "cmd/kubelet" not in imports
    assert '"k8s.io/kubernetes/cmd/kubelet"' in (folder.parent / "workers" / "tools.go").read_text()


def test_stand_ins_are_built_again_only_when_their_sources_change(go: Go, tmp_path: Path) -> None:
    sources = tmp_path / "sources"
    for name in ("one", "two"):
        (sources / name).mkdir(parents=True)
        (sources / name / "main.go").write_text("package main\n")
    first = real_programs.stand_ins("1.36.3", sources)
    assert sorted(path.name for path in first.iterdir()) == ["one.exe", "two.exe"]
    assert [(where, what) for where, what, _ in go.built] == [("workers", f"./stand-ins/{n}") for n in ("one", "two")]
    assert real_programs.stand_ins("1.36.3", sources) == first
    assert len(go.built) == 2
    (sources / "two" / "main.go").write_text("package main // changed\n")
    go.fails = "./stand-ins/two"
    with pytest.raises(real_programs.BuildError):
        real_programs.stand_ins("1.36.3", sources)
    go.fails = ""
    second = real_programs.stand_ins("1.36.3", sources)
    assert second != first
    assert sorted(path.name for path in second.iterdir()) == ["one.exe", "two.exe"]


@pytest.mark.parametrize(
    ("words", "told"), [([], "say what to build"), (["kubectl", "bogus"], "no such program: bogus; there are")]
)
def test_wrong_words_build_nothing(words: list[str], told: str, tmp_path: Path) -> None:
    command = [sys.executable, real_programs.__file__, *words]
    environment = {"WINREADY_CACHE": str(tmp_path / "cache"), "PATH": "/usr/bin:/bin"}
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 2
    assert told in result.stderr
    assert not (tmp_path / "cache").exists()
