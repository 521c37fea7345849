"""The plug-in for kubectl, judged and installed by the real krew, which is built from its Go module."""

from __future__ import annotations

import functools
import http.server
import os
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import krew
import real_programs
from installing.conftest import PLAIN, Call

KUBERNETES = "1.36.3"


@pytest.fixture(scope="module")
def programs() -> Path:
    """The real krew and what krew's own index judges manifests with."""
    try:
        return real_programs.ensure(KUBERNETES, ["krew", "validate-krew-manifest"])
    except real_programs.BuildError as error:
        pytest.skip(f"krew cannot be built here: {str(error).splitlines()[0]}")


@pytest.fixture(scope="module")
def kubectl() -> Path:
    built = real_programs.cache_root() / "kubernetes" / f"v{KUBERNETES}" / "bin" / "kubectl"
    found = built if built.exists() else shutil.which("kubectl")
    if not found:
        pytest.skip("there is no kubectl; make build-control-plane builds one")
    return Path(found)


@pytest.fixture
def server(dist: Path, version: str, tmp_path: Path) -> Iterator[Path]:
    """The archives on a server, and a manifest that names it; the manifest."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, format: str, *arguments: object) -> None:
            pass

    handler = functools.partial(Quiet, directory=str(dist))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        manifest = tmp_path / krew.MANIFEST
        manifest.write_text(krew.manifest(version, dist, f"http://127.0.0.1:{running.server_port}/"))
        yield manifest
        running.shutdown()


@pytest.fixture
def environment(tmp_path: Path, programs: Path, kubectl: Path) -> dict[str, str]:
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "kubectl").symlink_to(kubectl)
    (folder / "kubectl-krew").symlink_to(programs / "krew")
    path = f"{folder}:{tmp_path / 'krew' / 'bin'}:{PLAIN['PATH']}"
    return {**PLAIN, "PATH": path, "KREW_ROOT": str(tmp_path / "krew"), "KREW_NO_UPGRADE_CHECK": "1"}


def test_the_manifest_is_what_the_index_takes_on_every_platform(
    server: Path, programs: Path, call: Call, environment: dict[str, str]
) -> None:
    """It downloads and installs all of them."""
    call(programs / "validate-krew-manifest", "-manifest", server, env=environment)


def test_kubectl_winready_works_after_an_installation_from_files(
    dist: Path, version: str, call: Call, environment: dict[str, str]
) -> None:
    machine = {"x86_64": "amd64", "aarch64": "arm64"}[os.uname().machine]
    archive = dist / f"kubectl-winready-{version}-linux-{machine}.tar.gz"
    call("kubectl", "krew", "install", "--manifest", dist / krew.MANIFEST, "--archive", archive, env=environment)
    assert call("kubectl", "winready", "--version", env=environment).stdout == f"winready {version}\n"
    assert "core.network" in call("kubectl", "winready", "spec", "list", env=environment).stdout


def test_kubectl_winready_works_after_a_download(
    server: Path, version: str, call: Call, environment: dict[str, str]
) -> None:
    call("kubectl", "krew", "install", "--manifest", server, env=environment)
    assert call("kubectl", "winready", "--version", env=environment).stdout == f"winready {version}\n"


def test_an_archive_that_was_changed_is_refused(server: Path, call: Call, environment: dict[str, str]) -> None:
    text = server.read_text()
    digest = text.partition("sha256: ")[2][:64]
    server.write_text(text.replace(digest, "f" * 64))
    refused = call("kubectl", "krew", "install", "--manifest", server, code=1, env=environment)
    assert "checksum does not match" in refused.stderr
