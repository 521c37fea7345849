"""Expressions, by the precedence of their operators."""

from __future__ import annotations

import re

from winready_sandbox.programs.powershell.operators import FAMILIES
from winready_sandbox.programs.powershell.reader import NUMBER, Reader, number
from winready_sandbox.programs.powershell.syntax import (
    ArrayLiteral,
    Binary,
    Call,
    Cast,
    Constant,
    Expression,
    Group,
    HashLiteral,
    Index,
    Member,
    ParseError,
    ScriptBlock,
    Statement,
    Step,
    SubExpression,
    TypeLiteral,
    Unary,
)

_LOGIC = ("and", "or")
_COMPARISON = (*FAMILIES["comparison"], *FAMILIES["matching"])
_OPERATOR = re.compile(r"-([A-Za-z]+)(?![\w-])")
_TYPE = re.compile(r"\[\s*([A-Za-z_][\w.]*(?:\[\])?(?:\[[\w.,\s]+\])?)\s*\]")


class ExpressionParser(Reader):
    """The part of the parser that is about values."""

    def statement(self) -> Statement:
        """See `parser.Parser`."""
        raise NotImplementedError

    def statements(self, end: str) -> list[Statement]:
        """See `parser.Parser`."""
        raise NotImplementedError

    def parameters(self) -> list[tuple[str, Expression | None]]:
        """See `parser.Parser`."""
        raise NotImplementedError

    def expression(self) -> Expression:
        """A whole expression."""
        return self._logical()

    def _word_operator(self, allowed: tuple[str, ...]) -> str:
        mark = self.at
        self.blanks()
        match = _OPERATOR.match(self.text, self.at)
        name = match[1].lower() if match else ""
        name = name if name in allowed else name.removeprefix("i")
        if match and name in allowed:
            self.at = match.end()
            self.blanks(lines=True)
            return name
        self.at = mark
        return ""

    def _symbol(self, symbols: tuple[str, ...]) -> str:
        mark = self.at
        self.blanks()
        for symbol in symbols:
            if self.text.startswith(symbol, self.at):
                following = self.text[self.at + len(symbol) : self.at + len(symbol) + 1]
                if (
                    following == "="
                    or (symbol == "-" and following.isalpha())
                    or (symbol in "+-" and following == symbol)
                ):
                    continue
                self.at += len(symbol)
                self.blanks(lines=True)
                return symbol
        self.at = mark
        return ""

    def _logical(self) -> Expression:
        left = self._comparison()
        while operator := self._word_operator(_LOGIC):
            left = Binary(operator, left, self._comparison())
        return left

    def _comparison(self) -> Expression:
        left = self._additive()
        while operator := self._word_operator(_COMPARISON):
            left = Binary(operator, left, self._additive())
        return left

    def _additive(self) -> Expression:
        left = self._multiplicative()
        while operator := self._symbol(("+", "-")):
            left = Binary(operator, left, self._multiplicative())
        return left

    def _multiplicative(self) -> Expression:
        left = self._range()
        while operator := self._symbol(("*", "/", "%")):
            left = Binary(operator, left, self._range())
        return left

    def _range(self) -> Expression:
        left = self._comma()
        while self._symbol(("..",)):
            left = Binary("..", left, self._comma())
        return left

    def _comma(self) -> Expression:
        items = [self.single()]
        while True:
            mark = self.at
            self.blanks()
            if self.peek() != ",":
                self.at = mark
                return items[0] if len(items) == 1 else ArrayLiteral(items)
            self.at += 1
            self.blanks(lines=True)
            items.append(self.single())

    def single(self) -> Expression:
        """A value with what stands before and after it."""
        self.spend()
        self.blanks()
        if self.peek(2) in ("++", "--"):
            amount = 1 if self.peek() == "+" else -1
            self.at += 2
            return Step(self.single(), amount)
        char = self.peek()
        if char == "!":
            self.at += 1
            return Unary("not", self.single())
        if char == ",":
            self.at += 1
            return ArrayLiteral([self.single()])
        match = _OPERATOR.match(self.text, self.at)
        if match and match[1].lower() == "not":
            self.at = match.end()
            return Unary("not", self.single())
        if char in ("-", "+") and not (match and not NUMBER.match(self.text, self.at + 1)):
            self.at += 1
            return Unary(char, self.single())
        if char == "[":
            cast = _TYPE.match(self.text, self.at)
            following = self.text[cast.end() : cast.end() + 2] if cast else ""
            if cast and following != "::" and following[:1] not in ("", ")", "]", ",", ";", "|", " ", "\n", "."):
                self.at = cast.end()
                return Cast(cast[1].lower(), self.single())
            if cast and following[:1] == " " and re.compile(r"\s*[$@'\"(\d]").match(self.text, cast.end()):
                self.at = cast.end()
                self.blanks()
                return Cast(cast[1].lower(), self.single())
        return self.postfix()

    def postfix(self) -> Expression:
        """A value with its members, calls, indexes and steps."""
        value = self._primary()
        while True:
            if self.peek(2) == "::":
                self.at += 2
                value = self._member(value)
            elif self.peek() == "." and re.match(r"[A-Za-z_$'\"(]", self.text[self.at + 1 : self.at + 2]):
                self.at += 1
                value = self._member(value)
            elif self.peek() == "[":
                self.at += 1
                index = self.expression()
                self.expect("]")
                value = Index(value, index)
            elif self.peek(2) in ("++", "--"):
                value = Step(value, 1 if self.peek() == "+" else -1)
                self.at += 2
            else:
                return value

    def _member(self, target: Expression) -> Expression:
        char = self.peek()
        name: Expression
        if char == "'":
            name = Constant(self.single_quoted())
        elif char == '"':
            name = self.double_quoted()
        elif char == "$":
            name = self.variable()
        elif char == "(":
            name = self._group()
        else:
            match = self.match(re.compile(r"[A-Za-z_]\w*"))
            name = Constant(match[0] if match else "")
        if self.peek() != "(":
            return Member(target, name)
        self.at += 1
        arguments: list[Expression] = []
        while True:
            self.blanks(lines=True)
            if self.peek() == ")":
                self.at += 1
                return Call(target, name, arguments)
            if self.peek() == ",":
                self.at += 1
                continue
            arguments.append(self._argument_value())

    def _argument_value(self) -> Expression:
        """An argument of a method: an expression in which a comma separates."""
        left = self.single()
        while True:
            operator = self._symbol(("+", "-", "*", "/", "%", ".."))
            operator = operator or self._word_operator((*_COMPARISON, *_LOGIC))
            if not operator:
                return left
            left = Binary(operator, left, self.single())

    def _group(self) -> Group:
        self.expect("(")
        body = self.statement()
        self.expect(")")
        return Group(body)

    def sub_expression(self) -> SubExpression:
        """`$( ... )`."""
        self.at += 2
        return SubExpression(self.statements(")"))

    def _primary(self) -> Expression:
        self.blanks()
        char = self.peek()
        two = self.peek(2)
        if two == "$(":
            return self.sub_expression()
        if two == "@(":
            self.at += 2
            return SubExpression(self.statements(")"), array=True)
        if two == "@{":
            return self._hash()
        if two in ("@'", '@"'):
            body = self.here_string()
            return Constant(body) if isinstance(body, str) else body
        if char == "$":
            return self.variable()
        if char == "'":
            return Constant(self.single_quoted())
        if char == '"':
            return self.double_quoted()
        if char == "(":
            return self._group()
        if char == "{":
            self.at += 1
            start = self.at
            parameters = self.parameters()
            body_statements = self.statements("}")
            return ScriptBlock(body_statements, parameters, self.text[start : self.at - 1])
        match = self.match(NUMBER)
        if match:
            return Constant(number(match))
        match = self.match(_TYPE)
        if match:
            return TypeLiteral(match[1])
        word = self.peek(20).split("\n")[0].split(" ")[0] or "newline"
        raise ParseError(f"Unexpected token '{word}' in expression or statement.")

    def _hash(self) -> HashLiteral:
        self.at += 2
        pairs: list[tuple[Expression, Statement]] = []
        while True:
            self.blanks(lines=True)
            if self.peek() == "}":
                self.at += 1
                return HashLiteral(pairs)
            if self.peek() == ";":
                self.at += 1
                continue
            match = self.match(re.compile(r"[A-Za-z_][\w-]*"))
            name: Expression = Constant(match[0]) if match else self.single()
            self.expect("=")
            self.blanks(lines=True)
            pairs.append((name, self.statement()))
