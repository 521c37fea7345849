"""The hook, run by the real pre-commit in a repository of somebody else, from a clone and without an index."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from installing.conftest import ROOT, Call

WHO = ("-c", "user.name=somebody", "-c", "user.email=somebody@example.invalid", "-c", "commit.gpgsign=false")
PARTS = ("src", "pyproject.toml", "hatch_build.py", "README.md", "CHANGELOG.md", "LICENSE", ".pre-commit-hooks.yaml")
GOOD = """apiVersion: v1
kind: ConfigMap
metadata: {name: good}
"""
BAD = """apiVersion: v1
kind: Pod
metadata: {name: bad}
spec:
  os: {name: windows}
  nodeSelector: {kubernetes.io/os: windows}
  containers:
  - name: web
    image: registry.example.com/web:1
    securityContext: {privileged: true}
"""


def git(folder: Path, *words: str) -> str:
    return subprocess.run(["git", *WHO, *words], cwd=folder, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository that uses the hook of a clone of this work tree."""
    clone = tmp_path / "winready"
    clone.mkdir()
    for part in PARTS:
        if (ROOT / part).is_dir():
            shutil.copytree(ROOT / part, clone / part, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / part, clone)
    git(clone, "init", "--quiet")
    git(clone, "add", "--all")
    git(clone, "commit", "--quiet", "--message", "winready")
    place = tmp_path / "app"
    place.mkdir()
    git(place, "init", "--quiet")
    revision = git(clone, "rev-parse", "HEAD")
    (place / ".pre-commit-config.yaml").write_text(
        f"repos:\n- repo: {clone}\n  rev: {revision}\n  hooks:\n  - id: winready-lint\n    files: ^deploy/\n"
    )
    (place / "deploy").mkdir()
    return place


def test_a_bad_manifest_is_caught_and_a_good_one_passes(
    repository: Path, trial: Path, call: Call, offline: dict[str, str], home: Path
) -> None:
    environment = {**offline, "PRE_COMMIT_HOME": str(home / "pre-commit")}
    (repository / "deploy" / "good.yaml").write_text(GOOD)
    (repository / "elsewhere.yaml").write_text(BAD)
    git(repository, "add", "--all")
    call(trial / "pre-commit", "install", cwd=repository, env=environment)
    call("git", *WHO, "commit", "--message", "good", cwd=repository, env=environment)
    (repository / "deploy" / "bad.yaml").write_text(BAD)
    git(repository, "add", "--all")
    refused = call("git", *WHO, "commit", "--message", "bad", code=1, cwd=repository, env=environment)
    assert "deploy/bad.yaml" in refused.stdout + refused.stderr
    assert "sc-privileged" in refused.stdout + refused.stderr
    assert git(repository, "log", "--format=%s") == "good"
