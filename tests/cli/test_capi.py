"""``winready capi serve``: hooks hold and go on, whatever happens to runs, servers, clusters and the facts."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import resource
import signal
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from cli.capi_server import FAULT, PATIENCE, QUICK, UPGRADE, WORKERS, Extension, held, put_kubeconfig, released
from cli.conftest import CommandLine
from winready.cli.main import cli
from winready.cluster.client import Client
from winready.cluster.kubeconfig import find_target
from winready.cluster.resources import NAMESPACES, SECRETS
from winready.deploy.capi import hooks

pytestmark = pytest.mark.timeout(600)
STRICT = {"winready.io/policy": "require-pass"}
Start = Callable[..., Extension]


@pytest.fixture(scope="module")
def workload(command_line: CommandLine) -> Iterator[dict[str, Any]]:
    """A cluster that is judged; it is its own management cluster, too."""
    document = command_line.sandbox("capi", "--speed", "100")
    put_kubeconfig(str(document["kubeconfig"]), "one", Path(document["kubeconfig"]).read_bytes())
    yield document
    command_line("sandbox", "down", "--name", "capi")


@pytest.fixture
def start(command_line: CommandLine, workload: dict[str, Any], tmp_path: Path) -> Iterator[Start]:
    """Servers that are gone after the test."""
    started: list[Extension] = []

    def begin(*options: str, management: str = "") -> Extension:
        extension = Extension(command_line, tmp_path, management or str(workload["kubeconfig"]), options)
        started.append(extension)
        return extension.start()

    yield begin
    for extension in started:
        assert extension.end() in (0, -signal.SIGKILL), "".join(extension.lines)


def healed(command_line: CommandLine, *fault: str) -> None:
    words = ("break", *fault) if fault else ("heal",)
    assert command_line("sandbox", *words, "--name", "capi").returncode == 0


def spaces(kubeconfig: str) -> list[str]:
    """The namespaces of runs."""

    async def go() -> list[str]:
        async with Client.connect(find_target(kubeconfig)) as client:
            return [item["metadata"]["name"] for item in await client.list(NAMESPACES, labels="winready.io/run")]

    return asyncio.run(go())


def children(extension: Extension) -> list[int]:
    """The runs that a server has under way."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if b"run" in words and str(extension.folder / "runs" / "fleet" / "one").encode() in words:
            found.append(int(folder.name))
    return found


def test_discovery_and_every_hook_that_never_holds(start: Start) -> None:
    extension = start()
    found = extension.post(hooks.path(hooks.DISCOVERY), b"{}")
    assert (found["kind"], found["status"]) == ("DiscoveryResponse", "Success")
    policies = {item["requestHook"]["hook"]: item["failurePolicy"] for item in found["handlers"]}
    assert set(policies) == set(hooks.HOOKS)
    assert len(hooks.HOOKS) == 9
    assert {hook for hook, policy in policies.items() if policy == "Fail"} == set(hooks.HOLDING)
    assert len({item["name"] for item in found["handlers"]}) == 9
    versions: dict[str, Any] = {
        **UPGRADE,
        **WORKERS,
        "workersUpgrades": [{"version": "v1.35.0"}],
        "unknown": {"a": [1]},
    }
    for hook in set(hooks.HOOKS) - {hooks.CREATED, *hooks.HOLDING}:
        answer = extension.call(hook, **versions)
        assert (answer["apiVersion"], answer["kind"]) == (hooks.VERSION, f"{hook}Response")
        assert released(answer), answer
    assert extension.facts() == []


