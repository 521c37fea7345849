"""Which images exist, for which platforms, and what a pull on a node finds.

A registry is not simulated as a server: any host serves an image by its repository's last name and tag, so a
mirror works without being declared. What does not exist, or has no entry for the node's build, fails as in containerd.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace

from winready_sandbox.machine import image_trees
from winready_sandbox.machine.builds import BUILD_OF_SUFFIX, WINDOWS, image_builds
from winready_sandbox.machine.errors import OS
from winready_sandbox.machine.tree import Directory

MEBIBYTE = 2**20


class PullError(Exception):
    """A pull that failed; the text is containerd's."""

    code = "Unknown"

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text

    @property
    def rpc(self) -> str:
        """The text as the kubelet gets it over the runtime's interface."""
        return f"rpc error: code = {self.code} desc = {self.text}"


class ImageNotFound(PullError):
    """No repository or tag of that name."""

    code = "NotFound"


class NoMatchingPlatform(ImageNotFound):
    """The image exists, but has no entry that this node could run."""


class RegistryUnreachable(PullError):
    """No such host."""


class InvalidReference(PullError):
    """The text is no image reference; the kubelet calls it InvalidImageName."""

    code = "InvalidArgument"


@dataclass(frozen=True)
class Image:
    """One image as a node has it: a manifest entry for its own platform."""

    name: str
    """The reference as it was asked for, in full."""
    family: str
    tag: str
    os: OS
    build: str
    """Windows build number; empty on Linux."""
    digest: str
    """Of the manifest list: the same on every platform."""
    config_digest: str
    size: int
    user: str
    entrypoint: tuple[str, ...]
    cmd: tuple[str, ...]
    env: dict[str, str]
    cwd: str
    tree: str

    @property
    def root(self) -> Directory:
        """The files; shared and frozen."""
        return image_trees.tree(self.tree)

    @property
    def repository(self) -> str:
        """The reference without tag and digest."""
        return self.name.partition("@")[0].rpartition(":")[0] if ":" in self.name.rpartition("/")[2] else self.name

    @property
    def repo_digest(self) -> str:
        """What container statuses call imageID."""
        return f"{self.repository}@{self.digest}"

    def moved(self) -> Image:
        """What somebody pushed under the same tag later."""
        other = hashlib.sha256(f"later {self.digest}".encode()).hexdigest()
        return replace(self, digest=f"sha256:{other}")


@dataclass(frozen=True)
class Variant:
    """What a family of images is on one OS."""

    tree: str
    size: int
    user: str = ""
    entrypoint: tuple[str, ...] = ()
    cmd: tuple[str, ...] = ()
    env: dict[str, str] = field(default_factory=dict)
    cwd: str = ""


@dataclass(frozen=True)
class Family:
    """A repository: its tags with the Windows builds of each, and its content per OS."""

    name: str
    tags: dict[str, tuple[str, ...]]
    """Tag to Windows build suffixes; `*` = any tag."""
    linux: Variant | None = None
    windows: Variant | None = None

    def suffixes(self, tag: str) -> tuple[str, ...] | None:
        """Windows builds of a tag, or None if there is no such tag."""
        return self.tags.get(tag, self.tags.get("*"))


_LINUX_PATH = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
_TOOLS_PATH = {
    "PATH": "C:\\dig\\;C:\\bin\\;C:\\curl\\;C:\\Windows\\system32;C:\\Windows;C:\\Program Files\\PowerShell;"
}
_ADMIN, _USER = "ContainerAdministrator", "ContainerUser"
_TWO, _THREE = ("1809", "ltsc2022"), ("1809", "ltsc2022", "ltsc2025")
_OLD = ("1809", "20H2", "ltsc2022")

