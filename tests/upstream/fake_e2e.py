"""A program that behaves like e2e.test: flags, output, namespaces, pods and reports, driven by a script beside it.

``script.json``: ``version``, ``specs`` (text to behaviour) and optionally ``break``. A behaviour has ``end`` (pass,
fail, skip, hang), ``os`` of the pod that is made (or none), ``hold`` seconds that the pod lives, ``tolerate``, and
``brief``: the image of a pod that ends at once.
"""

from __future__ import annotations

import base64
import json
import re
import signal
import ssl
import sys
import tempfile
import time
import uuid
from pathlib import Path
from typing import Any
from urllib import error, request
from xml.sax.saxutils import quoteattr

HERE = Path(sys.argv[0]).resolve().parent
SCRIPT: dict[str, Any] = json.loads((HERE / "script.json").read_text())
STATES = {"pass": "passed", "fail": "failed", "skip": "skipped", "hang": "interrupted"}
AGNHOST = "registry.k8s.io/e2e-test-images/agnhost:2.63.0"
SECRETS = (
    "  token eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJwbGFudGVkIn0.cGxhbnRlZC1zaWduYXR1cmU\n"
    "  -----BEGIN EC PRIVATE KEY-----\n  MHcCAQEEIPlantedPlantedPlanted\n  -----END EC PRIVATE KEY-----\n"
)
"""What tests of clusters may well print."""


class Interrupted(Exception):
    """SIGTERM came."""


class Cluster:
    """The few calls that are needed, with nothing but the standard library."""

    def __init__(self, kubeconfig: str) -> None:
        document = json.loads(Path(kubeconfig).read_text())
        cluster, user = document["clusters"][0]["cluster"], document["users"][0]["user"]
        self.server = cluster["server"]
        self.context = ssl.create_default_context(cadata=_text(cluster["certificate-authority-data"]))
        self.headers = {"Content-Type": "application/json"}
        if "token" in user:
            self.headers["Authorization"] = f"Bearer {user['token']}"
        if "client-certificate-data" in user:
            with tempfile.NamedTemporaryFile("w") as pem:
                pem.write(_text(user["client-certificate-data"]) + _text(user["client-key-data"]))
                pem.flush()
                self.context.load_cert_chain(pem.name)

    def call(self, method: str, path: str, body: Any = None) -> Any:
        data = json.dumps(body).encode() if body is not None else None
        asked = request.Request(f"{self.server}{path}", data, self.headers, method=method)  # noqa: S310
        with request.urlopen(asked, context=self.context, timeout=10) as answer:  # noqa: S310
            return json.load(answer)

    def patiently(self, method: str, path: str, body: Any = None) -> Any:
        for _ in range(100):
            try:
                return self.call(method, path, body)
            except error.HTTPError as refusal:
                if refusal.code != 403:
                    raise
                time.sleep(0.02)  # the default service account is not there yet
        raise SystemExit("the namespace never accepted a pod")


def _text(data: str) -> str:
    return base64.b64decode(data).decode()


def pod(behaviour: dict[str, Any]) -> dict[str, Any]:
    """The pod that a spec makes."""
    spec: dict[str, Any] = {"containers": [{"name": "c", "image": AGNHOST, "args": ["pause"]}]}
    if behaviour.get("os"):
        spec["nodeSelector"] = {"kubernetes.io/os": behaviour["os"]}
    if behaviour.get("tolerate"):
        spec["tolerations"] = [{"operator": "Exists", "effect": "NoSchedule"}]
    if behaviour.get("brief"):
        spec["containers"] = [{"name": "c", "image": behaviour["brief"], "command": ["cmd", "/c", "exit 0"]}]
        spec["restartPolicy"] = "Never"
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "worker"}, "spec": spec}


