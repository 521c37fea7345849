"""The files in images: a Windows and a Linux base, and what each family of images adds to it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable

from winready_sandbox.machine import procfs
from winready_sandbox.machine.executables import program_file
from winready_sandbox.machine.files import OPEN_ACL, PROTECTED_ACL
from winready_sandbox.machine.tree import Device, Directory, File, Symlink, as_directory
from winready_sandbox.pki import Authority

SYSTEM32 = "C:/Windows/System32"
POWERSHELL_DIRECTORY = f"{SYSTEM32}/WindowsPowerShell/v1.0"


def _words(text: str) -> list[str]:
    return text.split()


BUSYBOX_APPLETS_WINDOWS = _words(
    "awk bash cat chmod cut dd echo env expr false find grep head hexdump id ln ls mkdir mv printenv seq sh sleep stat"
    " tail test touch true uname wc wget whoami"
)
BUSYBOX_APPLETS_LINUX = [
    *(name for name in BUSYBOX_APPLETS_WINDOWS if name != "bash"),
    *_words("hostname ip mount nc nslookup ping sysctl"),
]
NANOSERVER_TOOLS = _words("cmd curl hostname icacls ipconfig klist net netstat nslookup ping reg route whoami")
SERVERCORE_TOOLS = _words("nltest shutdown")
HOST_TOOLS = _words("hcsdiag hnsdiag")

_BIND_HOSTS = (
    "# Copyright (c) 1993-2009 Microsoft Corp.\r\n#\r\n"
    "# This is a sample HOSTS file used by Microsoft TCP/IP for Windows.\r\n#\r\n"
    "#\t127.0.0.1       localhost\r\n#\t::1             localhost\r\n"
)
_ACCOUNTS = (
    "root:x:0:0:root:/root:/bin/sh\nbin:x:1:1:bin:/bin:/sbin/nologin\ndaemon:x:2:2:daemon:/sbin:/sbin/nologin\n"
    "nginx:x:101:101:nginx:/var/cache/nginx:/sbin/nologin\nnobody:x:65534:65534:nobody:/:/sbin/nologin\n"
)
_OS_RELEASE = 'NAME="Alpine Linux"\nID=alpine\nVERSION_ID=3.21.3\nPRETTY_NAME="Alpine Linux v3.21"\n'

_WELCOME = (
    "<!DOCTYPE html>\n<html>\n<head>\n<title>Welcome to nginx!</title>\n</head>\n<body>\n"
    "<h1>Welcome to nginx!</h1>\n</body>\n</html>\n"
)


_INBOX_NAMES = {"curl": "curl", "ping": "ping", "cmd": "cmd"}
"""Windows tools whose program is not simply called `<tool>.exe` in the catalogue."""


@functools.cache
def _localhost_files() -> dict[str, bytes]:
    """What agnhost's porter serves TLS with; tests also take them as files that any agnhost has."""
    pair = Authority("localhost").server("localhost", ["localhost", "127.0.0.1"])
    return {"localhost.crt": pair.certificate, "localhost.key": pair.key}


def _tools(root: Directory, names: Iterable[str], folder: str = SYSTEM32) -> None:
    for name in names:
        root.make(f"{folder}/{name}.exe", program_file("windows", _INBOX_NAMES.get(name, f"{name}.exe")))


def _windows_base() -> Directory:
    root = Directory(fold=True)
    drive = Directory(fold=True, acl={**PROTECTED_ACL, "Users": "rd"}, inherit=OPEN_ACL)
    root.put("C:", drive)
    for path in ("Windows", "Program Files", "Program Files (x86)", "ProgramData"):
        drive.put(path, Directory(fold=True, acl=PROTECTED_ACL))
    for path in ("Windows/System32/drivers/etc", "Windows/Temp", "Windows/System32/config", "Users/Public"):
        drive.make(path, Directory(fold=True))
    for user in ("ContainerAdministrator", "ContainerUser"):
        acl = {"Administrators": "rwd", "SYSTEM": "rwd", user: "rwd"}
        drive.make(f"Users/{user}", Directory(fold=True, acl=acl))
        drive.make(f"Users/{user}/AppData/Local/Temp", Directory(fold=True))
    drive.make("Windows/Temp", Directory(fold=True, acl={**PROTECTED_ACL, "Users": "rwd"}))
    drive.make("Windows/System32/drivers/etc/hosts", File(_BIND_HOSTS.encode()))
    drive.make("License.txt", File(b"The license terms of the base image apply.\r\n"))
    for name in ("ntdll.dll", "kernel32.dll", "ntoskrnl.exe", "curl.dll"):
        drive.make(f"Windows/System32/{name}", File(b"MZ"))
    return root


