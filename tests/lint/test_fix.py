"""winready lint --fix and --diff: exactly what is meant changes, and nothing else."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lint.manifests import LINUX, pod
from winready.cli.main import cli
from winready.lint import edits
from winready.lint.edits import CannotEdit, Put, Remove
from winready.spec.yamlfile import Document, read

BEFORE = """\
# Our web front end.
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
spec:
  template:
    metadata:
      annotations:
        container.apparmor.security.beta.kubernetes.io/web: runtime/default
    spec:
      nodeSelector:
        # two pools
        beta.kubernetes.io/os: windows   # the windows pool
      hostPID: true
      securityContext:
        runAsUser: 1000
        fsGroup: 2000   # for the volume

      # the containers
      containers:
        - securityContext:
            privileged: false
            capabilities:
              drop:
                - ALL
          name: web   # main
          image:   "mcr.microsoft.com/windows/nanoserver:ltsc2022"
        - name: side
          securityContext: {allowPrivilegeEscalation: false, windowsOptions: {runAsUserName: ContainerUser}}
          image: mcr.microsoft.com/windows/nanoserver:ltsc2022
---
# A Linux one stays as it is.
apiVersion: v1
kind: Pod
metadata: {name: linux}
spec: {hostPID: true, containers: [{name: a, image: b}]}
"""
AFTER = """\
# Our web front end.
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
spec:
  template:
    spec:
      os:
        name: windows
      tolerations:
        - key: os
          operator: Equal
          value: windows
          effect: NoSchedule
      nodeSelector:
        # two pools
        kubernetes.io/os: windows   # the windows pool

      # the containers
      containers:
        - name: web   # main
          image:   "mcr.microsoft.com/windows/nanoserver:ltsc2022"
        - name: side
          securityContext: {windowsOptions: {runAsUserName: ContainerUser}}
          image: mcr.microsoft.com/windows/nanoserver:ltsc2022
---
# A Linux one stays as it is.
apiVersion: v1
kind: Pod
metadata: {name: linux}
spec: {hostPID: true, containers: [{name: a, image: b}]}
"""
TAINT = ("--windows-taint", "os=windows:NoSchedule")


def run(*arguments: str) -> Result:
    result = CliRunner().invoke(cli, ["lint", *arguments])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.output
    return result


@pytest.fixture
def manifest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "app.yaml"
    path.write_text(BEFORE)
    return path


def test_comments_and_layout_survive(manifest: Path) -> None:
    manifest.chmod(0o640)
    result = run("--fix", *TAINT, "app.yaml")
    assert manifest.read_text() == AFTER
    assert manifest.stat().st_mode & 0o777 == 0o640
    assert "repaired 10 findings in 1 file" in result.output
    assert os.listdir() == ["app.yaml"]
    run("--fix", *TAINT, "app.yaml")
    assert manifest.read_text() == AFTER


def test_diff_shows_it_and_changes_nothing(manifest: Path) -> None:
    result = run("--diff", *TAINT, "app.yaml")
    assert manifest.read_text() == BEFORE
    assert "--- a/app.yaml\n+++ b/app.yaml\n@@" in result.output
    assert "\n-      hostPID: true\n" in result.output
    assert "\n+        kubernetes.io/os: windows   # the windows pool\n" in result.output
    assert result.exit_code == 1


def test_windows_line_ends_and_byte_order_marks_survive(manifest: Path) -> None:
    manifest.write_bytes(b"\xef\xbb\xbf" + BEFORE.replace("\n", "\r\n").encode())
    run("--fix", *TAINT, "app.yaml")
    assert manifest.read_bytes() == b"\xef\xbb\xbf" + AFTER.replace("\n", "\r\n").encode()


def test_json_stays_json(manifest: Path) -> None:
    manifest.write_text(json.dumps(pod({"os": None, "hostIPC": True}), indent=2))
    run("--fix", "app.yaml")
    assert json.loads(manifest.read_text()) == pod()


def test_a_windows_image_is_led_to_windows_nodes(manifest: Path) -> None:
    bare = {"os": None, "nodeSelector": None, "tolerations": None, "securityContext": None}
    manifest.write_text(json.dumps(pod(bare)))
    run("--fix", "app.yaml")
    spec = json.loads(manifest.read_text())["spec"]
    assert spec["os"] == {"name": "windows"}
    assert spec["nodeSelector"] == {"kubernetes.io/os": "windows"}


def test_empty_lists_and_mappings_of_rendered_charts_are_filled(manifest: Path) -> None:
    manifest.write_text(
        "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec:\n  os: {name: windows}\n  nodeSelector: {}\n"
        "  tolerations: []\n  containers: [{name: a, image: b}]\n"
    )
    run("--fix", *TAINT, "app.yaml")
    [document] = read(manifest.read_text())
    assert isinstance(document, Document)
    assert document.value["spec"]["nodeSelector"] == {"kubernetes.io/os": "windows"}
    assert document.value["spec"]["tolerations"][0]["key"] == "os"


def test_weak_signs_are_not_enough_to_change_a_file(manifest: Path) -> None:
    weak = pod({"nodeSelector": None, "hostPID": True, "tolerations": [{"key": "os", "value": "windows"}]}, LINUX)
    text = json.dumps(weak)
    manifest.write_text(text)
    result = run("--fix", "app.yaml")
    assert "sched-toleration-only" in result.output
    assert manifest.read_text() == text


def test_suppressed_findings_are_left_alone(manifest: Path) -> None:
    manifest.write_text(
        BEFORE.replace("hostPID: true\n", "hostPID: true # winready:ignore pod-host-pid we need it\n", 1)
    )
    run("--fix", "app.yaml")
    assert "hostPID: true # winready" in manifest.read_text()


def test_what_an_anchor_shares_is_not_changed_behind_its_back(manifest: Path) -> None:
    shared = """\
