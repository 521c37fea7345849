"""What registries are asked about images, and what is said when they answer, do not answer, or answer nonsense."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from urllib.parse import unquote

import pytest

from node.registry import TOKEN, Registry, platform, serving
from node.test_joining import parameters
from winready.node.findings import Finding
from winready.node.images import image_findings
from winready.node.parameters import Containerd, Images, Proxy, RegistryMirror
from winready.node.registries import parse_reference

BASE = "oss/base"


@pytest.fixture
def registry() -> Iterator[Registry]:
    """One that has both images for every current build."""
    with serving() as found:
        found.index("pause", "3.10.2", platform(os="linux"), platform("17763"), platform("20348"), platform("26100"))
        found.single(BASE, "v1", platform())
        yield found


def said(registry: Registry, *builds: int, proxy: Proxy | None = None, host: str = "", **more: object) -> list[Finding]:
    host = host or registry.host
    images = Images(pause=f"{host}/pause:3.10.2", host_process=f"{host}/{BASE}:v1")
    given = {"images": images, "proxy": proxy or Proxy(), **more}
    return asyncio.run(image_findings(parameters(**given), list(builds or (20348,)), ask=True))


def test_a_registry_that_has_them_is_quoted_with_the_digest(registry: Registry) -> None:
    digest = registry.index("pause", "3.10.2", platform("20348"), platform("26100"))
    pause, again, base, _ = said(registry, 20348, 26100)
    assert [pause.level, again.level, base.level] == ["ok", "ok", "ok"]
    image = f"the pause image {registry.host}/pause:3.10.2 ({digest})"
    assert pause.message == f"{image} is there for build 20348, says {registry.host}"
    assert again.message == f"{image} is there for build 26100, says {registry.host}"
    assert "is there for build 20348 by its entry for every build" in base.message
    accepted = registry.asked[0][1]["Accept"]
    assert "application/vnd.oci.image.index.v1+json" in accepted
    assert "application/vnd.docker.distribution.manifest.list.v2+json" in accepted


@pytest.mark.parametrize(
    ("builds", "machine", "words"),
    [
        (["17763"], 20348, "has no entry for Windows build 20348, only for 17763"),
        (["26100"], 20348, "has no entry for Windows build 20348, only for 26100"),
        (["20348"], 17763, "has no entry for Windows build 17763, only for 20348"),
        (["20348"], 26100, "is there for build 26100 by its entry for build 20348"),
        (["20348", "25398"], 26100, "is there for build 26100 by its entry for build 25398"),
    ],
)
def test_a_list_is_read_as_a_host_of_that_build_reads_it(
    registry: Registry, builds: list[str], machine: int, words: str
) -> None:
    registry.index("pause", "3.10.2", platform(os="linux"), *(platform(build) for build in builds))
    pause = said(registry, machine)[0]
    assert words in pause.message
    assert pause.level == ("problem" if "no entry" in words else "ok")


@pytest.mark.parametrize("entries", [[platform(os="linux")], [platform("20348", architecture="arm64")], []])
def test_an_image_without_windows_is_a_problem(registry: Registry, entries: list[dict[str, str]]) -> None:
    registry.index("pause", "3.10.2", *entries)
    pause = said(registry)[0]
    assert (pause.level, "has nothing for Windows on amd64" in pause.message) == ("problem", True)


def test_an_image_that_is_not_there_is_a_problem(registry: Registry) -> None:
    registry.held.clear()
    for finding in said(registry):
        assert (finding.level, f"is not in the registry {registry.host}" in finding.message) == ("problem", True)


def test_a_registry_that_hands_out_tokens_to_everybody_is_asked_with_one(registry: Registry) -> None:
    registry.behaviour = "token"
    found = said(registry)
    assert {finding.level for finding in found} == {"ok"}
    assert any(headers.get("Authorization") == f"Bearer {TOKEN}" for _, headers in registry.asked)
    assert TOKEN not in str(found)


@pytest.mark.parametrize(
    ("behaviour", "words"),
    [
        ("no-token", "its tokens are not for everybody (403)"),
        ("bad-token", "it gives out no token"),
        ("account", "it wants an account"),
        ("403", "it answers 403"),
        ("500", "it answers 500"),
        ("429", "it answers 429"),
        ("closed", "the connection ends without an answer"),
        ("silence", "no answer within 0.3 s"),
        ("wrong-digest", "another content than the digest that it names"),
    ],
)
def test_what_a_registry_does_not_say_is_not_known_and_no_pass(
    registry: Registry, monkeypatch: pytest.MonkeyPatch, behaviour: str, words: str
) -> None:
    monkeypatch.setattr("winready.node.registries.PATIENCE", 0.3 if behaviour == "silence" else 60.0)
    registry.behaviour = behaviour
    found = said(registry)
    assert len(found) == 2
    for finding in found:
        assert finding.level == "unknown"
        assert words in finding.message
        assert finding.todo
    for secret in (TOKEN, "secret", "\x1b", "X-Evil"):
        assert secret not in str(found)


@pytest.mark.parametrize(
    "body",
    [b"<html>welcome</html>", b"", b"[1]", b"{}", b'{"config": {"digest": "../../x"}}', b"\xff\xfe", b"[" * 100_000],
    ids=["html", "empty", "list", "nothing", "hostile", "bytes", "deep"],
)
def test_nonsense_is_no_manifest(registry: Registry, body: bytes) -> None:
    registry.held["/v2/pause/manifests/3.10.2"] = ("application/json", body)
    pause = said(registry)[0]
    assert (pause.level, "something that is no manifest" in pause.message) == ("unknown", True), pause


def test_more_than_a_manifest_is_not_read(registry: Registry) -> None:
    registry.held["/v2/pause/manifests/3.10.2"] = ("application/json", b" " * (5 * 1024 * 1024))
    assert "more than any manifest has" in said(registry)[0].message


@pytest.mark.parametrize("entries", ['{"manifests": [7, {"platform": 3}]}', '{"manifests": [{"platform": {"os": 7}}]}'])
def test_strange_entries_are_no_entries(registry: Registry, entries: str) -> None:
    registry.held["/v2/pause/manifests/3.10.2"] = ("application/json", entries.encode())
    assert said(registry)[0].level == "problem"


def test_a_registry_that_is_not_there_is_said(registry: Registry) -> None:
    found = said(registry, host="127.0.0.1:9")
    assert {finding.level for finding in found} == {"unknown"}
    assert all("the registry 127.0.0.1:9 could not be asked: it cannot be reached" in item.message for item in found)


def test_an_old_pause_image_is_known_by_its_release_where_nobody_answers() -> None:
    images = Images(pause="127.0.0.1:9/pause:3.5", host_process="127.0.0.1:9/base:v1")
    found = asyncio.run(image_findings(parameters(images=images), [20348], ask=True))
    assert [finding.level for finding in found] == ["problem", "unknown", "unknown"]
    assert "no entry for Windows build 20348 by its release, 3.6 is the first one" in found[0].message


def test_a_mirror_is_asked_first_and_the_registry_when_it_has_nothing(registry: Registry) -> None:
    with serving() as mirror:
        containerd = Containerd(
            version="2.1.5", mirrors=[RegistryMirror(host=registry.host, endpoint=f"http://{mirror.host}/hub")]
        )
        mirror.index("pause", "3.10.2", platform("20348"))
        mirror.held["/hub/v2/pause/manifests/3.10.2"] = mirror.held["/v2/pause/manifests/3.10.2"]
        pause, base = said(registry, containerd=containerd)
        assert pause.message.endswith(f"says {mirror.host}")
        assert base.message.endswith(f"says {registry.host}")
        # As containerd does, so that one mirror can serve several registries.
        asked = [unquote(path) for path, _ in mirror.asked]
        assert f"/hub/v2/pause/manifests/3.10.2?ns={registry.host}" in asked


def test_the_machines_proxy_is_used_and_what_is_spared_is_not(registry: Registry) -> None:
    containerd = Containerd(
        version="2.1.5", mirrors=[RegistryMirror(host="r.example", endpoint="http://mirror.invalid:5000")]
    )
    through = Proxy(http=f"http://{registry.host}", https=f"http://{registry.host}")
    found = said(registry, host="r.example", containerd=containerd, proxy=through)
    assert {finding.level for finding in found} == {"ok"}
    assert registry.asked[0][0].startswith("http://mirror.invalid:5000/v2/")
    registry.asked.clear()
    spared = Proxy(http="http://127.0.0.1:9", no_proxy=["127.0.0.0/8"])
    assert {finding.level for finding in said(registry, proxy=spared)} == {"ok"}
    dead = Proxy(http="http://127.0.0.1:9")
    assert all("the proxy cannot be reached" in finding.message for finding in said(registry, proxy=dead))


def test_this_computers_proxy_is_used_where_the_machine_has_none(
    registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", "http://me:secret@127.0.0.1:9")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    found = said(registry)
    assert all("the proxy cannot be reached" in finding.message for finding in found), found
    assert "secret" not in str(found)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    assert {finding.level for finding in said(registry)} == {"ok"}


@pytest.mark.parametrize(
    ("image", "parts"),
    [
        ("registry.k8s.io/pause:3.10.2", ("registry.k8s.io", "pause", "3.10.2", "")),
        ("r.example:5000/a/b-c/d__e", ("r.example:5000", "a/b-c/d__e", "latest", "")),
        ("localhost/x:1", ("localhost", "x", "1", "")),
        ("busybox", ("docker.io", "library/busybox", "latest", "")),
        ("me/busybox:1", ("docker.io", "me/busybox", "1", "")),
        (f"r.example/x@sha256:{'a' * 64}", ("r.example", "x", "", f"sha256:{'a' * 64}")),
        ("r.example/x@sha256:00", None),
        ("me:secret@r.example/x:1", None),
        ("r.example/X:1", None),
        ("https://r.example/x", None),
        ("r.example/../x", None),
        ("", None),
    ],
)
def test_names_of_images_are_taken_apart(image: str, parts: tuple[str, ...] | None) -> None:
    found = parse_reference(image)
    assert (found and (found.host, found.path, found.tag, found.digest)) == parts
