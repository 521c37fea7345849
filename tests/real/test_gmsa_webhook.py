"""The real gMSA admission webhook before the real API server, and simulated nodes behind it.

The domain itself is simulated: what a container may reach in it is the sandbox's model.
"""

from __future__ import annotations

import json
import shutil
import tempfile
import time
from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from real.api import Api, Call
from real.conftest import KUBERNETES, OLDER, SPEED, WITH_OLDER, Cluster, Kubectl, programs, start, winready
from real.gmsa_cases import CASES, CONTENTS, GROUND, HOOK, NAMESPACE, Case, pod
from real.gmsa_webhook import RBAC, GmsaWebhook, create
from real_programs import ensure
from winready.proof.expected.model import ids
from winready.proof.expected.table import expected
from winready.proof.furnishing import own_domain
from winready_sandbox import directory

pytestmark = pytest.mark.gmsa
PATHS = {
    "namespaces": "/api/v1",
    "serviceaccounts": "/api/v1",
    "gmsacredentialspecs": "/apis/windows.k8s.io/v1",
    "clusterroles": RBAC,
    "rolebindings": RBAC,
}
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
FAULT = "runtime.windows.gmsa-ignored"
CALM = "core.network.windows-to-linux-pod-ip"


@dataclass(frozen=True)
class Ground:
    """A cluster with the webhook before it."""

    cluster: Cluster
    api: Api
    kubectl: Kubectl
    webhook: GmsaWebhook

    def answer(self, case: Case, name: str, *, dry: bool = True) -> tuple[int, dict[str, Any]]:
        """What becomes of a pod."""
        return answer(self.api, case, name, dry=dry)


def answer(api: Api, case: Case, name: str, *, dry: bool = True) -> tuple[int, dict[str, Any]]:
    """Ask for a pod, to be created or only admitted."""
    code, said = api.ask(Call("POST", PODS + ("?dryRun=All" if dry else ""), pod(case, name)))
    assert isinstance(said, dict)
    return code, said


def furnish(api: Api, kubectl: Kubectl) -> None:
    """Upstream's own definition instead of the sandbox's, and what the cases need."""
    kubectl.ok("replace", "-f", str(ensure(KUBERNETES, ["gmsa-crd.yaml"]) / "gmsa-crd.yaml"))
    kubectl.ok("wait", "--for=condition=Established", "crd/gmsacredentialspecs.windows.k8s.io", "--timeout=30s")
    for resource, namespace, obj in GROUND:
        create(api, f"{PATHS[resource]}/{f'namespaces/{namespace}/' if namespace else ''}{resource}", obj)


@pytest.fixture(scope="module")
def ground() -> Iterator[Ground]:
    """A sandbox of its own: a webhook that fails concerns every pod of a cluster."""
    with guarded(KUBERNETES) as made:
        yield made


@contextmanager
def guarded(version: str) -> Iterator[Ground]:
    """A sandbox on the control plane of a version, with the webhook before it."""
    program = ensure(KUBERNETES, ["gmsa-webhook"]) / "gmsa-webhook"
    runtime = Path(tempfile.mkdtemp(prefix="wr-"))
    cluster = start(runtime, version, "--name", "gmsa", "--speed", str(SPEED), "--active-directory")
    try:
        api = Api(cluster.kubeconfig)
        kubectl = Kubectl(programs(KUBERNETES) / "kubectl", cluster.kubeconfig)
        furnish(api, kubectl)
        config = yaml.safe_load(Path(cluster.kubeconfig).read_text())
        authority = b64decode(config["clusters"][0]["cluster"]["certificate-authority-data"]).decode()
        webhook = GmsaWebhook(program, api, authority)
        try:
            webhook.admit()
            webhook.start()
            webhook.install()
            settle(api)
            yield Ground(cluster, api, kubectl, webhook)
        finally:
            webhook.remove()
    finally:
        assert winready(runtime, "sandbox", "down", "--name", "gmsa").returncode == 0
        shutil.rmtree(runtime)


def settle(api: Api) -> None:
    """An API server takes a moment to heed a new configuration: ask until both halves were heard."""
    wanted = {("authorised", 201), ("another service account", 403)}
    for _ in range(200):
        seen = set()
        for name, _code in wanted:
            code, said = answer(api, CASES[name], "settling")
            if code != 201 or "gmsaCredentialSpec" in said["spec"]["securityContext"]["windowsOptions"]:
                seen.add((name, code))
        if seen == wanted:
            return
        time.sleep(0.1)
    raise AssertionError("the API server does not ask the webhook")


@pytest.mark.parametrize("name", CASES)
def test_answers(ground: Ground, name: str) -> None:
    case = CASES[name]
    code, said = ground.answer(case, "asked")
    assert code == case.code, said
    if case.says:
        assert case.agrees(said["message"], "asked"), said
        assert said.get("reason", "") == ""


