"""``winready matrix audit`` as its users call it."""

from __future__ import annotations

import gzip
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from features.described import document_v2, document_v3
from winready.cli.main import cli
from winready.features.audit.document import page
from winready.features.audit.snapshot import bundled, parse, render

ROOT = Path(__file__).resolve().parents[2]
NEWEST = bundled()["1.36"]
FIELDS = dict(NEWEST.fields or {})
STAGES = {"ga": "", "alpha": "ALPHA", "beta": "BETA", "deprecated": "DEPRECATED"}
METRICS = "".join(
    f'kubernetes_feature_enabled{{name="{name}",stage="{STAGES[gate.stage]}"}} {int(gate.on)}\n'
    for name, gate in (NEWEST.gates or {}).items()
)
SPECS = "\n".join(NEWEST.specs or ())
Answers = dict[str, tuple[int, bytes]]


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(cli, ["matrix", "audit", *map(str, arguments)])


def told(*arguments: str | Path, code: int) -> dict[str, Any]:
    result = run("-o", "json", *arguments)
    assert result.exit_code == code, result.output
    document: dict[str, Any] = json.loads(result.stdout)
    return document


def refused(*arguments: str | Path) -> str:
    result = run(*arguments)
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    return result.stderr


def names(items: list[dict[str, Any]]) -> list[str]:
    return [item["name"] for item in items]


@pytest.fixture
def saved(tmp_path: Path) -> Callable[[Any], Path]:
    """Write something down as ``kubectl get --raw`` would; the file."""

    def save(content: Any, name: str = "") -> Path:
        path = tmp_path / (name or f"file{len(list(tmp_path.iterdir()))}")
        path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
        return path

    return save


@pytest.mark.parametrize("version", list(bundled()))
def test_nothing_that_is_bundled_lacks_a_statement(version: str) -> None:
    document = told("--to", version, code=0)
    assert document["unstated"] == 0
    for part in ("fields", "gates", "specs"):
        assert document[part]["total"] > 0
        assert (document[part]["unstated"], document[part]["new"], document[part]["gone"]) == ([], [], [])


def test_every_linux_only_spec_of_the_bundled_listing_is_explained() -> None:
    document = told("--to", "1.36", "--linux-only", code=0)["linux_only"]
    assert document["unexplained"] == []
    assert document["total"] == sum((NEWEST.linux_only or {}).values()) == 1899
    by_id = {group["id"]: group for group in document["groups"]}
    assert by_id["privileged"]["way"] == "other"
    assert "extend.hostprocess.system-api" in by_id["privileged"]["requirements"]
    assert all(group["features"] or group["requirements"] for group in document["groups"])


def test_two_versions_side_by_side() -> None:
    document = told("--from", "1.32", "--to", "1.36", code=0)
    assert (document["from"]["kubernetes"], document["to"]["kubernetes"]) == ("1.32.2", "1.36.3")
    new = {item["name"]: item for item in document["fields"]["new"]}
    assert new["PodSpec.hostnameOverride"]["windows"]["effect"] == "different"
    assert new["Container.restartPolicyRules"]["path"] == "spec.containers[*].restartPolicyRules"
    changed = {item["name"]: (item["before"], item["after"]) for item in document["gates"]["changed"]}
    assert changed["WindowsGracefulNodeShutdown"] == ("alpha off", "beta on")
    assert "AppArmor" in names(document["gates"]["gone"])
    back = told("--from", "1.36", "--to", "1.32", code=0)
    assert "PodSpec.hostnameOverride" in names(back["fields"]["gone"])


def test_a_field_means_what_it_means_in_its_version() -> None:
    def effect(version: str, field: str) -> str:
        items = told("--to", version, "--all", code=0)["fields"]["all"]
        return str(next(item["windows"]["effect"] for item in items if item["name"] == field))

    assert (effect("1.32", "Volume.gitRepo"), effect("1.36", "Volume.gitRepo")) == ("different", "fails")
    assert (effect("1.32", "PodSpec.hostUsers"), effect("1.36", "PodSpec.hostUsers")) == ("ignored", "rejected")


def test_the_page_is_written_from_the_data() -> None:
    assert (ROOT / "docs/windows-audit.md").read_text() == page(), (
        "run: python -m winready.features.audit.document > docs/windows-audit.md"
    )


