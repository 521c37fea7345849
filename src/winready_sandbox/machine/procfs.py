"""/proc and /sys of Linux containers, answered from the container that asks."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from winready_sandbox.clock import wall_time
from winready_sandbox.machine.tree import Device, Directory, Symlink

if TYPE_CHECKING:
    from winready_sandbox.machine.container import Container


def _cpu_max(container: Container) -> str:
    limit = container.cpu_limit
    return f"{max(int(limit * 100000), 1000)} 100000\n" if limit is not None else "max 100000\n"


def _cpu_weight(container: Container) -> str:
    """The request as shares of a thousand and more, and these on the scale of cgroups v2."""
    shares = max(int(container.cpu_request * 1024), 2)
    return f"{1 + (shares - 2) * 9999 // 262142}\n"


def _cpu_stat(container: Container) -> str:
    return f"usage_usec {container.cpu.core_nanoseconds() // 1000}\nuser_usec 0\nsystem_usec 0\n"


def _meminfo(container: Container) -> str:
    total = container.machine.memory_bytes // 1024
    free = (container.machine.memory_bytes - container.machine.memory.used) // 1024
    return f"MemTotal:       {total:8d} kB\nMemFree:        {free:8d} kB\nMemAvailable:   {free:8d} kB\n"


def _cpuinfo(container: Container) -> str:
    return "".join(f"processor\t: {index}\nmodel name\t: Simulated\n\n" for index in range(container.machine.cores))


def _mounts(container: Container) -> str:
    lines = ["overlay / overlay rw,relatime 0 0", "proc /proc proc rw,nosuid,nodev,noexec,relatime 0 0"]
    lines.append("cgroup /sys/fs/cgroup cgroup2 ro,nosuid,nodev,noexec,relatime 0 0")
    for mount in container.files.mounts:
        source, kind = ("tmpfs", "tmpfs") if mount.memory else ("/dev/sda1", "ext4")
        lines.append(f"{source} /{'/'.join(mount.parts)} {kind} {'ro' if mount.read_only else 'rw'},relatime 0 0")
    return "\n".join(lines) + "\n"


def _status(container: Container) -> str:
    cores = container.machine.cores
    return (
        f"Name:\tsh\nState:\tR (running)\nPid:\t1\nUid:\t{container.identity.uid}\nCpus_allowed_list:\t0-{cores - 1}\n"
    )


def _uptime(container: Container) -> str:
    up = wall_time() - container.machine.booted_at
    return f"{up:.2f} {up * container.machine.cores:.2f}\n"


_FILES: dict[str, Callable[[Container], str]] = {
    "proc/uptime": _uptime,
    "proc/meminfo": _meminfo,
    "proc/cpuinfo": _cpuinfo,
    "proc/mounts": _mounts,
    "proc/version": lambda container: f"Linux version {container.machine.kernel_version} (gcc)\n",
    "proc/sys/kernel/hostname": lambda container: f"{container.hostname}\n",
    "proc/sys/kernel/shm_rmid_forced": lambda container: "0\n",
    "proc/sys/net/ipv4/ip_local_port_range": lambda container: "32768\t60999\n",
    "proc/sys/kernel/random/boot_id": lambda container: f"{container.machine.boot_id}\n",
    "proc/1/comm": lambda container: f"{(container.main.argv[0] if container.main else '').rpartition('/')[2]}\n",
    "proc/1/status": _status,
    "proc/1/cgroup": lambda container: "0::/\n",
    "proc/1/oom_score_adj": lambda container: "0\n",
    "sys/fs/cgroup/cpu.max": _cpu_max,
    "sys/fs/cgroup/cpu.weight": _cpu_weight,
    "sys/fs/cgroup/cpu.stat": _cpu_stat,
    "sys/fs/cgroup/memory.max": lambda container: f"{container.memory.limit or 'max'}\n",
    "sys/fs/cgroup/memory.current": lambda container: f"{container.memory.used}\n",
    "sys/fs/cgroup/memory.peak": lambda container: f"{container.memory.peak}\n",
}


def _to_stdout(container: Container, data: bytes) -> None:
    if container.main is not None:
        container.main.stdout.write(data)


def _to_stderr(container: Container, data: bytes) -> None:
    if container.main is not None:
        container.main.stderr.write(data)


def _answer(function: Callable[[Container], str]) -> Callable[[Container], bytes]:
    return lambda container: function(container).encode()


def populate(root: Directory) -> None:
    """Add /proc and /sys to a tree."""
    for path, function in _FILES.items():
        root.make(path, Device(_answer(function)))
    root.make("proc/1/fd/1", Device(write=_to_stdout, mode=0o222))
    root.make("proc/1/fd/2", Device(write=_to_stderr, mode=0o222))
    root.make("proc/self", Symlink("/proc/1"))
