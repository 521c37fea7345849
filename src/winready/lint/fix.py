"""The safe repairs of a run: which operations they need, the changed text, and its difference."""

from __future__ import annotations

import codecs
import difflib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from winready.lint import edits
from winready.lint.context import Facts, Profile
from winready.lint.edits import CannotEdit, Operation, Put, Remove, Rename, Rewrite
from winready.lint.judge import Located
from winready.lint.objects import dig
from winready.lint.rules.placement import missing_tolerations, stable_label
from winready.spec import yamlfile
from winready.spec.yamlfile import Path

_OS = "kubernetes.io/os"


@dataclass(frozen=True, slots=True)
class Change:
    """A file before and after."""

    path: str
    before: str
    after: str
    encoding: str

    def diff(self) -> str:
        """The difference in unified form."""
        split = partial(str.splitlines, keepends=True)
        lines = difflib.unified_diff(split(self.before), split(self.after), f"a/{self.path}", f"b/{self.path}")
        return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)

    def write(self) -> None:
        """Put the file in place in one step, with the rights and the encoding it had."""
        temporary = f"{self.path}.winready-{os.getpid()}"
        with open(temporary, "wb") as stream:
            stream.write(self.after.encode(self.encoding))
        os.chmod(temporary, os.stat(self.path).st_mode & 0o7777)
        os.replace(temporary, os.path.realpath(self.path))


class Repairs:
    """Collects the repairable findings of each folder and works out the changes."""

    def __init__(self, profile: Profile) -> None:
        self.profile = profile
        self.changes: list[Change] = []
        self.skipped: list[tuple[str, str]] = []
        self.count = 0

    def __call__(self, located: Sequence[Located]) -> None:
        files: dict[str, list[Located]] = {}
        for one in located:
            if one.finding.fixable and not one.finding.suppressed:
                files.setdefault(one.finding.path, []).append(one)
        for path, found in files.items():
            self._file(path, found)

    def _file(self, path: str, found: Sequence[Located]) -> None:
        with open(path, "rb") as stream:
            data = stream.read()
        content = yamlfile.decode(data)
        numbers = {
            one.start: number
            for number, one in enumerate(one for one in yamlfile.read(content) if isinstance(one, yamlfile.Document))
        }
        wanted: list[tuple[int, Operation]] = []
        for one in found:
            operations = [(numbers[one.document.start], operation) for operation in self._operations(one)]
            wanted += [change for change in operations if change not in wanted]
            self.count += bool(operations)
        after = self._apply(path, content, wanted)
        if after != content:
            self.changes.append(Change(path, content, after, _encoding(data)))

    def _apply(self, path: str, content: str, changes: Sequence[tuple[int, Operation]]) -> str:
        try:
            return edits.apply(content, changes)
        except CannotEdit:
            pass  # one of them does not fit: take those that do, one after the other
        for change in changes:
            try:
                content = edits.apply(content, [change])
            except (CannotEdit, KeyError, IndexError) as error:
                self.skipped.append((path, f"{_describe(change[1])}: {error}"))
                self.count -= 1
        return content

    def _operations(self, one: Located) -> Iterator[Operation]:
        if one.rule.repair == "remove":
            yield Remove(one.path)
        elif one.rule.repair == "stable-label":
            yield from _stable(one)
        elif one.pod is not None:
            spec = one.pod.spec
            base: Path = (*one.pod.object.path, *one.pod.prefix, "spec")
            match one.rule.repair:
                case "add-os" if "os" not in spec:
                    yield Put(base, "os", {"name": "windows"})
                case "add-selector":
                    yield from _selector(base, spec)
                case "lower-os" if str(dig(spec, "os", "name")).lower() in ("windows", "linux"):
                    yield Rewrite((*base, "os", "name"), str(dig(spec, "os", "name")).lower())
                case "add-host-network":
                    flag = (*base, "hostNetwork")
                    yield Rewrite(flag, True) if "hostNetwork" in spec else Put(base, "hostNetwork", True)
                case "add-toleration":
                    yield from self._tolerations(one, base)

    def _tolerations(self, one: Located, base: Path) -> Iterator[Operation]:
        if one.pod is None:
            return
        wanted = [
            {"key": taint.key, "operator": "Equal", "value": taint.value, "effect": taint.effect}
            if taint.value
            else {"key": taint.key, "operator": "Exists", "effect": taint.effect}
            for taint in missing_tolerations(one.pod, Facts(self.profile))
        ]
        if not wanted:
            return
        if isinstance(one.pod.spec.get("tolerations"), list):
            yield from (Put((*base, "tolerations"), "", toleration) for toleration in wanted)
        elif "tolerations" not in one.pod.spec:
            yield Put(base, "tolerations", wanted)


def _selector(base: Path, spec: Any) -> Iterator[Operation]:
    if isinstance(spec.get("nodeSelector"), dict):
        yield Put((*base, "nodeSelector"), _OS, "windows")
    elif "nodeSelector" not in spec:
        yield Put(base, "nodeSelector", {_OS: "windows"})


def _stable(one: Located) -> Iterator[Operation]:
    last = one.path[-1]
    if last == "key":
        value = one.document.value
        for step in one.path:
            value = value[step]
        yield Rewrite(one.path, stable_label(str(value)))
    elif isinstance(last, str):
        parent = one.document.value
        for step in one.path[:-1]:
            parent = parent[step]
        yield Remove(one.path) if stable_label(last) in parent else Rename(one.path, stable_label(last))


def _describe(operation: Operation) -> str:
    match operation:
        case Put(path, key, _):
            return f"adding {key or 'an item'} to {'.'.join(map(str, path))}"
        case Remove(path):
            return f"removing {'.'.join(map(str, path))}"
    return f"changing {'.'.join(map(str, operation.path))}"


def _encoding(data: bytes) -> str:
    if data.startswith(codecs.BOM_UTF8):
        return "utf-8-sig"
    return "utf-16" if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "utf-8"
