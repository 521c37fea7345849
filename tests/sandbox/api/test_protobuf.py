"""Protobuf bodies: what two releases of kubectl really send, and whatever else may arrive.

``data/kubectl-*.json`` holds captured request bodies, with the JSON that the same command prints with
``--dry-run=client -o json`` where it can.
"""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from winready_sandbox.api.errors import ApiError
from winready_sandbox.api.protobuf import MAGIC, decode

DATA = Path(__file__).parent / "data"
CAPTURED: dict[str, dict[str, Any]] = {
    f"{path.stem}: {command}": record
    for path in sorted(DATA.glob("kubectl-*.json"))
    for command, record in json.loads(path.read_text()).items()
}
BODIES = [base64.b64decode(record["body"]) for record in CAPTURED.values()]


def without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    return [without_nulls(item) for item in value] if isinstance(value, list) else value


def sent(command: str) -> dict[str, Any]:
    return decode(base64.b64decode(CAPTURED[f"kubectl-1.36: {command}"]["body"]))


def field(number: int, content: bytes) -> bytes:
    assert len(content) < 128
    return bytes([number << 3 | 2, len(content)]) + content


def envelope(api_version: str, kind: str, raw: bytes, content_type: str = "") -> bytes:
    head = field(1, api_version.encode()) + field(2, kind.encode())
    return MAGIC + field(1, head) + field(2, raw) + field(4, content_type.encode())


@pytest.mark.parametrize("name", [name for name, record in CAPTURED.items() if "object" in record])
def test_kubectl_bodies_decode_to_what_kubectl_prints(name: str) -> None:
    record = CAPTURED[name]
    expected = without_nulls(record["object"])
    decoded = decode(base64.b64decode(record["body"]))
    expected["metadata"].setdefault("namespace", decoded["metadata"].get("namespace"))
    assert decoded == without_nulls(expected)


def test_reviews_and_tokens() -> None:
    review = sent("auth can-i get pods")
    assert (review["kind"], review["apiVersion"]) == ("SelfSubjectAccessReview", "authorization.k8s.io/v1")
    assert review["spec"]["resourceAttributes"] == {"namespace": "default", "verb": "get", "resource": "pods"}
    path = {"path": "/healthz", "verb": "get"}
    assert sent("auth can-i get /healthz")["spec"] == {"nonResourceAttributes": path}
    assert sent("auth can-i --list")["spec"] == {"namespace": "default"}
    assert sent("auth whoami")["kind"] == "SelfSubjectReview"
    token = sent("create token x --duration=10m --audience=a")
    assert token["spec"] == {"audiences": ["a"], "expirationSeconds": 600}


def test_zero_counts_where_it_is_a_value() -> None:
    deployment = sent("create deployment web --image=nginx:1.25 --replicas=0 --port=80")
    assert deployment["spec"]["replicas"] == 0


def test_delete_options_of_any_group() -> None:
    decoded = decode(envelope("apps/v1", "DeleteOptions", bytes([1 << 3, 0]) + field(4, b"Orphan")))
    assert (decoded["gracePeriodSeconds"], decoded["propagationPolicy"]) == (0, "Orphan")


def test_inline_structs_times_and_negative_numbers() -> None:
    path = field(1, b"/x")
    volume = field(1, b"v") + field(2, field(1, path))
    grace = bytes([4 << 3]) + b"\xff" * 9 + b"\x01"
    created = field(8, bytes([1 << 3, 60]))
    pod = decode(envelope("v1", "Pod", field(1, created) + field(2, field(1, volume) + grace)))
    assert pod["spec"] == {"volumes": [{"name": "v", "hostPath": {"path": "/x"}}], "terminationGracePeriodSeconds": -1}
    assert pod["metadata"] == {"creationTimestamp": "1970-01-01T00:01:00Z"}


def test_unknown_fields_are_skipped() -> None:
    later = field(15, b"from the future") + bytes([14 << 3, 7]) + bytes([13 << 3 | 1]) + b"\x00" * 8
    assert decode(envelope("v1", "ConfigMap", later)) == {"kind": "ConfigMap", "apiVersion": "v1"}


def test_json_within_an_envelope() -> None:
    body = envelope("v1", "ConfigMap", b'{"kind":"ConfigMap","data":{"a":"1"}}', "application/json")
    assert decode(body)["data"] == {"a": "1"}


def test_an_unknown_kind_is_415_with_a_way_out() -> None:
    with pytest.raises(ApiError, match="kubectl apply -f") as caught:
        decode(envelope("example.com/v1", "Thing", b""))
    assert caught.value.code == 415


@pytest.mark.parametrize("body", [b"", b"{}", b"k8s\x00\xff", b"k8s\x00\x0a\x7f", envelope("v1", "Pod", b"\x0b")])
def test_malformed_bodies_are_400(body: bytes) -> None:
    with pytest.raises(ApiError) as caught:
        decode(body)
    assert caught.value.code in (400, 415)


def decoded_or_refused(body: bytes) -> None:
    code = 200
    try:
        json.dumps(decode(body))
    except ApiError as error:
        code = error.code
    assert code in (200, 400, 415)


@given(st.sampled_from(["Pod", "Event", "Secret", "Node", "Service"]), st.binary(max_size=120))
@settings(max_examples=300, deadline=None)
def test_any_bytes_are_decoded_or_refused(kind: str, raw: bytes) -> None:
    decoded_or_refused(envelope("v1", kind, raw))


@given(st.sampled_from(BODIES), st.integers(0, 400), st.integers(0, 255), st.integers(0, 3))
@settings(max_examples=400, deadline=None)
def test_damaged_kubectl_bodies_are_decoded_or_refused(body: bytes, at: int, byte: int, cut: int) -> None:
    at = 4 + at % (len(body) - 4)
    decoded_or_refused(body[:at] + bytes([byte]) + body[at + cut :])
