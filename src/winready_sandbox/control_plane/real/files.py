"""What the programs of a control plane read from disk: certificates, keys, tokens, kubeconfigs, the way to the nodes.

Everything lies in the sandbox's own folder, which only its owner can enter and which is removed with it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from winready_sandbox.api.identity import User
from winready_sandbox.kubeconfig import kubeconfig
from winready_sandbox.pki import Authority, KeyPair, key_pem, new_key, public_key_pem


class Files:
    """Writes files and remembers nothing but the folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __truediv__(self, name: str) -> str:
        """The path of a file, as an argument for a program."""
        return str(self.folder / name)

    def write(self, name: str, content: bytes) -> str:
        """Write a file and return its path."""
        path = self.folder / name
        path.write_bytes(content)
        path.chmod(0o600)
        return str(path)

    def pair(self, name: str, pair: KeyPair) -> tuple[str, str]:
        """Write a certificate and its key; returns their paths."""
        return self.write(f"{name}.crt", pair.certificate), self.write(f"{name}.key", pair.key)

    def authority(self, authority: Authority) -> tuple[str, str]:
        """The certificate authority that everybody here trusts."""
        return self.pair("ca", KeyPair(authority.certificate, authority.key))

    def signing_key(self) -> tuple[str, str]:
        """A key for service account tokens; returns the paths of its private and its public half."""
        key = new_key()
        return self.write("tokens.key", key_pem(key)), self.write("tokens.pub", public_key_pem(key))

    def tokens(self, users: Mapping[str, User]) -> str:
        """Bearer tokens and whom they stand for."""
        lines = [f'{token},{user.name},{user.name},"{",".join(user.groups)}"\n' for token, user in users.items()]
        return self.write("tokens.csv", "".join(lines).encode())

    def kubeconfig(self, user: str, url: str, authority: Authority, groups: Iterable[str] = ()) -> str:
        """How a component reaches the API server, as itself."""
        text = kubeconfig(user, url, authority.certificate, authority.client(user, groups))
        return self.write(f"{user.rpartition(':')[2]}.kubeconfig", text.encode())

    def egress(self, socket: Path) -> str:
        """All that the API server opens towards nodes, pods and services goes through a Unix socket."""

        def selection(name: str, connection: dict[str, Any]) -> dict[str, Any]:
            return {"name": name, "connection": connection}

        direct = {"proxyProtocol": "Direct"}
        proxied = {"proxyProtocol": "HTTPConnect", "transport": {"uds": {"udsName": str(socket)}}}
        document = {
            "apiVersion": "apiserver.k8s.io/v1beta1",
            "kind": "EgressSelectorConfiguration",
            "egressSelections": [
                selection("cluster", proxied),
                selection("controlplane", direct),
                selection("etcd", direct),
            ],
        }
        return self.write("egress.json", json.dumps(document).encode())
