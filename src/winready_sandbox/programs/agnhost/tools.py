"""agnhost's small tools: what a container sees of its names, arguments, files and resources."""

from __future__ import annotations

import asyncio
import contextlib

from winready_sandbox import quantity
from winready_sandbox.machine.errors import FileError
from winready_sandbox.machine.process import Process
from winready_sandbox.machine.tree import Directory, Symlink
from winready_sandbox.programs.agnhost import cobra, golang
from winready_sandbox.programs.agnhost.golang import klog
from winready_sandbox.programs.net import HOSTS_FILE, endpoint_of

NEW_FILE = b"mount-tester new file\n"


async def pause(process: Process, _flags: cobra.Flags) -> int:
    """Do nothing until told to stop; SIGTERM ends it with 2."""
    process.out("Paused\n")
    await process.stop_requested.wait()
    return 2


async def etc_hosts(process: Process, _flags: cobra.Flags) -> int:
    """Print the hosts file."""
    path = HOSTS_FILE[process.container.os]
    try:
        process.out(process.files.read(path, who=process.identity).decode("utf-8", "replace") + "\n")
    except FileError as error:
        process.err(f"panic: {golang.open_error(process, path, error)}\n")
        return 2
    return 0


def _resolv_conf(process: Process, keyword: str) -> list[str] | None:
    try:
        lines = process.files.read("/etc/resolv.conf", who=process.identity).decode("utf-8", "replace").splitlines()
    except FileError:
        lines = endpoint_of(process).dns.resolv_conf().splitlines()
    return next((line.split(" ")[1:] for line in lines if line.startswith(keyword)), None)


async def dns_suffix(process: Process, _flags: cobra.Flags) -> int:
    """Print the search list: resolv.conf on Linux, the interfaces' settings on Windows."""
    if process.windows:
        process.out(",".join(endpoint_of(process).dns.searches) + "\n")
        return 0
    return _print_or_panic(process, _resolv_conf(process, "search"))


async def dns_server_list(process: Process, _flags: cobra.Flags) -> int:
    """Print the nameservers; on Linux only the first line counts."""
    if process.windows:
        process.out(",".join(endpoint_of(process).dns.nameservers) + "\n")
        return 0
    return _print_or_panic(process, _resolv_conf(process, "nameserver"))


def _print_or_panic(process: Process, values: list[str] | None) -> int:
    if values is None:
        process.err("panic: Could not find DNS search list!\n\ngoroutine 1 [running]:\n")
        return 2
    process.out(",".join(values) + "\n")
    return 0


STRESS_FLAGS: cobra.Known = {
    "mem-total": ("string", "0"),
    "mem-alloc-size": ("string", "4Ki"),
    "mem-alloc-sleep": ("duration", 0.001),
    "cpus": ("int", 0),
}


