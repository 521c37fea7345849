"""Kubeconfig files as kubectl reads them."""

from __future__ import annotations

import base64
import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from winready.cluster.errors import ConfigError
from winready.cluster.kubeconfig import find_target, foreign_target


def config(server: Any = "https://one:6443", context: Any = "one", **user: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": context,
        "clusters": [{"name": context, "cluster": {"server": server}}],
        "users": [{"name": context, "user": user}],
        "contexts": [{"name": context, "context": {"cluster": context, "user": context}}],
    }


def write(path: Path, content: object) -> str:
    path.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
    return str(path)


def test_several_files_merge_and_the_first_to_name_an_entry_wins(tmp_path: Path) -> None:
    first = write(tmp_path / "a", config("https://first:1", "one", token="t1"))
    second = config("https://second:2", "one", token="t2")
    second["contexts"].append({"name": "two", "context": {"cluster": "one", "user": "one", "namespace": "ns"}})
    environ = {"KUBECONFIG": os.pathsep.join([first, str(tmp_path / "missing"), write(tmp_path / "b", second)])}
    assert find_target(environ=environ).server == "https://first:1"
    target = find_target(context="two", environ=environ)
    assert (target.server, target.token, target.namespace) == ("https://first:1", "t1", "ns")


def test_paths_are_relative_to_the_file_that_holds_them(tmp_path: Path) -> None:
    content = config(tokenFile="token")
    content["clusters"][0]["cluster"]["certificate-authority"] = "ca.pem"
    (tmp_path / "ca.pem").write_bytes(b"CA")
    target = find_target(write(tmp_path / "config", content))
    assert target.ca == b"CA"
    assert target.token_file == tmp_path / "token"


def test_inline_data_wins_over_files(tmp_path: Path) -> None:
    data = base64.b64encode(b"inline").decode()
    content = config(**{"client-certificate": "nowhere", "client-certificate-data": data})
    assert find_target(write(tmp_path / "config", content)).client_certificate == b"inline"


def test_secrets_do_not_show_in_a_repr(tmp_path: Path) -> None:
    target = find_target(write(tmp_path / "config", config(token="s3cret", username="u", password="p4ss")))
    assert "s3cret" not in repr(target)
    assert "p4ss" not in repr(target)


def test_inside_a_pod_its_own_account_is_used(tmp_path: Path) -> None:
    for name, text in (("token", "abc"), ("ca.crt", "CA"), ("namespace", "here")):
        (tmp_path / name).write_text(text)
    environ = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443", "HOME": str(tmp_path)}
    target = find_target(environ=environ, in_cluster=tmp_path)
    assert (target.server, target.namespace, target.token_file) == ("https://[fd00::1]:443", "here", tmp_path / "token")


def test_impersonation_becomes_headers(tmp_path: Path) -> None:
    content = config(**{"as": "jane", "as-groups": ["a", "b"], "as-user-extra": {"scopes": ["view"]}})
    target = find_target(write(tmp_path / "config", content))
    assert target.impersonate == {
        "Impersonate-User": ("jane",),
        "Impersonate-Group": ("a", "b"),
        "Impersonate-Extra-scopes": ("view",),
    }


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("a: [", "line"),
        ("- 1", "not a kubeconfig"),
        ({"kind": "Pod"}, "not a kubeconfig"),
        ({"kind": "Config"}, "no current-context"),
        ({**config(), "current-context": "onee"}, "did you mean 'one'?"),
        ({**config(), "clusters": []}, "names cluster 'one'"),
        ({**config(), "clusters": [{"name": "one", "cluster": {}}]}, "has no server"),
        ({**config(), "users": [{"user": {}}]}, "missing 'name'"),
        (config(**{"auth-provider": {"name": "gcp"}}), "removed in 1.26"),
        (config(exec={"command": "x", "apiVersion": "client.authentication.k8s.io/v1alpha1"}), "v1beta1"),
        (config(**{"client-key-data": "%%%"}), "not base64"),
        (config(**{"client-key": "nowhere"}), "cannot be read"),
    ],
)
def test_mistakes_name_the_file_and_what_to_do(tmp_path: Path, content: object, words: str) -> None:
    path = write(tmp_path / "config", content)
    with pytest.raises(ConfigError) as caught:
        find_target(path)
    said = f"{caught.value.message} {caught.value.remedy}"
    assert words in said
    assert str(tmp_path) in said


def test_no_kubeconfig_at_all_points_to_the_sandbox(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        find_target(environ={"HOME": str(tmp_path)})
    assert "winready run --sandbox" in caught.value.remedy


@pytest.mark.parametrize(
    ("section", "key", "value"),
    [
        ("users", "exec", {"command": "/bin/touch", "apiVersion": "client.authentication.k8s.io/v1"}),
        ("users", "auth-provider", {"name": "x"}),
        ("users", "tokenFile", "/var/run/secrets/kubernetes.io/serviceaccount/token"),
        ("users", "client-certificate", "/etc/hostname"),
        ("users", "client-key", "/etc/hostname"),
        ("clusters", "certificate-authority", "/etc/hostname"),
    ],
)
def test_a_kubeconfig_of_somebody_else_leads_to_no_file_and_no_program(section: str, key: str, value: object) -> None:
    content: dict[str, Any] = {
        "clusters": [{"name": "c", "cluster": {"server": "https://10.0.0.1:6443"}}],
        "users": [{"name": "u", "user": {"token": "t0p-secret"}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    target = foreign_target(yaml.safe_dump(content).encode(), "Secret a/b")
    assert (target.server, target.token) == ("https://10.0.0.1:6443", "t0p-secret")
    content[section][0][section.removesuffix("s")][key] = value
    with pytest.raises(ConfigError, match=f"Secret a/b: .* has '{key}', which leads out of the kubeconfig") as error:
        foreign_target(yaml.safe_dump(content).encode(), "Secret a/b")
    assert "t0p-secret" not in f"{error.value.message} {error.value.remedy}"
