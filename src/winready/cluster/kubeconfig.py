"""Where the cluster is and who we are: kubeconfig files as kubectl reads them, or the pod's own account.

Several files are merged as kubectl merges them (the first file to name an entry wins), relative
paths are relative to the file that holds them, and every mistake names its file.
"""

from __future__ import annotations

import base64
import binascii
import difflib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from winready.cluster import kubeconfig_file
from winready.cluster.errors import ConfigError

IN_CLUSTER = Path("/var/run/secrets/kubernetes.io/serviceaccount")


@dataclass(frozen=True)
class ExecPlugin:
    """A program that hands out credentials (``users[].user.exec``)."""

    command: str
    args: tuple[str, ...]
    env: Mapping[str, str]
    api_version: str
    provide_cluster_info: bool
    install_hint: str
    interactive_mode: str


@dataclass(frozen=True)
class Target:
    """Everything needed to reach one cluster as one user. Holds secrets: its ``repr`` does not show them."""

    server: str
    context: str = ""
    cluster: str = ""
    namespace: str = "default"
    ca: bytes | None = field(default=None, repr=False)
    insecure: bool = False
    tls_server_name: str | None = None
    proxy_url: str | None = None
    token: str | None = field(default=None, repr=False)
    token_file: Path | None = None
    client_certificate: bytes | None = field(default=None, repr=False)
    client_key: bytes | None = field(default=None, repr=False)
    basic: tuple[str, str] | None = field(default=None, repr=False)
    plugin: ExecPlugin | None = None
    impersonate: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    own: bool = False
    """Whether it is the cluster of the very pod that asks."""


def find_target(
    kubeconfig: str | None = None,
    context: str | None = None,
    environ: Mapping[str, str] = os.environ,
    in_cluster: Path = IN_CLUSTER,
) -> Target:
    """The cluster that kubectl would talk to, or the one this pod runs in."""
    files = _files(kubeconfig, environ)
    if not files:
        if "KUBERNETES_SERVICE_HOST" in environ and (in_cluster / "token").exists():
            return _own_cluster(environ, in_cluster)
        raise ConfigError(
            "no kubeconfig found",
            "give --kubeconfig FILE, set KUBECONFIG, or try a simulated cluster with 'winready run --sandbox'",
        )
    merged = _merge([(path, kubeconfig_file.read(path)) for path in files])
    return _target(merged, context, ", ".join(str(path) for path in files))


OUTSIDE = {
    "users": ("exec", "auth-provider", "tokenFile", "client-certificate", "client-key"),
    "clusters": ("certificate-authority",),
}
"""What of a kubeconfig leads to files and programs of the machine that reads it."""


def foreign_target(data: bytes, title: str) -> Target:
    """The target of a kubeconfig that somebody else made: it may have us neither start a program nor read a file."""
    content = kubeconfig_file.parse(data, title)
    for section, keys in OUTSIDE.items():
        for entry in content.get(section) or []:
            for key in keys:
                if (entry.get(section.removesuffix("s")) or {}).get(key):
                    raise ConfigError(
                        f"{title}: {section[:-1]} {str(entry['name'])[:80]!r} has {key!r}, which leads out of the "
                        "kubeconfig",
                        "put credentials and certificates into it: token, client-certificate-data, client-key-data, "
                        "certificate-authority-data",
                    )
    return _target(_merge([(Path(title), content)]), None, title)


def _files(kubeconfig: str | None, environ: Mapping[str, str]) -> list[Path]:
    if kubeconfig:
        path = Path(kubeconfig).expanduser()
        if not path.exists():
            raise ConfigError(f"kubeconfig {path} does not exist", "check the path given with --kubeconfig")
        return [path]
    if environ.get("KUBECONFIG"):
        named = [Path(item).expanduser() for item in environ["KUBECONFIG"].split(os.pathsep) if item]
        present = [path for path in named if path.exists()]
        if not present and "KUBERNETES_SERVICE_HOST" not in environ:
            names = ", ".join(str(path) for path in named)
            raise ConfigError(f"no file named in KUBECONFIG exists: {names}", "check the variable KUBECONFIG")
        return present
    home = Path(environ.get("HOME") or Path.home()) / ".kube" / "config"
    return [home] if home.exists() else []


def _merge(parts: list[tuple[Path, dict[str, Any]]]) -> dict[str, Any]:
    merged: dict[str, Any] = {"clusters": {}, "users": {}, "contexts": {}, "current-context": ""}
    for path, content in parts:
        merged["current-context"] = merged["current-context"] or content.get("current-context") or ""
        for section, inner in (("clusters", "cluster"), ("users", "user"), ("contexts", "context")):
            for entry in content.get(section) or []:
                merged[section].setdefault(entry["name"], (path, entry.get(inner) or {}))
    return merged


def _entry(merged: dict[str, Any], section: str, name: str, named_by: str, files: str) -> tuple[Path, dict[str, Any]]:
    found: tuple[Path, dict[str, Any]] | None = merged[section].get(name)
    if found is None:
        near = difflib.get_close_matches(name, merged[section], n=1)
        known = ", ".join(sorted(merged[section])) or "none"
        hint = f"did you mean {near[0]!r}?" if near else f"{section} in {files}: {known}"
        raise ConfigError(f"{named_by} names {section[:-1]} {name!r}, which is not in {files}", hint)
    return found


