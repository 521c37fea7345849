"""Every regular expression of the product, found in its source, and texts that hurt those that go back a lot."""

from __future__ import annotations

import ast
import importlib
import re
import signal
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from re import _constants as op  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from types import ModuleType
from typing import Any

import yaml

SOURCE = Path(__file__).resolve().parents[1] / "src"
CALLS = ("compile", "search", "match", "fullmatch", "sub", "subn", "split", "findall", "finditer")
WAYS = {"search", "match", "fullmatch", "sub", "subn", "split", "findall", "finditer"}


@dataclass(frozen=True)
class Use:
    """A pattern, where it is written, and how it is applied."""

    place: str
    pattern: str
    flags: int
    ways: frozenset[str]
    binary: bool = False

    def compiled(self) -> re.Pattern[Any]:
        """As the product has it."""
        return re.compile(self.pattern.encode("latin-1") if self.binary else self.pattern, self.flags)


def uses(package: str = "winready") -> tuple[list[Use], list[str]]:
    """All of them, and the places of those whose pattern is made while the program runs."""
    found, made = [], []
    for path in sorted((SOURCE / package).rglob("*.py")):
        text = path.read_text()
        if "re." not in text:
            continue
        tree = ast.parse(text)
        calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and _is_re(node)]
        if not calls:
            continue
        name = ".".join(path.relative_to(SOURCE).with_suffix("").parts)
        module = importlib.import_module(name)
        known = dict(_compiled(module))
        for call in calls:
            place = f"{path.relative_to(SOURCE)}:{call.lineno}"
            pattern = _text(call.args[0], module)
            way = ast.unparse(call.func).removeprefix("re.")
            if pattern is None:
                made.append(f"{path.relative_to(SOURCE)}: {ast.unparse(call.args[0])}")
                continue
            flags = _flags(call)
            ways = _ways(tree, call, known) if way == "compile" else {way}
            binary = isinstance(pattern, bytes)
            plain = pattern.decode("latin-1") if isinstance(pattern, bytes) else pattern
            found.append(Use(place, plain, flags, frozenset(ways), binary))
    return found, made


