"""Applets that ask the system, wait, or run something else."""

from __future__ import annotations

import asyncio
import re
import time

from winready_sandbox.clock import wall_time
from winready_sandbox.machine.errors import ExecError
from winready_sandbox.machine.machine import LINUX_KERNEL
from winready_sandbox.programs.arithmetic import ArithmeticFailure, evaluate
from winready_sandbox.programs.busybox import printing
from winready_sandbox.programs.busybox.tool import Applet, Tool, duration
from winready_sandbox.programs.sh.conditions import Condition, TestFailure


async def echo(tool: Tool) -> int:
    """Print arguments."""
    tool.out(printing.echo(tool.arguments))
    return 0


async def printf(tool: Tool) -> int:
    """Print with a format."""
    tool.out(printing.printf(tool.arguments))
    return 0


async def true(tool: Tool) -> int:
    """Succeed."""
    return 0


async def false(tool: Tool) -> int:
    """Fail."""
    return 1


async def test(tool: Tool) -> int:
    """Evaluate a condition."""
    words = tool.arguments[:-1] if tool.name == "[" and tool.arguments[-1:] == ["]"] else tool.arguments
    try:
        return 0 if Condition(words, tool.files, tool.cwd, tool.who, double=False).evaluate() else 1
    except TestFailure as error:
        tool.fail(str(error))
        return 2


async def sleep(tool: Tool) -> int:
    """Wait for some cluster seconds."""
    try:
        total = sum(duration(word) for word in tool.arguments) if tool.arguments[:1] != ["infinity"] else 10**9
    except ValueError as error:
        tool.usage(f"invalid number '{error}'")
        return 1
    if not tool.arguments:
        tool.usage("missing operand")
    await tool.process.container.clock.sleep(total)
    return 0


async def usleep(tool: Tool) -> int:
    """Wait for microseconds."""
    await tool.process.container.clock.sleep(int(tool.arguments[0]) / 1e6 if tool.arguments else 0)
    return 0


async def env(tool: Tool) -> int:
    """Show the environment, or run a command in a changed one."""
    arguments = list(tool.arguments)
    values = dict(tool.process.env)
    while arguments:
        if arguments[0] in ("-i", "-"):
            values.clear()
        elif arguments[0] == "-u" and len(arguments) > 1:
            arguments.pop(0)
            values.pop(arguments[0], None)
        elif re.match(r"[A-Za-z_]\w*=", arguments[0]):
            name, _, value = arguments[0].partition("=")
            values[name] = value
        else:
            break
        arguments.pop(0)
    if not arguments:
        tool.out("".join(f"{name}={value}\n" for name, value in values.items()))
        return 0
    try:
        return await tool.process.spawn(arguments, env=values).finish()
    except ExecError:
        tool.fail(f"can't execute '{arguments[0]}': No such file or directory")
        return 127


async def printenv(tool: Tool) -> int:
    """Show variables."""
    if not tool.arguments:
        return await env(tool)
    missing = False
    for name in tool.arguments:
        value = tool.process.env.get(name)
        missing = missing or value is None
        tool.out("" if value is None else f"{value}\n")
    return int(missing)


async def whoami(tool: Tool) -> int:
    """The user's name."""
    name = tool.who.name if tool.who else "root"
    if not name and tool.who:
        tool.fail(f"unknown uid {tool.who.uid}")
        return 1
    tool.out(f"{name}\n")
    return 0


async def id_(tool: Tool) -> int:
    """The user's numbers."""
    tool.options("ugnGr")
    uid, gid = (tool.who.uid, tool.who.gid) if tool.who else (0, 0)
    name = tool.who.name if tool.who else "root"
    if "u" in tool.flags:
        if "n" in tool.flags and not name:
            tool.fail(f"unknown ID {uid}")
            return 1
        tool.out(f"{name if 'n' in tool.flags else uid}\n")
    elif "g" in tool.flags or "G" in tool.flags:
        tool.out(f"{'root' if 'n' in tool.flags and gid == 0 else gid}\n")
    else:
        group = "(root)" if gid == 0 else ""
        tool.out(f"uid={uid}{f'({name})' if name else ''} gid={gid}{group}\n")
    return 0


async def hostname(tool: Tool) -> int:
    """The computer's name."""
    operands = tool.options("fsid")
    name = tool.process.container.hostname
    if operands:
        tool.fail("sethostname: Operation not permitted")
        return 1
    if "i" in tool.flags and tool.process.container.endpoint:
        name = " ".join(tool.process.container.endpoint.addresses)
    elif "f" in tool.flags and tool.files.exists("/etc/hosts"):
        for line in tool.files.read("/etc/hosts").decode().splitlines():
            words = line.partition("#")[0].split()
            if name in words[1:]:
                name = words[1]
    elif "s" in tool.flags:
        name = name.partition(".")[0]
    tool.out(f"{name}\n")
    return 0


