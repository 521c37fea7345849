#!/usr/bin/env python3
"""A tour of the sandbox: start a hybrid cluster, put work on both operating systems, look at it, take it away.

It talks to the cluster as any outsider would: through the kubeconfig that ``winready sandbox up`` hands out.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import re
import shutil
import ssl
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import aiohttp

AGNHOST = "registry.k8s.io/e2e-test-images/agnhost:2.53"
BOLD, DIM, PLAIN = (
    ("\033[1m", "\033[2m", "\033[0m") if sys.stdout.isatty() and "NO_COLOR" not in os.environ else ("",) * 3
)
STATUS_CHANNEL = 3
NAME = f"demo-{os.getpid()}"
Object = dict[str, Any]


def winready(*arguments: str) -> str:
    """Run the command line like a user."""
    command = [sys.executable, "-m", "winready", *arguments]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        sys.exit(f"winready {' '.join(arguments)} failed:\n{result.stderr}")
    return result.stdout


def title(text: str) -> None:
    print(f"\n{BOLD}{text}{PLAIN}")


def session(kubeconfig: Path) -> aiohttp.ClientSession:
    """An HTTP session with the credentials of a kubeconfig."""
    text = kubeconfig.read_text()

    def field(name: str) -> str:
        match = re.search(rf"^ *{name}: (\S+)$", text, re.MULTILINE)
        if match is None:
            sys.exit(f"{kubeconfig} has no {name}")
        return match[1]

    context = ssl.create_default_context(cadata=base64.b64decode(field("certificate-authority-data")).decode())
    with tempfile.NamedTemporaryFile() as pair:
        pair.write(base64.b64decode(field("client-key-data")) + base64.b64decode(field("client-certificate-data")))
        pair.flush()
        context.load_cert_chain(pair.name)
    return aiohttp.ClientSession(field("server"), connector=aiohttp.TCPConnector(ssl=context))


def deployment(system: str, replicas: int) -> Object:
    """Some pods for one operating system."""
    labels = {"app": f"hello-{system}"}
    pod = {
        "os": {"name": system},
        "nodeSelector": {"kubernetes.io/os": system},
        "containers": [{"name": "hello", "image": AGNHOST, "args": ["netexec"]}],
    }
    template = {"metadata": {"labels": labels}, "spec": pod}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": f"hello-{system}"},
        "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template},
    }


def service(system: str) -> Object:
    """A stable name for those pods."""
    spec = {"selector": {"app": f"hello-{system}"}, "ports": [{"port": 80, "targetPort": 8080}]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": f"hello-{system}"}, "spec": spec}


async def call(api: aiohttp.ClientSession, method: str, path: str, body: Object | None = None) -> Object:
    """One request; a failure ends the tour with the server's own words."""
    async with api.request(method, path, json=body) as answer:
        decoded: Object = await answer.json()
        if answer.status >= 400:
            sys.exit(f"{method} {path}: {decoded.get('message')}")
        return decoded


async def tour(kubeconfig: Path) -> None:
    """What can be done with a sandbox."""
    async with session(kubeconfig) as api:
        title("Its nodes register, report and can be asked, like real ones")
        for node in (await call(api, "GET", "/api/v1/nodes"))["items"]:
            info, name = node["status"]["nodeInfo"], node["metadata"]["name"]
            print(f"  {name:<10} {info['operatingSystem']:<8} {info['osImage']}, {info['kernelVersion']}")

        title("Deployments for both operating systems, and a service for each")
        for system in ("linux", "windows"):
            await call(api, "POST", "/apis/apps/v1/namespaces/default/deployments", deployment(system, 2))
            await call(api, "POST", "/api/v1/namespaces/default/services", service(system))
        pods = await ready(api, 4)
        for pod in pods:
            print(f"  {pod['metadata']['name']:<31} {pod['spec']['nodeName']:<10} {pod['status']['podIP']}")

        title("Commands in their containers answer as the operating system does")
        for system, command in (
            ("windows", ["cmd", "/c", "ver"]),
            ("windows", ["cmd", "/c", "dir C:\\nowhere"]),
            ("linux", ["sh", "-c", "uname -s; exit 3"]),
        ):
            pod = next(pod for pod in pods if system in pod["metadata"]["name"])
            code, output = await execute(api, pod, command)
            print(f"  {DIM}{system}> {' '.join(command)}{PLAIN}  (exit code {code})")
            print("\n".join(f"    {line}" for line in output.split("\n") if line.strip()))

        title("Pods of one find services of the other, through cluster DNS and their node's proxy")
        for system, program, other in (("linux", "curl", "windows"), ("windows", "curl.exe", "linux")):
            pod = next(pod for pod in pods if system in pod["metadata"]["name"])
            url = f"http://hello-{other}/hostname"
            code, output = await retried(api, pod, [program, "-s", url])
            print(f"  {DIM}{system}> {program} -s {url}{PLAIN}  {output.strip()} (exit code {code})")

        title("Refusals read like a real API server's")
        wrong = deployment("windows", 1)
        wrong["metadata"]["name"] = "impossible"
        wrong["spec"]["template"]["spec"]["hostPID"] = True
        deployments, secrets = "/apis/apps/v1/namespaces/default/deployments", "/api/v1/namespaces/default/secrets"
        for what, path, body, headers in (
            ("a user without rights", secrets, None, {"Impersonate-User": "jane"}),
            ("a Windows pod that wants what Windows has not", deployments, wrong, {}),
        ):
            async with api.request("POST" if body else "GET", path, json=body, headers=headers) as answer:
                print(f"  {what}: {answer.status}\n  {DIM}{(await answer.json()).get('message', '')}{PLAIN}")


