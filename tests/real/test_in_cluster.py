"""winready as a pod of the cluster that it verifies: what ``winready deploy`` applies runs, on a host node."""

from __future__ import annotations

import asyncio
import tempfile
import uuid
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest
import yaml

from real.conftest import EMBEDDED, SPEED, Cluster, start
from winready.cluster.client import Client
from winready.cluster.kubeconfig import find_target
from winready.cluster.resources import CONFIG_MAPS, CRON_JOBS, EVENTS, JOBS, NAMESPACES, PODS
from winready.cluster.settings import RUN_LABEL
from winready.deploy.manifests import KINDS

pytestmark = [pytest.mark.in_cluster, pytest.mark.timeout(400)]
T = TypeVar("T")
IMAGE = "registry.example.com/winready:test"
QUICK, SLOW = "core.network.windows-to-linux-pod-ip", "core.scheduling.limits-honoured"
HOST = "sandbox.winready.io/host"
PLACE = ("--runner-node-selector", f"{HOST}=true", "--runner-tolerate", HOST, "--time-scale", str(SPEED))


@pytest.fixture(scope="module")
def cluster(winready_image: Path) -> Iterator[Cluster]:
    with tempfile.TemporaryDirectory(prefix="wr-") as name:
        given = ("--host-node", "--host-image", f"{IMAGE}={winready_image}")
        found = start(Path(name), EMBEDDED, "--speed", str(SPEED), *given)
        yield found
        assert found.winready("sandbox", "down", "--all").returncode == 0


@pytest.fixture
def name() -> str:
    return f"in-{uuid.uuid4().hex[:8]}"


def do(cluster: Cluster, act: Callable[[Client], Awaitable[T]]) -> T:
    async def go() -> T:
        async with Client.connect(find_target(cluster.kubeconfig)) as client:
            return await act(client)

    return asyncio.run(go())


def deploy(cluster: Cluster, kind: str, name: str, *words: str) -> None:
    result = cluster.winready(
        "deploy", kind, "--image", IMAGE, "--name", name, "--namespace", name, *PLACE, *words, "--apply",
        "--kubeconfig", cluster.kubeconfig,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr


async def job(client: Client, name: str, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    """The Job, once it is as wanted."""
    while not wanted(found := await client.get(JOBS, name, name)):  # noqa: ASYNC110 - others change it
        await asyncio.sleep(0.3)
    return found


def told(found: dict[str, Any], key: str) -> str:
    return str(found["metadata"].get("annotations", {}).get(f"winready.io/{key}", ""))


def ended(found: dict[str, Any]) -> str:
    conditions = found.get("status", {}).get("conditions") or []
    return next((item["type"] for item in conditions if item["type"] in ("Complete", "Failed")), "")


def pod_spec(cluster: Cluster, name: str) -> dict[str, Any]:
    """Of the CronJob's pods."""
    found = do(cluster, lambda client: client.get(CRON_JOBS, name, name))
    spec: dict[str, Any] = found["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    return spec


def last_words(cluster: Cluster, name: str) -> tuple[int, str]:
    (pod,) = do(cluster, lambda client: client.list(PODS, name))
    state = pod["status"]["containerStatuses"][0]["state"]["terminated"]
    return state["exitCode"], state["message"]


def test_a_job_passes_and_says_so(cluster: Cluster, name: str) -> None:
    deploy(cluster, "job", name, "--requirement", QUICK)
    found = do(cluster, lambda client: job(client, name, lambda item: bool(ended(item))))
    code, words = last_words(cluster, name)
    assert (ended(found), code) == ("Complete", 0), words
    assert told(found, "verdict") == "Pass (partial: 1 of 24 core requirements)"
    assert words.splitlines()[0] == told(found, "verdict")
    summary = do(cluster, lambda client: client.get(CONFIG_MAPS, f"{name}-summary", name))
    assert summary["data"]["verdict"] == told(found, "verdict")


def test_a_pod_that_is_deleted_cleans_up_and_no_other_one_takes_its_place(cluster: Cluster, name: str) -> None:
    deploy(cluster, "job", name, "--no-volume", "--requirement", QUICK, "--requirement", SLOW)
    do(cluster, lambda client: job(client, name, lambda item: told(item, "progress").startswith("1 of 2")))
    (pod,) = do(cluster, lambda client: client.list(PODS, name))
    do(cluster, lambda client: client.delete(PODS, pod["metadata"]["name"], name))
    found = do(cluster, lambda client: job(client, name, lambda item: bool(ended(item))))
    assert ended(found) == "Failed"
    assert told(found, "verdict") == "Interrupted, no verdict"
    events = do(cluster, lambda client: client.list(EVENTS, name))
    assert sum(item["reason"] == "SuccessfulCreate" for item in events) == 1
    assert do(cluster, lambda client: client.list(NAMESPACES, labels=RUN_LABEL)) == []


def test_a_mistake_in_a_job_that_others_wrote_is_told_in_its_last_words(cluster: Cluster, name: str) -> None:
    # As a chart or an overlay would do it, which do not know what can be selected.
    printed = cluster.winready("deploy", "job", "--image", IMAGE, "--name", name, "--namespace", name, *PLACE)
    items = list(yaml.safe_load_all(printed.stdout))
    container = items[-1]["spec"]["template"]["spec"]["containers"][0]
    container["args"] += ["--category", "core.netwrk"]

    async def put(client: Client) -> None:
        for item in items:
            space = item["metadata"].get("namespace")
            await client.create(KINDS[item["kind"]], item, space)

    do(cluster, put)
    do(cluster, lambda client: job(client, name, lambda item: bool(ended(item))))
    code, words = last_words(cluster, name)
    assert (code, words.splitlines()[-1]) == (2, "error: unknown category 'core.netwrk'; did you mean 'Core.Network'?")


def test_a_cron_job_that_ran_three_times_has_a_history_of_three_runs(cluster: Cluster, name: str) -> None:
    deploy(cluster, "cronjob", name, "--schedule", "*/5 * * * *", "--requirement", QUICK)

    async def three(client: Client) -> list[dict[str, Any]]:
        while len(found := [item for item in await client.list(JOBS, name) if ended(item)]) < 3:  # noqa: ASYNC110
            await asyncio.sleep(0.5)
        await client.patch(CRON_JOBS, name, {"spec": {"suspend": True}}, name)
        return found

    found = do(cluster, three)
    assert {told(item, "verdict") for item in found} == {"Pass (partial: 1 of 24 core requirements)"}
    runs = {told(item, "run-id") for item in found}
    assert len(runs) == 3
    # The volume is still there when the pods are not, for whoever mounts it next.
    reader = {
        "metadata": {"name": "reader"},
        "spec": {**pod_spec(cluster, name), "terminationGracePeriodSeconds": 1},
    }
    # What it says of its Job, a pod without one does not have.
    del reader["spec"]["containers"][0]["env"]
    reader["spec"]["containers"][0]["args"] = ["dashboard", "--report-dir", "/runs", "--port", "8080"]

    async def history(client: Client) -> str:
        await client.create(PODS, reader, name)
        while (phase := (await client.get(PODS, "reader", name))["status"].get("phase")) != "Running":
            assert phase in (None, "Pending"), phase
            await asyncio.sleep(0.3)
        words = ["winready", "history", "--report-dir", "/runs"]
        return (await client.exec(name, "reader", "winready", words, deadline=60)).stdout.decode()

    shown = do(cluster, history)
    assert {run for run in runs if run in shown} == runs