def test_what_no_controller_sends_is_refused_in_words(start: Start) -> None:
    extension = start()
    path = hooks.path(hooks.UPGRADE)
    good = {"kind": "BeforeClusterUpgradeRequest", "cluster": {"metadata": {"namespace": "a", "name": "b", "uid": "c"}}}
    for body, words in (
        (b"", "no BeforeClusterUpgradeRequest"),
        (b"\xff{", "no BeforeClusterUpgradeRequest"),
        (b"[" * 200_000, "no BeforeClusterUpgradeRequest"),
        (json.dumps({**good, "kind": "Pod"}).encode(), "is a 'Pod'"),
        (json.dumps({**good, **UPGRADE, "apiVersion": "v9"}).encode(), "'v9 BeforeClusterUpgradeRequest'"),
        (json.dumps({**good, "cluster": {"metadata": {"name": 1}}}).encode(), "cluster.metadata.name"),
        (json.dumps(good).encode(), "'' is no Kubernetes version"),
        (json.dumps({**good, **UPGRADE, "toKubernetesVersion": "../../etc"}).encode(), "no Kubernetes version"),
        (b'{"kind":"' + b"x" * (3 << 20) + b'"}', "more than 2 MiB"),
    ):
        answer = extension.post(path, body)
        assert (answer["kind"], answer["status"]) == ("BeforeClusterUpgradeResponse", "Failure")
        assert words in answer["message"], answer
        assert len(answer["message"]) < 500
    for name in ("../../x", "a/b", "A", "", "x" * 300, "a\x1b[2J", "-a"):
        for key in ("name", "namespace", "uid"):
            metadata = {"namespace": "a", "name": "b", "uid": "c", key: name if name != "A" or key != "uid" else "?"}
            wrong = {**good, **UPGRADE, "cluster": {"metadata": metadata}}
            assert extension.post(path, json.dumps(wrong).encode())["status"] == "Failure", metadata
    assert 'hook="BeforeClusterUpgrade",answer="failure"' in extension.metrics()
    assert extension.facts() == []
    with pytest.raises(urllib.error.HTTPError, match="404"):
        extension.post("/hooks.runtime.cluster.x-k8s.io/v1alpha1/generatepatches/x", b"{}")
    # Whoever does not know its authority, or speaks no TLS, learns nothing.
    with pytest.raises(urllib.error.URLError, match="CERTIFICATE_VERIFY_FAILED"):
        urllib.request.urlopen(
            f"https://127.0.0.1:{extension.port}/healthz", context=ssl.create_default_context(), timeout=10
        )
    with pytest.raises((urllib.error.URLError, OSError)):
        urllib.request.urlopen(f"http://127.0.0.1:{extension.port}/healthz", timeout=10)


def test_many_who_ask_at_once_wait_for_one_run_and_go_on_after_its_pass(
    start: Start, workload: dict[str, Any], command_line: CommandLine
) -> None:
    extension = start("--policy", "require-pass")
    with ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(lambda _: extension.call(hooks.UPGRADE, **UPGRADE), range(40)))
    assert all(held(answer) for answer in answers), answers
    assert extension.facts("asked") == ["0001-asked.json"]
    message = extension.until(lambda answer: "is under way since" in answer["message"], hooks.UPGRADE, **UPGRADE)
    assert "held until a run has passed (default: require-pass)" in message["message"]
    assert "kubectl -n fleet label cluster one --overwrite winready.io/policy=off" in message["message"]
    # A label lets it through at once, while the run goes on.
    off = extension.call(hooks.UPGRADE, labels={"winready.io/policy": "off"}, **UPGRADE)
    assert released(off), off
    answer = extension.until(released, hooks.UPGRADE, **UPGRADE)
    run = next((extension.folder / "runs" / "fleet" / "one").iterdir()).name
    assert "Pass (partial: 1 of 24 core requirements)" in answer["message"]
    assert f"run {run} of cluster fleet/one" in answer["message"]
    assert extension.facts() == ["0001-asked.json", "0001-ended.json", "0001-taken-01.json"]
    # Another cluster of that name, and another version, are other questions.
    assert held(extension.call(hooks.UPGRADE, uid="another", **UPGRADE))
    assert 'winready_capi_runs_total{verdict="Pass"} 1' in extension.metrics()
    # Nothing of the way to the cluster is in any file or in the log.
    user = yaml.safe_load(Path(workload["kubeconfig"]).read_text())["users"][0]["user"]
    secrets = [str(value)[:60] for value in user.values()] + ["PRIVATE KEY"]
    written = [path for path in extension.folder.rglob("*") if path.is_file() and path.name != "tls.key"]
    texts = [*(path.read_text(errors="replace") for path in written), "".join(extension.lines)]
    assert not [secret for secret in secrets for text in texts if secret in text]


