"""Kubeconfigs: how people and programs reach the API of a sandbox."""

from __future__ import annotations

import base64

from winready_sandbox.pki import KeyPair

_TEXT = """\
apiVersion: v1
kind: Config
clusters:
- name: {name}
  cluster:
    server: {server}
    certificate-authority-data: {ca}
users:
- name: {name}
  user:
    client-certificate-data: {certificate}
    client-key-data: {key}
contexts:
- name: {name}
  context:
    cluster: {name}
    user: {name}
current-context: {name}
"""


def kubeconfig(name: str, server: str, authority: bytes, user: KeyPair) -> str:
    """The text of a kubeconfig for the holder of a client certificate."""
    return _TEXT.format(
        name=name,
        server=server,
        ca=_base64(authority),
        certificate=_base64(user.certificate),
        key=_base64(user.key),
    )


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()