_AGNHOST_TAGS = {
    "2.32": ("1809", "1909", "2004", "20H2"),
    "2.36": _OLD,
    "2.40": _OLD,
    **dict.fromkeys(("2.39", "2.43", "2.45", "2.47", "2.52", "2.53", "2.54", "2.55", "2.56", "2.57", "2.59"), _TWO),
    **dict.fromkeys(("2.63.0", "2.66.1"), _THREE),
}
_PAUSE_TAGS = {
    "3.4": ("1809", "1909", "2004"),
    "3.4.1": ("1809", "1909", "2004", "20H2"),
    "3.5": ("1809", "1909", "2004", "20H2"),
    "3.6": ("1809", "1909", "2004", "20H2", "ltsc2022"),
    "3.7": _OLD,
    "3.8": _OLD,
    **dict.fromkeys(("3.9", "3.10", "3.10.1"), _TWO),
    "3.10.2": _THREE,
}
_EACH_BUILD = {suffix: (suffix,) for suffix in _THREE} | {"ltsc2019": ("1809",), "latest": _THREE}
_KUBE_PROXY = Variant("linux-kube-proxy", 30 * MEBIBYTE, entrypoint=("/usr/local/bin/kube-proxy",), env=_LINUX_PATH)
_CALICO_NODE = Variant("linux-calico-node", 140 * MEBIBYTE, entrypoint=("/bin/calico-node",), env=_LINUX_PATH)
_WINDOWS_AGENTS = Variant("windows-agents", 80 * MEBIBYTE, _ADMIN, cwd="C:\\")