async def uname(tool: Tool) -> int:
    """Which system this is."""
    tool.options("asnrvmpio")
    container = tool.process.container
    if tool.process.windows:
        build = container.build
        values = {
            "s": "Windows_NT",
            "n": container.hostname,
            "r": "10.0",
            "v": build.number,
            "m": "x86_64",
            "o": "MS/Windows",
        }
    else:
        version = "#1 SMP PREEMPT_DYNAMIC"
        values = {"s": "Linux", "n": container.hostname, "r": LINUX_KERNEL, "v": version, "m": "x86_64", "o": "Linux"}
    chosen = "snrvmo" if "a" in tool.flags else [letter for letter in "snrvmo" if letter in tool.flags] or "s"
    tool.out(" ".join(values[letter] for letter in chosen) + "\n")
    return 0


async def date(tool: Tool) -> int:
    """The time."""
    operands = tool.options("ud:I:Rr:s:")
    now = wall_time()
    if tool.flags.get("d", "").startswith("@"):
        now = float(tool.flags["d"][1:])
    moment = time.gmtime(now)
    form = operands[0][1:] if operands and operands[0].startswith("+") else "%a %b %e %H:%M:%S UTC %Y"
    form = form.replace("%N", f"{int(now % 1 * 1e9):09d}").replace("%s", str(int(now)))
    tool.out(time.strftime(form, moment) + "\n")
    return 0


async def ps(tool: Tool) -> int:
    """Processes of the container."""
    tool.out("PID   USER     TIME  COMMAND\n")
    for process in tool.process.container.processes.values():
        user = process.identity.name if process.identity else "root"
        tool.out(f"{process.pid:5d} {user:<8} {'0:00':>5} {' '.join(process.argv)}\n")
    return 0


async def pidof(tool: Tool) -> int:
    """Numbers of processes by name."""
    found = [
        str(process.pid)
        for process in tool.process.container.processes.values()
        if process.argv[0].replace("\\", "/").rpartition("/")[2].removesuffix(".exe") in tool.arguments
    ]
    tool.out(f"{' '.join(found)}\n" if found else "")
    return 0 if found else 1


async def kill(tool: Tool) -> int:
    """Stop processes."""
    signal = "TERM"
    for word in tool.arguments:
        if word.startswith("-"):
            signal = word[1:].removeprefix("SIG")
            continue
        process = tool.process.container.processes.get(int(word)) if word.isdigit() else None
        if process is None:
            tool.fail(f"can't kill pid {word}: No such process")
        elif signal in ("9", "KILL") and process.pid != 1:
            await process.kill()
        elif signal in ("15", "TERM"):
            process.signal_stop()
    return tool.code


async def timeout(tool: Tool) -> int:
    """Run a command, but not for longer."""
    arguments = list(tool.arguments)
    while arguments and arguments[0].startswith("-"):
        flag = arguments.pop(0)
        if flag in ("-t", "-s", "-k") and flag != "-t":
            arguments.pop(0)
    limit = duration(arguments.pop(0))
    try:
        child = tool.process.spawn(arguments)
    except ExecError:
        tool.fail(f"can't execute '{arguments[0]}': No such file or directory")
        return 127
    waiting = asyncio.ensure_future(child.wait())
    done, _ = await asyncio.wait([waiting], timeout=tool.process.container.clock.wall(limit))
    if done:
        return waiting.result()
    await child.kill(143)
    await waiting
    return 143


async def nproc(tool: Tool) -> int:
    """How many processors there are."""
    tool.out(f"{tool.process.container.machine.cores}\n")
    return 0


async def uptime(tool: Tool) -> int:
    """How long the machine is up."""
    up = int(wall_time() - tool.process.container.machine.booted_at)
    tool.out(f" {time.strftime('%H:%M:%S')} up {up // 60} min,  0 users,  load average: 0.10, 0.12, 0.09\n")
    return 0


async def free(tool: Tool) -> int:
    """Memory of the machine."""
    machine = tool.process.container.machine
    total, used = machine.memory_bytes // 1024, machine.memory.used // 1024
    tool.out("              total        used        free      shared  buff/cache   available\n")
    tool.out(f"Mem:     {total:10d}  {used:10d}  {total - used:10d}           0           0  {total - used:10d}\n")
    return 0


async def df(tool: Tool) -> int:
    """Space on file systems."""
    tool.out("Filesystem           1K-blocks      Used Available Use% Mounted on\n")
    tool.out(f"{'overlay':<20} 102400000  20480000  81920000  20% {'C:/' if tool.process.windows else '/'}\n")
    return 0