@pytest.mark.parametrize("document", [document_v2, document_v3])
def test_a_new_field_without_a_statement_is_named_with_its_place(
    saved: Callable[[Any], Path], document: Callable[..., dict[str, Any]]
) -> None:
    fields = {**FIELDS, "SecurityContext.landlock": "LandlockProfile", "LandlockProfile.rules": "[]string"}
    del fields["PodSpec.hostIPC"]
    fields["PodSpec.hostPID"] = "string"
    file = saved(document(fields, "v1.40.1"))
    result = told("--to", file, code=1)
    assert result["unstated"] == 2
    assert [(item["name"], item["path"]) for item in result["fields"]["unstated"]] == [
        ("LandlockProfile.rules", "spec.containers[*].securityContext.landlock.rules"),
        ("SecurityContext.landlock", "spec.containers[*].securityContext.landlock"),
    ]
    assert names(result["fields"]["new"]) == names(result["fields"]["unstated"])
    assert names(result["fields"]["gone"]) == ["PodSpec.hostIPC"]
    assert [(one["name"], one["before"], one["after"]) for one in result["fields"]["changed"]] == [
        ("PodSpec.hostPID", "boolean", "string")
    ]
    assert any("1.40 is judged by the nearest" in note for note in result["notes"])
    text = run("--to", file)
    assert text.exit_code == 1
    assert "Without a statement: pod fields" in text.stdout
    assert "SecurityContext.landlock" in run("--to", file, "-o", "markdown").stdout


def test_gates_and_specs_come_from_files_of_their_own(saved: Callable[[Any], Path]) -> None:
    openapi = saved(document_v2(FIELDS))
    metrics = saved(
        (METRICS + 'kubernetes_feature_enabled{name="WindowsTimeTravel",stage="ALPHA"} 0\n').encode()
        + b'apiserver_request_total{code="200"} 7\n'
    )
    specs = [SPECS, "[sig-windows] [Feature:Windows] Clocks [Serial] should go back"]
    specs.append("[sig-node] Landlock should be kept [LinuxOnly] [Conformance]")
    listing = saved(gzip.compress("\n".join(specs).encode()))
    files = ("--to", openapi, "--to", metrics)
    for option in ("--to", "--e2e"):
        document = told(*files, option, listing, code=1)
        assert document["unstated"] == 3
        assert names(document["gates"]["unstated"]) == ["WindowsTimeTravel"]
        assert document["gates"]["unstated"][0]["after"] == "alpha off"
        assert names(document["specs"]["unstated"]) == ["[sig-windows] Clocks should go back"]
        assert document["linux_only"]["unexplained"] == ["[sig-node] Landlock should be kept"]
    assert told("--to", openapi, "--e2e", listing, "--linux-only", code=1)["linux_only"]["groups"] == []


def test_a_file_can_be_compared_with_a_file(saved: Callable[[Any], Path]) -> None:
    before = saved(document_v3({name: kind for name, kind in FIELDS.items() if name != "PodSpec.hostPID"}))
    document = told("--from", before, "--to", saved(document_v2(FIELDS)), code=0)
    assert names(document["fields"]["new"]) == ["PodSpec.hostPID"]
    assert document["fields"]["changed"] == []
    assert "gates" not in document
    assert "feature gates were not audited: nothing that was given tells them" in document["notes"]


def test_a_snapshot_can_be_kept_as_a_file(saved: Callable[[Any], Path]) -> None:
    text = "".join(render(NEWEST))
    assert parse(text, "bundled") == NEWEST
    assert told("--from", saved(text.encode()), "--to", "1.36", code=0)["fields"]["new"] == []
    assert "line 3" in refused("--to", saved(text.replace("field ", "feld ", 1).encode()))


def test_specs_of_a_program(tmp_path: Path) -> None:
    program = tmp_path / "e2e.test"
    listed = 'echo "    a.go:1: [sig-windows] Clocks"'
    program.write_text(f'#!/bin/sh\ncase "$1" in --version) echo v1.36.3;; --list-tests) {listed};; esac\n')
    program.chmod(0o755)
    assert names(told("--to", "1.36", "--e2e-binary", program, code=1)["specs"]["unstated"]) == ["[sig-windows] Clocks"]
    assert "there is no file" in refused("--to", "1.36", "--e2e-binary", tmp_path / "none")


def _cyclic() -> dict[str, Any]:
    """Types that contain themselves and each other, as JSONSchemaProps do."""
    fields = {"PodTemplateSpec.spec": "A", "A.self": "A", "A.more": "[]B", "B.back": "map[string]A"}
    return document_v2(fields)


def _unknown_type() -> dict[str, Any]:
    document = document_v2(FIELDS)
    del document["definitions"]["io.k8s.api.core.v1.EnvVar"]
    return document


def _deep() -> bytes:
    nested = b'{"items":' * 100_000 + b"{}" + b"}" * 100_000
    return b'{"definitions":{"io.k8s.api.core.v1.PodTemplateSpec":{"properties":{"spec":' + nested + b"}}}}"


