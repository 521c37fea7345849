"""A target as a kubeconfig of its own, for programs that we start: readable by its owner only, gone afterwards."""

from __future__ import annotations

import base64
import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from winready.cluster.kubeconfig import Target


@contextmanager
def exported(target: Target) -> Iterator[Path]:
    """Write the kubeconfig of a target for the time of the block."""
    with tempfile.TemporaryDirectory(prefix="winready-") as folder:
        path = Path(folder) / "kubeconfig"
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "w") as file:
            json.dump(document(target), file)
        yield path


def document(target: Target) -> dict[str, Any]:
    """The kubeconfig as data."""
    cluster: dict[str, Any] = {"server": target.server}
    if target.ca is not None:
        cluster["certificate-authority-data"] = _packed(target.ca)
    if target.insecure:
        cluster["insecure-skip-tls-verify"] = True
    if target.tls_server_name:
        cluster["tls-server-name"] = target.tls_server_name
    if target.proxy_url:
        cluster["proxy-url"] = target.proxy_url
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "winready",
        "clusters": [{"name": "winready", "cluster": cluster}],
        "users": [{"name": "winready", "user": _user(target)}],
        "contexts": [{"name": "winready", "context": {"cluster": "winready", "user": "winready"}}],
    }


def _user(target: Target) -> dict[str, Any]:
    user: dict[str, Any] = {}
    if target.token_file is not None:
        user["tokenFile"] = str(target.token_file)
    elif target.token:
        user["token"] = target.token
    if target.client_certificate and target.client_key:
        user["client-certificate-data"] = _packed(target.client_certificate)
        user["client-key-data"] = _packed(target.client_key)
    if target.basic:
        user["username"], user["password"] = target.basic
    if target.plugin is not None:
        user["exec"] = {
            "apiVersion": target.plugin.api_version,
            "command": target.plugin.command,
            "args": list(target.plugin.args),
            "env": [{"name": name, "value": value} for name, value in target.plugin.env.items()],
            "interactiveMode": "Never",
            "provideClusterInfo": target.plugin.provide_cluster_info,
        }
    for header, values in target.impersonate.items():
        match header:
            case "Impersonate-User":
                user["as"] = values[0]
            case "Impersonate-Uid":
                user["as-uid"] = values[0]
            case "Impersonate-Group":
                user["as-groups"] = list(values)
            case _:
                user.setdefault("as-user-extra", {})[header.removeprefix("Impersonate-Extra-")] = list(values)
    return user


def _packed(data: bytes) -> str:
    return base64.b64encode(data).decode()