def test_an_authorised_pod_gets_the_contents_and_the_identity(ground: Ground) -> None:
    code, made = ground.answer(CASES["authorised"], "identity", dry=False)
    assert code == 201, made
    injected = made["spec"]["securityContext"]["windowsOptions"]["gmsaCredentialSpec"]
    assert json.loads(injected) == CONTENTS
    code, plain = ground.answer(CASES["no gMSA"], "plain", dry=False)
    assert code == 201, plain
    kubectl = ground.kubectl
    kubectl.ok("wait", "--for=condition=Ready", "pod/identity", "pod/plain", "-n", NAMESPACE, "--timeout=120s")
    assert "sandbox.test. (1)" in kubectl.ok("exec", "identity", "-n", NAMESPACE, "--", "nltest", "/parentdomain")
    assert "NERR_Success" in kubectl.ok("exec", "identity", "-n", NAMESPACE, "--", "nltest", "/query")
    without = kubectl("exec", "plain", "-n", NAMESPACE, "--", "nltest", "/parentdomain")
    assert without.returncode != 0
    assert "ERROR_NO_SUCH_DOMAIN" in without.stderr
    kubectl.ok("label", "pod", "identity", "-n", NAMESPACE, "a=b")
    kubectl.ok("delete", "pod", "identity", "plain", "-n", NAMESPACE, "--wait=false")


def test_the_sandbox_defines_credential_specs_as_upstream_does() -> None:
    upstream = yaml.safe_load((ensure(KUBERNETES, ["gmsa-crd.yaml"]) / "gmsa-crd.yaml").read_text())
    assert comparable(upstream["spec"]) == comparable(directory.definition()["spec"])


def comparable(spec: dict[str, Any]) -> dict[str, Any]:
    """Without the order of versions, what is the default, and descriptions."""
    text = json.dumps({key: value for key, value in spec.items() if key != "conversion"})
    found: dict[str, Any] = json.loads(text.replace('"description": "GMSA Credential Spec", ', ""))
    return {**found, "versions": {each["name"]: each for each in found["versions"]}}


MEMBERS = [f"extend.activedirectory.{name}" for name in ("gmsa-access", "storage", "denied-without")]
"""A1 to A3."""


def judged(ground: Ground, folder: Path) -> dict[str, str]:
    """What a run says about the requirements that need a domain."""
    given = folder / "domain.yaml"
    document = own_domain({"active_directory": True})
    assert document is not None
    given.write_text(json.dumps(msgspec.to_builtins(document)))
    words = [word for name in MEMBERS for word in ("--requirement", name)]
    words += ["--time-scale", "5", "--active-directory", str(given), "--report-dir", str(folder / "run"), "-o", "json"]
    result = ground.cluster.winready("run", "--kubeconfig", ground.cluster.kubeconfig, *words)
    assert result.returncode in (0, 1, 3), result.stderr
    found = {item["id"]: item["outcome"] for item in json.loads(result.stdout)["requirements"]}
    return {name: found[name] for name in MEMBERS}


@pytest.mark.timeout(600)
def test_the_checks_pass_behind_the_real_webhook(ground: Ground, tmp_path: Path) -> None:
    assert judged(ground, tmp_path) == dict.fromkeys(MEMBERS, "passed")


@WITH_OLDER
@pytest.mark.timeout(600)
def test_the_checks_pass_behind_the_real_webhook_of_an_older_version(tmp_path: Path) -> None:
    with guarded(OLDER) as ground:
        assert judged(ground, tmp_path) == dict.fromkeys(MEMBERS, "passed")


@pytest.mark.timeout(600)
def test_the_checks_notice_a_fault_behind_the_real_webhook(ground: Ground, tmp_path: Path) -> None:
    broken = ground.cluster.winready("sandbox", "break", FAULT, "--name", "gmsa")
    assert broken.returncode == 0, broken.stderr
    try:
        found = judged(ground, tmp_path)
    finally:
        ground.cluster.winready("sandbox", "heal", "--name", "gmsa")
    expectation = expected(FAULT)
    outcomes = {"failed": expectation.requirements, "blocked": ids(expectation.blocks)}
    expectations = {name: outcome for outcome, names in outcomes.items() for name in names}
    assert found == {name: expectations.get(name, "passed") for name in MEMBERS}
    assert "failed" in found.values()


def outcome(ground: Ground, folder: Path) -> dict[str, Any]:
    """What a run says about a requirement that has nothing to do with gMSA."""
    words = ["--requirement", CALM, "--time-scale", "5", "--report-dir", str(folder), "-o", "json"]
    result = ground.cluster.winready("run", "--kubeconfig", ground.cluster.kubeconfig, *words)
    assert result.returncode in (0, 1, 3), result.stderr
    (found,) = [each for each in json.loads(result.stdout)["requirements"] if each["id"] == CALM]
    assert isinstance(found, dict)
    return found


@pytest.mark.timeout(600)
def test_while_it_is_down_nothing_is_judged_and_it_is_named(ground: Ground, tmp_path: Path) -> None:
    ground.webhook.stop()
    try:
        code, said = ground.answer(CASES["no gMSA"], "refused")
        assert code == 500
        assert said["message"].startswith(f'Internal error occurred: failed calling webhook "{HOOK}": ')
        assert "connection refused" in said["message"]
        found = outcome(ground, tmp_path)
    finally:
        ground.webhook.start()
    assert found["outcome"] == "blocked"
    assert HOOK in json.dumps(found), "the record names the webhook"
    assert ground.answer(CASES["no gMSA"], "admitted")[0] == 201, "it is there again"


def test_only_loopback_reaches_it(ground: Ground) -> None:
    """It listens on all interfaces, of a network that has none but loopback; the way in is a port on loopback."""
    listeners = [
        line.split()[1]
        for table in ("tcp", "tcp6")
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]
        if line.split()[3] == "0A"
    ]
    port = f":{ground.webhook.port:04X}"
    assert [address for address in listeners if address.endswith(port)] == [f"0100007F{port}"]
    interfaces = [line.split(":")[0].strip() for line in ground.webhook.network().splitlines()[2:]]
    assert interfaces == ["lo"]
