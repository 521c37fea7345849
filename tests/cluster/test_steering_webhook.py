"""The webhook that steers: it does to pods what the policy does, and whatever else it is sent gets a plain refusal."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import ssl
import stat
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from hypothesis import given
from hypothesis import strategies as st

from winready.cluster import steering, steering_server
from winready.cluster.serving import kept_identity, make_identity, serving
from winready.cluster.steering_server import application
from winready.cluster.steering_webhook import Address, BadReview, answer, configuration, steered
from winready_sandbox.api.patches.jsonpatch import json_patch
from winready_sandbox.api.policing.cel import evaluate

SELECTORS = st.dictionaries(
    st.sampled_from(["kubernetes.io/os", "kubernetes.io/hostname", "pool"]), st.just("x"), min_size=1, max_size=2
)
SPECS = st.fixed_dictionaries(
    {"containers": st.just([{"name": "c"}])},
    optional={
        "nodeSelector": SELECTORS,
        "os": st.just({"name": "linux"}),
        "nodeName": st.just("n"),
        "affinity": st.sampled_from([{}, {"nodeAffinity": {}}]),
        "hostNetwork": st.booleans(),
    },
)


def request(spec: Any, **more: Any) -> dict[str, Any]:
    kind = {"group": "", "version": "v1", "kind": "Pod"}
    return {"uid": "u", "kind": kind, "operation": "CREATE", "object": {"spec": spec}, **more}


def review(**given: Any) -> bytes:
    document = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request({})}
    return json.dumps({**document, **given}).encode()


@given(SPECS)
def test_webhook_and_policy_do_the_same_to_any_pod(spec: dict[str, Any]) -> None:
    pod = {"spec": spec}
    by_policy = pod
    if all(evaluate(text, {"object": pod}) for text in steering.CONDITIONS.values()):
        by_policy = json_patch(pod, evaluate(steering.EXPRESSION, {"object": pod}))
    assert json_patch(pod, steered(request(spec))) == by_policy


@pytest.mark.parametrize(
    "asked",
    [
        request({}, operation="UPDATE"),
        request({}, subResource="status"),
        request({}, kind={"group": "apps", "kind": "Deployment"}),
        request({}, kind=None),
        request(None),
        request([]),
        {"uid": "u", "operation": "CREATE", "kind": {"group": "", "kind": "Pod"}, "object": "text"},
    ],
)
def test_nothing_but_new_pods_is_touched(asked: dict[str, Any]) -> None:
    assert steered(asked) == []
    assert answer(review(request=asked))["response"] == {"uid": "u", "allowed": True}


def test_the_answer_is_that_of_an_admission_review() -> None:
    response = answer(review(request=request({"nodeSelector": {"pool": "x"}})))["response"]
    assert (response["uid"], response["allowed"], response["patchType"]) == ("u", True, "JSONPatch")
    patch = json.loads(base64.b64decode(response["patch"]))
    assert patch == [{"op": "add", "path": "/spec/nodeSelector/kubernetes.io~1os", "value": "windows"}]


HOSTILE = [
    b"",
    b"\xff\xfe",
    b"[]",
    b"null",
    b"[" * 200_000,
    b'{"a":' * 100_000,
    review(kind="Pod"),
    review(apiVersion="admission.k8s.io/v1beta1"),
    review(request=None),
    review(request={"uid": ""}),
    review(request={"uid": 7}),
    review(request=[]),
]


@pytest.mark.parametrize("body", HOSTILE, ids=range(len(HOSTILE)))
def test_what_is_no_question_is_refused(body: bytes) -> None:
    with pytest.raises(BadReview):
        answer(body)


def test_the_configuration_harms_nobody() -> None:
    wanted = configuration("n", Address.parse("https://10.0.0.5:9443"), b"CA", [])
    hook = wanted["webhooks"][0]
    assert hook["failurePolicy"] == "Ignore"
    assert hook["namespaceSelector"] == steering.E2E_NAMESPACES
    assert hook["timeoutSeconds"] <= 5
    assert hook["sideEffects"] == "None"
    assert hook["clientConfig"] == {"url": "https://10.0.0.5:9443/steer", "caBundle": base64.b64encode(b"CA").decode()}
    behind = configuration("n", Address.parse("tools/steer:9443"), b"CA", ["a"])["webhooks"][0]
    service = {"namespace": "tools", "name": "steer", "path": "/steer", "port": 9443}
    assert behind["clientConfig"]["service"] == service
    assert behind["namespaceSelector"]["matchExpressions"][0]["values"] == ["a"]


@pytest.mark.parametrize("text", ["http://a:1", "https://", "a", "a/b/c", "a/b:c", "https://a/path", "https://u@a"])
def test_addresses_that_no_api_server_can_call_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="https://HOST:PORT"):
        Address.parse(text)


async def test_it_serves_with_a_certificate_of_its_own_and_outlives_hostile_bodies(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    identity = make_identity("127.0.0.1")
    trust = ssl.create_default_context(cadata=identity.ca.decode())
    async with serving(application(), identity.context(), "127.0.0.1", 0) as port, aiohttp.ClientSession() as session:
        url = f"https://127.0.0.1:{port}"

        async def post(body: Any, path: str = "/steer") -> tuple[int, str]:
            async with session.post(url + path, data=body, ssl=trust) as response:
                return response.status, await response.text()

        for body in HOSTILE:
            status, text = await post(body)
            assert status == 400, body[:40]
            assert len(text) < 100
        assert (await post(b"x" * (steering_server.MOST_BYTES + 1)))[0] == 413

        async def never() -> Any:
            yield b"{"
            await asyncio.Event().wait()

        with monkeypatch.context() as patch:
            patch.setattr(steering_server, "BODY_SECONDS", 0.2)
            assert (await post(never()))[0] == 408
        assert (await post(b"{}", "/other"))[0] == 404
        async with session.get(url + "/steer", ssl=trust) as response:
            assert response.status == 405
        async with session.get(url + "/healthz", ssl=trust) as response:
            assert response.status == 200
        status, text = await post(review())
        assert status == 200
        assert json.loads(text)["response"]["patchType"] == "JSONPatch"
        # Nobody who does not know its authority takes its word.
        with pytest.raises(aiohttp.ClientConnectorCertificateError):
            await session.get(url + "/healthz")


def test_the_key_is_kept_for_its_owner_and_made_anew_for_another_host(tmp_path: Path) -> None:
    first = kept_identity(tmp_path, "10.0.0.5")
    assert kept_identity(tmp_path, "10.0.0.5") == first
    assert stat.S_IMODE((tmp_path / "tls.key").stat().st_mode) == 0o600
    other = kept_identity(tmp_path, "steer.tools.svc")
    assert other != first
    (tmp_path / "tls.crt").write_bytes(b"junk")
    assert kept_identity(tmp_path, "steer.tools.svc") != other
    assert not [name for name in os.listdir(tmp_path) if name.endswith(".part")]