def _is_re(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and ast.unparse(call.func) in {f"re.{name}" for name in CALLS}


def _compiled(module: ModuleType) -> Iterator[tuple[str, re.Pattern[Any]]]:
    for name, value in vars(module).items():
        if isinstance(value, re.Pattern):
            yield name, value


def _text(node: ast.expr, module: ModuleType) -> str | bytes | None:
    """A pattern that is known without running anything but its own module."""
    try:
        value = eval(compile(ast.Expression(node), "pattern", "eval"), dict(vars(module)))  # noqa: S307
    except (NameError, AttributeError):
        return None
    return value if isinstance(value, str | bytes) else None


def _flags(call: ast.Call) -> int:
    given = [*call.args[1:], *(each.value for each in call.keywords)]
    return sum(int(getattr(re, flag)) for flag in ("IGNORECASE", "MULTILINE", "ASCII", "DOTALL")
               if any(f"re.{flag}" in ast.unparse(each) for each in given))  # fmt: skip


def _ways(tree: ast.Module, call: ast.Call, known: dict[str, re.Pattern[Any]]) -> set[str]:
    """How a compiled pattern is used in its module; in every way, if that cannot be seen."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and node.value is call and isinstance(node.targets[0], ast.Name):
            name = node.targets[0].id
            seen = {
                each.attr
                for each in ast.walk(tree)
                if isinstance(each, ast.Attribute) and isinstance(each.value, ast.Name) and each.value.id == name
            }
            return seen & WAYS or {"search", "fullmatch"}
    return {"search", "fullmatch"}


def attacks(use: Use, size: int) -> Iterator[str]:
    """Texts that begin like a match, repeat what the pattern repeats, and end badly."""
    tree = parser.parse(use.pattern, use.flags)
    begin = _sample(tree)
    pumps = {"a", "0", " ", "a.", "1.", ",", "\n", *(_sample(each) for each in _repeats(tree))}
    heads = {"", *_heads(tree)}
    for pump in pumps:
        if not pump:
            continue
        many = pump * (size // len(pump))
        for head in heads:
            yield head + many
            yield head + many + "\x00"
            yield head + many + "\n\n"
        yield begin + many + "\x00!"
    if begin:
        yield begin * (size // len(begin)) + "\x00"


def _repeats(tree: Any) -> Iterator[Any]:
    """The insides of repetitions."""
    for code, argument in tree:
        if code in (op.MAX_REPEAT, op.MIN_REPEAT, op.POSSESSIVE_REPEAT):
            yield argument[2]
            yield from _repeats(argument[2])
        elif code is op.SUBPATTERN:
            yield from _repeats(argument[3])
        elif code is op.BRANCH:
            for each in argument[1]:
                yield from _repeats(each)
        elif code in (op.ASSERT, op.ASSERT_NOT):
            yield from _repeats(argument[1])


def _heads(tree: Any) -> Iterator[str]:
    """What stands before each repetition."""
    text = ""
    for code, argument in tree:
        if code in (op.MAX_REPEAT, op.MIN_REPEAT):
            yield text
        text += _sample([(code, argument)])


def _sample(tree: Any) -> str:
    """A short text that this part of a pattern takes."""
    text = ""
    for code, argument in tree:
        if code is op.LITERAL:
            text += chr(argument)
        elif code is op.NOT_LITERAL:
            text += "b" if argument != ord("b") else "c"
        elif code is op.ANY:
            text += "a"
        elif code is op.IN:
            text += _member(argument)
        elif code in (op.MAX_REPEAT, op.MIN_REPEAT):
            text += _sample(argument[2]) * max(1, min(argument[0], 3))
        elif code is op.SUBPATTERN:
            text += _sample(argument[3])
        elif code is op.BRANCH:
            text += _sample(argument[1][0])
    return text


_CLASSES = {
    op.CATEGORY_DIGIT: "1", op.CATEGORY_NOT_DIGIT: "a", op.CATEGORY_SPACE: " ", op.CATEGORY_NOT_SPACE: "a",
    op.CATEGORY_WORD: "a", op.CATEGORY_NOT_WORD: " ",
}  # fmt: skip


def _member(items: Any) -> str:
    if items[0][0] is op.NEGATE:
        out = re.compile(f"[{''.join(_class(each) for each in items[1:])}]")
        return next(each for each in "ab1 .:x\x00" if not out.match(each))
    code, argument = items[0]
    if code is op.RANGE:
        return chr(argument[0])
    return _CLASSES[argument] if code is op.CATEGORY else chr(argument)


def _class(item: Any) -> str:
    code, argument = item
    if code is op.RANGE:
        return f"{re.escape(chr(argument[0]))}-{re.escape(chr(argument[1]))}"
    if code is op.CATEGORY:
        names = {
            op.CATEGORY_DIGIT: r"\d",
            op.CATEGORY_SPACE: r"\s",
            op.CATEGORY_WORD: r"\w",
            op.CATEGORY_NOT_WORD: r"\W",
        }
        return names[argument]
    return re.escape(chr(argument))


def apply(use: Use, text: str) -> None:
    """Search as the product does."""
    compiled: re.Pattern[Any] = use.compiled()
    given: Any = text.encode("utf-8", "replace") if use.binary else text
    for way in use.ways:
        if way in ("sub", "subn"):
            compiled.sub(b"" if use.binary else "", given)
        elif way in ("findall", "finditer", "split"):
            for _ in compiled.finditer(given):
                pass
        else:
            getattr(compiled, way)(given)


def packaged() -> Iterator[Use]:
    """Patterns that are data of the package."""
    from winready.cluster.directory import FORMS
    from winready.upstream.explained import groups

    for name, (form, _) in FORMS.items():
        yield Use(f"winready/cluster/directory.py: {name}", form, 0, frozenset({"fullmatch"}))
    for file in sorted((SOURCE / "winready" / "lint" / "data").rglob("*.yaml")):
        for text in _liked(yaml.safe_load(file.read_text())):
            yield Use(f"{file.name}: {text[:40]}", text, 0, frozenset({"search"}))
    for group in groups():
        yield Use(f"specs.yaml: {group.id}", "|".join(group.match), 0, frozenset({"search"}))


def _liked(tree: Any) -> Iterator[str]:
    """What rules look for in texts."""
    if isinstance(tree, dict):
        for key, value in tree.items():
            if key == "like" and isinstance(value, str):
                yield value
            yield from _liked(value)
    elif isinstance(tree, list):
        for value in tree:
            yield from _liked(value)


def main() -> None:
    """Try them all; whoever takes longer than the processor time given is named, and ends it."""
    seconds, size = float(sys.argv[1]), int(sys.argv[2])
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    found, _ = uses()
    for use in [*found, *packaged()]:
        print(f"{use.place}: {use.pattern}", flush=True)
        for text in attacks(use, size):
            signal.setitimer(signal.ITIMER_PROF, seconds)
            apply(use, text)
            signal.setitimer(signal.ITIMER_PROF, 0)
    print("done")


if __name__ == "__main__":
    main()
