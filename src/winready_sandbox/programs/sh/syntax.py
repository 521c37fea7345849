"""What a shell script consists of."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Literal:
    """Text as it is."""

    text: str
    quoted: bool = False


@dataclass
class Parameter:
    """`$name` and `${name-word}` in all its forms."""

    name: str
    operator: str = ""
    word: Word | None = None
    quoted: bool = False


@dataclass
class Substitution:
    """`$(script)` and backticks."""

    script: str
    quoted: bool = False


@dataclass
class Arithmetic:
    """`$((expression))`."""

    expression: Word
    quoted: bool = False


Part = Literal | Parameter | Substitution | Arithmetic
Word = list[Part]


@dataclass
class Redirect:
    """`2>file`, `<<EOF`, `2>&1`."""

    handle: int
    operator: str
    target: Word


@dataclass
class Simple:
    """Assignments and a command with its arguments."""

    assignments: list[tuple[str, Word]] = field(default_factory=list)
    words: list[Word] = field(default_factory=list)
    redirects: list[Redirect] = field(default_factory=list)


@dataclass
class Pipeline:
    """Commands joined by `|`."""

    commands: list[ShellNode]
    negated: bool = False


@dataclass
class AndOr:
    """`left && right` or `left || right`."""

    operator: str
    left: ShellNode
    right: ShellNode


@dataclass
class Sequence:
    """Commands one after the other; those marked run in the background."""

    commands: list[tuple[ShellNode, bool]]


@dataclass
class IfClause:
    """`if ... then ... elif ... else ... fi`."""

    branches: list[tuple[ShellNode, ShellNode]]
    otherwise: ShellNode | None


@dataclass
class Loop:
    """`while` and `until`."""

    condition: ShellNode
    body: ShellNode
    until: bool


@dataclass
class ForClause:
    """`for name in words; do ... done`."""

    variable: str
    words: list[Word] | None
    body: ShellNode


@dataclass
class CaseClause:
    """`case word in pattern) ... ;; esac`."""

    word: Word
    items: list[tuple[list[Word], ShellNode]]


@dataclass
class Subshell:
    """`( ... )`."""

    body: ShellNode


@dataclass
class Function:
    """`name() { ... }`."""

    name: str
    body: ShellNode


@dataclass
class Redirected:
    """A compound command with redirections."""

    body: ShellNode
    redirects: list[Redirect]


ShellNode = (
    Simple | Pipeline | AndOr | Sequence | IfClause | Loop | ForClause | CaseClause | Subshell | Function | Redirected
)
