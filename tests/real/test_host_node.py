"""The host node under a real control plane: scheduled, watched and reached by the real programs."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from real.conftest import KUBERNETES, Kubectl, programs, start, winready
from real_programs import ensure

POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "a"},
    "spec": {
        "nodeSelector": {"sandbox.winready.io/host": "true"},
        "tolerations": [{"key": "sandbox.winready.io/host", "operator": "Exists"}],
        "securityContext": {"runAsUser": 1000},
        "containers": [
            {
                "name": "main",
                "image": "agnhost:1",
                "command": ["/agnhost", "netexec", "--http-port=8080"],
                "readinessProbe": {"httpGet": {"path": "/hostname", "port": 8080}, "periodSeconds": 1},
                "securityContext": {"readOnlyRootFilesystem": True},
            }
        ],
    },
}


@pytest.fixture(scope="module")
def kubectl() -> Iterator[Kubectl]:
    """Of a real control plane whose host node has the real agnhost."""
    runtime, image = Path(tempfile.mkdtemp(prefix="wr-")), Path(tempfile.mkdtemp(prefix="wr-image-"))
    image.chmod(0o755)
    shutil.copy(ensure(KUBERNETES, ["agnhost"]) / "agnhost", image / "agnhost")
    options = ("--name", "host", "--linux", "1", "--windows", "0", "--host-node", "--host-image", f"agnhost:1={image}")
    cluster = start(runtime, KUBERNETES, *options)
    yield Kubectl(programs(KUBERNETES) / "kubectl", cluster.kubeconfig)
    assert winready(runtime, "sandbox", "down", "--all").returncode == 0
    shutil.rmtree(runtime)
    shutil.rmtree(image)


@pytest.mark.parametrize("websockets", ["true", "false"], ids=["websocket", "spdy"])
def test_a_real_server_runs_is_ready_and_is_reached(kubectl: Kubectl, websockets: str) -> None:
    kubectl.ok("apply", "-f", "-", stdin=json.dumps(POD))
    kubectl.ok("wait", "--for=condition=Ready", "pod/a", "--timeout=120s")
    kubectl.environment["KUBECTL_REMOTE_COMMAND_WEBSOCKETS"] = websockets
    answer = kubectl("exec", "a", "--", "/agnhost", "connect", "127.0.0.1:8080", "--timeout=5s")
    assert (answer.returncode, answer.stdout) == (0, ""), answer.stderr
    refused = kubectl("exec", "a", "--", "/agnhost", "connect", "127.0.0.1:9", "--timeout=5s")
    assert (refused.returncode, "REFUSED" in refused.stdout + refused.stderr) == (1, True)
    assert kubectl.ok("get", "--raw", "/api/v1/namespaces/default/pods/a:8080/proxy/hostname") == "a"
    assert "Started HTTP server on port 8080" in kubectl.ok("logs", "a")
    kubectl.ok("delete", "pod", "a", "--timeout=60s")
