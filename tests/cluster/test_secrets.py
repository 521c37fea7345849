"""What looks like a secret is cut out, in plain text and in JSON; what does not, stays."""

from __future__ import annotations

import json

import pytest

from winready.cluster.secrets import REMOVED, without_secrets

JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhZG1pbiJ9.c2lnbmF0dXJlLXNpZw"
KEY = "-----BEGIN EC PRIVATE KEY-----\nMHcCAQEEIOwz8sS3cr3t\nAoGCCqGSM49\n-----END EC PRIVATE KEY-----"
KUBECONFIG = (
    "users:\n- name: a\n  user:\n    client-key-data: LS0tLS1CRUdJTiBQUklWQVRF\n    token: abcdef.0123456789abcdef\n"
)


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        (f"the token {JWT} was refused", JWT),
        (f"cat: {KEY} end", "MHcCAQEEIOwz8sS3cr3t"),
        (KEY[:60], "MHcCAQEEIOwz8"),
        (f'said "{KEY[:60]}" and stopped', "MHcCAQEEIOwz8"),
        (KUBECONFIG, "LS0tLS1CRUdJTiBQUklWQVRF"),
        (KUBECONFIG, "0123456789abcdef"),
        ("Authorization: Bearer s3cr3t-opaque-token", "s3cr3t-opaque-token"),
        ("dial https://admin:hunter2hunter2@10.0.0.1:6443 failed", "hunter2hunter2"),
        ('{"password": "correct-horse-battery"}', "correct-horse-battery"),
    ],
)
def test_secrets_go_from_text_and_from_json(text: str, secret: str) -> None:
    assert secret in text
    assert secret not in without_secrets(text)
    inside = without_secrets(json.dumps({"observed": text, "after": "kept"}))
    assert secret not in inside
    assert json.loads(inside)["after"] == "kept"
    assert REMOVED in json.loads(inside)["observed"]


def test_known_secrets_go_wherever_they_stand() -> None:
    assert without_secrets("x-opaque9-y", ["opaque9", "x"]) == f"x-{REMOVED}-y"


@pytest.mark.parametrize(
    "text",
    [
        "token rotation: the token was renewed after 600 s",
        "core.storage.token-rotation passed: shown on windows-1",
        "http://10.96.0.10:80/hostname and https://cluster.example:6443",
        "image registry.k8s.io/e2e-test-images/agnhost@sha256:0f767c80012352e810ba8a296db8f302e6fbfabafecbf62c7112164",
    ],
)
def test_ordinary_words_stay(text: str) -> None:
    assert without_secrets(text) == text