def _lists() -> dict[str, Any]:
    return document_v2({"PodTemplateSpec.spec": "[]" * 40 + "string"})


def _inline(depth: int) -> dict[str, Any]:
    """Types without a name of their own, one in the other."""
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(depth):
        schema = {"type": "object", "properties": {"a": schema}}
    return {"definitions": {"PodTemplateSpec": schema}}


def _many() -> dict[str, Any]:
    return document_v2({f"PodTemplateSpec.f{number}": "string" for number in range(20_001)})


def test_a_type_without_a_name_is_named_by_its_place(saved: Callable[[Any], Path]) -> None:
    file = saved(_inline(3))
    unstated = told("--to", file, code=1)["fields"]["unstated"]
    assert [(item["name"], item["path"]) for item in unstated] == [
        ("PodTemplateSpec.a", "a"),
        ("PodTemplateSpec.a.a", "a.a"),
        ("PodTemplateSpec.a.a.a", "a.a.a"),
    ]
    assert run("--to", file).exit_code == 1


def test_types_that_contain_themselves_have_an_end(saved: Callable[[Any], Path]) -> None:
    document = told("--to", saved(_cyclic()), code=1)
    assert names(document["fields"]["unstated"]) == ["A.more", "A.self", "B.back"]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (json.dumps(document_v2(FIELDS)).encode()[:-100], "is no OpenAPI document: Input data was truncated"),
        (b"{}", "describes no PodTemplateSpec: save what"),
        (b'{"kind":"Status","message":"forbidden"}', "describes no PodTemplateSpec"),
        (b'{"paths":{"api/v1":{"serverRelativeURL":"x"}}}', "it is the index; save /openapi/v3/api/v1"),
        (b'{"components":{"schemas":{"io.k8s.api.apps.v1.Scale":{}}}}', "it is that of another group"),
        (b'{"definitions":[]}', "is no OpenAPI document"),
        (b'{"definitions":{"PodTemplateSpec":{"properties":{"a":7}}}}', "in a way that is none"),
        (_unknown_type(), "lacks the type 'io.k8s.api.core.v1.EnvVar' that Container.env has; is it whole?"),
        (_deep(), "nested too deep"),
        (_lists(), "nests lists deeper than 16 levels at PodTemplateSpec.spec"),
        (_many(), "describes more than 20,000 fields of pods"),
        (document_v2({"PodTemplateSpec." + "x" * 300: "string"}), "whose name has 300 characters"),
        (_inline(30), "nests types deeper than 16 levels"),
        (document_v2({"PodTemplateSpec.spec": "X" * 300}), "whose name has 319 characters"),
        (b'{"definitions":{"PodTemplateSpec":{}}}', "describes a PodTemplateSpec without fields"),
        (b'{"definitions":{%s"z":0}}' % (b'"x":0,' * 1_000_000), "more than 1,000,000 values"),
        (b'{"definitions":{"PodTemplateSpec":{"allOf":[%s{}]}}}' % (b"{}," * 1_000_000), "more than 1,000,000 values"),
        (b'{"definitions":{"PodTemplateSpec":{"allOf":[%s{}]}}}' % (b"{}," * 400_000), "needs more than 1 MiB"),
        (b"[sig-node] x\n" * 200_002, "has more than 200,000 lines"),
        (b"", "is empty"),
        (b"hello\n", "holds no spec of e2e.test"),
        (b"# HELP go_goroutines x\ngo_goroutines 3\n", "has no metric kubernetes_feature_enabled"),
        (gzip.compress(b"{}" * 10_000)[:-30], "cannot be read"),
        (b"\x1f\x8b" + b"\xff" * 100, "cannot be read"),
        (gzip.compress(b"0" * ((64 << 20) + 1)), "is larger than 64 MiB"),
    ],
    ids=[
        "cut", "nothing", "status", "index", "other group", "list", "number", "unknown type", "deep", "lists", "many",
        "long name", "inline", "long type", "no fields", "many keys", "many objects", "large type", "many lines",
        "empty", "words", "other metrics", "cut gzip", "no gzip", "bomb",
    ],
)  # fmt: skip
def test_files_that_are_of_no_use_are_refused_with_a_sentence(
    saved: Callable[[Any], Path], content: Any, problem: str
) -> None:
    file = saved(content)
    message = refused("--to", file)
    assert message.startswith(f"error: {file} ")
    assert problem in message


