"""The model of the gMSA webhook answers what the real one was seen to answer."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator

import pytest

from real.gmsa_cases import CASES, CONTENTS, GROUND, NAMESPACE, pod
from winready_sandbox.api.client import LocalClient
from winready_sandbox.api.errors import ApiError
from winready_sandbox.plan import Plan
from winready_sandbox.up import Sandbox
from winready_sandbox.virtual_time import VirtualTimeLoop


@pytest.fixture(scope="module")
def api() -> Iterator[LocalClient]:
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        made = Sandbox(Plan(linux=1, windows=1, active_directory=True))
        runner.run(made.__aenter__())
        for resource, namespace, obj in GROUND:
            made.embedded.client.create(resource, obj, namespace)
        yield made.embedded.client
        runner.run(made.__aexit__(None, None, None))


@pytest.mark.parametrize("name", CASES)
def test_answers(api: LocalClient, name: str) -> None:
    case = CASES[name]
    asked = f"asked-{list(CASES).index(name)}"
    if not case.says:
        made = api.create("pods", pod(case, asked), NAMESPACE)
        options = (made["spec"].get("securityContext") or {}).get("windowsOptions")
        assert (options is None) == (case.pod is None)
        return
    with pytest.raises(ApiError) as caught:
        api.create("pods", pod(case, asked), NAMESPACE)
    assert caught.value.code == case.code
    assert case.agrees(caught.value.message, asked), caught.value.message
    assert caught.value.reason == ""


def test_contents_are_written_as_the_real_one_writes_them(api: LocalClient) -> None:
    made = api.create("pods", pod(CASES["authorised"], "written"), NAMESPACE)
    text = made["spec"]["securityContext"]["windowsOptions"]["gmsaCredentialSpec"]
    assert text == json.dumps(CONTENTS, sort_keys=True, separators=(",", ":"))