FAMILIES = {
    family.name: family
    for family in (
        Family(
            "agnhost",
            _AGNHOST_TAGS,
            Variant("linux-agnhost", 55 * MEBIBYTE, "", ("/agnhost",), ("pause",), _LINUX_PATH),
            Variant("windows-agnhost", 620 * MEBIBYTE, _ADMIN, ("/agnhost",), ("pause",), _TOOLS_PATH, "C:\\"),
        ),
        Family(
            "pause",
            _PAUSE_TAGS,
            Variant("linux-pause", 320 * 1024, "65535:65535", ("/pause",), env=_LINUX_PATH),
            Variant("windows-pause", 280 * MEBIBYTE, _USER, ("/pause.exe",), cwd="C:\\"),
        ),
        Family(
            "busybox",
            {"1.29-2": _TWO, "1.29-4": _TWO, "1.36.1-1": _TWO, "1.37.0-1": _TWO}
            | {"1.37.0-2": _THREE, "1.38.0-1": _THREE, "latest": (), "1.36": (), "1.37": (), "stable": ()},
            Variant("alpine", 4 * MEBIBYTE, "", (), ("sh",), _LINUX_PATH),
            Variant("windows-busybox", 520 * MEBIBYTE, _ADMIN, ("cmd.exe", "/s", "/c"), (), _TOOLS_PATH, "C:\\"),
        ),
        Family(
            "glibc-dns-testing",
            {"2.0.0": _THREE},
            Variant("linux-dns-tools", 90 * MEBIBYTE, "", (), ("bash",), _LINUX_PATH),
            Variant("windows-busybox", 560 * MEBIBYTE, _ADMIN, ("cmd.exe", "/s", "/c"), (), _TOOLS_PATH, "C:\\"),
        ),
        Family(
            "jessie-dnsutils",
            {"1.5": _OLD, "1.7": _TWO},
            Variant("linux-dns-tools", 110 * MEBIBYTE, "", (), ("bash",), _LINUX_PATH),
            Variant("windows-busybox", 560 * MEBIBYTE, _ADMIN, ("cmd.exe", "/s", "/c"), (), _TOOLS_PATH, "C:\\"),
        ),
        Family(
            "nonroot",
            {"1.5": _TWO, "1.6.0": _THREE},
            Variant("alpine", 4 * MEBIBYTE, "1234", (), ("sh",), _LINUX_PATH),
            Variant("nanoserver", 280 * MEBIBYTE, _USER, (), ("cmd",), cwd="C:\\"),
        ),
        Family(
            "nonewprivs",
            {"1.3": (), "1.4": ()},
            Variant("linux-nonewprivs", 4 * MEBIBYTE, "", (), ("nnp",), _LINUX_PATH),
        ),
        Family(
            "resource-consumer",
            {"1.13": _TWO, "1.14": _TWO, "1.15.0": _THREE},
            Variant("linux-resource-consumer", 30 * MEBIBYTE, "", ("/consumer",), env=_LINUX_PATH),
            Variant("windows-resource-consumer", 300 * MEBIBYTE, _ADMIN, ("/consumer.exe",), cwd="C:\\"),
        ),
        Family(
            "nginx",
            {**dict.fromkeys(("1.27", "latest", "stable", "alpine"), ()), "1.27.0-2": _THREE}
            | dict.fromkeys(("1.14-4", "1.15-4", "1.27-0"), _TWO),
            Variant(
                "linux-nginx",
                24 * MEBIBYTE,
                "",
                ("/docker-entrypoint.sh",),
                ("nginx", "-g", "daemon off;"),
                _LINUX_PATH,
            ),
            Variant(
                "windows-nginx",
                530 * MEBIBYTE,
                _ADMIN,
                ("/bin/sh", "-c", " cd /usr/share/nginx && ./nginx.exe"),
                (),
                _TOOLS_PATH,
                "C:\\",
            ),
        ),
        *(
            Family(
                name,
                {"1.7": _TWO, "1.8": _THREE},
                Variant(f"linux-{name}", 55 * MEBIBYTE, "", ("/agnhost",), ("test-webserver",), _LINUX_PATH),
                Variant(f"windows-{name}", 620 * MEBIBYTE, _ADMIN, ("/agnhost",), ("test-webserver",), _TOOLS_PATH),
            )
            for name in ("kitten", "nautilus")
        ),
        Family("alpine", {"*": ()}, Variant("alpine", 4 * MEBIBYTE, "", (), ("/bin/sh",), _LINUX_PATH)),
        Family("coredns", {"*": ()}, Variant("linux-coredns", 18 * MEBIBYTE, "65532", ("/coredns",), env=_LINUX_PATH)),
        Family(
            "k8s-dns-node-cache",
            {"*": ()},
            Variant("linux-coredns", 30 * MEBIBYTE, "", ("/coredns",), env=_LINUX_PATH),
        ),
        Family(
            "etcd",
            {"*": _TWO},
            Variant("linux-etcd", 60 * MEBIBYTE, env=_LINUX_PATH),
            Variant("windows-etcd", 330 * MEBIBYTE, _USER, cwd="C:\\"),
        ),
        Family(
            "sample-apiserver",
            {"1.29.2": (), "1.33.8": ()},
            Variant("linux-sample-apiserver", 50 * MEBIBYTE, "", ("/sample-apiserver",), env=_LINUX_PATH),
        ),
        Family("nanoserver", _EACH_BUILD, None, Variant("nanoserver", 280 * MEBIBYTE, _USER, (), ("cmd",), cwd="C:\\")),
        Family(
            "servercore",
            _EACH_BUILD,
            None,
            Variant("servercore", 4300 * MEBIBYTE, _ADMIN, (), ("cmd",), cwd="C:\\"),
        ),
        Family(
            "windows-host-process-containers-base-image",
            {"v1.0.0": ("*",)},
            None,
            Variant("windows-hostprocess", 8 * 1024, _ADMIN, (), ("cmd.exe",), cwd="C:\\"),
        ),
        # What the applications in our examples run.
        Family(
            "samples",
            {f"aspnetapp-nanoserver-{suffix}": (suffix,) for suffix in ("ltsc2022", "ltsc2025")},
            None,
            Variant("windows-aspnetapp", 400 * MEBIBYTE, _USER, ("C:\\app\\aspnetapp.exe",), cwd="C:\\app"),
        ),
        Family(
            "iis",
            {f"windowsservercore-{suffix}": (suffix,) for suffix in ("ltsc2022", "ltsc2025")},
            None,
            Variant("windows-iis", 4700 * MEBIBYTE, _ADMIN, ("C:\\ServiceMonitor.exe", "w3svc"), cwd="C:\\"),
        ),
        Family(
            "windows-exporter",
            {"0.30.6": ("*",)},
            None,
            Variant("windows-exporter", 40 * MEBIBYTE, _ADMIN, ("windows_exporter.exe",), cwd="C:\\"),
        ),
        Family(
            "nats",
            {"2.11-windowsservercore-ltsc2022": ("ltsc2022",)},
            None,
            Variant("windows-nats", 4400 * MEBIBYTE, _ADMIN, ("C:\\nats-server.exe",), cwd="C:\\"),
        ),
        Family(
            "fluent-bit",
            {"windows-2022-3.2.10": ("ltsc2022",)},
            None,
            Variant(
                "windows-fluent-bit",
                4500 * MEBIBYTE,
                _ADMIN,
                ("C:\\fluent-bit\\bin\\fluent-bit.exe",),
                ("-i", "dummy", "-o", "stdout"),
                cwd="C:\\",
            ),
        ),
        Family("kube-proxy", {"*": ("*",)}, _KUBE_PROXY, _WINDOWS_AGENTS),
        Family("node", {"*": ()}, _CALICO_NODE),
        Family("node-windows", {"*": ("*",)}, None, _WINDOWS_AGENTS),
        Family("cni-windows", {"*": ("*",)}, None, _WINDOWS_AGENTS),
    )
}