def test_after_a_fail_it_is_held_until_somebody_asks_for_a_run_that_passes(
    start: Start, command_line: CommandLine
) -> None:
    extension = start("--again", "1h")
    healed(command_line, FAULT)
    try:
        failed = extension.until(
            lambda answer: "did not pass" in answer["message"], hooks.WORKERS, labels=STRICT, **WORKERS
        )
        assert held(failed)
        assert f"first of all: {QUICK} failed: " in failed["message"]
        assert "the next run begins at 20" in failed["message"]
        assert 'annotate cluster one --overwrite winready.io/run-again="$(date +%s)"' in failed["message"]
        # The same result lets a cluster go on that only wants to be warned; one with a label nobody knows is held.
        warned = extension.call(hooks.WORKERS, labels={"winready.io/policy": "warn"}, **WORKERS)
        assert released(warned)
        assert warned["message"].startswith("winready: warning: cluster fleet/one did not pass")
        unknown = extension.call(hooks.WORKERS, labels={"winready.io/policy": "sometimes"}, **WORKERS)
        assert held(unknown)
        assert "'sometimes' is none of require-pass, warn, off, so require-pass holds" in unknown["message"]
        assert extension.facts("asked") == ["0001-asked.json"]
    finally:
        healed(command_line)
    asked: dict[str, Any] = {"labels": STRICT, "annotations": {"winready.io/run-again": "1"}}
    assert held(extension.call(hooks.WORKERS, **asked, **WORKERS))
    passed = extension.until(released, hooks.WORKERS, **asked, **WORKERS)
    assert "Pass" in passed["message"]
    assert extension.facts("asked") == ["0001-asked.json", "0002-asked.json"]


def test_after_a_run_that_could_not_begin_the_next_one_comes_by_itself(start: Start, workload: dict[str, Any]) -> None:
    extension = start("--again", "1s,2s")
    management = str(workload["kubeconfig"])
    strict = {"labels": STRICT, **UPGRADE}
    said = extension.until(lambda answer: "was not judged" in answer["message"], hooks.UPGRADE, "two", **strict)
    assert "the run could not begin: there is no Secret fleet/two-kubeconfig" in said["message"]
    planted = extension.folder / "planted"
    config = yaml.safe_load(Path(management).read_text())
    hostile = {"apiVersion": "client.authentication.k8s.io/v1", "command": "/bin/touch", "args": [str(planted)]}
    broken = {"users": [{"name": config["users"][0]["name"], "user": {"exec": hostile}}]}
    for content, words in (
        (b"clusters: [", "kubeconfig Secret fleet/two-kubeconfig, line 1"),
        (yaml.safe_dump({**config, **broken}).encode(), "has 'exec', which leads out of the kubeconfig"),
        (b"", "has no 'value'"),
    ):
        put_kubeconfig(management, "two", content)

        def told(answer: dict[str, Any], words: str = words) -> bool:
            return words in answer["message"]

        said = extension.until(told, hooks.UPGRADE, "two", **strict)
        assert held(said)
    assert not planted.exists()
    put_kubeconfig(management, "two", Path(management).read_bytes())
    assert "Pass" in extension.until(released, hooks.UPGRADE, "two", **strict)["message"]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_run_that_lost_its_server_is_taken_up_by_the_next_one(
    start: Start, workload: dict[str, Any], number: int
) -> None:
    extension = start("--policy", "require-pass")
    extension.until(lambda answer: "is under way since" in answer["message"], hooks.UPGRADE, **UPGRADE)
    extension.until(lambda _: bool(spaces(str(workload["kubeconfig"]))), hooks.UPGRADE, **UPGRADE)
    extension.end(number)
    until = time.monotonic() + PATIENCE
    while children(extension):
        assert time.monotonic() < until
        time.sleep(0.1)
    assert spaces(str(workload["kubeconfig"])) == []
    extension.start()
    extension.said("1 runs were under way when an earlier server ended")
    first = extension.call(hooks.UPGRADE, **UPGRADE)
    if held(first):
        assert "winready" in first["message"]
    answer = extension.until(released, hooks.UPGRADE, **UPGRADE)
    assert "Pass" in answer["message"]
    extension.said(r"run \S+ is taken up again")
    assert extension.facts() == ["0001-asked.json", "0001-ended.json", "0001-taken-01.json", "0001-taken-02.json"]


def test_a_run_that_was_killed_is_begun_again(start: Start) -> None:
    extension = start("--policy", "require-pass")
    extension.until(lambda answer: "is under way since" in answer["message"], hooks.UPGRADE, **UPGRADE)
    for pid in children(extension):
        os.kill(pid, signal.SIGKILL)
    extension.said(r"the run was killed \(signal 9\)")
    assert "Pass" in extension.until(released, hooks.UPGRADE, **UPGRADE)["message"]
    assert extension.facts("asked") == ["0001-asked.json", "0002-asked.json"]