def nanoserver() -> Directory:
    """The smallest Windows base: cmd and a few tools, no PowerShell."""
    root = _windows_base()
    _tools(root, NANOSERVER_TOOLS)
    return root


def servercore() -> Directory:
    """The larger Windows base, with Windows PowerShell 5.1."""
    root = nanoserver()
    _tools(root, SERVERCORE_TOOLS)
    root.make(f"{POWERSHELL_DIRECTORY}/powershell.exe", program_file("windows", "powershell-desktop"))
    return root


def windows_host() -> Directory:
    """What a Windows node has on its own disk."""
    root = servercore()
    _tools(root, HOST_TOOLS)
    for path in ("C:/k", "C:/Program Files/containerd", "C:/var/lib/kubelet", "C:/var/log", "C:/etc/cni/net.d"):
        root.make(path, Directory(fold=True))
    for path in (
        "C:/k/kubelet.exe",
        "C:/Program Files/containerd/containerd.exe",
        "C:/Program Files/containerd/ctr.exe",
        f"{SYSTEM32}/OpenSSH/sshd.exe",
        f"{SYSTEM32}/bindfltapi.dll",
    ):
        root.make(path, File(b"MZ"))
    # As whoever set the node up has put them there; they do something only when a pod runs them.
    for path, program in (
        ("C:/k/kube-proxy.exe", "kube-proxy"),
        ("C:/k/flanneld.exe", "flanneld"),
        ("C:/opt/cni/bin/host-local.exe", "host-local"),
    ):
        root.make(path, program_file("windows", program))
    users = as_directory(as_directory(root.get("C:")).get("Users"))
    for user in ("ContainerAdministrator", "ContainerUser"):
        users.drop(user)
    root.make("C:/Users/Administrator", Directory(fold=True, acl={"Administrators": "rwd", "SYSTEM": "rwd"}))
    return root


def windows_busybox() -> Directory:
    """The e2e busybox image: nanoserver, busybox-w32, PowerShell Core, BIND tools, netcat, curl."""
    root = nanoserver()
    root.make("C:/tmp", Directory(fold=True))
    for applet in (*BUSYBOX_APPLETS_WINDOWS, "busybox"):
        root.make(f"C:/bin/{applet}.exe", program_file("windows", "busybox"))
    root.make("C:/bin/nc.exe", program_file("windows", "nc"))
    root.make("C:/bin/hostname.exe", program_file("windows", "hostname"))
    root.make("C:/dig/dig.exe", program_file("windows", "dig"))
    root.make("C:/dig/nslookup.exe", program_file("windows", "nslookup"))
    root.make("C:/curl/curl.exe", program_file("windows", "curl"))
    _tools(root, ["nltest"])
    for name in ("pwsh.exe", "powershell.exe"):
        root.make(f"C:/Program Files/PowerShell/{name}", program_file("windows", "powershell-core"))
    return root


def windows_agnhost() -> Directory:
    """The agnhost image: `C:\\agnhost` has no `.exe`."""
    root = windows_busybox()
    root.make("C:/agnhost", program_file("windows", "agnhost"))
    root.make("C:/agnhost-2", program_file("windows", "agnhost"))
    root.make("C:/coredns.exe", program_file("windows", "coredns"))
    root.make("C:/uploads", Directory(fold=True))
    for name, content in _localhost_files().items():
        root.make(f"C:/{name}", File(content))
    return root