def full_reference(reference: str) -> str:
    """A reference with the registry host and tag that are implied."""
    if not reference or (reference.lower() != reference and "/" not in reference) or " " in reference:
        raise InvalidReference(f'couldn\'t parse image name "{reference}": invalid reference format')
    head, _, rest = reference.partition("/")
    if not rest:
        full = f"docker.io/library/{reference}"
    elif "." in head or ":" in head or head == "localhost":
        full = reference
    else:
        full = f"docker.io/{reference}"
    return full if ":" in full.rpartition("/")[2] or "@" in full else f"{full}:latest"


def _digest(*parts: str) -> str:
    return "sha256:" + hashlib.sha256("\n".join(parts).encode()).hexdigest()


def _wanted_tag(family: Family, full: str) -> str | None:
    last = full.rpartition("/")[2]
    if "@" in last:
        digest = last.partition("@")[2]
        return next((tag for tag in family.tags if _digest("list", family.name, tag) == digest), None)
    return last.partition(":")[2]


def resolve(reference: str, os: OS, build: str = "") -> Image:
    """What pulling a reference on a node of this OS (and Windows build) brings, or why it fails."""
    full = full_reference(reference)
    host = full.partition("/")[0]
    path = full.partition("/")[2]
    failed = f'failed to pull and unpack image "{full}"'
    if host.startswith("invalid.") or host.endswith(".invalid"):
        name = path.partition(":")[0]
        raise RegistryUnreachable(
            f'{failed}: failed to resolve reference "{full}": failed to do request: Head '
            f'"https://{host}/v2/{name}/manifests/{path.partition(":")[2]}": dial tcp: lookup {host}: no such host'
        )
    family = FAMILIES.get(path.rpartition("/")[2].partition("@")[0].partition(":")[0])
    tag = _wanted_tag(family, full) if family else None
    suffixes = family.suffixes(tag) if family and tag else None
    if family is None or tag is None or suffixes is None:
        if host == "docker.io" and family is None:
            raise PullError(
                f'{failed}: failed to resolve reference "{full}": pull access denied, repository does not exist or '
                "may require authorization: server message: insufficient_scope: authorization failed"
            )
        raise ImageNotFound(f'{failed}: failed to resolve reference "{full}": {full}: not found')
    digest = _digest("list", family.name, tag)
    variant = family.linux if os == "linux" else family.windows
    chosen = _choose(suffixes, build) if os == "windows" else ""
    if variant is None or chosen is None:
        raise NoMatchingPlatform(f"{failed}: no match for platform in manifest {digest}: not found")
    return Image(
        name=full,
        family=family.name,
        tag=tag,
        os=os,
        build=chosen,
        digest=digest,
        config_digest=_digest("config", family.name, tag, os, chosen),
        size=variant.size,
        user=variant.user,
        entrypoint=variant.entrypoint,
        cmd=variant.cmd,
        env=dict(variant.env),
        cwd=variant.cwd or ("C:\\" if os == "windows" else "/"),
        tree=variant.tree,
    )


def _choose(suffixes: tuple[str, ...], host: str) -> str | None:
    """The build of the manifest entry that containerd takes on a host of this build."""
    if "*" in suffixes:
        return host
    offered = {BUILD_OF_SUFFIX[suffix] for suffix in suffixes}
    return next((number for number in image_builds(host) if number in offered and number in WINDOWS), None)