def test_a_deletion_stops_the_run_and_waits_for_it_to_clean_up(start: Start, workload: dict[str, Any]) -> None:
    extension = start("--policy", "require-pass")
    extension.until(lambda answer: "is under way since" in answer["message"], hooks.UPGRADE, **UPGRADE)
    extension.until(lambda _: bool(spaces(str(workload["kubeconfig"]))), hooks.UPGRADE, **UPGRADE)
    waiting = extension.call(hooks.DELETE)
    assert held(waiting)
    assert "is being stopped and cleans up in cluster fleet/one" in waiting["message"]
    assert released(extension.until(released, hooks.DELETE))
    assert children(extension) == []
    assert spaces(str(workload["kubeconfig"])) == []
    until = time.monotonic() + PATIENCE
    while extension.facts():
        assert time.monotonic() < until
        time.sleep(0.1)


def test_a_deletion_never_waits_longer_than_its_limit(start: Start) -> None:
    extension = start("--policy", "require-pass")
    extension.until(lambda answer: "is under way since" in answer["message"], hooks.UPGRADE, **UPGRADE)
    (child,) = children(extension)
    os.kill(child, signal.SIGSTOP)
    assert held(extension.call(hooks.DELETE))
    # What counts is when somebody wanted it gone, also for a server that has just been started.
    assert released(extension.call(hooks.DELETE, deletionTimestamp="2026-01-01T00:00:00Z"))
    until = time.monotonic() + PATIENCE
    while children(extension):
        assert time.monotonic() < until
        time.sleep(0.1)


def test_the_first_run_of_a_new_cluster_is_queued_and_nobody_waits_for_it(start: Start) -> None:
    extension = start()
    for _ in range(3):
        answer = extension.call(hooks.CREATED)
        assert answer["status"] == "Success"
        assert "retryAfterSeconds" not in answer
        assert "a run of cluster fleet/one is queued" in answer["message"]
    extension.said("cluster fleet/one, after its control plane came up: Pass")
    assert extension.facts("asked") == ["0001-asked.json"]
    assert extension.call(hooks.CREATED, "other", uid="o", labels={"winready.io/policy": "off"})["status"] == "Success"
    assert extension.facts("asked") == ["0001-asked.json"]


def test_a_full_disk_holds_who_must_pass_and_warns_the_others(start: Start) -> None:
    extension = start()
    assert extension.process is not None
    resource.prlimit(extension.process.pid, resource.RLIMIT_FSIZE, (0, 0))
    answer = extension.call(hooks.UPGRADE, labels=STRICT, **UPGRADE)
    assert held(answer)
    assert "held, since winready cannot keep what it does" in answer["message"]
    assert "takes nothing more" in answer["message"]
    answer = extension.call(hooks.UPGRADE, **UPGRADE)
    assert released(answer)
    assert "was not judged" in answer["message"]
    assert "warning" in extension.call(hooks.CREATED)["message"]
    assert released(extension.call(hooks.DELETE))


