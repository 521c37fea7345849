"""Statements and commands."""

from __future__ import annotations

import re
from collections.abc import Callable

from winready_sandbox.programs.powershell.arguments import ArgumentParser
from winready_sandbox.programs.powershell.reader import NUMBER
from winready_sandbox.programs.powershell.syntax import (
    Argument,
    Assignment,
    Chain,
    Command,
    Constant,
    Expression,
    Flow,
    For,
    ForEach,
    FunctionDefinition,
    If,
    Index,
    Member,
    ParseError,
    Pipeline,
    Redirection,
    ScriptBlock,
    Statement,
    Switch,
    Try,
    Value,
    Variable,
    While,
)

_ASSIGN = re.compile(r"(\+=|-=|\*=|/=|%=|=)(?!=)")
_REDIRECTION = re.compile(r"([12*]?)(>>|>)(&1)?")
_FLOW = ("throw", "return", "exit", "break", "continue")


class Parser(ArgumentParser):
    """Recursive descent over a script."""

    def parse(self) -> ScriptBlock:
        """The whole script, with its `param` block."""
        parameters = self.parameters()
        body = self.statements("")
        return ScriptBlock(body, parameters, self.text)

    def parameters(self) -> list[tuple[str, Expression | None]]:
        """An optional `param ( ... )`."""
        self.blanks(lines=True)
        if self.keyword() != "param":
            return []
        self.at += 5
        self.expect("(")
        return self._parameter_list()

    def _parameter_list(self) -> list[tuple[str, Expression | None]]:
        found: list[tuple[str, Expression | None]] = []
        while True:
            self.blanks(lines=True)
            if self.peek() == ")":
                self.at += 1
                return found
            if self.peek() == "[":
                self.at = self.beyond("]")
            elif self.peek() == ",":
                self.at += 1
            else:
                variable = self.variable()
                self.blanks(lines=True)
                default = None
                if self.peek() == "=":
                    self.at += 1
                    self.blanks(lines=True)
                    default = self.single()
                found.append((variable.name, default))

    def statements(self, end: str) -> list[Statement]:
        """Statements up to a closing character."""
        body: list[Statement] = []
        while True:
            self.blanks(lines=True)
            while self.peek() == ";":
                self.at += 1
                self.blanks(lines=True)
            if self.at >= len(self.text):
                if end:
                    raise ParseError(f"Missing closing '{end}' in statement block or type definition.")
                return body
            if end and self.peek() == end:
                self.at += 1
                return body
            body.append(self.statement())
            self.blanks()
            if self.peek() not in ("", ";", "\n", end):
                raise ParseError(f"Unexpected token '{self.peek(20).strip()}' in expression or statement.")

    def block(self) -> list[Statement]:
        """`{ ... }` as part of a statement."""
        self.expect("{")
        return self.statements("}")

    def statement(self) -> Statement:
        """One statement."""
        self.spend()
        self.blanks(lines=True)
        word = self.keyword()
        after = self.text[self.at + len(word) : self.at + len(word) + 1]
        if word in _FLOW and (after in ("", " ", "\t", "\n", ";", "}", "(", '"', "'", "$")):
            return self._flow(word)
        special: dict[str, Callable[[], Statement]] = {
            "if": self._if,
            "while": self._while,
            "do": self._do,
            "for": self._for,
            "foreach": self._foreach,
            "switch": self._switch,
            "try": self._try,
            "function": self._function,
        }
        if word in special and after in (" ", "\t", "\n", "(", "{"):
            return special[word]()
        return self._chained()

    def _flow(self, word: str) -> Flow:
        self.at += len(word)
        self.blanks()
        if self.peek() in ("", ";", "\n", "}"):
            return Flow(word, None)
        return Flow(word, self._chained())

    def _chained(self) -> Statement:
        left = self.pipeline()
        while True:
            self.blanks()
            operator = self.peek(2)
            if operator not in ("&&", "||"):
                return left
            self.at += 2
            self.blanks(lines=True)
            left = Chain(operator, left, self.pipeline())

    def _condition(self) -> Statement:
        self.expect("(")
        condition = self.statement()
        self.expect(")")
        return condition

    def _if(self) -> If:
        branches: list[tuple[Statement, list[Statement]]] = []
        otherwise = None
        self.at += 2
        while True:
            condition = self._condition()
            branches.append((condition, self.block()))
            mark = self.at
            self.blanks(lines=True)
            word = self.keyword()
            if word == "elseif":
                self.at += 6
                continue
            if word == "else":
                self.at += 4
                otherwise = self.block()
            else:
                self.at = mark
            return If(branches, otherwise)

    def _while(self) -> While:
        self.at += 5
        condition = self._condition()
        return While(condition, self.block())

    def _do(self) -> While:
        self.at += 2
        body = self.block()
        self.blanks(lines=True)
        word = self.keyword()
        if word not in ("while", "until"):
            raise ParseError("The while or until keyword was missing in the do loop.")
        self.at += 5
        return While(self._condition(), body, body_first=True, until=word == "until")

    def _for(self) -> For:
        self.at += 3
        self.expect("(")
        parts: list[Statement | None] = []
        for end in (";", ";", ")"):
            self.blanks(lines=True)
            parts.append(None if self.peek() == end else self.statement())
            self.expect(end)
        return For(parts[0], parts[1], parts[2], self.block())

    def _foreach(self) -> Statement:
        self.at += 7
        self.blanks(lines=True)
        self.expect("(")
        self.blanks(lines=True)
        variable = self.variable()
        self.blanks(lines=True)
        if self.keyword() != "in":
            raise ParseError("Missing 'in' after variable in foreach loop.")
        self.at += 2
        values = self.statement()
        self.expect(")")
        return ForEach(variable.name, values, self.block())

    def _switch(self) -> Switch:
        self.at += 6
        flags: set[str] = set()
        self.blanks(lines=True)
        while self.peek() == "-":
            self.at += 1
            flags.add(self.keyword())
            self.at += len(self.keyword())
            self.blanks(lines=True)
        value = self._condition()
        self.expect("{")
        cases: list[tuple[Expression | None, list[Statement]]] = []
        while True:
            self.blanks(lines=True)
            if self.peek() == "}":
                self.at += 1
                return Switch(value, cases, "regex" in flags, "wildcard" in flags)
            if self.peek() == ";":
                self.at += 1
                continue
            if self.keyword() == "default":
                self.at += 7
                cases.append((None, self.block()))
            else:
                pattern = self.argument()
                if pattern is None:
                    raise ParseError("Missing condition in switch statement clause.")
                cases.append((pattern, self.block()))

    def _try(self) -> Try:
        self.at += 3
        body = self.block()
        handlers: list[tuple[list[str], list[Statement]]] = []
        final: list[Statement] = []
        while True:
            mark = self.at
            self.blanks(lines=True)
            word = self.keyword()
            if word == "catch":
                self.at += 5
                self.blanks(lines=True)
                types: list[str] = []
                while self.peek() == "[":
                    end = self.beyond("]")
                    types.append(self.text[self.at + 1 : end - 1].lower())
                    self.at = end
                    self.blanks(lines=True)
                    self.at += self.peek() == ","
                handlers.append((types, self.block()))
            elif word == "finally":
                self.at += 7
                final = self.block()
            else:
                self.at = mark
                if not handlers and not final:
                    raise ParseError("The Try statement is missing its Catch or Finally block.")
                return Try(body, handlers, final)

    def _function(self) -> FunctionDefinition:
        self.at += 8
        self.blanks()
        name = self.match(re.compile(r"[\w-]+"))
        if not name:
            raise ParseError("Missing name after function keyword.")
        self.blanks(lines=True)
        parameters: list[tuple[str, Expression | None]] = []
        if self.peek() == "(":
            self.at += 1
            parameters = self._parameter_list()
        self.expect("{")
        start = self.at
        parameters = parameters or self.parameters()
        body = self.statements("}")
        return FunctionDefinition(name[0].lower(), ScriptBlock(body, parameters, self.text[start : self.at - 1]))

    def pipeline(self) -> Statement:
        """Commands and values joined by `|`, or an assignment."""
        first = self._stage()
        if isinstance(first, Value):
            self.blanks()
            operator = self.match(_ASSIGN)
            if operator:
                if not isinstance(first.expression, Variable | Member | Index):
                    raise ParseError("The assignment expression is not valid.")
                self.blanks(lines=True)
                return Assignment(first.expression, operator[1], self.statement())
        stages = [first]
        while True:
            mark = self.at
            self.blanks()
            if self.peek() != "|" or self.peek(2) == "||":
                self.at = mark
                break
            self.at += 1
            self.blanks(lines=True)
            stages.append(self._stage())
        return stages[0] if len(stages) == 1 else Pipeline(stages)

    def _stage(self) -> Command | Value:
        self.blanks()
        char = self.peek()
        if char == "&" or (char == "." and self.text[self.at + 1 : self.at + 2] in (" ", "\t", "{", "$", "(")):
            self.at += 1
            self.blanks()
            start = self.at
            name = self.argument()
            if name is None:
                raise ParseError(
                    "The expression after '&' in a pipeline element produced an object that was not valid."
                )
            return self._command(name, start, called=True)
        starts_value = char in "$'\"([@{!+-," or bool(NUMBER.match(self.text, self.at))
        if starts_value:
            expression = self.expression()
            return Value(expression, self._redirections())
        start = self.at
        return self._command(Constant(self.bare_word()), start)

    def _redirections(self) -> list[Redirection]:
        found: list[Redirection] = []
        while True:
            mark = self.at
            self.blanks()
            match = self.match(_REDIRECTION)
            if not match:
                self.at = mark
                return found
            if match[3]:
                found.append(Redirection(match[1] or "1", False, None))
                continue
            self.blanks()
            target = self.argument()
            if target is None:
                raise ParseError("Missing file specification after redirection operator.")
            found.append(Redirection(match[1] or "1", match[2] == ">>", target))

    def _command(self, name: Expression, start: int, *, called: bool = False) -> Command:
        arguments: list[Argument] = []
        redirections: list[Redirection] = []
        while True:
            self.blanks()
            if self.at >= len(self.text) or self.peek() in "\n;|)}" or self.peek(2) == "&&":
                break
            more = self._redirections()
            if more:
                redirections += more
                continue
            if self.peek() == "&":
                self.at += 1
                break
            if self.peek(3) == "--%":
                end = self.text.find("\n", self.at)
                end = len(self.text) if end < 0 else end
                arguments += [Argument(Constant(word)) for word in self.text[self.at + 3 : end].split()]
                self.at = end
                break
            parameter = re.compile(r"-([A-Za-z_?][\w-]*)(:)?(?=[\s:;|)}({'\"$@]|$)").match(self.text, self.at)
            if parameter:
                self.at = parameter.end()
                value = self.argument() if parameter[2] else None
                arguments.append(Argument(value, parameter[1] if not parameter[2] else f"{parameter[1]}:"))
                continue
            value = self.argument()
            if value is None:
                raise ParseError(f"Unexpected token '{self.peek()}' in expression or statement.")
            arguments.append(Argument(value))
        return Command(name, arguments, redirections, called, self.text[start : self.at].strip())
