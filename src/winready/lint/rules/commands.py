"""Rules about what containers run."""

from __future__ import annotations

import re
from collections.abc import Iterator

from winready.lint.context import Facts
from winready.lint.objects import Container, Pod
from winready.lint.rules import Hit, pod_check
from winready.lint.target import Target

_LINUX_PATH = re.compile(r"(?:/usr)?(?:/local)?/s?bin/")
_LINUX_TOOL = re.compile(
    r"(?:sh|bash|ash|dash|zsh|cat|test|sleep|wget|nc|grep|sed|awk|chmod|chown|kill|pkill|true|env)"
)
_NOT_ON_NANO = re.compile(r"(?i)(?:^|[\s\\/&|])(?:powershell|wmic)(?:\.exe)?(?:\s|$)")
_POWERSHELL = re.compile(r"(?i)(?:^|[\s\\/])(?:powershell|pwsh)(?:\.exe)?(?:\s|$)")
_REPLACED = re.compile(r"\$\$|\$\([A-Za-z_][A-Za-z0-9_]*\)")
_PING = re.compile(r"(?i)(?:^|[\s\\])ping(?:\.exe)?(?:\s|$)")


def _brings_linux_tools(container: Container) -> bool:
    return "e2e-test-images/" in container.image


@pod_check("cmd-linux-shell")
def linux_shell(pod: Pod, target: Target, facts: Facts) -> Iterator[Hit]:
    for container in pod.containers:
        if _brings_linux_tools(container):
            continue
        for path, command in container.commands():
            program = command[0]
            starts_program = path[-1] == "command"
            if _LINUX_PATH.match(program) or (starts_program and _LINUX_TOOL.fullmatch(program)):
                yield Hit((*path, 0), f"{program} is not in Windows base images")


@pod_check("img-nanoserver-powershell")
def nanoserver_powershell(pod: Pod, target: Target, facts: Facts) -> Iterator[Hit]:
    if pod.host_process:
        return
    for container in pod.containers:
        if "nanoserver" not in container.image.lower():
            continue
        for path, command in container.commands():
            for index, part in enumerate(command):
                if match := _NOT_ON_NANO.search(part):
                    yield Hit((*path, index), f"{container.image} has no {match[0].strip()}")
                    break


@pod_check("cmd-powershell-dollar")
def powershell_dollar(pod: Pod, target: Target, facts: Facts) -> Iterator[Hit]:
    for container in pod.containers:
        commands = [(path, command) for path, command in container.commands() if path[-1] in ("command", "args")]
        if not any(_POWERSHELL.search(part) for _, command in commands for part in command):
            continue
        for path, command in commands:
            for index, part in enumerate(command):
                if match := _REPLACED.search(part):
                    yield Hit((*path, index), f"Kubernetes replaces {match[0]} before PowerShell sees it")


@pod_check("cmd-argument-quoting")
def argument_quoting(pod: Pod, target: Target, facts: Facts) -> Iterator[Hit]:
    for container in pod.containers:
        for path, command in container.commands():
            if path[-1] in ("command", "args") and len(path) == len(container.path) + 1:
                for index, part in enumerate(command):
                    if '"' in part:
                        yield Hit((*path, index))
                        break


@pod_check("net-icmp")
def icmp(pod: Pod, target: Target, facts: Facts) -> Iterator[Hit]:
    if pod.host_process:
        return
    for container in pod.containers:
        for path, command in container.commands():
            for index, part in enumerate(command):
                if _PING.search(part):
                    yield Hit((*path, index))
                    break