async def mount(tool: Tool) -> int:
    """What is mounted."""
    if tool.arguments:
        tool.fail("permission denied (are you root?)")
        return 1
    tool.out("overlay on / type overlay (rw,relatime)\n")
    for each in tool.files.mounts:
        tool.out(f"/dev/sda1 on /{'/'.join(each.parts)} type ext4 ({'ro' if each.read_only else 'rw'},relatime)\n")
    return 0


async def ip(tool: Tool) -> int:
    """Addresses and routes."""
    words = [word for word in tool.arguments if not word.startswith("-")]
    endpoint = tool.process.container.endpoint
    addresses = endpoint.addresses if endpoint else []
    subject = words[0] if words else ""
    if subject and "route".startswith(subject):
        tool.out(
            f"default via 169.254.1.1 dev eth0 \n169.254.1.1 dev eth0 scope link  src {addresses[0]} \n"
            if addresses
            else ""
        )
        return 0
    if not subject or not ("address".startswith(subject) or "link".startswith(subject)):
        tool.fail("either 'address', 'link' or 'route' is expected")
        return 1
    if len(words) > 1 and words[1] in ("add", "del", "set"):
        tool.process.err("ip: RTNETLINK answers: Operation not permitted\n")
        return 1
    tool.out("1: lo: <LOOPBACK,UP,LOWER_UP> mtu 65536 qdisc noqueue state UNKNOWN qlen 1000\n")
    tool.out("    inet 127.0.0.1/8 scope host lo\n")
    tool.out("2: eth0@if3: <BROADCAST,MULTICAST,UP,LOWER_UP,M-DOWN> mtu 1450 qdisc noqueue state UP\n")
    for address in addresses:
        tool.out(
            f"    inet6 {address}/128 scope global\n"
            if ":" in address
            else f"    inet {address}/32 scope global eth0\n"
        )
    return 0


async def ifconfig(tool: Tool) -> int:
    """Network interfaces."""
    endpoint = tool.process.container.endpoint
    tool.out("eth0      Link encap:Ethernet  HWaddr 0A:58:0A:F4:01:05\n")
    for address in endpoint.addresses if endpoint else []:
        tool.out(f"          inet{'6' if ':' in address else ''} addr:{address}\n")
    tool.out("          UP BROADCAST RUNNING MULTICAST  MTU:1450  Metric:1\n\n")
    tool.out("lo        Link encap:Local Loopback\n          inet addr:127.0.0.1  Mask:255.0.0.0\n\n")
    return 0


async def which(tool: Tool) -> int:
    """Where programs are."""
    missing = False
    for name in tool.arguments:
        try:
            container = tool.process.container
            path = container.find_program(name, tool.cwd, tool.process.env, tool.who)
            tool.out(f"{path.replace(chr(92), '/')}\n")
        except ExecError:
            missing = True
    return int(missing)


async def basename(tool: Tool) -> int:
    """The last part of a path."""
    if not tool.arguments:
        tool.usage("missing operand")
    name = tool.arguments[0].rstrip("/").rpartition("/")[2] or "/"
    suffix = tool.arguments[1] if len(tool.arguments) > 1 else ""
    tool.out((name.removesuffix(suffix) if suffix != name else name) + "\n")
    return 0


async def dirname(tool: Tool) -> int:
    """All but the last part of a path."""
    path = tool.arguments[0] if tool.arguments else ""
    folder, slash, _ = path.rstrip("/").rpartition("/")
    tool.out(f"{folder or ('/' if slash else '.')}\n")
    return 0


async def pwd(tool: Tool) -> int:
    """The current directory."""
    tool.out(tool.cwd.replace("\\", "/") + "\n")
    return 0


async def expr(tool: Tool) -> int:
    """Arithmetic and comparison of arguments."""
    words = tool.arguments
    if len(words) == 3 and words[1] in ("=", "!="):
        result = int((words[0] == words[2]) == (words[1] == "="))
    else:
        try:
            result = evaluate(" ".join(words), lambda name: "0")
        except ArithmeticFailure:
            tool.fail("syntax error")
            return 2
    tool.out(f"{result}\n")
    return 0 if result else 1


APPLETS: dict[str, Applet] = {
    "echo": echo,
    "printf": printf,
    "true": true,
    "sync": true,
    "false": false,
    "test": test,
    "[": test,
    "sleep": sleep,
    "usleep": usleep,
    "env": env,
    "printenv": printenv,
    "whoami": whoami,
    "id": id_,
    "hostname": hostname,
    "uname": uname,
    "date": date,
    "ps": ps,
    "pidof": pidof,
    "pgrep": pidof,
    "kill": kill,
    "timeout": timeout,
    "nproc": nproc,
    "uptime": uptime,
    "free": free,
    "df": df,
    "mount": mount,
    "ip": ip,
    "ifconfig": ifconfig,
    "which": which,
    "basename": basename,
    "dirname": dirname,
    "pwd": pwd,
    "expr": expr,
}
