"""Applets that work on text."""

from __future__ import annotations

import asyncio
import base64 as base64_codec
import hashlib
import re

from winready_sandbox.machine.errors import ExecError, FileError
from winready_sandbox.programs.busybox.sed import Sed, SedError
from winready_sandbox.programs.busybox.tool import Applet, Tool


def _joined(lines: list[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def basic_regex(pattern: str) -> str:
    """A POSIX basic expression in Python's words: there `+ ? | ( ) { }` need a backslash to be special."""
    out = re.sub(r"\\([(){}|+?])|([(){}|+?])", lambda match: match[1] if match[1] else f"\\{match[2]}", pattern)
    return posix_classes(out)


def posix_classes(pattern: str) -> str:
    """`[[:digit:]]` and its kin."""
    classes = {"digit": "0-9", "alpha": "a-zA-Z", "alnum": "a-zA-Z0-9", "space": r"\s", "upper": "A-Z", "lower": "a-z"}
    return re.sub(r"\[:(\w+):\]", lambda match: classes.get(match[1], ""), pattern)


async def grep(tool: Tool) -> int:
    """Lines that match."""
    operands = tool.options(
        "vinclqsoEFwxe:A:B:C:rHhm:a", {"quiet": "q", "ignore-case": "i", "count": "c", "invert-match": "v"}
    )
    pattern = tool.flags.get("e")
    if pattern is None:
        if not operands:
            tool.usage("missing pattern")
        pattern = operands.pop(0)
    fixed = "F" in tool.flags or tool.name == "fgrep"
    extended = "E" in tool.flags or tool.name == "egrep"
    choices = pattern.split("\n")
    source = "|".join(
        re.escape(each) if fixed else posix_classes(each) if extended else basic_regex(each) for each in choices
    )
    if "w" in tool.flags:
        source = rf"\b(?:{source})\b"
    if "x" in tool.flags:
        source = f"^(?:{source})$"
    try:
        wanted = re.compile(source, re.IGNORECASE if "i" in tool.flags else 0)
    except re.error:
        tool.usage("bad regex")
        return 2
    found = False
    for name in operands or ["-"]:
        lines = await _read_lines(tool, name)
        if lines is None:
            continue
        hits = [
            (number, line) for number, line in enumerate(lines, 1) if bool(wanted.search(line)) != ("v" in tool.flags)
        ]
        hits = hits[: int(tool.flags["m"])] if "m" in tool.flags else hits
        found = found or bool(hits)
        prefix = f"{name}:" if (len(operands) > 1 or "H" in tool.flags) and "h" not in tool.flags else ""
        if "q" in tool.flags:
            continue
        if "c" in tool.flags:
            tool.out(f"{prefix}{len(hits)}\n")
        elif "l" in tool.flags:
            tool.out(f"{name}\n" if hits else "")
        else:
            for number, line in hits:
                numbered = f"{number}:" if "n" in tool.flags else ""
                shown = [match[0] for match in wanted.finditer(line)] if "o" in tool.flags else [line]
                tool.out("".join(f"{prefix}{numbered}{text}\n" for text in shown))
    return 2 if tool.failed and not found else 0 if found else 1


async def _read_lines(tool: Tool, name: str) -> list[str] | None:
    data = await tool.data(name)
    if data is None:
        return None
    lines = data.decode("utf-8", "surrogateescape").split("\n")
    lines = lines[:-1] if lines[-1] == "" else lines
    return [line.rstrip("\r") for line in lines] if tool.process.windows else lines


async def wc(tool: Tool) -> int:
    """Count lines, words, bytes."""
    names = tool.options("lwcmL")
    chosen = [flag for flag in "lwc" if flag in tool.flags] or ["l", "w", "c"]
    totals = [0, 0, 0]
    for name in names or ["-"]:
        data = await tool.data(name)
        if data is None:
            continue
        counts = {"l": data.count(b"\n"), "w": len(data.split()), "c": len(data)}
        totals = [total + counts[flag] for total, flag in zip(totals, "lwc", strict=True)]
        width = "%d" if len(chosen) == 1 else "%9d"
        line = " ".join(width % counts[flag] for flag in chosen)
        tool.out(f"{line}{' ' + name if name != '-' else ''}\n")
    if len(names) > 1:
        sums = dict(zip("lwc", totals, strict=True))
        tool.out(" ".join(f"{sums[flag]:9d}" for flag in chosen) + " total\n")
    return tool.code


async def head(tool: Tool) -> int:
    """The first lines."""
    tool.arguments = [re.sub(r"^-(\d+)$", r"-n\1", word) for word in tool.arguments]
    names = tool.options("n:c:qv")
    for name in names or ["-"]:
        if name == "-" and "c" not in tool.flags:
            for _ in range(int(tool.flags.get("n", "10"))):
                tool.process.stdout.write(await tool.process.stdin.readline())
            continue
        data = await tool.data(name)
        if data is None:
            continue
        if "c" in tool.flags:
            tool.process.stdout.write(data[: int(tool.flags["c"])])
            continue
        count = int(tool.flags.get("n", "10"))
        lines = data.splitlines(keepends=True)
        tool.process.stdout.write(b"".join(lines[:count]))
    return tool.code


async def tail(tool: Tool) -> int:
    """The last lines; with -f also those to come."""
    tool.arguments = [re.sub(r"^-(\d+)$", r"-n\1", word) for word in tool.arguments]
    names = tool.options("n:c:fFqvs:")
    count = tool.flags.get("n", "10")
    sizes: dict[str, int] = {}
    for name in names or ["-"]:
        data = await tool.data(name)
        if data is None:
            continue
        sizes[name] = len(data)
        if "c" in tool.flags:
            tool.process.stdout.write(data[-int(tool.flags["c"]) :])
            continue
        lines = data.splitlines(keepends=True)
        chosen = lines[int(count[1:]) - 1 :] if count.startswith("+") else lines[-int(count) :] if int(count) else []
        tool.process.stdout.write(b"".join(chosen))
    while ("f" in tool.flags or "F" in tool.flags) and sizes:
        await tool.process.container.clock.sleep(1)
        for name in sizes:
            try:
                data = tool.files.read(name, tool.cwd, who=tool.who) if name != "-" else b""
            except FileError:
                continue
            tool.process.stdout.write(data[sizes[name] :])
            sizes[name] = len(data)
    return tool.code


async def sort(tool: Tool) -> int:
    """Sort lines."""
    lines = await tool.lines(tool.options("nrufbk:t:o:sd"))
    field = re.match(r"\d+", tool.flags.get("k", ""))
    column = int(field[0]) if field else 0

    def key(line: str) -> tuple[float, str]:
        words = line.split(tool.flags.get("t") or None)
        text = line if not column else words[column - 1] if column <= len(words) else ""
        text = text.lower() if "f" in tool.flags else text
        match = re.match(r"\s*-?\d+(\.\d+)?", text)
        return (float(match[0]) if match else 0.0, text) if "n" in tool.flags else (0.0, text)

    lines.sort(key=key, reverse="r" in tool.flags)
    if "u" in tool.flags:
        lines = list(dict.fromkeys(lines))
    tool.out(_joined(lines))
    return tool.code


async def uniq(tool: Tool) -> int:
    """Drop repeated lines."""
    groups: list[tuple[str, int]] = []
    for line in await tool.lines(tool.options("cdui")):
        if groups and groups[-1][0] == line:
            groups[-1] = (line, groups[-1][1] + 1)
        else:
            groups.append((line, 1))
    for line, count in groups:
        if ("d" in tool.flags and count == 1) or ("u" in tool.flags and count > 1):
            continue
        tool.out(f"{count:7d} {line}\n" if "c" in tool.flags else f"{line}\n")
    return tool.code


def _characters(text: str) -> str:
    classes = {
        "lower": "a-z",
        "upper": "A-Z",
        "digit": "0-9",
        "alpha": "A-Za-z",
        "alnum": "A-Za-z0-9",
        "space": " \t\n\r",
    }
    text = re.sub(r"\[:(\w+):\]", lambda match: classes.get(match[1], ""), text)
    text = (
        text.replace("\\n", "\n").replace("\\t", "\t").replace("\\r", "\r").replace("\\0", "\0").replace("\\\\", "\\")
    )
    return re.sub(
        r"(.)-(.)",
        lambda match: "".join(chr(code) for code in range(ord(match[1]), ord(match[2]) + 1)),
        text,
        flags=re.S,
    )


async def tr(tool: Tool) -> int:
    """Replace or delete characters."""
    operands = [_characters(word) for word in tool.options("dscC")]
    text = (await tool.process.stdin.read_all()).decode("utf-8", "surrogateescape")
    source = operands[0] if operands else ""
    inverse = "c" in tool.flags or "C" in tool.flags
    if "d" in tool.flags:
        tool.out("".join(char for char in text if (char in source) == inverse))
        return 0
    target = operands[1] if len(operands) > 1 else source
    if len(operands) > 1:
        if inverse:
            text = "".join(char if char in source else target[-1] for char in text)
        else:
            padded = target + target[-1:] * (len(source) - len(target))
            text = text.translate({ord(old): new for old, new in zip(source, padded, strict=False)})
    if "s" in tool.flags:
        text = re.sub(f"([{re.escape(target)}])\\1+", r"\1", text)
    tool.out(text)
    return 0


async def cut(tool: Tool) -> int:
    """Parts of lines."""
    names = tool.options("d:f:c:b:s", {"delimiter": "d", "fields": "f", "characters": "c"})
    wanted = tool.flags.get("f") or tool.flags.get("c") or tool.flags.get("b")
    if not wanted:
        tool.usage("expected a list of bytes, characters, or fields")
        return 1
    delimiter = tool.flags.get("d", "\t")
    for line in await tool.lines(names):
        parts = line.split(delimiter) if "f" in tool.flags else list(line)
        if "f" in tool.flags and len(parts) == 1:
            if "s" not in tool.flags:
                tool.out(f"{line}\n")
            continue
        chosen = [part for number, part in enumerate(parts, 1) if _in_list(number, wanted)]
        tool.out((delimiter if "f" in tool.flags else "").join(chosen) + "\n")
    return tool.code


def _in_list(number: int, wanted: str) -> bool:
    for each in wanted.split(","):
        first, dash, last = each.partition("-")
        low = int(first) if first else 1
        high = int(last) if last else (10**9 if dash else low)
        if low <= number <= high:
            return True
    return False


async def sed(tool: Tool) -> int:
    """Edit a stream: s///, d, p, q, with addresses."""
    operands = tool.options("ne:irEf:", {"expression": "e", "quiet": "n", "in-place": "i"})
    script = tool.flags.get("e")
    if script is None:
        if not operands:
            tool.usage("no script")
        script = operands.pop(0)
    extended = "r" in tool.flags or "E" in tool.flags
    try:
        program = Sed(script, posix_classes if extended else basic_regex, silent="n" in tool.flags)
    except SedError as error:
        tool.usage(str(error))
        return 1
    if "i" in tool.flags:
        for name in operands:
            data = await tool.data(name)
            if data is not None:
                tool.files.write(name, program.run(data.decode()).encode(), tool.cwd, who=tool.who)
        return tool.code
    tool.out(program.run(await tool.text(operands)))
    return tool.code


async def tee(tool: Tool) -> int:
    """Copy input to files and on."""
    names = tool.options("ai")
    while chunk := await tool.process.stdin.read():
        tool.process.stdout.write(chunk)
        for name in names:
            try:
                tool.files.write(name, chunk, tool.cwd, who=tool.who, append="a" in tool.flags)
            except FileError as error:
                tool.fail(f"{name}: {error.linux}")
        tool.flags["a"] = ""
    return tool.code


async def xargs(tool: Tool) -> int:
    """Run a command with words from standard input."""
    flags: dict[str, str] = {}
    rest = list(tool.arguments)
    while rest and rest[0].startswith("-"):
        word = rest.pop(0)
        if word[:2] in ("-n", "-I", "-P", "-d"):
            flags[word[1]] = word[2:] or (rest.pop(0) if rest else "")
        else:
            flags[word[1:]] = ""
    text = (await tool.process.stdin.read_all()).decode("utf-8", "surrogateescape")
    words = text.split("\0")[:-1] if "0" in flags else text.splitlines() if "I" in flags else text.split()
    command = rest or ["echo"]
    size = 1 if "I" in flags else int(flags.get("n", str(max(1, len(words)))))
    code = 0
    for start in range(0, max(len(words), 0 if "r" in flags else 1), size):
        chunk = words[start : start + size]
        argv = (
            [part.replace(flags["I"], chunk[0] if chunk else "") for part in command]
            if "I" in flags
            else [*command, *chunk]
        )
        try:
            child = tool.process.spawn(argv)
        except ExecError:
            tool.fail(f"{argv[0]}: No such file or directory")
            return 127
        code = 123 if await child.finish() else code
    return code


async def seq(tool: Tool) -> int:
    """Count."""
    operands = [word for word in tool.arguments if not re.fullmatch(r"-[ws].*", word)]
    try:
        numbers = [int(word) for word in operands]
    except ValueError:
        tool.usage("invalid number")
        return 1
    first, step, last = {1: (1, 1, *numbers), 2: (numbers[0], 1, *numbers[1:])}.get(len(numbers), tuple(numbers))[:3]
    tool.out("".join(f"{number}\n" for number in range(first, last + (1 if step > 0 else -1), step)))
    return 0


async def base64(tool: Tool) -> int:
    """Encode, or decode with -d."""
    names = tool.options("dw:i", {"decode": "d", "wrap": "w"})
    data = await tool.data(names[0] if names else "-")
    if data is None:
        return 1
    if "d" in tool.flags:
        try:
            tool.process.stdout.write(base64_codec.b64decode(b"".join(data.split()), validate=True))
        except ValueError:
            tool.fail("truncated input")
            return 1
        return 0
    width = int(tool.flags.get("w", "76"))
    text = base64_codec.b64encode(data).decode()
    lines = [text[start : start + width] for start in range(0, len(text), width)] if width else [text]
    tool.out("\n".join(lines) + ("\n" if width else ""))
    return 0


async def checksum(tool: Tool) -> int:
    """md5sum, sha1sum, sha256sum, sha512sum."""
    algorithm = tool.name.removesuffix("sum")
    for name in tool.options("csbw") or ["-"]:
        data = await tool.data(name)
        if data is not None:
            tool.out(f"{hashlib.new(algorithm, data, usedforsecurity=False).hexdigest()}  {name}\n")
    return tool.code


async def rev(tool: Tool) -> int:
    """Reverse each line."""
    tool.out(_joined([line[::-1] for line in await tool.lines(tool.options(""))]))
    return tool.code


async def tac(tool: Tool) -> int:
    """Lines in reverse order."""
    tool.out(_joined((await tool.lines(tool.options("")))[::-1]))
    return tool.code


async def nl(tool: Tool) -> int:
    """Number lines."""
    for number, line in enumerate(await tool.lines(tool.options("b:")), 1):
        tool.out(f"{number:6d}\t{line}\n")
    return tool.code


async def cmp(tool: Tool) -> int:
    """Compare two files."""
    names = tool.options("s")
    contents = [await tool.data(name) for name in names[:2]]
    if tool.failed or len(contents) < 2:
        return 2
    one, two = contents[0] or b"", contents[1] or b""
    if one == two:
        return 0
    if "s" not in tool.flags:
        at = next((i for i, (a, b) in enumerate(zip(one, two, strict=False)) if a != b), min(len(one), len(two)))
        line = one[:at].count(b"\n") + 1
        tool.out(f"{names[0]} {names[1]} differ: char {at + 1}, line {line}\n")
    return 1


async def yes(tool: Tool) -> int:
    """The same line for ever."""
    line = f"{' '.join(tool.arguments) or 'y'}\n" * 50
    while not tool.process.stdout.closed:
        tool.out(line)
        await asyncio.sleep(0.005)
    return 1


APPLETS: dict[str, Applet] = {
    **dict.fromkeys(("grep", "egrep", "fgrep"), grep),
    **dict.fromkeys(("md5sum", "sha1sum", "sha256sum", "sha512sum"), checksum),
    "wc": wc,
    "head": head,
    "tail": tail,
    "sort": sort,
    "uniq": uniq,
    "tr": tr,
    "cut": cut,
    "sed": sed,
    "tee": tee,
    "xargs": xargs,
    "seq": seq,
    "base64": base64,
    "rev": rev,
    "tac": tac,
    "nl": nl,
    "cmp": cmp,
    "yes": yes,
}
