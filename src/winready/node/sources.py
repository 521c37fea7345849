"""Where the programs of a Windows worker come from, and where their releases publish the digests: the only place."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit

from winready.node.parameters import Cni, File, Member, Paths
from winready.node.skew import newer

KUBERNETES = "https://dl.k8s.io"
GITHUB = "https://github.com"
GITHUB_API = "https://api.github.com"
LOG_RUNNER = "1.36.3"
"""The oldest release whose kube-log-runner was seen to rotate; it runs whatever kubelet it is given."""
CONTAINERD = "2.1.5"
OLDEST_CONTAINERD = (1, 7)
CRICTL = "1.34.0"
CNI_PLUGINS = "1.8.0"
FLANNEL = "0.27.4"
FLANNEL_PLUGIN = "1.8.0-flannel1"


@dataclass(frozen=True)
class Source:
    """One download: what it is, and where its digest is published."""

    file: File
    digest_url: str
    """A list of digests, or the description of a release in GitHub's API."""
    release: str
    """What it is part of, as people say it."""

    @property
    def name(self) -> str:
        """What people call it."""
        return self.file.name


def sources(kubernetes: str, containerd: str, cni: Cni, paths: Paths, mirror: str = "") -> list[Source]:
    """Everything that a machine needs, sorted by name; a mirror holds the same paths below each host's name."""
    found = [
        *(_kubernetes(name, kubernetes, paths) for name in ("kubeadm", "kubelet", "kube-proxy")),
        _kubernetes("kube-log-runner", newer(kubernetes, LOG_RUNNER), paths),
    ]
    if containerd:
        found += [_containerd(containerd, paths), _crictl(paths)]
    if cni == "flannel":
        found += [_cni_plugins(paths), _flannel(paths), _flannel_plugin(paths)]
    return [mirrored(source, mirror) for source in sorted(found, key=lambda source: source.name)]


def newest_patch_url(minor: str, mirror: str = "") -> str:
    """Where the newest release of ``1.36`` is named."""
    return _mirrored(f"{KUBERNETES}/release/stable-{minor}.txt", mirror)


def mirrored(source: Source, mirror: str) -> Source:
    """The same download, from a mirror."""
    if not mirror:
        return source
    file = File(
        name=source.file.name,
        url=_mirrored(source.file.url, mirror),
        sha256=source.file.sha256,
        target=source.file.target,
        members=source.file.members,
    )
    return Source(file, _mirrored(source.digest_url, mirror), source.release)


def _mirrored(url: str, mirror: str) -> str:
    if not mirror:
        return url
    parts = urlsplit(url)
    return f"{mirror.rstrip('/')}/{parts.netloc}{parts.path}"


def _kubernetes(name: str, release: str, paths: Paths) -> Source:
    url = f"{KUBERNETES}/v{release}/bin/windows/amd64/{name}.exe"
    file = File(name=name, url=url, sha256="", target=rf"{paths.binaries}\{name}.exe")
    return Source(file, f"{url}.sha256", f"Kubernetes {release}")


def _archive(name: str, release: str, url: str, digest_url: str, folder: str, members: dict[str, str]) -> Source:
    taken = [Member(path=path, target=rf"{folder}\{target}") for path, target in members.items()]
    return Source(File(name=name, url=url, sha256="", members=taken), digest_url, f"{name} {release}")


def _release(repository: str, tag: str, file: str) -> str:
    return f"{GITHUB}/{repository}/releases/download/{tag}/{file}"


def _containerd(version: str, paths: Paths) -> Source:
    url = _release("containerd/containerd", f"v{version}", f"containerd-{version}-windows-amd64.tar.gz")
    programs = ("containerd.exe", "containerd-shim-runhcs-v1.exe", "ctr.exe")
    return _archive(
        "containerd", version, url, f"{url}.sha256sum", paths.containerd, {f"bin/{one}": one for one in programs}
    )


def _crictl(paths: Paths) -> Source:
    url = _release("kubernetes-sigs/cri-tools", f"v{CRICTL}", f"crictl-v{CRICTL}-windows-amd64.tar.gz")
    return _archive("crictl", CRICTL, url, f"{url}.sha256", paths.binaries, {"crictl.exe": "crictl.exe"})


def _cni_plugins(paths: Paths) -> Source:
    url = _release("containernetworking/plugins", f"v{CNI_PLUGINS}", f"cni-plugins-windows-amd64-v{CNI_PLUGINS}.tgz")
    programs = ("host-local.exe", "win-bridge.exe", "win-overlay.exe")
    return _archive(
        "cni-plugins", CNI_PLUGINS, url, f"{url}.sha256", paths.cni_binaries, {one: one for one in programs}
    )


def _flannel_plugin(paths: Paths) -> Source:
    file = f"cni-plugin-flannel-windows-amd64-v{FLANNEL_PLUGIN}.tgz"
    url = _release("flannel-io/cni-plugin", f"v{FLANNEL_PLUGIN}", file)
    return _archive(
        "flannel-plugin", FLANNEL_PLUGIN, url, f"{url}.sha256", paths.cni_binaries, {"flannel-amd64.exe": "flannel.exe"}
    )


def _flannel(paths: Paths) -> Source:
    # This project publishes no list; GitHub computes a digest of every asset when it is uploaded.
    url = _release("flannel-io/flannel", f"v{FLANNEL}", "flanneld.exe")
    file = File(name="flanneld", url=url, sha256="", target=rf"{paths.binaries}\flanneld.exe")
    return Source(file, f"{GITHUB_API}/repos/flannel-io/flannel/releases/tags/v{FLANNEL}", f"flannel {FLANNEL}")
