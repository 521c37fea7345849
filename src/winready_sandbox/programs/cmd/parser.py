"""The grammar of cmd: what a line means after variables are replaced.

cmd does not split arguments. It finds operators, redirections, blocks, `if` and `for`, and leaves the rest of a
command as one text, quotes included, for the command itself to take apart.
"""

from __future__ import annotations

from dataclasses import dataclass, field

_DELIMITERS = " \t,;=\xa0"
_SPECIAL = "&|<>\n"


class CmdSyntaxError(Exception):
    """The line cannot be parsed; the text is what cmd prints."""


@dataclass
class Redirect:
    """`2>file`, `>>file`, `<file` or `2>&1`."""

    handle: int
    mode: str
    target: str
    """A file name, or the number of another handle when the mode ends in `&`."""


@dataclass
class Command:
    """A simple command: its text without redirections."""

    text: str
    redirects: list[Redirect] = field(default_factory=list)
    quiet: bool = False


@dataclass
class Block:
    """Commands in parentheses."""

    commands: list[CmdNode]
    redirects: list[Redirect] = field(default_factory=list)


@dataclass
class Chain:
    """Two commands joined by `&`, `&&`, `||` or `|`."""

    operator: str
    left: CmdNode
    right: CmdNode


@dataclass
class If:
    """`if [/i] [not] condition command [else command]`."""

    kind: str
    """`exist`, `defined`, `errorlevel`, or a comparison such as `==` and `EQU`."""
    left: str
    right: str
    negated: bool
    ignore_case: bool
    then: CmdNode
    otherwise: CmdNode | None = None


@dataclass
class For:
    """`for [/l] %x in (set) do command`."""

    kind: str
    variable: str
    items: str
    body: CmdNode


CmdNode = Command | Block | Chain | If | For