def test_a_disk_that_fills_up_during_a_run_changes_no_answer(start: Start) -> None:
    extension = start("--policy", "require-pass")
    extension.until(lambda answer: "is under way since" in answer["message"], hooks.UPGRADE, **UPGRADE)
    assert extension.process is not None
    limits = resource.prlimit(extension.process.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(extension.process.pid, resource.RLIMIT_FSIZE, (0, limits[1]))
    assert "Pass" in extension.until(released, hooks.UPGRADE, **UPGRADE)["message"]
    extension.said("error: what became of a run of fleet/one cannot be kept yet: .* takes nothing more")
    assert extension.facts("ended") == []
    resource.prlimit(extension.process.pid, resource.RLIMIT_FSIZE, limits)
    until = time.monotonic() + PATIENCE
    while not extension.facts("ended"):
        assert time.monotonic() < until
        time.sleep(0.1)


def test_a_log_that_nobody_reads_any_more_holds_nobody_up(start: Start) -> None:
    extension = start("--policy", "require-pass")
    extension.deaf()
    assert "Pass" in extension.until(released, hooks.UPGRADE, **UPGRADE)["message"]


def test_a_management_cluster_that_is_away_is_told(start: Start, workload: dict[str, Any], tmp_path: Path) -> None:
    config = yaml.safe_load(Path(workload["kubeconfig"]).read_text())
    config["clusters"][0]["cluster"]["server"] = "https://127.0.0.1:1"
    away = tmp_path / "away"
    away.write_text(yaml.safe_dump(config))
    extension = start("--policy", "require-pass", management=str(away))
    answer = extension.until(lambda answer: "was not judged" in answer["message"], hooks.UPGRADE, **UPGRADE)
    assert held(answer)
    assert "the run could not begin" in answer["message"]


def test_the_certificate_is_made_once_and_kept_in_its_secret(
    command_line: CommandLine, workload: dict[str, Any], tmp_path: Path
) -> None:
    kubeconfig = str(workload["kubeconfig"])

    async def secret(content: dict[str, str] | None = None) -> dict[str, str]:
        async with Client.connect(find_target(kubeconfig)) as client:
            if content is not None:
                if await client.find(NAMESPACES, "gate") is None:
                    await client.create(NAMESPACES, {"metadata": {"name": "gate"}})
                await client.delete(SECRETS, "tls", "gate")
                await client.create(SECRETS, {"metadata": {"name": "tls"}, "data": content}, "gate")
            found: dict[str, str] = (await client.get(SECRETS, "tls", "gate")).get("data") or {}
            return found

    def served() -> str:
        extension = Extension(command_line, tmp_path, kubeconfig)
        words = ("capi", "serve", "gate/winready", "--kubeconfig", kubeconfig, "--listen", "127.0.0.1", "--port", "0")
        process = command_line.start(*words, "--identity-secret", "gate/tls", "--state", str(tmp_path / "state"))
        extension.process = process
        extension.follow()
        port = int(extension.said(r"listening on 127.0.0.1 port (\d+)")[1])
        found = ssl.get_server_certificate(("127.0.0.1", port))
        assert extension.end() == 0
        return found

    asyncio.run(secret({}))
    first = served()
    kept = asyncio.run(secret())
    assert base64.b64decode(kept["tls.crt"]).decode() == first
    assert served() == first
    # What is no certificate is made anew; the authorities of before and after are both known.
    asyncio.run(secret({**kept, "tls.crt": base64.b64encode(b"junk").decode()}))
    assert served() != first
    known = base64.b64decode(asyncio.run(secret())["ca.crt"])
    assert known.count(b"BEGIN CERTIFICATE") == 2
    assert base64.b64decode(kept["ca.crt"]) in known


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("https://a:1",), "say where the certificate is"),
        (("https://a:1", "--identity", "k", "--identity-secret", "a/b"), "say where the certificate is"),
        (("https://a:1", "--cert", "a"), "say where the certificate is"),
        (("http://a:1", "--identity", "k"), "https://HOST:PORT"),
        (("https://a:1", "--identity", "k", "--again", "1h,soon"), "'soon' is not a duration"),
        (("https://a:1", "--identity", "k", "--poll", "2h"), "at most 1h"),
        (("https://a:1", "--identity", "k", "--requirement", "x", "--nodes", "no"), "--nodes"),
    ],
)
def test_mistakes_end_the_command(words: tuple[str, ...], message: str) -> None:
    result = CliRunner().invoke(cli, ["capi", "serve", *words])
    assert result.exit_code == 2, result.output
    assert message in result.output


def test_places_and_keys_that_cannot_be_used_are_told(workload: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    place = ("capi", "serve", "https://127.0.0.1:0", "--kubeconfig", str(workload["kubeconfig"]), "--port", "0")
    for words, code, message in (
        (("--identity", str(tmp_path / "file" / "k")), 2, "cannot be used for the certificate"),
        (("--cert", str(tmp_path / "file"), "--key", str(tmp_path / "file")), 2, "no certificate and its key"),
        (("--identity", str(tmp_path / "k"), "--state", str(tmp_path / "file")), 3, str(tmp_path / "file")),
        (("--identity", str(tmp_path / "k"), "--state", "ftp://x/y"), 2, "ftp://"),
        (("--identity", str(tmp_path / "k"), "--state", f"file://{tmp_path}/unmounted"), 3, "there is no folder"),
        (("--identity", str(tmp_path / "k"), "--report-dir", "s3://u:p@x/y"), 2, "a user or a password"),
        (("--identity-secret", "gate/none"), 3, "there is no Secret gate/none"),
    ):
        state = () if "--state" in words else ("--state", str(tmp_path / "state"))
        result = CliRunner().invoke(cli, [*place, *words, *state])
        assert result.exit_code == code, result.output
        assert message in result.output
