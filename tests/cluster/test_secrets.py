"""What looks like a secret is cut out, in plain text and in JSON; what does not, stays."""

from __future__ import annotations

import json

import pytest

from winready.cluster.secrets import LONGEST_LINE, REMOVED, SecretFilter, without_secrets

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


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_secrets_go_from_output_in_pieces(size: int) -> None:
    output = f"before\n{KEY} after\nthe token {JWT}\nbytes ".encode() + b"\xff\xfe\r\nno end of line"
    secrets = SecretFilter()
    clean = b"".join(secrets.feed(output[at : at + size]) for at in range(0, len(output), size)) + secrets.end()
    first, rest = clean.split(b"\n", 1)
    assert first == b"before"
    assert b"MHcCAQEE" not in rest
    assert b"AoGCCq" not in rest
    assert JWT.encode() not in rest
    assert rest.startswith(REMOVED.encode())
    assert f" after\nthe token {REMOVED}\nbytes ".encode() in rest
    assert rest.endswith(b"\xff\xfe\r\nno end of line")


def test_tags_outlive_the_secrets_between_them() -> None:
    secrets = SecretFilter(markup=True)
    document = f"<a>{KEY[:60]}</a><b>kept</b>\n<c>{KEY}</c>".encode()
    clean = (secrets.feed(document) + secrets.end()).decode()
    assert clean == f"<a>{REMOVED}\n\n</a><b>kept</b>\n<c>{REMOVED}\n\n\n</c>"


def test_a_line_without_end_does_not_fill_the_memory() -> None:
    secrets = SecretFilter()
    assert secrets.feed(b"x" * LONGEST_LINE) == b""
    assert secrets.feed(b"y") == b"x" * LONGEST_LINE + b"y"
    assert secrets.end() == b""


@pytest.mark.parametrize(
    "text", ["TOKEN: {}", "to\u212aen={}", "pa\u017f\u017fword = {}", "\u00e4 Bearer {}", "BAS\u0131C {}"]
)
def test_letters_are_known_however_they_are_written(text: str) -> None:
    secret = "abcdefgh12345678"
    assert secret not in without_secrets(text.format(secret))
