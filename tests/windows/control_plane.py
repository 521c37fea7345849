"""A control plane as kubeadm prepares it: real etcd, API server and controller manager, which signs for new nodes.

The programs are plain processes in a network of their own; nothing that they send can leave it.
"""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import yaml

from real_programs import ensure

KUBERNETES = "1.36.3"
ENDPOINT = "127.0.0.1:6443"
ADVERTISED = "10.250.0.1"
"""kubeadm refuses to advertise a loopback address."""
PROGRAMS = ["etcd", "kube-apiserver", "kube-controller-manager", "kubectl", "kubeadm"]
ETCD = "http://127.0.0.1:2379"
READY_SECONDS = 120

Network = Callable[[], AbstractContextManager[None]]
"""Makes whatever the block starts part of the network."""


class ControlPlane:
    """The programs, from entering the block to its end."""

    def __init__(self, folder: Path, network: Network) -> None:
        self._folder = folder
        self._network = network
        self._programs = ensure(KUBERNETES, PROGRAMS)
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self.kubeconfig = folder / "super-admin.conf"

    def __enter__(self) -> ControlPlane:
        try:
            self._prepare()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for process in reversed(self._running.values()):
            process.kill()
            process.wait()

    @property
    def pki(self) -> Path:
        """Certificates and keys."""
        return self._folder / "pki"

    def kubectl(self, *words: str, check: bool = True) -> str:
        """What kubectl prints for an administrator."""
        command = [str(self._programs / "kubectl"), "--kubeconfig", str(self.kubeconfig), *words]
        return self.run(command, check=check)

    def get(self, *words: str) -> Any:
        """Objects as the API shows them."""
        return json.loads(self.kubectl("get", "-o", "json", *words))

    def run(self, command: list[str], *, check: bool = True) -> str:
        """Run a program in the cluster's network; returns its output."""
        with self._network():
            result = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        assert not check or result.returncode == 0, f"{command[:4]} {result.stdout}{result.stderr}"
        return result.stdout

    def phase(self, *words: str, config: str) -> str:
        """One phase of ``kubeadm init``."""
        command = [str(self._programs / "kubeadm"), "init", "phase", *words]
        return self.run([*command, "--config", str(self._folder / config)])

    def _prepare(self) -> None:
        # Certificates are here; workers are told of the place where they are everywhere else.
        for config, pki in (("here.yaml", str(self.pki)), ("told.yaml", "/etc/kubernetes/pki")):
            (self._folder / config).write_text(yaml.safe_dump_all(_configuration(pki)))
        # Nobody sends anything to it; it is local all the same, should somebody try.
        self.run(["ip", "address", "add", f"{ADVERTISED}/32", "dev", "lo"])
        self.phase("certs", "all", config="here.yaml")
        self.phase("kubeconfig", "super-admin", "--kubeconfig-dir", str(self._folder), config="here.yaml")
        self._start("etcd", *self._etcd())
        self._start("kube-apiserver", *self._api_server())
        self._until(lambda: "ok" in self.kubectl("get", "--raw", "/readyz", check=False))
        for words in (
            ("upload-config", "kubeadm"),
            ("upload-config", "kubelet"),
            ("bootstrap-token",),
            ("addon", "kube-proxy"),
        ):
            self.phase(*words, "--kubeconfig", str(self.kubeconfig), config="told.yaml")
        self._start("kube-controller-manager", *self._controller_manager())
        self._until(lambda: "default" in self.kubectl("get", "serviceaccounts", "-n", "kube-system", check=False))

    def _etcd(self) -> list[str]:
        data = f"--data-dir={self._folder / 'etcd'}"
        clients = [f"--listen-client-urls={ETCD}", f"--advertise-client-urls={ETCD}"]
        return [data, *clients, "--listen-peer-urls=http://127.0.0.1:2380", "--unsafe-no-fsync"]

    def _api_server(self) -> list[str]:
        return [
            f"--etcd-servers={ETCD}",
            "--secure-port=6443",
            "--bind-address=127.0.0.1",
            f"--advertise-address={ADVERTISED}",
            f"--client-ca-file={self.pki / 'ca.crt'}",
            f"--tls-cert-file={self.pki / 'apiserver.crt'}",
            f"--tls-private-key-file={self.pki / 'apiserver.key'}",
            "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
            f"--service-account-key-file={self.pki / 'sa.pub'}",
            f"--service-account-signing-key-file={self.pki / 'sa.key'}",
            "--service-cluster-ip-range=10.96.0.0/16",
            "--authorization-mode=Node,RBAC",
            "--enable-admission-plugins=NodeRestriction",
            "--enable-bootstrap-token-auth",
            "--allow-privileged=true",
        ]

    def _controller_manager(self) -> list[str]:
        return [
            f"--kubeconfig={self.kubeconfig}",
            "--controllers=*,bootstrap-signer-controller,token-cleaner-controller",
            f"--cluster-signing-cert-file={self.pki / 'ca.crt'}",
            f"--cluster-signing-key-file={self.pki / 'ca.key'}",
            f"--root-ca-file={self.pki / 'ca.crt'}",
            f"--service-account-private-key-file={self.pki / 'sa.key'}",
            "--use-service-account-credentials=true",
            "--leader-elect=false",
            "--secure-port=0",
        ]

    def _start(self, program: str, *words: str) -> None:
        # However the tests end, it ends with them.
        command = ["setpriv", "--pdeathsig", "KILL", str(self._programs / program), *words]
        with (self._folder / f"{program}.log").open("wb") as log, self._network():
            self._running[program] = subprocess.Popen(command, stdout=log, stderr=log)

    def _until(self, condition: Callable[[], bool]) -> None:
        end = time.monotonic() + READY_SECONDS
        while not condition():
            for program, process in self._running.items():
                assert process.poll() is None, f"{program} has ended: {self._last_words(program)}"
            assert time.monotonic() < end, self._last_words(list(self._running)[-1])
            time.sleep(0.2)

    def _last_words(self, program: str) -> str:
        return (self._folder / f"{program}.log").read_text(errors="replace")[-2000:]


def _configuration(pki: str) -> Iterator[dict[str, Any]]:
    api = "kubeadm.k8s.io/v1beta4"
    yield {
        "apiVersion": api,
        "kind": "InitConfiguration",
        "localAPIEndpoint": {"advertiseAddress": ADVERTISED, "bindPort": 6443},
        "nodeRegistration": {"name": "control-plane", "criSocket": "unix:///run/containerd/containerd.sock"},
    }
    yield {
        "apiVersion": api,
        "kind": "ClusterConfiguration",
        "kubernetesVersion": f"v{KUBERNETES}",
        "controlPlaneEndpoint": ENDPOINT,
        "certificatesDir": pki,
        "networking": {"podSubnet": "10.244.0.0/16", "serviceSubnet": "10.96.0.0/16"},
    }
