"""Pods that log on to the simulated domain: who hands out credential specs, to whom, and in which words."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from winready_sandbox import directory
from winready_sandbox.api.client import LocalClient
from winready_sandbox.api.errors import ApiError
from winready_sandbox.plan import Plan
from winready_sandbox.up import Sandbox
from winready_sandbox.virtual_time import VirtualTimeLoop

Object = dict[str, Any]
SAYS = 'admission webhook "admission-webhook.windows-gmsa.sigs.k8s.io" denied the request: '
BINDING = {
    "metadata": {"name": "webapp"},
    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": directory.ROLE},
    "subjects": [{"kind": "ServiceAccount", "name": "default", "namespace": "bound"}],
}


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        made = Sandbox(Plan(linux=1, windows=1, active_directory=True))
        runner.run(made.__aenter__())
        for name in ("bound", "unbound"):
            made.embedded.client.create("namespaces", {"metadata": {"name": name}})
            made.embedded.client.create("serviceaccounts", {"metadata": {"name": "default"}}, name)
        made.embedded.client.create("rolebindings", BINDING, "bound")
        yield made
        runner.run(made.__aexit__(None, None, None))


@pytest.fixture
def api(sandbox: Sandbox) -> LocalClient:
    return sandbox.embedded.client


def pod(name: str, of_container: Object | None = None, **of_pod: Any) -> Object:
    container: Object = {"name": "main", "image": "registry.k8s.io/pause:3.10"}
    if of_container:
        container |= {"securityContext": {"windowsOptions": of_container}}
    spec = {"os": {"name": "windows"}, "containers": [container], "securityContext": {"windowsOptions": of_pod}}
    return {"metadata": {"name": name}, "spec": spec}


def refused(api: LocalClient, obj: Object, namespace: str) -> tuple[int, str]:
    with pytest.raises(ApiError) as caught:
        api.create("pods", obj, namespace)
    return caught.value.code, caught.value.message


def test_contents_are_filled_in_for_pods_and_containers(api: LocalClient) -> None:
    named: Object = {"gmsaCredentialSpecName": "webapp"}
    made = api.create("pods", pod("of-pod", **named), "bound")
    contents = made["spec"]["securityContext"]["windowsOptions"]["gmsaCredentialSpec"]
    assert '"MachineAccountName":"webapp"' in contents
    made = api.create("pods", pod("of-container", named), "bound")
    assert made["spec"]["containers"][0]["securityContext"]["windowsOptions"]["gmsaCredentialSpec"] == contents
    api.create("pods", pod("of-both", **named, gmsaCredentialSpec=f" {contents}"), "bound")
    plain = api.create("pods", pod("without"), "unbound")
    assert "gmsaCredentialSpec" not in plain["spec"]["securityContext"]["windowsOptions"]


@pytest.mark.parametrize(
    ("obj", "namespace", "code", "words"),
    [
        (
            pod("a", gmsaCredentialSpecName="webapp"),
            "unbound",
            403,
            'service account "default" is not authorized to `use` GMSA cred spec "webapp"',
        ),
        (
            pod("a", {"gmsaCredentialSpecName": "webapp"}),
            "unbound",
            403,
            'service account "default" is not authorized to `use` GMSA cred spec "webapp"',
        ),
        (pod("a", gmsaCredentialSpecName="nobody"), "bound", 404, "cred spec nobody does not exist"),
        (
            pod("a", gmsaCredentialSpec="{}"),
            "bound",
            422,
            'pod "a" has a GMSA cred spec set, but does not define the name of the corresponding resource',
        ),
        (
            pod("a", {"gmsaCredentialSpecName": "webapp", "gmsaCredentialSpec": "{}"}),
            "bound",
            422,
            'the GMSA cred spec contents for container "main" does not match the contents of GMSA resource "webapp"',
        ),
    ],
)
def test_others_are_refused_in_the_words_of_the_webhook(
    api: LocalClient, obj: Object, namespace: str, code: int, words: str
) -> None:
    assert refused(api, obj, namespace) == (code, SAYS + words)


def test_a_spec_without_contents_is_good_for_nothing(api: LocalClient) -> None:
    api.create(
        "gmsacredentialspecs",
        {"apiVersion": "windows.k8s.io/v1", "kind": "GMSACredentialSpec", "metadata": {"name": "hollow"}},
    )
    assert refused(api, pod("a", gmsaCredentialSpecName="hollow"), "bound") == (
        417,
        f"{SAYS}cred spec hollow does not have a credspec key",
    )


def test_a_pod_keeps_what_it_was_given(api: LocalClient) -> None:
    api.create("pods", pod("kept", gmsaCredentialSpecName="webapp"), "bound")
    api.patch("pods", "kept", {"metadata": {"labels": {"a": "b"}}}, "bound")


def test_a_webhook_that_is_away_lets_nobody_in(sandbox: Sandbox, api: LocalClient) -> None:
    services = sandbox.embedded.reviewers.services
    before = dict(services)
    services.clear()
    try:
        code, message = refused(api, pod("a"), "unbound")
    finally:
        services.update(before)
    assert code == 500
    assert 'failed calling webhook "admission-webhook.windows-gmsa.sigs.k8s.io"' in message


def test_the_folder_of_the_account_is_for_members_alone(sandbox: Sandbox) -> None:
    files = sandbox.fleet.kubelets["windows-1"].machine.files
    assert files.node(directory.FOLDER).acl == {"SYSTEM": "rwd", "webapp": "rwd"}
