"""Kustomize base and Helm chart, rendered by the real programs, are the objects that ``winready deploy`` prints."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from real.conftest import KUBERNETES
from real_programs import ensure
from winready.cli.main import cli
from winready.deploy.bases import IMAGE, SCHEDULE

pytestmark = pytest.mark.charts
ROOT = Path(__file__).resolve().parents[2] / "deploy"
DOMAIN = r"""domain: sandbox.test
credential_spec: webapp
denied_credential_spec: "other"
allowed_share: \\10.250.0.254\webapp
denied_share: \\10.250.0.254\finance
"""
BOUND = DOMAIN.replace('denied_credential_spec: "other"\n', "cluster_role: gmsa-users\n")
CONFORMANCE = '<testsuite>\n<testcase name="[sig-apps] x &lt; $y [Conformance]"/>\n</testsuite>\n'
Objects = dict[tuple[str, str, str], Any]


def normal(text: str) -> Objects:
    """Objects by kind and name; the order of keys, objects and rights says nothing, nor which rights stand together."""
    found: Objects = {}
    for item in yaml.safe_load_all(text):
        if item is None:
            continue
        key = (item["kind"], item["metadata"].get("namespace", ""), item["metadata"]["name"])
        assert key not in found
        found[key] = {**item, "rules": rights(item["rules"])} if "rules" in item else item
    return found


def rights(rules: list[dict[str, list[str]]]) -> set[tuple[str, ...]]:
    """Each verb on each kind of object."""
    return {
        (verb, resource, group, *sorted(rule.get("resourceNames", ())))
        for rule in rules
        for verb in rule["verbs"]
        for resource in rule["resources"]
        for group in rule["apiGroups"]
    }


def deployed(*words: str) -> Objects:
    result = CliRunner().invoke(cli, ["deploy", *words])
    assert result.exit_code == 0, result.output
    return normal(result.stdout)


def programs() -> Path:
    return ensure(KUBERNETES, ["helm", "kustomize"])


def helm(*words: str, ok: bool = True) -> str:
    command = [str(programs() / "helm"), "template", "--kube-version", KUBERNETES, *words]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (result.returncode == 0) is ok, result.stderr
    return result.stdout if ok else result.stderr


def kustomize(folder: Path) -> Objects:
    command = [str(programs() / "kustomize"), "build", str(folder)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert result.returncode == 0, result.stderr
    return normal(result.stdout)


@pytest.mark.parametrize("kind", ["job", "cronjob"])
def test_the_kustomize_base_is_what_deploy_prints(kind: str) -> None:
    schedule = ["--schedule", SCHEDULE] if kind == "cronjob" else []
    assert kustomize(ROOT / "kustomize" / kind) == deployed(kind, "--image", IMAGE, *schedule)


def test_an_overlay_moves_it_to_another_namespace_and_image(tmp_path: Path) -> None:
    # A base is named by a relative path.
    (tmp_path / "base").symlink_to(ROOT / "kustomize")
    overlay = {
        "resources": ["../base/cronjob"],
        "namespace": "readiness",
        "images": [{"name": IMAGE.partition(":")[0], "newName": "r.example.com/a/winready", "newTag": "1"}],
    }
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "kustomization.yaml").write_text(yaml.safe_dump(overlay))
    wanted = deployed(
        "cronjob", "--image", "r.example.com/a/winready:1", "--namespace", "readiness", "--schedule", SCHEDULE
    )
    assert kustomize(tmp_path / "mine") == wanted


def cases(tmp_path: Path) -> Iterator[tuple[list[str], list[str]]]:
    """Values of the chart, and the words of ``winready deploy`` for the same."""
    domain, bound, junit = (tmp_path / name for name in ("domain.yaml", "bound.yaml", "junit.xml"))
    domain.write_text(DOMAIN)
    bound.write_text(BOUND)
    junit.write_text(CONFORMANCE)
    yield [], ["job"]
    yield ["--set", "schedule=@daily"], ["cronjob", "--schedule", "@daily"]
    yield (
        ["--set", "schedule=0 3 * * 1-5,timeZone=Europe/Berlin,keep=7,metricsPort=9100"],
        ["cronjob", "--schedule", "0 3 * * 1-5", "--time-zone", "Europe/Berlin", "--keep", "7",
         "--metrics-port", "9100"],
    )  # fmt: skip
    yield (
        ["--set", "volume.size=5Gi,volume.storageClass=fast", "--set", "imagePullSecrets={one,two}"],
        ["job", "--storage-size", "5Gi", "--storage-class", "fast", "--image-pull-secret", "one",
         "--image-pull-secret", "two"],
    )  # fmt: skip
    yield (
        ["--set", "volume.enabled=false", "--set", "tolerations[0].key=a,tolerations[0].operator=Exists",
         "--set", r"nodeSelector.example\.com/pool=tools"],
        ["job", "--no-volume", "--runner-tolerate", "a", "--runner-node-selector", "example.com/pool=tools"],
    )  # fmt: skip
    yield (
        ["--set-file", f"activeDirectory={domain},linuxConformance={junit}",
         "--set", "args={--profile,full,--tolerate,a=$(b),--allow-disruptive}"],
        ["job", "--active-directory", str(domain), "--linux-conformance", str(junit), "--profile", "full",
         "--allow-disruptive", "--tolerate", "a=$(b)"],
    )  # fmt: skip
    yield (
        ["--set", "store.address=s3://shop-runs/fleet,store.secret=store"],
        ["job", "--report-dir", "s3://shop-runs/fleet", "--store-secret", "store"],
    )
    yield ["--set-file", f"activeDirectory={bound}"], ["job", "--active-directory", str(bound)]


def test_the_chart_renders_the_same_objects(tmp_path: Path) -> None:
    image = "registry.example.com/winready@sha256:" + "0" * 64
    for values, words in cases(tmp_path):
        place = ["weekly", str(ROOT / "chart"), "--namespace", "tools", "--set", f"image={image}"]
        rendered = normal(helm(*place, "--set", "createNamespace=true", *values))
        same = ["--image", image, "--name", "weekly", "--namespace", "tools", "--timeout", "120m"]
        wanted = deployed(words[0], *same, *words[1:])
        assert rendered == wanted, values
        # Helm cannot own the namespace that it installs into.
        space = ("Namespace", "", "tools")
        assert normal(helm(*place, *values)) == {key: item for key, item in wanted.items() if key != space}


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ([], "image"),
        (["--set", "image=r.io/w:1,schedule=every monday"], "schedule"),
        (["--set", "image=r.io/w:1,keeep=3"], "keeep"),
        (["--set", "image=r.io/w:1,timeoutMinutes=0"], "timeoutMinutes"),
        (["--set", "image=r.io/w:1,store.address=s3://k:s@runs/x"], "address"),
    ],
)
def test_values_that_make_no_sense_are_refused_by_name(values: list[str], said: str) -> None:
    assert said in helm("winready", str(ROOT / "chart"), *values, ok=False)