def windows_pause() -> Directory:
    """The pause image: nanoserver with wincat."""
    root = nanoserver()
    root.make("C:/pause.exe", program_file("windows", "pause"))
    root.make(f"{SYSTEM32}/wincat.exe", program_file("windows", "wincat"))
    return root


def windows_resource_consumer() -> Directory:
    """The resource-consumer image with testlimit."""
    root = nanoserver()
    root.make("C:/consumer.exe", program_file("windows", "consumer"))
    root.make("C:/bin/testlimit.exe", program_file("windows", "testlimit"))
    return root


def windows_nginx() -> Directory:
    """nginx on the e2e busybox image."""
    root = windows_busybox()
    root.make("C:/usr/share/nginx/nginx.exe", program_file("windows", "nginx"))
    root.make("C:/usr/share/nginx/html/index.html", File(_WELCOME.encode()))
    return root


def pictured(root: Directory, name: str) -> Directory:
    """An agnhost image with a picture to serve."""
    top = "C:/" if "C:" in root else ""
    root.make(f"{top}{name}.jpg", File(b"\xff\xd8\xff\xe0 (a picture)"))
    root.make(f"{top}data.json", File(f'{{\n  "image": "{name}.jpg"\n}}\n'.encode()))
    return root


def windows_etcd() -> Directory:
    """The etcd image."""
    root = nanoserver()
    root.make("C:/usr/local/bin/etcd.exe", program_file("windows", "etcd"))
    return root


def windows_hostprocess() -> Directory:
    """The HostProcess base image: nothing at all."""
    root = Directory(fold=True)
    root.put("C:", Directory(fold=True, inherit=OPEN_ACL))
    return root


def windows_agents() -> Directory:
    """The agents that a Windows node runs as HostProcess containers."""
    root = windows_hostprocess()
    root.make("C:/kube-proxy/kube-proxy.exe", program_file("windows", "kube-proxy"))
    root.make("C:/CalicoWindows/calico-node.exe", program_file("windows", "calico-node"))
    return root


def windows_program(base: Callable[[], Directory], path: str, program: str) -> Directory:
    """An image that adds one program to a Windows base."""
    root = base()
    root.make(path, program_file("windows", program))
    return root


def scratch() -> Directory:
    """What the runtime gives even to an empty Linux image."""
    root = Directory()
    root.make("dev/null", Device(lambda owner: b"", lambda owner, data: None, 0o666))
    root.make("dev/zero", Device(lambda owner: bytes(2**20), lambda owner, data: None, 0o666))
    root.make("dev/stdout", Symlink("/proc/self/fd/1"))
    root.make("dev/stderr", Symlink("/proc/self/fd/2"))
    procfs.populate(root)
    return root


def alpine() -> Directory:
    """A Linux base with busybox."""
    root = scratch()
    root.make("bin/busybox", program_file("linux", "busybox"))
    for applet in BUSYBOX_APPLETS_LINUX:
        root.make(f"bin/{applet}", Symlink("/bin/busybox"))
    for path in ("etc", "root", "home", "usr/bin", "usr/local/bin", "var/log", "var/run", "mnt", "opt", "sbin", "run"):
        root.make(path, Directory())
    root.make("tmp", Directory(0o1777))
    root.make("etc/passwd", File(_ACCOUNTS.encode()))
    root.make("etc/group", File(b"root:x:0:root\nbin:x:1:\nnginx:x:101:\nnobody:x:65534:\n"))
    root.make("etc/os-release", File(_OS_RELEASE.encode()))
    root.make("etc/hosts", File(b"127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n"))
    return root


def linux_agnhost() -> Directory:
    """The agnhost image: alpine with network tools."""
    root = alpine()
    root.make("agnhost", program_file("linux", "agnhost"))
    root.make("agnhost-2", program_file("linux", "agnhost"))
    root.make("bin/bash", program_file("linux", "busybox"))
    for tool in ("curl", "dig", "getent", "nslookup", "nc"):
        root.make(f"usr/bin/{tool}", program_file("linux", tool))
    root.make("coredns", program_file("linux", "coredns"))
    root.make("uploads", Directory())
    for name, content in _localhost_files().items():
        root.make(name, File(content))
    return root


