"""winready lint through the command line: inputs, exit codes, outputs, suppression, configuration."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from click.testing import CliRunner, Result

from lint.manifests import pod
from lint.test_samples import COPIED, FIVE, IIS
from winready.cli.main import cli
from winready.lint import catalog

SCHEMA = Path(__file__).parent / "data" / "sarif-2.1.0.json"
PRIVILEGED = """\
apiVersion: v1
kind: Pod
metadata: {name: a, namespace: web}
spec:
  os: {name: windows}
  nodeSelector: {kubernetes.io/os: windows}
  containers:
    - name: main
      image: example.org/app:1
      resources: {limits: {cpu: 1, memory: 1Gi}}
      securityContext:
        privileged: true
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments: str, stdin: str | bytes = "") -> Result:
    result = CliRunner().invoke(cli, ["lint", *arguments], input=stdin)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.output
    return result


def findings(*arguments: str, stdin: str | bytes = "") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(run("-o", "json", *arguments, stdin=stdin).stdout)["findings"]
    return found


def test_text_shows_the_line_and_what_to_write(folder: Path) -> None:
    (folder / "pod.yaml").write_text(PRIVILEGED)
    result = run("pod.yaml")
    assert result.exit_code == 1
    assert result.output.startswith("pod.yaml:12:9: error: privileged is set: the API server refuses it. ")
    assert "  12 |         privileged: true\n     |         ^^^^^^^^^^\n  fix: Remove it" in result.output
    assert "Pod web/a, container main, sc-privileged, since 1.24" in result.output
    assert "1 error, 0 warnings" in result.output


def test_a_clean_file_is_exit_0(folder: Path) -> None:
    (folder / "iis.yaml").write_text(IIS)
    result = run("iis.yaml")
    assert result.exit_code == 0
    assert "0 errors, 0 warnings" in result.output


def test_fail_on_decides_the_exit_code(folder: Path) -> None:
    (folder / "a.yaml").write_text(COPIED.replace("  os: {name: windows}\n", ""))
    assert run("a.yaml").exit_code == 1
    assert run("--fail-on", "error", "a.yaml").exit_code == 0
    assert run("--fail-on", "never", "a.yaml").exit_code == 0
    assert run("--fail-on", "info", "a.yaml").exit_code == 1


def test_json_has_the_published_fields() -> None:
    document = json.loads(run("-o", "json", "-", stdin=PRIVILEGED).stdout)
    [one] = document["findings"]
    assert one["rule"] == "sc-privileged"
    assert one["severity"] == "error"
    assert (one["path"], one["line"], one["column"]) == ("stdin", 12, 9)
    assert (one["kind"], one["namespace"], one["name"], one["container"]) == ("Pod", "web", "a", "main")
    assert one["field"] == "spec.containers[0].securityContext.privileged"
    assert (one["since"], one["until"]) == ("1.24", None)
    assert one["message"]
    assert one["fix"]
    assert document["errors"] == []
    assert document["summary"] == {
        "files": 1,
        "objects": 1,
        "windows_workloads": 1,
        "errors": 1,
        "warnings": 0,
        "infos": 3,
        "suppressed": 0,
        "unreadable": 0,
    }


def test_severity_info_shows_everything() -> None:
    assert len(findings("--severity", "info", "-", stdin=PRIVILEGED)) == 4


def test_lists_json_and_crlf_with_a_mark() -> None:
    listed = {"apiVersion": "v1", "kind": "List", "items": [pod(), pod({"hostPID": True})]}
    [one] = findings("-", stdin=json.dumps(listed, indent=2))
    assert one["field"] == "spec.hostPID"
    assert one["line"] > 10
    windows = ("\ufeff" + PRIVILEGED.replace("\n", "\r\n")).encode()
    [one] = findings("-", stdin=windows)
    assert (one["line"], one["column"]) == (12, 9)


def test_unknown_kinds_and_foreign_groups_are_passed_over() -> None:
    foreign = "apiVersion: example.org/v1\nkind: Pod\nspec: {os: {name: windows}, hostPID: true}\n"
    crd = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nspec: {}\n"
    result = run("-", stdin=f"{foreign}---\n{crd}---\njust text\n---\n- a list\n---\n5\n")
    assert result.exit_code == 0
    assert "in 1 file" in result.output


