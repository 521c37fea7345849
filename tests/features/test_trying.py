"""``--try``: how far a workload's own pod comes, told truly and without what nobody should see."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from engine.stage import Played, Stage
from winready.cluster.client import Client
from winready.cluster.resources import NAMESPACES, SECRETS
from winready.engine import events
from winready.engine.trying import judge_pod
from winready.engine.workloads import Step
from winready.features import attempts, manifests, relying
from winready.lint.context import Profile
from winready.lint.files import Input
from winready_sandbox.plan import Plan
from winready_sandbox.up import Sandbox
from winready_sandbox.virtual_time import VirtualTimeLoop

QUICK = "core.network.distinct-pod-ips"
WORD = "p4ssw0rd-of-the-shop"
POD = """\
apiVersion: v1
kind: Pod
metadata: {name: one, namespace: shop}
spec:
  os: {name: windows}
  nodeSelector: {kubernetes.io/os: windows}
  containers:
    - name: main
      image: %s
"""
SAMPLE = "mcr.microsoft.com/dotnet/samples:aspnetapp-nanoserver-ltsc2022"
CORE = "mcr.microsoft.com/windows/nanoserver:ltsc2022"
SECRET = f"---\napiVersion: v1\nkind: Secret\nmetadata: {{name: s, namespace: shop}}\nstringData: {{word: {WORD}}}\n"


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    """A cluster in good health."""
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        sandbox = Sandbox(Plan(name="trying"))

        async def enter() -> None:
            await sandbox.__aenter__()
            await sandbox.settled()

        runner.run(enter())
        yield Stage(runner, sandbox)
        runner.run(sandbox.__aexit__(None, None, None))


def read(text: str) -> manifests.Manifests:
    return manifests.read((), Profile(), [Input("app.yaml", content=text.encode())])


def try_it(stage: Stage, found: manifests.Manifests, **more: Any) -> Played:
    workloads = relying.workloads(found)
    tried = tuple(attempts.attempts(found, workloads))
    return stage.play(QUICK, workloads=tuple(workloads), attempts=tried, **more)


def steps(played: Played) -> dict[str, tuple[str, str]]:
    (result,) = played.record.workloads
    return {step.node: (step.reached, step.outcome) for step in result.tried}


BOTH = ("windows-1", "windows-2")


@pytest.mark.parametrize(
    ("text", "reached", "outcome", "words"),
    [
        (POD % SAMPLE + "      readinessProbe: {httpGet: {path: /healthz, port: 8080}}\n", "ready", "passed",
         "its readiness probe answered"),
        (POD % "registry.example.com/shop/web:7", "scheduled", "failed", "the image of container main cannot be had"),
        (POD % "mcr.microsoft.com/windows/nanoserver:ltsc2025", "scheduled", "failed", "no match for platform"),
        (POD % CORE + "      command: [cmd, /c, exit 3]\n", "started", "failed", "exit code 3"),
        (POD % CORE + "      command: [nothing.exe]\n", "pulled", "failed", "cannot find the file"),
        (POD % SAMPLE + "      readinessProbe: {httpGet: {path: /ready, port: 8080}}\n", "started", "failed",
         "Readiness probe failed"),
        (POD % SAMPLE + "      livenessProbe: {httpGet: {path: /no, port: 8080}, failureThreshold: 1}\n", "started",
         "failed", "exit code"),
        (POD % SAMPLE + "      resources: {requests: {cpu: 900}}\n", "accepted", "failed", "Insufficient cpu"),
        (POD % CORE + "      command: [cmd, /c, exit 0]\n  restartPolicy: Never\n", "ready", "passed", "to its end"),
        (POD % SAMPLE + "  hostPID: true\n", "nothing", "failed", "hostPID"),
    ],
)  # fmt: skip
def test_how_far_a_pod_comes(stage: Stage, text: str, reached: str, outcome: str, words: str) -> None:
    played = try_it(stage, read(text))
    assert steps(played) == dict.fromkeys(BOTH, (reached, outcome))
    (result,) = played.record.workloads
    assert all(words in step.reason for step in result.tried), result.tried
    assert played.left == []


def test_a_secret_is_copied_and_never_told(stage: Stage, tmp_path: Path) -> None:
    text = POD % CORE + "      command: [cmd, /c, 'echo %WORD% & exit 1']\n"
    text += "      env: [{name: WORD, valueFrom: {secretKeyRef: {name: s, key: word}}}]\n"
    played = try_it(stage, read(text + SECRET))
    assert steps(played) == dict.fromkeys(BOTH, ("started", "failed"))
    told = msgspec.json.encode(played.told).decode()
    assert WORD not in told
    assert base64.b64encode(WORD.encode()).decode() not in told
    # An image that is named after it shows that whatever the cluster says of it is cut out.
    named = text.replace(CORE, f"registry.example.com/{WORD}:1")
    assert WORD not in msgspec.json.encode(try_it(stage, read(named + SECRET)).record.workloads[0].tried).decode()


def test_what_is_missing_is_not_started(stage: Stage) -> None:
    text = POD % CORE + "      envFrom: [{secretRef: {name: s}}, {configMapRef: {name: c, optional: true}}]\n"
    played = try_it(stage, read(text))
    assert steps(played) == dict.fromkeys(BOTH, ("nothing", "blocked"))
    assert "Secret s would have to be there" in played.record.workloads[0].tried[0].reason


def test_what_would_outlive_the_run_is_replaced_and_said() -> None:
    more = "  volumes: [{name: d, persistentVolumeClaim: {claimName: d}}]\n  priorityClassName: high\n"
    more += "  serviceAccountName: web\n  nodeName: windows-1\n"
    ports = "      ports: [{containerPort: 80, hostPort: 80}]\n"
    found = read(POD % CORE + ports + more)
    (attempt,) = attempts.attempts(found, relying.workloads(found))
    spec = attempt.template["spec"]
    assert spec["volumes"] == [{"name": "d", "emptyDir": {}}]
    assert {"priorityClassName", "nodeName", "serviceAccountName"}.isdisjoint(spec)
    assert spec["containers"][0]["ports"] == [{"containerPort": 80}]
    assert len(attempt.changed) == 5
    assert "persistentVolumeClaim" in found.windows[0].pod.spec["volumes"][0]  # what was read stays as it was


def test_only_what_is_referred_to_is_read_from_a_cluster(stage: Stage) -> None:
    text = POD % CORE + "      envFrom: [{secretRef: {name: s}}, {configMapRef: {name: gone}}]\n"
    found = read(text)

    async def story(client: Client) -> None:
        await client.create(NAMESPACES, {"metadata": {"name": "shop"}})
        for name in ("s", "other"):
            data = {"word": base64.b64encode(WORD.encode()).decode()}
            await client.create(SECRETS, {"metadata": {"name": name}, "data": data}, "shop")
        await attempts.copy_live(client, found)
        await client.delete(NAMESPACES, "shop")

    stage.do(story)
    assert list(found.referred) == [("Secret", "shop", "s")]
    (attempt,) = attempts.attempts(found, relying.workloads(found))
    assert attempt.missing == ("ConfigMap gone",)
    assert WORD in attempt.secrets


def test_a_run_that_is_taken_up_again_tries_only_the_rest(stage: Stage) -> None:
    found = read(POD % SAMPLE)
    (workload,) = relying.workloads(found)
    before = try_it(stage, found)
    from winready.engine.facts import gather
    from winready.engine.options import Carried

    facts = gather(before.told)
    nodes = tuple(node.uid for node in before.record.cluster.nodes) if before.record.cluster else ()
    one = [each for each in facts.tried if each[1].node == "windows-1"]
    carried = Carried(tuple(before.record.requirements), nodes, frozenset(BOTH), facts.sights, (), tuple(one))
    started: list[str] = []

    def on(event: events.AnyEvent, _: object) -> None:
        if isinstance(event, events.WorkloadTried) and event.step != one[0][1]:
            started.append(event.step.node)

    again = try_it(stage, found, carried=carried, on=on)
    assert started == ["windows-2"]
    assert steps(again) == dict.fromkeys(BOTH, ("ready", "passed"))
    assert workload.title == again.record.workloads[0].title


def test_an_interrupted_run_leaves_nothing_of_workloads_behind(stage: Stage) -> None:
    def on(event: events.AnyEvent, run: Any) -> None:
        if isinstance(event, events.WorkloadTried):
            run.stop()

    two = POD % SAMPLE + "---\n" + (POD % SAMPLE).replace("name: one", "name: two")
    played = try_it(stage, read(two), on=on)
    assert played.verdict.exit_code == 130
    assert played.left == []


def test_a_pod_that_was_never_seen_came_nowhere() -> None:
    template: dict[str, Any] = {"spec": {"containers": []}}
    assert judge_pod({}, "n", template, []) == Step(
        node="n", reached="accepted", outcome="failed", reason="it is not scheduled"
    )