def linux_dns_tools() -> Directory:
    """An image to look names up from: a shell and BIND's tools."""
    root = alpine()
    root.make("bin/bash", program_file("linux", "busybox"))
    for tool in ("dig", "getent", "nslookup"):
        root.make(f"usr/bin/{tool}", program_file("linux", tool))
    return root


def linux_program(path: str, program: str, *, base: str = "scratch") -> Directory:
    """An image that is one program."""
    root = alpine() if base == "alpine" else scratch()
    root.make(path.lstrip("/"), program_file("linux", program))
    return root


def linux_nonewprivs() -> Directory:
    """An image whose program has the set-user-ID bit, and tells as whom it runs."""
    root = alpine()
    root.make("usr/local/bin/nnp", program_file("linux", "nnp", 0o6755))
    return root


def linux_nginx() -> Directory:
    """nginx with its welcome page."""
    root = linux_program("/usr/sbin/nginx", "nginx", base="alpine")
    root.make("usr/share/nginx/html/index.html", File(_WELCOME.encode()))
    root.make("docker-entrypoint.sh", File(b'#!/bin/sh\nexec "$@"\n', 0o755))
    return root


@functools.cache
def tree(name: str) -> Directory:
    """A frozen tree by name, built once and shared by all containers."""
    return BUILDERS[name]().freeze()


BUILDERS: dict[str, Callable[[], Directory]] = {
    "nanoserver": nanoserver,
    "servercore": servercore,
    "windows-busybox": windows_busybox,
    "windows-agnhost": windows_agnhost,
    "windows-pause": windows_pause,
    "windows-resource-consumer": windows_resource_consumer,
    "windows-etcd": windows_etcd,
    "windows-kitten": lambda: pictured(windows_agnhost(), "kitten"),
    "windows-nautilus": lambda: pictured(windows_agnhost(), "nautilus"),
    "windows-nginx": windows_nginx,
    "windows-hostprocess": windows_hostprocess,
    "windows-agents": windows_agents,
    "windows-host": windows_host,
    "windows-aspnetapp": lambda: windows_program(nanoserver, "C:/app/aspnetapp.exe", "aspnetapp"),
    "windows-iis": lambda: windows_program(servercore, "C:/ServiceMonitor.exe", "servicemonitor"),
    "windows-nats": lambda: windows_program(servercore, "C:/nats-server.exe", "nats-server"),
    "windows-fluent-bit": lambda: windows_program(servercore, "C:/fluent-bit/bin/fluent-bit.exe", "fluent-bit"),
    "windows-exporter": lambda: windows_program(windows_hostprocess, "C:/windows_exporter.exe", "windows_exporter"),
    "alpine": alpine,
    "linux-agnhost": linux_agnhost,
    "linux-dns-tools": linux_dns_tools,
    "linux-pause": lambda: linux_program("/pause", "pause"),
    "linux-nginx": linux_nginx,
    "linux-nonewprivs": linux_nonewprivs,
    "linux-coredns": lambda: linux_program("/coredns", "coredns"),
    "linux-kitten": lambda: pictured(linux_agnhost(), "kitten"),
    "linux-nautilus": lambda: pictured(linux_agnhost(), "nautilus"),
    "linux-etcd": lambda: linux_program("/usr/local/bin/etcd", "etcd"),
    "linux-sample-apiserver": lambda: linux_program("/sample-apiserver", "sample-apiserver", base="alpine"),
    "linux-resource-consumer": lambda: linux_program("/consumer", "consumer", base="alpine"),
    "linux-kube-proxy": lambda: linux_program("/usr/local/bin/kube-proxy", "kube-proxy"),
    "linux-calico-node": lambda: linux_program("/bin/calico-node", "calico-node", base="alpine"),
}
