"""Wrong input, wrong machines and wrong files, before the real PowerShell: one sentence, and nothing is changed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from node.mirror import running
from windows.cluster import CA_HASH, RELEASE, TOKEN, api_server
from windows.ground import Ground, Result
from windows.worker import JOIN, Worker, make_bundle, publish, worker

DIGEST = "0" * 64
WRONG_INPUT = {
    "no token": (f"join -CaHash {CA_HASH}", "there is no token, and nobody to ask for it"),
    "no such file": (rf"join -TokenFile C:\never -CaHash {CA_HASH}", r"there is no file C:\never"),
    "no bootstrap token": (f"join -Token secret -CaHash {CA_HASH}", "this is no bootstrap token"),
    "no fingerprint": (f"join -Token {TOKEN}", "-CaHash is missing"),
    "another fingerprint": (f"join -Token {TOKEN} -CaHash sha1:00", "'sha1:00' is no fingerprint"),
    "a name that cannot be": (f"{JOIN} -NodeName 'a b'", "'a b' cannot be the name of a node"),
    "another bundle": (f"{JOIN} -BundleDigest {DIGEST}", "another digest than -BundleDigest says"),
    "nothing to go on with": ("join -Resume", "there is nothing to go on with"),
    "an upgrade before a join": ("upgrade", "this machine has not joined a cluster by this script"),
}


@pytest.fixture(scope="module")
def machine(bundles: dict[str, Path]) -> Iterator[Worker]:
    """A machine on which nothing ever succeeds."""
    with worker(bundles[RELEASE]) as found:
        yield found


def sentence(result: Result) -> str:
    """The one line that says what is wrong; a remedy may follow."""
    first, *rest = result.out.splitlines()
    assert first.startswith("error: "), result.out
    assert all(line.startswith("       ") for line in rest), result.out
    return first.removeprefix("error: ")


@pytest.fixture(scope="module")
def answers(machine: Worker) -> dict[str, Result]:
    """All of them in one PowerShell; then nothing may be different."""
    before = machine.picture()
    found = dict(zip(WRONG_INPUT, machine.node(*(command for command, _ in WRONG_INPUT.values())), strict=True))
    assert machine.picture() == before
    assert machine.calls() == machine.programs() == []
    return found


@pytest.mark.parametrize("what", WRONG_INPUT)
def test_wrong_input_is_one_sentence_and_exit_code_2(answers: dict[str, Result], what: str) -> None:
    assert answers[what].code == 2
    assert WRONG_INPUT[what][1] in sentence(answers[what])
    assert TOKEN not in answers[what].out


def test_a_command_that_is_none_is_no_success(machine: Worker) -> None:
    (result,) = machine.node("jion")
    assert result.code != 0
    assert "join,reset,upgrade,status,show,rotate" in result.out


def test_a_machine_that_is_too_old_is_refused(machine: Worker) -> None:
    before = machine.picture()
    machine.set_build(17763)
    joined, upgraded = machine.node(JOIN, f"{JOIN} -WhatIf")
    machine.set_build(20348)
    assert machine.picture() == before
    for result in (joined, upgraded):
        assert result.code == 2
        assert "build 17763) is too old: build 20348 (Windows Server 2022) or newer is needed" in sentence(result)


def test_somebody_elses_node_is_refused(machine: Worker) -> None:
    machine.ground.put(r"C:\etc\kubernetes\kubelet.conf", "theirs")
    before = machine.picture()
    (result,) = machine.node(JOIN)
    assert machine.picture() == before
    assert result.code == 2
    assert "the machine belongs to a cluster already" in sentence(result)
    machine.ground.path(r"C:\etc\kubernetes\kubelet.conf").unlink()


def test_an_api_server_that_takes_no_connection_is_said(bundles: dict[str, Path]) -> None:
    with Ground() as ground:
        machine = Worker(ground)
        machine.prepare(bundles[RELEASE])
        before = machine.picture()
        (result,) = machine.node(JOIN)
        assert machine.picture() == before
        assert result.code == 2
        assert "the API server at 127.0.0.1:6443 takes no connection from here" in sentence(result)


@pytest.mark.parametrize(
    ("path", "content", "words"),
    [
        ("files/kubelet.exe", "another", "files/kubelet.exe is not the file that SHA256SUMS names"),
        ("parts/join.ps1", "'never'", "parts/join.ps1 is not the file that SHA256SUMS names"),
        ("parts/join.ps1", None, "parts/join.ps1 is missing"),
        ("SHA256SUMS", None, "there is no SHA256SUMS beside node.ps1"),
        ("SHA256SUMS", "", "SHA256SUMS does not name node.ps1"),
        ("SHA256SUMS", "x  ../../y\n", "a line that is no digest and file name"),
    ],
)
def test_a_bundle_that_was_changed_is_not_run(
    machine: Worker, bundles: dict[str, Path], path: str, content: str | None, words: str
) -> None:
    before = machine.picture()
    changed = machine.ground.path(r"C:\bundle") / path
    changed.unlink()
    if content is not None:
        changed.write_text(content)
    (result,) = machine.node(JOIN)
    changed.write_bytes((bundles[RELEASE] / path).read_bytes())
    assert result.code == 2
    assert words in sentence(result)
    assert machine.picture() == before


def test_a_download_with_another_digest_changes_nothing_and_the_right_one_is_taken(tmp_path: Path) -> None:
    with Ground() as ground, api_server(ground), ground.network(), running() as mirror:
        publish(mirror, RELEASE)
        make_bundle(mirror, RELEASE, tmp_path / "bundle")
        machine = Worker(ground)
        machine.prepare(tmp_path / "bundle")
        (path,) = [path for path in mirror.held if path.endswith("/kubelet.exe")]
        right = mirror.held[path]
        mirror.held[path] = right + b"!"
        before = machine.picture()
        refused, again = machine.node(JOIN, JOIN)
        assert refused.code == again.code == 2
        assert re.search(
            r"^error: http\S+/kubelet\.exe has the SHA-256 \w+, node\.json says \w+; it is not used$",
            refused.out,
            re.MULTILINE,
        )
        assert "what this run had made is removed: the machine is as it was before" in refused.out
        # Not even our own folder is there, or a log.
        after = machine.picture()
        assert after[:2] == before[:2]
        assert set(machine.files()) == set(before[0])
        assert not machine.ground.path(r"C:\ProgramData\winready").exists()
        assert {call["given"]["LiteralPath"] for call in machine.calls()} == {r"C:\ProgramData\winready"}
        del mirror.held[path]
        (absent,) = machine.node(JOIN)
        assert absent.code == 1
        assert re.search(r"^error: http\S+/kubelet\.exe cannot be fetched: ", absent.out, re.MULTILINE)
        assert machine.picture()[:2] == before[:2]
        mirror.held[path] = right
        (taken,) = machine.node(JOIN)
        assert taken.code == 0, taken.out