def run_spec(cluster: Cluster, run_id: str, number: int, behaviour: dict[str, Any]) -> None:
    """One spec: a namespace, a pod, a while, and the namespace goes."""
    name = f"fake-{run_id[:6]}-{number}"
    labels = {"e2e-run": run_id, "e2e-framework": "fake"}
    meta = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}
    cluster.call("POST", "/api/v1/namespaces", meta)
    try:
        if "os" in behaviour:
            cluster.patiently("POST", f"/api/v1/namespaces/{name}/pods", pod(behaviour))
            for _ in range(3000):
                phase = cluster.call("GET", f"/api/v1/namespaces/{name}/pods/worker")["status"].get("phase")
                if phase == "Succeeded" or (phase == "Running" and not behaviour.get("brief")):
                    break
                time.sleep(0.02)
            time.sleep(behaviour.get("hold", 0.0))
        if behaviour["end"] == "hang":
            time.sleep(600)
    finally:
        print(f'  STEP: Destroying namespace "{name}" for this suite. @ 11/16/26 01:41:05.198', flush=True)
        cluster.call("DELETE", f"/api/v1/namespaces/{name}")


def main() -> int:
    given = dict(item.removeprefix("--").partition("=")[::2] for item in sys.argv[1:])
    if "version" in given:
        print(SCRIPT["version"])
        return 0
    if "list-tests" in given:
        print("The following spec names can be used with 'ginkgo run --focus/skip':")
        for number, text in enumerate(SCRIPT["specs"]):
            print(f"    test/e2e/fake.go:{number}: {text}")
        return 0
    (HERE / "calls.jsonl").open("a").write(json.dumps(sys.argv[1:]) + "\n")

    def interrupt(*_: object) -> None:
        raise Interrupted

    signal.signal(signal.SIGTERM, interrupt)
    run_id = str(uuid.uuid4())
    print(f'  I1116 01:41:03.2  15314 e2e.go:109] Starting e2e run "{run_id}" on Ginkgo node 1', flush=True)
    if SCRIPT.get("break"):
        sys.stdout.buffer.write(b"\xff\x00" + b"x" * 300_000 + b"\npanic: something went wrong\n")
        return 2
    focus = re.compile(given["ginkgo.focus"])
    ends: dict[str, tuple[str, float]] = {}
    cluster = Cluster(given["kubeconfig"])
    pods = cluster.call("GET", "/api/v1/pods")["items"]
    (HERE / "found.jsonl").open("a").write(json.dumps(sorted({pod["metadata"]["namespace"] for pod in pods})) + "\n")
    stopped = False
    for number, (text, behaviour) in enumerate(SCRIPT["specs"].items()):
        if stopped or not focus.search(f"Kubernetes e2e suite {text}"):
            continue
        print(f"{'-' * 30}\n{text} [fake, labels]\n/src/test/e2e/fake.go:{number}", flush=True)
        sys.stdout.buffer.write(b"  noise \xff\xfe\x00\n" + SECRETS.encode())
        sys.stdout.flush()
        began = time.monotonic()
        end = behaviour["end"]
        try:
            if end != "skip":
                run_spec(cluster, run_id, number, behaviour)
        except Interrupted:
            stopped, end = True, "hang"
        seconds = time.monotonic() - began
        words = {"pass": "•", "fail": "• [FAILED]", "skip": "S [SKIPPED]", "hang": "• [INTERRUPTED]"}[end]
        print(f"{words} [{seconds:.3f} seconds]", flush=True)
        ends[text] = (end, seconds)
    write_report(Path(given["report-dir"]), ends)
    return 0 if all(end in ("pass", "skip") for end, _ in ends.values()) else 1


def write_report(folder: Path, ends: dict[str, tuple[str, float]]) -> None:
    """All specs of the program, as e2e.test does."""
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', "<testsuites><testsuite>"]
    lines.append('<testcase name="[SynchronizedBeforeSuite]" status="passed" time="0.1"/>')
    for text in SCRIPT["specs"]:
        end, seconds = ends.get(text, ("skip", 0.0))
        inside = ""
        if end in ("fail", "hang"):
            inside = f'<failure message="the answer was wrong" type="failed">at fake.go:1\n{SECRETS}</failure>'
        elif end == "skip":
            inside = '<skipped message="skipped - no &apos;StorageClass&apos;"/>'
        name = quoteattr(f"[It] {text}")
        lines.append(f'<testcase name={name} status="{STATES[end]}" time="{seconds:.3f}">{inside}</testcase>')
    (folder / "junit_01.xml").write_text("\n".join([*lines, "</testsuite></testsuites>"]))


if __name__ == "__main__":
    sys.exit(main())