class Parser:
    """Recursive descent over one logical line (or several, inside parentheses)."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.depth = 0

    def parse(self) -> CmdNode | None:
        """The whole line, or None if there is nothing on it."""
        self._skip(_DELIMITERS + "\n")
        if self.at >= len(self.text):
            return None
        node = self._sequence()
        self._skip(_DELIMITERS + "\n")
        if self.at < len(self.text):
            raise CmdSyntaxError(f"{self.text[self.at]} was unexpected at this time.")
        return node

    def _skip(self, chars: str) -> None:
        while self.at < len(self.text) and self.text[self.at] in chars:
            self.at += 1

    def _peek(self, size: int = 1) -> str:
        return self.text[self.at : self.at + size]

    def _sequence(self) -> CmdNode:
        node = self._either()
        while True:
            self._skip(" \t")
            if self._peek() == "&" and self._peek(2) != "&&":
                self.at += 1
                self._skip(_DELIMITERS)
                if self.at >= len(self.text) or self._peek() in ")\n":
                    return node
                node = Chain("&", node, self._either())
            else:
                return node

    def _either(self) -> CmdNode:
        node = self._both()
        while True:
            self._skip(" \t")
            if self._peek(2) != "||":
                return node
            self.at += 2
            node = Chain("||", node, self._both())

    def _both(self) -> CmdNode:
        node = self._pipe()
        while True:
            self._skip(" \t")
            if self._peek(2) != "&&":
                return node
            self.at += 2
            node = Chain("&&", node, self._pipe())

    def _pipe(self) -> CmdNode:
        node = self._command()
        while True:
            self._skip(" \t")
            if self._peek() != "|" or self._peek(2) == "||":
                return node
            self.at += 1
            node = Chain("|", node, self._command())

    def _word(self) -> str:
        end = self.at
        while end < len(self.text) and self.text[end] not in _DELIMITERS + _SPECIAL + '()/"':
            end += 1
        return self.text[self.at : end].lower()

    def _command(self) -> CmdNode:
        self._skip(_DELIMITERS)
        quiet = False
        while self._peek() == "@":
            self.at += 1
            quiet = True
            self._skip(_DELIMITERS)
        if self.at >= len(self.text):
            raise CmdSyntaxError("The syntax of the command is incorrect.")
        char = self._peek()
        if char in "&|":
            raise CmdSyntaxError(
                f"{self._peek(2) if self._peek(2) in ('&&', '||') else char} was unexpected at this time."
            )
        if char == ")":
            raise CmdSyntaxError(") was unexpected at this time.")
        if char == "(":
            return self._block()
        word = self._word()
        if word == "rem":
            return self._remark()
        if word == "if":
            return self._if()
        if word == "for":
            return self._for()
        return self._simple(quiet)

    def _remark(self) -> Command:
        end = self.text.find("\n", self.at)
        self.at = len(self.text) if end < 0 else end
        return Command("rem")

    def _block(self) -> Block:
        self.at += 1
        self.depth += 1
        commands: list[CmdNode] = []
        while True:
            self._skip(_DELIMITERS + "\n")
            if self.at >= len(self.text):
                raise CmdSyntaxError("The syntax of the command is incorrect.")
            if self._peek() == ")":
                break
            commands.append(self._sequence())
        self.at += 1
        self.depth -= 1
        redirects: list[Redirect] = []
        while True:
            self._skip(" \t")
            handle = -1
            if self._peek().isdigit() and self.text[self.at + 1 : self.at + 2] in ("<", ">"):
                handle = int(self._peek())
                self.at += 1
            if self._peek() not in ("<", ">"):
                return Block(commands, redirects)
            redirects.append(self._redirect(handle))

    def _redirect(self, handle: int) -> Redirect:
        mode = self._peek()
        self.at += 1
        if mode == ">" and self._peek() == ">":
            mode = ">>"
            self.at += 1
        if handle < 0:
            handle = 0 if mode == "<" else 1
        self._skip(" \t")
        if self._peek() == "&":
            self.at += 1
            target = self._peek()
            self.at += 1
            return Redirect(handle, f"{mode}&", target)
        target = self._argument()
        if not target:
            raise CmdSyntaxError("The syntax of the command is incorrect.")
        return Redirect(handle, mode, target)

    def _argument(self) -> str:
        """One word with quotes taken off and carets resolved."""
        self._skip(_DELIMITERS)
        text: list[str] = []
        quoted = False
        while self.at < len(self.text):
            char = self.text[self.at]
            if char == '"':
                quoted = not quoted
            elif not quoted and char == "^" and self.at + 1 < len(self.text):
                self.at += 1
                text.append(self.text[self.at])
            elif not quoted and (char in _DELIMITERS + _SPECIAL or (char == ")" and self.depth)):
                break
            else:
                text.append(char)
            self.at += 1
        return "".join(text)

    def _simple(self, quiet: bool) -> Command:
        text: list[str] = []
        redirects: list[Redirect] = []
        quoted = False
        while self.at < len(self.text):
            char = self.text[self.at]
            if char == "\n":
                break
            if quoted:
                quoted = char != '"'
                text.append(char)
                self.at += 1
                continue
            if char == '"':
                quoted = True
                text.append(char)
            elif char == "^":
                self.at += 1
                if self._peek() == "\n":
                    self.at += 1
                text.append(self._peek())
            elif char in "&|" or (char == ")" and self.depth):
                break
            elif char in "<>":
                handle = -1
                if text and text[-1].isdigit() and (len(text) < 2 or text[-2] in _DELIMITERS):
                    handle = int(text.pop())
                redirects.append(self._redirect(handle))
                continue
            else:
                text.append(char)
            self.at += 1
        return Command("".join(text), redirects, quiet)

    def _if(self) -> If:
        self.at += 2
        negated = ignore_case = False
        while True:
            self._skip(_DELIMITERS)
            if self._peek(2).lower() == "/i":
                self.at += 2
                ignore_case = True
            elif self._word() == "not":
                self.at += 3
                negated = not negated
            else:
                break
        word = self._word()
        left = right = ""
        if word in ("exist", "defined", "errorlevel"):
            kind = word
            self.at += len(word)
            left = self._operand()
        else:
            left = self._operand(stop_at_equals=True)
            self._skip(" \t")
            if self._peek(2) == "==":
                kind = "=="
                self.at += 2
            else:
                kind = self._word().upper()
                if kind not in ("EQU", "NEQ", "LSS", "LEQ", "GTR", "GEQ"):
                    raise CmdSyntaxError(f"{self._argument()} was unexpected at this time.")
                self.at += 3
            right = self._operand()
        then = self._command_with_operators()
        otherwise = None
        mark = self.at
        self._skip(" \t")
        if self._word() == "else":
            self.at += 4
            otherwise = self._command_with_operators()
        else:
            self.at = mark
        return If(kind, left, right, negated, ignore_case, then, otherwise)

    def _command_with_operators(self) -> CmdNode:
        self._skip(_DELIMITERS)
        if self._peek() == "(":
            return self._block()
        return self._sequence()

    def _operand(self, stop_at_equals: bool = False) -> str:
        self._skip(" \t,;" if stop_at_equals else _DELIMITERS)
        text: list[str] = []
        quoted = False
        while self.at < len(self.text):
            char = self.text[self.at]
            if char == '"':
                quoted = not quoted
            elif not quoted and (char in " \t,;=" or char in _SPECIAL):
                break
            elif not quoted and char == "^":
                self.at += 1
                char = self._peek()
            text.append(char)
            self.at += 1
        return "".join(text)

    def _for(self) -> For:
        self.at += 3
        kind = ""
        self._skip(_DELIMITERS)
        while self._peek() == "/":
            kind = self._peek(2)[1:].lower()
            if kind != "l":
                raise CmdSyntaxError(f"/{kind} was unexpected at this time.")
            self.at += 2
            self._skip(_DELIMITERS)
        if self._peek() != "%":
            raise CmdSyntaxError(f"{self._argument()} was unexpected at this time.")
        self._skip("%")
        variable = self._peek()
        self.at += 1
        self._skip(_DELIMITERS)
        if self._word() != "in":
            raise CmdSyntaxError("The syntax of the command is incorrect.")
        self.at += 2
        self._skip(_DELIMITERS + "\n")
        if self._peek() != "(":
            raise CmdSyntaxError("The syntax of the command is incorrect.")
        end = self._closing_parenthesis()
        items = self.text[self.at + 1 : end]
        self.at = end + 1
        self._skip(_DELIMITERS)
        if self._word() != "do":
            raise CmdSyntaxError("The syntax of the command is incorrect.")
        self.at += 2
        return For(kind, variable, items, self._command_with_operators())

    def _closing_parenthesis(self) -> int:
        quote = ""
        for index in range(self.at + 1, len(self.text)):
            char = self.text[index]
            if quote:
                quote = "" if char == quote else quote
            elif char in "\"'`":
                quote = char
            elif char == ")":
                return index
        raise CmdSyntaxError("The syntax of the command is incorrect.")