def _target(merged: dict[str, Any], context: str | None, files: str) -> Target:
    name = context or merged["current-context"]
    if not name:
        known = ", ".join(sorted(merged["contexts"])) or "none"
        raise ConfigError(f"{files} has no current-context", f"give --context; contexts there: {known}")
    named_by = "--context" if context else "current-context"
    _, chosen = _entry(merged, "contexts", name, named_by, files)
    cluster_name = str(chosen.get("cluster") or "")
    cluster_file, cluster = _entry(merged, "clusters", cluster_name, f"context {name!r}", files)
    if not isinstance(cluster.get("server"), str):
        raise ConfigError(f"kubeconfig {cluster_file}: cluster {cluster_name!r} has no server", "repair the file")
    user_name = str(chosen.get("user") or "")
    user_file, user = (
        _entry(merged, "users", user_name, f"context {name!r}", files) if user_name else (cluster_file, {})
    )
    if "auth-provider" in user:
        raise ConfigError(
            f"user {user_name!r} in {user_file} uses an auth-provider, which Kubernetes removed in 1.26",
            "use the exec plug-in of your provider (its documentation tells how)",
        )
    username = user.get("username")
    return Target(
        server=cluster["server"].rstrip("/"),
        context=name,
        cluster=cluster_name,
        namespace=str(chosen.get("namespace") or "default"),
        ca=_bytes(cluster, "certificate-authority", cluster_file),
        insecure=bool(cluster.get("insecure-skip-tls-verify")),
        tls_server_name=cluster.get("tls-server-name"),
        proxy_url=_proxy(cluster.get("proxy-url"), cluster_file),
        token=user.get("token"),
        token_file=_path(user["tokenFile"], user_file) if user.get("tokenFile") and not user.get("token") else None,
        client_certificate=_bytes(user, "client-certificate", user_file),
        client_key=_bytes(user, "client-key", user_file),
        basic=(str(username), str(user.get("password") or "")) if username else None,
        plugin=_plugin(user["exec"], user_name, user_file) if user.get("exec") else None,
        impersonate=_impersonation(user),
    )


def _path(text: str, source: Path) -> Path:
    try:
        path = Path(text).expanduser()
    except RuntimeError:
        raise ConfigError(
            f"{text}, named in {source}: no user of that name", "name the file by its whole path"
        ) from None
    return path if path.is_absolute() else source.parent / path


def _bytes(values: dict[str, Any], key: str, source: Path) -> bytes | None:
    if data := values.get(f"{key}-data"):
        try:
            return base64.b64decode(data, validate=True)
        except (binascii.Error, ValueError, TypeError):
            raise ConfigError(f"kubeconfig {source}: {key}-data is not base64", "repair the file") from None
    if name := values.get(key):
        path = _path(str(name), source)
        try:
            return path.read_bytes()
        except OSError as error:
            raise ConfigError(f"{key} {path}, named in {source}, cannot be read: {error.strerror}") from None
    return None


def _proxy(url: Any, source: Path) -> str | None:
    if not url:
        return None
    if not str(url).startswith(("http://", "https://")):
        raise ConfigError(f"kubeconfig {source}: proxy-url {url!r} is not supported", "use an http or https proxy")
    return str(url)


def _plugin(values: dict[str, Any], user: str, source: Path) -> ExecPlugin:
    version = str(values.get("apiVersion") or "")
    if version not in ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1"):
        raise ConfigError(
            f"the exec plug-in of user {user!r} in {source} speaks {version or 'no apiVersion'!r}",
            "client.authentication.k8s.io/v1 and v1beta1 are supported; update the plug-in",
        )
    command = values.get("command")
    if not isinstance(command, str) or not command:
        raise ConfigError(f"the exec plug-in of user {user!r} in {source} has no command", "repair the file")
    if os.sep in command and not os.path.isabs(command):
        command = str(source.parent / command)
    return ExecPlugin(
        command=command,
        args=tuple(str(arg) for arg in values.get("args") or ()),
        env={str(item["name"]): str(item.get("value") or "") for item in values.get("env") or ()},
        api_version=version,
        provide_cluster_info=bool(values.get("provideClusterInfo")),
        install_hint=str(values.get("installHint") or ""),
        interactive_mode=str(values.get("interactiveMode") or "IfAvailable"),
    )


def _impersonation(user: dict[str, Any]) -> dict[str, tuple[str, ...]]:
    headers: dict[str, tuple[str, ...]] = {}
    if user.get("as"):
        headers["Impersonate-User"] = (str(user["as"]),)
        if user.get("as-uid"):
            headers["Impersonate-Uid"] = (str(user["as-uid"]),)
        if user.get("as-groups"):
            headers["Impersonate-Group"] = tuple(map(str, user["as-groups"]))
        for key, values in (user.get("as-user-extra") or {}).items():
            headers[f"Impersonate-Extra-{key}"] = tuple(map(str, values))
    return headers


def _own_cluster(environ: Mapping[str, str], account: Path) -> Target:
    host, port = environ["KUBERNETES_SERVICE_HOST"], environ.get("KUBERNETES_SERVICE_PORT", "443")
    namespace = account / "namespace"
    try:
        ca = (account / "ca.crt").read_bytes()
    except OSError as error:
        raise ConfigError(f"{account / 'ca.crt'} cannot be read: {error.strerror}") from None
    return Target(
        server=f"https://{f'[{host}]' if ':' in host else host}:{port}",
        context="in-cluster",
        cluster="in-cluster",
        namespace=namespace.read_text().strip() if namespace.exists() else "default",
        ca=ca,
        token_file=account / "token",
        own=True,
    )