def test_folders_are_walked_and_objects_find_each_other(folder: Path) -> None:
    (folder / "apps" / "web").mkdir(parents=True)
    (folder / ".git").mkdir()
    (folder / ".git" / "x.yaml").write_text("a: [")
    (folder / "apps" / "values.json").write_text('{"not": "kubernetes"')
    (folder / "apps" / "web" / "pod.yaml").write_text(
        json.dumps(pod({"os": None, "nodeSelector": None, "runtimeClassName": "w"}))
    )
    (folder / "class.yml").write_text(
        "apiVersion: node.k8s.io/v1\nkind: RuntimeClass\nmetadata: {name: w}\nhandler: h\n"
        "scheduling: {nodeSelector: {kubernetes.io/os: windows}}\n"
    )
    [one] = findings(".")
    assert one["rule"] == "os-field-missing"
    assert "RuntimeClass w selects windows nodes" in one["evidence"]
    assert findings(".", "--exclude", "apps/**") == []


def test_helm_charts_are_to_be_rendered_first(folder: Path) -> None:
    (folder / "chart" / "templates").mkdir(parents=True)
    (folder / "chart" / "Chart.yaml").write_text("apiVersion: v2\nname: chart\n")
    (folder / "chart" / "templates" / "a.yaml").write_text("apiVersion: v1\nkind: {{ .Values.kind }}\n")
    result = run("chart")
    assert result.exit_code == 0
    assert "helm template chart | winready lint -" in result.output
    assert "must be rendered first" in run("chart/templates/a.yaml").output


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"a: [1\nb: 2\n", "bad.yaml:2:"),
        (b"\x7fELF\x00\x01", "binary file"),
        ("a: caf\xe9".encode("latin-1"), "bad.yaml:1:7: unreadable: byte 0xe9 is not UTF-8"),
        (b"a: &a [1]\nb: *c\n", "bad.yaml:2:4: unreadable: alias *c has no anchor"),
        (b"[" * 5000, "nested deeper"),
        (b'{"apiVersion": "v1", [', "double quotes"),
        (b"a: \x1b[2J", "control characters"),
    ],
)
def test_an_unreadable_file_is_exit_2_and_the_others_are_linted(content: bytes, said: str, folder: Path) -> None:
    (folder / "bad.yaml").write_bytes(content)
    (folder / "good.yaml").write_text(PRIVILEGED)
    result = run("bad.yaml", "good.yaml")
    assert result.exit_code == 2
    assert said in result.output
    assert "sc-privileged" in result.output
    assert "1 unreadable" in result.output


def test_a_file_that_is_not_there(folder: Path) -> None:
    (folder / "good.yaml").write_text(PRIVILEGED)
    result = run("missing.yaml", "good.yaml")
    assert result.exit_code == 2
    assert "missing.yaml:1:1: unreadable: No such file or directory" in result.output
    assert "sc-privileged" in result.output