async def stress(process: Process, flags: cobra.Flags) -> int:
    """Use memory and processors; fact 1.2: it opens /dev/zero first, so it always dies on Windows."""
    total, step = _quantity(flags.text("mem-total")), _quantity(flags.text("mem-alloc-size"))
    shown = f'"{flags.text("mem-total")}" memory, in "{flags.text("mem-alloc-size")}" chunks'
    pause_between = flags.seconds("mem-alloc-sleep")
    text = f"Allocating {shown}, with a {pause_between * 1000:g}ms sleep between allocations"
    klog(process, text, source="stress.go:67")
    if not process.files.exists("/dev/zero"):
        klog(process, "failed to open /dev/zero", level="F", source="stress.go:77")
        return 255
    for _ in range(flags.number("cpus")):
        klog(process, "Spawning a thread to consume CPU", source="stress.go:80")
    process.cpu_demand(process.cores + flags.number("cpus"))
    # Steps below a megabyte are taken together: the same growth over time at a fraction of the wake-ups.
    batch = max(1, 2**20 // step) if step else 1
    taken = 0
    while step and taken + step <= total:
        count = min(batch, (total - taken) // step)
        process.allocate(count * step)
        taken += count * step
        await process.container.clock.sleep(count * pause_between)
    klog(process, f'Allocated "{flags.text("mem-total")}" memory', source="stress.go:70")
    await asyncio.Event().wait()
    return 0


def _quantity(text: str) -> int:
    with contextlib.suppress(ValueError):
        if (amount := quantity.parse(text)) >= 0:
            return int(amount)
    raise cobra.UsageError(f"cannot parse '{text}': quantities must match the regular expression")


MOUNTTEST_FLAGS: cobra.Known = {
    **dict.fromkeys(("fs_type", "file_mode", "file_perm"), ("string", "")),
    **dict.fromkeys(("new_file_0644", "new_file_0666", "new_file_0777"), ("string", "")),
    **dict.fromkeys(("file_content", "file_content_in_loop"), ("string", "")),
    "retry_time": ("int", 180),
    "break_on_expected_content": ("bool", True),
}
DISK = "61267"
"""What statfs calls ext4."""


async def mounttest(process: Process, flags: cobra.Flags) -> int:
    """Create files and tell about them, in agnhost's fixed order."""
    tester = _MountTest(process)
    good = [tester.fs_type(flags.text("fs_type"))]
    good += [tester.new_file(flags.text(f"new_file_{mode:04o}"), mode) for mode in (0o644, 0o666, 0o777)]
    good += [tester.mode(flags.text("file_mode"), "mode"), tester.mode(flags.text("file_perm"), "perms")]
    good.append(tester.content(flags.text("file_content")))
    ends = flags.on("break_on_expected_content")
    good.append(await tester.content_in_loop(flags.text("file_content_in_loop"), flags.number("retry_time"), ends))
    return 0 if all(good) else 1


class _MountTest:
    """The single tests of mounttest; each tells whether it worked, and an empty path is nothing to do."""

    def __init__(self, process: Process) -> None:
        self._process = process

    def fs_type(self, path: str) -> bool:
        if not path or self._process.windows:
            return True
        if not self._process.files.exists(path):
            self._process.out(f'error from statfs("{path}"): no such file or directory\n')
            return False
        parts = self._process.files.find(path).parts
        kept = any(mount.memory and parts[: len(mount.parts)] == mount.parts for mount in self._process.files.mounts)
        kind = "tmpfs" if kept else DISK
        self._process.out(f'mount type of "{path}": {kind}\n')
        return True

    def new_file(self, path: str, mode: int) -> bool:
        if not path:
            return True
        files, who = self._process.files, self._process.identity
        try:
            fresh = not files.exists(path)
            files.write(path, NEW_FILE, who=who)
            if fresh and not self._process.windows:
                files.change(path).mode = mode
        except FileError as error:
            text = golang.open_error(self._process, path, error)
            self._process.out(f'error writing new file "{path}": {text}\n')
            return False
        return self.content(path)

    def content(self, path: str) -> bool:
        if not path:
            return True
        try:
            text = self._process.files.read(path, who=self._process.identity).decode("utf-8", "replace")
        except FileError as error:
            reason = golang.open_error(self._process, path, error)
            self._process.out(f'error reading file content for "{path}": {reason}\n')
            return False
        self._process.out(f'content of file "{path}": {text}\n')
        return True

    def mode(self, path: str, what: str) -> bool:
        if not path:
            return True
        try:
            node = self._process.files.node(path, who=self._process.identity)
        except FileError as error:
            self._process.out(f'error from Stat("{path}"): {golang.open_error(self._process, path, error)}\n')
            return False
        bits = "".join(letter if node.mode >> (8 - i) & 1 else "-" for i, letter in enumerate("rwxrwxrwx"))
        kind = "d" if isinstance(node, Directory) else "L" if isinstance(node, Symlink) else ""
        kind += "".join(letter for bit, letter in ((0o2000, "g"), (0o1000, "t")) if node.mode & bit)
        self._process.out(f'{what} of file "{path}": {(kind if what == "mode" else "") or "-"}{bits}\n')
        return True

    async def content_in_loop(self, path: str, seconds: int, ends: bool) -> bool:
        if not path:
            return True
        clock = self._process.container.clock
        deadline, good = clock.now() + seconds, True
        while clock.now() < deadline:
            try:
                data = self._process.files.read(path, who=self._process.identity)
            except FileError as error:
                reason = golang.open_error(self._process, path, error)
                self._process.out(f"Error reading file {path}: {reason}, retrying\n")
                good = False
            else:
                good = True
                self._process.out(f'content of file "{path}": {data.decode("utf-8", "replace")}\n')
                if ends and data == NEW_FILE:
                    break
                if ends:
                    self._process.out(f"Unexpected content. Expected: {NEW_FILE.decode()}. Retrying\n")
            await clock.sleep(2)
        return good
