"""The grammar of the shell."""

from __future__ import annotations

import re
from collections.abc import Callable

from winready_sandbox.programs.sh.syntax import (
    AndOr,
    CaseClause,
    ForClause,
    Function,
    IfClause,
    Literal,
    Loop,
    Pipeline,
    Redirect,
    Redirected,
    Sequence,
    ShellNode,
    Simple,
    Subshell,
    Word,
)
from winready_sandbox.programs.sh.words import META, ShellSyntaxError, WordReader

_RESERVED = {"then", "else", "elif", "fi", "do", "done", "esac", "}", "in"}
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=")


class Parser(WordReader):
    """Recursive descent over a script."""

    def __init__(self, text: str) -> None:
        super().__init__(text.replace("\r\n", "\n"))
        self._documents: list[tuple[Redirect, str, bool]] = []

    def parse(self) -> Sequence:
        """The whole script."""
        node = self._list(())
        self._space(newlines=True)
        if self.at < len(self.text):
            raise ShellSyntaxError(f'syntax error: unexpected "{self._token()}"')
        return node

    def _token(self) -> str:
        for operator in ("&&", "||", ";;"):
            if self.peek(2) == operator:
                return operator
        if self.peek() and self.peek() in META:
            return self.peek()
        match = re.compile(r"[^\s;&|<>()]+").match(self.text, self.at)
        return match[0] if match else ""

    def _space(self, *, newlines: bool = False) -> None:
        while self.at < len(self.text):
            char = self.text[self.at]
            if char in " \t":
                self.at += 1
            elif char == "\\" and self.text[self.at + 1 : self.at + 2] == "\n":
                self.at += 2
            elif char == "#":
                end = self.text.find("\n", self.at)
                self.at = len(self.text) if end < 0 else end
            elif char == "\n" and newlines:
                self.at += 1
                self._read_documents()
            else:
                return

    def _keyword(self) -> str:
        """The plain word at this place, if there is one."""
        match = re.compile(r"[A-Za-z{}!\[]+(?=[\s;&|<>()]|$)").match(self.text, self.at)
        return match[0] if match else ""

    def _expect(self, keyword: str) -> None:
        self._space(newlines=True)
        if self._keyword() != keyword:
            found = self._token()
            unexpected = f'unexpected "{found}"' if found else "unexpected end of file"
            raise ShellSyntaxError(f'syntax error: {unexpected} (expecting "{keyword}")')
        self.at += len(keyword)

    def _list(self, ends: tuple[str, ...]) -> Sequence:
        commands: list[tuple[ShellNode, bool]] = []
        while True:
            self._space(newlines=True)
            if self.at >= len(self.text) or self.peek() == ")" or self.peek(2) == ";;":
                return Sequence(commands)
            if self._keyword() in ends or (self._keyword() in _RESERVED and ends):
                return Sequence(commands)
            node = self._and_or()
            self._space()
            background = self.peek() == "&" and self.peek(2) != "&&"
            commands.append((node, background))
            if background or (self.peek() == ";" and self.peek(2) != ";;"):
                self.at += 1
            elif self.peek() == "\n":
                continue
            else:
                return Sequence(commands)

    def _and_or(self) -> ShellNode:
        node = self._pipeline()
        while True:
            self._space()
            operator = self.peek(2)
            if operator not in ("&&", "||"):
                return node
            self.at += 2
            self._space(newlines=True)
            node = AndOr(operator, node, self._pipeline())

    def _pipeline(self) -> ShellNode:
        self._space()
        negated = False
        while self._keyword() == "!":
            self.at += 1
            negated = not negated
            self._space()
        commands = [self._command()]
        while True:
            self._space()
            if self.peek() != "|" or self.peek(2) == "||":
                break
            self.at += 1
            self._space(newlines=True)
            commands.append(self._command())
        return commands[0] if len(commands) == 1 and not negated else Pipeline(commands, negated)

    def _command(self) -> ShellNode:
        self._space()
        keyword = self._keyword()
        compounds: dict[str, Callable[[], ShellNode]] = {
            "if": self._if,
            "while": self._loop,
            "until": self._loop,
            "for": self._for,
            "case": self._case,
            "{": self._group,
        }
        if keyword in compounds:
            return self._with_redirects(compounds[keyword]())
        if self.peek() == "(":
            self.at += 1
            body = self._list((")",))
            self._close(")")
            return self._with_redirects(Subshell(body))
        function = re.compile(r"(?:function\s+)?([A-Za-z_][\w-]*)\s*\(\s*\)").match(self.text, self.at)
        if function:
            self.at = function.end()
            self._space(newlines=True)
            return Function(function[1], self._command())
        return self._simple()

    def _close(self, char: str) -> None:
        self._space(newlines=True)
        if self.peek() != char:
            raise ShellSyntaxError(f'syntax error: unexpected end of file (expecting "{char}")')
        self.at += 1

    def _with_redirects(self, node: ShellNode) -> ShellNode:
        redirects: list[Redirect] = []
        while (redirect := self._redirect()) is not None:
            redirects.append(redirect)
        return Redirected(node, redirects) if redirects else node

    def _group(self) -> ShellNode:
        self.at += 1
        body = self._list(("}",))
        self._expect("}")
        return body

    def _if(self) -> IfClause:
        branches: list[tuple[ShellNode, ShellNode]] = []
        self.at += 2
        while True:
            condition = self._list(("then",))
            self._expect("then")
            branches.append((condition, self._list(("elif", "else", "fi"))))
            self._space(newlines=True)
            if self._keyword() != "elif":
                break
            self.at += 4
        otherwise = None
        if self._keyword() == "else":
            self.at += 4
            otherwise = self._list(("fi",))
        self._expect("fi")
        return IfClause(branches, otherwise)

    def _body(self) -> ShellNode:
        self._expect("do")
        body = self._list(("done",))
        self._expect("done")
        return body

    def _loop(self) -> Loop:
        until = self._keyword() == "until"
        self.at += 5
        condition = self._list(("do",))
        return Loop(condition, self._body(), until)

    def _for(self) -> ForClause:
        self.at += 3
        self._space()
        match = re.compile(r"[A-Za-z_]\w*").match(self.text, self.at)
        if not match:
            raise ShellSyntaxError("syntax error: bad for loop variable")
        self.at = match.end()
        self._space(newlines=True)
        words: list[Word] | None = None
        if self._keyword() == "in":
            self.at += 2
            words = []
            while True:
                self._space()
                word = self.word()
                if word is None:
                    break
                words.append(word)
        self._space()
        if self.peek() == ";":
            self.at += 1
        return ForClause(match[0], words, self._body())

    def _case(self) -> CaseClause:
        self.at += 4
        self._space()
        subject = self.word() or []
        self._expect("in")
        items: list[tuple[list[Word], ShellNode]] = []
        while True:
            self._space(newlines=True)
            if self._keyword() == "esac":
                self.at += 4
                return CaseClause(subject, items)
            if self.peek() == "(":
                self.at += 1
            patterns: list[Word] = []
            while True:
                self._space()
                pattern = self.word()
                if pattern is None:
                    raise ShellSyntaxError('syntax error: unexpected end of file (expecting ")")')
                patterns.append(pattern)
                self._space()
                if self.peek() != "|":
                    break
                self.at += 1
            self._close(")")
            items.append((patterns, self._list(("esac",))))
            self._space(newlines=True)
            if self.peek(2) == ";;":
                self.at += 2

    def _redirect(self) -> Redirect | None:
        self._space()
        match = re.compile(r"(\d?)(<<<|<<-|<<|<&|<>|<|>>|>&|>\||>|&>)").match(self.text, self.at)
        if not match:
            return None
        self.at = match.end()
        operator = match[2]
        handle = int(match[1]) if match[1] else (0 if operator.startswith("<") else 1)
        self._space()
        target = self.word()
        if target is None:
            raise ShellSyntaxError(f'syntax error: unexpected "{self._token() or "newline"}"')
        redirect = Redirect(handle, operator, target)
        if operator in ("<<", "<<-"):
            end = "".join(part.text for part in target if isinstance(part, Literal))
            raw = any(isinstance(part, Literal) and part.quoted for part in target)
            self._documents.append((redirect, end, raw))
        return redirect

    def _read_documents(self) -> None:
        for redirect, end, raw in self._documents:
            lines: list[str] = []
            while self.at < len(self.text):
                stop = self.text.find("\n", self.at)
                stop = len(self.text) if stop < 0 else stop
                line = self.text[self.at : stop]
                self.at = min(stop + 1, len(self.text))
                line = line.lstrip("\t") if redirect.operator == "<<-" else line
                if line == end:
                    break
                lines.append(line + "\n")
            text = "".join(lines)
            redirect.target = [Literal(text, quoted=True)] if raw else WordReader(text).quoted("")
        self._documents.clear()

    def _simple(self) -> Simple:
        node = Simple()
        while True:
            self._space()
            redirect = self._redirect()
            if redirect is not None:
                node.redirects.append(redirect)
                continue
            assignment = _ASSIGNMENT.match(self.text, self.at)
            if assignment and not node.words:
                self.at = assignment.end()
                node.assignments.append((assignment[1], self.word() or []))
                continue
            testing = bool(node.words) and _is(node.words[0], "[[") and not _is(node.words[-1], "]]")
            word = self._test_word() if testing else self.word()
            if word is None:
                break
            node.words.append(word)
        if not (node.words or node.assignments or node.redirects):
            unexpected = self._token()
            name = "newline" if unexpected == "\n" else unexpected
            raise ShellSyntaxError(
                f'syntax error: unexpected "{name}"' if name else "syntax error: unexpected end of file"
            )
        return node

    def _test_word(self) -> Word | None:
        """Inside `[[ ]]` the characters `< > && || ( )` are words of the test."""
        for operator in ("&&", "||", "<", ">", "(", ")"):
            if self.text.startswith(operator, self.at):
                self.at += len(operator)
                return [Literal(operator)]
        return self.word()


def _is(word: Word, text: str) -> bool:
    return len(word) == 1 and isinstance(word[0], Literal) and word[0].text == text and not word[0].quoted