def test_names_of_strangers_do_not_steer_the_terminal(saved: Callable[[Any], Path]) -> None:
    fields = {**FIELDS, "PodSpec.\x1b]0;evil\x07": "string", "PodSpec.a|b": "string"}
    file = saved(document_v2(fields))
    for output in ("text", "markdown"):
        result = run("--to", file, "-o", output)
        assert result.exit_code == 1
        assert "\x1b" not in result.stdout
    assert "a\\|b" in result.stdout


def test_wrong_usage(saved: Callable[[Any], Path], tmp_path: Path) -> None:
    assert "only about 1.32, 1.36" in refused("--to", "1.20")
    assert "cannot be read: No such file" in refused("--to", tmp_path / "none")
    assert "leave --kubeconfig" in refused("--to", "1.36", "--context", "x")
    assert "exclude each other" in refused("--to", "1.36", "--e2e", "a", "--e2e-binary", "b")
    assert "no listing of specs" in refused("--to", "1.32", "--linux-only")
    assert "does not exist" in refused("--kubeconfig", tmp_path / "none")
    files = [saved(document_v2(FIELDS, version)) for version in ("v1.35.1", "v1.36.0")]
    assert "several versions are given as one: 1.35.1 and 1.36.0" in refused("--to", files[0], "--to", files[1])
    result = CliRunner().invoke(cli, ["matrix", "--kubernetes", "1.34", "audit", "--to", "1.36"])
    assert result.exit_code == 2
    assert "do not go with 'audit'" in result.stderr


@contextmanager
def api_server(tmp_path: Path, answers: Answers) -> Iterator[Path]:
    """An API server that gives these answers by path; its kubeconfig."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            code, body = answers.get(self.path, (404, b"404 page not found"))
            self.send_response(code)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    cluster = {"name": "c", "cluster": {"server": f"http://127.0.0.1:{server.server_port}"}}
    config = {
        "apiVersion": "v1", "kind": "Config", "current-context": "c", "clusters": [cluster],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}], "users": [{"name": "u", "user": {}}],
    }  # fmt: skip
    path = tmp_path / "kubeconfig"
    path.write_text(json.dumps(config))
    try:
        yield path
    finally:
        server.shutdown()
        server.server_close()


def answers(**more: tuple[int, bytes]) -> Answers:
    return {"/version": (200, b'{"gitVersion":"v1.36.3-vendor.1"}'), **more}


def test_a_cluster_is_asked_for_fields_and_gates(tmp_path: Path) -> None:
    served = answers()
    served["/openapi/v3/api/v1"] = (200, json.dumps(document_v3(FIELDS, "unversioned")).encode())
    served["/metrics"] = (200, METRICS.encode())
    with api_server(tmp_path, served) as kubeconfig:
        document = told("--kubeconfig", kubeconfig, code=0)
    assert document["to"]["kubernetes"] == "1.36.3-vendor.1"
    assert (document["fields"]["new"], document["gates"]["new"], document["gates"]["gone"]) == ([], [], [])
    assert document["notes"] == ["[sig-windows] specs were not audited: give --e2e or --e2e-binary"]


def test_a_cluster_that_says_less_is_audited_as_far_as_it_goes(tmp_path: Path) -> None:
    served = answers()
    served["/openapi/v2"] = (200, json.dumps(document_v2({**FIELDS, "PodSpec.later": "string"})).encode())
    served["/metrics"] = (403, b'{"kind":"Status","message":"forbidden: jane may not get /metrics"}')
    with api_server(tmp_path, served) as kubeconfig:
        document = told("--kubeconfig", kubeconfig, code=1)
    assert names(document["fields"]["unstated"]) == ["PodSpec.later"]
    assert any("feature gates were not audited: /metrics answers" in note for note in document["notes"])


def test_a_cluster_that_talks_nonsense(tmp_path: Path) -> None:
    with api_server(tmp_path, {**answers(), "/openapi/v3/api/v1": (200, b"<html>")}) as kubeconfig:
        assert "the OpenAPI document of http://127.0.0.1" in refused("--kubeconfig", kubeconfig)
    with api_server(tmp_path, {**answers(), "/openapi/v3/api/v1": (200, b" " * ((64 << 20) + 1))}) as kubeconfig:
        assert "is larger than 64 MiB" in refused("--kubeconfig", kubeconfig)
    with api_server(tmp_path, {**answers(), "/openapi/v3/api/v1": (403, b"{}")}) as kubeconfig:
        assert run("--kubeconfig", kubeconfig).exit_code == 3


def test_the_embedded_api_describes_pods_as_kubernetes_does() -> None:
    document = told("--sandbox", code=0)
    assert document["fields"]["total"] == len(FIELDS)
    assert (document["fields"]["new"], document["fields"]["gone"], document["fields"]["changed"]) == ([], [], [])
