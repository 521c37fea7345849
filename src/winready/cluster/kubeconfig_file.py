"""The shape of a kubeconfig file: every mistake with its line, and none of the secrets in it repeated."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec

from winready.cluster.errors import ConfigError
from winready.spec import yamlfile
from winready.spec.mistakes import Finding, check_shape

LARGEST = 16 * 2**20
_STEERING = re.compile("[\x00-\x1f\x7f]")


class _Struct(msgspec.Struct, rename="kebab"):
    """Keys are written with hyphens; what kubectl does not know it ignores, and so do we."""


class _Cluster(_Struct):
    server: str | None = None
    certificate_authority: str | None = None
    certificate_authority_data: str | None = None
    insecure_skip_tls_verify: bool | None = None
    tls_server_name: str | None = None
    proxy_url: str | None = None


class _Variable(msgspec.Struct):
    name: str
    value: str | None = None


class _Exec(msgspec.Struct, rename="camel"):
    api_version: str | None = None
    command: str | None = None
    args: list[str] | None = None
    env: list[_Variable] | None = None
    provide_cluster_info: bool | None = None
    install_hint: str | None = None
    interactive_mode: str | None = None


class _User(_Struct):
    token: str | None = None
    token_file: str | None = msgspec.field(default=None, name="tokenFile")
    client_certificate: str | None = None
    client_certificate_data: str | None = None
    client_key: str | None = None
    client_key_data: str | None = None
    username: str | None = None
    password: str | None = None
    exec: _Exec | None = None
    as_: str | None = msgspec.field(default=None, name="as")
    as_uid: str | None = None
    as_groups: list[str] | None = None
    as_user_extra: dict[str, list[str]] | None = None


class _Context(_Struct):
    cluster: str | None = None
    user: str | None = None
    namespace: str | None = None


class _NamedCluster(msgspec.Struct):
    name: str
    cluster: _Cluster | None = None


class _NamedUser(msgspec.Struct):
    name: str
    user: _User | None = None


class _NamedContext(msgspec.Struct):
    name: str
    context: _Context | None = None


class _File(_Struct):
    kind: str | None = None
    clusters: list[_NamedCluster] | None = None
    users: list[_NamedUser] | None = None
    contexts: list[_NamedContext] | None = None
    current_context: str | None = None


def read(path: Path) -> dict[str, Any]:
    """What is in a kubeconfig file, with every value of the right kind; raises `ConfigError`."""
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST + 1)
    except (OSError, ValueError) as error:
        detail = error.strerror if isinstance(error, OSError) else "no file has such a name"
        raise ConfigError(f"kubeconfig {path} cannot be read: {detail}", "check the file and its permissions") from None
    return parse(data, str(path))


def parse(data: bytes, path: str) -> dict[str, Any]:
    """The same of the contents; ``path`` says where they are from."""
    if len(data) > LARGEST:
        raise ConfigError(f"{path} is larger than {LARGEST >> 20} MB; no kubeconfig is", "check the path")
    try:
        documents = list(yamlfile.read(yamlfile.decode(data)))
    except yamlfile.YamlError as error:
        documents = [error]
    if not documents:
        return {}
    if isinstance(documents[0], yamlfile.YamlError):
        # The reader's words may repeat some of the file, which holds secrets.
        problem = re.sub(r"""(['"])[^'"]*\1""", "...", documents[0].problem)
        raise ConfigError(f"kubeconfig {path}, line {documents[0].line}: {problem}", "repair the file")
    source = documents[0]
    content: Any = {} if source.value is None else source.value
    if not isinstance(content, dict) or content.get("kind") not in (None, "Config"):
        raise ConfigError(f"{path} is not a kubeconfig (kind: Config)", "check the path")
    unknown = "unknown key"
    found = [each for each in check_shape(content, _File) if not each.message.startswith(unknown)]
    found = found or _unusable(content)
    if found:
        line = source.text.position(source.nearest(found[0].path).key)[0]
        place = ".".join(str(step) for step in found[0].path) or "the file"
        more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
        raise ConfigError(f"kubeconfig {path}, line {line}: {place}: {found[0].message}{more}", "repair the file")
    return content


def _unusable(content: dict[str, Any]) -> list[Finding]:
    """Values of the right kind that nobody can use."""
    found: list[Finding] = []
    for section, inner in (("clusters", "cluster"), ("users", "user"), ("contexts", "context")):
        for number, entry in enumerate(content.get(section) or []):
            values = entry.get(inner) or {}
            for path, text in _texts(values, (section, number, inner)):
                if _STEERING.search(text) and "data" not in str(path[-1]):
                    found.append(Finding(path, "control characters and line ends have no place here"))
            found += [
                Finding((section, number, inner, key), "expected an address: https://HOST:PORT")
                for key in ("server", "proxy-url")
                if inner == "cluster" and values.get(key) and not _is_address(values[key])
            ]
    return found


def _texts(value: Any, path: tuple[str | int, ...]) -> list[tuple[tuple[str | int, ...], str]]:
    """The texts that a request could carry; those below `extensions` and plug-ins are nobody's business."""
    if isinstance(value, str):
        return [(path, value)]
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [
        each
        for key, below in items
        if key not in ("extensions", "exec", "auth-provider")
        for each in [*_texts(below, (*path, key)), *([((*path, key), key)] if isinstance(key, str) else [])]
    ]


def _is_address(text: str) -> bool:
    try:
        parts = urlsplit(text)
        return (
            bool(parts.scheme and parts.hostname) and (parts.port or 1) > 0 and text.isprintable() and " " not in text
        )
    except ValueError:
        return False
