"""Run by the real Sonobuoy: aggregator, worker and our plugin as processes on the host node, Windows nodes simulated.

Sonobuoy's own program does everything: run, status, retrieve, results, delete. Every way a plugin can end is one run in
a namespace of its own; each must show its user what to know. Nodes and checks are scaled by
`SPEED`; Sonobuoy, the control plane and what runs on the host node are not.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import yaml

from real.conftest import EMBEDDED, KUBERNETES, SPEED, Cluster, start, winready
from real.sonobuoy import IMAGE, WINREADY, Story, flags
from real_programs import ensure

pytestmark = [pytest.mark.sonobuoy, pytest.mark.timeout(900)]

PODS = "core.network.windows-to-linux-pod-ip"
NAMES = "core.network.dns-internal"
SLOW = "core.scheduling.limits-honoured"
FAULT = "dns.windows.no-search-path"
"""Concerns `NAMES` alone of these."""
AT_ONCE = 4
"""What one node with two processors has room for, by the requests of the pods."""
CHECKED = ("--skip-preflight=dnscheck",)
"""The embedded control plane's DNS is not in pods that Sonobuoy would recognise."""


@pytest.fixture(scope="session")
def program() -> Iterator[Path]:
    """Sonobuoy's image, which is one program."""
    folder = Path(tempfile.mkdtemp(prefix="wr-sonobuoy-"))
    # Its processes are not the user who may look into the folder around it.
    root = folder / "root"
    (root / "tmp").mkdir(parents=True)
    (root / "tmp").chmod(0o1777)
    shutil.copy2(ensure(KUBERNETES, ["sonobuoy"]) / "sonobuoy", root / "sonobuoy")
    yield root
    shutil.rmtree(folder)


@pytest.fixture(scope="session", params=[EMBEDDED, KUBERNETES])
def cluster(request: pytest.FixtureRequest, program: Path, winready_image: Path) -> Iterator[Cluster]:
    named = (f"{IMAGE}={program}", f"{WINREADY}={winready_image}")
    given = [word for image in named for word in ("--host-image", image)]
    runtime = Path(tempfile.mkdtemp(prefix="wr-"))
    yield start(runtime, request.param, "--speed", str(SPEED), "--host-node", *given, "--fault", FAULT)
    assert winready(runtime, "sandbox", "down", "--all").returncode == 0
    shutil.rmtree(runtime)


def nothing_selected(document: dict[str, Any]) -> None:
    """As somebody may write it by hand; 'winready sonobuoy plugin' itself would refuse it."""
    document["spec"]["args"] += ["--skip", PODS]


def unknown_category(document: dict[str, Any]) -> None:
    document["spec"]["args"] += ["--category", "core.netwrk"]


def without_rights(document: dict[str, Any]) -> None:
    document["podSpec"]["serviceAccountName"] = "default"


def with_least_rights(story: Story) -> Story:
    """The plugin has the rights of 'winready rbac', and Sonobuoy itself may only look."""
    name = f"{story.namespace}-winready"
    made = story.cluster.winready("rbac", "--name", name, "--namespace", story.namespace)
    assert made.returncode == 0, made.stderr
    story.create(list(yaml.safe_load_all(made.stdout)))
    options = ("--skip-preflight=true", "--aggregator-permissions", "clusterRead")
    try:
        return story.run(*flags(PODS), "--service-account", name, options=options)
    finally:
        story.remove_roles(name)


CASES: dict[str, Callable[[Story], Story]] = {
    "killed": lambda story: story.run(
        *flags(SLOW, scale=1), options=(*CHECKED, "--timeout", "58"), meanwhile=lambda it: it.remove_plugin_pod(0)
    ),
    "passes": lambda story: story.run(*flags(PODS), options=CHECKED),
    "least-rights": lambda story: with_least_rights(story),
    "fails": lambda story: story.run(*flags(PODS, NAMES), options=CHECKED),
    "interrupted": lambda story: story.run(
        *flags(SLOW, scale=1), options=CHECKED, meanwhile=lambda it: it.remove_plugin_pod(None)
    ),
    "own-deadline": lambda story: story.run(*flags(SLOW, scale=1), "--timeout", "5s", options=CHECKED),
    "sonobuoy-timeout": lambda story: story.run(*flags(SLOW, NAMES, scale=1), options=(*CHECKED, "--timeout", "38")),
    "nothing-selected": lambda story: story.run(*flags(PODS), edit=nothing_selected, options=CHECKED),
    "unknown-category": lambda story: story.run(*flags(PODS), edit=unknown_category, options=CHECKED),
    "without-rights": lambda story: story.run(*flags(PODS), edit=without_rights, options=CHECKED),
}


@pytest.fixture(scope="session")
def stories(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Future[Story]]]:
    """All cases, several at a time: most of what takes time is waiting for Sonobuoy's next look."""
    program = ensure(KUBERNETES, ["sonobuoy"]) / "sonobuoy"
    with ThreadPoolExecutor(AT_ONCE) as pool:
        futures = {}
        for name, case in CASES.items():
            story = Story(tmp_path_factory.mktemp(name), f"sono-{name}", cluster, program)
            futures[name] = pool.submit(case, story)
        yield futures


def failed(story: Story) -> list[str]:
    """What ``sonobuoy results`` lists as failed."""
    lines = story.results.partition("Failed tests:\n")[2].partition("\n\n")[0]
    return lines.splitlines()


