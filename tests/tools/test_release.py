"""``make release``: what is refused, and that the same commit always gives the same bytes."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import release
import sbom

ROOT = Path(__file__).resolve().parents[2]
PARTS = ("src", "locks", "tools", "hatch_build.py", "pyproject.toml", "README.md", "LICENSE", ".gitignore")
DATED = "# Changelog\n\n## 0.1.0 (2026-01-31)\n\n- It is there.\n"
PURL = re.compile(r"pkg:pypi/[a-z0-9-]+@[0-9a-z.]+")


def git(root: Path, *words: str) -> None:
    who = ("-c", "user.name=somebody", "-c", "user.email=somebody@example.invalid", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *who, *words], cwd=root, check=True, capture_output=True)


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """This work tree as a repository with one commit, ready for a release of 0.1.0."""
    root = tmp_path_factory.mktemp("repository")
    for part in PARTS:
        if (ROOT / part).is_dir():
            shutil.copytree(ROOT / part, root / part, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / part, root / part)
    (root / "CHANGELOG.md").write_text(DATED)
    init = root / "src" / "winready" / "__init__.py"
    init.write_text(re.sub(r'(?m)^__version__ = ".*"$', '__version__ = "0.1.0"', init.read_text()))
    git(root, "init", "--quiet")
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message", "all of it")
    return root


@pytest.fixture
def changed(repository: Path) -> Iterator[Path]:
    """The repository, put in order again after a test that changes files."""
    yield repository
    git(repository, "checkout", "--quiet", "--force", "HEAD")
    git(repository, "clean", "--quiet", "--force", "-d")


def refusal(root: Path, *words: str) -> str:
    """What ``tools/release.py`` says when it makes nothing."""
    command = [sys.executable, "tools/release.py", *words]
    result = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stdout) == (1, "")
    assert not (root / "dist").exists()
    return result.stderr


def test_an_unreleased_version_is_refused(changed: Path) -> None:
    (changed / "CHANGELOG.md").write_text(DATED.replace("2026-01-31", "unreleased"))
    said = refusal(changed)
    assert said.startswith("error: CHANGELOG.md calls 0.1.0 unreleased; write the day of the release there")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (DATED.replace("0.1.0", "0.0.9"), "CHANGELOG.md begins with 0.0.9, and src/winready/__init__.py says 0.1.0"),
        ("# Changelog\n", "CHANGELOG.md has no section, and src/winready/__init__.py says 0.1.0"),
        (DATED.replace("- It is there.\n", "## 0.0.9 (2025-12-31)\n"), "CHANGELOG.md says nothing about 0.1.0"),
    ],
    ids=["another", "none", "empty"],
)
@pytest.mark.parametrize("words", [(), ("--rehearse",)], ids=["release", "rehearsal"])
def test_a_missing_section_is_refused(changed: Path, text: str, said: str, words: tuple[str, ...]) -> None:
    (changed / "CHANGELOG.md").write_text(text)
    assert refusal(changed, *words).startswith(f"error: {said}")


def test_a_dirty_tree_is_refused(changed: Path) -> None:
    (changed / "src" / "winready" / "forgotten.py").touch()
    (changed / "README.md").write_text("")
    assert refusal(changed) == (
        "error: not committed: README.md, src/winready/forgotten.py; a release is made of a commit\n"
    )


def test_the_same_commit_gives_the_same_bytes_from_the_sdist_too(changed: Path, tmp_path: Path) -> None:
    (changed / "src" / "winready" / "not-committed.txt").touch()
    epoch = release.epoch_of(changed)
    sdist, wheel = release.build(changed, tmp_path, epoch)
    release.check_contents(changed, wheel)
    made = [(path.suffix, release.digest(path)) for path in tmp_path.glob("*/dist/*")]
    assert sorted(made) == sorted([(".whl", release.digest(wheel))] * 3 + [(".gz", release.digest(sdist))] * 2)
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    assert {"winready/py.typed", "winready_sandbox/py.typed", "winready/spec/standard.yaml"} <= names
    assert "winready/not-committed.txt" not in names
    with tarfile.open(sdist) as archive:
        beside = {name.partition("/")[2] for name in archive.getnames() if "/src/" not in name}
        pages = {name for name in beside if name.startswith("man/man1/winready")}
        assert {member.mtime for member in archive} == {epoch}
    papers = {"CHANGELOG.md", "LICENSE", "README.md"}
    assert beside - pages == {".gitignore", "PKG-INFO", "hatch_build.py", "pyproject.toml", *papers}
    assert {f"winready-0.1.0.data/data/share/{name}" for name in pages} == {name for name in names if "/man1/" in name}
    assert "man/man1/winready-run.1" in pages


def test_a_build_that_differs_is_refused(changed: Path, tmp_path: Path) -> None:
    hook = "import os, time\n\nfrom hatchling.builders.hooks.plugin.interface import BuildHookInterface\n\n\n"
    hook += "class Hook(BuildHookInterface):\n    def initialize(self, version, build_data):\n"
    hook += "        with open('src/winready/when.txt', 'w') as file:\n            file.write(str(time.time_ns()))\n"
    (changed / "hatch_build.py").write_text(hook)
    with (changed / "pyproject.toml").open("a") as file:
        file.write('\n[tool.hatch.build.hooks.custom]\npath = "hatch_build.py"\n')
    git(changed, "add", "--all")
    git(changed, "commit", "--quiet", "--message", "a build that depends on the time")
    try:
        with pytest.raises(release.Refused, match="is not reproducible: two builds of one commit differ"):
            release.build(changed, tmp_path, release.epoch_of(changed))
    finally:
        git(changed, "reset", "--quiet", "--hard", "HEAD~1")


def test_a_wheel_that_lacks_a_file_is_refused(repository: Path, tmp_path: Path) -> None:
    tracked = subprocess.run(["git", "ls-files", "src"], cwd=repository, capture_output=True, text=True, check=True)
    wheel = tmp_path / "winready.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for name in tracked.stdout.splitlines():
            if not name.endswith("standard.yaml"):
                archive.writestr(name.removeprefix("src/"), "")
    with pytest.raises(release.Refused, match=r"winready\.whl differs from src/ in winready/spec/standard\.yaml"):
        release.check_contents(repository, wheel)
    with zipfile.ZipFile(wheel, "a") as archive:
        archive.writestr("winready/spec/standard.yaml", "")
    with pytest.raises(release.Refused, match=r"winready\.whl has no manual pages"):
        release.check_contents(repository, wheel)


def test_the_bill_of_materials_names_every_locked_package(repository: Path) -> None:
    bill = sbom.make(repository, "0.1.0", "ab" * 32, epoch=1769817600)
    assert bill == sbom.make(repository, "0.1.0", "ab" * 32, epoch=1769817600)
    assert (bill["bomFormat"], bill["specVersion"], bill["version"]) == ("CycloneDX", "1.6", 1)
    assert re.fullmatch(r"urn:uuid:[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}", bill["serialNumber"])
    assert bill["metadata"]["timestamp"] == "2026-01-31T00:00:00Z"
    assert bill["metadata"]["component"]["purl"] == "pkg:pypi/winready@0.1.0"
    lock = (ROOT / "locks" / "run.txt").read_text()
    locked = set(re.findall(r"^([\w.-]+)==(\S+)", lock, re.MULTILINE))
    components = bill["components"]
    assert {(each["name"], each["version"]) for each in components} == locked
    hashes = [each["content"] for component in components for each in component["hashes"]]
    assert sorted(hashes) == sorted(re.findall(r"--hash=sha256:([0-9a-f]{64})", lock))
    for component in components:
        assert component["type"] == "library"
        assert component["hashes"]
        assert component["licenses"], component["name"]
        assert PURL.fullmatch(component["purl"])
        assert component["bom-ref"] == component["purl"]
    refs = {each["bom-ref"] for each in [bill["metadata"]["component"], *components]}
    assert {each["ref"] for each in bill["dependencies"]} == refs
    assert {needed for each in bill["dependencies"] for needed in each["dependsOn"]} <= refs
    scopes = {each["name"]: each["scope"] for each in components}
    assert (scopes["aiohttp"], scopes["multidict"], scopes["hatchling"]) == ("required", "required", "excluded")
    assert json.loads(json.dumps(bill)) == bill


def test_an_environment_that_is_not_the_locked_one_is_refused(changed: Path) -> None:
    lock = changed / "locks" / "run.txt"
    lock.write_text(re.sub(r"(?m)^click==\S+", "click==0.0.1", lock.read_text()))
    with pytest.raises(sbom.SbomError, match=r"click is locked as 0\.0\.1 and installed as"):
        sbom.make(changed, "0.1.0", "ab" * 32, epoch=0)


@pytest.mark.parametrize("address", ["ftp://example.invalid", "https://user:secret@example.invalid/x", "https://x y"])
def test_an_address_that_krew_could_not_use_is_refused(repository: Path, address: str) -> None:
    assert "is no address for downloads" in refusal(repository, "--rehearse", "--address", address)