async def execute(api: aiohttp.ClientSession, pod: Object, command: list[str]) -> tuple[int, str]:
    """Run a command in a pod as kubectl exec does; exit code and output."""
    path = f"/api/v1/namespaces/default/pods/{pod['metadata']['name']}/exec"
    query = [("stdout", "true"), ("stderr", "true"), *(("command", word) for word in command)]
    output, code = b"", 0
    async with api.ws_connect(path, params=query, protocols=["v5.channel.k8s.io"]) as socket:
        async for message in socket:
            if message.data[0] != STATUS_CHANNEL:
                output += message.data[1:]
                continue
            status = json.loads(message.data[1:])
            if status["status"] != "Success":
                causes = status.get("details", {}).get("causes", [])
                code = next((int(cause["message"]) for cause in causes if cause["reason"] == "ExitCode"), -1)
    return code, output.decode(errors="replace").replace("\r\n", "\n")


async def retried(api: aiohttp.ClientSession, pod: Object, command: list[str]) -> tuple[int, str]:
    """The same until it succeeds or ten seconds are over: DNS and proxies need a moment to learn of a service."""
    deadline = time.monotonic() + 10
    while True:
        code, output = await execute(api, pod, command)
        if code == 0 or time.monotonic() > deadline:
            return code, output
        await asyncio.sleep(0.1)


def look(kubeconfig: Path) -> None:
    """The same through kubectl, where it is installed."""
    if kubectl := shutil.which("kubectl"):
        title("kubectl works, too")
        print(f"  {DIM}$ kubectl get deployments,pods -o wide{PLAIN}")
        command = [kubectl, "--kubeconfig", str(kubeconfig), "get", "deployments,pods", "-o", "wide"]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        print("\n".join("  " + line for line in (result.stdout + result.stderr).splitlines()))


async def ready(api: aiohttp.ClientSession, count: int) -> list[Object]:
    """Wait until that many pods are ready."""
    deadline = time.monotonic() + 60
    while True:
        pods = (await call(api, "GET", "/api/v1/namespaces/default/pods"))["items"]
        found = [pod for pod in pods if is_ready(pod)]
        if len(found) >= count:
            return found
        if time.monotonic() > deadline:
            sys.exit(f"only {len(found)} of {count} pods became ready within a minute")
        await asyncio.sleep(0.1)


def is_ready(pod: Object) -> bool:
    """Whether a pod says that it is ready."""
    conditions = pod["status"].get("conditions") or []
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def main() -> None:
    started = time.monotonic()
    title("winready sandbox up --detach")
    document = json.loads(winready("sandbox", "up", "--detach", "--name", NAME, "--speed", "max", "-o", "json"))
    print(f"  Kubernetes {document['kubernetes']} at {document['server']}, ready in {time.monotonic() - started:.1f} s")
    try:
        kubeconfig = Path(document["kubeconfig"])
        asyncio.run(tour(kubeconfig))
        look(kubeconfig)
    finally:
        title("winready sandbox down")
        print("  " + winready("sandbox", "down", "--name", NAME).strip())
    print(f"\nYour own: {BOLD}.venv/bin/winready sandbox up{PLAIN}")


if __name__ == "__main__":
    main()