def test_sarif_validates(folder: Path) -> None:
    (folder / "a b.yaml").write_text(PRIVILEGED)
    silenced = "privileged: true # winready:ignore sc-privileged legacy"
    (folder / "c.yaml").write_text(PRIVILEGED.replace("privileged: true", silenced))
    (folder / "d.yaml").write_text("a: [")
    document = json.loads(run("-o", "sarif", "a b.yaml", "c.yaml", "d.yaml").stdout)
    jsonschema.Draft7Validator(json.loads(SCHEMA.read_text())).validate(document)
    [tool_run] = document["runs"]
    first, second = tool_run["results"]
    assert first["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "a%20b.yaml"
    assert first["locations"][0]["physicalLocation"]["region"] == {"startLine": 12, "startColumn": 9, "endColumn": 19}
    assert tool_run["tool"]["driver"]["rules"][first["ruleIndex"]]["id"] == "sc-privileged"
    assert second["suppressions"] == [{"kind": "inSource", "justification": "legacy"}]
    assert tool_run["invocations"][0]["executionSuccessful"] is False


def test_junit(folder: Path) -> None:
    (folder / "a.yaml").write_text(PRIVILEGED.replace("name: a,", 'name: "a\\e<&",'))
    (folder / "d.yaml").write_text("a: [")
    root = ET.fromstring(run("-o", "junit", "a.yaml", "d.yaml").stdout)
    assert [(suite.get("name"), suite.get("failures"), suite.get("errors")) for suite in root] == [
        ("a.yaml", "1", "0"),
        ("d.yaml", "0", "1"),
    ]
    assert root.find(".//failure").get("type") == "sc-privileged"  # type: ignore[union-attr]
    clean = ET.fromstring(run("-o", "junit", "-", stdin=IIS).stdout)
    assert clean.find("testsuite").get("tests") == "1"  # type: ignore[union-attr]


def test_github_annotations() -> None:
    line = run("-o", "github", "-", stdin=PRIVILEGED).stdout
    assert line.startswith("::error file=stdin,line=12,col=9,title=sc-privileged::Pod web/a: privileged is set")


def test_no_file_can_repaint_the_terminal(folder: Path) -> None:
    (folder / "a.yaml").write_text(PRIVILEGED.replace("name: a,", 'name: "a\\e[2J",'))
    assert "\x1b" not in run("a.yaml").output


@pytest.mark.parametrize(
    "comment",
    [
        "        privileged: true  # winready:ignore sc-privileged the webhook removes it",
        "        # winready:ignore sc-fsgroup, sc-privileged a webhook\n        # more\n        privileged: true",
    ],
)
def test_a_comment_with_a_reason_silences(comment: str) -> None:
    result = run("-", stdin=PRIVILEGED.replace("        privileged: true", comment))
    assert result.exit_code == 0
    assert "1 suppressed" in result.output


def test_a_comment_without_a_reason_does_not() -> None:
    result = run("-", stdin=PRIVILEGED.replace("true\n", "true # winready:ignore sc-privileged\n"))
    assert result.exit_code == 1
    assert "sc-privileged" in result.output
    assert "this comment silences nothing: it gives no reason" in result.output
    result = run("-", stdin=PRIVILEGED.replace("true\n", "true # winready:ignore sc-priv why\n"))
    assert "there is no rule sc-priv" in result.output


def test_an_annotation_with_a_reason_silences() -> None:
    annotated = "{name: a, namespace: web, annotations: {lint-ignore.winready.io/sc-privileged: %s}}"
    plain = "{name: a, namespace: web}"
    assert run("-", stdin=PRIVILEGED.replace(plain, annotated % "legacy")).exit_code == 0
    result = run("-", stdin=PRIVILEGED.replace(plain, annotated % '""'))
    assert result.exit_code == 1
    assert "this annotation silences nothing" in result.output


CONFIG = """\
lint:
  kubernetes: "1.30-1.36"
  severity: info
  windows-taints: ["os=windows:NoSchedule"]
  ignore:
    - rule: sc-privileged
      reason: being removed
      paths: ["legacy/**"]
  rules: {sched-missing-toleration: info}
"""


def test_the_configuration_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / ".winready.yaml").write_text(CONFIG)
    (folder / "legacy").mkdir()
    for name in ("a.yaml", "legacy/a.yaml"):
        (folder / name).write_text(PRIVILEGED)
    document = json.loads(run("-o", "json", ".").stdout)
    assert document["kubernetes"] == "1.30-1.36"
    assert [one["path"] for one in document["findings"] if one["rule"] == "sc-privileged"] == ["./a.yaml"]
    assert {one["severity"] for one in document["findings"] if one["rule"] == "sched-missing-toleration"} == {"info"}
    monkeypatch.chdir(folder / "legacy")
    assert json.loads(run("-o", "json", "a.yaml").stdout)["kubernetes"] == "1.30-1.36"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("lint: {kubernets: '1.30'}", ".winready.yaml:1:8: unknown key kubernets; did you mean kubernetes?"),
        (
            "lint:\n  kubernetes: 1.30",
            '.winready.yaml:2:3: kubernetes must be a text; put it in quotes: kubernetes: "1.3"',
        ),
        ("lint:\n  ignore: [{rule: sc-privileged}]", "add a reason"),
        ("lint:\n  ignore: [{rule: sc-privilege, reason: a}]", "did you mean sc-privileged?"),
        ("lint:\n  rules: {sc-privileged: fatal}", "must be one of info, warning, error"),
        ("lint:\n  fail-on: always", "must be one of info, warning, error, never"),
        ("lint:\n  windows-builds: ['2022']", "write 10.0.20348"),
        ("lint: [", ".winready.yaml:1:"),
        ("- a", "expected a mapping"),
    ],
)
def test_a_wrong_configuration_says_where_and_what(content: str, said: str, folder: Path) -> None:
    (folder / ".winready.yaml").write_text(content)
    result = run("-", stdin=IIS)
    assert result.exit_code == 2
    assert said in result.output


