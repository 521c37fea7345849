"""Where names lead inside a pod: looked up by the system's own resolver, and whoever is behind them says who it is.

One command asks for several names. A netexec of the pod does each look-up, so that the container which is asked can be
chosen by its port, and says whether the name, the connection or neither failed.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import count
from urllib.parse import urlencode

from winready.checks.context import Context
from winready.cluster.commands import NETEXEC_HTTP, Os, lines, read_dial
from winready.cluster.execution import Execution
from winready.cluster.pods import Pod
from winready.cluster.probes import LEAST_ATTEMPTS, Try
from winready.cluster.timing import TABLE, now

HTTPS = 443
_END = re.compile(r"^=(\d{3})$", re.MULTILINE)
_NOT_RESOLVED = ("(6)", "Resolving timed out")
"""How curl says that it did not get as far as an address."""


_REFUSED = "host and/or port param are invalid. "
"""What netexec says before the reason why it does not even dial."""


class Led(Enum):
    """How far a name led."""

    RIGHT = "as expected"
    UNRESOLVED = "the name is not resolved"
    UNREACHED = "the name is resolved, the connection is not made"
    STRANGER = "somebody else answers"


@dataclass(frozen=True)
class Target:
    """A name, and whom it must lead to."""

    name: str
    port: int
    servers: tuple[str, ...] = ()
    """Pods of which one must answer; none: it is enough that the name resolves."""
    absent: bool = False
    """The name must not resolve."""
    api: bool = False
    """The cluster's API server must answer."""
    address: str = ""
    """Where the name leads according to the API, if that is one address."""
    headless: bool = False
    """No service proxy stands between the name and the pod."""
    through: int = NETEXEC_HTTP
    """Port of the netexec that looks the name up, which tells containers of a pod apart."""

    @property
    def wanted(self) -> str:
        """What is expected of it, in words."""
        if self.absent:
            return "no such name"
        if self.api:
            return "an answer from the API server"
        return f"an answer from {' or '.join(self.servers)}" if self.servers else "resolved"

    @property
    def url(self) -> str:
        """What curl is to fetch."""
        if self.api:
            return f"https://{self.name}:{self.port}/version"
        query = {"host": self.name, "port": self.port, "protocol": "http", "request": "hostname", "tries": 1}
        return f"http://127.0.0.1:{self.through}/dial?{urlencode(query)}"

    def __str__(self) -> str:
        other = "" if self.through == NETEXEC_HTTP else " in another container of the pod"
        return f"{self.name}:{self.port}{other}"


@dataclass(frozen=True)
class Answer:
    """What came of one target."""

    target: Target
    led: Led
    seen: str
    """Who answered, or why nobody did."""

    @property
    def right(self) -> bool:
        """Whether it is as it must be."""
        return self.led is Led.RIGHT


def look_up(os: Os, targets: Sequence[Target]) -> list[str]:
    """Ask for all of them by one command. A look-up that lasts longer than Windows asks has failed."""
    limits = ["--connect-timeout", f"{TABLE.look_up:g}", "--max-time", f"{TABLE.look_up:g}"]
    command = ["curl.exe" if os == "windows" else "curl", "-g", "-s", "-S", "-k", "-w", "\\n=%{http_code}\\n", *limits]
    return [*command, *(target.url for target in targets)]


def read_look_up(targets: Sequence[Target], result: Execution) -> list[Answer]:
    """Read the answers, in the order of the targets."""
    parts = _END.split(result.stdout.decode(errors="replace").replace("\r", ""))
    errors = [line for line in lines(result.stderr) if line.startswith("curl: (")]
    answers = []
    for target, text, code in zip(targets, parts[0::2], parts[1::2], strict=False):
        trouble = (errors.pop(0) if errors else "no answer") if code == "000" else ""
        led, seen = _judged(target, text.strip(), code, trouble)
        if target.absent:
            led = Led.RIGHT if led is Led.UNRESOLVED else Led.STRANGER
        elif not target.servers and not target.api and led is not Led.UNRESOLVED:
            led = Led.RIGHT
        answers.append(Answer(target, led, seen))
    return answers


def _judged(target: Target, text: str, code: str, trouble: str) -> tuple[Led, str]:
    if trouble:
        unresolved = not target.api or any(word in trouble for word in _NOT_RESOLVED)
        return Led.UNRESOLVED if unresolved else Led.UNREACHED, trouble
    if target.api:
        who = _api_server(text)
        return (Led.RIGHT, who) if who else (Led.STRANGER, f"HTTP {code}, not an API server")
    if code != "200":
        return Led.UNRESOLVED, text.removeprefix(_REFUSED)
    dialled = read_dial(text.encode())
    if not dialled.answers:
        return Led.UNREACHED, (dialled.errors or ["no answer"])[-1]
    return Led.RIGHT if dialled.answers[-1] in target.servers else Led.STRANGER, dialled.answers[-1]


def _api_server(text: str) -> str:
    """What an API server says of itself, to those it does not know as well; empty for everybody else."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return ""
    if not isinstance(document, dict):
        return ""
    if document.get("gitVersion"):
        return f"an API server of {document['gitVersion']}"
    return "an API server that refuses strangers" if document.get("kind") == "Status" else ""


async def ask(pod: Pod, targets: Sequence[Target]) -> tuple[list[Answer], Execution]:
    """Look all of them up once."""
    seconds = TABLE.look_up * len(targets) + TABLE.exec_answer
    result = await pod.run(look_up(pod.os, targets), seconds=seconds)
    answers = read_look_up(targets, result)
    silent = [Answer(target, Led.UNRESOLVED, "curl did not say") for target in targets[len(answers) :]]
    return [*answers, *silent], result


def summary(answers: Sequence[Answer]) -> str:
    """Who answered where, in one line."""
    return "; ".join(f"{answer.target}: {answer.seen or answer.led.value}" for answer in answers)


async def lead(ctx: Context, pod: Pod, targets: Sequence[Target], *, window: float) -> list[Answer]:
    """Ask until every name leads where it should, and record one probe for each. What is right is not asked again."""
    timing, start = ctx.timing, now()
    end = start + timing.deadline(window)
    found: dict[Target, Answer] = {}
    asked: Counter[Target] = Counter()
    for attempt in count(1):
        wrong = [target for target in targets if target not in found or not found[target].right]
        dead = bool(found) and all(found[target].led is Led.UNRESOLVED for target in targets if not target.absent)
        # Each name costs as long as Windows asks for it: while none is answered, one tells as much as all.
        chosen = wrong[:1] if dead else wrong
        asked.update(chosen)
        answers, _ = await ask(pod, chosen)
        found.update({answer.target: answer for answer in answers})
        if all(found[target].right for target in targets):
            break
        if now() > end and (attempt >= LEAST_ATTEMPTS or not window):
            break
        await timing.pause(ctx.times.poll)
    for target in targets:
        title, command = f"{pod.name} asks for {target}", look_up(pod.os, [target])
        seen = Try(found[target].right, found[target].seen)
        ctx.probe.record(title, seen, pod, command, target.wanted, str(target), attempts=asked[target], start=start)
    return [found[target] for target in targets]