def test_a_pass_is_passed_and_its_tarball_is_a_run(stories: dict[str, Future[Story]]) -> None:
    story = stories["passes"].result()
    assert story.plugin["result-status"] == "passed"
    assert "failed" not in story.plugin["result-counts"]
    assert "passed" in story.table
    assert failed(story) == []
    read = story.cluster.winready("sonobuoy", "results", str(story.tarball))
    assert read.returncode == 0, read.stderr
    assert read.stdout.splitlines()[-1] == "Pass (partial: 1 of 24 core requirements)"
    verified = story.cluster.winready("verify", str(story.tarball))
    assert verified.returncode == 3, verified.stdout
    report = story.cluster.winready("report", str(story.tarball), "--format", "junit")
    assert PODS in report.stdout
    assert story.left == []
    assert "has been deleted" in story.deleted


def test_a_fault_is_failed_with_the_requirement_that_noticed(stories: dict[str, Future[Story]]) -> None:
    story = stories["fails"].result()
    assert story.plugin["result-status"] == "failed"
    assert story.plugin["progress"]["total"] == 2
    assert failed(story) == ["Verdict", NAMES]
    read = story.cluster.winready("sonobuoy", "results", str(story.tarball))
    assert read.returncode == 1
    assert f"✗ {NAMES}" in read.stdout
    assert story.left == []


def test_an_interrupted_plugin_hands_over_what_it_has(stories: dict[str, Future[Story]]) -> None:
    story = stories["interrupted"].result()
    assert story.plugin["result-status"] == "failed"
    read = story.cluster.winready("sonobuoy", "results", str(story.tarball))
    # What cleaning up took longer for than Sonobuoy waits is not in its results.
    assert read.returncode in (130, 3), read.stdout + read.stderr
    assert "interrupted before it was judged" in read.stdout
    assert story.left == []


def test_a_killed_plugin_is_failed_when_the_time_of_sonobuoy_is_over(stories: dict[str, Future[Story]]) -> None:
    """Sonobuoy does not look for pods that are gone: until its time is over, its user sees our last word alone."""
    story = stories["killed"].result()
    assert story.plugin["result-status"] == "failed"
    read = story.cluster.winready("sonobuoy", "results", str(story.tarball))
    assert read.returncode == 2
    assert "Sonobuoy says of winready: " in read.stderr
    assert story.left == []


def test_its_own_deadline_keeps_what_was_found(stories: dict[str, Future[Story]]) -> None:
    story = stories["own-deadline"].result()
    assert story.plugin["result-status"] == "failed"
    assert failed(story)[:2] == ["Verdict", SLOW]
    read = story.cluster.winready("sonobuoy", "results", str(story.tarball))
    assert read.returncode == 3
    assert "the run's time of 5 s was over" in read.stdout
    assert story.left == []


def test_the_time_out_of_sonobuoy_is_told_as_such(stories: dict[str, Future[Story]]) -> None:
    story = stories["sonobuoy-timeout"].result()
    assert story.plugin["result-status"] == "failed"
    read = story.cluster.winready("sonobuoy", "results", str(story.tarball))
    # It looks every ten seconds whether its time is over, and misses it when it is late: then it goes on waiting.
    assert (read.returncode, "timeout" in read.stderr) in ((2, True), (1, False)), read.stderr
    assert story.left == []


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("nothing-selected", "the selection is empty: nothing would be verified; loosen --skip or select more"),
        ("unknown-category", "unknown category 'core.netwrk'; did you mean 'Core.Network'?"),
    ],
)
def test_what_cannot_run_is_failed_by_its_name(stories: dict[str, Future[Story]], name: str, words: str) -> None:
    story = stories[name].result()
    assert story.plugin["result-status"] == "failed"
    assert failed(story) == [words]
    assert f"error: {words}" in story.log
    read = story.cluster.winready("sonobuoy", "results", str(story.tarball))
    assert read.returncode == 2
    assert f"winready says: {words}" in read.stderr
    assert story.left == []


def test_missing_rights_are_named(stories: dict[str, Future[Story]]) -> None:
    story = stories["without-rights"].result()
    assert story.plugin["result-status"] == "failed"
    assert "rights are missing: list nodes" in story.log
    assert failed(story) == ["rights are missing: list nodes"]
    assert story.left == []


def test_the_rights_of_winready_rbac_are_enough(stories: dict[str, Future[Story]]) -> None:
    story = stories["least-rights"].result()
    assert story.plugin["result-status"] == "passed"
    assert failed(story) == []


def test_the_plugin_file_survives_sonobuoy(stories: dict[str, Future[Story]]) -> None:
    """Its keys are not dropped in silence: what Sonobuoy would create holds all of them."""
    story = stories["passes"].result()
    plugin = yaml.safe_load((story.folder / "plugin.yaml").read_text())
    made = story.sonobuoy("gen", "-p", "plugin.yaml", "--kubernetes-version=ignore", "--rbac=enable")
    objects = [document for document in yaml.safe_load_all(made.stdout) if document]
    held = next(each for each in objects if each["metadata"]["name"] == "sonobuoy-plugins-cm")["data"]
    kept = yaml.safe_load(next(iter(held.values())))
    assert kept["sonobuoy-config"] == plugin["sonobuoy-config"]
    for name in ("serviceAccountName", "restartPolicy", "nodeSelector", "tolerations", "terminationGracePeriodSeconds"):
        assert kept["podSpec"][name] == plugin["podSpec"][name]
    for name in ("command", "args", "image", "securityContext"):
        assert kept["spec"][name] == plugin["spec"][name]
