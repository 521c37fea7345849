"""Command lines that winready's checks run in Windows containers, and who judges each.

A line is known by a shape: a regular expression over its words, joined by blanks. Either tests run such lines under
wine and hold the answer against the model's, or wine lacks something, and the reason stands here.
"""

from __future__ import annotations

import ast
import base64
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from winready.proof.choosing import choose_sound
from winready.proof.healthy.table import PLAIN
from winready.proof.trial import hold_trial
from winready_sandbox.machine.container import Container

PATH = r"(?:C:|%CONTAINER_SANDBOX_MOUNT_POINT%)\\[\w.\\%-]+"
SHARE = r"\\\\[\w.-]+\\[\w.\\-]+"
CURL = r"curl\.exe -g -s -S .*"
A_SECOND = r"& ping -n 2 127\.0\.0\.1 >nul 2>nul"
POWERSHELL = r"powershell\.exe -NoProfile -NonInteractive "

JUDGED = {
    r"/agnhost connect --timeout=\d+s \S+:\d+": "test_connect",
    r"/agnhost dns-server-list": "test_network_settings",
    r"/agnhost dns-suffix": "test_network_settings",
    r"/agnhost etc-hosts": "test_network_settings",
    r"/agnhost netexec(?: --http-port=\d+ --udp-port=\d+)?": "test_netexec",
    r"/agnhost pause": "test_pause",
    r"/agnhost inclusterclient --poll-interval=\d+": "test_a_client_in_a_pod_is_understood",
    rf"cmd /c mkdir {PATH} && copy {PATH} {PATH} && {PATH} porter": "test_porter",
    rf"cmd /c \(for /l %i in \(1,1,\d+\) do @echo %i [\w -]+\)>{PATH}": "test_files",
    rf"cmd /c echo [\w -]+>>?{PATH}": "test_files",
    rf"cmd /c (?:&?echo\.&echo #winready {PATH}&type {PATH})+": "test_files",
    rf"cmd /c type {PATH}(?: & type {PATH})*": "test_files",
    rf"cmd /c dir /b {PATH}": "test_files",
    rf"cmd /c dir {PATH}": "test_files",
    rf"cmd /c del /q {PATH}": "test_files",
    rf"cmd /c mkdir {PATH}": "test_files",
    rf"cmd /c rmdir(?: /s /q)? {PATH}": "test_files",
    rf"cmd /c if exist {PATH} exit 1": "test_files",
    r"cmd /S /C echo %USERNAME%&C:\\Windows\\System32\\whoami\.exe": "test_who_am_i",
    r"C:\\Windows\\System32\\whoami\.exe": "test_who_am_i",
    r"cmd /c echo %\w+%": "test_who_am_i",
    r"cmd /c klist get krbtgt": "test_tickets",
    POWERSHELL + r"-Command \(Get-FileHash .*": "test_digests",
    POWERSHELL + r"-Command \$all = @\(\).*": "test_memory",
    POWERSHELL + r"-Command while \(!\(Test-Path .*": "test_burning_until_told_to_stop",
    POWERSHELL + r"-Command Write-Output \('started as .*": "test_who_was_started",
}
"""Shape: the test that runs such lines."""

LACKING = {
    r"cmd /c ver": "wine names itself without the words '[Version ...]' that Windows prints",
    CURL: "there is no curl.exe; the addresses that it is given are asked by another client, in test_netexec",
    r"dig .*": "no program of that name for Windows comes from a Go module",
    POWERSHELL + r"-Command (?:Start-Sleep -Seconds \d+|while \(\$true\) \{\})": "it is there to stay; only parsed",
    POWERSHELL + r"-ExecutionPolicy Bypass -EncodedCommand \S+": "it is about a node; only parsed",
    r"cmd /c net localgroup \S+ /add": "wine's net.exe knows no groups",
    r"netstat\.exe -ano": "wine's netstat.exe shows no connection",
    r"nltest /(?:parentdomain|query)": "no domain",
    rf"cmd /c (?:type|dir|dir /b|del /q) {SHARE}": "no SMB",
    rf"cmd /c \(for /l %i in \(1,1,\d+\) do @echo %i [\w -]+\)>{SHARE}": "no SMB",
    rf"cmd /c for /l %i in \(1,1,\d+\) do @\(\(echo %i [\w -]+\)>{SHARE} && type {SHARE}{A_SECOND}\)": "no SMB",
    r"cmd /c nltest /query&echo winready-next&(?:nltest /sc_verify:\S+&echo winready-next&)?"
    rf"for /l %i in \(1,1,\d+\) do @\(dir {SHARE} >nul && echo winready-seen{A_SECOND}\)": "no domain",
    r"shutdown\.exe /r /t \d+": "it would end the ground that the tests stand on",
    r"/agnhost netexec --http-port=\d+ --udp-port=\d+ --delay-shutdown=\d+": "nothing tells a program of its end as a "
    "container does",
    r"/pause\.exe": "the image's own program, which no Go module holds",
}
"""Shape: what wine lacks of it."""


class Line(NamedTuple):
    """Words that the runtime of a simulated Windows node was told to start."""

    words: tuple[str, ...]

    def __str__(self) -> str:
        return " ".join(self.words)


def shape(line: str) -> str:
    """The one shape that fits; empty if there is none."""
    found = [each for each in (*JUDGED, *LACKING) if re.fullmatch(each, line)]
    assert len(found) < 2, f"{line} has two shapes: {found}"
    return found[0] if found else ""


def script(line: Line) -> str:
    """What PowerShell is told; empty for other programs."""
    if line.words[0] != "powershell.exe":
        return ""
    if line.words[-2] == "-EncodedCommand":
        return base64.b64decode(line.words[-1]).decode("utf-16-le")
    return line.words[-1]


def of_a_whole_run() -> set[Line]:
    """All that a run of every check starts in Windows containers of a sound cluster."""
    started: set[Line] = set()
    spawn = Container.spawn

    def noted(self: Container, argv: list[str], **more: object) -> object:
        if self.os == "windows" and self.pod.startswith("winready"):
            started.add(Line(tuple(argv)))
        return spawn(self, argv, **more)  # type: ignore[arg-type]

    Container.spawn = noted  # type: ignore[method-assign,assignment]
    try:
        (trial,) = choose_sound([], [PLAIN.name], thorough=True)
        hold_trial(trial)
    finally:
        Container.spawn = spawn  # type: ignore[method-assign]
    return started


def written(source: Path) -> Iterator[str]:
    """The beginnings of command lines that stand in our own sources, as far as they are constant."""
    for path in sorted(source.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.List):
                continue
            words: list[str] = []
            for item in node.elts:
                if not isinstance(item, ast.Constant) or not isinstance(item.value, str):
                    break
                words.append(item.value)
            if words and re.fullmatch(r"cmd|/agnhost|nltest|dig|(?:[A-Z]:)?[\w\\]+\.exe", words[0]):
                yield " ".join(words)