apiVersion: v1
kind: List
items:
  - apiVersion: v1
    kind: Pod
    metadata: {name: windows}
    spec:
      os: {name: windows}
      nodeSelector: {kubernetes.io/os: windows}
      hostPID: true
      securityContext: &context
        fsGroup: 1
      containers: [{name: a, image: b}]
  - apiVersion: v1
    kind: Pod
    metadata: {name: linux}
    spec:
      nodeSelector: {kubernetes.io/os: linux}
      securityContext: *context
      containers: [{name: a, image: b}]
"""
    manifest.write_text(shared)
    result = run("--fix", "app.yaml")
    assert manifest.read_text() == shared.replace("      hostPID: true\n", "")
    assert "not repaired: removing items.0.spec.securityContext" in result.output


def test_flags_of_host_process_pods(manifest: Path) -> None:
    options = {"windowsOptions": {"hostProcess": True, "runAsUserName": r"NT AUTHORITY\SYSTEM"}}
    manifest.write_text(json.dumps(pod({"securityContext": options, "hostNetwork": False})))
    run("--fix", "app.yaml")
    assert json.loads(manifest.read_text())["spec"]["hostNetwork"] is True


def test_the_letter_case_of_the_os(manifest: Path) -> None:
    manifest.write_text(BEFORE.replace("      hostPID: true\n", "      os: {name: Windows}  # yes\n"))
    run("--fix", "app.yaml")
    assert "      os: {name: windows}  # yes\n" in manifest.read_text()


KEYS = st.sampled_from("abcdef")
VALUES = st.recursive(
    st.sampled_from([1, True, "x", "a b", "|"]),
    lambda inner: st.dictionaries(KEYS, inner, min_size=1, max_size=3) | st.lists(inner, min_size=1, max_size=3),
    max_leaves=8,
)


def _block(value: object, indent: str) -> str:
    if isinstance(value, dict):
        return "".join(f"\n{indent}{key}: {_block(one, indent + '  ')}" for key, one in value.items())
    if isinstance(value, list):
        return "".join(f"\n{indent}- {_block(one, indent + '  ').lstrip()}" for one in value)
    return json.dumps(value) + " # c"


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.dictionaries(KEYS, VALUES, min_size=1, max_size=4), st.data())
def test_any_key_can_be_removed_or_is_left_alone(tree: dict[str, object], data: st.DataObject) -> None:
    text = _block(tree, "").lstrip() + "\n"
    path: list[str | int] = []
    value: object = tree
    while isinstance(value, dict | list):
        step = data.draw(st.sampled_from(list(value) if isinstance(value, dict) else list(range(len(value)))))
        path.append(step)
        value = value[step]
        if data.draw(st.booleans()):
            break
    try:
        changed = edits.apply(text, [(0, Remove(tuple(path))), (0, Put((), "new", {"k": "v"}))])
    except CannotEdit:
        return
    [document] = read(changed)
    assert isinstance(document, Document)
    assert document.value["new"] == {"k": "v"}
    assert document.entry(tuple(path)) is None or isinstance(path[-1], int)
