"""What a PowerShell script consists of."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


class ParseError(Exception):
    """The script cannot be parsed."""


@dataclass
class Constant:
    """A number or a text."""

    value: Any


@dataclass
class Expandable:
    """A text in double quotes."""

    parts: list[str | Expression]


@dataclass
class Variable:
    """`$name`, `$env:NAME`, `@name` when splatted."""

    name: str


@dataclass
class ArrayLiteral:
    """`a, b, c`."""

    items: list[Expression]


@dataclass
class SubExpression:
    """`$( ... )` and, as an array, `@( ... )`."""

    body: list[Statement]
    array: bool = False


@dataclass
class Group:
    """`( ... )`: a statement used as a value."""

    body: Statement


@dataclass
class HashLiteral:
    """`@{ name = value }`."""

    pairs: list[tuple[Expression, Statement]]


@dataclass
class ScriptBlock:
    """`{ ... }`."""

    body: list[Statement]
    parameters: list[tuple[str, Expression | None]] = field(default_factory=list)
    text: str = ""


@dataclass
class TypeLiteral:
    """`[name]`."""

    name: str


@dataclass
class Cast:
    """`[type]value`."""

    type: str
    value: Expression


@dataclass
class Member:
    """`value.name` and `[type]::name`."""

    target: Expression
    name: Expression


@dataclass
class Call:
    """`value.name(arguments)`."""

    target: Expression
    name: Expression
    arguments: list[Expression]


@dataclass
class Index:
    """`value[index]`."""

    target: Expression
    index: Expression


@dataclass
class Unary:
    """`-not`, `!`, `-`, `,`."""

    operator: str
    value: Expression


@dataclass
class Binary:
    """Two values and an operator."""

    operator: str
    left: Expression
    right: Expression


@dataclass
class Step:
    """`$i++`."""

    target: Expression
    amount: int


Expression = (
    Constant
    | Expandable
    | Variable
    | ArrayLiteral
    | SubExpression
    | Group
    | HashLiteral
    | ScriptBlock
    | TypeLiteral
    | Cast
    | Member
    | Call
    | Index
    | Unary
    | Binary
    | Step
)


@dataclass
class Argument:
    """One argument of a command: a value, or a parameter with or without one."""

    value: Expression | None
    parameter: str = ""


@dataclass
class Redirection:
    """`> file`, `2>&1`."""

    stream: str
    append: bool
    target: Expression | None
    """None = the output stream."""


@dataclass
class Command:
    """A cmdlet, function or program with its arguments."""

    name: Expression
    arguments: list[Argument]
    redirections: list[Redirection]
    called: bool = False
    """By `&` or `.`."""
    text: str = ""


@dataclass
class Value:
    """An expression as a statement."""

    expression: Expression
    redirections: list[Redirection] = field(default_factory=list)


@dataclass
class Pipeline:
    """Commands joined by `|`."""

    stages: list[Command | Value]


@dataclass
class Chain:
    """`a && b` and `a || b`."""

    operator: str
    left: Statement
    right: Statement


@dataclass
class Assignment:
    """`$x = ...`."""

    target: Expression
    operator: str
    value: Statement


@dataclass
class If:
    """`if ... elseif ... else`."""

    branches: list[tuple[Statement, list[Statement]]]
    otherwise: list[Statement] | None


@dataclass
class While:
    """`while`, and `do ... while|until`."""

    condition: Statement
    body: list[Statement]
    body_first: bool = False
    until: bool = False


@dataclass
class For:
    """`for (start; condition; step)`."""

    start: Statement | None
    condition: Statement | None
    step: Statement | None
    body: list[Statement]


@dataclass
class ForEach:
    """`foreach ($x in values)`."""

    variable: str
    values: Statement
    body: list[Statement]


@dataclass
class Switch:
    """`switch (value) { pattern { ... } }`."""

    value: Statement
    cases: list[tuple[Expression | None, list[Statement]]]
    regex: bool = False
    wildcard: bool = False


@dataclass
class Try:
    """`try ... catch ... finally`."""

    body: list[Statement]
    handlers: list[tuple[list[str], list[Statement]]]
    final: list[Statement]


@dataclass
class Flow:
    """`throw`, `return`, `exit`, `break`, `continue`."""

    keyword: str
    value: Statement | None


@dataclass
class FunctionDefinition:
    """`function name { ... }`."""

    name: str
    block: ScriptBlock


Statement = (
    Pipeline
    | Chain
    | Assignment
    | If
    | While
    | For
    | ForEach
    | Switch
    | Try
    | Flow
    | FunctionDefinition
    | Value
    | Command
)
