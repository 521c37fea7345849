"""Reading the JUnit files of e2e.test as a stream: any size, any content, and never more than a bounded memory.

Every spec of the binary is in such a file, the unselected ones as skipped, beside nodes of the suite itself that are
no tests. A file that a kill cut short still gives what was written before. Documents with a DTD, endless nesting or
a tag of megabytes are no JUnit files and are refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal
from xml.parsers import expat

from winready.upstream.listing import plain

Status = Literal["passed", "failed", "skipped"]
CHUNK = 64 * 1024
MAX_TOKEN = 8 * 1024 * 1024
MAX_DEPTH = 64
HEAD, TAIL = 16 * 1024, 48 * 1024
_PASSED, _SKIPPED = ("passed",), ("skipped", "pending")


class JunitError(Exception):
    """Not a JUnit file, or one that no honest program writes."""


@dataclass(frozen=True)
class Case:
    """One spec, or one node of the suite, as the file tells it."""

    text: str
    status: Status
    state: str
    """The word of the file: passed, failed, panicked, timedout, interrupted, aborted, skipped, pending."""
    seconds: float
    message: str
    """Why it failed or skipped itself."""
    output: str
    suite_node: bool
    """A node such as BeforeSuite: no test, whatever its status."""

    @property
    def skipped_itself(self) -> bool:
        """Whether it began and gave a reason not to go on; what was not selected or not come to gives none."""
        return self.status == "skipped" and self.message not in ("", "skipped")


class Bounded:
    """Text of any length, kept as a head and a tail."""

    def __init__(self) -> None:
        self._head: list[str] = []
        self._head_room = HEAD
        self._tail = ""
        self.cut = 0

    def add(self, text: str) -> None:
        """Append; what falls out of the middle is counted."""
        if self._head_room:
            self._head.append(text[: self._head_room])
            taken = len(self._head[-1])
            self._head_room -= taken
            text = text[taken:]
        if text:
            self._tail += text
            if len(self._tail) > 2 * TAIL:
                self.cut += len(self._tail) - TAIL
                self._tail = self._tail[-TAIL:]

    def __str__(self) -> str:
        middle = f"\n[... {self.cut} characters cut ...]\n" if self.cut else ""
        return f"{''.join(self._head)}{middle}{self._tail}"


@dataclass
class _Open:
    attributes: dict[str, str]
    problem: str = ""
    messages: Bounded = field(default_factory=Bounded)
    output: Bounded = field(default_factory=Bounded)
    skipped: bool = False


def read_cases(path: Path) -> Iterator[Case]:
    """The cases of a file, one by one; a file cut short ends where it was cut."""
    reader = _Reader()
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            reader.feed(chunk, final=False)
            yield from reader.take()
        reader.end()
        yield from reader.take()


def quiet(case: Case) -> Case:
    """The same without what it printed: of hundreds of them together that is most of a file, and its message stays."""
    return replace(case, output="")


class _Reader:
    def __init__(self) -> None:
        self._parser = expat.ParserCreate()
        self._parser.buffer_text = True
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._text
        self._parser.StartDoctypeDeclHandler = self._doctype
        self._fed = 0
        self._depth = 0
        self._case: _Open | None = None
        self._sink: Callable[[str], None] | None = None
        self._done: list[Case] = []
        self._root = ""

    def feed(self, chunk: bytes, *, final: bool) -> None:
        try:
            self._parser.Parse(chunk, final)
        except expat.ExpatError as error:
            raise JunitError(f"line {error.lineno}: {expat.ErrorString(error.code)}") from None
        except JunitError:
            raise
        except (LookupError, ValueError) as error:
            raise JunitError(f"line {self._parser.CurrentLineNumber}: {error}") from None
        self._fed += len(chunk)
        if self._fed - max(self._parser.CurrentByteIndex, 0) > MAX_TOKEN:
            raise JunitError(f"a single tag of more than {MAX_TOKEN >> 20} MB")

    def end(self) -> None:
        """The file is over; that it is cut short is known by the specs that are missing, not by an error here."""
        if not self._root:
            raise JunitError("the file is empty")

    def take(self) -> list[Case]:
        done, self._done = self._done, []
        return done

    def _doctype(self, *_: object) -> None:
        raise JunitError("the file declares a document type, which no JUnit file does")

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise JunitError(f"elements nested deeper than {MAX_DEPTH}")
        if not self._root:
            if name not in ("testsuite", "testsuites"):
                raise JunitError(f"the root element is {name!r}, not testsuites")
            self._root = name
        if name == "testcase":
            self._case = _Open(attributes)
            return
        case = self._case
        if case is None:
            return
        match name:
            case "failure" | "error":
                case.problem = attributes.get("type") or name
                case.messages.add(attributes.get("message", ""))
                case.messages.add("\n" if attributes.get("message") else "")
                self._sink = case.messages.add
            case "skipped":
                case.skipped = True
                case.messages.add(attributes.get("message", ""))
                self._sink = case.messages.add
            case "system-out" | "system-err":
                self._sink = case.output.add

    def _text(self, text: str) -> None:
        if self._sink is not None:
            self._sink(text)

    def _end(self, name: str) -> None:
        self._depth -= 1
        self._sink = None
        if name == "testcase" and self._case is not None:
            self._done.append(_closed(self._case))
            self._case = None


def _closed(case: _Open) -> Case:
    name = case.attributes.get("name", "")
    state = case.attributes.get("status", "")
    if case.problem and (not state or state in _PASSED):
        state = "failed"
    if not state:
        state = "skipped" if case.skipped else "passed"
    status: Status = "passed" if state in _PASSED else "skipped" if state in _SKIPPED else "failed"
    return Case(
        text=plain(name.removeprefix("[It] ")),
        status=status,
        state=state,
        seconds=_number(case.attributes.get("time", "")),
        message=str(case.messages).strip().removeprefix("skipped - "),
        output=str(case.output),
        suite_node=not name.startswith(("[It] ", "[sig-")),
    )


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0
