"""OpenAPI documents and metrics in any shape: read, or refused with a sentence."""

from __future__ import annotations

import contextlib
import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from features.described import document_v2, document_v3
from winready.features.audit.snapshot import bundled
from winready.lint import gates, openapi

FIELDS = dict(bundled()["1.36"].fields or {})
WORDS = st.sampled_from(
    ["$ref", "type", "items", "properties", "additionalProperties", "allOf", "definitions", "components", "schemas",
     "PodTemplateSpec", "io.k8s.api.core.v1.PodTemplateSpec", "#/definitions/PodTemplateSpec", "info", "paths"]
)  # fmt: skip
JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS | st.text(max_size=3), inner, max_size=4),
    max_leaves=12,
)


def test_both_versions_of_openapi_tell_the_same() -> None:
    for made in (document_v2, document_v3):
        described = openapi.read(json.dumps(made(FIELDS)).encode())
        assert described.fields == FIELDS
        assert list(described.fields) == sorted(FIELDS)
        assert described.version == "1.36.3"


def test_places_are_the_shortest_ways() -> None:
    found = openapi.places(FIELDS)
    assert found["PodSpec.os"] == "spec.os"
    assert found["Container.env"] == "spec.containers[*].env"
    assert found["KeyToPath.mode"] == "spec.volumes[*].configMap.items[*].mode"
    assert set(found) == set(FIELDS)


def test_of_two_types_with_one_name_both_are_told() -> None:
    document = document_v2({"PodTemplateSpec.spec": "Spec"})
    document["definitions"]["io.k8s.api.core.v1.PodTemplateSpec"]["properties"]["other"] = {"$ref": "x.example.Spec"}
    document["definitions"]["x.example.Spec"] = {"properties": {"a": {"type": "string"}}}
    fields = openapi.read(json.dumps(document).encode()).fields
    assert fields["PodTemplateSpec.other"] == "x.example.Spec"
    assert fields["x.example.Spec.a"] == "string"


@settings(max_examples=200, deadline=None)
@given(schema=JSON, whole=st.booleans(), cut=st.integers(0, 40))
def test_whatever_is_in_a_document_ends_in_fields_or_a_sentence(schema: Any, whole: bool, cut: int) -> None:
    document = schema if whole else {"definitions": {"PodTemplateSpec": schema, "a.Spec": schema}}
    data = json.dumps(document).encode()
    for content in (data, data[:cut]):
        with contextlib.suppress(openapi.OpenApiError):
            assert openapi.read(content).fields


@settings(max_examples=100, deadline=None)
@given(data=st.binary(max_size=80), stage=st.text("ABC", max_size=4), on=st.integers(0, 3))
def test_whatever_is_among_metrics_ends_in_gates_or_a_sentence(data: bytes, stage: str, on: int) -> None:
    line = f'kubernetes_feature_enabled{{name="X",stage="{stage}"}} {on}\n'.encode()
    try:
        assert set(gates.read(data + b"\n" + line)) == {"X"}
    except gates.GatesError:
        assert on > 1
