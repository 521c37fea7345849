"""What the API server refuses for Windows pods, field by field."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from winready_sandbox.api.defaults import apply_defaults
from winready_sandbox.api.validation import validate

Object = dict[str, Any]
NOT_FOR_WINDOWS = "Forbidden: cannot be set for a windows pod"


def errors(spec: Object, kind: str = "Pod") -> list[str]:
    full = {"containers": [{"name": "c", "image": "i"}], **copy.deepcopy(spec)}
    obj: Object = {"metadata": {"name": "p"}, "spec": full}
    group = ""
    if kind == "Deployment":
        group = "apps"
        template = {"metadata": {"labels": {"a": "b"}}, "spec": full}
        obj["spec"] = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
    apply_defaults(kind, group, obj)
    return [f"{error.field}: {error.message}" for error in validate(kind, group, obj)]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("hostPID", True),
        ("hostIPC", True),
        ("hostUsers", True),
        ("shareProcessNamespace", True),
        ("securityContext.appArmorProfile", {"type": "RuntimeDefault"}),
        ("securityContext.seLinuxOptions", {"level": "s0"}),
        ("securityContext.seccompProfile", {"type": "RuntimeDefault"}),
        ("securityContext.fsGroup", 1),
        ("securityContext.fsGroupChangePolicy", "Always"),
        ("securityContext.sysctls", [{"name": "kernel.shm", "value": "1"}]),
        ("securityContext.runAsUser", 0),
        ("securityContext.runAsGroup", 0),
        ("securityContext.supplementalGroups", [1]),
        ("securityContext.supplementalGroupsPolicy", "Merge"),
        ("securityContext.seLinuxChangePolicy", "Recursive"),
    ],
)
def test_fields_of_the_pod(field: str, value: object) -> None:
    holder, _, name = field.rpartition(".")
    spec: Object = {"os": {"name": "windows"}, **({holder: {name: value}} if holder else {name: value})}
    assert errors(spec) == [f"spec.{field}: {NOT_FOR_WINDOWS}"]
    assert errors({**spec, "os": {"name": "linux"}}) == []
    assert errors(spec, "Deployment") == [f"spec.template.spec.{field}: {NOT_FOR_WINDOWS}"]


@pytest.mark.parametrize("kind", ["containers", "initContainers", "ephemeralContainers"])
@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("appArmorProfile", {"type": "RuntimeDefault"}),
        ("seLinuxOptions", {"level": "s0"}),
        ("seccompProfile", {"type": "RuntimeDefault"}),
        ("capabilities", {"drop": ["ALL"]}),
        ("readOnlyRootFilesystem", False),
        ("privileged", False),
        ("allowPrivilegeEscalation", False),
        ("procMount", "Default"),
        ("runAsUser", 0),
        ("runAsGroup", 0),
    ],
)
def test_fields_of_containers(kind: str, field: str, value: object) -> None:
    name = "c" if kind == "containers" else "other"
    spec: Object = {kind: [{"name": name, "image": "i", "securityContext": {field: value}}]}
    late = [f"spec.{kind}: Forbidden: cannot be set on create"] if kind == "ephemeralContainers" else []
    found = errors({**spec, "os": {"name": "windows"}})
    assert found == [f"spec.{kind}[0].securityContext.{field}: {NOT_FOR_WINDOWS}", *late]
    assert errors(spec) == late


def test_windows_options_are_not_for_linux() -> None:
    options = {"windowsOptions": {"runAsUserName": "ContainerUser"}}
    spec = {"securityContext": options, "containers": [{"name": "c", "image": "i", "securityContext": options}]}
    detail = "Forbidden: windows options cannot be set for a linux pod"
    assert errors({**spec, "os": {"name": "linux"}}) == [
        f"spec.securityContext.windowsOptions: {detail}",
        f"spec.containers[0].securityContext.windowsOptions: {detail}",
    ]
    assert errors({**spec, "os": {"name": "windows"}}) == []
    assert errors(spec) == []


@pytest.mark.parametrize(
    ("name", "detail"),
    [
        ("", "runAsUserName cannot be an empty string"),
        ("a\tb", "runAsUserName cannot contain control characters"),
        ("a\\b\\c", "runAsUserName cannot contain more than one backslash"),
        ("domain\\", "runAsUserName's User cannot be empty"),
        ("...", "runAsUserName's User cannot contain only periods or spaces"),
        ("a@b", "runAsUserName's User cannot contain the following characters: \"/\\:;|=,+*?<>@[]"),
        ("x" * 105, "runAsUserName's User length must not be longer than 104 characters"),
        (".dom|ain\\user", "runAsUserName's Domain doesn't match the NetBios nor the DNS format"),
        ("x" * 256 + "\\user", "runAsUserName's Domain length must be under 256 characters"),
    ],
)
def test_user_names(name: str, detail: str) -> None:
    found = errors({"securityContext": {"windowsOptions": {"runAsUserName": name}}})
    assert found[0].startswith("spec.securityContext.windowsOptions.runAsUserName: Invalid value: ")
    assert found[0].endswith(f": {detail}")


@pytest.mark.parametrize("name", ["ContainerAdministrator", "NT AUTHORITY\\SYSTEM", "corp.example.com\\svc-web", "a"])
def test_user_names_that_are_fine(name: str) -> None:
    assert errors({"securityContext": {"windowsOptions": {"runAsUserName": name}}}) == []


def test_group_managed_accounts() -> None:
    options = {"gmsaCredentialSpecName": "Not Valid", "gmsaCredentialSpec": ""}
    name, spec = errors({"securityContext": {"windowsOptions": options}})
    assert name.startswith('spec.securityContext.windowsOptions.gmsaCredentialSpecName: Invalid value: "Not Valid": a')
    assert spec == (
        'spec.securityContext.windowsOptions.gmsaCredentialSpec: Invalid value: "": gmsaCredentialSpec cannot be an'
        " empty string"
    )
    (large,) = errors({"securityContext": {"windowsOptions": {"gmsaCredentialSpec": "x" * 65537}}})
    assert large.endswith("gmsaCredentialSpec size must be under 64 KiB")


def host_process(value: bool | None) -> Object:
    return {"securityContext": {"windowsOptions": {} if value is None else {"hostProcess": value}}}


def test_host_process_containers_need_the_hosts_network() -> None:
    assert errors(host_process(True)) == [
        "spec.hostNetwork: Invalid value: false: hostNetwork must be true if pod contains any hostProcess containers"
    ]
    assert errors({**host_process(True), "hostNetwork": True}) == []


def test_host_process_is_for_all_containers_or_none() -> None:
    mixed = [{"name": "a", "image": "i", **host_process(True)}, {"name": "b", "image": "i"}]
    assert errors({"hostNetwork": True, "containers": mixed}) == [
        'spec: Invalid value: "": If pod contains any hostProcess containers then all containers must be HostProcess'
        " containers"
    ]
    init = [{"name": "b", "image": "i", **host_process(False)}]
    found = errors({"hostNetwork": True, **host_process(True), "initContainers": init})
    assert found[0] == (
        "spec.initContainers[0].securityContext.windowsOptions.hostProcess: Invalid value: false: pod hostProcess value"
        " must be identical if both are specified, was true"
    )
