"""Who refused, read from the words of the API server (as the real one of 1.36 says them)."""

from __future__ import annotations

import pytest

from winready.cluster.errors import Forbidden, Refused, ServerTrouble, api_error

POD = 'pods "a" is forbidden: '


@pytest.mark.parametrize(
    ("code", "message", "by", "words"),
    [
        (
            403,
            POD + "exceeded quota: small, requested: pods=1, used: pods=1, limited: pods=1",
            "ResourceQuota small",
            "requested: pods=1, used: pods=1, limited: pods=1",
        ),
        (
            403,
            POD + "failed quota: small: must specify limits.memory for: main",
            "ResourceQuota small",
            "must specify limits.memory for: main",
        ),
        (403, POD + "[maximum cpu usage per Container is 2, but limit is 4]", "a LimitRange", "maximum cpu usage"),
        (403, POD + "memory max limit to request ratio per Pod is 4, but provided ratio is 9", "a LimitRange", "ratio"),
        (
            422,
            'Pod "a" is invalid: spec.containers[0].resources.requests: Invalid value: "10k": must be less than or '
            "equal to cpu limit of 500m",
            "the default limit of a LimitRange",
            "cpu limit of 500m",
        ),
        (
            403,
            POD + 'violates PodSecurity "restricted:latest": runAsNonRoot != true',
            "Pod Security restricted:latest",
            "runAsNonRoot != true",
        ),
        (
            422,
            POD + "ValidatingAdmissionPolicy 'images' with binding 'everywhere' denied request: not from there",
            "ValidatingAdmissionPolicy images (binding everywhere)",
            "not from there",
        ),
        (
            400,
            'admission webhook "a.example.com" denied the request: no owner',
            "admission webhook a.example.com",
            "no",
        ),
        (
            403,
            'admission webhook "a.example.com" denied the request without explanation',
            "admission webhook a.example.com",
            "without explanation",
        ),
        (
            500,
            'Internal error occurred: failed calling webhook "a.example.com": failed to call webhook: Post '
            '"https://x": EOF',
            "admission webhook a.example.com, which does not answer,",
            "EOF",
        ),
        (
            403,
            POD + "unable to validate against any security context constraint: [provider restricted]",
            "OpenShift's security context constraints",
            "provider restricted",
        ),
    ],
)
def test_the_refusing_object_is_named_and_rights_are_no_remedy(code: int, message: str, by: str, words: str) -> None:
    error = api_error(code, {"message": message})
    assert isinstance(error, Refused)
    assert error.refusal.by == by
    assert words in error.refusal.words
    assert error.remedy
    assert "rbac" not in error.remedy
    assert "API server" not in error.remedy
    # A webhook may come back; who waits for the API server waits for it, too.
    assert isinstance(error, ServerTrouble) == (code == 500)


def test_a_missing_right_is_a_matter_of_rights_and_other_refusals_are_not() -> None:
    words = 'User "jane" cannot create resource "pods" in API group "" in the namespace "x"'
    missing = api_error(403, {"message": f"pods is forbidden: {words}"})
    assert isinstance(missing, Forbidden)
    assert "winready rbac" in missing.remedy
    unknown = api_error(403, {"message": POD + "no PriorityClass with name gold was found"})
    assert isinstance(unknown, Forbidden)
    assert "winready rbac" not in unknown.remedy