def test_explain() -> None:
    result = run("--explain", "sc-run-as-user")
    assert result.exit_code == 0
    assert "1.24-1.30: rejected (error); without spec.os fails (error)" in result.output
    assert "https://" in result.output
    result = run("--explain", "sc-priviliged")
    assert result.exit_code == 2
    assert "did you mean sc-privileged" in result.output


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "name at least one file"),
        (["--kubernetes", "1.99", "-"], "the data covers 1.14 to 1.37"),
        (["--windows-taint", "a:b", "-"], "is not a taint"),
        (["--windows-build", "2022", "-"], "write 10.0.20348"),
        (["--fix", "-"], "standard input is none"),
        (["--config", "nowhere.yaml", "-"], "nowhere.yaml: No such file"),
    ],
)
def test_wrong_usage(arguments: list[str], said: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert said in result.output


def test_a_copied_security_context_across_versions() -> None:
    found = findings("--kubernetes", "1.30-1.36", "-", stdin=COPIED)
    assert sorted(one["rule"] for one in found) == FIVE


def test_paths_of_annotations_are_those_of_the_repository(folder: Path) -> None:
    (folder / "deploy").mkdir()
    (folder / "deploy" / "a.yaml").write_text(PRIVILEGED)
    (folder / "b.yaml").write_text(PRIVILEGED + "\t")
    for named in (".", "./", ".//"):
        lines = run("-o", "github", named).stdout.splitlines()
        assert [line.partition("file=")[2].partition(",")[0] for line in lines] == ["b.yaml", "deploy/a.yaml"]
        (sarif,) = json.loads(run("-o", "sarif", named).stdout)["runs"]
        places = [*sarif["results"], *sarif["invocations"][0]["toolExecutionNotifications"]]
        uris = [one["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for one in places]
        assert sorted(uris) == ["b.yaml", "deploy/a.yaml"]


def test_missing_limits_do_not_fail_a_pipeline() -> None:
    bare = PRIVILEGED.replace("        privileged: true\n", "        {}\n").replace("limits: {cpu: 1, memory: 1Gi}", "")
    assert run("-", stdin=bare).exit_code == 0
    (found,) = [one for one in findings("--severity", "info", "-", stdin=bare) if one["rule"] == "res-missing-limits"]
    assert found["severity"] == "info"
    assert run("--fail-on", "info", "-", stdin=bare).exit_code == 1


def test_the_rules_are_listed() -> None:
    listed = run("--rules")
    assert listed.exit_code == 0
    known = json.loads(run("--rules", "-o", "json").stdout)["rules"]
    assert [rule["id"] for rule in known] == list(catalog.load())
    for rule in known:
        (line,) = [line for line in listed.stdout.splitlines() if line.split()[:1] == [rule["id"]]]
        assert line.split()[1] == rule["severity"]
        assert line.endswith(rule["sentence"])
    assert f"{len(known)} rules" in listed.stdout
    refused = run("--rules", "-o", "junit")
    assert (refused.exit_code, "text, wide or json" in refused.output) == (2, True)
    assert "winready lint --rules" in run("--explain", "zzzzzz").output
